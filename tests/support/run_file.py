# SPDX-License-Identifier: Apache-2.0
"""Runs one unittest file and reports each test as a line of JSON.

Usage: run_file.py FILE REPORT_FD

Lines are {"started": ID} and {"id": ID, "outcome": "passed"|"failed"|"skipped", "text": TEXT}. They
go to a descriptor of their own, since tests and what they start own stdout and stderr.
"""
import json
import os
import signal
import sys
import unittest
from pathlib import Path


class Report(unittest.TestResult):
    """Writes every outcome at once, so that a killed run leaves what it had."""

    def __init__(self, out):
        super().__init__()
        self._out = out
        self._outcome = None

    def _write(self, **fields):
        self._out.write(json.dumps(fields) + "\n")
        self._out.flush()

    def _set(self, test, outcome, text=""):
        """Keeps the worst outcome of the running test; one outside a test, as of set-up, is written now."""
        if self._outcome is None:
            self._write(id=test.id(), outcome=outcome, text=text)
        elif self._outcome[0] == "failed":
            self._outcome = ("failed", self._outcome[1] + text)
        else:
            self._outcome = (outcome, text)

    def startTest(self, test):
        super().startTest(test)
        self._outcome = ("passed", "")
        self._write(started=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        outcome, text = self._outcome
        self._outcome = None
        self._write(id=test.id(), outcome=outcome, text=text)

    def addSkip(self, test, reason):
        self._set(test, "skipped", reason)

    def addError(self, test, err):
        self._set(test, "failed", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        self._set(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._set(test, "failed", f"{subtest.id()}\n{self._exc_info_to_string(err, test)}")

    def addUnexpectedSuccess(self, test):
        self._set(test, "failed", "succeeded, although it is marked as an expected failure")


def main():
    # Tests send these, and whoever started this in the background may have had them ignored.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    path, report_fd = Path(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(report_fd, False)
    sys.path.insert(0, str(path.parent))
    with os.fdopen(report_fd, "w") as out:
        unittest.TestLoader().loadTestsFromName(path.stem).run(Report(out))


main()
