# SPDX-License-Identifier: Apache-2.0
"""The program with backends that it did not come with: the examples, and some that misbehave.

Whatever a backend program does, the client ends in time, says in one sentence what is wrong, shows
nothing that drives a terminal, and leaves no process behind.
"""
import re
import stat
import subprocess
import sys
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, SandboxTest

HERE = Path(__file__).resolve().parent
BAD = HERE.parent / "conformance/bad_backend.py"
sys.path.insert(0, str(HERE.parent / "conformance"))
import driver  # noqa: E402

UNFIT = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


class ProgramTest(SandboxTest):
    def setUp(self):
        super().setUp()
        self.bin = self.folder()
        self.environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "ATOLL_FOLDER_DIR": str(self.folder() / "sandboxes")}

    def install(self, name, *words):
        """A program atoll-backend-NAME that runs these words."""
        path = self.bin / f"atoll-backend-{name}"
        quoted = " ".join("'" + w.replace("'", "'\\''") + "'" for w in words)
        path.write_text(f"#!/bin/sh\nexec {quoted}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)

    def atoll(self, *arguments, stdin=b""):
        return subprocess.run([ATOLL, *arguments], input=stdin, capture_output=True, env=self.environment,
                              timeout=LIMIT_S, cwd="/", check=False)

    def good(self, *arguments, **options):
        done = self.atoll(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return done.stdout


class Misbehaving(ProgramTest):
    """Tests are made from the lists below: one a way to misbehave."""

    CREATING = (
        "stalls before its greeting", "exits at once", "is no backend at all", "floods", "lies about a length",
        "dies within a frame", "speaks another major version", "does not greet",
        "sends a message without an end", "exits after its greeting", "answers with the wrong type",
        "answers with damaged fields",
        "gives no id", "gives an id that drives a terminal", "refuses in words that drive a terminal",
        "dies while creating",
    )
    CHECKING = ("does not describe itself", "describes itself in damaged fields")
    RUNNING = (
        "sends more than the credit", "writes without end", "dies while a command runs", "exits with a reason that is none",
    )

    def misbehave(self, how, *arguments, stdin=b""):
        self.install("bad", sys.executable, "-B", str(BAD), how)
        done = self.atoll(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, 125, done)
        lines = done.stderr.decode().splitlines()
        self.assertTrue(lines and lines[-1].startswith("atoll: "), done)
        self.assertIsNone(UNFIT.search(done.stderr), done)
        self.assertIsNone(UNFIT.search(done.stdout), done)
        self.assertNotIn(b"cannot ask", done.stderr)
        self.assert_gone()
        return done

    def test_one_that_behaves_is_fine(self):
        self.install("bad", sys.executable, "-B", str(BAD), "behaves")
        name = self.good("create", "--backend", "bad").decode().strip()
        self.assertEqual(name, "bad:one")
        self.assertEqual(self.good("exec", name, "--", "true"), b"hello\n")
        self.assertEqual(self.good("read", name, "f"), b"12345")
        self.assertIn(b"fine", self.good("ls", name, "."))
        self.good("rm", name)

    def test_ends_without_a_word(self):
        done = self.misbehave("ends without a word", "rm", "bad:one")
        self.assertIn(b"atoll-backend-bad", done.stderr)

    def test_gives_credit_without_end(self):
        self.install("bad", sys.executable, "-B", str(BAD), "gives credit without end")
        done = self.atoll("exec", "-i", "bad:one", "--", "true", stdin=b"input" * 1000)
        self.assertIn(done.returncode, (0, 125), done)  # no harm is done, or it is told
        self.assert_gone()

    def test_reads_another_size_than_it_said(self):
        for how in ("reads less than it said", "reads more than there is"):
            with self.subTest(how):
                self.misbehave(how, "read", "bad:one", "f")

    def test_lists_names_that_are_none(self):
        done = self.misbehave("lists names that are none", "ls", "bad:one", ".")
        self.assertNotIn(b"up", done.stdout)


def add(how, *arguments):
    def test(self):
        self.misbehave(how, *arguments, stdin=b"input")

    setattr(Misbehaving, "test_" + how.replace(" ", "_"), test)


for one in Misbehaving.CREATING:
    add(one, "create", "--backend", "bad")
for one in Misbehaving.CHECKING:
    add(one, "check", "--backend", "bad")
for one in Misbehaving.RUNNING:
    add(one, "exec", "-i", "bad:one", "--", "true")


class Page(ProgramTest):
    """The program on docs/howto/write_a_backend.md; what is typed there, test_howto.py types."""

    PAGE = HERE.parents[1] / "docs/howto/write_a_backend.md"
    HEADERS = next((p for p in HERE.parents[1].glob("installed/**/include") if (p / "atoll_backend.h").exists()),
                   HERE.parents[1] / "include")

    def blocks(self):
        """The code blocks of the page: language and text."""
        return re.findall(r"^```(\w+)[^\n]*\n(.*?)^```$", self.PAGE.read_text(), re.MULTILINE | re.DOTALL)

    def test_the_smallest_backend_compiles(self):
        source = "".join(text for language, text in self.blocks() if language == "c")
        self.assertIn("int main", source)
        compiler = self.need("cc")
        folder = self.folder()
        (folder / "hello.c").write_text(source)
        command = [compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I", str(self.HEADERS),
                   "-c", "hello.c", "-o", "hello.o"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)


class Examples(ProgramTest):
    """The two examples through the program's own commands."""

    def use(self, backend, name):
        arguments = backend(self.folder()).arguments
        self.install(name, *arguments)
        refused = self.atoll("create", "--backend", name)
        self.assertEqual(refused.returncode, 125)
        self.assertIn(b"spec.block_network", refused.stderr)
        sandbox = self.good("create", "--backend", name, "--open-network", "-e", "WORD=one two").decode().strip()
        self.addCleanup(self.atoll, "rm", sandbox)
        self.assertTrue(sandbox.startswith(f"{name}:"), sandbox)
        self.assertEqual(self.good("exec", "-i", sandbox, "--", "sh", "-c", 'echo "$WORD"; cat', stdin=b"in"), b"one two\nin")
        self.assertEqual(self.atoll("exec", sandbox, "--", "sh", "-c", "exit 3").returncode, 3)
        self.good("write", sandbox, "a/b", stdin=bytes(range(256)))
        self.assertEqual(self.good("read", sandbox, "a/b"), bytes(range(256)))
        self.assertIn(b"b", self.good("ls", sandbox, "a"))
        self.assertIn(b"/workspace", self.good("inspect", sandbox))
        self.assertIn(sandbox.partition(":")[2].encode(), self.good("list", "--backend", name))
        self.good("rm", sandbox)
        self.assertNotIn(sandbox.partition(":")[2].encode(), self.good("list", "--backend", name))

    def test_the_one_in_c(self):
        self.use(driver.Folder, "folder")

    def test_the_one_in_python(self):
        self.use(driver.PyFolder, "pyfolder")


if __name__ == "__main__":
    unittest.main()
