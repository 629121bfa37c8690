# SPDX-License-Identifier: Apache-2.0
"""A backend program that does what a script says, and notes what it was asked.

    fake_backend.py FOLDER

FOLDER/script.json has a list for each kind of request ("create", "open", "exec", "read", "write", "list", "stat",
"inspect", "destroy", "signal", "tags", "set_tags"). The first request of a kind, counted over all processes, follows the first entry, the
second one the second; the last entry holds for all that come after. Without a list a request is answered well.
FOLDER/requests.jsonl gets one line for each request: {"kind", "sandbox", …} with its fields.

An entry is a dictionary:
    until      a file: the answer waits until it exists
    error      {"cls", "code", "message", "remedy"}: the request fails so
    ended      a number of EndedBy: the sandbox ends behind the answer, or instead of it with "silent"
    ended_when a file: it ends only when that exists, and "ended" is noted like a request
    vanish     the program exits without a word
    id         create: of the sandbox; otherwise "fake1", "fake2", …
    stdout, stderr, code, signal, reason, applied_us, left_s    exec
    early, mute    exec: what it writes as soon as it runs; nobody is told that it does
    data       read: a text
    entries    list: [name, kind] pairs
    size, file_kind    stat; the size is that of the first entry for read, unless given
    owner, network, life_s, age_s, workdir, state       inspect
    labels     set_tags: these are there a moment later, in the place of those that were written

The tags of a sandbox are a list in FOLDER/tags-SANDBOX.json, which tests may write, too. A sandbox without one has
those of a free one that was made for "me".

Output and contents have to fit the window of a stream: 256 KiB.
"""
import json
import os
import select
import sys
import time
from pathlib import Path

from protocol import FRAME, MORE, PAYLOAD_MAX, Class, Exec, Kind, Reason, Tag, Type, decode_all, encode, hello

FOLDER = Path(sys.argv[1])
FEATURES = "exec stdin signal timeout files ranges list inspect ps reopen tags".split()
FIELDS = """spec.env spec.block_network spec.allow_egress_to spec.allow_egress_to_cidrs spec.private_cidrs spec.owner
    backend.image backend.workdir backend.sandbox_timeout backend.idle_timeout backend.tags toolset.exports""".split()
KINDS = {
    Type.CREATE: "create", Type.OPEN: "open", Type.EXEC: "exec", Type.READ: "read", Type.WRITE: "write",
    Type.LIST: "list", Type.STAT: "stat", Type.INSPECT: "inspect", Type.DESTROY: "destroy",
    Type.TAGS: "tags", Type.SET_TAGS: "set_tags"}
PART = 32000

sandbox = None
asked = {}  # the last request, as it was noted
waiting = []  # requests whose answer waits for a file: (file, kind, id, entry)
ending = []  # ends that wait for a file: (file, by)
out = bytearray()  # what an answer is made of goes out at once


def flush():
    try:
        while out:
            del out[:os.write(1, out)]
    except BrokenPipeError:  # nobody listens any more
        sys.exit(0)


def send(kind, number, payload):
    while True:
        part, payload = payload[:PAYLOAD_MAX], payload[PAYLOAD_MAX:]
        out.extend(FRAME.pack(len(part), kind, MORE if payload else 0, number, 0) + part)
        if not payload:
            return


def say(kind, number, *fields):
    send(kind, number, encode(*fields))


def nested(tag, *fields):
    """A field that holds fields of its own."""
    data = encode(*fields)
    return int(tag).to_bytes(4, "little") + len(data).to_bytes(4, "little") + data


def read(n):
    data = b""
    while len(data) < n:
        try:
            more = os.read(0, n - len(data))
        except ConnectionResetError:  # said once of a client that left something unread
            continue
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
            return kind, number, decode_all(payload)


def note(kind, pairs):
    """Writes the request down; returns how many of its kind there were before."""
    path = FOLDER / "requests.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    before = sum(json.loads(line)["kind"] == kind for line in lines)
    row = {"kind": kind, "sandbox": sandbox}
    for tag, value in pairs:
        name = Tag(tag).name.lower()
        value = value.decode(errors="replace") if isinstance(value, bytes) else value
        if name in ("arg", "env", "label", "allow_host", "allow_range"):
            row.setdefault(name, []).append(value)
        else:
            row[name] = value
    with open(path, "a") as file:
        file.write(json.dumps(row) + "\n")
    asked.clear()
    asked.update({"label": []} | row)
    return before


def entry_of(kind, before):
    path = FOLDER / "script.json"
    entries = (json.loads(path.read_text()) if path.exists() else {}).get(kind) or [{}]
    return entries[min(before, len(entries) - 1)]


def end(number, by):
    say(Type.ENDED, number, (Tag.ENDED_BY, by))
    flush()
    sys.exit(0)


def fail(number, error):
    say(Type.ERROR, number, (Tag.ERROR_CLASS, error.get("cls", Class.RECOVERABLE)),
        (Tag.ERROR_CODE, error.get("code", 5)), (Tag.ERROR_MESSAGE, error["message"]),
        (Tag.ERROR_REMEDY, error.get("remedy", "")))


def stream(number, which, data):
    for at in range(0, len(data), PART):
        say(Type.OUTPUT, number, (Tag.STREAM, which), (Tag.DATA, data[at:at + PART]))
    say(Type.OUTPUT, number, (Tag.STREAM, which), (Tag.DATA, b""))


def answer_create(number, entry):
    global sandbox
    if sandbox is None:
        made = [json.loads(line) for line in (FOLDER / "requests.jsonl").read_text().splitlines()]
        sandbox = entry.get("id") or f"fake{sum(row['kind'] == 'create' for row in made)}"
    say(Type.CREATED, number, (Tag.SANDBOX_ID, sandbox))


def answer_exec(number, entry):
    stream(number, 1, entry.get("stdout", "").encode("utf-8", "surrogateescape"))
    stream(number, 2, entry.get("stderr", "").encode("utf-8", "surrogateescape"))
    applied = [(Tag.TIMEOUT_US, entry["applied_us"])] if "applied_us" in entry else []
    if "left_s" in entry:
        applied.append((Tag.LEFT_US, int(entry["left_s"] * 1_000_000)))
    say(Type.EXITED, number, (Tag.EXIT_CODE, entry.get("code", 0)), (Tag.SIGNAL, entry.get("signal", 0)),
        (Tag.REASON, entry.get("reason", 0)), *applied)


def answer_read(number, entry):
    data = entry.get("data", "").encode("utf-8", "surrogateescape")
    say(Type.FILE, number, (Tag.KIND, Kind.FILE), (Tag.MODE, 0o644), (Tag.SIZE, len(data)), (Tag.MTIME_NS, 0))
    stream(number, 1, data)


def answer_write(number, _):
    say(Type.DONE, number)


def answer_list(number, entry):
    rows = [nested(Tag.ENTRY, (Tag.NAME, name), (Tag.KIND, kind), (Tag.MODE, 0o644), (Tag.SIZE, 0), (Tag.MTIME_NS, 0))
            for name, kind in entry.get("entries", [])]
    if rows:
        send(Type.LISTED, number, b"".join(rows))
    say(Type.DONE, number)


def answer_stat(number, entry):
    content = entry_of("read", 0).get("data", "").encode("utf-8", "surrogateescape")
    say(Type.FILE, number, (Tag.KIND, entry.get("file_kind", Kind.FILE)), (Tag.MODE, 0o644),
        (Tag.SIZE, entry.get("size", len(content))), (Tag.MTIME_NS, 0))


def answer_inspect(number, entry):
    now = int(time.time() * 1_000_000)
    created = now - int(entry.get("age_s", 1) * 1_000_000)
    fields = [(Tag.SANDBOX_ID, sandbox), (Tag.STATE, entry.get("state", 1)), (Tag.CREATED_AT_US, created)]
    if "life_s" in entry:
        fields.append((Tag.EXPIRES_AT_US, now + int(entry["life_s"] * 1_000_000)))
    for tag in (Tag.OWNER, Tag.NETWORK, Tag.WORKDIR):
        if tag.name.lower() in entry:
            fields.append((tag, entry[tag.name.lower()]))
    say(Type.SANDBOX, number, *fields)


def tags_file():
    return FOLDER / f"tags-{sandbox}.json"


def answer_tags(number, _):
    path = tags_file()
    labels = json.loads(path.read_text()) if path.exists() else ["airflow_owner=me"]
    say(Type.TAGS_READ, number, *((Tag.LABEL, text) for text in labels))


def answer_set_tags(number, entry):
    tags_file().write_text(json.dumps(entry.get("labels") or asked["label"]))
    say(Type.DONE, number)


def answer_destroy(number, _):
    end(number, 0)


ANSWERS = {
    "create": answer_create, "open": answer_create, "exec": answer_exec, "read": answer_read, "write": answer_write,
    "list": answer_list, "stat": answer_stat, "inspect": answer_inspect, "destroy": answer_destroy,
    "tags": answer_tags, "set_tags": answer_set_tags}


def answer(kind, number, entry):
    if entry.get("vanish"):
        sys.exit(0)
    if "error" in entry:
        fail(number, entry["error"])
    elif not entry.get("silent"):
        ANSWERS[kind](number, entry)
    if "ended_when" in entry:
        ending.append((Path(entry["ended_when"]), entry["ended"]))
    elif "ended" in entry:
        end(0, entry["ended"])


def describe(number):
    rules = [nested(Tag.RULE, (Tag.FIELD, f), (Tag.VERDICT, 0), (Tag.HOW, "as the script says")) for f in FIELDS]
    head = encode((Tag.BACKEND, "fake"), *((Tag.FEATURE, f) for f in FEATURES))
    send(Type.DESCRIBED, number, head + b"".join(rules))


def started(number, entry):
    """A command runs, and writes first what it has to say at once."""
    say(Type.STARTED, number, (Tag.PID, 2), (Tag.COMMAND_NUMBER, number))
    if "early" in entry:
        say(Type.OUTPUT, number, (Tag.STREAM, 1), (Tag.DATA, entry["early"].encode()))
    flush()


def cancel(target):
    """A request that waits is given up; a command is killed by that."""
    for item in list(waiting):
        if item[2] == target:
            waiting.remove(item)
            note("killed" if item[1] == "exec" else "cancelled", [])
            if item[1] == "exec":
                answer_exec(target, {"signal": 9, "reason": Reason.KILLED})
            else:
                fail(target, {"code": 125, "message": "it was cancelled"})


def handle(kind, number, pairs):
    global sandbox
    if kind == Type.HELLO:
        send(Type.HELLO, number, hello(1, 3))
    elif kind == Type.DESCRIBE:
        describe(number)
    elif kind == Type.CANCEL:
        cancel(number)
    elif kind == Type.STOP:
        cancel(dict(pairs)[Tag.COMMAND_NUMBER])
    elif kind == Type.SIGNAL:
        if "error" in (entry := entry_of("signal", note("signal", pairs))):
            fail(number, entry["error"])
    elif kind in (Type.CREDIT, Type.INPUT, Type.COMMIT):
        pass
    elif kind in KINDS:
        word = KINDS[kind]
        if kind == Type.OPEN:
            sandbox = dict(pairs)[Tag.SANDBOX_ID]
        entry = entry_of(word, note(word, pairs))
        reported = kind == Type.EXEC and dict(pairs).get(Tag.EXEC_FLAGS, 0) & Exec.REPORT_START
        if reported and ("until" in entry or "error" not in entry) and "mute" not in entry:
            started(number, entry)
        if "until" in entry:
            waiting.append((Path(entry["until"]), word, number, entry))
        else:
            answer(word, number, entry)
    else:
        fail(number, {"cls": Class.USAGE, "code": 38, "message": "this program does not do that"})


def main():
    while True:
        for item in [w for w in waiting if w[0].exists()]:
            waiting.remove(item)
            answer(*item[1:])
        for file, by in ending:
            if file.exists():
                say(Type.ENDED, 0, (Tag.ENDED_BY, by))
                flush()
                note("ended", [])
                sys.exit(0)
        flush()
        if select.select([0], [], [], 0.01 if waiting or ending else None)[0]:
            handle(*receive())


main()
