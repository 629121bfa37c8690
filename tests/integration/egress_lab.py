# SPDX-License-Identifier: Apache-2.0
"""A small internet of its own for the tests of what leaves a sandbox.

    lab host  172.31.0.1, fd99::1          everything else: the servers' network namespace
    (atoll runs here)      ── veth ──      172.31.0.2, fd99::2, and every other address there is

Both are network namespaces that a test makes, as root or as an ordinary user, and that go with it; no
packet touches the real host's interfaces. In the servers' namespace every address is local, so that
a server there answers at whatever address a test likes: public, private, metadata. The lab host has
a resolv.conf, hosts and nsswitch.conf of its own. It keeps each packet that leaves it, and the name
server keeps each question.

    with Lab({"ok.test": ["93.184.215.14"]}) as lab:
        run = lab.atoll("run", "--allow", "ok.test:80", "--", "curl", "-s", "http://ok.test/")
        lab.questions(), lab.packets()
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ATOLL = os.environ.get("ATOLL") or str(Path(__file__).resolve().parents[2] / "build/atoll")
CLONE_NEWNET = 0x40000000
HOST4, SERVERS4 = "172.31.0.1", "172.31.0.2"
HOST6, SERVERS6 = "fd99::1", "fd99::2"
LIMIT_S = 60
MARK_PORT = 9  # at the servers; a datagram to it tells that the capture has read what came before
PR_SET_PDEATHSIG = 1


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# What runs in the servers' namespace


class NameServer(threading.Thread):
    """Answers A and AAAA from a table, by UDP and TCP; notes each question."""

    def __init__(self, table):
        super().__init__(daemon=True)
        self.table = table
        self.log = []
        self.silent = set()  # names that get no answer

    def answer(self, msg):
        ident, _, _ = struct.unpack("!HHH", msg[:6])
        at, labels = 12, []
        while msg[at]:
            labels.append(msg[at + 1 : at + 1 + msg[at]].decode("latin-1"))
            at += msg[at] + 1
        kind, _ = struct.unpack("!HH", msg[at + 1 : at + 5])
        name = ".".join(labels).lower()
        self.log.append([name, kind])
        if name in self.silent:
            return None
        found = self.table.get(name)
        if callable(found):
            found = found()
        records, owner = b"", struct.pack("!H", 0xC00C)
        n = 0
        for address in found or []:
            if address.startswith("CNAME "):  # and then the addresses that the other name has
                data = b"".join(bytes([len(x)]) + x.encode() for x in address[6:].split(".")) + b"\0"
                owner = struct.pack("!H", 0xC000 | 12 + len(msg[12 : at + 5]) + len(records) + 12)
                records += struct.pack("!HHHIH", 0xC00C, 5, 1, 1, len(data)) + data
                n += 1
                continue
            v6 = ":" in address
            if kind != (28 if v6 else 1):
                continue
            data = socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, address)
            records += owner + struct.pack("!HHIH", kind, 1, 1, len(data)) + data
            n += 1
        rcode = 0 if found is not None else 3
        head = struct.pack("!HHHHHH", ident, 0x8180 | rcode, 1, n, 0, 0)
        return head + msg[12 : at + 5] + records

    def run(self):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((SERVERS4, 53))
        threading.Thread(target=self.serve_tcp, daemon=True).start()
        while True:
            msg, peer = sock.recvfrom(4096)
            answer = self.answer(msg)
            if answer:
                sock.sendto(answer, peer)

    def serve_tcp(self):
        listener = socket.create_server((SERVERS4, 53))
        while True:
            conn, _ = listener.accept()
            with conn:
                size = struct.unpack("!H", conn.recv(2, socket.MSG_WAITALL))[0]
                answer = self.answer(conn.recv(size, socket.MSG_WAITALL))
                if answer:
                    conn.sendall(struct.pack("!H", len(answer)) + answer)


class Threaded(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that goes away is nothing to tell of."""


class Http(socketserver.StreamRequestHandler):
    """HTTP/1.1 as far as tests need it: answers what it was asked for, and where."""

    def handle(self):
        while True:
            line = self.rfile.readline(65536)
            if not line.strip():
                return
            fields = {}
            while True:
                field = self.rfile.readline(65536).strip()
                if not field:
                    break
                key, _, value = field.decode("latin-1").partition(":")
                fields[key.lower()] = value.strip()
            body = self.rfile.read(int(fields.get("content-length", 0)))
            if fields.get("upgrade", "").lower() == "websocket" and b"/refuse" not in line:
                self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                 b"Connection: Upgrade\r\n\r\n")
                while chunk := self.request.recv(65536):
                    self.wfile.write(chunk)
                return
            text = json.dumps({"line": line.decode("latin-1").strip(), "host": fields.get("host"),
                               "at": self.request.getsockname()[0].removeprefix("::ffff:"),
                               "body": len(body)}).encode() + b"\n"
            self.server.lab.note("http", fields.get("host"), line.decode("latin-1").strip())
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             b"Content-Length: %d\r\n\r\n" % len(text) + text)


class Tls(Http):
    """The same over TLS; the certificate names what the lab's table names."""

    def setup(self):
        try:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        except (OSError, ssl.SSLError):
            self.server.lab.note("tls-failed", None, self.client_address[0])
            self.request.close()
            self.request = socket.socketpair()[0]
            self.request.shutdown(socket.SHUT_RDWR)
        super().setup()


class Greeting(socketserver.BaseRequestHandler):
    """Speaks first, as ssh and databases do; then echoes."""

    def handle(self):
        self.request.sendall(b"hello from %s\n" % self.request.getsockname()[0].encode())
        while chunk := self.request.recv(65536):
            self.request.sendall(chunk)


class Sink(socketserver.BaseRequestHandler):
    """Reads to the end, then says how many bytes came."""

    def handle(self):
        n = 0
        while chunk := self.request.recv(65536):
            n += len(chunk)
        self.request.sendall(b"%d\n" % n)


class Source(socketserver.BaseRequestHandler):
    """Sends as many bytes as the first line says."""

    def handle(self):
        n = int(self.request.makefile().readline())
        block = bytes(range(256)) * 256
        while n > 0:
            self.request.sendall(block[: min(n, len(block))])
            n -= min(n, len(block))


GREETING_PORT, SINK_PORT, SOURCE_PORT, UDP_PORT = 2222, 2223, 2224, 2225


def udp_echo(family, port):
    """Answers each datagram from the address that it was sent to."""
    v6 = family == socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if v6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, 49, 1)  # IPV6_RECVPKTINFO
        sock.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND: the address is of no interface
    else:
        sock.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
    sock.bind(("", port))
    while True:
        data, notes, _, peer = sock.recvmsg(65536, 256)
        for level, kind, value in notes:
            source = value[:16] + bytes(4) if v6 else bytes(4) + value[4:8] + bytes(4)
            sock.sendmsg([data], [(level, kind, source)], 0, peer)


class Servers:
    """The other end of the veth pair."""

    def __init__(self, table, certificate, left_free=()):
        self.notes = []
        self.names = NameServer(table)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # Every address is local but the lab host's, which therefore needs a route in the same table.
        for command in (f"addr add {SERVERS4}/24 dev in", f"-6 addr add {SERVERS6}/64 dev in nodad",
                        "link set in up", "route add local 0.0.0.0/0 dev lo table local",
                        "-6 route add local ::/0 dev lo table local",
                        f"route add {HOST4}/32 dev in table local",
                        f"-6 route add {HOST6}/128 dev in table local"):
            subprocess.run(["ip", *command.split()], check=True)
        self.names.start()
        for port, handler in ((80, Http), (8080, Http), (443, Tls), (8443, Tls), (22, Greeting),
                              (GREETING_PORT, Greeting), (SINK_PORT, Sink), (SOURCE_PORT, Source),
                              (53, Greeting)):
            if port not in left_free:
                self.serve(port, handler, certificate)
        for family in (socket.AF_INET, socket.AF_INET6):
            for port in (UDP_PORT, 443, 5353):
                threading.Thread(target=udp_echo, args=(family, port), daemon=True).start()

    def note(self, *what):
        self.notes.append(what)

    def serve(self, port, handler, certificate):
        # Port 53 by TCP of 172.31.0.2 is the name server's; elsewhere it greets.
        server = Threaded(("::", port), handler, bind_and_activate=False)
        if port == 53:
            server.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.server_bind()
        server.server_activate()
        server.lab = self
        if handler is Tls:
            server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            server.context.load_cert_chain(certificate)
        threading.Thread(target=server.serve_forever, daemon=True).start()


# What runs on the lab host


# What a host sends by itself (type of ICMP: RFC 792, 4443, 4861): errors, neighbours and routers.
OWN_ICMP = {(1, 3), (58, 1), *((58, kind) for kind in range(133, 138))}


def watch_packets(packets, others, marks):
    """Keeps where each packet that leaves the lab host is going."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    while True:
        data, (interface, kind, direction, _, _) = sock.recvfrom(2048)
        if interface == "lo" or direction != socket.PACKET_OUTGOING:
            continue
        if kind == 0x0800:
            address, protocol = socket.inet_ntop(socket.AF_INET, data[16:20]), data[9]
            payload = data[(data[0] & 15) * 4 :]
        elif kind == 0x86DD:
            address, protocol, payload = socket.inet_ntop(socket.AF_INET6, data[24:40]), data[6], data[40:]
        else:
            continue
        if protocol not in (6, 17):
            if address != "ff02::16" and (protocol, payload[0]) not in OWN_ICMP:
                others.append([address, protocol])
            continue
        port = struct.unpack("!H", payload[2:4])[0]
        if (address, protocol, port) == (SERVERS4, 17, MARK_PORT):
            marks.release()
            continue
        packets.append([address, protocol, port, payload.hex()[:512]])


def _host_files(folder):
    files = {"resolv.conf": f"nameserver {SERVERS4}\noptions timeout:2 attempts:2\n",
             "hosts": "127.0.0.1 localhost\n::1 localhost\n",
             "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"}
    for name, text in files.items():
        path = folder / name
        path.write_text(text)
        subprocess.run(["mount", "--bind", path, f"/etc/{name}"], check=True)


def host_main(folder, table, certificate, left_free):
    """The lab host: makes both namespaces, then answers questions on stdin, one JSON line each."""
    _die_with_parent()
    packets, others = [], []
    ready, started = os.pipe(), os.pipe()
    questions, answers = socket.socketpair()
    child = os.fork()
    if child == 0:
        _die_with_parent()
        ctypes.CDLL(None).unshare(CLONE_NEWNET)
        os.write(ready[1], b"x")
        os.read(started[0], 1)
        servers = Servers(table, certificate, left_free)
        answers.sendall(b"up\n")
        for line in answers.makefile():
            order = json.loads(line)
            if "table" in order:
                servers.names.table.update(order["table"])
            if "silent" in order:
                servers.names.silent = set(order["silent"])
            reply = {"questions": servers.names.log, "notes": servers.notes}
            answers.sendall(json.dumps(reply).encode() + b"\n")
        os._exit(0)
    os.read(ready[0], 1)
    _host_files(Path(folder))
    for command in ("link set lo up", f"link add out type veth peer name in netns {child}",
                    f"addr add {HOST4}/24 dev out", f"-6 addr add {HOST6}/64 dev out nodad",
                    "link set out up", f"route add default via {SERVERS4}",
                    f"-6 route add default via {SERVERS6}"):
        subprocess.run(["ip", *command.split()], check=True)
    marks, mark = threading.Semaphore(0), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    threading.Thread(target=watch_packets, args=(packets, others, marks), daemon=True).start()
    os.write(started[1], b"x")
    lines = questions.makefile()
    lines.readline()
    print(json.dumps({"pid": os.getpid(), "servers": child}), flush=True)
    for line in sys.stdin:
        questions.sendall(line.encode())
        reply = json.loads(lines.readline())
        mark.sendto(b"", (SERVERS4, MARK_PORT))
        if not marks.acquire(timeout=LIMIT_S):
            raise RuntimeError("the capture does not read")
        reply["packets"], reply["others"] = packets, others
        print(json.dumps(reply), flush=True)
    os.kill(child, signal.SIGKILL)


# What tests use


class Lab:
    """A lab that runs; a context manager. `table`: addresses of each name; None: no such name.

    `left_free`: TCP ports at the other end that a test's own servers take.
    """

    def __init__(self, table, certificate_names=(), left_free=()):
        self.table, self.left_free = table, list(left_free)
        self.folder = Path(tempfile.mkdtemp(prefix="egress-lab-"))
        self.folder.chmod(0o755)
        self.state = self.folder / "state"
        self.ca = self.folder / "ca.pem"
        self._make_certificate(sorted({*certificate_names, *table}))
        self.seen_packets = self.seen_questions = self.seen_others = 0

    def _make_certificate(self, names):
        """One for all names, signed by itself."""
        key, names = self.folder / "key.pem", [name for name in names if name]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", self.ca, "-days", "3650", "-subj", "/CN=lab",
                        "-addext", "subjectAltName=" + ",".join(f"DNS:{n}" for n in names or ["lab.test"])],
                       check=True, capture_output=True)
        self.certificate = self.folder / "server.pem"
        self.certificate.write_text(key.read_text() + self.ca.read_text())

    def __enter__(self):
        command = ["unshare", "--net", "--mount", "--propagation", "private"]
        if os.geteuid() != 0:
            command += ["--user", "--map-root-user"]
        self.process = subprocess.Popen(
            [*command, sys.executable, __file__, str(self.folder), json.dumps(self.table), str(self.certificate),
             json.dumps(self.left_free)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if not first:
            raise RuntimeError("the lab did not start")
        self.pids = json.loads(first)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(LIMIT_S)
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ask(self, order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def set_names(self, table):
        """Other addresses for some names."""
        self._ask({"table": table})

    def set_silent(self, names):
        """These names get no answer from the name server."""
        self._ask({"silent": list(names)})

    def questions(self):
        """Names that the name server was asked for, and the type, since the last call."""
        log = self._ask({})["questions"]
        new, self.seen_questions = log[self.seen_questions :], len(log)
        return [tuple(item) for item in new]

    def notes(self):
        """What the servers have seen since the lab began."""
        return [tuple(item) for item in self._ask({})["notes"]]

    def packets(self):
        """(address, protocol number, port, first bytes as hex) of what left since the last call."""
        time.sleep(0.05)  # what is on its way out
        log = self._ask({})["packets"]
        new, self.seen_packets = log[self.seen_packets :], len(log)
        return [tuple(item) for item in new]

    def other_packets(self):
        """(address, protocol number) of what was neither TCP nor UDP, since the last call."""
        time.sleep(0.05)
        log = self._ask({})["others"]
        new, self.seen_others = log[self.seen_others :], len(log)
        return [tuple(item) for item in new]

    def wrap(self, argv, place="pid"):
        """A command line that runs in the lab host, or with place="servers" at the other end."""
        enter = ["nsenter", "-t", str(self.pids[place]), "--net", "--mount"]
        if os.geteuid() != 0:
            enter += ["--user", "--preserve-credentials"]
        return [*enter, "--", *map(str, argv)]

    def run(self, *argv, place="pid", timeout=LIMIT_S, text=True, **options):
        """Runs a program on the lab host."""
        env = {**os.environ, "ATOLL_STATE_DIR": str(self.state), **options.pop("env", {})}
        return subprocess.run(self.wrap(argv, place), env=env, capture_output=True, text=text,
                              timeout=timeout, **{"stdin": subprocess.DEVNULL, **options})

    def start(self, *argv, place="pid", **options):
        """Starts a program on the lab host, or at the other end."""
        env = {**os.environ, "ATOLL_STATE_DIR": str(self.state), **options.pop("env", {})}
        return subprocess.Popen(self.wrap(argv, place), env=env, **options)

    def atoll(self, *argv, **options):
        return self.run(ATOLL, *argv, **options)


if __name__ == "__main__":
    host_main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
