# SPDX-License-Identifier: Apache-2.0
"""The backends under test, and what a scenario is given to work with.

A backend is described by how it is started and what a spec for it must say. What it can do, it says
itself (DESCRIBE); a scenario that needs more is left out, and for no other reason.
"""
import os
import random
import socket
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from protocol import Closed, Connection, Create, Exec, Keeper, Program, Tag, Type, volume  # noqa: E402

ALL_FEATURES = {
    "exec", "stdin", "tty", "signal", "timeout", "detach", "files", "ranges", "list", "pack", "unpack",
    "inspect", "ps", "reopen", "owner", "lease", "tags",
}


class Backend:
    """One backend in one test: a folder of its own for whatever it keeps."""

    name = ""
    spec = ()  # fields that every sandbox needs here
    flags = 0  # and flags of CREATE
    device = None  # the path of an endless device inside
    refusals = ()  # fields of a spec that cannot be kept, each with a word of the refusal

    def __init__(self, folder):
        self.folder = Path(folder)
        self.environment = {"PATH": os.environ["PATH"], "SECRET_OF_THE_CALLER": "do not show"}

    def features(self):
        """What it says that it can do."""
        with self.connect() as connection:
            return set(connection.describe().all(Tag.FEATURE))

    def connect(self, greet=True):
        """A new connection, on which nothing is created yet."""
        raise NotImplementedError

    def reopen(self, name):
        """One more connection to the sandbox of that id; raises when there is none."""
        raise NotImplementedError

    def ids(self):
        """The ids of all sandboxes that stand."""
        raise NotImplementedError

    def create(self, connection, *fields, owned=True):
        """Makes a sandbox on a connection and returns its id."""
        flags = self.flags | (Create.OWNED if owned else 0)
        message = connection.create((Tag.CREATE_FLAGS, flags), *self.spec, *fields)
        return message.fields.get(Tag.SANDBOX_ID)


class Local(Backend):
    """The built-in backend: a keeper a sandbox, which passes descriptors."""

    name = "local"
    device = "/dev/zero"
    refusals = (((Tag.VOLUME, volume("/absent", "/data")), "/absent"),)

    def __init__(self, folder):
        super().__init__(folder)
        self.environment["ATOLL_STATE_DIR"] = str(self.folder / "state")
        self.program = os.environ.get("ATOLL") or str(HERE.parents[1] / "build/atoll")

    def features(self):
        """All there are: whatever of it a keeper does not have is a failure, not a reason to skip."""
        return ALL_FEATURES

    def connect(self, greet=True):
        return Keeper(self.program, greet, env=self.environment, minor=1)

    def reopen(self, name):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            sock.connect(str(self.folder / "state" / name / "control"))
        except OSError:
            sock.close()
            raise
        connection = Connection(sock)
        connection.greet()
        return connection

    def ids(self):
        state = self.folder / "state"
        return {e.name for e in state.iterdir() if (e / "control").exists()} if state.exists() else set()


class InProgram(Backend):
    """A backend program, which speaks on its standard input and output."""

    arguments = ()

    def connect(self, greet=True):
        return Program(*self.arguments, greet=greet, env=self.environment)

    def reopen(self, name):
        connection = self.connect()
        try:
            connection.open(name)
        except BaseException:
            connection.__exit__()
            raise
        return connection

    def ids(self):
        with self.connect() as connection:
            return set(connection.enumerate())


def example(environment_name, places):
    """Where an example program is: as told, or the first of some places."""
    told = os.environ.get(environment_name)
    found = [str(p) for p in places if p.exists()]
    return told or (found or [str(places[0])])[0]


class Folder(InProgram):
    """The example in C."""

    name = "folder"
    flags = Create.OPEN_NETWORK
    refusals = (
        ((Tag.CREATE_FLAGS, Create.OWNED), "spec.block_network"),
        ((Tag.MEMORY_BYTES, 1 << 30), "backend.memory"),
        ((Tag.VOLUME, volume("/tmp", "/data")), "backend.volumes"),
    )

    def __init__(self, folder):
        super().__init__(folder)
        self.environment["ATOLL_FOLDER_DIR"] = str(self.folder / "sandboxes")
        beside = Path(os.environ.get("ATOLL") or HERE.parents[1] / "build/atoll").parent
        self.arguments = (example("ATOLL_BACKEND_FOLDER", [beside / "atoll-backend-folder"]),)


class PyFolder(Folder):
    """The example in Python."""

    name = "pyfolder"

    def __init__(self, folder):
        super().__init__(folder)
        place = HERE.parents[1] / "examples/backend/python/atoll-backend-pyfolder"
        self.arguments = (sys.executable, "-B", example("ATOLL_BACKEND_PYFOLDER", [place]))


class World:
    """What a scenario works with: a backend, a sandbox on a connection, and assertions."""

    def __init__(self, test, backend, sandbox=True):
        self.test = test
        self.backend = backend
        self.random = random.Random(7)
        if sandbox:
            self.connection = self.connect()
            self.id = backend.create(self.connection)

    def connect(self, greet=True):
        """A new connection; ended after the test."""
        return self.keep(self.backend.connect(greet))

    def keep(self, connection):
        self.test.addCleanup(connection.__exit__)
        return connection

    def reopen(self, name=None):
        return self.keep(self.backend.reopen(name or self.id))

    def held(self, *fields):
        """A connection with a sandbox that outlives it, and the id; destroyed after the test."""
        connection = self.connect()
        name = self.backend.create(connection, *fields, owned=False)
        self.test.addCleanup(self.destroy, name)
        return connection, name

    def destroy(self, name):
        try:
            with self.backend.reopen(name) as connection:
                connection.destroy()
        except (AssertionError, OSError, Closed):
            pass  # gone already

    @property
    def files(self):
        """Who takes file operations for the sandbox."""
        if not hasattr(self, "_files"):
            self._files = self.files_of(self.connection)
        return self._files

    def files_of(self, connection):
        files = connection.files()
        if files is not connection:
            self.keep(files)
        return files

    # Commands

    def sh(self, script, connection=None, **options):
        """A shell script to its end: exit code, stdout and stderr."""
        connection = connection or self.connection
        report, out, err = connection.finish(connection.shell(script, **options))
        return report[Tag.EXIT_CODE], out, err

    def output(self, script, **options):
        """What a script writes that must succeed without a word on stderr."""
        code, out, err = self.sh(script, **options)
        self.equal((code, err), (0, b""))
        return out

    def sleeper(self):
        """A command line that no other process of the host has."""
        return f"sleep {self.random.randrange(10**5, 10**6)}.{os.getpid()}{self.random.randrange(10**6)}"

    def living(self, command, connection=None):
        """How many processes of that command line run, as a command sees it."""
        number = command.split()[-1]  # the brackets keep the searching processes out
        script = f"grep -lzxe '{number[:-1]}[{number[-1]}]' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"
        return int(self.sh(script, connection)[1])

    def wait_until(self, condition, what):
        """Waits for what must come about by itself."""
        import time
        deadline = time.monotonic() + 20
        while not condition():
            if time.monotonic() > deadline:
                self.test.fail(f"{what}: not within 20 s")
            time.sleep(0.02)

    # Assertions

    def equal(self, a, b, text=None):
        self.test.assertEqual(a, b, text)

    def true(self, value, text=None):
        self.test.assertTrue(value, text)

    def refused(self, connection, number, code):
        """The ERROR for a request, which the connection outlives."""
        message = connection.next(lambda m: m.type == Type.ERROR and m.id == number)
        self.equal(message[Tag.ERROR_CODE], code, message.fields)
        return message

    def refuses(self, code, call, *arguments, **options):
        """A call that is answered by ERROR with that code; returns the exception."""
        from protocol import Refused
        with self.test.assertRaises(Refused) as caught:
            call(*arguments, **options)
        self.equal(caught.exception.code, code, caught.exception)
        return caught.exception

    def disconnected(self, connection, broken=False):
        """The other side closes; returns what it had still to say. @broken: for what was said to it."""
        if broken:
            connection.statuses = (0, 1)
        rest = []
        with self.test.assertRaises(Closed):
            while True:
                rest.append(connection.receive())
        return rest

    def goes_on(self, connection=None):
        self.equal(self.sh("echo on", connection)[:2], (0, b"on\n"))


def run(test, scenario, backend_type):
    """Runs one scenario of the table on one backend."""
    folder = tempfile.mkdtemp(prefix="atoll-tests-", dir="/tmp")
    test.addCleanup(__import__("shutil").rmtree, folder, ignore_errors=True)
    backend = backend_type(folder)
    scenario.function(World(test, backend, scenario.sandbox))
