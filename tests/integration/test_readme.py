# SPDX-License-Identifier: Apache-2.0
"""The tours of README.md and of docs/howto: every command, word for word, gives the output below it.

A tour is all fenced blocks of a page that begin with one of

    ```console tour       A line that starts with "$ " is a command, the lines up to the next one are
                          its output. "[...]" stands for anything within a line, and alone on a line
                          for any number of lines.
    ```yaml tour NAME     What stands in the file NAME from here on.

The commands of a page are given to one shell, so that variables and folders stay.
"""
import os
import re
import select
import shlex
import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, SandboxTest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(?:(console) tour|\w+ tour (\S+))\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANYTHING = "[...]"
END = b"\x1eEND\n"


def tour(text):
    """The steps of a tour: ("command", as typed, expected output) or ("file", name, content)."""
    for console, name, body in BLOCK.findall(text):
        if not console:
            yield "file", name, body
            continue
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield "command", command, output


def pattern(expected):
    """A regular expression for an output with wildcards."""
    lines = []
    for line in expected.splitlines():
        if line == ANYTHING:
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*".join(map(re.escape, line.split(ANYTHING))) + r"\n")
    return "".join(lines)


class Shell:
    """A shell that runs one command after the other, and tells what each wrote."""

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, command):
        """The output of a command, both streams together."""
        line = f"{{ eval {shlex.quote(command)}\n}} </dev/null\nprintf '\\036END\\n'\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        output = b""
        end = time.monotonic() + LIMIT_S
        descriptor = self.process.stdout.fileno()
        while not output.endswith(END):
            if not select.select([descriptor], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{command!r} did not end within {LIMIT_S} s: {output!r:.500}")
            data = os.read(descriptor, 65536)
            if not data:
                raise AssertionError(f"the shell ended at {command!r}: {output!r:.500}")
            output += data
        return output.removesuffix(END).decode()

    def close(self):
        """Ends the shell with all that it runs."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Tour(SandboxTest):
    def follow(self, name, at_least):
        """Follows the tour of a page, which must have so many commands."""
        page = ROOT / name
        if not page.exists():
            self.skipTest(f"{name} is not beside the tests")
        steps = list(tour(page.read_text()))
        self.assertGreaterEqual(len(steps), at_least, "the tour was not found")
        folder = self.folder()
        work = folder / "work"
        work.mkdir()
        path = os.environ.get("PATH", "/usr/bin:/bin")
        environment = {
            "PATH": f"{Path(ATOLL).parent}:{path}",
            "HOME": str(work),
            "LANG": "C.UTF-8",
            "ATOLL_STATE_DIR": str(folder / "state"), # nobody else's sandboxes are seen
        }
        shell = Shell(work, environment)
        self.addCleanup(subprocess.run, ["bash", "-c", "atoll list -q | xargs -r atoll rm"], env=environment)
        self.addCleanup(shell.close)
        for kind, what, text in steps:
            if kind == "file":
                (work / what).write_text(text)
                continue
            output = shell.run(what)
            if not re.fullmatch(pattern(text), output): # what follows builds on it, and may wait for it
                self.assertEqual(output, text, f"in {name}: {what}")
        self.assertEqual(shell.run("atoll list -q"), "", "the tour leaves a sandbox behind")

    def test_the_tour_of_the_readme_can_be_followed_word_for_word(self):
        self.follow("README.md", 30)

    def test_a_sandbox_can_be_held_as_its_page_says(self):
        self.follow("docs/howto/hold_a_sandbox.md", 40)


class Reading(unittest.TestCase):
    def test_a_wildcard_covers_what_it_should_and_no_more(self):
        self.assertTrue(re.fullmatch(pattern("a\n[...]\nz\n"), "a\nz\n"))
        self.assertTrue(re.fullmatch(pattern("a\n[...]\nz\n"), "a\nb\nc\nz\n"))
        self.assertTrue(re.fullmatch(pattern("took [...] ms\n"), "took 12 ms\n"))
        self.assertFalse(re.fullmatch(pattern("took [...] ms\n"), "took 12\n ms\n"))
        self.assertFalse(re.fullmatch(pattern("a\n"), "a\nb\n"))
        self.assertFalse(re.fullmatch(pattern("a.\n"), "ab\n"))
        self.assertFalse(re.fullmatch(pattern(""), "a\n"))

    def test_a_tour_is_its_blocks_in_order(self):
        text = "```console tour\n$ one\nout\n$ two\n```\n```yaml tour f.yaml\na: 1\n```\n```yaml\nb: 1\n```\n"
        self.assertEqual(
            list(tour(text)), [("command", "one", "out\n"), ("command", "two", ""), ("file", "f.yaml", "a: 1\n")]
        )

    def test_a_shell_keeps_its_variables_and_tells_outputs_apart(self):
        shell = Shell("/", {"PATH": "/usr/bin:/bin"})
        self.addCleanup(shell.close)
        self.assertEqual(shell.run("x=1; echo out; echo err >&2"), "out\nerr\n")
        self.assertEqual(shell.run("cat; printf %s $x"), "1")
        self.assertEqual(shell.run("exit_with() { return 3; }; exit_with; echo $?"), "3\n")
