# SPDX-License-Identifier: Apache-2.0
"""Measurements of sandboxes' lives: what many of them leave behind, and what their leases cost."""
import ctypes
import os
import statistics
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import measure

OWNER = "bench/lease"
LIFETIME = "300s"  # should the benchmark be killed
SETTLE_S = 10  # the kernel takes namespaces and control groups apart a while after their end
PR_SET_CHILD_SUBREAPER = 36
KERNEL = {"SUnreclaim", "KernelStack", "PageTables", "Percpu"}  # of /proc/meminfo: what no pressure would give back


def processes(program):
    """Those that this one started by way of @program, wherever they went since; what has come here and ended is reaped."""
    table = measure.children()
    below, found = [os.getpid()], set()
    while below:
        for pid, _ in table.get(below.pop(), []):
            found.add(pid)
            below.append(pid)
    for pid in {pid for pid, _ in table.get(os.getpid(), [])} - {program}:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            found.discard(pid)
    return found


def namespaces(pids):
    """Those of these processes, as far as they may be looked at."""
    found = set()
    for pid in pids:
        try:
            found |= {os.readlink(path) for path in Path(f"/proc/{pid}/ns").iterdir()}
        except OSError:
            pass  # ended meanwhile, or another user's
    return found


def files(account):
    """What is below the account's folder, and what could be a sandbox's in the shared ones."""
    found = set(account.folder.rglob("*"))
    for folder in ("/tmp", "/run", "/var/tmp", "/dev/shm", f"/run/user/{account.uid}"):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        found |= {Path(folder, name) for name in names if ("atoll" in name or name.startswith("sb-"))
                  and not name.startswith(("atoll-tests-", "atoll-bench-"))}  # folders of tests
    return found


def traces(account, program, others):
    """Kind: all of it that there is now. @others: processes whose namespaces count too; those that somebody else has
    started since do not."""
    ours = processes(program)
    return {
        "processes": ours,
        "mounts": set(Path("/proc/self/mountinfo").read_text().splitlines()),
        "namespaces": namespaces(ours | others),
        "cgroups": {folder for folder, _, _ in os.walk("/sys/fs/cgroup")},
        "files": files(account),
    }


def memory_kib():
    """What the kernel holds for good, and what is not to be had any more, KiB."""
    return (measure.field_kib("/proc/meminfo", KERNEL), -measure.field_kib("/proc/meminfo", {"MemAvailable"}))


def growth(account, program, others, before, memory_before):
    """What came since, by kind and name, and the two figures of memory. The least within the time that the kernel
    may take, since nothing else is what a leak would leave."""
    end = time.monotonic() + SETTLE_S
    least, memory = None, None
    while True:
        now = traces(account, program, others)
        more = [f"{kind} {one}" for kind in before for one in sorted(now[kind] - before[kind])]
        if least is None or len(more) < len(least):
            least = more
        kib = [now - then for now, then in zip(memory_kib(), memory_before)]
        memory = kib if memory is None else [min(pair) for pair in zip(kib, memory)]
        if time.monotonic() > end:
            return least, memory
        time.sleep(0.5)


def cycles(account, warm, count):
    """Sandboxes made and destroyed one after the other: what is there afterwards that was not before; what the
    kernel holds more and what less is available, KiB; and the median of one, ms."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # so that a keeper is found that was left behind
    try:
        with measure.held(account, "cycles", warm, count) as program:
            program.expect(lambda line: line == "before")
            time.sleep(3)
            pid, others = program.process.pid, {int(name) for name in os.listdir("/proc") if name.isdigit()}
            before, memory_before = traces(account, pid, others), memory_kib()
            program.go_on()
            program.expect(lambda line: line == "after")
            more, memory = growth(account, pid, others, before, memory_before)
            program.go_on()
    finally:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    return more, memory, program.medians_ms()["cycle"]


@contextmanager
def shared(account):
    """The control socket of a sandbox with an owner."""
    def atoll(*words):
        done = subprocess.run([str(account.atoll), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=measure.LIMIT_S, check=False, **account.popen_held())
        if done.returncode != 0:
            raise RuntimeError(f"atoll {words[0]}: {done.stderr.strip()[-300:]}")
        return done.stdout.strip()

    name = atoll("create", "--owner", OWNER, "--lifetime", LIFETIME)
    try:
        yield account.folder / "state" / name / "control"
    finally:
        atoll("rm", "--owner", OWNER, "--force", name)


def lease(account, *arguments):
    """Runs tests/bench/attach.c on a shared sandbox; nanoseconds by name."""
    how, *numbers = map(str, arguments)
    with shared(account) as socket:
        done = subprocess.run([str(account.attach), how, str(socket), OWNER, *numbers], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=measure.LIMIT_S, check=False, **account.popen_held())
    found = {}
    for line in done.stdout.splitlines():
        name, nanoseconds = line.split()
        found.setdefault(name, []).append(int(nanoseconds))
    return found, done.returncode, done.stderr.strip()


def lease_ms(account, rounds):
    """Medians of a greeted connection, and of one that has taken the lease, ms."""
    found, status, complaint = lease(account, "time", rounds)
    if status != 0:
        raise RuntimeError(f"attach time: {complaint[-300:]}")
    return {name: statistics.median(row) / 1e6 for name, row in found.items()}


def race(account, holders, rounds):
    """Many holders at once: the rounds in which not exactly one got the lease, and the median of a round, ms."""
    found, status, complaint = lease(account, "race", holders, rounds)
    wrong = complaint.count("attach: round ")
    if len(found.get("race", [])) != rounds or (status != 0 and not wrong):
        raise RuntimeError(f"attach race: {complaint[-300:]}")
    return wrong, statistics.median(found["race"]) / 1e6
