# SPDX-License-Identifier: Apache-2.0
"""A second, small client of the sandbox protocol (docs/design/protocol.md), for tests.

It shares no code with atoll: frames, fields and numbers are written down here once more, so that a
mistake in the C code does not cancel itself out. It can also say what no sound client would.
"""
import array
import os
import select
import socket
import struct
import subprocess
import time
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

FRAME = struct.Struct("<IHHII")  # length, type, flags, id, zero
FIELD = struct.Struct("<HHI")  # tag, zero, length
MORE = 1
PAYLOAD_MAX = 32 * 1024
MESSAGE_MAX = 4 * 1024 * 1024
WINDOW = 256 * 1024
PATIENCE_S = 30  # how long an answer may take on a busy host


class Type(IntEnum):
    HELLO, CREATE, EXEC, SIGNAL, RESIZE, INPUT, CREDIT, DESTROY = range(1, 9)
    CREATED, STARTED, OUTPUT, EXITED, ENDED, ERROR, STEP = range(32, 39)


class Tag(IntEnum):
    VERSION_MAJOR, VERSION_MINOR, PROGRAM = range(1, 4)
    ARG, ENV, WORKDIR, UID, GID, EXEC_FLAGS, TIMEOUT_US, ROWS, COLUMNS = range(16, 25)
    SIGNAL, STREAM, DATA, CREDIT, PID = range(32, 37)
    EXIT_CODE, REASON, WALL_US, USER_US, SYSTEM_US, PEAK_RSS_BYTES, START_ERRNO, START_STAGE = range(48, 56)
    INTERPRETER, LEFT_EMPTY = 56, 57
    ERROR_CLASS, ERROR_CODE, ERROR_CONTEXT, ERROR_MESSAGE, ERROR_REMEDY = range(64, 69)
    STEP_INDEX, STEP_TEXT, STEP_US, ENDED_BY, LANDLOCK_ABI = range(80, 85)
    IMAGE, HOSTNAME, DISK_BYTES, PIDS, LIFETIME_US, CREATE_FLAGS = range(96, 102)
    VOLUME, VOLUME_HOST, VOLUME_GUEST, VOLUME_FLAGS = range(102, 106)


class Exec(IntFlag):
    STDIN, TTY, IN_BAND, REPORT_START, USER_SET, LAST = 1, 2, 4, 8, 16, 32


class Reason(IntEnum):
    EXITED, TIMEOUT, OOM, KILLED, LIFETIME, ERROR = range(6)


class EndedBy(IntEnum):
    DESTROYED, LIFETIME, IDLE, OOM, KILLED, CALLER_DIED, ERROR = range(7)


STDIN, STDOUT, STDERR = range(3)

# Tags by the form of their value; the others hold bytes.
NUMBERS_64 = {
    Tag.TIMEOUT_US, Tag.WALL_US, Tag.USER_US, Tag.SYSTEM_US, Tag.PEAK_RSS_BYTES, Tag.STEP_US,
    Tag.DISK_BYTES, Tag.PIDS, Tag.LIFETIME_US,
}
TEXTS = {
    Tag.PROGRAM, Tag.ARG, Tag.ENV, Tag.WORKDIR, Tag.INTERPRETER, Tag.ERROR_CONTEXT,
    Tag.ERROR_MESSAGE, Tag.ERROR_REMEDY, Tag.STEP_TEXT, Tag.IMAGE, Tag.HOSTNAME,
    Tag.VOLUME_HOST, Tag.VOLUME_GUEST,
}
BYTES = {Tag.DATA, Tag.VOLUME}


def encode(*fields):
    """Fields, given as pairs of tag and value, as the payload of a message."""
    out = bytearray()
    for tag, value in fields:
        if tag in BYTES:
            data = bytes(value)
        elif tag in TEXTS:
            data = value.encode() + b"\0"
        else:
            data = struct.pack("<Q" if tag in NUMBERS_64 else "<I", value)
        out += FIELD.pack(tag, 0, len(data)) + data
    return bytes(out)


def decode(payload):
    """The fields of a payload as a dictionary; of repeated ones the last."""
    fields, at = {}, 0
    while at < len(payload):
        tag, zero, length = FIELD.unpack_from(payload, at)
        data = payload[at + FIELD.size:at + FIELD.size + length]
        if zero != 0 or len(data) != length:
            raise ValueError("damaged field")
        at += FIELD.size + length
        if tag in BYTES:
            fields[tag] = data
        elif tag in TEXTS:
            if data.find(b"\0") != length - 1:
                raise ValueError("damaged text")
            fields[tag] = data[:-1].decode(errors="replace")
        else:
            fields[tag] = struct.unpack("<Q" if tag in NUMBERS_64 else "<I", data)[0]
    return fields


@dataclass
class Message:
    type: int
    id: int
    fields: dict
    fds: list = field(default_factory=list)

    def __getitem__(self, tag):
        return self.fields[tag]


class Closed(Exception):
    """The keeper closed the connection."""


class Keeper:
    """A keeper process and the caller's end of its socket."""

    def __init__(self, binary, greet=True):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [binary, "keeper", str(theirs.fileno())], pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL)
        self.waiting = []  # messages that were received while another was looked for
        self.last_id = 0
        if greet:
            self.send(Type.HELLO, 0, hello())
            self.expect(Type.HELLO, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def close(self):
        for message in self.waiting:
            for fd in message.fds:
                os.close(fd)
        self.waiting = []
        self.socket.close()

    # Packets and messages

    def send_packet(self, data, fds=()):
        """One packet as it stands; blocks while the socket is full."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.socket.sendmsg([data], rights)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def send(self, kind, number, payload=b"", fds=()):
        """One message, cut to frames."""
        while True:
            part, payload = payload[:PAYLOAD_MAX], payload[PAYLOAD_MAX:]
            self.send_packet(FRAME.pack(len(part), kind, MORE if payload else 0, number, 0) + part, fds)
            fds = ()
            if not payload:
                return

    def request(self, kind, *fields, fds=(), number=None):
        """A message with an id of its own, which is returned."""
        if number is None:
            self.last_id += 1
            number = self.last_id
        self.send(kind, number, encode(*fields), fds)
        return number

    def receive_packet(self):
        size = FRAME.size + PAYLOAD_MAX, socket.CMSG_SPACE(64)
        try:
            return self.socket.recvmsg(*size)[:3]
        except ConnectionResetError:  # it left something unread; what it had sent is still to come
            return self.socket.recvmsg(*size)[:3]

    def receive(self, timeout=PATIENCE_S):
        """The next message; raises TimeoutError, or Closed at the end."""
        payload, fds = b"", []
        while True:
            if not select.select([self.socket], [], [], timeout)[0]:
                raise TimeoutError(f"no message within {timeout} s")
            data, rights, flags = self.receive_packet()
            if not data:
                raise Closed
            for _, _, raw in rights:
                fds += array.array("i", raw)
            length, kind, flag, number, zero = FRAME.unpack_from(data)
            assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC), "an oversize packet"
            assert length == len(data) - FRAME.size and zero == 0 and flag in (0, MORE), "a damaged frame"
            payload += data[FRAME.size:]
            if not flag:
                return Message(kind, number, decode(payload), fds)

    def next(self, wanted, timeout=PATIENCE_S):
        """The next message for which wanted() holds; others are kept for later, in order."""
        for i, message in enumerate(self.waiting):
            if wanted(message):
                return self.waiting.pop(i)
        deadline = time.monotonic() + timeout
        while True:
            message = self.receive(max(0, deadline - time.monotonic()))
            if wanted(message):
                return message
            self.waiting.append(message)

    def expect(self, kind, number, timeout=PATIENCE_S):
        """The message of that type and id; an ERROR for the id is raised as AssertionError."""
        message = self.next(lambda m: m.id == number and m.type in (kind, Type.ERROR), timeout)
        if message.type != kind:
            raise AssertionError(f"{message[Tag.ERROR_MESSAGE]} ({message[Tag.ERROR_CODE]})")
        return message

    # Operations

    def create(self, *fields):
        number = self.request(Type.CREATE, *fields)
        return self.expect(Type.CREATED, number)

    def exec(self, *argv, flags=Exec.IN_BAND, timeout_us=0, fields=(), fds=(), number=None):
        """Sends EXEC; in-band unless told otherwise. Returns the command's id."""
        rest = [(Tag.EXEC_FLAGS, flags)] + ([(Tag.TIMEOUT_US, timeout_us)] if timeout_us else [])
        return self.request(
            Type.EXEC, *((Tag.ARG, a) for a in argv), *rest, *fields, fds=fds, number=number)

    def shell(self, script, **options):
        return self.exec("/bin/sh", "-c", script, **options)

    def credit(self, number, stream, amount):
        self.request(Type.CREDIT, (Tag.STREAM, stream), (Tag.CREDIT, amount), number=number)

    def input(self, number, data):
        self.request(Type.INPUT, (Tag.STREAM, STDIN), (Tag.DATA, data), number=number)

    def finish(self, number, timeout=PATIENCE_S, grant=True):
        """Takes a command's output until EXITED: the report, stdout and stderr."""
        out = {STDOUT: bytearray(), STDERR: bytearray()}
        while True:
            message = self.next(
                lambda m: m.id == number and m.type in (Type.OUTPUT, Type.EXITED, Type.ERROR), timeout)
            if message.type == Type.ERROR:
                raise AssertionError(message[Tag.ERROR_MESSAGE])
            if message.type == Type.EXITED:
                return message, bytes(out[STDOUT]), bytes(out[STDERR])
            data = message.fields.get(Tag.DATA, b"")
            out[message[Tag.STREAM]] += data
            if grant and data:
                self.credit(number, message[Tag.STREAM], len(data))

    def run(self, script, **options):
        """A shell command from start to end: exit code and stdout."""
        report, out, _ = self.finish(self.shell(script, **options))
        return report[Tag.EXIT_CODE], out.decode()

    def destroy(self):
        self.request(Type.DESTROY)
        return self.next(lambda m: m.type == Type.ENDED)


def hello(major=1, minor=0):
    return encode((Tag.VERSION_MAJOR, major), (Tag.VERSION_MINOR, minor), (Tag.PROGRAM, "test"))


def volume(host, guest, read_only=False):
    return encode((Tag.VOLUME_HOST, host), (Tag.VOLUME_GUEST, guest), (Tag.VOLUME_FLAGS, int(read_only)))
