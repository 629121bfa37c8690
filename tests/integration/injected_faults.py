# SPDX-License-Identifier: Apache-2.0
"""Each system call of a sandbox's set-up fails once: what came of it, and whether anything is left.

tests/support/inject.c makes the calls fail and has the table of their errors. What a first run of each scenario
records is what the later ones make fail, one call each. Several workers do that side by side; each is a process of its own (this
file as a program), so that what a case leaves behind comes to the worker that started it.
"""
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import support

SOURCE = Path(__file__).resolve().parents[1] / "support/inject.c"
WORKERS = 3
LIMIT_S = 10  # for one run, traced; the set-up's own limit is longer
GONE_S = 2  # after the client's end
LIFETIME = "60s"  # should the test itself be killed

# What has to be in force whenever a command runs.
SEALED = """
fail() { echo "not sealed: $*"; exit 9; }
while read name a b c rest; do case $name in
CapEff:|CapPrm:|CapBnd:|CapAmb:) [ $a = 0000000000000000 ] || fail $name $a ;;
NoNewPrivs:) [ $a = 1 ] || fail $name $a ;;
Seccomp:) [ $a = 2 ] || fail $name $a ;;
esac; done </proc/self/status
set -- /proc/[0-9]*
[ $# = 2 ] || fail processes "$@"
[ ! -w /usr ] && [ ! -w /etc ] && [ ! -w / ] || fail writable
[ "$(cat /proc/sys/kernel/hostname)" = sandbox ] || fail hostname
"""


# Calls that may fail without a refusal: process and call as patterns, and why the sandbox is as good. All that must be
# in force is looked at in such a run too (SEALED).
HARMLESS = (
    ("*", "prctl:1", "PR_SET_PDEATHSIG knows only one failure, a signal that does not exist; the end of a socket tells too"),
    ("*", "prctl:15", "PR_SET_NAME: a name for ps"),
    ("*", "setsid", "fails only for a group's leader, which a forked process never is"),
    ("*", "munmap", "memory stays mapped until the process ends"),
    ("*", "madvise", "advice"),
    ("*", "getrandom", "the allocator's seed; the ids of sandboxes are refused without it"),
    ("atoll-init", "execve", "the next place of PATH is tried"),
    ("atoll-init", "stat", "a command's mark is made anew when it is needed"),
    ("atoll-init", "unshare", "the same"),
    ("atoll-init", "fcntl:2", "the descriptor is closed instead; commands keep init's OOM score"),
    ("atoll-init", "read", "what woke it is looked at again"),
    ("atoll-keeper", "epoll_ctl", "a source is not forgotten, or is watched for more than it needs, as its end comes"),
    ("atoll-keeper", "openat2", "asks whether a folder of the image is there; if it is not, it is made, which fails otherwise"),
    ("atoll-keeper", "newfstatat", "what cannot be seen of the host is not there inside"),
    ("atoll-keeper", "readlink", "the same"),
    ("atoll-keeper", "getdents64", "the same, or a sweep of the state folder that the next one does"),
    ("atoll-keeper", "openat", "the same; files of /proc and /sys without which something optional is not offered"),
    ("atoll-keeper", "read", "the same"),
    ("atoll-keeper", "flock", "the same"),
    ("atoll-keeper", "mkdir", "the folder is there already"),
    ("atoll-keeper", "landlock_create_ruleset", "asks for the kernel's version of Landlock, and is what kernels without answer"),
    ("atoll-keeper", "setsockopt:2", "SO_REUSEADDR of a published port: it is free or it is not"),
    ("atoll-keeper", "setsockopt:*", "sizes of buffers"),
    ("atoll-keeper", "lseek", "of the C library: the host's time zone"),
    ("atoll-keeper", "renameat", "the event log is opened anew with the next event; the record is not published without it"),
    ("atoll-keeper", "write", "an event, which is counted as dropped"),
    ("atoll-keeper", "fcntl:[23]", "of the C library as it opens a folder: a sweep that the next one does"),
    ("atoll-keeper", "fcntl:1031", "F_SETPIPE_SZ: a smaller pipe"),
    ("atoll-egress", "setsockopt:*", "sizes of buffers, and times of idle connections"),
    ("atoll-egress", "prctl:24", "a process without CAP_SETPCAP executes nothing, which is what the bounding set is about"),
    ("atoll-egress", "prlimit64", "reads a limit to raise its own"),
    ("atoll-egress", "mmap", "the allocator takes another way"),
    ("atoll-visitor", "close_range", "the copies go with the process, a moment later"),
    ("atoll-visitor", "setsockopt:*", "fuller texts of the kernel's errors, larger buffers"),
    ("atoll-visitor", "socket", "the kernel has no IPv6, or so it seems"),
    ("*atoll-res*", "access", "of the dynamic loader: a file that hosts need not have"),
    ("*atoll-res*", "openat", "the same, and a folder that is tried before another"),
    ("*atoll-res*", "newfstatat", "the same"),
    ("*atoll-res*", "mmap", "the same: its cache"),
    ("*atoll-res*", "prlimit64", "of the loader: the size of stacks"),
)


def is_harmless(row):
    return any(fnmatch.fnmatchcase(row[1], process) and fnmatch.fnmatchcase(row[2], call)
               for process, call, _ in HARMLESS)


def scenarios(folder):
    """Name: the arguments of atoll. All but the first make a sandbox that lives on."""
    held = ["create", "--lifetime", LIFETIME]
    return {
        "plain": ["run", "--", "sh", "-c", SEALED],
        "files": [*held, "--image", f"dir:{folder}/image", "--volume", f"{folder}/volume:/data", "--disk", "16M"],
        "network": [*held, "--allow", "example.com:443", "--publish", "0:80"],
    }


def build(compiler, folder):
    """Compiles the injector; its path."""
    program = folder / "inject"
    subprocess.run([compiler, "-O1", "-std=gnu17", "-D_GNU_SOURCE", "-o", program, SOURCE], check=True)
    program.chmod(0o755)
    return program


class Place:
    """A worker's own folders: state, image, volume, temporary files."""

    def __init__(self, folder, inject):
        self.folder, self.inject = Path(folder), inject
        for name in ("state", "volume", "temporary", "image/usr/bin", "image/etc"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "volume/file").write_text("of the host")
        for name in ("bin", "lib", "lib64", "sbin"):
            if os.path.islink(f"/{name}"):
                (self.folder / "image" / name).symlink_to(os.readlink(f"/{name}"))
        self.environment = {
            "PATH": os.environ["PATH"],
            "ATOLL_STATE_DIR": str(self.folder / "state"),
            "TMPDIR": str(self.folder / "temporary"),
        }
        self.untouched = self.files()

    def files(self):
        return {name: support.listing(self.folder / name) for name in ("state", "volume", "temporary", "image")}

    def run(self, words, limit=LIMIT_S):
        """Runs a program to its end; output goes to files, which nobody has to hold open for us to go on."""
        names = [self.folder / "stdout", self.folder / "stderr"]
        with open(names[0], "w") as out, open(names[1], "w") as err:
            process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       cwd="/", env=self.environment)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                self.kill_all()
                process.wait()
                raise
        return (status, *(name.read_text(errors="replace") for name in names))

    @staticmethod
    def kill_all():
        for process in support.descendants():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def traced(self, how, report, scenario):
        """One run of the scenario under the injector; what it reported, and the run's end."""
        path = self.folder / "report"
        words = scenarios(self.folder)[scenario]
        done = self.run([self.inject, how, path, *report, support.ATOLL, *words])
        return path.read_text().splitlines(), done

    def left(self):
        """What is still there of what this worker started, in words; empty when all is gone."""
        support.reap_orphans()
        found = [f"process {p.pid} {p.name}" for p in support.descendants()]
        now = self.files()
        for name, before in self.untouched.items():
            found += [f"{name}/{entry}" for entry in now[name].items() ^ before.items()]
        return found

    def wait_until_gone(self):
        """What is left when its time is over; that is removed, so that the next case begins anew."""
        end = time.monotonic() + GONE_S
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(0.005)
        if left:
            self.kill_all()
            shutil.rmtree(self.folder / "state")
            (self.folder / "state").mkdir()
        return left


def record(place, scenario):
    """The calls of a run in which nothing fails: rows of process, name, call, nth, error."""
    rows, (status, out, err) = place.traced("record", (), scenario)
    if status != 0:
        raise AssertionError(f"{scenario}: {status} {out} {err}")
    starts, words = remove(place, scenario, out)
    left = place.wait_until_gone()
    if not starts or words or left:
        raise AssertionError(f"{scenario}, in which nothing failed: {words} {left}")
    return [tuple(row.split()) for row in rows]


def remove(place, scenario, out):
    """Looks into a sandbox that lives on and ends it. Whether it starts commands, and what is wrong with it, in words."""
    if scenario == "plain":
        return True, ""
    sandbox = out.strip()
    command = ["sh", "-c", SEALED] if scenario == "network" else ["nothing"]  # the image is empty
    status, said, err = place.run([support.ATOLL, "exec", sandbox, "--", *command])
    starts = status == (0 if scenario == "network" else 127)
    # Init locks itself in while CREATED is on its way, and then starts nothing if that has failed.
    words = "" if starts else judge(status, said, err)
    status, said, err = place.run([support.ATOLL, "rm", sandbox])
    if status and "is gone" not in err:
        words += f" rm: {status} {said}{err}"
    return starts, words


def judge(status, out, err):
    """What is wrong with how a refused run ended, in words; empty when it is as it should be. 126 and 127: it is the
    command that cannot run, since something of the host is not there inside."""
    if status not in (125, 126, 127):
        return f"status {status}: {out}{err}"
    if out:
        return f"it printed something: {out}"
    lines = err.splitlines()
    if not lines or not lines[0].startswith("atoll: ") or any(line.startswith("atoll: ") for line in lines[1:]):
        return f"not one error: {err}"
    return ""


def one(place, scenario, row):
    """Makes one call fail. The outcome: "refused", "passed", "unreached" or "wrong", and words about it."""
    process, _, call, nth, _ = row
    began = time.monotonic()
    try:
        hit, (status, out, err) = place.traced("fail", (process, call, nth), scenario)
    except subprocess.TimeoutExpired:
        hit, (status, out, err) = [row], (-1, "", "it did not end")
    outcome, words = "refused", ""
    # The dynamic loader does crash without memory, before there is anything of atoll's.
    crashes = [line for line in hit if " crashed " in line and not row[1].startswith("memfd:atoll-res")]
    if status == 0:
        outcome = "passed" if hit else "unreached"
        starts, words = remove(place, scenario, out)
        if hit and not starts:
            outcome = "refused"
        elif hit and not is_harmless(row):
            words += " nobody said that this call's failure is harmless"
    elif hit:
        words = judge(status, out, err)
    else:
        words = f"status {status} although no call failed"
    words += "".join(crashes)
    if left := place.wait_until_gone():
        words += f" left: {left}"
    if words:
        return {"outcome": "wrong", "words": f"{words}: {out!r} {err!r}", "row": row, "s": time.monotonic() - began}
    return {"outcome": outcome, "words": err, "row": row, "s": time.monotonic() - began}


def worker():
    """Cases come as lines of JSON, and their outcomes go as such."""
    place = Place(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        scenario, row = json.loads(line)
        print(json.dumps(one(place, scenario, row)), flush=True)


def chosen(rows, every):
    """Of each kind of call in each process the first and the last, and one in so many of the others."""
    kinds = {}
    for row in rows:
        kinds.setdefault((row[0], row[2]), []).append(row)
    found = []
    for same in kinds.values():
        found += [same[0], *same[every:-1:every], *same[1:][-1:]]
    return found


def run_all(cases, folder, inject, workers=WORKERS):
    """The outcomes of pairs of scenario and row."""
    share = [cases[number::workers] for number in range(workers)]
    running = []
    for number, part in enumerate(share):
        own = folder / f"worker-{number}"
        own.mkdir()
        own.chmod(0o755)
        given = folder / f"cases-{number}"
        given.write_text("".join(json.dumps(case) + "\n" for case in part))
        with open(given) as stdin, open(folder / f"outcomes-{number}", "w") as stdout:
            running.append(subprocess.Popen([sys.executable, "-B", __file__, own, inject], stdin=stdin, stdout=stdout))
    statuses = [process.wait() for process in running]
    found = []
    for number, part in enumerate(share):
        rows = [json.loads(line) for line in (folder / f"outcomes-{number}").read_text().splitlines()]
        if statuses[number] != 0 or len(rows) != len(part):
            raise AssertionError(f"a worker ended with {statuses[number]} after {len(rows)} of {len(part)} cases")
        found += [{"scenario": scenario} | row for (scenario, _), row in zip(part, rows)]
    return found


if __name__ == "__main__":
    worker()
