# SPDX-License-Identifier: Apache-2.0
"""README.md's tour: every command in it, word for word, gives the output that stands below it.

The tour is in fenced blocks whose first line is ```console tour. A line that starts with "$ " is a command,
the lines up to the next one are its output. "[...]" stands for anything within a line, and alone on a
line for any number of lines.
"""
import os
import re
import subprocess
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, SandboxTest

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```console tour\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANYTHING = "[...]"


def tour(text):
    """The commands of the tour, each with its expected output."""
    for block in BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def pattern(expected):
    """A regular expression for an output with wildcards."""
    lines = []
    for line in expected.splitlines():
        if line == ANYTHING:
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*".join(map(re.escape, line.split(ANYTHING))) + r"\n")
    return "".join(lines)


class Tour(SandboxTest):
    def test_the_tour_of_the_readme_can_be_followed_word_for_word(self):
        if not README.exists():
            self.skipTest("README.md is not beside the tests")
        commands = list(tour(README.read_text()))
        self.assertGreater(len(commands), 20, "the tour was not found")
        folder = self.folder()
        path = os.environ.get("PATH", "/usr/bin:/bin")
        environment = {"PATH": f"{Path(ATOLL).parent}:{path}", "HOME": str(folder), "LANG": "C.UTF-8"}
        for command, expected in commands:
            with self.subTest(command=command):
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=LIMIT_S,
                    check=False,
                )
                if not re.fullmatch(pattern(expected), done.stdout):
                    self.assertEqual(done.stdout, expected)


class Wildcards(unittest.TestCase):
    def test_a_wildcard_covers_what_it_should_and_no_more(self):
        self.assertTrue(re.fullmatch(pattern("a\n[...]\nz\n"), "a\nz\n"))
        self.assertTrue(re.fullmatch(pattern("a\n[...]\nz\n"), "a\nb\nc\nz\n"))
        self.assertTrue(re.fullmatch(pattern("took [...] ms\n"), "took 12 ms\n"))
        self.assertFalse(re.fullmatch(pattern("took [...] ms\n"), "took 12\n ms\n"))
        self.assertFalse(re.fullmatch(pattern("a\n"), "a\nb\n"))
        self.assertFalse(re.fullmatch(pattern("a.\n"), "ab\n"))
        self.assertFalse(re.fullmatch(pattern(""), "a\n"))
