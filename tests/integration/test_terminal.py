# SPDX-License-Identifier: Apache-2.0
"""A command with a terminal of its own, and what happens to the caller's terminal."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
import unittest

import support


def ended(pid):
    found = os.waitpid(pid, os.WNOHANG)
    return found if found[0] else None


class Screen:
    """A terminal made for a test, with atoll on it."""

    def __init__(self, *arguments, rows=33, columns=101, env=None):
        self.master, slave = pty.openpty()
        self.name = os.ttyname(slave)
        self.child = os.fork()
        if self.child == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.closerange(3, 64)
            os.chdir("/")
            environment = {"PATH": os.environ["PATH"], "TERM": "vt100"} if env is None else env
            # The caller sets the size first, else the client might read it before.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(support.ATOLL, [support.ATOLL, "run", *arguments], environment)
        os.close(slave)
        self.seen = b""
        self.status = None

    def read_until(self, text, limit=support.LIMIT_S):
        """Reads until the text was seen, and returns everything up to its end."""
        end = time.monotonic() + limit
        while text not in self.seen:
            if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {text} within {limit} s: {self.seen[-2000:]}")
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                raise AssertionError(f"the end came before {text}: {self.seen[-2000:]}") from None
        found, _, self.seen = self.seen.partition(text)
        return found + text

    def type(self, data):
        os.write(self.master, data)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def settings(self):
        return termios.tcgetattr(self.master)

    def is_raw(self):
        return self.settings()[3] & termios.ICANON == 0

    def hold(self):
        """A descriptor of the terminal's other end, which keeps its settings past the client's end."""
        return os.open(self.name, os.O_RDWR | os.O_NOCTTY)

    def wait(self, limit=support.LIMIT_S):
        """Waits for the end of the client without reading."""
        pid, status = support.wait_for(lambda: ended(self.child), "the end of the client", limit)
        self.status = os.waitstatus_to_exitcode(status)

    def finish(self, limit=support.LIMIT_S):
        """Reads the rest, waits for the end; the status is as a shell says it."""
        end = time.monotonic() + limit
        while True:
            if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no end within {limit} s: {self.seen[-2000:]}")
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            if not data:
                break
            self.seen += data
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        return self.seen

    def close(self):
        if self.status is None:
            try:
                os.kill(self.child, signal.SIGKILL)
                os.waitpid(self.child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        os.close(self.master)


class TerminalTest(support.SandboxTest):
    def screen(self, *arguments, **options):
        screen = Screen(*arguments, **options)
        self.addCleanup(screen.close)
        return screen


class ATerminal(TerminalTest):
    def test_all_three_streams_are_the_terminal(self):
        result = self.sh("test -t 0 && test -t 1 && test -t 2 && tty", "-t")
        self.assertEqual((result.status, result.out), (0, b"/dev/pts/0\r\n"))

    def test_without_one_none_is(self):
        result = self.sh("test -t 0 || test -t 1 || test -t 2 || echo none; : < /dev/tty")
        self.assertEqual(result.out, b"none\n")
        self.assertIn(b"/dev/tty", result.err)

    def test_dev_tty_is_the_terminal(self):
        self.assertEqual(self.sh("echo hello > /dev/tty", "-t").out, b"hello\r\n")

    def test_long_output_is_whole(self):
        result = self.sh("seq 1 200000", "-t")
        self.assertEqual(result.status, 0)
        self.assertEqual(result.out, b"".join(b"%d\r\n" % n for n in range(1, 200001)))

    def test_long_output_to_a_terminal_is_whole(self):
        screen = self.screen("-t", "--", "seq", "1", "200000")
        self.assertEqual(screen.finish().replace(b"\r", b""), b"".join(b"%d\n" % n for n in range(1, 200001)))
        self.assertEqual(screen.status, 0)

    def test_the_status_passes(self):
        self.assertEqual(self.sh("exit 7", "-t").status, 7)
        self.assertEqual(self.sh("kill -KILL $$", "-t").status, 137)
        self.assertEqual(self.sh("sleep 100", "-t", "--timeout", "300ms").status, 124)

    def test_a_background_child_does_not_hold_it(self):
        result = self.sh("trap '' HUP; sleep 600 & printf tail", "-t", limit=30)
        self.assertEqual((result.status, result.out), (0, b"tail"))

    def test_input_is_at_its_end_unless_asked_for(self):
        self.assertEqual(self.run_atoll("-t", "--", "cat", limit=20).status, 0)

    def test_another_user_owns_it(self):
        result = self.sh("tty && echo hello > $(tty)", "-t", "--user", "1000")
        self.assertEqual((result.status, result.out), (0, b"/dev/pts/0\r\nhello\r\n"))

    def test_python_opens_terminals_of_its_own(self):
        script = "import pty, os; m, s = pty.openpty(); os.write(s, b'x'); print(os.read(m, 1))"
        self.assertEqual(self.python_output_of(script), "b'x'\n")


class Size(TerminalTest):
    def test_it_is_that_of_the_callers_terminal(self):
        screen = self.screen("-it", "--", "stty", "size")
        self.assertEqual(screen.finish(), b"33 101\r\n")

    def test_it_follows_the_callers_terminal(self):
        script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"
        screen = self.screen("-it", "--", "sh", "-c", script)
        screen.read_until(b"ready\r\n")
        screen.resize(50, 160)
        screen.read_until(b"50 160\r\n")
        screen.resize(20, 40)
        screen.read_until(b"20 40\r\n")
        screen.type(b"\x03")
        screen.finish()

    def test_without_a_terminal_it_is_the_usual_one(self):
        self.assertEqual(self.sh("stty size", "-t").out, b"24 80\r\n")


class Words(TerminalTest):
    def test_term_is_set_with_a_terminal_only(self):
        self.assertEqual(self.output_of("echo ${TERM-none}"), "none\n")
        self.assertEqual(self.sh("echo ${TERM-none}", "-t").out, b"xterm-256color\r\n")
        self.assertEqual(self.sh("echo ${TERM-none}", "-t", "--env", "TERM=dumb").out, b"dumb\r\n")

    def test_the_character_set_is_utf_8(self):
        self.assertEqual(self.output_of("locale charmap"), "UTF-8\n")
        self.assertEqual(self.sh("locale charmap", "-t").out, b"UTF-8\r\n")
        self.assertEqual(self.python_output_of("print('│ ü 漢')"), "│ ü 漢\n")

    def test_the_caller_may_choose_another(self):
        self.assertEqual(self.output_of("locale charmap", "--env", "LC_ALL=C"), "ANSI_X3.4-1968\n")


class Keys(TerminalTest):
    def test_what_is_typed_arrives(self):
        screen = self.screen("-it", "--", "sh", "-c", "echo ready; read line; echo \"got $line\"")
        screen.read_until(b"ready\r\n")
        screen.type("grün\r".encode())
        screen.read_until("got grün\r\n".encode())
        screen.finish()
        self.assertEqual(screen.status, 0)

    def test_the_interrupt_key_goes_to_the_program_inside(self):
        script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done"
        screen = self.screen("-it", "--", "sh", "-c", script)
        screen.read_until(b"ready\r\n")
        screen.type(b"\x03")
        screen.read_until(b"interrupted\r\n")
        screen.finish()
        self.assertEqual(screen.status, 5)

    def test_a_program_inside_may_take_every_key(self):
        script = """
import os, tty
tty.setraw(0)
os.write(1, b"ready")
data = b""
while len(data) < 5:
    data += os.read(0, 16)
os.write(1, repr(data).encode() + b"end")
"""
        screen = self.screen("-it", "--", support.PYTHON, "-c", script)
        screen.read_until(b"ready")
        screen.type(b"\x03\x1a\x04\x1c\r")
        self.assertIn(rb"b'\x03\x1a\x04\x1c\r'", screen.read_until(b"end"))
        screen.finish()
        self.assertEqual(screen.status, 0)

    def test_the_end_of_input_key_ends_a_reader(self):
        screen = self.screen("-it", "--", "sh", "-c", "echo ready; cat; echo over")
        screen.read_until(b"ready\r\n")
        screen.type(b"a\r\x04")
        screen.read_until(b"over\r\n")
        screen.finish()
        self.assertEqual(screen.status, 0)

    def test_a_shell_has_job_control(self):
        self.need("bash")
        screen = self.screen("-it", "--env", "PS1=prompt> ", "--", "bash", "--norc", "-i")
        screen.read_until(b"prompt> ")
        screen.type(b"sleep 100\r")
        support.wait_for(lambda: [p for p in support.descendants() if p.arguments == (b"sleep", b"100")], "sleep")
        screen.type(b"\x1a")
        screen.read_until(b"Stopped")
        screen.read_until(b"prompt> ")
        screen.type(b"kill -9 %1; while jobs -s | grep -q sleep; do sleep 0.1; done; exit 3\r")
        screen.finish()
        self.assertEqual(screen.status, 3)

    def test_input_from_a_pipe_arrives_with_a_terminal(self):
        result = self.run_atoll("-it", "--", "sh", "-c", "read line; echo \"got $line\"", stdin=b"hello\n")
        self.assertEqual(result.status, 0)
        self.assertTrue(result.out.endswith(b"got hello\r\n"), result.out)

    def test_the_end_of_a_pipe_ends_a_reader_with_a_terminal(self):
        result = self.run_atoll("-it", "--", "cat", stdin=b"one\ntwo\n", limit=20)
        self.assertEqual(result.status, 0)
        self.assertTrue(result.out.endswith(b"one\r\ntwo\r\n"), result.out)


def ordinary_settings():
    master, slave = pty.openpty()
    settings = termios.tcgetattr(slave)
    os.close(master)
    os.close(slave)
    return settings


class Settings(TerminalTest):
    def test_they_are_restored_however_the_command_ends(self):
        for ending in ("exit 0", "kill -KILL $$", "stty raw -echo; exit 1"):
            with self.subTest(ending=ending):
                screen = self.screen("-it", "--", "sh", "-c", f"read line; {ending}")
                held = screen.hold()
                self.addCleanup(os.close, held)
                support.wait_for(screen.is_raw, "raw mode")
                screen.type(b"\r")
                screen.wait()
                self.assertEqual(termios.tcgetattr(held), ordinary_settings())

    def test_they_are_restored_when_the_keeper_is_killed(self):
        screen = self.screen("-it", "--", "sleep", "1000")
        held = screen.hold()
        self.addCleanup(os.close, held)
        support.wait_for(screen.is_raw, "raw mode")
        os.kill(support.keepers()[0].pid, signal.SIGKILL)
        screen.wait()
        self.assertEqual(screen.status, 125)
        self.assertEqual(termios.tcgetattr(held), ordinary_settings())

    def test_they_are_restored_when_the_client_is_ended_by_signals(self):
        screen = self.screen("-it", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
        held = screen.hold()
        self.addCleanup(os.close, held)
        support.wait_for(screen.is_raw, "raw mode")
        for _ in range(3):
            os.kill(screen.child, signal.SIGTERM)
            time.sleep(0.2)  # equal signals that wait at once would be one
        screen.wait()
        self.assertEqual(screen.status, 143)
        self.assertEqual(termios.tcgetattr(held), ordinary_settings())

    def test_they_stay_as_they_are_without_a_terminal_inside(self):
        screen = self.screen("-i", "--", "sh", "-c", "echo ready; read line; echo \"got $line\"")
        screen.read_until(b"ready")
        self.assertFalse(screen.is_raw())
        screen.type(b"hello\n")
        screen.read_until(b"got hello\r\n", limit=20)
        screen.finish()

    def test_a_terminal_that_nobody_types_on_does_not_hold_the_call(self):
        screen = self.screen("-i", "--timeout", "1s", "--", "sh", "-c", "read line; echo \"got $line\"; sleep 1000")
        screen.type(b"hello\n")
        screen.read_until(b"got hello\r\n", limit=20)
        screen.finish(limit=20)
        self.assertEqual(screen.status, 124)

    def test_a_terminal_that_nobody_reads_does_not_hold_signals_up(self):
        screen = self.screen("--", "yes")
        support.wait_for(lambda: [p for p in support.descendants() if p.arguments == (b"yes",)], "yes")
        time.sleep(1)  # until every buffer is full
        for _ in range(3):
            os.kill(screen.child, signal.SIGTERM)
            time.sleep(0.2)  # equal signals that wait at once would be one
        screen.wait(limit=20)
        self.assertEqual(screen.status, 143)

    def test_the_callers_terminal_cannot_be_reached(self):
        script = (
            "import fcntl, os, termios\n"
            "for fd in range(3):\n"
            "    try: fcntl.ioctl(fd, 0x5412, b'x')\n"
            "    except OSError as error: print(fd, error.errno)\n"
            "try: os.open('/dev/tty', os.O_RDWR)\n"
            "except OSError as error: print('tty', error.errno)\n"
        )
        screen = self.screen("--", support.PYTHON, "-c", script)
        seen = screen.finish()
        self.assertIn(b"tty 6\r\n", seen)  # ENXIO: no controlling terminal
        for fd in (b"0", b"1", b"2"):
            self.assertRegex(seen, fd + rb" (1|25)\r\n")  # EPERM or ENOTTY


if __name__ == "__main__":
    unittest.main()
