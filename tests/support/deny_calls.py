# SPDX-License-Identifier: Apache-2.0
"""Runs a program under a system call filter, as the runtime of an outer container does.

Usage: deny_calls.py KIND... -- COMMAND [ARG]...

Each KIND is a row of DENIED.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

# Numbers of system calls: x86-64, and 64-bit ARM. Calls from 424 on have one number everywhere.
NUMBERS = {
    "clone": (56, 220),
    "unshare": (272, 97),
    "clone3": (435, 435),
    "mount": (165, 40),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "ioctl": (16, 29),
    "sethostname": (170, 161),
    "memfd_create": (319, 279),
    "openat2": (437, 437),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "flock": (73, 32),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
CLONE_NEWUSER = 0x10000000
SIOCSIFFLAGS = 0x8914
ANY, HAS, IS = range(3)
MOUNT_CALLS = ("mount", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "mount_setattr")

# Kind: rows of call, answer, and which of its calls: the argument's index, comparison and value.
DENIED = {
    "namespaces": [
        ("clone", errno.EPERM, (0, HAS, CLONE_NEWUSER)),
        ("unshare", errno.EPERM, (0, ANY, 0)),
        ("clone3", errno.ENOSYS, (0, ANY, 0)),
    ],
    "mounts": [(call, errno.EPERM, (0, ANY, 0)) for call in MOUNT_CALLS],
    "loopback": [("ioctl", errno.EPERM, (1, IS, SIOCSIFFLAGS))],
    "hostname": [("sethostname", errno.EPERM, (0, ANY, 0))],
    "memfd": [("memfd_create", errno.EACCES, (0, ANY, 0))],
    "openat2": [("openat2", errno.EPERM, (0, ANY, 0))],
    "landlock": [
        (call, errno.ENOSYS, (0, ANY, 0))
        for call in ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
    ],
    "clone3": [("clone3", errno.ENOSYS, (0, ANY, 0))],
    "attributes": [(call, errno.ENOTSUP, (0, ANY, 0)) for call in ("setxattr", "lsetxattr", "fsetxattr")],
    "locks": [("flock", errno.ENOLCK, (0, ANY, 0))],
}

LOAD, EQUAL, BITS, RETURN = 0x20, 0x15, 0x45, 0x06  # BPF: load a word, jump if, return
ALLOW, ANSWER = 0x7FFF0000, 0x00050000
NUMBER_AT, ARGUMENTS_AT = 0, 16  # in struct seccomp_data
PR_SET_SECCOMP, MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38


def instruction(code, value, when_true=0, when_false=0):
    return struct.pack("=HBBI", code, when_true, when_false, value)


def rule(call, answer, argument):
    """Instructions that answer one call, and fall through for all others."""
    number = NUMBERS[call][0 if platform.machine() == "x86_64" else 1]
    index, comparison, value = argument
    test = []
    if comparison != ANY:
        test = [
            instruction(LOAD, ARGUMENTS_AT + 8 * index),
            instruction(BITS if comparison == HAS else EQUAL, value, 0, 1),
        ]
    body = [*test, instruction(RETURN, ANSWER | answer)]
    return [instruction(LOAD, NUMBER_AT), instruction(EQUAL, number, 0, len(body)), *body]


def install(kinds):
    """Puts this process, and all it will execute, under the filter."""
    rules = [row for kind in kinds for row in DENIED[kind]]
    code = [*(part for row in rules for part in rule(*row)), instruction(RETURN, ALLOW)]
    text = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("@HP", len(code), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, MODE_FILTER, program, 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def main():
    end = sys.argv.index("--")
    install(sys.argv[1:end])
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])


main()
