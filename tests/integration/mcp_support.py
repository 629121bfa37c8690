# SPDX-License-Identifier: Apache-2.0
"""A client of `atoll mcp` for tests, small enough to send what no library would send."""
import json
import os
import select
import subprocess
import tempfile
import time

from support import LIMIT_S, Client, SandboxTest

NEWEST = "2026-07-28"  # the revision without a handshake
LEGACY = "2025-11-25"  # the newest with one
META = "io.modelcontextprotocol/"


def modern_meta(version=NEWEST, **more):
    """What every request of the newest revision says about itself."""
    return {f"{META}protocolVersion": version, f"{META}clientCapabilities": {}} | more


class McpServer:
    """A running `atoll mcp` and the two ends of its pipes.

    Nothing is read before it is asked for, so a test can be a client that does not read.
    """

    def __init__(self, client, errors):
        self.client = client
        self.kept = []  # lines that were read, but not by who waited for them
        self.last_id = 0
        self.ended = False  # its standard output
        self._errors = errors
        self._buffer = bytearray()
        self._status = None
        os.set_blocking(client.stdin.fileno(), False)

    @classmethod
    def spawn(cls, *arguments, **options):
        """Starts `atoll mcp` with these arguments; options are those of support.Client."""
        errors = tempfile.TemporaryFile("w+b")
        client = Client(
            arguments, verb="mcp", stdin=subprocess.PIPE, stderr=errors, bufsize=0, **options
        )
        return cls(client, errors)

    # Towards the server

    def send_raw(self, data, timeout=LIMIT_S):
        """Writes these bytes; fails when the server does not take them in time."""
        deadline = time.monotonic() + timeout
        view = memoryview(data)
        fd = self.client.stdin.fileno()
        while view:
            _wait(fd, select.POLLOUT, deadline, f"the server to take {len(view)} bytes", self)
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:  # room for less than an atomic write
                time.sleep(0.001)

    def send(self, message):
        """Writes one message as a line."""
        self.send_raw(json.dumps(message).encode() + b"\n")

    def notify(self, method, params=None):
        self.send(_message(method, params))

    # From the server

    def receive_line(self, timeout=LIMIT_S):
        """The next line as it came, without its end; None at the end of the server's output."""
        if self.kept:
            return self.kept.pop(0)
        return self._read_line(time.monotonic() + timeout)

    def receive(self, timeout=LIMIT_S):
        """The next message, whatever it is."""
        return self._parsed(self.receive_line(timeout))

    def answer(self, id, timeout=LIMIT_S):
        """The answer to the request of that id; what else comes is kept for receive()."""
        deadline = time.monotonic() + timeout
        for line in self.kept:
            if _is_answer(json.loads(line), id):
                self.kept.remove(line)
                return json.loads(line)
        while True:
            line = self._read_line(deadline)
            message = self._parsed(line)
            if _is_answer(message, id):
                return message
            self.kept.append(line)

    def silent(self, seconds=0.3):
        """Whether nothing came, and nothing comes in this time."""
        try:
            line = self.receive_line(seconds)
        except AssertionError:
            return not self._buffer
        if line is not None:
            self.kept.append(line)
        return line is None

    # Both

    def request(self, method, params=None, id=None, timeout=LIMIT_S):
        """Asks, and waits for the answer."""
        id = self.next_id() if id is None else id
        self.send(_message(method, params) | {"id": id})
        return self.answer(id, timeout)

    def modern(self, method, params=None, id=None, timeout=LIMIT_S):
        """Asks as the newest revision does."""
        params = {"_meta": modern_meta()} | (params or {})
        return self.request(method, params, id, timeout)

    def initialize(self, version=LEGACY, capabilities=None):
        """The handshake of the earlier revisions; its result."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "atoll-tests", "version": "1"},
        }
        result = self.request("initialize", params)["result"]
        self.notify("notifications/initialized")
        return result

    def call(self, name, arguments=None, modern=False, timeout=LIMIT_S):
        """The result of a tool call."""
        ask = self.modern if modern else self.request
        answer = ask("tools/call", {"name": name, "arguments": arguments or {}}, timeout=timeout)
        assert "result" in answer, answer
        return answer["result"]

    def next_id(self):
        self.last_id += 1
        return self.last_id

    # Its end

    def close_input(self):
        if not self.client.stdin.closed:
            self.client.stdin.close()

    def end(self, timeout=LIMIT_S):
        """Ends the input and waits: the exit status as a shell says it, and standard error.

        What the server still wrote is left for receive().
        """
        self.close_input()
        return self.wait(timeout)

    def wait(self, timeout=LIMIT_S):
        """The same for a server that ends by itself or by a signal."""
        deadline = time.monotonic() + timeout
        if self._status is None:
            while not self.client.stdout.closed and (line := self._read_line(deadline)) is not None:
                self.kept.append(line)
            try:
                self.client.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"it did not end: {self.errors()[-2000:]}") from None
            self._status = self.client.shell_status()
        return self._status, self.errors()

    def errors(self):
        """What it wrote to standard error so far."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def close_errors(self):
        """For who is done with it."""
        self._errors.close()

    def peak_bytes(self):
        """The most memory that the server had at one time (proc(5), VmHWM)."""
        with open(f"/proc/{self.client.pid}/status", encoding="ascii") as status:
            return next(int(s.split()[1]) * 1024 for s in status if s.startswith("VmHWM:"))

    def _parsed(self, line):
        assert line is not None, f"it ended: {self.errors()[-2000:]}"
        return json.loads(line)

    def _read_line(self, deadline):
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if self.ended:
                assert not self._buffer, f"half a line at the end: {bytes(self._buffer[-500:])}"
                return None
            fd = self.client.stdout.fileno()
            _wait(fd, select.POLLIN, deadline, "a message", self)
            data = os.read(fd, 1 << 18)
            self.ended = not data
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


class McpTest(SandboxTest):
    """A test of servers that end with it."""

    def serve(self, *arguments, **options):
        """A server with these arguments."""
        server = McpServer.spawn(*arguments, **options)
        self.addCleanup(self._stop, server)
        return server

    def _stop(self, server):
        self._end(server.client)
        server.close_errors()

    def assert_error(self, answer, code, *words):
        """It is an error of this code, whose message holds the words."""
        self.assertNotIn("result", answer)
        self.assertEqual(answer["jsonrpc"], "2.0")
        self.assertEqual(answer["error"]["code"], code, answer)
        for word in words:
            self.assertIn(word, answer["error"]["message"])

    def assert_ended_well(self, server, timeout=LIMIT_S):
        """It exits without a complaint when its input ends."""
        self.assertEqual(server.end(timeout), (0, ""))
        self.assertEqual(server.kept, [], "said something that nobody waited for")


def _message(method, params):
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def _is_answer(message, id):
    return (
        isinstance(message, dict)
        and "method" not in message
        and message.get("id") == id
        and type(message.get("id")) is type(id)
    )


def _wait(fd, event, deadline, what, server):
    """Waits until the descriptor is ready for reading or writing."""
    poll = select.poll()
    poll.register(fd, event)
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise AssertionError(f"waited too long for {what}: {server.errors()[-2000:]}")
