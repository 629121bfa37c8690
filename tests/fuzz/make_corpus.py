#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets into corpus/, with the tests' own protocol client.

A seed that is gone from this file stays on disk; findings of the fuzzer are added there by hand.
"""
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from protocol import FIELD, FRAME, MORE, PAYLOAD_MAX, Exec, Tag, Type, encode, hello, volume  # noqa: E402


def raw(tag, data, zero=0, length=None):
    """One field, with whatever length it claims."""
    return FIELD.pack(tag, zero, len(data) if length is None else length) + data


def frame(payload, kind=Type.EXEC, flags=0, length=None, zero=0):
    return FRAME.pack(len(payload) if length is None else length, kind, flags, 7, zero) + payload


EXEC = encode(
    (Tag.ARG, "sh"), (Tag.ARG, "-c"), (Tag.ARG, "echo a b"), (Tag.ARG, ""), (Tag.ENV, "A=1"), (Tag.ENV, "B="),
    (Tag.WORKDIR, "/workspace"), (Tag.EXEC_FLAGS, Exec.TTY | Exec.USER_SET), (Tag.UID, 1), (Tag.GID, 2),
    (Tag.TIMEOUT_US, 1 << 40), (Tag.ROWS, 24), (Tag.COLUMNS, 80))
EXITED = encode(
    (Tag.EXIT_CODE, 255), (Tag.SIGNAL, 64), (Tag.REASON, 5), (Tag.WALL_US, 2**64 - 1), (Tag.USER_US, 1),
    (Tag.SYSTEM_US, 0), (Tag.PEAK_RSS_BYTES, 4096), (Tag.START_STAGE, 7), (Tag.START_ERRNO, 2),
    (Tag.INTERPRETER, "/bin/absent"))
FAULT = encode(
    (Tag.ERROR_CLASS, 1), (Tag.ERROR_CODE, 22), (Tag.ERROR_CONTEXT, "step 3"), (Tag.ERROR_MESSAGE, "it is bad"),
    (Tag.ERROR_REMEDY, "Do better"))
SPEC = encode(
    (Tag.IMAGE, "dir:/image"), (Tag.HOSTNAME, "box"), (Tag.WORKDIR, "/work"), (Tag.UID, 1000), (Tag.GID, 100),
    (Tag.DISK_BYTES, 1 << 30), (Tag.PIDS, 100), (Tag.LIFETIME_US, 10**9), (Tag.CREATE_FLAGS, 7),
    (Tag.VOLUME, volume("/usr", "/a", True)), (Tag.VOLUME, volume("/tmp", "/b")), (Tag.ENV, "A=1"),
    (Tag.ENV, "A=2"), (Tag.ENV, "B==\xff"))

SEEDS = {
    "frame": {
        "empty": b"",
        "header-only": frame(b""),
        "short-header": frame(b"")[:15],
        "exec": frame(EXEC),
        "more": frame(EXEC[:40], flags=MORE),
        "unknown-flag": frame(b"", flags=2),
        "reserved-word": frame(b"", zero=1),
        "too-long": frame(b"x", length=PAYLOAD_MAX + 1),
        "longest": frame(raw(Tag.DATA, bytes(PAYLOAD_MAX - FIELD.size))),
        "length-of-all-ones": frame(b"x", length=2**32 - 1),
        "cut-payload": frame(EXEC)[:-1],
        "two-frames": frame(b"", Type.DESTROY) + frame(EXEC),
        "field-too-long": frame(raw(Tag.ARG, b"sh\0", length=2**32 - 1)),
        "field-reserved": frame(raw(Tag.ARG, b"sh\0", zero=1)),
    },
    "control": {
        "empty": b"",
        "exec": EXEC,
        "exec-small": encode((Tag.ARG, "true")),
        "exec-many": encode(*((Tag.ARG, str(i)) for i in range(70))),
        "exec-nul-inside": raw(Tag.ARG, b"a\0b\0"),
        "exec-no-nul": raw(Tag.ARG, b"a"),
        "exec-empty-field": raw(Tag.ARG, b""),
        "exec-rows-too-large": encode((Tag.ARG, "a"), (Tag.ROWS, 65536)),
        "exited": EXITED,
        "exited-bad-reason": encode((Tag.REASON, 6)),
        "hello": hello(),
        "hello-no-major": encode((Tag.VERSION_MINOR, 1)),
        "output": encode((Tag.STREAM, 1), (Tag.DATA, b"bytes")),
        "output-end": encode((Tag.STREAM, 2), (Tag.DATA, b"")),
        "credit": encode((Tag.STREAM, 1), (Tag.CREDIT, 2**32 - 1)),
        "step": encode((Tag.STEP_INDEX, 3), (Tag.ERROR_CODE, 0), (Tag.STEP_US, 9), (Tag.STEP_TEXT, "proc /proc")),
        "resize": encode((Tag.ROWS, 24), (Tag.COLUMNS, 80)),
        "ended": encode((Tag.ENDED_BY, 99)),
        "number-of-two-bytes": raw(Tag.PID, b"ab"),
        "unknown-tag": raw(65535, b"new") + EXEC,
    },
    "fault": {
        "empty": b"",
        "all": FAULT,
        "code-only": encode((Tag.ERROR_CODE, 4095)),
        "no-code": encode((Tag.ERROR_MESSAGE, "it is bad")),
        "code-zero": encode((Tag.ERROR_CODE, 0)),
        "code-too-large": encode((Tag.ERROR_CODE, 4096)),
        "unknown-class": encode((Tag.ERROR_CLASS, 2**32 - 1), (Tag.ERROR_CODE, 1)),
        "long-texts": encode(
            (Tag.ERROR_CODE, 1), (Tag.ERROR_CONTEXT, "c" * 200), (Tag.ERROR_MESSAGE, "m" * 600),
            (Tag.ERROR_REMEDY, "r" * 500)),
        "controls": encode((Tag.ERROR_CODE, 1), (Tag.ERROR_MESSAGE, "a\n\033[2J\x7f\x9b")),
        "not-utf8": encode((Tag.ERROR_CODE, 1)) + raw(Tag.ERROR_MESSAGE, b"\xff\xc3\xe2\x82\0"),
        "cut-sequence": encode((Tag.ERROR_CODE, 1), (Tag.ERROR_MESSAGE, "m" * 510 + "\u20ac")),
        "cut": FAULT[:-1],
        "repeated": FAULT + encode((Tag.ERROR_MESSAGE, "other")),
    },
    "spec_message": {
        "empty": b"",
        "all": SPEC,
        "cut": SPEC[:-1],
        "host": encode((Tag.IMAGE, "host")),
        "other-image": encode((Tag.IMAGE, "debian")),
        "relative-folder": encode((Tag.IMAGE, "dir:image")),
        "bad-workdir": encode((Tag.WORKDIR, "/a/../b")),
        "no-pids": encode((Tag.PIDS, 0)),
        "most-pids": encode((Tag.PIDS, 4194304)),
        "large-disk": encode((Tag.DISK_BYTES, 2**64 - 1)),
        "large-uid": encode((Tag.UID, 65535)),
        "volume-no-host": encode((Tag.VOLUME, encode((Tag.VOLUME_GUEST, "/a")))),
        "volume-in-volume": encode((Tag.VOLUME, encode((Tag.VOLUME, volume("/usr", "/a"))))),
        "volume-damaged": encode((Tag.VOLUME, b"\x67\0\0\0\xff\0\0\0/")),
        "volumes-too-many": encode(*((Tag.VOLUME, volume("/", f"/{i}")) for i in range(65))),
        "env-no-value": encode((Tag.ENV, "A")),
        "env-twice": encode((Tag.ENV, "A=1"), (Tag.ENV, "AB=2"), (Tag.ENV, "A=3")),
        "flags": raw(Tag.CREATE_FLAGS, struct.pack("<I", 2**32 - 1)),
    },
}

for target, seeds in SEEDS.items():
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
