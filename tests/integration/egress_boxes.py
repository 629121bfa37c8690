# SPDX-License-Identifier: Apache-2.0
"""Tests in sandboxes that stand on the lab's host: one for each set of options, for a whole class.

What runs inside is Python with PRELUDE before it; it prints one value as JSON, with show().
"""
import contextlib
import json
import subprocess
import unittest

import egress_lab
from egress_lab import Lab

PYTHON = "/usr/bin/python3"
OK4, OK6 = "93.184.215.14", "2a00:1450::14"  # of names
LISTED4, LISTED6 = "45.33.32.156", "2a01:7e00::5"  # of ranges
OTHER4, OTHER6 = "151.101.1.69", "2a04:4e42::1"  # of nothing
NAMES = {"ok.test": [OK4, OK6], "no.test": [OTHER4, OTHER6]}
RANGES = ("--allow-cidr", "45.33.32.0/24", "--allow-cidr", "2a01:7e00::/32")
BOTH = ("--allow", "ok.test", "--allow", f"ok.test:{egress_lab.GREETING_PORT}", *RANGES)

PRELUDE = """
import ctypes, errno, fcntl, json, os, select, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": {"clone": 56, "unshare": 272, "setns": 308}, "aarch64": {"clone": 220, "unshare": 97, "setns": 268}}
NUMBERS = NUMBERS[os.uname().machine] | {"pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438}  # the same everywhere

def show(value):
    print(json.dumps(value), flush=True)

def text_of(e):
    return errno.errorcode.get(e.errno, type(e).__name__)

def outcome(call, *arguments):
    "What a call gives: its value, or the name of its error."
    try:
        value = call(*arguments)
    except OSError as e:
        return text_of(e)
    return value if isinstance(value, (int, str, list)) else "done"

def syscall(name, *arguments):
    "A call of the kernel's, past the C library."
    r = libc.syscall(NUMBERS.get(name, name), *arguments)
    return r if r >= 0 else errno.errorcode[ctypes.get_errno()]

def family_of(where):
    return socket.AF_INET6 if ":" in where else socket.AF_INET

def tcp(where, port, say=b"", prepare=None):
    "Connects, says something, and tells what came."
    def call():
        with socket.socket(family_of(where), socket.SOCK_STREAM) as s:
            s.settimeout(10)
            if prepare:
                prepare(s)
            s.connect((where, port))
            if say:
                s.sendall(say)
            return s.recv(4096).decode("latin-1").strip() or "end"
    return outcome(call)

def udp(where, port, data=b"ping", prepare=None, wait=10):
    "Sends a datagram, and tells how many bytes came back."
    def call():
        with socket.socket(family_of(where), socket.SOCK_DGRAM) as s:
            s.settimeout(wait)
            if prepare:
                prepare(s)
            s.connect((where, port))
            s.send(data)
            return len(s.recv(65536))
    return outcome(call)
"""


class BoxTest(unittest.TestCase):
    """A class with a lab; its sandboxes go when it is over."""

    names = NAMES
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab(cls.names))
        cls.boxes = {}
        cls.addClassCleanup(cls._remove_all)

    @classmethod
    def _remove_all(cls):
        left = cls.lab.atoll("list", "-q").stdout.split()
        if left:
            cls.lab.atoll("rm", "--force", *left)

    def atoll(self, *argv, **options):
        """Standard output of a command that must succeed."""
        done = self.lab.atoll(*argv, **options)
        self.assertEqual(done.returncode, 0, (argv, done.stderr, done.stdout))
        return done.stdout

    def create(self, *options):
        return self.atoll("create", "--lifetime", "300s", *options).strip()

    def box(self, *options):
        """The class's sandbox with these options."""
        if options not in self.boxes:
            self.boxes[options] = self.create(*options)
        return self.boxes[options]

    def inside(self, box, script, *arguments, **more):
        """What a script shows that runs in a sandbox."""
        out = self.atoll("exec", box, "--", PYTHON, "-c", PRELUDE + script, *map(str, arguments), **more)
        return json.loads(out)

    def begin(self, box, script, *arguments):
        """Starts a script in a sandbox; its standard input and output are pipes."""
        process = self.lab.start(egress_lab.ATOLL, "exec", "-i", box, "--", PYTHON, "-u", "-c", PRELUDE + script,
                                 *map(str, arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(end, process)
        return process

    def server(self, script, place="servers"):
        """A program on the lab's host or at the other end; it has printed a line when this returns."""
        process = self.lab.start(PYTHON, "-u", "-c", PRELUDE + script, place=place, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE)
        self.addCleanup(end, process)
        self.assertTrue(process.stdout.readline(), "the server did not start")
        return process

    @contextlib.contextmanager
    def nothing_leaves(self, *but):
        """Not one packet leaves the lab's host while this holds, of whatever protocol; those to addresses of `but` do
        not count."""
        self.lab.packets(), self.lab.other_packets()
        yield
        self.assertEqual([p for p in self.lab.packets() if p[0] not in but], [])
        self.assertEqual([p for p in self.lab.other_packets() if p[0] not in but], [])

    def denied(self, box):
        """The events of refused attempts."""
        lines = self.atoll("events", box, "--kind", "egress", "--json").splitlines()
        return [json.loads(line) for line in lines]

    def told(self, box):
        """What attempts the events tell of: protocol, name or address, port."""
        return {(e["protocol"], e["name"] or e["address"], e["port"]) for e in self.denied(box)}


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
