# SPDX-License-Identifier: Apache-2.0
"""Programs of different versions with each other: ATOLL beside ATOLL_NEWER and ATOLL_OLDER.

The protocol's minor version differs, its major version does not: what both know must work, and what one
lacks must be refused in plain words, before anything is weaker than it was asked to be.
"""
import ctypes
import os
import subprocess
import sys
import unittest
from pathlib import Path

import support

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import protocol  # noqa: E402
from protocol import Tag, Type  # noqa: E402

NEWER, OLDER = os.environ["ATOLL_NEWER"], os.environ["ATOLL_OLDER"]


class VersionsTest(support.SandboxTest):
    def setUp(self):
        super().setUp()
        self.environment = {"PATH": os.environ["PATH"], "ATOLL_STATE_DIR": str(self.folder() / "state")}

    def call(self, program, *arguments, data=b"", status=0):
        """Runs a program; returns what it printed, or what it complained when another status is expected."""
        done = subprocess.run(
            [program, *arguments], input=data, capture_output=True, env=self.environment, timeout=support.LIMIT_S,
            check=False, cwd="/")
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr.decode()

    def held(self, program):
        """The id of a sandbox that a program holds; removed after the test."""
        name = self.call(program, "create", "--lifetime", "120s", "--tag", "by=versions").decode().strip()
        self.addCleanup(self.call, support.ATOLL, "rm", "--force", name)
        return name

    def use_all_verbs(self, maker, user):
        """Every verb of one program on a sandbox that another one keeps."""
        name = self.held(maker)
        self.assertEqual(self.call(user, "exec", name, "--", "sh", "-c", "cat; echo out", data=b"").decode(), "out\n")
        self.assertEqual(self.call(user, "exec", "-i", name, "--", "cat", data=b"in"), b"in")
        self.call(user, "write", name, "a/file", data=b"\0\xff bytes")
        self.assertEqual(self.call(user, "read", name, "a/file"), b"\0\xff bytes")
        self.assertEqual(self.call(user, "ls", name, "a"), b"file\n")
        target = self.folder() / "copy"
        self.call(user, "cp", f"{name}:a", str(target))
        self.assertEqual((target / "file").read_bytes(), b"\0\xff bytes")
        self.call(user, "exec", "--detach", name, "--", "sleep", "100")
        self.assertIn(b"sleep", self.call(user, "ps", name))
        self.call(user, "kill", name)
        self.assertNotIn(b"sleep", self.call(user, "ps", name))
        self.assertIn(name.encode(), self.call(user, "list", "-q", "--tag", "by=versions"))
        self.assertIn(name.encode(), self.call(user, "inspect", name))
        self.call(user, "rm", name)
        self.assertNotIn(name.encode(), self.call(user, "list", "-q"))

    def test_a_newer_program_uses_a_sandbox_of_this_one(self):
        self.use_all_verbs(support.ATOLL, NEWER)

    def test_this_program_uses_a_sandbox_of_a_newer_one(self):
        self.use_all_verbs(NEWER, support.ATOLL)

    def test_a_keeper_of_version_1_0_serves_what_it_knows(self):
        with protocol.Keeper(OLDER) as keeper:
            keeper.create((Tag.CREATE_FLAGS, 1))
            self.assertEqual(keeper.run("echo hello"), (0, "hello\n"))
            number = keeper.request(Type.INSPECT)
            answer = keeper.next(lambda m: m.id == number)
            self.assertEqual(answer.type, Type.ERROR)
            self.assertEqual(keeper.run("echo still here"), (0, "still here\n"))
            keeper.destroy()

    def library(self):
        """libatoll, which starts keepers of the older program."""
        path = next(p for p in Path(support.ATOLL).parents[1].rglob("libatoll.so.0*"))
        lib = ctypes.CDLL(str(path))
        for name in ("atoll_spec_new", "atoll_create", "atoll_op_sandbox", "atoll_exec", "atoll_stat", "atoll_op_error"):
            getattr(lib, name).restype = ctypes.c_void_p
        context = ctypes.c_void_p()
        self.assertEqual(lib.atoll_new(ctypes.byref(context), None), 0)
        self.addCleanup(lib.atoll_free, context)
        self.assertEqual(lib.atoll_set_program(context, OLDER.encode()), 0)
        return lib, context

    def outcome(self, lib, op):
        """0, or what an operation complained."""
        op = ctypes.c_void_p(op)
        if lib.atoll_wait(op, ctypes.c_uint64(20_000_000)) == 0:
            return 0
        return ctypes.string_at(lib.atoll_op_error(op) + 8).decode()

    def test_the_library_uses_a_keeper_of_version_1_0(self):
        class Exec(ctypes.Structure):
            _fields_ = [("argv", ctypes.POINTER(ctypes.c_char_p)), ("rest", ctypes.c_char * 128)]

        lib, context = self.library()
        spec = ctypes.c_void_p(lib.atoll_spec_new())
        created = lib.atoll_create(context, spec, 1)
        self.assertEqual(self.outcome(lib, created), 0)
        sandbox = ctypes.c_void_p(lib.atoll_op_sandbox(ctypes.c_void_p(created)))
        command = Exec((ctypes.c_char_p * 3)(b"/bin/sh", b"-c", None))
        command.argv = (ctypes.c_char_p * 4)(b"/bin/sh", b"-c", b"exit 0", None)
        self.assertEqual(self.outcome(lib, lib.atoll_exec(sandbox, ctypes.byref(command))), 0)
        self.assertIn("version 1.0", self.outcome(lib, lib.atoll_stat(sandbox, b"/", True)))
        held = lib.atoll_create(context, spec, 0)
        self.assertIn("version 1.0", self.outcome(lib, held))

    def test_both_greet_with_their_own_version(self):
        for program, minor in ((support.ATOLL, 3), (OLDER, 0), (NEWER, 4)):
            with self.subTest(minor=minor), protocol.Keeper(program, greet=False) as keeper:
                keeper.send(Type.HELLO, 0, protocol.hello(minor=7))
                answer = keeper.expect(Type.HELLO, 0)
                self.assertEqual((answer[Tag.VERSION_MAJOR], answer[Tag.VERSION_MINOR]), (1, minor))

    def test_another_major_version_is_refused(self):
        for program in (support.ATOLL, OLDER, NEWER):
            with self.subTest(program=program), protocol.Keeper(program, greet=False) as keeper:
                keeper.send(Type.HELLO, 0, protocol.hello(major=2))
                keeper.expect(Type.HELLO, 0)
                self.assertEqual(keeper.next(lambda m: True).type, Type.ERROR)


if __name__ == "__main__":
    unittest.main()
