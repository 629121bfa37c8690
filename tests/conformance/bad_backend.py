# SPDX-License-Identifier: Apache-2.0
"""A backend program that misbehaves in one way: bad_backend.py HOW. Up to there it is a plain one.

It makes nothing: a sandbox is an id, and each command says "hello" and exits with 0.
"""
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from protocol import (  # noqa: E402
    FRAME, MORE, PAYLOAD_MAX, WINDOW, Class, Kind, Tag, Type, decode_all, encode, hello)

HOW = sys.argv[1]
FEATURES = "exec stdin signal timeout files ranges list inspect ps reopen".split()
FIELDS = ("spec.block_network", "spec.env", "backend.image", "backend.sandbox_timeout", "backend.workdir")

TAGGED = {  # ways that begin when the holder has been written: what is there then
    "keeps its tags": None,
    "lets another writer win": "airflow_holder=winner",
    "forgets who has written": "team=x",
    "damages its tags": "",
}
tags = ["team=x", "airflow_owner=a/b", "airflow_network=soon"]


def write(data):
    while data:
        data = data[os.write(1, data):]


def say(kind, number, *fields):
    payload = encode(*fields)
    while len(payload) > PAYLOAD_MAX:
        write(FRAME.pack(PAYLOAD_MAX, kind, MORE, number, 0) + payload[:PAYLOAD_MAX])
        payload = payload[PAYLOAD_MAX:]
    write(FRAME.pack(len(payload), kind, 0, number, 0) + payload)


def wait_for_ever():
    while True:
        time.sleep(1000)


def read(n):
    data = b""
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def receive():
    payload = b""
    while True:
        length, kind, flags, number, _ = FRAME.unpack(read(FRAME.size))
        payload += read(length)
        if not flags & MORE:
            return kind, number, payload


def greet(number):
    if HOW == "stalls before its greeting":
        wait_for_ever()
    if HOW == "exits at once":
        sys.exit(7)
    if HOW == "is no backend at all":
        write(b"Usage: something else\n" * 100)
        sys.exit(0)
    if HOW == "floods":
        while True:
            write(b"\xff" * 65536)
    if HOW == "lies about a length":
        write(FRAME.pack(2**32 - 1, Type.HELLO, 0, number, 0))
        wait_for_ever()
    if HOW == "dies within a frame":
        write(FRAME.pack(100, Type.HELLO, 0, number, 0) + b"abc")
        sys.exit(0)
    if HOW == "speaks another major version":
        write(FRAME.pack(len(hello(2)), Type.HELLO, 0, number, 0) + hello(2))
        wait_for_ever()
    if HOW == "does not greet":
        say(Type.CREATED, number, (Tag.SANDBOX_ID, "x"))
        wait_for_ever()
    greeting = hello(1, 3 if HOW in TAGGED else 1)
    write(FRAME.pack(len(greeting), Type.HELLO, 0, number, 0) + greeting)
    if HOW == "sends a message without an end":
        while True:
            write(FRAME.pack(PAYLOAD_MAX, Type.SANDBOX, MORE, 5, 0) + bytes(PAYLOAD_MAX))
    if HOW == "exits after its greeting":
        sys.exit(0)


def describe(number):
    if HOW == "does not describe itself":
        wait_for_ever()
    rules = [encode((Tag.FIELD, f), (Tag.VERDICT, 0), (Tag.HOW, "by magic")) for f in FIELDS]
    fields = encode((Tag.BACKEND, "bad"), *((Tag.FEATURE, f) for f in FEATURES))
    for rule in rules:
        fields += (int(Tag.RULE)).to_bytes(4, "little") + len(rule).to_bytes(4, "little") + rule
    if HOW == "describes itself in damaged fields":
        fields = fields[:-3]
    write(FRAME.pack(len(fields), Type.DESCRIBED, 0, number, 0) + fields)


def create(number):
    if HOW == "answers with the wrong type":
        say(Type.EXITED, number, (Tag.EXIT_CODE, 0), (Tag.SIGNAL, 0), (Tag.REASON, 0))
        wait_for_ever()
    if HOW == "answers with damaged fields":
        write(FRAME.pack(5, Type.CREATED, 0, number, 0) + b"12345")
        wait_for_ever()
    if HOW == "gives no id":
        say(Type.CREATED, number)
        wait_for_ever()
    if HOW == "gives an id that drives a terminal":
        say(Type.CREATED, number, (Tag.SANDBOX_ID, "a\x1b[2Jb\nc"))
        wait_for_ever()
    if HOW == "refuses in words that drive a terminal":
        say(Type.ERROR, number, (Tag.ERROR_CLASS, Class.USAGE), (Tag.ERROR_CODE, 1),
            (Tag.ERROR_MESSAGE, "not\x1b]0;today\x07\nroot# rm"), (Tag.ERROR_REMEDY, "ask\x9b1mlater"))
        wait_for_ever()
    if HOW == "dies while creating":
        sys.exit(0)
    say(Type.CREATED, number, (Tag.SANDBOX_ID, "one"))


def execute(number):
    if HOW == "sends more than the credit":
        # In one message: of many, the reader may give new credit in between.
        say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, b"y" * (WINDOW + 1)))
        wait_for_ever()
    if HOW == "writes without end":
        while True:  # whatever credit there is
            say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, b"x" * 32000))
    if HOW == "gives credit without end":
        for _ in range(10):
            say(Type.CREDIT, number, (Tag.STREAM, 0), (Tag.CREDIT, 2**32 - 1))
    if HOW == "dies while a command runs":
        say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, b"front\n"))
        sys.exit(0)
    if HOW == "exits with a reason that is none":
        say(Type.EXITED, number, (Tag.EXIT_CODE, 0), (Tag.SIGNAL, 0), (Tag.REASON, 77))
        wait_for_ever()
    say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, b"hello\n"))
    for stream in (1, 2):
        say(Type.OUTPUT, number, (Tag.STREAM, stream), (Tag.DATA, b""))
    say(Type.EXITED, number, (Tag.EXIT_CODE, 0), (Tag.SIGNAL, 0), (Tag.REASON, 0))


def read_file(number):
    info = (Tag.KIND, Kind.FILE), (Tag.MODE, 0o644), (Tag.SIZE, 5), (Tag.MTIME_NS, 0)
    say(Type.FILE, number, *info)
    if HOW == "reads more than there is":
        for _ in range(WINDOW // 32000):
            say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, b"y" * 32000))
    say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, b"12345" if HOW != "reads less than it said" else b"1"))
    say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, b""))


def list_folder(number):
    for name in ("fine",) + (("../up", "", ".", "..") if HOW == "lists names that are none" else ()):
        entry = encode((Tag.NAME, name), (Tag.KIND, 0), (Tag.MODE, 0), (Tag.SIZE, 0), (Tag.MTIME_NS, 0))
        data = (int(Tag.ENTRY)).to_bytes(4, "little") + len(entry).to_bytes(4, "little") + entry
        write(FRAME.pack(len(data), Type.LISTED, 0, number, 0) + data)
    say(Type.DONE, number)


def tell_tags(number):
    if HOW == "damages its tags":
        write(FRAME.pack(11, Type.TAGS_READ, 0, number, 0) + b"damaged tag")
        return
    say(Type.TAGS_READ, number, *((Tag.LABEL, tag) for tag in tags))


def set_tags(number, fields):
    tags[:] = [value for tag, value in fields if tag == Tag.LABEL]
    if TAGGED[HOW]:
        tags[:] = [t for t in tags if not t.startswith("airflow_holder=")] + [TAGGED[HOW]]
    say(Type.DONE, number)


def destroy(number):
    if HOW != "ends without a word":
        say(Type.ENDED, number, (Tag.ENDED_BY, 0))
    sys.exit(0)


def main():
    while True:
        kind, number, payload = receive()
        handle = {Type.HELLO: greet, Type.DESCRIBE: describe, Type.CREATE: create, Type.OPEN: create,
                  Type.EXEC: execute, Type.READ: read_file, Type.LIST: list_folder, Type.DESTROY: destroy}.get(kind)
        if handle:
            handle(number)
        elif kind == Type.TAGS and HOW in TAGGED:
            tell_tags(number)
        elif kind == Type.SET_TAGS and HOW in TAGGED:
            set_tags(number, decode_all(payload))
        elif kind not in (Type.CREDIT, Type.INPUT, Type.SIGNAL, Type.CANCEL):
            say(Type.ERROR, number, (Tag.ERROR_CLASS, Class.USAGE), (Tag.ERROR_CODE, 38), (Tag.ERROR_MESSAGE, "no"))


main()
