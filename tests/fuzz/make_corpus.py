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


def denial(*texts, protocol=3, port=65535):
    """A denial: TAG_DENIAL_PROTOCOL and what follows it."""
    fields = [raw(209, struct.pack("<I", protocol)), raw(212, struct.pack("<I", port))]
    return b"".join(fields + [raw(tag, text) for tag, text in texts])


DENIAL = denial(
    (210, b"example.org\0"), (211, b"198.18.0.2\0"), (213, b"allow_egress_to[2] 'example.org'\0"),
    (214, b"its server name is another one\0"),
    *((215 + i, struct.pack("<Q", n)) for i, n in enumerate((2**64 - 1, 1, 2, 3))))


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


def tls_extension(kind, data=b""):
    return struct.pack(">HH", kind, len(data)) + data


def tls_name(name, kind=0):
    return bytes([kind]) + struct.pack(">H", len(name)) + name


def tls_names(*names):
    """The extension server_name."""
    names = b"".join(names)
    return tls_extension(0, struct.pack(">H", len(names)) + names)


def client_hello(*extensions, piece=1 << 14, more=b"", session=b"s" * 32, version=0x303):
    """A ClientHello in records of piece bytes; more: bytes within its last record."""
    extensions = b"".join(extensions)
    body = struct.pack(">H", version) + bytes(32) + bytes([len(session)]) + session
    body += struct.pack(">HHHBB", 4, 0x1301, 0x1302, 1, 0) + struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body + more
    pieces = [message[at:at + piece] for at in range(0, len(message), piece)]
    return b"".join(struct.pack(">BHH", 22, 0x301, len(part)) + part for part in pieces)


TLS_NAME = tls_names(tls_name(b"example.org"))
TLS_ECH = tls_extension(0xfe0d, b"\0\0\1\0\1\x55\0\x20" + bytes(32) + b"\0\x10" + bytes(16))
TLS_PIECES = client_hello(TLS_NAME, piece=40)


def http(text, pieces=7):
    """A stream of requests, with the byte that seeds its pieces; line ends are written as plain ones."""
    return bytes([pieces]) + text.replace("\n", "\r\n").encode("latin-1")


HTTP_GET = "GET /a HTTP/1.1\nHost: example.org\n"
HTTP_POST = "POST /a HTTP/1.1\nHost: example.org\n"
HTTP_CHUNKED = HTTP_POST + "Transfer-Encoding: chunked\n\n"


def window(file, *secrets, offset=1, limit=0, lines=255, bytes_max=255, piece=3):
    head = bytes([offset, limit, lines, bytes_max, piece, len(secrets)])
    return head + b"".join(bytes([len(s)]) + s for s in secrets) + file


def dns_name(text):
    """A name on the wire; bytes stay as they are, and end without the root."""
    if isinstance(text, bytes):
        return text
    return b"".join(bytes([len(x)]) + x.encode() for x in text.split(".") if x) + b"\0"


def dns(name, kind=1, records=(0, 0, 0), after=b"", flags=0x0100, questions=1, klass=1):
    """A message with one question, and what comes after it."""
    return struct.pack(">6H", 0x1234, flags, questions, *records) + dns_name(name) \
        + struct.pack(">2H", kind, klass) + after


def dns_record(name, kind, data, ttl=60, klass=1):
    return dns_name(name) + struct.pack(">HHIH", kind, klass, ttl, len(data)) + data


def dns_opt(size=1232, data=b"", version=0):
    return dns_record("", 41, data, version << 16, size)


def dns_result(name, *records, kind=1, flags=0x8180, more=b""):
    return dns(name, kind, (len(records), 0, 0), b"".join(records) + more, flags)


def netlink(kind, payload, number=1, length=None, flags=0):
    """A message as the kernel sends it, in the order of this machine's bytes."""
    return struct.pack("=IHHII", 16 + len(payload) if length is None else length, kind, flags, number, 0) + payload


def attribute(kind, data, length=None):
    return (struct.pack("=HH", 4 + len(data) if length is None else length, kind) + data).ljust(
        (4 + len(data) + 3) & ~3, b"\0")


def logged(packet, *more):
    """The payload of a message of nfnetlink_log."""
    return struct.pack(">BBH", 1, 0, 7) + attribute(10, b"\0") + attribute(9, packet) + b"".join(more)


def ipv4(protocol, data, words=5, fragment=0):
    head = struct.pack(">BBHHHBBH4s4s", 4 << 4 | words, 0, 0, 0, fragment, 64, protocol, 0, b"\x7f\0\0\1", b"\xcb\0q\t")
    return head + bytes(words * 4 - 20) + data


def ipv6(first, data):
    return struct.pack(">IHBB16s16s", 6 << 28, 0, first, 64, bytes(15) + b"\1", b" \1\r\xb8" + bytes(12)) + data


PORTS = struct.pack(">HHHH", 40000, 443, 8, 0)
SEQUENCE = attribute(12, struct.pack(">I", 5))


CGROUP2_MOUNT = b"30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
CGROUP1_MOUNTS = (b"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                  b"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")

SEEDS = {
    "address": {
        name: text.encode()
        for name, text in {
            "empty": "", "v4": "203.0.113.7", "octal": "010.0.0.1", "hex": "0x7f.1", "number": "2130706433",
            "short": "1.1.1", "big": "1.1.1.256", "range": "10.0.0.0/8", "host-bits": "10.0.0.1/8", "mask": "10.0.0.0/255.0.0.0",
            "blanks": " 10.0.0.0/8\t", "v6": "2001:db8::1", "mapped": "::ffff:10.20.0.5", "nat64": "64:ff9b::a14:5",
            "6to4": "2002:a14:5::1", "teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2", "zone": "fe80::1%eth0",
            "brackets": "[::1]", "v6-range": "2001:db8::/32", "everything": "::/0", "longest": "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128",
            "two-gaps": "1::2::3", "compatible": "::10.0.0.1",
        }.items()
    },
    "url": {
        name: text.encode()
        for name, text in {
            "empty": "", "https": "https://example.org/x?y#z", "http-port": "HTTP://Example.ORG:8080/", "plain": "example.org:443",
            "v4": "203.0.113.7:80", "v6": "[2001:db8::1]:443", "mapped": "[::ffff:127.0.0.1]:80", "user": "https://user:pw@example.org/",
            "escape": "https://example%2eorg/", "backslash": "https://example.org\\@evil.test/", "hash": "no.test#.ok.test:443",
            "nul": "no.test\0.ok.test:443", "two-ports": "ok.test:443:80", "dot": "ok.test.:443", "dots": "ok.test..:443",
            "octal": "http://017700000001/", "hex": "http://0x7f.1/", "ssh": "ssh://git@example.org:22/", "scheme": "gopher://x.test:70/",
            "query": "https://example.org?x", "wide-dot": "ok\u3002test:443", "no-port": "example.org", "port-0": "example.org:0",
        }.items()
    },
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
        "exited-denials": EXITED + raw(Tag.DENIAL, DENIAL) * 2 + encode((Tag.DENIAL_DROPPED, 7), (Tag.POLICY_GENERATION, 2)),
        "exited-denial-cut": EXITED + raw(Tag.DENIAL, DENIAL[:-1]),
        "exited-denial-empty": EXITED + raw(Tag.DENIAL, b""),
        "policy-set": encode((Tag.NETWORK, "{}"), (Tag.POLICY_GENERATION, 2), (Tag.FLOWS_CUT, 1)),
        "policy-set-no-generation": encode((Tag.NETWORK, "{}")),
        "attach": encode((Tag.OWNER, "a/b"), (Tag.HOLDER, "a/b/c"), (Tag.LEASE_KEEP_US, 2**64 - 1)),
        "attach-empty-texts": encode((Tag.OWNER, ""), (Tag.HOLDER, "")),
        "attach-no-holder": encode((Tag.OWNER, "a/b")),
        "attach-keep-of-four-bytes": encode((Tag.OWNER, "a"), (Tag.HOLDER, "b")) + raw(Tag.LEASE_KEEP_US, bytes(4)),
        "attached": encode((Tag.LEASE_GENERATION, 1), (Tag.LEFT_US, 5), (Tag.NETWORK, "{}"), (Tag.WORKDIR, "/workspace")),
        "attached-no-end": encode((Tag.LEASE_GENERATION, 2**32 - 1)),
        "lease-state": encode((Tag.LEASE_STATE, 4)),
        "exported": encode((Tag.PATH, "out.csv"), (Tag.URL, "s3://me:p@w@bucket/x?sig=1"), (Tag.SIZE, 2**63),
                           (Tag.DIGEST, "sha256:" + "0" * 64)),
        "exported-failed": encode((Tag.PATH, "a"), (Tag.URL, "://@?"), (Tag.ERROR_MESSAGE, "a://b@c?d e://f@g")),
        "exported-no-url": encode((Tag.PATH, "a")),
        "exported-long": encode((Tag.PATH, "a" * 5000), (Tag.URL, "b://" + "c@" * 3000)),
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
    "dns": {
        "a": dns("WwW.example.org"),
        "aaaa-opt": dns("example.org", 28, (0, 0, 1), dns_opt()),
        "opt-small": dns("a.b", 1, (0, 0, 1), dns_opt(100)),
        "opt-cookie": dns("a.b", 1, (0, 0, 1), dns_opt(4096, b"\0\x0a\0\x08abcdefgh")),
        "opt-bad-option": dns("a.b", 1, (0, 0, 1), dns_opt(4096, b"\0\x0a\0\x09abcdefgh")),
        "opt-version": dns("a.b", 1, (0, 0, 1), dns_opt(version=1)),
        "opt-twice": dns("a.b", 1, (0, 0, 2), dns_opt() + dns_opt()),
        "root": dns("", 2),
        "any": dns("a.b", 255),
        "null": dns("a.b", 10),
        "txt-chaos": dns("version.bind", 16, klass=3),
        "https": dns("a.b", 65),
        "status": dns("a.b", flags=0x1000),
        "qr": dns("a.b", flags=0x8000),
        "tc": dns("a.b", flags=0x0200),
        "two": dns("a.b", questions=2, after=dns_name("c.d") + b"\0\1\0\1"),
        "none": dns("a.b", questions=0),
        "more": dns("a.b", after=b"\0"),
        "answer-in-question": dns("a.b", 1, (1, 0, 0), dns_record(b"\xc0\x0c", 1, b"\1\2\3\4")),
        "nul": dns(b"\x05no\0ok\4test\0"),
        "dot": dns(b"\x05no.ok\4test\0"),
        "blank": dns("a b.test"),
        "control": dns("a\tb.test"),
        "beyond-ascii": dns(b"\4\xc3\xa9xx\4test\0"),
        "pointer": dns(b"\xc0\x0c"),
        "label-type": dns(b"\x41\0"),
        "longest": dns(".".join(["a" * 63] * 3 + ["b" * 61])),
        "too-long": dns(".".join(["a" * 63] * 3 + ["b" * 62])),
        "cut": dns("example.org")[:-5],
        "result": dns_result("a.test", dns_record(b"\xc0\x0c", 1, b"\1\2\3\4"), dns_record("A.test", 1, b"\5\6\7\x08")),
        "result-v6": dns_result("a.test", dns_record(b"\xc0\x0c", 28, bytes(range(16))), kind=28),
        "result-cname": dns_result(
            "a.test", dns_record("b.test", 1, b"\1\2\3\4"), dns_record(b"\xc0\x0c", 5, b"\1b\xc0\x0e")),
        "result-ring": dns_result(
            "a.test", dns_record(b"\xc0\x0c", 5, b"\1b\xc0\x0e"), dns_record("b.test", 5, b"\xc0\x0c")),
        "result-loop": dns_result("a.test", dns_record(b"\xc0\x18", 1, b"\1\2\3\4")),
        "result-forward": dns_result("a.test", dns_record(b"\xc0\x22", 1, b"\1\2\3\4")),
        "result-odd-alias": dns_result(
            "a.test", dns_record(b"\xc0\x0c", 5, b"\3b.\0\0"), dns_record(b"\3b.\0\0", 1, b"\1\2\3\4")),
        "result-short-data": dns_result("a.test", dns_record(b"\xc0\x0c", 1, b"\1\2\3")),
        "result-tc": dns_result("a.test", flags=0x8380),
        "result-nxdomain": dns_result("a.test", flags=0x8183),
        "result-opt": dns("a.test", 1, (0, 0, 1), dns_opt(), flags=0x8180),
        "result-many": dns_result("a.test", *[dns_record(b"\xc0\x0c", 1, bytes([1, 2, 3, n])) for n in range(40)]),
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
    "denial": {
        "all": DENIAL,
        "cut": DENIAL[:-5],
        "protocol-only": denial(port=0),
        "no-protocol": raw(210, b"a\0"),
        "unknown-protocol": denial(protocol=6),
        "port-too-large": denial(port=65536),
        "short-number": denial((215, b"1234")),
        "long-text": denial((214, b"r" * 1023 + b"\0")),
        "too-long-text": denial((214, b"r" * 1024 + b"\0")),
        "not-terminated": denial((210, b"a")),
        "twice": DENIAL + DENIAL,
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
        "pin": b"db.example=10.20.0.7",
        "pin-v6": b"A.test=fd00::1",
        "publish": b"[::1]:0:80",
        "publish-v4": b"0.0.0.0:8080:80",
        "resolver": b"[2620:fe::fe]:53",
        "proxy": b"http://proxy.example:3128/",
        "proxy-user": b"http://me:pw@proxy.example",
        "wide": b"::/1",
        "deep": b"*.a.b.c.d.e.f.g.test:22",
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
    "resolve": {
        "question": struct.pack("<IB", 7, 1) + b"www.example.org",
        "question-longest": struct.pack("<IB", 7, 1) + b".".join([b"a" * 63] * 3 + [b"a" * 61]),
        "question-too-long": struct.pack("<IB", 7, 1) + b".".join([b"a" * 63] * 3 + [b"a" * 62]),
        "question-kind": struct.pack("<IB", 7, 2) + b"example.org",
        "question-dots": struct.pack("<IB", 7, 1) + b"a..b",
        "question-zero": struct.pack("<IB", 7, 1) + b"a\0b",
        "not-found": struct.pack("<IBBH", 1, 1, 0, 0),
        "failed": struct.pack("<IBBH", 2, 2, 0, 0),
        "found": struct.pack("<IBBH", 3, 0, 2, 0) + b"\4\x7f\0\0\1" + b"\0" * 12 + b"\6" + b"\xfe" * 16,
        "found-cut": struct.pack("<IBBH", 3, 0, 2, 0) + b"\6" + b"\xfe" * 16,
        "found-none": struct.pack("<IBBH", 3, 0, 0, 0),
        "found-most": struct.pack("<IBBH", 3, 0, 32, 0) + (b"\6" + b"\xfe" * 16) * 32,
        "found-long-v4": struct.pack("<IBBH", 3, 0, 1, 0) + b"\4" + b"\1" * 16,
    },
    "sandbox_info": {
        "empty": b"",
        "sandbox": SANDBOX,
        "sandbox-cut": SANDBOX[:-1],
        "sandbox-no-id": encode((Tag.STATE, 1)),
        "sandbox-state": encode((Tag.SANDBOX_ID, "x"), (Tag.STATE, 5)),
        "sandbox-published": encode(
            (Tag.SANDBOX_ID, "x"), (Tag.POLICY_GENERATION, 3),
            *((Tag.PUBLISHED, f"127.0.0.1:{i}:80") for i in range(300))),
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
    "http_head": {
        "empty": b"",
        "get": http(HTTP_GET + "\n"),
        "one-byte-at-a-time": http(HTTP_POST + "Content-Length: 5\n\nhello" + HTTP_GET + "\n", 0),
        "pipelined": http((HTTP_GET + "\n") * 4),
        "old-with-host": http("GET / HTTP/1.0\nHost: example.org\nConnection: keep-alive\n\n"),
        "length-and-coding": http(HTTP_POST + "Content-Length: 4\nTransfer-Encoding: chunked\n\n1\nZ\nQ"),
        "coding-and-length": http(HTTP_POST + "Transfer-Encoding: chunked\nContent-Length: 4\n\n1\nZ\nQ"),
        "coding-twice": http(HTTP_POST + "Transfer-Encoding: chunked\nTransfer-encoding: x\n\n0\n\n"),
        "coding-list": http(HTTP_POST + "Transfer-Encoding: chunked, identity\n\n0\n\n"),
        "coding-unknown": http(HTTP_POST + "Transfer-Encoding: xchunked\n\n0\n\n"),
        "coding-tab": http(HTTP_POST + "Transfer-Encoding:\tchunked\n\n0\n\n"),
        "coding-vertical-tab": http(HTTP_POST + "Transfer-Encoding:\x0bchunked\n\n0\n\n"),
        "coding-old": http("POST / HTTP/1.0\nHost: a\nTransfer-Encoding: chunked\n\n0\n\n"),
        "coding-underscore": http(HTTP_POST + "Transfer_Encoding: chunked\n\n0\n\n"),
        "length-twice": http(HTTP_POST + "Content-Length: 5\nContent-Length: 5\n\nhello"),
        "length-list": http(HTTP_POST + "Content-Length: 5, 5\n\nhello"),
        "length-sign": http(HTTP_POST + "Content-Length: +5\n\nhello"),
        "length-octal": http(HTTP_POST + "Content-Length: 010\n\nhello"),
        "length-overflow": http(HTTP_POST + "Content-Length: 18446744073709551617\n\nhello"),
        "length-most": http(HTTP_POST + "Content-Length: 999999999999999999\n\nhello"),
        "folded": http(HTTP_GET + "A: b\n c\n\n"),
        "folded-coding": http(HTTP_POST + "Transfer-Encoding:\n chunked\n\n0\n\n"),
        "bare-lf": b"\7GET / HTTP/1.1\nHost: example.org\n\n",
        "bare-lf-hides-host": http(HTTP_GET) + b"A: b\nHost: other.example\r\n\r\n",
        "bare-cr": http(HTTP_GET) + b"A: b\rHost: other.example\r\n\r\n",
        "nul": http(HTTP_GET + "A: \0\n\n"),
        "space-before-colon": http("GET / HTTP/1.1\nHost : example.org\n\n"),
        "space-first": http("GET / HTTP/1.1\n Host: example.org\n\n"),
        "two-hosts": http(HTTP_GET + "Host: other.example\n\n"),
        "no-host": http("GET / HTTP/1.1\nAccept: */*\n\n"),
        "empty-host": http("GET / HTTP/1.1\nHost:\n\n"),
        "host-upper-case": http("GET / HTTP/1.1\nHOST: EXAMPLE.Org:80\n\n"),
        "host-user": http("GET / HTTP/1.1\nHost: user@example.org\n\n"),
        "host-path": http("GET / HTTP/1.1\nHost: example.org/x\n\n"),
        "host-port": http("GET / HTTP/1.1\nHost: example.org:8080\n\n"),
        "host-port-large": http("GET / HTTP/1.1\nHost: example.org:65536\n\n"),
        "host-v6": http("GET / HTTP/1.1\nHost: [2001:DB8::1]:80\n\n"),
        "host-v6-open": http("GET / HTTP/1.1\nHost: [2001:db8::1\n\n"),
        "absolute": http("GET http://EXAMPLE.org:80/x HTTP/1.1\nHost: example.org\n\n"),
        "absolute-differs": http("GET http://other.example/x HTTP/1.1\nHost: example.org\n\n"),
        "absolute-user": http("GET http://a@example.org/x HTTP/1.1\nHost: example.org\n\n"),
        "absolute-no-path": http("GET http://example.org?q HTTP/1.1\nHost: example.org:80\n\n"),
        "options": http("OPTIONS * HTTP/1.1\nHost: example.org\n\n"),
        "connect": http("CONNECT example.org:443 HTTP/1.1\nHost: example.org\n\n"),
        "http-2": http("PRI * HTTP/2.0\n\nSM\n\n"),
        "http-0.9": http("GET /\n"),
        "websocket": http(HTTP_GET + "Connection: Upgrade\nUpgrade: websocket\n\n" + HTTP_GET + "\n"),
        "websocket-late": http(HTTP_GET + "\n" + HTTP_GET + "Connection: Upgrade\nUpgrade: websocket\n\n"),
        "h2c": http(HTTP_GET + "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AA\n\n"),
        "connection-host": http(HTTP_GET + "Connection: close, host\n\n"),
        "expect": http(HTTP_POST + "Expect: 100-continue\nContent-Length: 2\n\nxx"),
        "get-body": http(HTTP_GET + "Content-Length: 3\n\nGET" + HTTP_GET + "\n"),
        "head-body": http("HEAD / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1\nx\n0\n\n"),
        "chunks": http(HTTP_CHUNKED + "5\nhello\nA;x=\"y;z\"\n0123456789\n000\n\n" + HTTP_GET + "\n"),
        "chunk-looks-like-end": http(HTTP_CHUNKED + "7\n0\n\nGE\n0\n\n" + HTTP_GET + "\n"),
        "chunk-overflow": http(HTTP_CHUNKED + "10000000000000005\nhello\n"),
        "chunk-sign": http(HTTP_CHUNKED + "-5\nhello\n"),
        "chunk-prefix": http(HTTP_CHUNKED + "0x5\nhello\n"),
        "chunk-space": http(HTTP_CHUNKED + "5 \nhello\n"),
        "chunk-bare-lf": http(HTTP_CHUNKED) + b"5;a\nb\r\nhello\r\n0\r\n\r\n",
        "chunk-extension-long": http(HTTP_CHUNKED + "5;" + "x" * 1100 + "\nhello\n"),
        "chunk-end-wrong": http(HTTP_CHUNKED + "5\nhelloX\n0\n\n"),
        "trailers": http(HTTP_CHUNKED + "0\nX-Sum: 1\nX-More:\n\n" + HTTP_GET + "\n"),
        "trailer-host": http(HTTP_CHUNKED + "0\nA: b\nHost: other.example\n\n"),
        "trailer-length": http(HTTP_CHUNKED + "0\nContent-Length: 5\n\n"),
        "method-longest": http("M" * 31 + " / HTTP/1.1\nHost: a\n\n"),
        "method-too-long": http("M" * 32),
        "head-too-long": http(HTTP_GET + "A: " + "x" * 65536),
        "tls": b"\7\x16\x03\x01\0\x40",
        "answer": http("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
        "answer-interim": http("HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Hints\nA: b\n\nHTTP/1.0 404\n\n"),
        "answer-switch": http("HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\n\n\x81"),
        "answer-proxy": http("HTTP/1.0 200 Connection established\n\nSSH-2.0-x\n"),
        "answer-bare-lf": b"\7HTTP/1.1 200 OK\n\n",
    },
    "cgroup_find": {
        "unified": b"0::/user.slice/a b\n\0" + CGROUP2_MOUNT,
        "hybrid": b"4:memory:/jobs/one\n2:cpuacct,cpu:/\n1:name=systemd:/\n0::/\n\0" + CGROUP1_MOUNTS + CGROUP2_MOUNT,
        "part": b"0::/box/a b/in\n\0" + b"31 22 0:26 /box/a\\040b /my\\040groups rw - cgroup2 none rw\n",
        "outside": b"0::/../x\n\0" + CGROUP2_MOUNT,
        "optional-fields": b"0::/\n\0" + b"30 22 0:26 / /c rw shared:1 master:2 - cgroup2 c rw\n",
        "cut": b"0::/\n\0" + CGROUP2_MOUNT[:-4],
        "long": b"0::/" + b"a" * 5000 + b"\n\0" + CGROUP2_MOUNT,
        "long-mount": b"0::/\n\0" + CGROUP2_MOUNT.replace(b"/sys", b"/" + b"s" * 5000),
        "escapes": b"0::/\n\0" + CGROUP2_MOUNT.replace(b"/sys", b"/\\000\\777\\9\\"),
        "events": b"low 0\noom 2\noom_kill 3\noom_group_kill 0\n",
        "control": b"oom_kill_disable 0\nunder_oom 0\noom_kill 18446744073709551616\n",
        "words": b"cpuset cpu io memory pids\n",
    },
    "netlink": {
        "acknowledged": netlink(2, struct.pack("=i", 0) + bytes(16)),
        "refused": netlink(2, struct.pack("=i", -1) + netlink(2560, bytes(4)) + attribute(1, b"no such thing\0")),
        "no-error": netlink(2, struct.pack("=i", 5)),
        "two": netlink(2, struct.pack("=i", 0) + bytes(16)) + netlink(3, bytes(4), 2),
        "nested": netlink(16, attribute(0x8001, attribute(0x4002, attribute(3, b"abc")) + attribute(4, b""))),
        "filling": netlink(16, attribute(1, b"a") + attribute(2, b"b")[:5]),
        "too-long": netlink(16, b"abcd", length=2**32 - 1),
        "too-short": netlink(16, b"abcd", length=15),
        "attribute-too-long": netlink(16, attribute(1, b"abcd", length=65535)),
        "attribute-too-short": netlink(16, attribute(1, b"abcd", length=3)),
    },
    "nflog": {
        "tcp": logged(ipv4(6, PORTS), SEQUENCE),
        "udp-options": logged(ipv4(17, PORTS, words=15)),
        "icmp": logged(ipv4(1, b"\x08\0")),
        "fragment": logged(ipv4(6, PORTS, fragment=0x2001), SEQUENCE),
        "tcp6": logged(ipv6(6, PORTS), SEQUENCE),
        "extensions": logged(ipv6(0, b"\x3c\1" + bytes(14) + b"\x2c\0" + bytes(6) + b"\x33\0" + bytes(6) + b"\x11\1" +
                                  bytes(10) + PORTS)),
        "endless-extensions": logged(ipv6(0, bytes(128))),
        "later-fragment6": logged(ipv6(44, b"\6\0\0\x08" + bytes(4) + PORTS)),
        "half-header": logged(ipv4(6, b"")[:19]),
        "small-header": logged(b"\x44" + ipv4(6, PORTS)[1:]),
        "no-packet": logged(b"\x5f" * 40),
        "none": struct.pack(">BBH", 1, 0, 7),
        "trailing": logged(ipv4(6, PORTS), b"\3\0\0\0"),
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
    # The seeds real-* beside these were caught from the clients in their names.
    "tls_hello": {
        "empty": b"",
        "name": client_hello(TLS_NAME),
        "many-records": client_hello(TLS_NAME, piece=7),
        "one-byte-records": client_hello(TLS_NAME, piece=1),
        "larger-than-a-record": client_hello(tls_extension(21, bytes(20000)), TLS_NAME),
        "larger-than-allowed": client_hello(tls_extension(21, bytes(65400))),
        "records-larger-than-allowed": client_hello(tls_extension(21, bytes(12000)), piece=1),
        "no-name": client_hello(tls_extension(43, b"\2\3\4")),
        "address-as-name": client_hello(tls_names(tls_name(b"192.0.2.1"))),
        "two-names": client_hello(tls_names(tls_name(b"example.org"), tls_name(b"other.example"))),
        "two-kinds": client_hello(tls_names(tls_name(b"other", 1), tls_name(b"example.org"))),
        "two-lists": client_hello(TLS_NAME, TLS_NAME),
        "empty-list": client_hello(tls_names()),
        "empty-name": client_hello(tls_names(tls_name(b""))),
        "zero-byte": client_hello(tls_names(tls_name(b"example.org\0.other.example"))),
        "longest-name": client_hello(tls_names(tls_name(b"a" * 255))),
        "too-long-name": client_hello(tls_names(tls_name(b"a" * 256))),
        "odd-bytes": client_hello(tls_names(tls_name(b" EXAMPLE\x01\xff."))),
        "ech": client_hello(TLS_ECH, TLS_NAME),
        "ech-without-name": client_hello(TLS_ECH),
        "grease": client_hello(tls_extension(0x1a1a), TLS_NAME, TLS_ECH, tls_extension(0xaaaa, b"\0")),
        "grease-twice": client_hello(tls_extension(0x1a1a), TLS_NAME, tls_extension(0x1a1a)),
        "early-data": client_hello(TLS_NAME, tls_extension(42)) + b"\x14\3\3\0\1\1\x17\3\3\0\3abc",
        "sslv2": b"\x80\x2e\1\3\1\0\x15\0\0\0\x10\1\0\x80" + bytes(34),
        "sslv2-version": client_hello(TLS_NAME, version=0x002),
        "alert-first": b"\x15\3\1\0\2\2\x28" + client_hello(TLS_NAME),
        "alert-within": TLS_PIECES[:45] + b"\x15\3\1\0\2\1\0" + TLS_PIECES[45:],
        "server-hello": b"\x16\3\1\0\x30\2" + bytes(47),
        "dtls": b"\x16\xfe\xff" + bytes(20),
        "truncated": client_hello(TLS_NAME)[:-5],
        "cut-header": client_hello(TLS_NAME)[:3],
        "trailing-in-record": client_hello(TLS_NAME, more=b"\x0e\0\0\0"),
        "trailing-record": client_hello(TLS_NAME) + client_hello(TLS_NAME),
        "empty-record": TLS_PIECES[:45] + b"\x16\3\1\0\0" + TLS_PIECES[45:],
        "record-too-large": b"\x16\3\1\x40\1\1\0\x3f\xfd",
        "session-too-long": client_hello(TLS_NAME, session=b"s" * 33),
        "http": b"GET / HTTP/1.1\r\n\r\n",
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
