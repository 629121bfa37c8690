# SPDX-License-Identifier: Apache-2.0
"""Measurements: each takes an account and returns plain numbers."""
import json
import os
import pwd
import resource
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 900
REST_S = 3  # after which idle processes have given back what they do not need (base/rest.h)
CLEAN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Account:
    """Whom to measure as, with the programs where that user can read them."""

    def __init__(self, label, entry, folder, home):
        self.label = label
        self.uid, self.gid = entry.pw_uid, entry.pw_gid
        self.folder, self.home = folder, home
        self.other = entry.pw_uid != os.geteuid()
        folder.mkdir(mode=0o755)
        home.mkdir(parents=True, exist_ok=True)
        for path in (folder, home):
            self.give(path)
        self.atoll = folder / "atoll"
        self.spawn = folder / "spawn"
        self.held = folder / "held"
        self.mcp = folder / "mcp"
        self.net = folder / "net"
        self.lookup = folder / "lookup"
        self.attach = folder / "attach"

    def give(self, path):
        if self.other:
            shutil.chown(path, self.uid, self.gid)

    def only_ids(self):
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.other else {}

    def popen(self):
        """Arguments of Popen that start a program as the account."""
        path = os.environ.get("PATH", CLEAN_PATH)
        environment = {"PATH": path, "LANG": "C.UTF-8", "HOME": str(self.home), "CODEX_HOME": str(self.home)}
        return self.only_ids() | {"env": environment, "cwd": str(self.folder)}

    def popen_held(self):
        """The same for sandboxes that live on: registered in a folder of their own, and in no terminal's group, so
        that ^C leaves them to who holds them. The PATH is as inside, so that neither side looks further for `sh`."""
        arguments = self.popen()
        arguments["env"] |= {"PATH": CLEAN_PATH, "ATOLL_PROGRAM": str(self.atoll),
                             "ATOLL_STATE_DIR": str(self.folder / "state")}
        return arguments | {"start_new_session": True}


def accounts(folder, cache, build, programs):
    """The caller, and the ordinary user atoll-test if the caller is root, each with copies of the programs."""
    entries = [("root" if os.geteuid() == 0 else "user", pwd.getpwuid(os.geteuid()))]
    if os.geteuid() == 0:
        try:
            entry = pwd.getpwnam("atoll-test")
        except KeyError:
            subprocess.run(["useradd", "--create-home", "atoll-test"], check=True)
            entry = pwd.getpwnam("atoll-test")
        entries.append(("user", entry))
    found = []
    for label, entry in entries:
        account = Account(label, entry, folder / label, cache / f"home-{entry.pw_uid}")
        for source in (build / "atoll", *programs):
            target = account.folder / source.name
            shutil.copy2(source, target)
            target.chmod(0o755)
        found.append(account)
    return found


def spawn_runs(account, arguments, commands, popen=None):
    """Runs tests/bench/spawn.c; returns the microseconds of each command, and the last count of bytes."""
    words = [str(account.spawn), *map(str, arguments)]
    for command in commands:
        words += [*map(str, command), ":::"]
    done = subprocess.run(words[:-1], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          timeout=LIMIT_S, check=False, **(popen or account.popen()))
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words[:4])}...: {done.stderr.strip()[-300:]}")
    times, counts = [[] for _ in commands], [0] * len(commands)
    for line in done.stdout.splitlines():
        index, microseconds, count = map(int, line.split())
        times[index].append(microseconds)
        counts[index] = count
    return times, counts


def medians_ms(account, arguments, commands, popen=None):
    times, _ = spawn_runs(account, arguments, commands, popen)
    return [statistics.median(row) / 1000 for row in times]


# Sandboxes that live on, and servers: tests/bench/held.c and mcp.c


class Held:
    """One of these programs under way."""

    def __init__(self, account, process, errors):
        self.account, self.process, self.errors = account, process, errors
        self.times = {}  # name: nanoseconds

    def read_until(self, stop):
        """Keeps the times that come, until a line for which stop is true; returns that one, or None at the end."""
        for line in self.process.stdout:
            line = line.strip()
            if stop(line):
                return line
            name, nanoseconds = line.split()
            self.times.setdefault(name, []).append(int(nanoseconds))
        return None

    def expect(self, stop):
        line = self.read_until(stop)
        if line is None:
            self.process.wait(LIMIT_S)
            raise RuntimeError(f"{Path(self.process.args[0]).name} ended early: {self.complaint()}")
        return line

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def complaint(self):
        self.errors.seek(0)
        return self.errors.read().strip()[-300:]

    def medians_ms(self):
        return {name: statistics.median(row) / 1e6 for name, row in self.times.items()}


@contextmanager
def held(account, *arguments, program=None):
    """Runs tests/bench/held.c, or another program that ends in the same way: when its input ends it destroys what it
    made, so that nothing stays in any case."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([str(program or account.held), *map(str, arguments)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace",
                                   **account.popen_held())
        running = Held(account, process, errors)
        try:
            yield running
            process.stdin.close()
            running.read_until(lambda line: False)
            if process.wait(LIMIT_S) != 0:
                raise RuntimeError(f"{' '.join(process.args[:2])}: {running.complaint()}")
        finally:
            if not process.stdin.closed:
                process.stdin.close()
            process.stdout.close()
            process.wait(LIMIT_S)


def held_medians_ms(account, *arguments, program=None):
    with held(account, *arguments, program=program) as running:
        running.read_until(lambda line: False)
    return running.medians_ms()


@contextmanager
def one_held(account, *command):
    """The id of a sandbox that lives on, in which a command has run."""
    with held(account, "keep", *command) as program:
        yield program.expect(lambda line: line)


def seconds(account, command):
    """How long a program takes that must succeed, as the account."""
    began = time.monotonic()
    subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
                   timeout=LIMIT_S, **account.popen_held())
    return time.monotonic() - began


def export_seconds(account, rounds, commands, out):
    """Medians of commands that each make the file or folder out, interleaved; out is removed between them."""
    times = [[] for _ in commands]
    for number in range(1 + rounds):
        turns = list(zip(commands, times))
        for command, found in turns if number % 2 else reversed(turns):
            if out.is_dir():
                shutil.rmtree(out)
            out.unlink(missing_ok=True)
            os.sync()
            took = seconds(account, command)
            if number:
                found.append(took)
    return [statistics.median(found) for found in times]


def crowd_refusal(account, count):
    """Why the account cannot have that many live sandboxes, or nothing."""
    needed = 2 * count + 100  # keeper and init of each, and what the account runs already
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if account.uid != 0 and hard != resource.RLIM_INFINITY and hard < needed:
        return f"it may run {hard} processes, {needed} are needed"
    for name in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
        most = int(Path(f"/proc/sys/user/max_{name}_namespaces").read_text())
        if most < count + 100:
            return f"it may have {most} {name} namespaces"
    return ""


def crowd(account, rounds, count):
    """Many live sandboxes. Returns medians in ms, and what keeper, init and kernel hold for each, in KiB."""
    names = ("Slab", "KernelStack", "PageTables", "Percpu")
    with held(account, "crowd", rounds, count) as program:
        program.expect(lambda line: line == "none")
        time.sleep(2)  # the kernel takes namespaces apart a while after their end
        before = {name: field_kib("/proc/meminfo", {name}) for name in names}
        program.go_on()
        program.expect(lambda line: line == "all")
        time.sleep(REST_S)
        kernel = {name: (field_kib("/proc/meminfo", {name}) - before[name]) / count for name in names}
        processes = held_pss_kib(account, count) if os.geteuid() == 0 else None
        program.go_on()
        program.read_until(lambda line: False)
    return program.medians_ms(), processes, kernel


def held_pss_kib(account, count):
    """Mean proportional memory of all keepers of the account's held sandboxes, and of their inits, KiB."""
    table = children()
    records = (account.folder / "state").glob("sb-*/record.json")
    keepers = [json.loads(record.read_text())["keeper_pid"] for record in records]
    inits = [pid for keeper in keepers for pid, name in table.get(keeper, []) if name == "atoll-init"]
    if len(keepers) != count or len(inits) != count:
        raise RuntimeError(f"{len(keepers)} keepers and {len(inits)} inits were found, not {count}")
    return [statistics.mean(field_kib(f"/proc/{pid}/smaps_rollup", {"Pss"}) for pid in pids)
            for pids in (keepers, inits)]


# Memory


def children():
    """Parent: its children, with the name of each."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text(errors="replace")
                line = Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue
            # Linux names what was executed from a memory file after that file or its descriptor.
            name = "atoll-init" if line == b"atoll-init\0" else stat[stat.index("(") + 1:stat.rindex(")")]
            found.setdefault(int(stat[stat.rindex(")") + 2:].split()[1]), []).append((int(entry), name))
    return found


def keeper_and_init(client, table):
    """Process ids of a client's keeper and init, 0 where there is none."""
    keeper = next((pid for pid, name in table.get(client, []) if name == "atoll-keeper"), 0)
    init = next((pid for pid, name in table.get(keeper, []) if name == "atoll-init"), 0)
    return keeper, init


@contextmanager
def live_sandboxes(account, count):
    """That many sandboxes in which nothing happens; yields the process ids of the clients."""
    command = [str(account.atoll), "run", "-i", "--", "sh", "-c", "echo; exec cat"]
    clients = []
    try:
        for _ in range(count):
            clients.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **account.popen()))
        for client in clients:
            if client.stdout.read(1) != b"\n":
                raise RuntimeError("a sandbox did not start")
        yield [client.pid for client in clients]
    finally:
        for client in clients:
            client.stdin.close()
        for client in clients:
            client.stdout.close()
            client.wait(60)


def field_kib(path, names):
    """The sum of fields in kB of a file of /proc."""
    lines = (line.split() for line in Path(path).read_text().splitlines())
    return sum(int(words[1]) for words in lines if words and words[0].rstrip(":") in names)


def idle_pss_kib(account, count):
    """Mean proportional memory of keeper and of init, KiB."""
    with live_sandboxes(account, count) as clients:
        time.sleep(0.5)
        table = children()
        pairs = [keeper_and_init(client, table) for client in clients]
        if not all(keeper and init for keeper, init in pairs):
            raise RuntimeError("the processes atoll-keeper and atoll-init were not found")
        keepers = [field_kib(f"/proc/{keeper}/smaps_rollup", {"Pss"}) for keeper, _ in pairs]
        inits = [field_kib(f"/proc/{init}/smaps_rollup", {"Pss"}) for _, init in pairs]
    return statistics.mean(keepers), statistics.mean(inits)


def idle_servers_kib(account, count):
    """Mean proportional memory of idle MCP servers that have their sandboxes: server, keeper and init, KiB."""
    with held(account, "idle", count, program=account.mcp) as running:
        servers = [int(running.expect(lambda line: line)) for _ in range(count)]
        time.sleep(REST_S)
        table = children()
        rows = [(server, *keeper_and_init(server, table)) for server in servers]
        if not all(all(row) for row in rows):
            raise RuntimeError("the processes atoll-keeper and atoll-init of the servers were not found")
        return [statistics.mean(field_kib(f"/proc/{pid}/smaps_rollup", {"Pss"}) for pid in pids) for pids in zip(*rows)]


def kernel_kib(account, count):
    """What the kernel holds for one sandbox with its idle command and its client: name, KiB."""
    names = ("Slab", "KernelStack", "PageTables")
    with live_sandboxes(account, count // 4):
        pass  # so that caches are filled
    time.sleep(2)
    before = {name: field_kib("/proc/meminfo", {name}) for name in names}
    with live_sandboxes(account, count):
        time.sleep(0.5)
        return {name: (field_kib("/proc/meminfo", {name}) - before[name]) / count for name in names}


def highest_kib(account, command):
    """Highest resident memory of one program that must succeed."""
    program = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               **account.popen_held())
    peak = 0
    while program.poll() is None:
        try:
            peak = max(peak, field_kib(f"/proc/{program.pid}/status", {"VmHWM"}))
        except OSError:
            pass
        time.sleep(0.01)
    if program.returncode != 0 or peak == 0:
        raise RuntimeError(f"memory could not be read: {peak}, status {program.returncode}")
    return peak


def peak_memory_kib(account, command):
    """Highest resident memory of the client and of the keeper while a reader takes all output."""
    client = subprocess.Popen([str(account.atoll), "run", "--", *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, **account.popen())
    peaks = {"client": 0, "keeper": 0}

    def sample():
        keeper = 0
        while client.poll() is None:
            keeper = keeper or keeper_and_init(client.pid, children())[0]
            for name, pid in (("client", client.pid), ("keeper", keeper)):
                try:
                    peaks[name] = max(peaks[name], field_kib(f"/proc/{pid}/status", {"VmHWM"}) if pid else 0)
                except OSError:
                    pass
            time.sleep(0.01)

    sampler = threading.Thread(target=sample)
    sampler.start()
    while os.read(client.stdout.fileno(), 1 << 20):
        pass
    client.stdout.close()
    sampler.join()
    if client.wait(60) != 0 or not all(peaks.values()):
        raise RuntimeError(f"memory could not be read: {peaks}")
    return peaks["client"], peaks["keeper"]
