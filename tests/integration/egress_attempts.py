# SPDX-License-Identifier: Apache-2.0
"""Attempts to get around the policy: made inside a sandbox of egress_lab, with bytes that no library would send.

Cases are made here and tried inside by the small programs below, many in one sandbox. Each comes back with
what it got; what was refused is in `denied` of the run's result, and what left the lab host in the lab's capture.
"""
import functools
import json
import shutil
import ssl
import struct
import unittest
from contextlib import contextmanager

import egress_lab
from egress_lab import Lab

PYTHON = "/usr/bin/python3"
OK4, OK6, OTHER4, OTHER6, PRIVATE4 = "93.184.215.14", "2a00:1450::14", "151.101.1.69", "2a04:4e42::69", "10.20.0.5"

# What is said to be `no.test` by one reader of names and `ok.test` by another; at most one form of each is a name.
ODD_NAMES = [
    b"no.test\0.ok.test", b"ok.test\0", b"ok.test\0.no.test", b"no.test%00.ok.test", b"no.test#.ok.test",
    b"no.test/.ok.test", b"no.test\\.ok.test", b"no.test?.ok.test", b"user@no.test", b"ok.test@no.test",
    b"no.test@ok.test", b"no.test\r\n.ok.test", b"no.test\n.ok.test", b"no.test\x7f.ok.test", b"no.test;ok.test",
    b"no.test,ok.test", b"no.test .ok.test", b"ok.test no.test", b"ok.test..", b".ok.test", b"ok..test",
    b"ok.test:443:80", b"xok.test", b"ok.test.no.test", b"ok-test", b"ok", b"test", b"*.test", b"*",
    "ok\u3002test".encode(), "\u043ek.test".encode(), "ok.t\u00e9st".encode(), b"ok\xff.test", b"xn--ok-.test",
    b"xn--k-emb.test", b"xn--.test", b"%6fk.test", b"o%6b.test", b"(ok.test)", b"'ok.test'", b"\"ok.test\"",
    b"a" * 64 + b".ok.test", b".".join([b"a" * 62] * 4) + b".ok.test", b"0x7f.1", b"017700000001", b"2130706433", b"127.1",
    b"0x7f000001", b"127.0.0.1", b"93.184.215.14", b"[::1]", b"[::ffff:127.0.0.1]", b"::ffff:127.0.0.1", b"localhost",
]

TCP = r"""
import concurrent.futures, json, socket, time

def attempt(c):
    got = b""
    try:
        family, _, _, _, where = socket.getaddrinfo(
            c["to"], c["port"], socket.AF_INET6 if c.get("v6") else socket.AF_INET, socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(c.get("limit", 20))
            s.connect(where)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in c["pieces"]:
                if piece == "answer":  # wait for what the server says first
                    got += s.recv(65536)
                    continue
                s.sendall(bytes.fromhex(piece))
                time.sleep(c.get("gap", 0))
            if c.get("end"):
                try:
                    s.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # it has been reset, which recv() tells
            while got.count(bytes.fromhex(c.get("want", ""))) < c.get("times", 1) or not got:
                chunk = s.recv(65536)
                if not chunk:
                    return {"error": "end", "got": got.hex()}
                got += chunk
        return {"error": None, "got": got.hex()}
    except OSError as e:
        return {"error": type(e).__name__, "got": got.hex()}

with open("/cases.json") as f:
    cases = json.load(f)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(json.dumps(list(pool.map(attempt, cases))))
"""

DNS = r"""
import concurrent.futures, json, socket, struct, time

def by_udp(c, s, where):
    s.connect(where)
    s.send(bytes.fromhex(c["message"]))
    return s.recv(65536)

def by_tcp(c, s, where):
    s.connect(where)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = bytes.fromhex(c["message"])
    for i in range(0, len(stream), c.get("piece", len(stream))):
        s.sendall(stream[i : i + c.get("piece", len(stream))])
        time.sleep(c.get("gap", 0))
    if c.get("end"):
        s.shutdown(socket.SHUT_WR)
    got = b""
    for _ in range(c.get("answers", 1)):
        head = s.recv(2, socket.MSG_WAITALL)
        if len(head) < 2:
            break
        got += head + s.recv(struct.unpack("!H", head)[0], socket.MSG_WAITALL)
    return got

def attempt(c):
    tcp = c.get("tcp")
    family = socket.AF_INET6 if ":" in c["to"] else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
            s.settimeout(c.get("limit", 20))
            got = (by_tcp if tcp else by_udp)(c, s, (c["to"], c.get("port", 53)))
        return {"error": None if got else "end", "got": got.hex()}
    except OSError as e:
        return {"error": type(e).__name__, "got": ""}

with open("/cases.json") as f:
    cases = json.load(f)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(json.dumps(list(pool.map(attempt, cases))))
"""


class AttemptsTest(unittest.TestCase):
    """One lab for all tests of a class."""

    NAMES = {"ok.test": [OK4, OK6], "four.test": [OK4], "no.test": [OTHER4, OTHER6], "a.wild.test": [OK4]}

    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab(cls.NAMES))

    def run_in(self, options, *command, status=0, **more):
        """What a command prints in a sandbox of its own; self.denied: what was refused meanwhile."""
        where = self.lab.folder / "result.json"
        where.unlink(missing_ok=True)
        run = self.lab.atoll("run", *options, "--result", where, "--volume", f"{self.lab.ca}:/ca.pem:ro", "--",
                             *command, **more)
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        result = json.loads(where.read_text())
        self.denied, self.denied_more = result.get("denied", []), result.get("denied_more", 0)
        return run.stdout.strip()

    def attempts(self, options, program, cases):
        """What each case came to, in a sandbox of its own for all of them."""
        path = self.lab.folder / "cases.json"
        path.write_text(json.dumps(cases))
        return json.loads(self.run_in([*options, "--volume", f"{path}:/cases.json:ro"], PYTHON, "-c", program))

    def attempts_denied(self, protocol, name, port=None):
        """How many attempts of this kind the result tells of."""
        return sum(1 + d["repeated"] for d in self.denied
                   if (d["protocol"], d["name"]) == (protocol, name) and port in (None, d["port"]))

    def told(self):
        """How many attempts the result tells of, of whatever kind."""
        return sum(1 + d["repeated"] for d in self.denied) + self.denied_more

    @contextmanager
    def only_questions_for(self, *names, secrets=(b"no.test", b"secret")):
        """Nothing leaves the lab host but questions for these names, and in no packet is one of the words."""
        self.lab.questions(), self.lab.packets()
        yield
        packets = self.lab.packets()
        self.assertEqual({name for name, _ in self.lab.questions()} - set(names), set())
        self.assertEqual([p for p in packets if p[0] != egress_lab.SERVERS4 or p[2] != 53], [])
        if not names:
            self.assertEqual(packets, [])
        self.no_word_in(packets, secrets)

    def no_word_in(self, packets, words=(b"no.test", b"secret")):
        """As text, or as the labels of DNS."""
        sent = [bytes.fromhex(p[3]).lower() for p in packets]
        for word in words:
            for form in (word, b"".join(bytes([len(x)]) + x for x in word.split(b"."))):
                self.assertFalse(any(form in data for data in sent), f"{word} left the host")


def tcp_case(to, port, *pieces, **more):
    return {"to": to, "port": port, "pieces": [p if p == "answer" else p.hex() for p in pieces], **more}


def got(outcome):
    return bytes.fromhex(outcome["got"])


# DNS (RFC 1035, section 4)

A, NS, CNAME, NULL, PTR, MX, TXT, AAAA, SRV, OPT, SVCB, HTTPS, AXFR, ANY = 1, 2, 5, 10, 12, 15, 16, 28, 33, 41, 64, 65, 252, 255
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)


def wire_name(name):
    """A name whose labels are parted by dots; or its labels."""
    labels = name.split(b".") if isinstance(name, bytes) else name
    return b"".join(bytes([len(label) & 255]) + label for label in labels if label) + b"\0"


def query(name, kind=A, cls=1, flags=0x0100, counts=(1, 0, 0, 0), after=b"", ident=0x4142):
    """A question, or as much of one as somebody likes."""
    name = name.encode() if isinstance(name, str) else name
    return (struct.pack("!HHHHHH", ident, flags, *counts) + wire_name(name) + struct.pack("!HH", kind, cls) + after)


def opt_record(size=1232, version=0, options=b"", rdlen=None):
    """An OPT record (RFC 6891, section 6.1.2)."""
    return b"\0" + struct.pack("!HHBBHH", OPT, size, 0, version, 0, len(options) if rdlen is None else rdlen) + options


def opt_option(code, data):
    return struct.pack("!HH", code, len(data)) + data


def udp_case(message, to="198.18.0.1", **more):
    return {"message": message.hex(), "to": to, **more}


def stream_case(*messages, to="198.18.0.1", **more):
    stream = b"".join(struct.pack("!H", len(m)) + m for m in messages)
    return {"message": stream.hex(), "to": to, "tcp": True, "answers": len(messages), **more}


class Answer:
    """What the resolver inside said; `rcode` None: nothing."""

    def __init__(self, outcome, tcp=False):
        self.error = outcome["error"]
        self.message = got(outcome)[2 if tcp else 0 :]
        self.rcode, self.addresses = None, []
        if not self.message:
            return
        self.ident, flags, self.questions, n, self.authorities, self.additionals = struct.unpack("!6H", self.message[:12])
        self.rcode, self.truncated = flags & 15, bool(flags & 0x0200)
        if n == 0:
            return
        at = self.message.index(0, 12) + 5
        for _ in range(n):
            kind, _, _, size = struct.unpack("!HHIH", self.message[at + 2 : at + 12])
            self.addresses.append((kind, self.message[at + 12 : at + 12 + size]))
            at += 12 + size


# TLS (RFC 8446, section 4.1.2)


@functools.lru_cache
def client_hello(name):
    """The message that a client of OpenSSL would send, without its record; name None: without a server name."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()[5:]


def hello_parts(message):
    """What stands before the extensions, and they: [kind, content]."""
    at = 4 + 2 + 32
    at += 1 + message[at]
    at += 2 + struct.unpack("!H", message[at : at + 2])[0]
    at += 1 + message[at]
    extensions, rest = [], message[at + 2 :]
    while rest:
        kind, size = struct.unpack("!HH", rest[:4])
        extensions.append([kind, rest[4 : 4 + size]])
        rest = rest[4 + size :]
    return message[4:at], extensions


def hello_of(head, extensions):
    """A ClientHello of these parts."""
    block = b"".join(struct.pack("!HH", kind, len(content)) + content for kind, content in extensions)
    body = head + struct.pack("!H", len(block)) + block
    return b"\x01" + len(body).to_bytes(3, "big") + body


def server_names(*names, kind=0):
    """The content of a server_name extension (RFC 6066, section 3)."""
    entries = b"".join(bytes([k]) + struct.pack("!H", len(n)) + n
                       for k, n in (n if isinstance(n, tuple) else (kind, n) for n in names))
    return struct.pack("!H", len(entries)) + entries


def hello_for(*names, more=(), server_name=None, drop=()):
    """A ClientHello with these server names, as given, and more extensions at its end."""
    head, extensions = hello_parts(client_hello("ok.test"))
    extensions = [[k, c] for k, c in extensions if k not in drop]
    for extension in extensions:
        if extension[0] == 0:
            extension[1] = server_names(*names) if server_name is None else server_name
    return hello_of(head, [*extensions, *more])


def records(message, size=1 << 14, kind=22, version=0x0301):
    """The message in records of so many bytes."""
    return b"".join(struct.pack("!BHH", kind, version, len(message[i : i + size])) + message[i : i + size]
                    for i in range(0, len(message), size))


def expected_to_run(test, *programs):
    """Skips a test whose clients are not here."""
    for program in programs:
        if not shutil.which(program, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
            test.skipTest(f"{program} is not installed")
