# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/howto: every block of commands is run, in order, and prints what the page says.

A block is run by what its fence says:

    ```sh              Given to one shell a page, which must end each with status 0.
    ```text            What the block before it prints, both streams together. "…" stands for anything within
                       a line, and alone on a line for any number of lines.
    ```WORD tour NAME  What stands in the file NAME from here on, as in test_readme.py, which runs blocks of the
                       kind "console tour".

Other blocks are not run: code, and "console" for what a test cannot do.
"""
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import test_c_api
from support import ATOLL, SandboxTest
from test_readme import ANYTHING, ROOT, Shell, pattern

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted((ROOT / "docs/howto").glob("*.md"))
KNOWN = re.compile(r"sh|text|console|console tour|\w+ tour \S+|(c|python|yaml|json)( \S+/\S+)?")


def steps(text):
    """The steps of a page: ("sh", commands, expected output or None) or ("file", name, content)."""
    blocks = [(block["info"], block["body"]) for block in FENCE.finditer(text)]
    for i, (info, body) in enumerate(blocks):
        tour = re.fullmatch(r"\w+ tour (\S+)", info)
        if tour:
            yield "file", tour[1], body
        elif info == "sh":
            follows = blocks[i + 1] if i + 1 < len(blocks) else ("", "")
            yield "sh", body, follows[1] if follows[0] == "text" else None


def matches(expected, output):
    return re.fullmatch(pattern(expected.replace("…", ANYTHING)), output)


def setUpModule():
    global INSTALLATION
    INSTALLATION = test_c_api.Installation(test_c_api.installed())


class Pages(SandboxTest):
    def follow(self, page):
        folder = self.folder()
        work = folder / "work"
        shutil.copytree(ROOT / "examples/c", work, ignore=lambda _, names: [n for n in names if not n.endswith(".c")])
        environment = INSTALLATION.environment | {
            "PATH": f"{Path(ATOLL).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HOME": str(work),
            "LANG": "C.UTF-8",
            "ATOLL_STATE_DIR": str(folder / "state"),
            "ATOLL_FOLDER_DIR": str(folder / "folders"),
        }
        shell = Shell(work, environment)
        self.addCleanup(subprocess.run, ["bash", "-c", "atoll list -q | xargs -r atoll rm"], env=environment)
        self.addCleanup(shell.close)
        shell.run("set -e")
        for kind, what, expected in steps(page.read_text()):
            if kind == "file":
                (work / what).write_text(expected)
                continue
            output = shell.run(what)  # fails when the shell ends, which it does at a bad status
            if expected is not None and not matches(expected, output):
                self.assertEqual(output, expected, f"in {page.name}: {what}")
        self.assertEqual(shell.run("atoll list -q"), "", "the page leaves a sandbox behind")

    def test_every_page_does_what_it_says(self):
        self.assertGreaterEqual(len(PAGES), 8)
        for page in PAGES:
            with self.subTest(page=page.name):
                self.follow(page)


class Reading(unittest.TestCase):
    def test_no_block_is_passed_over_unseen(self):
        for page in PAGES:
            previous = ""
            text = page.read_text()
            for block in FENCE.finditer(text):
                self.assertTrue(KNOWN.fullmatch(block["info"]), f"{page.name}: ```{block['info']}")
                if block["info"] == "text":
                    self.assertEqual(previous, "sh", f"{page.name}: output of nothing: {block['body']}")
                previous = block["info"]
            self.assertNotIn("```", FENCE.sub("", text), page.name)

    def test_the_pages_for_users_are_run_throughout(self):
        for name in ("network", "credentials", "size_and_time", "get_a_file_out", "failures"):
            text = (ROOT / f"docs/howto/{name}.md").read_text()
            self.assertGreaterEqual(sum(kind == "sh" for kind, _, _ in steps(text)), 5, name)
            self.assertNotIn("```console", text)

    def test_steps_are_blocks_with_their_outputs(self):
        text = "```sh\none\n```\nwords\n```text\n1\n```\n```sh\ntwo\n```\n"
        text += "```yaml tour f\na: 1\n```\n```console\n$ x\n```\n"
        self.assertEqual(list(steps(text)), [("sh", "one\n", "1\n"), ("sh", "two\n", None), ("file", "f", "a: 1\n")])

    def test_a_wildcard_covers_what_it_should_and_no_more(self):
        self.assertTrue(matches("took … ms\n…\nz\n", "took 3 ms\nb\nc\nz\n"))
        self.assertFalse(matches("took … ms\n", "took 3\n ms\n"))
        self.assertFalse(matches("[... 3 more lines]\n", "[x 3 more lines]\n"))

    def test_a_bad_status_in_the_middle_is_noticed(self):
        shell = Shell("/", {"PATH": "/usr/bin:/bin"})
        self.addCleanup(shell.close)
        shell.run("set -e")
        self.assertEqual(shell.run("echo a\necho b\n"), "a\nb\n")
        with self.assertRaises(AssertionError):
            shell.run("false\necho c\n")


if __name__ == "__main__":
    unittest.main()
