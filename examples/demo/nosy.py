#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A script nobody should trust: looks for a way out, and leaves things behind.

Usage: nosy.py HOME SECRET_FILE PORT MARK

Tries the network, the host's files and the caller's secrets, and prints one JSON object for each: what it
tried, what the system answered, and whether it got through. Then it starts processes that hide from
their parent, makes shared memory and files, says "ready", and waits until standard input ends.
MARK is a number: the processes sleep for so many seconds, so that they can be found from outside.
"""
import ctypes
import json
import os
import socket
import subprocess
import sys
import urllib.request

HOME, SECRET_FILE, PORT, MARK = sys.argv[1:5]
HIDDEN = 20


def fetch(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return f"{answer.status} {answer.reason}"


def call_host():
    with socket.create_connection(("127.0.0.1", int(PORT)), timeout=5):
        return "connected"


def read(path):
    with open(path, "rb") as file:
        return file.read(20)


def files_in(folder):
    return ", ".join(sorted(os.listdir(folder)))


def environment():
    return os.environ.get("ATOLL_DEMO_TOKEN", "")


def attempt(what, function, *arguments):
    """Empty counts as not got through: an empty folder of its own, a variable that is not there."""
    try:
        answer = function(*arguments)
    except Exception as error:  # whatever a program would see
        reason = getattr(error, "reason", error)
        print(json.dumps({"what": what, "answer": getattr(reason, "strerror", None) or str(reason), "through": False}))
        return
    print(json.dumps({"what": what, "answer": str(answer) or "nothing", "through": bool(answer)}))


def leave_things_behind():
    """Processes in sessions of their own whose parent is gone, and memory that outlives its maker."""
    for _ in range(HIDDEN):
        subprocess.run(["sh", "-c", 'setsid sleep "$1" >/dev/null 2>&1 &', "sh", MARK], check=True)
    for folder in ("/tmp", "/dev/shm", "/workspace"):
        with open(f"{folder}/left-behind-{MARK}", "w", encoding="ascii") as file:
            file.write("still here\n")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.shmget(int(MARK), 4096, 0o1600) < 0:  # IPC_CREAT and a mode
        sys.exit("shmget: " + os.strerror(ctypes.get_errno()))


def main():
    attempt("fetch http://example.com/", fetch, "http://example.com/")
    attempt("fetch http://192.0.2.1/", fetch, "http://192.0.2.1/")
    attempt("call a service on the host's 127.0.0.1", call_host)
    attempt("read /etc/shadow", read, "/etc/shadow")
    attempt(f"list {HOME}", files_in, HOME)
    attempt("read a file of the caller in /tmp", read, SECRET_FILE)
    attempt("read the caller's variable ATOLL_DEMO_TOKEN", environment)
    leave_things_behind()
    print("ready", flush=True)
    sys.stdin.read()


main()
