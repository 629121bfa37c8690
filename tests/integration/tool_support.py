# SPDX-License-Identifier: Apache-2.0
"""What the tests of the toolset share: libatoll inside this process, and a backend that follows a script."""
import json
import os
import sys
from pathlib import Path

from support import HeldTest, wait_for

SUPPORT = Path(__file__).resolve().parents[1] / "support"
sys.path.insert(0, str(SUPPORT))
import libatoll  # noqa: E402


class ToolTest(HeldTest):
    """A test with a context of libatoll, whose sandboxes are in a state folder of its own."""

    def setUp(self):
        super().setUp()
        try:
            libatoll.library()
        except libatoll.Unavailable as reason:
            self.skipTest(str(reason))
        self.set_environment(ATOLL_STATE_DIR=str(self.state))
        self.context = libatoll.Context()
        self.addCleanup(self.context.free)

    def set_environment(self, **values):
        """Variables of this process, which the library reads, until the end of the test."""
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        self.addCleanup(self._restore_environment, before)

    @staticmethod
    def _restore_environment(before):
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def toolset(self, text=None, settings=None, **options):
        return self.context.toolset(text, settings, **options)

    def opened(self, text=None, settings=None, **options):
        """A toolset whose run has begun."""
        tools = self.toolset(text, settings, **options)
        tools.open()
        return tools

    def assert_fails(self, cls, function, *arguments, words=(), **named):
        """Fails with that class, in a sentence that holds these words; the error."""
        with self.assertRaises(libatoll.AtollError) as caught:
            function(*arguments, **named)
        error = caught.exception
        self.assertEqual(error.cls, cls, str(error))
        for word in words:
            self.assertIn(word, str(error))
        return error

    def assert_terminal(self, function, *arguments, words=(), **named):
        return self.assert_fails(libatoll.TERMINAL, function, *arguments, words=words, **named)

    def assert_usage(self, function, *arguments, words=(), **named):
        return self.assert_fails(libatoll.USAGE, function, *arguments, words=words, **named)

    def assert_retry(self, answer, *words):
        self.assertTrue(answer.retry, answer)
        for word in words:
            self.assertIn(word, answer.text)


class FakeTest(ToolTest):
    """With atoll-backend-fake on the PATH (tests/support/fake_backend.py)."""

    SPEC = {"backend.name": "fake"}

    def setUp(self):
        super().setUp()
        self.desk = self.folder()
        programs = self.folder()
        path = programs / "atoll-backend-fake"
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' -B '{SUPPORT}/fake_backend.py' '{self.desk}'\n")
        path.chmod(0o755)
        self.set_environment(PATH=f"{programs}:{os.environ['PATH']}")
        self.addCleanup(self.context.free)  # before the folders go

    def script(self, **entries):
        """What the backend does: for each kind of request a list, or the one entry for all of them."""
        rows = {kind: value if isinstance(value, list) else [value] for kind, value in entries.items()}
        (self.desk / "script.json").write_text(json.dumps(rows))

    def write_tags(self, sandbox, *tags):
        """The tags of a sandbox of the backend; without that it is free, and was made for "me"."""
        (self.desk / f"tags-{sandbox}.json").write_text(json.dumps(tags))

    def tags(self, sandbox):
        return json.loads((self.desk / f"tags-{sandbox}.json").read_text())

    def requests(self, *kinds):
        """What the backend was asked, in order."""
        path = self.desk / "requests.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if not kinds or row["kind"] in kinds]

    def kinds(self, *kinds):
        return [row["kind"] for row in self.requests(*kinds)]

    def fake(self, settings=None, **options):
        """A run on the fake backend that has begun."""
        return self.opened(None, self.SPEC | (settings or {}), **options)

    def answer(self, entry, settings=None, **arguments):
        """What one command is answered with, if it ends as the entry says."""
        self.script(exec=entry)
        tools = self.fake(settings)
        return tools.call("run_command", **({"command": "x"} | arguments))

    def step_until_asked(self, kind):
        """Drives the context until the backend was asked for that."""
        wait_for(lambda: self.context.step() or self.requests(kind), f"a request to {kind}")

    def signal(self, name):
        """A file that answers may wait for; touch() lets them go."""
        return self.desk / name
