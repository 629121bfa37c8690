# SPDX-License-Identifier: Apache-2.0
"""How sandboxes end by themselves, and what is left when something of one dies: nothing."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p, string_at, byref
from pathlib import Path
from unittest import mock

import support
from support import ATOLL, PYTHON, HeldTest, descendants, inits, is_root, keepers, namespaces, namespaces_of, wait_for

import libatoll  # noqa: E402, of tests/support

CLOCK_BOOTTIME = 7
GONE_S = 2  # for all of a sandbox of which something was killed


def clocks_of(pid):
    """The clocks of a process's timer descriptors (proc(5), fdinfo)."""
    found = []
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
            if "clockid" in lines:
                found.append(int(lines["clockid"]))
    return found


class Handle:
    """A handle of libatoll on a sandbox that stands, for calls one after another."""

    FUNCTIONS = {
        "atoll_read_bytes": (c_void_p, [c_void_p, c_char_p, c_uint64, c_uint64, c_size_t]),
        "atoll_write_bytes": (c_void_p, [c_void_p, c_char_p, c_char_p, c_size_t, c_uint32]),
        "atoll_op_output": (c_void_p, [c_void_p, c_int, POINTER(c_size_t)]),
        "atoll_extend": (c_void_p, [c_void_p, c_char_p, c_uint64]),
        "atoll_op_left_us": (c_uint64, [c_void_p]),
    }

    def __init__(self, context, sandbox):
        self.library = libatoll.library()
        for name, (result, arguments) in self.FUNCTIONS.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self.context = context
        opened = libatoll.Operation(context, self.library.atoll_open(context.pointer, sandbox.encode())).wait()
        self.sandbox = libatoll.Sandbox(context, self.library.atoll_op_sandbox(opened.pointer))
        opened.free()

    def start_read(self, path):
        pointer = self.library.atoll_read_bytes(self.sandbox.pointer, path.encode(), 0, 2**64 - 1, 1 << 20)
        return libatoll.Operation(self.context, pointer)

    def start_write(self, path, data):
        pointer = self.library.atoll_write_bytes(self.sandbox.pointer, path.encode(), data, len(data), 0o644)
        return libatoll.Operation(self.context, pointer)

    def bytes_of(self, operation):
        length = c_size_t()
        operation.wait()
        pointer = self.library.atoll_op_output(operation.pointer, 1, byref(length))
        data = string_at(pointer, length.value)
        operation.free()
        return data

    def read(self, path):
        return self.bytes_of(self.start_read(path))

    def write(self, path, data):
        self.start_write(path, data).wait().free()

    def extend(self, seconds, owner=None):
        operation = libatoll.Operation(self.context, self.library.atoll_extend(
            self.sandbox.pointer, owner and owner.encode(), int(seconds * 1e6))).wait()
        left = self.library.atoll_op_left_us(operation.pointer)
        operation.free()
        return left / 1e6


class EndsTest(HeldTest):
    def handle(self, sandbox):
        environment = mock.patch.dict(os.environ, self.env)
        environment.start()
        self.addCleanup(environment.stop)
        try:
            context = libatoll.Context(ATOLL)
        except libatoll.Unavailable as why:
            self.skipTest(str(why))
        self.addCleanup(context.free)
        return Handle(context, sandbox)

    def record(self, sandbox):
        return json.loads((self.state / sandbox / "record.json").read_text())

    def change_record(self, sandbox, **members):
        path = self.state / sandbox / "record.json"
        path.write_text(json.dumps(self.record(sandbox) | members))

    def ended(self, sandbox):
        """Whether it ended, without asking it: its folder goes with it."""
        return not (self.state / sandbox).exists()

    def assert_lives(self, sandbox, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertFalse(self.ended(sandbox), "it has ended")
            time.sleep(0.05)

    def assert_ends(self, sandbox, limit=support.LIMIT_S):
        wait_for(lambda: self.ended(sandbox), f"the end of {sandbox}", limit)
        self.assert_gone()


class Lifetime(EndsTest):
    def test_it_is_counted_on_the_clock_that_goes_on_while_the_host_sleeps(self):
        sandbox = self.create("--lifetime", "1h")
        self.assertEqual(clocks_of(self.keeper_of(sandbox)), [CLOCK_BOOTTIME])

    def test_it_ends_a_sandbox_and_says_so_to_what_runs(self):
        sandbox = self.create("--lifetime", "1500ms")
        result = self.folder() / "result"
        done = self.atoll("exec", "--result", str(result), sandbox, "--", "sleep", "1000")
        self.assertEqual(done.status, 124)
        self.assertEqual(done.err, b"atoll: sleep: the sandbox's lifetime ended\n")
        told = json.loads(result.read_text())
        self.assertEqual((told["reason"], told["applied_timeout"]), ("lifetime", None))
        self.assertGreater(told["duration"], 0)
        self.assert_ends(sandbox)

    def test_a_timeout_is_cut_to_what_is_left(self):
        sandbox = self.create("--lifetime", "100s")
        result = self.folder() / "result"
        for asked, low, high in (("2h", 30, 100), ("20s", 20, 20)):
            self.good("exec", "--timeout", asked, "--result", str(result), sandbox, "--", "true")
            self.assertTrue(low <= json.loads(result.read_text())["applied_timeout"] <= high, result.read_text())

    def test_a_longer_timeout_than_the_lifetime_ends_by_the_lifetime(self):
        sandbox = self.create("--lifetime", "1500ms")
        result = self.folder() / "result"
        done = self.atoll("exec", "--timeout", "1h", "--result", str(result), sandbox, "--", "sleep", "1000")
        told = json.loads(result.read_text())
        self.assertEqual((done.status, told["reason"]), (124, "lifetime"))
        self.assertLessEqual(told["applied_timeout"], 1.5)
        self.assert_ends(sandbox)

    def test_it_is_warned_of_once(self):
        sandbox = self.create("--lifetime", "2s")
        with open(self.state / sandbox / "events.jsonl", encoding="utf-8") as events:  # its folder goes with it
            self.assert_ends(sandbox)
            told = [json.loads(line) for line in events]
        near = [e for e in told if e["kind"] == "limit"]
        self.assertEqual([e["event"] for e in near], ["lifetime_near"])
        self.assertLessEqual(near[0]["left"], 0.2)

    def test_an_owned_sandbox_has_one_too(self):
        done = self.run_atoll("--lifetime", "1s", "--", "sleep", "1000")
        self.assertEqual(done.status, 124)
        self.assertIn(b"lifetime", done.err)


class Extending(EndsTest):
    def left(self, sandbox):
        return self.json("inspect", sandbox)["expires_at"] - time.time()

    def test_the_new_end_is_told_everywhere(self):
        sandbox = self.create("--lifetime", "100s")
        self.assertLess(self.left(sandbox), 101)
        out = self.good("extend", sandbox, "2h").decode()
        self.assertRegex(out, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n$")
        self.assertTrue(7100 < self.left(sandbox) < 7201)
        self.assertAlmostEqual(self.record(sandbox)["expires_at_us"] / 1e6, time.time() + 7200, delta=60)
        self.assertIn(b"119 min", self.good("list"))
        told = json.loads(self.good("extend", "--json", sandbox, "90s"))  # a shorter one, too
        self.assertEqual(told["id"], sandbox)
        self.assertTrue(60 < told["remaining_lifetime"] <= 90)
        self.assertAlmostEqual(told["expires_at"], time.time() + 90, delta=30)
        self.assertLess(self.left(sandbox), 91)
        self.assertEqual(self.exec(sandbox, "echo alive"), b"alive\n")

    def test_it_puts_the_end_off_and_the_new_one_comes(self):
        sandbox = self.create("--lifetime", "2s")
        self.good("extend", sandbox, "5s")
        self.assert_lives(sandbox, 2.5)
        self.assert_ends(sandbox)

    def test_what_is_no_lifetime_is_refused(self):
        sandbox = self.create("--lifetime", "100s")
        for text, words in (("0", "is out of range"), ("soon", "is not"), ("400d", "is out of range"), ("9000h", "is out of range")):
            with self.subTest(text):
                self.assert_refused(self.atoll("extend", sandbox, text), "the lifetime", words)
        self.assertLess(self.left(sandbox), 101)
        self.assert_refused(self.atoll("extend", sandbox), "extend")
        self.assert_refused(self.atoll("extend", "sb-" + "a" * 26, "1h"))

    def test_only_its_owner_may(self):
        sandbox = self.create("--lifetime", "100s", "--owner", "team/report")
        for options in ((), ("--owner", "team/other")):
            self.assert_refused(self.atoll("extend", sandbox, "1h", *options), "team/report")
        self.assertLess(self.left(sandbox), 101)
        self.good("extend", sandbox, "1h", "--owner", "team/report")
        self.assertGreater(self.left(sandbox), 3000)
        self.good("rm", sandbox, "--owner", "team/report")

    def test_a_sandbox_of_another_backend_cannot_be_extended(self):
        env = {"PATH": f"{Path(ATOLL).parent}:{os.environ['PATH']}", "ATOLL_FOLDER_DIR": str(self.folder() / "folders")}
        made = self.good("create", "--backend", "folder", "--open-network", "--owner", "a/b", env=env).decode().strip()
        self.addCleanup(self.good, "rm", "--force", made, env=env)
        for options in ((), ("--owner", "a/b")):
            self.assert_refused(self.atoll("extend", made, "1h", *options, env=env), "backend 'folder'", "only the lifetime of one of local",
                                "Create it with a longer --lifetime")

    def test_by_the_library(self):
        handle = self.handle(self.create("--lifetime", "100s"))
        self.assertTrue(3500 < handle.extend(3600) <= 3600)
        with self.assertRaises(libatoll.AtollError):
            handle.extend(0)


class Idle(EndsTest):
    def test_questions_do_not_keep_a_sandbox(self):
        sandbox = self.create("--idle-timeout", "2s")
        end = time.monotonic() + 30
        while self.atoll("inspect", sandbox).status == 0:
            self.assertLess(time.monotonic(), end, "questions keep it")
            self.atoll("ps", sandbox)
            self.listed()
        self.assert_ends(sandbox)

    def test_extending_does_not_keep_it_either(self):
        sandbox = self.create("--idle-timeout", "2s", "--lifetime", "1h")
        end = time.monotonic() + 30
        while self.atoll("extend", sandbox, "1h").status == 0:
            self.assertLess(time.monotonic(), end, "it is kept")
        self.assert_ends(sandbox)

    def test_a_silent_connection_for_files_does_not(self):
        sandbox = self.create("--idle-timeout", "2s")
        handle = self.handle(sandbox)
        handle.write("/tmp/a", b"a")
        self.assert_ends(sandbox, 20)
        with self.assertRaises(libatoll.AtollError):
            handle.read("/tmp/a")

    def test_file_calls_do(self):
        sandbox = self.create("--idle-timeout", "2s")
        handle = self.handle(sandbox)
        for number in range(12):
            handle.write("/tmp/a", str(number).encode())
            self.assert_lives(sandbox, 0.3)
            self.assertEqual(handle.read("/tmp/a"), str(number).encode())
        self.assert_ends(sandbox, 20)

    def test_whoever_was_silent_notices_nothing_when_it_goes_on(self):
        sandbox = self.create("--idle-timeout", "4s")
        handle = self.handle(sandbox)
        handle.write("/tmp/a", b"first")
        serving = [p.pid for p in descendants() if p.name == "atoll-files"]
        self.assertEqual(len(serving), 1)
        wait_for(lambda: not [p for p in descendants() if p.name == "atoll-files"], "the end of a silent process")
        # Without a look at what the connection says, and several at once.
        calls = [handle.start_read("/tmp/a"), handle.start_write("/tmp/b", b"second"), handle.start_read("/tmp/b")]
        self.assertEqual(handle.bytes_of(calls[0]), b"first")
        calls[1].wait().free()
        self.assertEqual(handle.bytes_of(calls[2]), b"second")
        self.assertNotEqual([p.pid for p in descendants() if p.name == "atoll-files"], serving)

    def test_silence_counts_from_the_last_call(self):
        """Not from the end of the process that served it, which comes half the time later."""
        sandbox = self.create("--idle-timeout", "6s")
        handle = self.handle(sandbox)
        handle.write("/tmp/a", b"a")
        since = time.monotonic()
        self.assert_ends(sandbox, 20)
        self.assertLess(time.monotonic() - since, 8.5)

    def test_without_an_idle_timeout_the_process_stays(self):
        handle = self.handle(self.create())
        handle.write("/tmp/a", b"a")
        serving = [p.pid for p in descendants() if p.name == "atoll-files"]
        time.sleep(0.5)
        self.assertEqual(handle.read("/tmp/a"), b"a")
        self.assertEqual([p.pid for p in descendants() if p.name == "atoll-files"], serving)

    def test_a_command_that_is_fed_keeps_it(self):
        sandbox = self.create("--idle-timeout", "1s")
        client = self.begin("exec", "-i", sandbox, "--", "cat", stdin=subprocess.PIPE)
        for number in range(5):
            client.stdin.write(b"%d\n" % number)
            client.stdin.flush()
            self.assertEqual(client.stdout.readline(), b"%d\n" % number)
            self.assert_lives(sandbox, 0.5)
        self.assertEqual(client.result(b"").status, 0)
        self.assert_ends(sandbox, 20)

    def test_a_connection_to_a_published_port_keeps_it(self):
        made = json.loads(self.good("create", "--json", "--idle-timeout", "2s", "--publish", "0:8000",
                                    stderr=subprocess.DEVNULL))
        sandbox, port = made["id"], int(made["published"][0].split(":")[1])
        # A server that its command leaves behind: what runs is no command any more.
        self.exec(sandbox, f"""{PYTHON} -c '
import os, socket
server = socket.create_server(("127.0.0.1", 8000))
if os.fork():
    os._exit(0)
os.setsid()
for fd in range(3):
    os.close(fd)
while True:
    connection = server.accept()[0]
    while data := connection.recv(100):
        connection.sendall(data)
    connection.close()
'""")
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            for _ in range(2):
                connection.sendall(b"x")
                self.assertEqual(connection.recv(1), b"x")
                self.assert_lives(sandbox, 2.5)
        self.assert_ends(sandbox, 20)


class Faults(EndsTest):
    def processes_of(self, sandbox):
        """What there is of the one sandbox, by role."""
        names = {"atoll-egress": "egress", "atoll-resolve": "resolve", "atoll-keeper": "keeper"}
        found = {names[p.name]: p.pid for p in descendants() if p.name in names}
        found["init"] = inits()[0].pid
        self.assertEqual(set(found), {"egress", "resolve", "keeper", "init"}, descendants())
        self.assertEqual(found["keeper"], self.keeper_of(sandbox))
        return found

    def test_whatever_is_killed_all_of_it_goes_and_the_caller_is_told_once(self):
        for victim in ("keeper", "egress", "resolve", "init"):
            with self.subTest(victim):
                sandbox = self.create("--allow", "example.org")
                client = self.begin("exec", sandbox, "--", "sh", "-c", "sleep 1000 & setsid sleep 1000 & echo up; wait")
                self.assertEqual(client.stdout.readline(), b"up\n")
                roles = self.processes_of(sandbox)
                spaces = namespaces_of(roles["init"]) if is_root() else set()
                os.kill(roles[victim], signal.SIGKILL)
                done = client.result()
                self.assertNotEqual(done.status, 0)
                self.assertEqual(done.err.count(b"\n"), 1, done.err)
                self.assertTrue(done.err.startswith(b"atoll: "), done.err)
                self.assert_gone(GONE_S)
                wait_for(lambda: support.reap_orphans() or not spaces & namespaces(), "the end of namespaces", GONE_S)
                self.assertEqual(self.listed(), [])
                self.assert_no_state()

    def test_a_disk_that_is_full_stays_usable_and_goes(self):
        sandbox = self.create("--disk", "16M")
        self.exec(sandbox, "echo kept > /tmp/kept; dd if=/dev/zero of=/tmp/big bs=64k 2>/dev/null; true")
        done = self.atoll("write", sandbox, "/tmp/more", stdin=bytes(1 << 20))
        self.assert_refused(done, "the sandbox's disk is full")
        self.assertEqual(self.exec(sandbox, "cat /tmp/kept; ls /tmp"), b"kept\nbig\nkept\n")
        self.good("extend", sandbox, "2s")
        self.assert_ends(sandbox)

    def test_without_the_state_folder_it_lives_on_for_its_clients(self):
        sandbox = self.create()
        client = self.begin("exec", "-i", sandbox, "--", "cat", stdin=subprocess.PIPE)
        keeper = keepers()[0].pid
        handle = self.handle(sandbox)
        shutil.rmtree(self.state)
        client.stdin.write(b"still there\n")
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), b"still there\n")
        handle.write("/tmp/a", b"files too")
        self.assertEqual(handle.read("/tmp/a"), b"files too")
        self.assertGreater(handle.extend(3600), 3500)
        self.assertEqual(self.listed(), [])
        self.assert_refused(self.atoll("exec", sandbox, "--", "true"), "is gone")
        other = self.create()  # in a folder that is made anew
        self.assertEqual(self.listed(), [other])
        self.assertEqual(self.exec(other, "echo other"), b"other\n")
        os.kill(keeper, signal.SIGTERM)
        done = client.result()
        self.assertNotEqual(done.status, 0)
        self.assertTrue(done.err.startswith(b"atoll: ") and done.err.count(b"\n") == 1, done.err)
        wait_for(lambda: keeper not in [p.pid for p in keepers()], "the keeper's end", support.GONE_S)
        self.assertEqual(len(inits()), 1)  # that of the other one
        self.assertEqual(self.listed(), [other])

    def test_a_record_from_elsewhere_is_refused_and_not_swept(self):
        sandbox = self.create()
        good = self.record(sandbox)
        keeper = self.keeper_of(sandbox)
        for members in ({"boot_id": "0" * 32}, {"host": "elsewhere"}, {"uid": good["uid"] + 1}):
            with self.subTest(members):
                self.change_record(sandbox, **members)
                self.assert_refused(self.atoll("exec", sandbox, "--", "true"), "another host, start of the host, or user")
                self.assertEqual(self.listed(), [])
                self.good("gc")
                self.assertTrue((self.state / sandbox).exists())
        self.change_record(sandbox, **good)
        self.assertEqual(self.exec(sandbox, "echo back"), b"back\n")
        self.change_record(sandbox, host="elsewhere")
        os.kill(keeper, signal.SIGKILL)
        self.assert_gone(GONE_S)
        self.good("gc")
        self.assertTrue((self.state / sandbox).exists())  # nothing proves that it is ours
        self.change_record(sandbox, **good)
        self.good("gc")
        self.assertFalse((self.state / sandbox).exists())

    def test_what_died_keepers_left_is_swept_by_those_who_create(self):
        left = [self.create() for _ in range(3)]
        for keeper in keepers():
            os.kill(keeper.pid, signal.SIGKILL)
        self.assert_gone(GONE_S)
        self.assertEqual(len(os.listdir(self.state)), 3)
        new = []
        while [s for s in left if (self.state / s).exists()]:
            self.assertLess(len(new), 40)
            new.append(self.create())
            time.sleep(0.02)  # it is done after the answer
        self.assertEqual(sorted(self.listed()), sorted(new))

    def test_it_survives_whoever_made_it_with_all_that_descends_from_them(self):
        script = f"sleep 1000 & {ATOLL} create; setsid sleep 1000 & exec sleep 1000"
        with subprocess.Popen(["sh", "-c", script], env=self.env, stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, start_new_session=True) as shell:
            sandbox = shell.stdout.readline().decode().strip()
            self.assertTrue(sandbox.startswith("sb-"))
            comm = Path(f"/proc/{shell.pid}/comm")
            wait_for(lambda: comm.read_text() == "sleep\n" and
                     [p.name for p in descendants(shell.pid)] == ["sleep"] * 2, "all that was started")
            mine = descendants(shell.pid)
            self.assertFalse([p for p in mine if p.is_keeper or p.is_init])
            os.killpg(shell.pid, signal.SIGKILL)
            for process in mine:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        self.assertEqual(self.exec(sandbox, "echo alive"), b"alive\n")
        self.assertEqual(self.listed(), [sandbox])


if __name__ == "__main__":
    unittest.main()
