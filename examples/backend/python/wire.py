# SPDX-License-Identifier: Apache-2.0
"""The bytes of the protocol: frames, messages, fields (docs/design/protocol.md)."""
import os
import struct

FRAME, FIELD = struct.Struct("<IHHII"), struct.Struct("<HHI")  # all numbers are little endian
MORE, PAYLOAD_MAX, MESSAGE_MAX, WINDOW = 1, 32 * 1024, 4 << 20, 256 * 1024
FILE_MAX = 64 << 20  # what one read or write holds in memory

(HELLO, CREATE, EXEC, SIGNAL, RESIZE, INPUT, CREDIT, DESTROY, OPEN, DESCRIBE, INSPECT, ENUMERATE, PS, STOP,
 FILES, READ, WRITE, COMMIT, LIST, STAT, PACK, UNPACK, CANCEL) = range(1, 24)
(CREATED, STARTED, OUTPUT, EXITED, ENDED, ERROR, STEP, DONE, DESCRIBED, SANDBOX, COMMANDS, FILES_OPENED, FILE,
 LISTED) = range(32, 46)

# The fields that are used here: tag and form. b: bytes, s: text, m: fields within, I and Q: numbers.
FIELDS = {
    "major": (1, "I"), "minor": (2, "I"), "program": (3, "s"),
    "arg": (16, "s"), "env": (17, "s"), "workdir": (18, "s"), "flags": (21, "I"), "timeout_us": (22, "Q"),
    "signal": (32, "I"), "stream": (33, "I"), "data": (34, "b"), "credit": (35, "I"), "pid": (36, "I"),
    "exit_code": (48, "I"), "reason": (49, "I"), "wall_us": (50, "Q"), "start_errno": (54, "I"),
    "start_stage": (55, "I"), "error_class": (64, "I"), "error_code": (65, "I"), "error_message": (67, "s"),
    "error_remedy": (68, "s"), "ended_by": (83, "I"), "image": (96, "s"), "lifetime_us": (100, "Q"),
    "create_flags": (101, "I"), "volume": (102, "b"), "name": (106, "s"), "owner": (107, "s"),
    "label": (108, "s"), "memory": (113, "Q"), "id": (128, "s"), "state": (129, "I"),
    "created_at_us": (130, "Q"), "expires_at_us": (131, "Q"), "n_commands": (137, "I"), "backend": (139, "s"),
    "command": (144, "m"), "number": (145, "I"), "started_at_us": (146, "Q"), "path": (160, "s"),
    "offset": (161, "Q"), "length": (162, "Q"), "max_bytes": (163, "Q"), "file_flags": (164, "I"),
    "entry": (165, "m"), "entry_name": (166, "s"), "kind": (167, "I"), "mode": (168, "I"), "size": (169, "Q"),
    "mtime_ns": (170, "Q"), "target": (171, "s"), "skipped": (172, "s"), "feature": (192, "s"),
    "rule": (193, "m"), "field": (194, "s"), "verdict": (195, "I"), "how": (196, "s"),
}
BY_TAG = {tag: (name, form) for name, (tag, form) in FIELDS.items()}


def encode(fields):
    """Pairs of name and value as the payload of a message."""
    out = bytearray()
    for name, value in fields:
        tag, form = FIELDS[name]
        data = (value if form == "b" else os.fsencode(value) + b"\0" if form == "s"
                else encode(value) if form == "m" else struct.pack("<" + form, value))
        out += FIELD.pack(tag, 0, len(data)) + data
    return bytes(out)


def decode(payload):
    """The fields of a payload: a list of values by name. What a newer client may add is skipped."""
    found, at = {}, 0
    while at < len(payload):
        tag, zero, length = FIELD.unpack_from(payload, at)  # struct.error when it is cut
        data = payload[at + FIELD.size:at + FIELD.size + length]
        at += FIELD.size + length
        if zero or len(data) != length:
            raise ValueError("a damaged field")
        name, form = BY_TAG.get(tag, (None, None))
        if form == "s":  # texts are bytes with a NUL at the end; file names need not be UTF-8
            if not data or data.find(b"\0") != length - 1:
                raise ValueError("a damaged text")
            data = os.fsdecode(data[:-1])
        elif form in ("I", "Q"):
            data = struct.unpack("<" + form, data)[0]
        if name:
            found.setdefault(name, []).append(data)
    return found


class Failure(Exception):
    """What is answered by ERROR. Classes: 0 recoverable, 1 too large, 2 terminal, 3 usage."""

    def __init__(self, code, message=None, remedy=None, cls=3, **fields):
        fields = {"error_class": cls, "error_code": code, "error_message": message, "error_remedy": remedy, **fields}
        self.fields = [(name, value) for name, value in fields.items() if value is not None]
        super().__init__(message)
