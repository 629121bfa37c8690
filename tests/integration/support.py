# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: running atoll, and counting what it left on the host.

What is left is counted with /proc and the file system, never with atoll's own records.
"""
import ctypes
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import json_schema  # noqa: E402

ATOLL = os.environ.get("ATOLL") or str(Path(__file__).resolve().parents[2] / "build/atoll")
LIMIT_S = 60  # for one run; far more than any should need
GONE_S = 5  # for the last traces of an ended sandbox
PYTHON = "/usr/bin/python3"  # the system's own: visible inside too
PR_SET_CHILD_SUBREAPER = 36
SANDBOX_UIDS = range(0x70000000, 0x80000000)  # what the host's root gives to sandboxes

# Orphans come to this process, so that everything a test started stays below it.
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
_held = set()  # process ids that a subprocess object of ours waits for


@dataclass(frozen=True)
class Process:
    """One row of the process table."""

    pid: int
    parent: int
    state: str
    name: str
    arguments: tuple

    @property
    def is_init(self):
        return self.arguments[:1] == (b"atoll-init",)

    @property
    def is_keeper(self):
        return self.name == "atoll-keeper"


def processes():
    """Every process of the host that can be seen."""
    table = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat_line = Path("/proc", entry, "stat").read_text(errors="replace")
            arguments = Path("/proc", entry, "cmdline").read_bytes()
        except OSError:
            continue  # ended meanwhile
        name, rest = stat_line[stat_line.index("(") + 1 :].rsplit(")", 1)
        state, parent = rest.split()[:2]
        arguments = tuple(arguments.split(b"\0")[:-1])
        table.append(Process(int(entry), int(parent), state, name, arguments))
    return table


def descendants(root=None):
    """The living processes below one, or below this test."""
    table = [p for p in processes() if p.state not in "ZX"]
    below = {root or os.getpid()}
    found = []
    while True:
        more = [p for p in table if p.parent in below and p.pid not in below]
        if not more:
            return found
        found += more
        below |= {p.pid for p in more}


def inits():
    return [p for p in descendants() if p.is_init]


def keepers():
    return [p for p in descendants() if p.is_keeper]


def reap_orphans():
    for process in processes():
        if process.parent == os.getpid() and process.state == "Z" and process.pid not in _held:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                pass


def wait_for(condition, what, limit=LIMIT_S):
    """Waits until the condition is true and returns its value; fails when it does not become so."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {limit} s")
        time.sleep(0.01)


@dataclass
class Traces:
    """What a sandbox could leave on the host, but for processes."""

    mounts: frozenset
    cgroups: frozenset
    files: frozenset
    shared_memory: frozenset

    @classmethod
    def now(cls):
        return cls(_mounts(), _cgroups(), _files(), _shared_memory())

    def added_since(self, before):
        """Names of what is there now and was not before."""
        return sorted(
            str(item)
            for field in ("mounts", "cgroups", "files", "shared_memory")
            for item in getattr(self, field) - getattr(before, field)
        )


def _mounts():
    """Mounts, but for those below /sys, which the kernel makes by itself when somebody looks."""
    lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    return frozenset(line for line in lines if not line.split()[4].startswith("/sys/"))


def _cgroups():
    """Those that could be a sandbox's; those of other programs come and go."""
    return frozenset(folder for folder, _, _ in os.walk("/sys/fs/cgroup") if "/atoll" in folder or "/sandbox-" in folder)


def _files():
    """Entries of the shared folders that could be a sandbox's; those of other programs come and go."""
    found = set()
    own = os.geteuid() or None
    for folder in ("/tmp", "/run", "/var/tmp", "/dev/shm", f"/run/user/{os.geteuid()}"):
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(("atoll-tests-", "atoll-bench-")):
                continue  # folders of tests
            try:
                uid = entry.stat(follow_symlinks=False).st_uid
            except OSError:
                continue
            ours = "atoll" in entry.name or entry.name.startswith("sb-")
            if ours or uid == own or uid in SANDBOX_UIDS or folder == "/dev/shm":
                found.add(entry.path)
    return frozenset(found)


def _shared_memory():
    found = set()
    for kind in ("shm", "sem", "msg"):
        try:
            rows = Path("/proc/sysvipc", kind).read_text().splitlines()[1:]
        except OSError:
            continue
        found |= {(kind, row.split()[1]) for row in rows}
    return frozenset(found)


def namespaces():
    """The namespaces that any process which we may look at lives in."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/ns/*"):
        try:
            found.add(os.readlink(path))
        except OSError:
            pass
    return found


def namespaces_of(pid):
    """The namespaces of one process that are not those of this test."""
    mine = {os.readlink(path) for path in Path("/proc/self/ns").iterdir()}
    return {os.readlink(path) for path in Path(f"/proc/{pid}/ns").iterdir()} - mine


@dataclass
class Result:
    """How a client ended, and what it wrote."""

    status: int
    out: bytes
    err: bytes


class Client(subprocess.Popen):
    """A running atoll; its end is always waited for."""

    def __init__(self, arguments, env=None, verb="run", **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("start_new_session", True)
        options.setdefault("cwd", "/")
        environment = {"PATH": os.environ["PATH"]} if env is None else env
        super().__init__([ATOLL, verb, *arguments], env=environment, **options)
        _held.add(self.pid)

    def result(self, data=None, limit=LIMIT_S):
        """Waits for the end; the client is killed when it takes too long."""
        try:
            out, err = self.communicate(data, timeout=limit)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.communicate()
            words = repr(self.args)[:500]
            raise AssertionError(f"{words} did not end within {limit} s: {out!r:.500} {err!r:.500}") from None
        return Result(self.shell_status(), out or b"", err or b"")

    def shell_status(self):
        """The status as a shell says it: 128 + N for an end by signal N."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    def keeper(self):
        """The keeper of this client's sandbox."""
        return wait_for(lambda: [p for p in descendants(self.pid) if p.is_keeper], "a keeper")[0]

    def init(self):
        """Process 1 of this client's sandbox, as the host sees it."""
        return wait_for(lambda: [p for p in descendants(self.pid) if p.is_init], "an init")[0]

    def inside(self, *arguments):
        """A process of the sandbox with these arguments, as the host sees it."""
        wanted = tuple(os.fsencode(a) for a in arguments)
        return wait_for(
            lambda: [p for p in descendants(self.pid) if p.arguments == wanted], f"process {arguments}"
        )[0]


class SandboxTest(unittest.TestCase):
    """A test after which nothing may be left on the host."""

    maxDiff = 4000

    def setUp(self):
        self._before = Traces.now()
        self.addCleanup(self._check_nothing_is_left)

    def folder(self):
        """A new folder, removed after the test; everybody may look into it."""
        name = tempfile.mkdtemp(prefix="atoll-tests-", dir="/tmp")
        self.addCleanup(shutil.rmtree, name, ignore_errors=True)
        os.chmod(name, 0o755)
        return Path(name)

    def start(self, *arguments, **options):
        """Starts atoll run with these arguments; it is killed after the test if it still runs."""
        client = Client(arguments, **options)
        self.addCleanup(self._end, client)
        return client

    def run_atoll(self, *arguments, stdin=None, limit=LIMIT_S, **options):
        """Runs atoll run with these arguments to its end; bytes for stdin go through a pipe."""
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        client = self.start(*arguments, **options)
        return client.result(stdin, limit)

    def sh(self, script, *options, **how):
        """Runs a shell script in a sandbox."""
        return self.run_atoll(*options, "--", "sh", "-c", script, **how)

    def python(self, script, *options, **how):
        """Runs a Python program in a sandbox."""
        return self.run_atoll(*options, "--", PYTHON, "-c", script, **how)

    def output_of(self, script, *options, **how):
        """The output of a shell script that must succeed without a word on standard error."""
        return self._good(self.sh(script, *options, **how))

    def python_output_of(self, script, *options, **how):
        """The output of a Python program that must succeed without a word on standard error."""
        return self._good(self.python(script, *options, **how))

    def _good(self, result):
        self.assertEqual((result.status, result.err), (0, b""), result.out[-2000:])
        return result.out.decode()

    def assert_refused(self, result, *words):
        """Atoll itself did not do it, and says why in words that hold these."""
        self.assertEqual(result.status, 125, result)
        self.assertEqual(result.out, b"")
        self.assertTrue(result.err.startswith(b"atoll: "), result.err)
        for word in words:
            self.assertIn(word, result.err.decode(errors="replace"))

    def assert_gone(self, limit=GONE_S):
        """No process that this test started is left, but for those it waits for itself."""

        def all_gone():
            reap_orphans()
            return not [p for p in descendants() if p.pid not in _held]

        try:
            wait_for(all_gone, "the end of all processes", limit)
        except AssertionError as error:
            raise AssertionError(f"{error}: {descendants()}") from None

    def _end(self, client):
        if client.poll() is None:
            client.kill()
        client.wait()
        for stream in (client.stdin, client.stdout, client.stderr):
            if stream:
                stream.close()
        _held.discard(client.pid)

    def _check_nothing_is_left(self):
        try:
            self.assert_gone()
            wait_for(
                lambda: not Traces.now().added_since(self._before), "the end of all traces", GONE_S
            )
        except AssertionError as error:
            for process in descendants():
                try:
                    os.kill(process.pid, signal.SIGKILL)
                except OSError:
                    pass
            raise AssertionError(f"{error}: {Traces.now().added_since(self._before)}") from None

    def need(self, program):
        """The path of a program of the host that a test cannot do without."""
        path = shutil.which(program)
        if path is None:
            self.skipTest(f"{program} is not installed")
        return path


class HeldTest(SandboxTest):
    """A test with a state folder of its own; sandboxes that it leaves are removed."""

    def setUp(self):
        super().setUp()
        self.state = self.folder() / "state"
        self.env = {"PATH": os.environ["PATH"], "ATOLL_STATE_DIR": str(self.state)}
        self.addCleanup(self._remove_all)

    def begin(self, verb, *arguments, **options):
        """Starts a command of atoll on this test's sandboxes."""
        options["env"] = self.env | options.get("env", {})
        return self.start(*arguments, verb=verb, **options)

    def atoll(self, verb, *arguments, stdin=None, limit=LIMIT_S, **options):
        """Runs a command of atoll to its end; bytes for stdin go through a pipe."""
        data = stdin if isinstance(stdin, bytes) else None
        if stdin is not None:
            options["stdin"] = stdin if data is None else subprocess.PIPE
        return self.begin(verb, *arguments, **options).result(data, limit)

    def good(self, verb, *arguments, **options):
        """Standard output of a command of atoll that must succeed without a word."""
        result = self.atoll(verb, *arguments, **options)
        self.assertEqual((result.status, result.err), (0, b""), (verb, arguments, result.out[-2000:]))
        return result.out

    def json(self, verb, *arguments, **options):
        """What a command prints as JSON, judged by the schema of that name."""
        value = json.loads(self.good(verb, "--json", *arguments, **options))
        json_schema.validate(value, json_schema.load(verb))
        return value

    def create(self, *options):
        """Makes a sandbox; its id."""
        out = self.good("create", *options).decode()
        self.assertRegex(out, r"^sb-[a-z2-7]{26}\n$")
        return out.strip()

    def exec(self, sandbox, script, *options, **how):
        """The output of a shell script that must succeed in a sandbox."""
        return self.good("exec", *options, sandbox, "--", "sh", "-c", script, **how)

    def listed(self):
        return self.good("list", "-q").decode().split()

    def keeper_of(self, sandbox):
        return self.json("inspect", sandbox)["keeper_pid"]

    def assert_no_state(self):
        """The state folder holds nothing, and nobody was asked to sweep it."""
        wait_for(lambda: not os.listdir(self.state), f"an empty {self.state}", GONE_S)

    def _remove_all(self):
        if self.state.exists():
            left = self.listed()
            if left:
                self.good("rm", "--force", *left)
            self.assert_no_state()


def is_root():
    return os.geteuid() == 0


def listing(folder):
    """What a folder holds, with kinds, modes, targets and contents, for a comparison."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        info = path.lstat()
        text = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (stat.filemode(info.st_mode), info.st_uid, text)
    return found


def status_field(text, name):
    """One field of a /proc/PID/status."""
    match = re.search(rf"^{name}:\s*(.*)$", text, re.MULTILINE)
    return match and match[1]
