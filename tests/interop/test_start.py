# SPDX-License-Identifier: Apache-2.0
"""docs/start.md, walked as a new user would: each block in order, word for word, with the client from the package index.

Blocks are written as those of docs/howto are (see test_howto.py). Blocks marked "console" are for who builds atoll.
"""
import os
import re
import time
import unittest
from pathlib import Path

import clients
from clients import ATOLL, SandboxTest
import test_howto
import test_readme

PAGE = test_readme.ROOT / "docs/start.md"
FIVE_MINUTES_S = 300
# A package index may take its time; each command of the page may take all that the page may.
test_readme.LIMIT_S = FIVE_MINUTES_S


def setUpModule():
    clients.need_clients()


def constraints():
    """Versions of all packages, for pip: those of the suite's own lock file, without its checksums."""
    lock = (clients.HERE / "python-agent.txt").read_text()
    return "".join(f"{line}\n" for line in re.findall(r"^([\w.-]+==[^ ;\\]+)", lock, re.MULTILINE))


class Start(SandboxTest):
    def test_the_first_five_minutes_go_as_the_page_says(self):
        folder = self.folder()
        work = folder / "work"
        work.mkdir()
        (folder / "versions").write_text(constraints())
        environment = {name: value for name, value in os.environ.items() if name.startswith("PIP_")} | {
            "PATH": f"{Path(ATOLL).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HOME": str(work),
            "LANG": "C.UTF-8",
            "PIP_CONSTRAINT": str(folder / "versions"),
            "ATOLL_STATE_DIR": str(folder / "state"),
        }
        shell = test_readme.Shell(work, environment)
        self.addCleanup(shell.close)
        began = time.monotonic()
        shell.run("set -e")
        for kind, what, expected in test_howto.steps(PAGE.read_text()):
            if kind == "file":
                (work / what).write_text(expected)
                continue
            output = shell.run(what)
            if expected is not None and not test_howto.matches(expected, output):
                self.assertEqual(output, expected, f"in {PAGE.name}: {what}")
        took = time.monotonic() - began
        self.assertLess(took, FIVE_MINUTES_S)
        print(f"{PAGE.name} took {took:.0f} s")
        self.assertEqual(shell.run("atoll list -q"), "", "the page leaves a sandbox behind")

    def test_no_block_of_the_page_is_passed_over_unseen(self):
        text = PAGE.read_text()
        blocks = [(block["info"], block["body"]) for block in test_howto.FENCE.finditer(text)]
        for (before, _), (info, body) in zip([("", ""), *blocks], blocks):
            self.assertRegex(info, r"^(sh|text|console|(python|yaml) tour \S+)$")
            if info == "text":
                self.assertEqual(before, "sh", f"output of nothing: {body}")
        self.assertEqual([body for info, body in blocks if info == "console"],
                         ["$ make setup\n$ make\n$ sudo make install\n"])
        self.assertGreaterEqual(len(blocks), 15)


if __name__ == "__main__":
    unittest.main()
