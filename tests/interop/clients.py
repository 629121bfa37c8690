# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: the clients that were installed, and a conversation by one of them.

ATOLL_CLIENTS names the folder that tests/interop/install filled.
"""
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from support import ATOLL, LIMIT_S, SandboxTest, descendants, wait_for  # noqa: E402

CLIENTS = Path(os.environ.get("ATOLL_CLIENTS") or Path(ATOLL).parent / "interop")
PACKAGES = CLIENTS / "npm/node_modules"
LEGACY_PYTHON = CLIENTS / "legacy/bin/python"
AGENT_PYTHON = CLIENTS / "agent/bin/python"
PNG = bytes.fromhex(  # one grey pixel
    "89504e470d0a1a0a0000000d4948445200000001000000010800000000"
    "3a7e9b550000000a4944415478da6368000000820081dd436af40000000049454e44ae426082")


def node():
    """The Node.js that came with the clients."""
    found = sorted(PACKAGES.glob("node-linux-*/bin/node"))
    return found[0] if found else None


def need_clients():
    """Skips a file of tests where nothing was installed."""
    for program in (LEGACY_PYTHON, AGENT_PYTHON, node()):
        if not program or not os.access(program, os.X_OK):
            raise unittest.SkipTest(f"the clients are not in {CLIENTS}; run tests/interop/install with that folder")


def environment(home):
    """What a client is started with; nothing of it goes to the server but PATH, HOME and their like."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def python_driver(python, era):
    return [python, "-B", HERE / "drive_python.py", era]


def node_driver(era):
    return [node(), HERE / "drive_node.mjs", era, PACKAGES]


class Error(Exception):
    """What a client raised, as its driver tells it."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class Call:
    """A request under way: its end, and the progress that was told of it."""

    def __init__(self, number):
        self.number = number
        self.progress = []
        self.ended = threading.Event()
        self.order = None  # how many had ended before this one
        self._message = None

    def end(self, message, order):
        self._message, self.order = message, order
        self.ended.set()

    def result(self, limit=LIMIT_S):
        if not self.ended.wait(limit):
            raise AssertionError(f"request {self.number} was not answered within {limit} s")
        if "error" in self._message:
            raise Error(self._message["error"], self._message.get("code"))
        return self._message["result"]

    def text(self):
        """The text of a tool's answer."""
        return self.result()["content"][0]["text"]

    def facts(self):
        """The structured form of a tool's answer."""
        return self.result()["structuredContent"]


class Conversation:
    """A client of somebody else's that talks to `atoll mcp`."""

    def __init__(self, driver, options, folder):
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            [str(word) for word in (*driver, ATOLL, "mcp", *options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, cwd=folder, env=environment(folder), start_new_session=True)
        self.calls = {}
        self.events = queue.Queue()
        self._ended = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        try:
            self.hello = self.event()
        except AssertionError:
            self.kill()
            raise

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "event" in message:
                self.events.put(message)
            elif "progress" in message:
                self.calls[message["id"]].progress.append(message["progress"])
            else:
                self.calls[message["id"]].end(message, self._ended)
                self._ended += 1
        self.events.put({"event": "end of output"})

    def event(self):
        try:
            found = self.events.get(timeout=LIMIT_S)
        except queue.Empty:
            found = {"event": "nothing"}
        if found["event"] in ("nothing", "end of output"):
            raise AssertionError(f"the client said {found['event']}: {self.complaint()}")
        return found

    def complaint(self):
        self.errors.seek(0)
        return self.errors.read().strip()[-2000:]

    def ask(self, what, **fields):
        call = Call(len(self.calls) + 1)
        self.calls[call.number] = call
        self.process.stdin.write(json.dumps({"id": call.number, "do": what, **fields}) + "\n")
        self.process.stdin.flush()
        return call

    def begin(self, tool, /, *, progress=False, timeout=None, **arguments):
        """A call of a tool under way."""
        more = {"progress": True} if progress else {}
        if timeout:
            more["timeout"] = timeout
        return self.ask("call", name=tool, arguments=arguments, **more)

    def call(self, tool, /, **arguments):
        """The answer of a tool."""
        return self.begin(tool, **arguments).result()

    def sh(self, command, **more):
        return self.begin("run_command", command=command, **more)

    def cancel(self, call):
        self.ask("cancel", call=call.number)

    def tools(self):
        return self.ask("list").result()["tools"]

    def close(self):
        """The client's own way to go; its status."""
        self.process.stdin.close()
        if self.event()["event"] != "closed":
            raise AssertionError(f"the client did not close: {self.complaint()}")
        return self._over()

    def kill(self):
        self.process.kill()
        return self._over()

    def _over(self):
        status = self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()
        return status

    def end(self):
        """For cleaning up: whatever its state."""
        if self.process.returncode is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._over()
        self.errors.close()

    def processes(self):
        """Arguments of all that lives below the client, in sandboxes too."""
        return [b" ".join(process.arguments).decode(errors="replace") for process in descendants(self.process.pid)]

    def inside(self, words):
        """Waits until a program with these arguments runs."""
        wait_for(lambda: words in self.processes(), f"the process {words!r}")

    def gone(self, words, limit=LIMIT_S):
        """Waits until none does."""
        wait_for(lambda: words not in self.processes(), f"the end of {words!r}", limit)
