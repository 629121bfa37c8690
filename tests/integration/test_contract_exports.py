# SPDX-License-Identifier: Apache-2.0
"""Rows of tests/contract.md about exports that no test of a topic stands for yet."""
import os
import subprocess
import sys
import unittest

from tool_support import SUPPORT, FakeTest, libatoll  # first: it says where the other modules are
from protocol import EndedBy
from support import LIMIT_S, HeldTest, is_root, wait_for

GIB = 1 << 30

# A run whose one export never comes, until the clock has jumped; arguments: URL, file that makes it jump.
SLOW = """
import pathlib, sys
import libatoll
context = libatoll.Context()
tools = context.toolset(settings={"backend.name": "fake", "toolset.exports": f"r.txt={sys.argv[1]}"})
tools.open()
tools.call("run_command", command="x")
closing = tools.start_close(True)
asked = pathlib.Path(sys.argv[3])
while '"read"' not in asked.read_text():
    context.step()
for _ in range(100):
    context.step()
assert not closing.done
pathlib.Path(sys.argv[2]).touch()
try:
    closing.wait()
except libatoll.AtollError as error:
    print(error.cls, error)
context.free()
"""


class OnABackend(FakeTest):
    def run_with(self, entries, **script):
        """A run on a backend that follows a script, before its close."""
        self.script(**script)
        tools = self.fake({"toolset.exports": entries})
        tools.call("run_command", command="x")
        return tools

    def test_files_are_copied_in_order_and_before_the_sandbox_goes(self):
        folder = self.folder()
        tools = self.run_with([f"b=file://{folder}/2", f"a=file://{folder}/1"], read=[{"data": "two"}, {"data": "one"}])
        exported = tools.close(True).exported
        self.assertEqual([(row[0], row[4]) for row in exported], [("b", 3), ("a", 3)])
        self.assertEqual({p.name: p.read_text() for p in folder.iterdir()}, {"1": "one", "2": "two"})
        self.assertEqual([row["path"] for row in self.requests("read")], ["b", "a"])
        self.assertEqual(self.kinds("read", "destroy"), ["read", "read", "destroy"])

    def test_a_sandbox_that_ends_during_the_copy_or_before_it_changes_nothing(self):
        lost = {"vanish": True}
        killed = {"silent": True, "ended": EndedBy.KILLED}
        for script in ({"read": lost}, {"read": killed}, {"stat": lost, "read": lost}):
            with self.subTest(script=script):
                folder = self.folder()
                (folder / "r.txt").write_text("as before")
                tools = self.run_with(f"r.txt=file://{folder}/r.txt", **script)
                self.assert_terminal(tools.close, words=["Could not export r.txt", "backend fake"])
                self.assertEqual({p.name: p.read_text() for p in folder.iterdir()}, {"r.txt": "as before"})

    def test_the_limit_of_a_file_is_a_gibibyte_unless_told(self):
        folder = self.folder()
        error = {"cls": libatoll.TOO_LARGE, "code": 27, "message": "it is too large"}
        tools = self.run_with(f"r.txt=file://{folder}/r.txt", read={"error": error}, stat={"size": GIB + 1})
        self.assert_terminal(tools.close, words=[str(GIB)])
        self.assertEqual(os.listdir(folder), [])

    def test_one_that_comes_too_slowly_fails_and_names_its_allowance(self):
        compiler = self.need("cc")
        folder = self.folder()
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "jump.so", SUPPORT / "jump_clock.c"], check=True)
        self.script(read={"until": "/nonexistent"}, stat={"size": 5})
        environment = os.environ | {
            "LD_PRELOAD": str(folder / "jump.so"), "JUMP_FILE": str(folder / "jump"), "JUMP_S": "3600",
            "PYTHONPATH": str(SUPPORT)}
        done = subprocess.run(
            [sys.executable, "-B", "-c", SLOW, f"file://{folder}/r.txt", folder / "jump", self.desk / "requests.jsonl"],
            env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertTrue(done.stdout.startswith(f"{libatoll.TERMINAL} "), done.stdout)
        self.assertIn("'r.txt' came too slowly: it was given 120 s", done.stdout)
        self.assertEqual(sorted(os.listdir(folder)), ["jump", "jump.so"])


class LeftBehind(HeldTest):
    """As somebody whom a folder's mode can keep out; the host's root is nobody like that."""

    def setUp(self):
        super().setUp()
        self.out = self.folder()
        self.somebody = {"user": 52999, "group": 52999, "extra_groups": []} if is_root() else {}
        self.somebody["env"] = {"ATOLL_STATE_DIR": str(self.out / "state")}
        if is_root():
            os.chown(self.out, 52999, 52999)

    def test_what_cannot_be_removed_is_named_and_can_be_removed_later(self):
        (self.out / "to").mkdir()
        if is_root():
            os.chown(self.out / "to", 52999, 52999)
        sandbox = self.good("create", **self.somebody).decode().strip()
        self.good("exec", sandbox, "--", "sh", "-c", "printf data > f; truncate -s 300M large", **self.somebody)
        client = self.begin(
            "export", sandbox, f"f=file://{self.out}/to/a", f"large=file://{self.out}/to/b", **self.somebody)
        wait_for(lambda: list((self.out / "to").glob("b.*.partial")), "a staged file")
        os.chmod(self.out / "to", 0o555)
        result = client.result()
        self.assert_refused(result, "Could not export f", "left behind")
        staged = sorted(path.name for path in (self.out / "to").iterdir())
        self.assertEqual([name.partition(".")[0] for name in staged], ["a", "b"])
        for name in staged:
            self.assertRegex(name, r"^[ab]\.[0-9a-f]{12}\.partial$")
            self.assertIn(f"{self.out}/to/{name}", result.err.decode())
        os.chmod(self.out / "to", 0o755)
        self.good("gc", **self.somebody)
        self.assertEqual(list((self.out / "to").iterdir()), [])
        self.good("rm", sandbox, **self.somebody)


if __name__ == "__main__":
    unittest.main()
