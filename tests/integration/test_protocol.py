# SPDX-License-Identifier: Apache-2.0
"""The sandbox protocol, spoken with a real keeper by a client that shares no code with it."""
import errno
import hashlib
import os
import select
import signal
import socket
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from protocol import (  # noqa: E402
    FRAME, MORE, PAYLOAD_MAX, STDOUT, WINDOW, Closed, EndedBy, Exec, Keeper, Reason, Tag, Type, encode,
    hello, volume)

ATOLL = os.environ.get("ATOLL") or str(HERE.parents[1] / "build/atoll")
END_S = 20  # for a keeper to exit


def children(pid):
    """The processes whose parent is pid, zombies too."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry))
    return found


def exists(pid):
    return os.path.exists(f"/proc/{pid}")


class ProtocolTest(unittest.TestCase):
    def keeper(self, *fields, create=True, greet=True):
        keeper = Keeper(ATOLL, greet)
        self.addCleanup(self.end, keeper)
        if create:
            keeper.create(*fields)
        return keeper

    def end(self, keeper):
        """Whatever a test did: once the socket is closed, the keeper and the sandbox end."""
        inside = children(keeper.process.pid) if keeper.process.poll() is None else []
        with keeper:
            pass
        self.assertFalse([pid for pid in inside if exists(pid)], "something of the sandbox is left")

    def refused(self, keeper, number, code):
        """The ERROR for a request, which the sandbox outlives."""
        message = keeper.next(lambda m: m.type == Type.ERROR and m.id == number)
        self.assertEqual(message[Tag.ERROR_CODE], code, message.fields)
        self.assertTrue(message[Tag.ERROR_MESSAGE])
        return message

    def disconnected(self, keeper):
        """The keeper closes the connection and exits."""
        with self.assertRaises(Closed):
            while True:
                keeper.receive()
        keeper.process.wait(END_S)

    def living(self, keeper, name):
        """Whether a process of that command line runs inside, by what the sandbox itself sees."""
        script = f"for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null | grep -c '^{name} '"
        return int(keeper.run(script)[1])


class Greeting(ProtocolTest):
    def test_the_keeper_greets_with_its_version(self):
        keeper = self.keeper(create=False, greet=False)
        keeper.send(Type.HELLO, 5, hello(1, 999))
        message = keeper.expect(Type.HELLO, 5)
        self.assertEqual(message[Tag.VERSION_MAJOR], 1)

    def test_another_major_version_is_told_and_refused(self):
        for major in (0, 2, 2**32 - 1):
            keeper = self.keeper(create=False, greet=False)
            keeper.send(Type.HELLO, 0, hello(major))
            keeper.next(lambda m: m.type == Type.HELLO)
            message = self.refused(keeper, 0, errno.EPROTO)
            self.assertIn("version 1", message[Tag.ERROR_MESSAGE])
            self.assertTrue(message[Tag.ERROR_REMEDY])
            self.disconnected(keeper)

    def test_a_message_before_the_greeting_is_refused(self):
        keeper = self.keeper(create=False, greet=False)
        keeper.send(Type.CREATE, 1)
        self.refused(keeper, 1, errno.EPROTO)
        self.disconnected(keeper)

    def test_an_unknown_operation_is_refused_and_unknown_fields_are_not(self):
        keeper = self.keeper((Tag.HOSTNAME, "box"), (60000, 7))
        keeper.send(200, 77)
        self.refused(keeper, 77, errno.ENOSYS)
        self.assertEqual(keeper.run("hostname"), (0, "box\n"))


class Creating(ProtocolTest):
    def test_a_keeper_has_one_sandbox(self):
        keeper = self.keeper()
        number = keeper.request(Type.CREATE)
        self.refused(keeper, number, errno.EEXIST)
        self.assertEqual(keeper.run("echo ok"), (0, "ok\n"))

    def test_a_command_needs_a_sandbox(self):
        keeper = self.keeper(create=False)
        self.refused(keeper, keeper.shell("true"), errno.ENOENT)
        keeper.create()

    def test_a_command_may_be_sent_right_behind_create(self):
        keeper = self.keeper(create=False)
        create = keeper.request(Type.CREATE)
        number = keeper.shell("echo early")
        report, out, _ = keeper.finish(number)
        self.assertEqual((report[Tag.REASON], out), (Reason.EXITED, b"early\n"))
        keeper.expect(Type.CREATED, create)

    def test_a_failed_create_ends_commands_sent_behind_it_too(self):
        keeper = self.keeper(create=False)
        create = keeper.request(Type.CREATE, (Tag.VOLUME, volume("/absent", "/data")))
        number = keeper.shell("true")
        self.refused(keeper, create, errno.ENOENT)
        keeper.next(lambda m: m.type == Type.ENDED)
        for message in keeper.waiting:  # it may have been taken before the failure was known
            self.assertEqual((message.type, message.id), (Type.EXITED, number))
            self.assertEqual(message[Tag.REASON], Reason.ERROR)
        self.disconnected(keeper)

    def test_a_spec_that_cannot_be_read_is_refused(self):
        for field in ((Tag.PIDS, 0), (Tag.UID, 65535), (Tag.WORKDIR, "relative")):
            keeper = self.keeper(create=False)
            self.refused(keeper, keeper.request(Type.CREATE, field), errno.EPROTO)

    def test_an_image_of_another_backend_is_refused(self):
        keeper = self.keeper(create=False)
        self.refused(keeper, keeper.request(Type.CREATE, (Tag.IMAGE, "debian")), errno.EINVAL)

    def test_steps_are_told_in_order_if_asked_for(self):
        keeper = self.keeper(create=False)
        number = keeper.request(Type.CREATE, (Tag.CREATE_FLAGS, 2))
        keeper.expect(Type.CREATED, number)
        steps = [m for m in keeper.waiting if m.type == Type.STEP]
        self.assertEqual([m[Tag.STEP_INDEX] for m in steps], sorted(m[Tag.STEP_INDEX] for m in steps))
        self.assertTrue(any("pivot" in m[Tag.STEP_TEXT] for m in steps))
        self.assertFalse([m[Tag.STEP_TEXT] for m in steps if "(null)" in m[Tag.STEP_TEXT]])

    def test_values_of_variables_are_told_only_to_who_asks_for_them(self):
        keeper = self.keeper((Tag.ENV, "TOKEN=not for texts"), (Tag.ENV, "EMPTY="))
        self.assertEqual(keeper.inspect().all(Tag.ENV), [])
        self.assertEqual(keeper.inspect((Tag.INSPECT_FLAGS, 0)).all(Tag.ENV), [])
        self.assertEqual(keeper.inspect((Tag.INSPECT_FLAGS, 1)).all(Tag.ENV), ["TOKEN=not for texts", "EMPTY="])


class Streams(ProtocolTest):
    def test_passed_descriptors_are_the_commands_streams(self):
        keeper = self.keeper()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as given:
            given.write(b"hello")
            given.seek(0)
            fds = (given.fileno(), out.fileno(), out.fileno())
            number = keeper.shell("cat; echo err >&2", flags=Exec.STDIN, fds=fds)
            keeper.finish(number)
            out.seek(0)
            self.assertEqual(out.read(), b"helloerr\n")

    def test_a_wrong_number_of_descriptors_is_refused(self):
        keeper = self.keeper()
        before = len(os.listdir(f"/proc/{keeper.process.pid}/fd"))
        with open("/dev/null", "r+b") as null:
            fd = null.fileno()
            for flags, fds in ((0, ()), (0, (fd,)), (0, (fd,) * 3), (Exec.STDIN, (fd,) * 2), (Exec.IN_BAND, (fd,)),
                               (Exec.TTY, (fd,)), (0, (fd,) * 16)):
                self.refused(keeper, keeper.shell("true", flags=flags, fds=fds), errno.EINVAL)
        # They are closed a moment after the refusal is sent.
        deadline = time.monotonic() + END_S
        while len(os.listdir(f"/proc/{keeper.process.pid}/fd")) != before and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(len(os.listdir(f"/proc/{keeper.process.pid}/fd")), before)

    def test_50_mb_come_exact_and_before_the_end(self):
        keeper = self.keeper()
        number = keeper.shell("yes 0123456789abcde | head -c 50000000")
        report, out, _ = keeper.finish(number)
        self.assertEqual(report[Tag.EXIT_CODE], 0)
        self.assertEqual(len(out), 50000000)
        self.assertEqual(out, (b"0123456789abcde\n" * 3125000)[:50000000])

    def test_a_keeper_never_sends_more_than_the_credit(self):
        keeper = self.keeper()
        number = keeper.shell("yes | head -c 1000000; echo done >&2")
        got = 0
        with self.assertRaises(TimeoutError):
            while True:
                message = keeper.next(lambda m: m.id == number and m.fields.get(Tag.STREAM) == STDOUT, 1)
                got += len(message[Tag.DATA])
        self.assertEqual(got, WINDOW)
        keeper.credit(number, STDOUT, 1000)  # and it goes on from there
        while got < WINDOW + 1000:
            got += len(keeper.next(lambda m: m.id == number and m.type == Type.OUTPUT)[Tag.DATA])
        self.assertEqual(got, WINDOW + 1000)
        keeper.credit(number, STDOUT, WINDOW)
        report, out, err = keeper.finish(number)
        self.assertEqual((got + len(out), err), (1000000, b"done\n"))
        self.assertEqual(report[Tag.EXIT_CODE], 0)

    def test_too_much_credit_is_refused(self):
        keeper = self.keeper()
        number = keeper.shell("sleep 30")
        keeper.credit(number, STDOUT, 1)
        self.refused(keeper, number, errno.EPROTO)
        keeper.credit(number, 0, 1)
        self.refused(keeper, number, errno.EPROTO)
        self.assertEqual(keeper.run("echo ok"), (0, "ok\n"))

    def test_input_travels_under_credit(self):
        keeper = self.keeper()
        data = os.urandom(3_000_000)
        number = keeper.shell("exec sha256sum", flags=Exec.IN_BAND | Exec.STDIN)
        credit, at = WINDOW, 0
        while at < len(data):
            if credit == 0:
                credit += keeper.next(lambda m: m.type == Type.CREDIT and m.id == number)[Tag.CREDIT]
            part = data[at:at + min(credit, 30000)]
            keeper.input(number, part)
            credit -= len(part)
            at += len(part)
        keeper.input(number, b"")
        _, out, _ = keeper.finish(number)
        self.assertEqual(out.split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_input_over_the_window_is_refused(self):
        keeper = self.keeper()
        number = keeper.shell("sleep 30", flags=Exec.IN_BAND | Exec.STDIN)
        for _ in range(2 * WINDOW // 32000 + 4):  # a pipe may take some of it
            keeper.input(number, bytes(32000))
        self.refused(keeper, number, errno.ENOBUFS)
        self.assertEqual(keeper.run("echo ok"), (0, "ok\n"))

    def test_input_after_the_end_is_refused(self):
        keeper = self.keeper()
        number = keeper.shell("true", flags=Exec.IN_BAND | Exec.STDIN)
        keeper.finish(number)
        keeper.input(number, b"late")
        message = self.refused(keeper, number, errno.EPIPE)
        self.assertIn("exited", message[Tag.ERROR_MESSAGE])

    def test_a_command_without_input_reads_the_end_at_once(self):
        self.assertEqual(self.keeper().run("cat; echo end"), (0, "end\n"))

    def test_output_held_by_a_background_process_is_given_up(self):
        keeper = self.keeper()
        report, out, _ = keeper.finish(keeper.shell("sleep 1000 & echo front"))
        self.assertEqual((report[Tag.REASON], out), (Reason.EXITED, b"front\n"))
        self.assertEqual(self.living(keeper, "sleep 1000"), 1)


class Terminals(ProtocolTest):
    SIZE = ((Tag.ROWS, 30), (Tag.COLUMNS, 90))

    def test_a_terminal_comes_as_a_descriptor(self):
        keeper = self.keeper()
        number = keeper.shell("stty size; tty; read x; echo got $x", flags=Exec.TTY, fields=self.SIZE)
        message = keeper.expect(Type.STARTED, number)
        self.assertEqual(len(message.fds), 1)
        master = message.fds[0]
        self.addCleanup(os.close, master)
        os.write(master, b"line\n")
        text = b""
        deadline = time.monotonic() + END_S
        while b"got line" not in text and time.monotonic() < deadline:
            if select.select([master], [], [], 1)[0]:
                text += os.read(master, 4096)
        self.assertIn(b"30 90", text)
        self.assertIn(b"/dev/pts/", text)
        self.assertEqual(keeper.expect(Type.EXITED, number)[Tag.EXIT_CODE], 0)

    def test_a_terminal_in_band_is_resized_and_takes_the_end_of_input(self):
        keeper = self.keeper()
        number = keeper.shell("stty size; read x; stty size; cat; echo over",
                              flags=Exec.TTY | Exec.IN_BAND | Exec.STDIN, fields=self.SIZE)
        self.assertEqual(keeper.expect(Type.STARTED, number).fds, [])
        keeper.next(lambda m: m.type == Type.OUTPUT and b"30 90" in m[Tag.DATA])
        keeper.request(Type.RESIZE, (Tag.ROWS, 40), (Tag.COLUMNS, 100), number=number)
        keeper.input(number, b"\n")
        keeper.next(lambda m: m.type == Type.OUTPUT and b"40 100" in m[Tag.DATA])
        keeper.input(number, b"")
        report, out, _ = keeper.finish(number)
        self.assertIn(b"over", out)
        self.assertEqual(report[Tag.EXIT_CODE], 0)


class Ends(ProtocolTest):
    HIDERS = {
        "double fork": "(sleep 2001 & ) & sleep 2001",
        "new session": "setsid sleep 2001 & sleep 2001",
        "re-forking": "f() { sleep 0.01; f & }; f & f & sleep 2001",
        "stopped": "sleep 2001 & kill -STOP $!; sleep 2001",
        "no output": "exec >/dev/null 2>&1; (trap '' TERM HUP INT; sleep 2001) & sleep 2001",
    }

    def test_a_timeout_ends_all_of_one_command_and_nothing_else(self):
        keeper = self.keeper()
        keeper.run("sleep 3001 >/dev/null 2>&1 & true")
        other = keeper.shell("sleep 3002")
        for name, script in self.HIDERS.items():
            with self.subTest(name):
                report, _, _ = keeper.finish(keeper.shell(script, timeout_us=400000))
                self.assertEqual(report[Tag.REASON], Reason.TIMEOUT)
                self.assertEqual(report[Tag.TIMEOUT_US], 400000)
                self.assertEqual(self.living(keeper, "sleep 2001"), 0)
                self.assertEqual(self.living(keeper, "sleep 3001"), 1)
                self.assertEqual(self.living(keeper, "sleep 3002"), 1)
        keeper.request(Type.SIGNAL, (Tag.SIGNAL, signal.SIGTERM), number=other)
        self.assertEqual(keeper.finish(other)[0][Tag.SIGNAL], signal.SIGTERM)

    def test_a_timeout_ends_a_program_that_nobody_may_read(self):
        keeper = self.keeper()
        keeper.run("cp $(command -v sleep) /tmp/unreadable && chmod 0111 /tmp/unreadable")
        report, _, _ = keeper.finish(keeper.shell("/tmp/unreadable 2002 & /tmp/unreadable 2002", timeout_us=400000))
        self.assertEqual(report[Tag.REASON], Reason.TIMEOUT)
        self.assertEqual(self.living(keeper, "/tmp/unreadable 2002"), 0)

    def test_a_fork_bomb_ends_with_its_timeout(self):
        keeper = self.keeper((Tag.PIDS, 300))
        # The shell that waits does not fork any more, which could fail.
        report, _, _ = keeper.finish(keeper.shell("sleep 2003 & f() { f | f & }; f; wait", timeout_us=1000000), 60)
        self.assertEqual(report[Tag.REASON], Reason.TIMEOUT)
        after, out, _ = keeper.finish(keeper.shell("echo ok"))
        self.assertEqual((after[Tag.EXIT_CODE], out), (0, b"ok\n"), after)

    def test_a_signal_may_make_the_end_of_a_command_that_of_all_it_started(self):
        keeper = self.keeper()
        keeper.run("sleep 3001 >/dev/null 2>&1 & true")
        for flags, name, left in ((0, "sleep 2001", 1), (1, "sleep 2002", 0)):
            number = keeper.shell(f"setsid sh -c 'echo up; exec >/dev/null 2>&1 {name}' & sleep 2003")
            keeper.next(lambda m: m.type == Type.OUTPUT and m[Tag.DATA] == b"up\n")
            keeper.request(Type.SIGNAL, (Tag.SIGNAL, signal.SIGTERM), (Tag.SIGNAL_FLAGS, flags), number=number)
            report, _, _ = keeper.finish(number)
            self.assertEqual((report[Tag.REASON], report[Tag.SIGNAL]), (Reason.EXITED, signal.SIGTERM))
            self.assertEqual(self.living(keeper, name), left)
            self.assertEqual(self.living(keeper, "sleep 3001"), 1)

    def test_a_signal_reaches_the_process_group(self):
        keeper = self.keeper()
        number = keeper.shell("trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.05; done")
        keeper.next(lambda m: m.type == Type.OUTPUT and m[Tag.DATA] == b"ready\n")
        keeper.request(Type.SIGNAL, (Tag.SIGNAL, signal.SIGUSR1), number=number)
        report, out, _ = keeper.finish(number)
        self.assertEqual((report[Tag.EXIT_CODE], out), (7, b"caught\n"))
        keeper.request(Type.SIGNAL, (Tag.SIGNAL, signal.SIGUSR1), number=number)  # late: dropped
        number = keeper.shell("sleep 30")
        for wrong in (0, 65, 2**32 - 1):
            keeper.request(Type.SIGNAL, (Tag.SIGNAL, wrong), number=number)
            self.refused(keeper, number, errno.EINVAL)

    def test_a_lifetime_ends_the_sandbox_and_its_commands(self):
        keeper = self.keeper((Tag.LIFETIME_US, 500000))
        number = keeper.shell("sleep 30")
        self.assertEqual(keeper.finish(number)[0][Tag.REASON], Reason.LIFETIME)
        self.assertEqual(keeper.next(lambda m: m.type == Type.ENDED)[Tag.ENDED_BY], EndedBy.LIFETIME)
        self.disconnected(keeper)

    def test_a_sandbox_ends_with_its_last_command(self):
        keeper = self.keeper()
        with open("/dev/null", "r+b") as null:
            number = keeper.shell("exit 3", flags=Exec.LAST, fds=(null.fileno(),) * 2)
        self.assertEqual(keeper.finish(number)[0][Tag.EXIT_CODE], 3)
        keeper.next(lambda m: m.type == Type.ENDED)
        self.disconnected(keeper)

    def test_the_end_is_told_when_nothing_is_left(self):
        keeper = self.keeper()
        number = keeper.shell("for i in $(seq 100); do sleep 1000 & done; wait")
        init = children(keeper.process.pid)
        self.assertTrue(init)
        message = keeper.destroy()
        self.assertFalse([pid for pid in init if exists(pid)])
        self.assertEqual(message[Tag.ENDED_BY], EndedBy.DESTROYED)
        self.assertTrue([m for m in keeper.waiting if m.id == number and m.type == Type.EXITED])
        self.disconnected(keeper)

    def test_a_failed_start_is_reported_with_its_stage(self):
        keeper = self.keeper()
        report, _, _ = keeper.finish(keeper.exec("/absent"))
        self.assertEqual((report[Tag.EXIT_CODE], report[Tag.START_ERRNO]), (127, errno.ENOENT))
        report, _, _ = keeper.finish(keeper.exec("/bin/true", fields=((Tag.WORKDIR, "/absent"),)))
        self.assertEqual(report[Tag.START_ERRNO], errno.ENOENT)


class Many(ProtocolTest):
    def test_a_thousand_commands_leak_nothing(self):
        keeper = self.keeper()
        fds = f"/proc/{keeper.process.pid}/fd"
        keeper.run("true")
        before, processes = len(os.listdir(fds)), len(children(keeper.process.pid))
        for i in range(1000):
            report, _, _ = keeper.finish(keeper.exec("/bin/true"))
            self.assertEqual(report[Tag.EXIT_CODE], 0, i)
        self.assertEqual(len(os.listdir(fds)), before)
        self.assertEqual(len(children(keeper.process.pid)), processes)
        self.assertEqual(keeper.run("set -- /proc/[0-9]*; echo $#"), (0, "2\n"))  # init and this shell

    def test_fifty_commands_run_at_once(self):
        keeper = self.keeper()
        numbers = [keeper.shell(f"sleep 0.2; echo {i}") for i in range(50)]
        for i, number in enumerate(numbers):
            report, out, _ = keeper.finish(number)
            self.assertEqual((report[Tag.EXIT_CODE], out), (0, f"{i}\n".encode()))

    def test_an_id_names_one_command_at_a_time(self):
        keeper = self.keeper()
        keeper.shell("sleep 1; echo first", number=500)
        keeper.shell("echo second", number=500)
        self.refused(keeper, 500, errno.EEXIST)
        self.assertEqual(keeper.finish(500)[1], b"first\n")
        keeper.shell("echo third", number=500)
        self.assertEqual(keeper.finish(500)[1], b"third\n")

    def test_large_arguments_arrive(self):
        keeper = self.keeper()
        for n in (1, 3, 8, 15):  # one frame's worth up to what exec takes
            with self.subTest(hundreds_of_kilobytes=n):
                script = 'for a; do printf %s "$a"; done | wc -c'
                number = keeper.exec("/bin/sh", "-c", script, "sh", *["x" * 100000] * n)
                self.assertEqual(keeper.finish(number, 10)[1].split(), [str(100000 * n).encode()])

    def test_a_flood_of_commands_is_bounded(self):
        keeper = self.keeper()
        numbers = set()
        keeper.socket.settimeout(END_S)
        try:
            for _ in range(1500):
                numbers.add(keeper.exec("/bin/sleep", "1000"))
        except (Closed, TimeoutError):
            pass
        failed = 0
        try:
            while True:
                message = keeper.receive(3 if failed else END_S)
                failed += message.type in (Type.EXITED, Type.ERROR)
        except (Closed, TimeoutError):
            pass
        self.assertGreater(failed, 0)
        if keeper.process.poll() is None:
            self.assertLess(len(os.listdir(f"/proc/{keeper.process.pid}/fd")), 10000)


class BadClients(ProtocolTest):
    def test_bytes_that_are_no_message_end_the_sandbox(self):
        bad = {
            "garbage": b"GET / HTTP/1.1\r\n\r\n",
            "one byte": b"x",
            "cut header": FRAME.pack(0, Type.EXEC, 0, 1, 0)[:15],
            "cut payload": FRAME.pack(8, Type.EXEC, 0, 1, 0) + b"1234",
            "too much payload": FRAME.pack(2, Type.EXEC, 0, 1, 0) + b"1234",
            "unknown flag": FRAME.pack(0, Type.EXEC, 2, 1, 0),
            "reserved word": FRAME.pack(0, Type.EXEC, 0, 1, 1),
            "oversize frame": FRAME.pack(PAYLOAD_MAX + 1, Type.EXEC, 0, 1, 0) + bytes(PAYLOAD_MAX + 1),
            "oversize packet": bytes(100000),
        }
        for name, data in bad.items():
            with self.subTest(name):
                keeper = self.keeper()
                keeper.send_packet(data)
                self.disconnected(keeper)

    def test_another_message_within_one_ends_the_sandbox(self):
        keeper = self.keeper()
        keeper.send_packet(FRAME.pack(PAYLOAD_MAX, Type.EXEC, MORE, 1, 0) + bytes(PAYLOAD_MAX))
        keeper.send_packet(FRAME.pack(0, Type.DESTROY, 0, 2, 0))
        self.disconnected(keeper)

    def test_a_message_without_an_end_ends_the_sandbox(self):
        keeper = self.keeper()
        with self.assertRaises(Closed):
            for _ in range(200):
                keeper.send_packet(FRAME.pack(PAYLOAD_MAX, Type.EXEC, MORE, 1, 0) + bytes(PAYLOAD_MAX))
        self.disconnected(keeper)

    def test_fields_that_make_no_sense_are_refused(self):
        keeper = self.keeper()
        for number, payload in enumerate((b"", b"x", encode((Tag.ENV, "A=1")), b"\x10\0\1\0\2\0\0\0a\0"), 900):
            keeper.send(Type.EXEC, number, payload)
            self.refused(keeper, number, errno.EPROTO)
        self.assertEqual(keeper.run("echo ok"), (0, "ok\n"))

    def test_too_many_descriptors_end_the_sandbox(self):
        keeper = self.keeper()
        with open("/dev/null", "rb") as null:
            keeper.send_packet(FRAME.pack(0, Type.EXEC, 0, 1, 0), (null.fileno(),) * 17)
        self.disconnected(keeper)

    def test_a_client_may_close_at_any_point(self):
        def nothing(_):
            pass

        def half_a_message(keeper):
            keeper.send_packet(FRAME.pack(0, Type.EXEC, MORE, 1, 0))

        moments = {
            "before the greeting": (False, nothing),
            "after the greeting": (True, nothing),
            "while creating": (True, lambda k: k.request(Type.CREATE)),
            "with a command sent": (True, lambda k: (k.request(Type.CREATE), k.shell("sleep 1000"))),
            "with a command running": (True, lambda k: (k.create(), k.exec("/bin/sleep", "1000"))),
            "with output on the way": (True, lambda k: (k.create(), k.shell("yes"))),
            "while destroying": (True, lambda k: (k.create(), k.request(Type.DESTROY))),
            "within a message": (True, lambda k: (k.create(), half_a_message(k))),
        }
        for name, (greet, act) in moments.items():
            with self.subTest(name):
                keeper = Keeper(ATOLL, greet)
                try:
                    act(keeper)
                finally:
                    self.end(keeper)

    def test_a_client_that_only_stops_writing_is_gone(self):
        keeper = self.keeper()
        keeper.shell("sleep 1000")
        keeper.socket.shutdown(socket.SHUT_WR)
        self.disconnected(keeper)


if __name__ == "__main__":
    unittest.main()
