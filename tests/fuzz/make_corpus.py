#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets into corpus/, with the tests' own protocol client.

A seed that is gone from this file stays on disk; findings of the fuzzer are added there by hand.
"""
import json
import struct
import sys
import tarfile
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

FILE = encode(
    (Tag.KIND, 2 | 1 << 16), (Tag.MODE, 0o7777), (Tag.SIZE, 2**63 - 1), (Tag.MTIME_NS, 2**64 - 1),
    (Tag.LINK_TARGET, "../t/\udcff"))
REQUEST = encode(
    (Tag.PATH, "a/../b"), (Tag.FILE_FLAGS, 15), (Tag.OFFSET, 2**63 - 1), (Tag.LENGTH, 5), (Tag.MAX_BYTES, 6),
    (Tag.MODE, 0o644)) + raw(Tag.DATA, b"x\0y")
SANDBOX = encode(
    (Tag.SANDBOX_ID, "sb-abc"), (Tag.SANDBOX_NAME, "box"), (Tag.OWNER, "me"), (Tag.BACKEND, "local"),
    (Tag.IMAGE, "dir:/\udcff"), (Tag.WORKDIR, "/w"), (Tag.HOSTNAME, "h"), (Tag.STATE, 4), (Tag.UID, 1),
    (Tag.CREATED_AT_US, 2**64 - 1), (Tag.IDLE_US, 3), (Tag.PIDS, 9), (Tag.KEEPER_PID, 12), (Tag.LABEL, "a=1"),
    (Tag.LABEL, "b="))
COMMAND = encode(
    (Tag.COMMAND_NUMBER, 1), (Tag.PID, 2), (Tag.COMMAND_FLAGS, 3), (Tag.STARTED_AT_US, 2**64 - 1),
    (Tag.TIMEOUT_US, 3), (Tag.ARG, "sh"), (Tag.ARG, ""))
RULE = encode(
    (Tag.FIELD, "backend.memory"), (Tag.VERDICT, 2), (Tag.HOW, "it has no cgroup"),
    (Tag.ERROR_REMEDY, "Leave it out"))


def entry(name, more=FILE):
    return raw(Tag.ENTRY, encode((Tag.NAME, name)) + more)


def record(**members):
    """A record.json, with some members changed or, when None, left out."""
    whole = {
        "version": 1, "id": "sb-" + "a" * 26, "host": "h" * 32, "boot_id": "b" * 36, "uid": 0, "keeper_pid": 1,
        "created_at_us": 2**53, "expires_at_us": 0, "name": "box", "image": "host", "program": "1.2.3",
        "tags": {"team": "data", "": "", "\u00e4": "a=b"}} | members
    return json.dumps({k: v for k, v in whole.items() if v is not None}).encode()


# As many of its fields as one spec file may have.
SPEC_FILE = b"""version: 1
spec:
  env: {A: '1', PORT: "8080", TEXT: "two\\nlines"}
  block_network: true
  allow_egress_to: [pypi.org, '*.cdn.example', 'host.example:8443']
  allow_egress_to_cidrs: [203.0.113.0/24, '2001:db8::/32']
  owner: dag/run
backend:
  image: host
  workdir: /work
  user: 1000:100
  hostname: box
  volumes:
  - /usr:/data:ro
  inputs: {/usr: in}
  publish: [8080:80, '[::1]:9:10']
  tags: {team: data, empty: ''}
  cpu: 1.5
  memory: 512M
  pids: 100
  disk: 2GiB
  sandbox_timeout: 2h
  idle_timeout: 90
  egress_enforcement: inspect
  resolver: 9.9.9.9
  proxy: http://proxy.example:3128
  prices: {cpu_hour: 0.05}
  max_cost: 2
toolset:
  tool_prefix: box
  default_command_timeout: 0.5
  max_command_timeout: 5m
  max_output_lines: 10
  max_output_bytes: 51200
  max_read_bytes: 1M
  exports: {out/a.csv: 's3://bucket/a.csv'}
  max_export_bytes: 1G
  export_credentials: profile
  mask: [hunter2]
"""



def tar_entry(name, kind=tarfile.REGTYPE, data=b"", link="", mtime=10, size=None, form=tarfile.GNU_FORMAT, **pax):
    """One entry as another program writes it, with whatever extended records."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mtime, info.pax_headers = kind, link, mtime, pax
    info.size = len(data) if size is None else size
    return info.tobuf(form, "utf-8", "surrogateescape") + data + bytes(-len(data) % 512)


def tar_pax(records, kind=b"x"):
    """An extended header with the records as they are, and an entry that it is about."""
    return tar_entry("pax", kind, records) + tar_entry("x")


TAR = (tar_entry("d/", tarfile.DIRTYPE) + tar_entry("d/file", data=b"data") +
       tar_entry("d/link", tarfile.SYMTYPE, link="../d/file") + tar_entry("d/hard", tarfile.LNKTYPE, link="d/file") +
       tar_entry("d/fifo", tarfile.FIFOTYPE) + tar_entry("d/null", tarfile.CHRTYPE))

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def rpc(method, number=None, **params):
    """A request of JSON-RPC, or a notification."""
    head = {"jsonrpc": "2.0", "method": method} | ({} if number is None else {"id": number})
    return json.dumps(head | {"params": params} if params else head).encode()


def lines(*messages):
    return b"".join(message + b"\n" for message in messages)


def window(file, *secrets, offset=1, limit=0, lines=255, bytes_max=255, piece=3):
    head = bytes([offset, limit, lines, bytes_max, piece, len(secrets)])
    return head + b"".join(bytes([len(s)]) + s for s in secrets) + file


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
    "destination": {
        "empty": b"",
        "plain": b"file:///data/report.csv",
        "localhost": b"FILE://localhost/a b/%C3%A4",
        "slashes": b"file:////a//b",
        "escapes": b"file:///%3F%23%25%0a%ff",
        "up": b"file:///a/%2e%2E/b",
        "dot": b"file:///a/.",
        "root": b"file:///",
        "end": b"file:///a/",
        "query": b"file:///a?b#c",
        "half-escape": b"file:///a%2",
        "nul": b"file:///a%00b",
        "partial": b"file:///x.0123456789ab.partial",
        "longest-name": b"file:///" + b"n" * 234,
        "too-long-name": b"file:///" + b"n" * 235,
        "too-long-path": b"file://" + b"/nnnnnnn" * 600,
        "other-scheme": b"s3://" + b"k" * 60 + b"@bucket/key",
        "user": b"file://" + b"u" * 50 + b":secret@host/x",
        "no-path": b"file://localhost",
        "relative": b"file:x",
    },
    "document_json": {
        "empty": b"",
        "spec": b'{"version": 1,\r\n "spec": {"env": {"A": "x", "B": null}, "allow": ["a.b:80", true, -1.5e3]}}\n',
        "escapes": b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00"',
        "lone-surrogate": b'"\\ud83d\\n"',
        "nul-escape": b'"\\u0000"',
        "numbers": b"[0, -0, 1e5, 1E-5, 0.5, 12345678901234567890, 1e999]",
        "leading-zero": b"[01]",
        "byte-order-mark": b"\xef\xbb\xbf[\xef\xbb\xbf]",
        "duplicate": b'{"a": 1, "b": 2, "\\u0061": 3}',
        "deepest": b"[" * 64 + b"]" * 64,
        "too-deep": b'{"a":' * 65,
        "comma-too-many": b'{"a": [1, ], }',
        "open-string": b'["abc\n"]',
        "control": b'"\x1f"',
        "not-utf8": b'"\xed\xa0\x80"',
        "second-value": b"{} {}",
        "comment": b"// c\n1",
    },
    "document_yaml": {
        "empty": b"",
        "spec": b"# c\nversion: 1\nspec:\n  env: {A: \"x\", B: }\n  allow:\n  - 'a.b:80'\n  - [true, -1.5e3, ~]\n",
        "block-text": b"a: |\n  b\n\n  c\nd: >-\n  e\n   f\n",
        "quoted": b"'a''b': \"c\\u00e9\\x41\\U0001F600\\\n  d\"\n",
        "explicit-keys": b"? a\n: b\n? c\n",
        "core-schema": b"[0o17, 0x1F, +1, .5, 1., 1e3, .inf, -.INF, .NaN, NULL, True, 0b1, 1_0, yes]",
        "directives": b"%YAML 1.2\n%TAG ! tag:x,2000:\n--- !<tag:x> a\n...\n",
        "anchors": b"a: &a [*a, *b]\n",
        "merge": b"a: {<<: {b: 1}}\n",
        "duplicate": b"a: 1\nb: 2\n'a': 3\n",
        "two-documents": b"--- a\n--- b\n",
        "list-as-key": b"? [a]\n: {b: c}\n",
        "deepest": b"- " * 64 + b"x",
        "too-deep": b"{a: " * 65,
        "tabs": b"a:\n\tb: 1\n",
        "old-line-ends": b"a: b\xc2\x85c: d\xe2\x80\xa8e: f\n",
        "byte-order-mark": b"\xef\xbb\xbfa: \xef\xbb\xbf\n",
        "nul-escape": b'"\\0": "\\x00"',
        "not-utf8": b"a: \xff\xfe\n",
        "pattern": b"allow: [*.example.com, fd00::]\n",
        "open-string": b"a: 'b\nc: d\n",
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
    "mcp": {
        "handshake": lines(
            rpc("initialize", 1, protocolVersion="2025-11-25", capabilities={}),
            rpc("notifications/initialized"),
            rpc("tools/list", 2),
            rpc("tools/call", "a", name="run_command", arguments={"command": "true"}),
        ),
        "modern": lines(
            rpc("server/discover", 1, _meta=MODERN),
            rpc("tools/list", 2, _meta=MODERN),
            rpc("tools/call", 3, _meta=MODERN | {"progressToken": "t"}, name="read_file", arguments={"path": "a"}),
            rpc("resources/read", 4, _meta=MODERN, uri="file:///tmp/out/../x"),
            rpc("ping", 5, _meta=MODERN),
        ),
        "versions": lines(
            rpc("tools/list", 1, _meta=MODERN | {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}),
            rpc("tools/list", 2, _meta={"io.modelcontextprotocol/protocolVersion": 5}),
            rpc("tools/list", 3),
        ),
        "cancelled": lines(
            rpc("initialize", 1, protocolVersion="2024-11-05"),
            rpc("tools/call", 2, name="write_file", arguments={"path": "a", "content": "b\0c"}),
            rpc("notifications/cancelled", requestId=2),
            rpc("logging/setLevel", 3, level="debug"),
            rpc("resources/list", 4, cursor=""),
        ),
        "batch": lines(
            rpc("initialize", 1, protocolVersion="2025-03-26"),
            b"[" + rpc("ping", 2) + b"," + rpc("tools/call", 3, name="list_directory") + b",17]",
            b"[]",
        ),
        "ids": b'{"jsonrpc":"2.0","id":1e3,"method":"ping"}\n{"jsonrpc":"2.0","id":' + b"9" * 60 + b',"method":"ping"}\n',
        "half-lines": b'\n \r\n{"jsonrpc":"2.0",\n"id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":1,"method":"ping"}',
        "no-json": b"\xff\xfe\n{\n[[[[\n" + b"[" * 600 + b"\n\0\n",
        "surrogate": lines(
            rpc("initialize", 1, protocolVersion="2025-06-18"),
            b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{"name":"read_file","arguments":{"path":"\\udc00"}}}',
        ),
    },
    "policy": {
        "empty": b"",
        "name": b"OK.Test.:443",
        "url": b"https://ok.test:8443/@scope/%41?b#c",
        "url-user": b"https://ok.test@no.test/",
        "url-backslash": b"https://no.test\\@ok.test/",
        "url-fragment": b"https://no.test#.ok.test/",
        "scheme": b"ssh://a.wild.test:22",
        "mapped": b"[::ffff:127.0.0.1]:80",
        "v6": b"https://[2001:db8::1]/",
        "zone": b"[fe80::1%25eth0]:80",
        "nat64": b"[64:ff9b::10.1.2.3]:22",
        "octal": b"017700000001:80",
        "hex": b"0x7f.1:80",
        "nul": b"no.test\0.ok.test:443",
        "escape": b"no.test%00.ok.test:443",
        "ideographic": "ok\u3002test:443".encode(),
        "longest": b"a" * 63 + (b"." + b"b" * 63) * 2 + b"." + b"c" * 61 + b":65535",
        "host": b"Host.Example",
        "wildcard": b"*.cdn.example:80",
        "stars": b"*.*.host.example",
        "range": b" 203.0.113.0/24 ",
        "range-v6": b"2001:DB8::/32",
        "range-all": b"::/0",
        "host-bits": b"203.0.113.1/24",
        "mask": b"203.0.113.0/255.255.255.0",
        "wildcard-mask": b"203.0.113.0/0.0.0.255",
        "brackets": b"[2001:db8::]/32",
        "stamp": b'{"allow_egress_to":["ok.test"],"allow_egress_to_cidrs":["10.0.0.0/8","::1"],"block_network":true}',
        "stamp-open": b'{"allow_egress_to":[],"allow_egress_to_cidrs":[],"block_network":false}',
        "stamp-contradiction": b'{"allow_egress_to":["a.b"],"allow_egress_to_cidrs":[],"block_network":false}',
        "stamp-wrong-type": b'{"allow_egress_to":"ok.test","allow_egress_to_cidrs":[5],"block_network":1}',
        "stamp-everything": b'{"allow_egress_to":[],"allow_egress_to_cidrs":["0.0.0.0/1","128.0.0.0/1"],'
                            b'"block_network":true}',
        "stamp-deep": b"[" * 3000,
    },
    "files": {
        "empty": b"",
        "request": REQUEST,
        "request-small": encode((Tag.PATH, "/f")),
        "request-cut": REQUEST[:-1],
        "path-empty": encode((Tag.PATH, "")),
        "path-longest": encode((Tag.PATH, "p" * 4095)),
        "path-too-long": encode((Tag.PATH, "p" * 4096)),
        "offset-too-large": encode((Tag.PATH, "f"), (Tag.OFFSET, 2**63)),
        "mode-too-large": encode((Tag.PATH, "f"), (Tag.MODE, 0o10000)),
        "mode-absent": encode((Tag.PATH, "f"), (Tag.FILE_FLAGS, 8)),
        "inline-absent": encode((Tag.PATH, "f"), (Tag.FILE_FLAGS, 2)),
        "inline-empty": encode((Tag.PATH, "f"), (Tag.FILE_FLAGS, 2)) + raw(Tag.DATA, b""),
        "file": FILE,
        "file-no-kind": encode((Tag.SIZE, 1)),
        "file-kind": encode((Tag.KIND, 6)),
        "file-target-kind": encode((Tag.KIND, 2 | 6 << 16)),
        "entries": entry("a") + raw(Tag.SKIPPED, b"x\0") + entry("b", encode((Tag.KIND, 0))),
        "entry-cut": entry("a", FILE[:-1]),
        "entry-dots": entry("a") + entry(".."),
        "entry-dot": entry("."),
        "entry-slash": entry("a/b"),
        "entry-no-name": raw(Tag.ENTRY, FILE),
        "entry-in-entry": entry("a", FILE + entry("b")),
        "fault": encode((Tag.ERROR_CLASS, 1), (Tag.ERROR_CODE, 27), (Tag.PATH, "big"), (Tag.KIND, 0),
                        (Tag.SIZE, 2**64 - 1), (Tag.MAX_BYTES, 1)),
        "fault-code": encode((Tag.ERROR_CODE, 4096), (Tag.PATH, "f")),
    },
    "sandbox_info": {
        "empty": b"",
        "sandbox": SANDBOX,
        "sandbox-cut": SANDBOX[:-1],
        "sandbox-no-id": encode((Tag.STATE, 1)),
        "sandbox-state": encode((Tag.SANDBOX_ID, "x"), (Tag.STATE, 5)),
        "sandbox-labels": encode((Tag.SANDBOX_ID, "x"), *((Tag.LABEL, f"k={i}") for i in range(70))),
        "commands": raw(Tag.COMMAND, COMMAND) * 2 + raw(Tag.COMMAND, encode((Tag.COMMAND_NUMBER, 7))),
        "command-cut": raw(Tag.COMMAND, COMMAND[:-1]),
        "command-zero": raw(Tag.COMMAND, encode((Tag.COMMAND_NUMBER, 0))),
        "command-arguments": raw(Tag.COMMAND, COMMAND + encode((Tag.ARG, "x")) * 70),
        "command-in-command": raw(Tag.COMMAND, COMMAND + raw(Tag.COMMAND, COMMAND)),
        "rules": raw(Tag.RULE, RULE) + raw(Tag.RULE, encode((Tag.FIELD, "spec.env"), (Tag.VERDICT, 0))),
        "rule-cut": raw(Tag.RULE, RULE[:-1]),
        "rule-verdict": raw(Tag.RULE, encode((Tag.FIELD, "a"), (Tag.VERDICT, 3))),
        "rule-no-verdict": raw(Tag.RULE, encode((Tag.FIELD, "a"))),
        "features": raw(Tag.FEATURE, b"exec\0") + raw(Tag.BACKEND, b"x\0") + raw(Tag.FEATURE, b"\0"),
        "feature-no-nul": raw(Tag.FEATURE, b"exec\0") + raw(Tag.FEATURE, b"x"),
    },
    "json_scan": {
        "empty": b"",
        "request": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_command","arguments":{}}}',
        "notification": b' {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}\r',
        "response": b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}',
        "batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},[],1]',
        "id-large": b'{"jsonrpc":"2.0","id":1' + b"0" * 40 + b',"method":"ping"}',
        "id-too-long": b'{"jsonrpc":"2.0","id":"' + b"i" * 4095 + b'","method":"ping"}',
        "id-fraction": b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        "id-twice": b'{"id":1,"jsonrpc":"2.0","id":2,"method":"ping"}',
        "method-escapes": b'{"jsonrpc":"2.0","id":"\\u0061","method":"p\\u0069ng\\u0000"}',
        "method-surrogate": b'{"jsonrpc":"2.0","id":1,"method":"ping\\ud800"}',
        "method-long": b'{"jsonrpc":"2.0","id":1,"method":"' + "\u4e2d".encode() * 60 + b'"}',
        "params-list": b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}',
        "member-twice": b'{"a":1,"b":{"a":2},"\\u0061":3,"a":4}',
        "members-many": b"{" + b",".join(b'"%d":0' % i for i in range(257)) + b"}",
        "escapes": b'["\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00", "\\udc00\\ud800"]',
        "brackets-in-strings": b'{"}]":"{[\\"","\\\\":["]","\\\\\\""]}',
        "numbers": b"[0,-0,1e5,1E-5,0.5,9223372036854775807,-9223372036854775808,9223372036854775808,1e999]",
        "leading-zero": b"[01]",
        "words": b"[true,false,null,nul]",
        "characters": '"\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff and more of it"'.encode(),
        "not-utf8": b'"12345678\xed\xa0\x80"',
        "cut-character": b'"12345\xf0\x9f\x98"',
        "byte-order-mark": b"\xef\xbb\xbf{}",
        "nul": b'{"a":\0 1}',
        "nul-in-string": b'"a\0b"',
        "control-in-string": b'"a\x1fb"',
        "comma-too-many": b"[1,]",
        "two-values": b"{} {}",
        "deepest": b"[" * 512 + b"]" * 512,
        "too-deep": b'{"a":[' * 256 + b"{",
        "cut": b'{"a": [1, "b',
    },
    "channel_stream": {
        "empty": b"",
        "one": frame(EXEC),
        "three": frame(b"", Type.PS) + frame(EXEC) + frame(b"x" * 99, Type.OUTPUT),
        "cut-header": frame(EXEC) + frame(b"", Type.PS)[:15],
        "cut-payload": frame(EXEC) + frame(EXEC)[:-1],
        "more": frame(bytes(PAYLOAD_MAX), flags=MORE) * 2 + frame(b"end") + frame(b"", Type.PS),
        "more-and-end": frame(bytes(PAYLOAD_MAX), flags=MORE),
        "more-other-type": frame(bytes(PAYLOAD_MAX), flags=MORE) + frame(b"", Type.PS),
        "more-not-full": frame(b"x", flags=MORE) + frame(b"y"),
        "unknown-flag": frame(EXEC) + frame(b"", flags=2),
        "reserved-word": frame(EXEC) + frame(b"", zero=1),
        "too-long": frame(EXEC) + frame(b"x", length=PAYLOAD_MAX + 1),
        "length-of-all-ones": frame(b"x", length=2**32 - 1),
    },
    "state_record": {
        "empty": b"",
        "all": record(),
        "cut": record()[:-1],
        "behind": record() + b"x",
        "behind-nul": record() + b"\0x",
        "newer": record(version=2),
        "version-text": record(version="1"),
        "id-long": record(id="s" * 30),
        "host-long": record(host="h" * 65),
        "host-nul": record(host="\0"),
        "uid-negative": record(uid=-1),
        "uid-large": record(uid=2**32),
        "pid-zero": record(keeper_pid=0),
        "time-large": record(created_at_us=2**63),
        "time-fraction": record(created_at_us=1.5),
        "time-negative": record(expires_at_us=-1),
        "owner-wrong": record(owner=[]),
        "no-tags": record(tags=None),
        "tags-list": record(tags=["a"]),
        "tags-wrong": record(tags={"a": {}}),
        "tags-equals": record(tags={"a=b": "c"}),
        "unknown": record(later={"a": [1]}),
        "twice": record()[:-1] + b', "uid": 1}',
        "deep": b"[" * 3000,
        "not-utf8": record(name="x").replace(b'"x"', b'"\xff"'),
    },
    "spec_file": {
        "all": SPEC_FILE,
        "cut": SPEC_FILE[:-9],
        "version-alone": b"version: 1\n",
        "json": b'{"version": 1, "spec": {"block_network": false, "private_cidrs": ["10.0.0.0/8"]}}',
        "json-wrong-kinds": b'{"version": "1", "spec": [], "backend": {"pids": 1e9, "cpu": null, "user": true}}',
        "unknown-keys": b"version: 2\nsepc: {}\nspec: {memory: 1G, zebra: 1, '': 2}\nbackend: {memry: 5, lifetime: 1}\n",
        "env-wrong": b"version: 1\nspec: {env: {A: 8080, B: true, C: null, 9: x, 'a=b': y, 'x y': z}}\n",
        "lists-wrong": b"version: 1\nspec: {allow_egress_to: x, allow_egress_to_cidrs: [0.0.0.0/0, ~, [a]]}\n",
        "numbers-wrong": b"version: 1\nbackend: {pids: .inf, cpu: .nan, memory: 5, disk: -1M, idle_timeout: 1e3}\n",
        "attach": b"version: 1\nspec: {}\ntoolset: {attach_to: sb-a, owner: me, exports: {a: 'file:///x'}}\n",
        "attach-wrong": b"version: 1\nspec: {env: {}}\ntoolset: {attach_to: None, owner: '', mask: [abc]}\n",
        "maps-wrong": b"version: 1\nbackend: {tags: {airflow_x: a, a=b: c}, inputs: {'': x}, prices: {'a b': -1}}\n",
        "odd-bytes": b"version: 1\nspec: {owner: \"\\e[2J\"}\nbackend: {hostname: \"\\x7f\", \"\\u009b\": 1}\n",
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
    "tar": {
        "all": TAR + bytes(1024),
        "no-end": TAR,
        "cut": TAR[:-1],
        "cut-data": tar_entry("f", data=b"x" * 600)[:-300],
        "lone-zeros": TAR[:512] + bytes(512) + TAR[512:],
        "rubbish-after-end": TAR + bytes(1024) + b"rubbish",
        "checksum": TAR.replace(b"d/link", b"d/lonk"),
        "gnu-long": tar_entry("p/" * 300 + "f", tarfile.SYMTYPE, link="l/" * 400 + "g"),
        "gnu-long-nul": tar_entry("x", tarfile.GNUTYPE_LONGNAME, b"a\0b\0") + tar_entry("y"),
        "gnu-too-long": tar_entry("x", tarfile.GNUTYPE_LONGLINK, b"a" * 4098) + tar_entry("y"),
        "gnu-sparse": tar_entry("x", tarfile.GNUTYPE_SPARSE),
        "gnu-volume": tar_entry("x", b"V"),
        "gnu-old-time": tar_entry("x", mtime=-(2**60)),
        "ustar-prefix": tar_entry("p/" * 70 + "name", form=tarfile.USTAR_FORMAT),
        "pax": tar_entry("\u00e4" * 100, form=tarfile.PAX_FORMAT, mtime=1.5, comment="a = b\nc"),
        "pax-longest": tar_pax(b"4107 path=" + b"p/" * 2048 + b"\n"),
        "pax-too-long": tar_pax(b"4108 path=" + b"p/" * 2048 + b"p\n"),
        "pax-times": tar_pax(b"20 mtime=-1.2500000\n29 mtime=9223372036854775807\n"),
        "pax-size": tar_pax(b"28 size=9223372036854775807\n"),
        "pax-size-too-large": tar_pax(b"28 size=9223372036854775808\n"),
        "pax-not-utf8": tar_pax(b"21 hdrcharset=BINARY\n10 path=\xff\n"),
        "pax-nul": tar_pax(b"12 path=a\0b\n"),
        "pax-no-value": tar_pax(b"8 path=\n"),
        "pax-no-key": tar_pax(b"5 =a\n"),
        "pax-runs-over": tar_pax(b"11 path=x\n"),
        "pax-sparse": tar_pax(b"22 GNU.sparse.major=1\n"),
        "pax-global": tar_pax(b"13 comment=x\n", b"g"),
        "pax-global-path": tar_pax(b"10 path=x\n", b"g"),
        "binary-size-too-large": tar_entry("x", size=2**63),
        "binary-size": tar_entry("x", size=2**62),
    },
    "tool_arguments": {
        "empty": b"",
        "all": b'{"path": "a b", "offset": 2.0, "timeout_seconds": "3e1", "content": "\\u00e9\\ud83d\\ude00\\n"}',
        "unknown": b'{"path":"p","more":[{"path":[1,null]},true,-0.5e-3]}',
        "nulls": b'{"path":"p","offset":null,"timeout_seconds":null}',
        "numbers-as-text": b'{"path":"p","offset":" +5. ","timeout_seconds":"-iNfinity"}',
        "booleans": b'{"path":"p","offset":true,"timeout_seconds":false}',
        "large": b'{"path":"p","offset":1e308,"timeout_seconds":123456789012345678901234567890}',
        "too-large": b'{"path":"p","offset":1e309}',
        "wrong-types": b'{"path":1,"offset":"x"}',
        "nul": b'{"path":"a\\u0000b","content":"\\u0000"}',
        "nul-key": b'{"path\\u0000":"a"}',
        "half-pair": b'{"path":"p","content":"\\ud83d"}',
        "second-half": b'{"path":"p","content":"\\ude00\\ud83d"}',
        "raw-surrogate": b'{"path":"\xed\xa0\x80"}',
        "not-utf8": b'{"path":"\xc0\xaf"}',
        "cut-escape": b'{"path":"\\u00',
        "cut-backslash": b'{"path":"\\',
        "deepest": b'{"path":"p","x":' + b"[" * 63 + b"]" * 63 + b"}",
        "too-deep": b"[" * 65,
        "too-many": b"," * 100001,
        "list": b'["path"]',
        "twice": b'{"path":"a","path":"b"}',
    },
    "window": {
        "empty": b"",
        "lines": window(b"one\ntwo\n\nfour", offset=2, limit=2),
        "last-line": window(b"a\nb\n", offset=2, limit=1),
        "behind": window(b"a\n", offset=9),
        "wide": window(b"x" * 300 + b"\ny"),
        "second-wide": window(b"y\n" + b"x" * 300),
        "caps": window(b"abc\ndef\nghi\n", lines=1, bytes_max=6),
        "masked": window(b"a secret and a secretsecret\nword", b"secret", b"password", b"retsec"),
        "overlaps": window(b"aabaabaabaabaaab\naab", b"aaba", b"baab", b"abaabaab", piece=0),
        "into-window": window(b"x two\nlines\nmore and two\nlines", b"two\nlines", b"lines\nmore", offset=2),
        "line-ends": window(b"a\n\n\n\n\n\nb", b"\n\n\n\n", offset=4, piece=1),
        "characters": window(b"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\xf0\x9f\x98\n\xc3", piece=0),
        "half-characters": window(b"x\xc3\xa9\xc3\xa9\xc3\xa9y", b"\xa9\xc3\xa9\xc3", piece=1),
        "binary": window(bytes(range(256)), b"\0\1\2\3", bytes_max=40),
    },
}

for target, seeds in SEEDS.items():
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
