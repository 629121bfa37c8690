# SPDX-License-Identifier: Apache-2.0
"""The supervisor: one process between the backend and each command."""
import ctypes
import fcntl
import json
import os
import selectors
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
END_ALL = 255


def end_all(reap):
    """Kills all that is below this process until nothing is: while one pass looks, one may have forked."""
    while reap():
        parents = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    parents[int(pid)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                pass
        below = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in below} - below:
            below |= more
        for pid in below - {os.getpid()}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.001)


def become(failed, argv, env, directory):
    """The child that becomes the command."""
    # What a parent ignores, a shell's background job for one, would be ignored by the command too.
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    stage = 4
    try:
        os.setsid()
        os.chdir(directory)
        stage = 7
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(failed, f"{error.errno} {stage}".encode())
    finally:
        os._exit(127)


def supervise(record, link, argv, env, directory, timeout_us):
    """Never returns. As a subreaper it gets every orphan of the command: "all of it" is "all below"."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    asked = []
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    fcntl.lockf(os.open(record, os.O_RDONLY), fcntl.LOCK_SH)  # tells others that something runs, and who
    failed, fails = os.pipe()
    pid = os.fork()
    if pid == 0:
        become(fails, argv, env, directory)
    os.close(fails)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    why = os.read(failed, 100).split()
    link.send(json.dumps({"pid": pid, "start_errno": int(why[0]) if why else 0,
                          "start_stage": int(why[1]) if why else 0}).encode())
    if why:
        os._exit(0)
    report, deadline = {}, time.monotonic() + timeout_us / 1e6 if timeout_us else None

    def reap():
        while True:
            try:
                dead, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if dead == 0:
                return True
            if dead == pid:
                code = os.waitstatus_to_exitcode(status)
                report.update(exit_code=max(code, 0), signal=max(-code, 0))

    told = False
    while reap() or not told:
        if not told and deadline and not report and time.monotonic() >= deadline:
            end_all(reap)
            report["reason"] = 1
        if report and not told:
            told = True
            link.send(json.dumps(report).encode())
            continue
        left = None if told or not deadline else max(0, deadline - time.monotonic())
        ready = select([link, wake], left)
        if wake in ready:
            os.read(wake, 1000)
        order = link.recv(1) if link in ready else None
        if asked or order == b"":  # the sandbox is being destroyed, or this program has gone
            end_all(reap)
            os._exit(0)
        if order and order[0] == END_ALL:
            end_all(reap)
            report["reason"] = 3
        elif order and not report:
            os.killpg(pid, order[0])
    os._exit(0)


def select(files, timeout):
    with selectors.DefaultSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(timeout)]
