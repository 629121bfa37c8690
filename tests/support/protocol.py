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
    OPEN, DESCRIBE, INSPECT, ENUMERATE, PS, STOP, FILES = range(9, 16)
    READ, WRITE, COMMIT, LIST, STAT, PACK, UNPACK, CANCEL, POLICY = range(16, 25)
    ATTACH, RELEASE, PRESENT, EXTEND, TAGS, SET_TAGS, EXPORTED = range(25, 32)
    CREATED, STARTED, OUTPUT, EXITED, ENDED, ERROR, STEP = range(32, 39)
    DONE, DESCRIBED, SANDBOX, COMMANDS, FILES_OPENED, FILE, LISTED, POLICY_SET = range(39, 47)
    ATTACHED, EXTENDED, LEASE_LOST, TAGS_READ = range(47, 51)


class Tag(IntEnum):
    VERSION_MAJOR, VERSION_MINOR, PROGRAM = range(1, 4)
    ARG, ENV, WORKDIR, UID, GID, EXEC_FLAGS, TIMEOUT_US, ROWS, COLUMNS = range(16, 25)
    SIGNAL, STREAM, DATA, CREDIT, PID, SIGNAL_FLAGS = range(32, 38)
    EXIT_CODE, REASON, WALL_US, USER_US, SYSTEM_US, PEAK_RSS_BYTES, START_ERRNO, START_STAGE = range(48, 56)
    INTERPRETER, LEFT_EMPTY = 56, 57
    ERROR_CLASS, ERROR_CODE, ERROR_CONTEXT, ERROR_MESSAGE, ERROR_REMEDY = range(64, 69)
    STEP_INDEX, STEP_TEXT, STEP_US, ENDED_BY, LANDLOCK_ABI = range(80, 85)
    IMAGE, HOSTNAME, DISK_BYTES, PIDS, LIFETIME_US, CREATE_FLAGS = range(96, 102)
    VOLUME, VOLUME_HOST, VOLUME_GUEST, VOLUME_FLAGS = range(102, 106)
    SANDBOX_NAME, OWNER, LABEL, ALLOW_HOST, ALLOW_RANGE, PRIVATE_RANGE = range(106, 112)
    CPU_MILLI, MEMORY_BYTES, IDLE_US, PUBLISH, EGRESS_ENFORCEMENT = range(112, 117)
    RESOLVER, PROXY, PRICE, MAX_COST_MICRO = range(117, 121)
    SANDBOX_ID, STATE, CREATED_AT_US, EXPIRES_AT_US, DISK_USED_BYTES, DISK_LIMIT_BYTES = range(128, 134)
    INODES_USED, INODES_LIMIT, PROCESSES, N_COMMANDS, KEEPER_PID, BACKEND, NETWORK, INSPECT_FLAGS = range(134, 142)
    COMMAND, COMMAND_NUMBER, STARTED_AT_US, COMMAND_FLAGS = range(144, 148)
    PATH, OFFSET, LENGTH, MAX_BYTES, FILE_FLAGS, ENTRY, NAME, KIND = range(160, 168)
    MODE, SIZE, MTIME_NS, LINK_TARGET, SKIPPED = range(168, 173)
    FEATURE, RULE, FIELD, VERDICT, HOW = range(192, 197)
    DENIAL, DENIAL_PROTOCOL, DENIAL_NAME, DENIAL_ADDRESS, DENIAL_PORT, DENIAL_RULE, DENIAL_REASON = range(208, 215)
    DENIAL_BYTES, DENIAL_AT_US, DENIAL_REPEATED, DENIAL_DROPPED, POLICY_GENERATION, REMOVE = range(215, 221)
    FLOWS_CUT, ADD_HOST, PUBLISHED, PROXY_CREDENTIALS = range(221, 225)
    HOLDER, LEASE_GENERATION, LEASE_STATE, LEASE_KEEP_US, LEASE_UNTIL_US, LEFT_US, DESTROY_FLAGS = range(240, 247)
    CPU_US, MEMORY_USED_BYTES, MEMORY_PEAK_BYTES, EGRESS_SENT_BYTES, EGRESS_RECEIVED_BYTES = range(247, 252)
    COST_MICRO, AUDIT, URL, DIGEST, CONNECTIONS, OOM_KILLS = range(252, 258)


class Exec(IntFlag):
    STDIN, TTY, IN_BAND, REPORT_START, USER_SET, LAST, DETACH, FILES, READ_ONLY = (1 << i for i in range(9))


class Create(IntFlag):
    OWNED, STEPS, USER_SET, OPEN_NETWORK = (1 << i for i in range(4))


class File(IntFlag):
    IN_BAND, INLINE, NO_FOLLOW, MODE_SET = (1 << i for i in range(4))


class Kind(IntEnum):
    FILE, FOLDER, LINK, FIFO, SOCKET, DEVICE = range(6)


class Class(IntEnum):
    RECOVERABLE, TOO_LARGE, TERMINAL, USAGE = range(4)


class Reason(IntEnum):
    EXITED, TIMEOUT, OOM, KILLED, LIFETIME, ERROR, COST = range(7)


class EndedBy(IntEnum):
    DESTROYED, LIFETIME, IDLE, OOM, KILLED, CALLER_DIED, ERROR, COST = range(8)


STDIN, STDOUT, STDERR = range(3)

# Tags by the form of their value; the others are numbers of 32 bits.
NUMBERS_64 = {
    Tag.TIMEOUT_US, Tag.WALL_US, Tag.USER_US, Tag.SYSTEM_US, Tag.PEAK_RSS_BYTES, Tag.STEP_US,
    Tag.DISK_BYTES, Tag.PIDS, Tag.LIFETIME_US, Tag.CPU_MILLI, Tag.MEMORY_BYTES, Tag.IDLE_US,
    Tag.MAX_COST_MICRO, Tag.CREATED_AT_US, Tag.EXPIRES_AT_US, Tag.DISK_USED_BYTES,
    Tag.DISK_LIMIT_BYTES, Tag.INODES_USED, Tag.INODES_LIMIT, Tag.STARTED_AT_US, Tag.OFFSET,
    Tag.LENGTH, Tag.MAX_BYTES, Tag.SIZE, Tag.MTIME_NS, Tag.DENIAL_BYTES, Tag.DENIAL_AT_US, Tag.DENIAL_REPEATED,
    Tag.DENIAL_DROPPED, Tag.LEASE_KEEP_US, Tag.LEASE_UNTIL_US, Tag.LEFT_US, Tag.CPU_US, Tag.MEMORY_USED_BYTES,
    Tag.MEMORY_PEAK_BYTES, Tag.EGRESS_SENT_BYTES, Tag.EGRESS_RECEIVED_BYTES, Tag.COST_MICRO,
}
TEXTS = {
    Tag.PROGRAM, Tag.ARG, Tag.ENV, Tag.WORKDIR, Tag.INTERPRETER, Tag.ERROR_CONTEXT,
    Tag.ERROR_MESSAGE, Tag.ERROR_REMEDY, Tag.STEP_TEXT, Tag.IMAGE, Tag.HOSTNAME,
    Tag.VOLUME_HOST, Tag.VOLUME_GUEST, Tag.SANDBOX_NAME, Tag.OWNER, Tag.LABEL, Tag.ALLOW_HOST,
    Tag.ALLOW_RANGE, Tag.PRIVATE_RANGE, Tag.PUBLISH, Tag.EGRESS_ENFORCEMENT, Tag.RESOLVER,
    Tag.PROXY, Tag.PRICE, Tag.SANDBOX_ID, Tag.BACKEND, Tag.NETWORK, Tag.PATH, Tag.NAME, Tag.LINK_TARGET,
    Tag.SKIPPED, Tag.FEATURE, Tag.FIELD, Tag.HOW, Tag.DENIAL_NAME, Tag.DENIAL_ADDRESS, Tag.DENIAL_RULE,
    Tag.DENIAL_REASON, Tag.REMOVE, Tag.ADD_HOST, Tag.PROXY_CREDENTIALS, Tag.PUBLISHED,
    Tag.HOLDER, Tag.AUDIT, Tag.URL, Tag.DIGEST,
}
BYTES = {Tag.DATA, Tag.VOLUME}
NESTED = {Tag.COMMAND, Tag.DENIAL, Tag.ENTRY, Tag.RULE}


KNOWN = frozenset(Tag)


def encode(*fields):
    """Fields, given as pairs of tag and value, as the payload of a message."""
    out = bytearray()
    for tag, value in fields:
        if tag in BYTES:
            data = bytes(value)
        elif tag in TEXTS:
            data = os.fsencode(value) + b"\0"
        else:
            data = struct.pack("<Q" if tag in NUMBERS_64 else "<I", value)
        out += FIELD.pack(tag, 0, len(data)) + data
    return bytes(out)


def decode_all(payload):
    """The fields of a payload as pairs of tag and value, in order."""
    fields, at = [], 0
    while at < len(payload):
        tag, zero, length = FIELD.unpack_from(payload, at)
        data = payload[at + FIELD.size:at + FIELD.size + length]
        if zero != 0 or len(data) != length:
            raise ValueError("damaged field")
        at += FIELD.size + length
        if tag not in KNOWN:
            continue  # of a newer version
        if tag in BYTES:
            value = data
        elif tag in NESTED:
            value = decode_all(data)
        elif tag in TEXTS:
            if data.find(b"\0") != length - 1:
                raise ValueError("damaged text")
            value = os.fsdecode(data[:-1])  # bytes that are no UTF-8 survive
        else:
            value = struct.unpack("<Q" if tag in NUMBERS_64 else "<I", data)[0]
        fields.append((tag, value))
    return fields


def decode(payload):
    """The fields of a payload as a dictionary; of repeated ones the last."""
    return dict(decode_all(payload))


@dataclass
class Message:
    type: int
    id: int
    fields: dict
    fds: list = field(default_factory=list)
    pairs: list = field(default_factory=list)  # all fields in order

    def __getitem__(self, tag):
        return self.fields[tag]

    def all(self, tag):
        """The values of a repeated field, in order."""
        return [value for found, value in self.pairs if found == tag]


class Refused(AssertionError):
    """An ERROR came where an answer was expected."""

    def __init__(self, message):
        self.fields = message.fields
        self.code = message[Tag.ERROR_CODE]
        self.cls = message[Tag.ERROR_CLASS]
        super().__init__(f"{message.fields.get(Tag.ERROR_MESSAGE, 'no words')} (errno {self.code})")


class Closed(Exception):
    """The keeper closed the connection."""


class Connection:
    """The caller's end of a SOCK_SEQPACKET socket that speaks the protocol."""

    passes_fds = True

    def __init__(self, sock):
        self.socket = sock
        self.waiting = []  # messages that were received while another was looked for
        self.last_id = 0

    def greet(self, minor=1):
        """HELLO both ways. To a client of minor version 0 each sandbox is an owned one."""
        self.send(Type.HELLO, 0, hello(1, minor))
        return self.expect(Type.HELLO, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

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

    def receive_frame(self, timeout):
        """The next frame as type, flags, id, payload and descriptors."""
        if not select.select([self.socket], [], [], timeout)[0]:
            raise TimeoutError(f"no message within {timeout} s")
        data, rights, flags = self.receive_packet()
        if not data:
            raise Closed
        fds = [fd for _, _, raw in rights for fd in array.array("i", raw)]
        length, kind, flag, number, zero = FRAME.unpack_from(data)
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC), "an oversize packet"
        assert length == len(data) - FRAME.size and zero == 0 and flag in (0, MORE), "a damaged frame"
        return kind, flag, number, data[FRAME.size:], fds

    def receive(self, timeout=PATIENCE_S):
        """The next message; raises TimeoutError, or Closed at the end."""
        payload, fds = b"", []
        while True:
            kind, flag, number, part, more_fds = self.receive_frame(timeout)
            payload += part
            fds += more_fds
            if not flag:
                pairs = decode_all(payload)
                return Message(kind, number, dict(pairs), fds, pairs)

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
            raise Refused(message)
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
                raise Refused(message)
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

    def describe(self):
        return self.expect(Type.DESCRIBED, self.request(Type.DESCRIBE))

    def open(self, name):
        return self.expect(Type.CREATED, self.request(Type.OPEN, (Tag.SANDBOX_ID, name)))

    def inspect(self, *fields):
        return self.expect(Type.SANDBOX, self.request(Type.INSPECT, *fields))

    def enumerate(self):
        """All sandboxes of a backend program, as messages by id."""
        number, found = self.request(Type.ENUMERATE), {}
        while True:
            message = self.next(
                lambda m: m.id == number and m.type in (Type.SANDBOX, Type.DONE, Type.ERROR))
            if message.type == Type.ERROR:
                raise Refused(message)
            if message.type == Type.DONE:
                return found
            found[message[Tag.SANDBOX_ID]] = message

    def ps(self):
        """The running commands as lists of fields."""
        return self.expect(Type.COMMANDS, self.request(Type.PS)).all(Tag.COMMAND)

    def stop(self, number):
        return self.expect(Type.DONE, self.request(Type.STOP, (Tag.COMMAND_NUMBER, number)))

    # File operations: of this connection in-band, or of one that FILES opened with descriptors

    def files(self):
        """Who takes file operations: a connection of their own, or a program's only one."""
        if not self.passes_fds:
            return self
        message = self.expect(Type.FILES_OPENED, self.request(Type.FILES))
        return Connection(socket.socket(fileno=message.fds[0]))

    def file_flags(self, flags=0):
        return (Tag.FILE_FLAGS, flags | (0 if self.passes_fds else File.IN_BAND))

    def file_answer(self, number, *kinds):
        """The next message of a file operation; an ERROR is raised as Refused."""
        message = self.next(lambda m: m.id == number and m.type in (*kinds, Type.ERROR))
        if message.type == Type.ERROR:
            raise Refused(message)
        return message

    def read(self, path, offset=0, length=None, max_bytes=None):
        """A file's fields, and the bytes of the range."""
        fields = [(Tag.PATH, path), self.file_flags()]
        fields += [(Tag.OFFSET, offset)] if offset else []
        fields += [(Tag.LENGTH, length)] if length is not None else []
        fields += [(Tag.MAX_BYTES, max_bytes)] if max_bytes is not None else []
        number = self.request(Type.READ, *fields)
        message = self.file_answer(number, Type.FILE)
        if self.passes_fds:
            with open(message.fds[0], "rb") as file:
                size = message[Tag.SIZE]
                end = size if length is None else min(size, offset + length)
                return message, os.pread(file.fileno(), max(0, end - offset), offset)
        return message, self.take_output(number)

    def take_output(self, number):
        """The OUTPUT of a file operation up to its end, with credit for it."""
        data = bytearray()
        while True:
            part = self.file_answer(number, Type.OUTPUT)[Tag.DATA]
            if not part:
                return bytes(data)
            data += part
            self.credit(number, STDOUT, len(part))

    def write(self, path, data, mode=None, commit=True, inline=False):
        """Writes a whole file; without commit, leaves it at that. Returns DONE or the id."""
        fields = [(Tag.PATH, path), self.file_flags((File.INLINE if inline else 0)
                                                    | (File.MODE_SET if mode is not None else 0))]
        fields += [(Tag.MODE, mode)] if mode is not None else []
        if inline:
            return self.file_answer(self.request(Type.WRITE, *fields, (Tag.DATA, data)), Type.DONE)
        number = self.give(Type.WRITE, fields, data)
        if not commit:
            return number
        self.request(Type.COMMIT, number=number)
        return self.file_answer(number, Type.DONE)

    def give(self, kind, fields, data):
        """Asks for an operation that takes bytes, and gives it all of them."""
        if self.passes_fds:
            theirs, ours = os.pipe()
            with open(ours, "wb", buffering=0) as pipe:
                number = self.request(kind, *fields, fds=(theirs,))
                os.close(theirs)
                try:
                    write_all(pipe, data)
                except BrokenPipeError:
                    pass  # the answer says why
            return number
        number, credit, at = self.request(kind, *fields), WINDOW, 0
        while at < len(data):
            if credit == 0:
                credit += self.file_answer(number, Type.CREDIT)[Tag.CREDIT]
            part = data[at:at + min(credit, 32000)]
            self.input(number, part)
            credit -= len(part)
            at += len(part)
        self.input(number, b"")
        return number

    def list(self, path):
        """The entries of a folder: their fields by name."""
        number, found = self.request(Type.LIST, (Tag.PATH, path), self.file_flags()), {}
        while True:
            message = self.file_answer(number, Type.LISTED, Type.DONE)
            if message.type == Type.DONE:
                return found
            for pairs in message.all(Tag.ENTRY):
                entry = dict(pairs)
                assert entry[Tag.NAME] not in found, "an entry came twice"
                found[entry[Tag.NAME]] = entry

    def stat(self, path, follow=True):
        return self.file_answer(
            self.request(Type.STAT, (Tag.PATH, path), self.file_flags(0 if follow else File.NO_FOLLOW)),
            Type.FILE)

    def pack(self, path):
        """The tar stream of a file or folder, and the paths that were left out."""
        if self.passes_fds:
            ours, theirs = os.pipe()
            number = self.request(Type.PACK, (Tag.PATH, path), self.file_flags(), fds=(theirs,))
            os.close(theirs)
            with open(ours, "rb") as pipe:
                data = pipe.read()
        else:
            number = self.request(Type.PACK, (Tag.PATH, path), self.file_flags())
            data = self.take_output(number)
        return data, self.file_answer(number, Type.DONE).all(Tag.SKIPPED)

    def unpack(self, path, data):
        number = self.give(Type.UNPACK, [(Tag.PATH, path), self.file_flags()], data)
        return self.file_answer(number, Type.DONE).all(Tag.SKIPPED)


class Keeper(Connection):
    """A keeper process and the caller's end of its socket."""

    def __init__(self, binary, greet=True, env=None, minor=0):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [binary, "keeper", str(theirs.fileno())], pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, env=env)
        super().__init__(ours)
        if greet:
            self.greet(minor)

    def __exit__(self, *_):
        self.close()
        wait_for_end(self.process)


class Program(Connection):
    """A backend program, which speaks the protocol on its standard input and output."""

    passes_fds = False
    statuses = (0,)  # that it may exit with; 1, too, once its client has broken the protocol

    def __init__(self, *arguments, greet=True, env=None):
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0)
        os.set_blocking(self.process.stdin.fileno(), False)
        self.bytes = b""
        super().__init__(self)
        if greet:
            self.greet()

    def __exit__(self, *_):
        self.close()
        wait_for_end(self.process)
        assert self.process.returncode in self.statuses, f"exit status {self.process.returncode}"

    def close(self):
        self.waiting = []
        self.process.stdin.close()
        self.process.stdout.close()

    def read_more(self, timeout):
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"no message within {timeout} s")
        data = os.read(self.process.stdout.fileno(), 1 << 18)
        if not data:
            raise Closed
        self.bytes += data

    def send_packet(self, data, fds=()):
        """Bytes as they stand. What the program says meanwhile is kept, so that neither waits for ever."""
        assert not fds, "no descriptors can be passed"
        pipe, out = self.process.stdin.fileno(), self.process.stdout
        while data:
            readable, writable, _ = select.select([out], [pipe], [], PATIENCE_S)
            if not readable and not writable:
                raise TimeoutError(f"nothing was taken within {PATIENCE_S} s")
            try:
                if writable:
                    data = data[os.write(pipe, data):]
                else:
                    self.read_more(0)
            except BrokenPipeError:
                raise Closed from None
            except BlockingIOError:
                pass

    def receive_frame(self, timeout):
        while len(self.bytes) < FRAME.size:
            self.read_more(timeout)
        length, kind, flag, number, zero = FRAME.unpack_from(self.bytes)
        assert length <= PAYLOAD_MAX and zero == 0 and flag in (0, MORE), "a damaged frame"
        while len(self.bytes) < FRAME.size + length:
            self.read_more(timeout)
        payload = self.bytes[FRAME.size:FRAME.size + length]
        self.bytes = self.bytes[FRAME.size + length:]
        return kind, flag, number, payload, []


def write_all(pipe, data):
    view = memoryview(data)
    while view:
        view = view[pipe.write(view):]


def wait_for_end(process):
    """Every process that was started is waited for."""
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def hello(major=1, minor=0):
    return encode((Tag.VERSION_MAJOR, major), (Tag.VERSION_MINOR, minor), (Tag.PROGRAM, "test"))


def volume(host, guest, read_only=False):
    return encode((Tag.VOLUME_HOST, host), (Tag.VOLUME_GUEST, guest), (Tag.VOLUME_FLAGS, int(read_only)))
