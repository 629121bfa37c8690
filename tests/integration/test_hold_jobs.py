# SPDX-License-Identifier: Apache-2.0
"""`atoll hold` as a job of a shell: keys, stops, the background, pipelines; and without a terminal."""
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import ATOLL, GONE_S, LIMIT_S, HeldTest, wait_for

CTRL_C, CTRL_Z = "\x03", "\x1a"
PROMPT = "@@ "


class Shell:
    """An interactive bash on a terminal of its own, which does not echo."""

    def __init__(self, env):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"],
                       env | {"PS1": PROMPT, "PS2": "", "HISTFILE": "/dev/null", "LC_ALL": "C"})
        self.run("stty -echo; set -b; echo rea''dy", "ready")
        self.expect(PROMPT)

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern):
        """What was printed up to and with the pattern, since the last one."""
        end = time.monotonic() + LIMIT_S
        while not (found := re.search(pattern, self.seen)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode()
        text, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return text

    def run(self, line, pattern):
        self.type(line + "\n")
        return self.expect(pattern)

    def key(self, key):
        """A key that takes the terminal back to the shell. It drops what is typed meanwhile."""
        self.type(key)
        return self.expect(PROMPT)

    def foreground(self):
        """The last job, which has the terminal then."""
        self.type("fg\n")
        wait_for(lambda: os.tcgetpgrp(self.fd) != self.pid, "a job in the foreground")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Jobs(HeldTest):
    def setUp(self):
        super().setUp()
        self.sandbox = self.create("--owner", "o")

    def lease(self):
        return self.json("inspect", self.sandbox)["lease"]["state"]

    def free(self):
        wait_for(lambda: self.lease() == "free", "the end of the lease", GONE_S)


class Terminal(Jobs):
    def setUp(self):
        super().setUp()
        self.need("bash")
        self.shell = Shell(os.environ | self.env | {"HOLD": f"{ATOLL} hold {self.sandbox} --owner o --"})
        self.addCleanup(self.shell.close)

    def stopped_reader(self):
        """A job in the background whose command wants to read."""
        self.shell.run("""$HOLD sh -c 'read y; echo "got <$y>"; exit 3' &""", r"Stopped .*\n")
        self.assertEqual(self.lease(), "held")

    def test_one_in_the_background_that_reads_stops_and_goes_on_in_the_foreground(self):
        self.stopped_reader()
        self.shell.foreground()
        self.shell.run("line", "got <line>")
        self.shell.run("echo status $?", "status 3")
        self.free()

    def test_a_key_ends_one_that_came_to_the_foreground(self):
        self.stopped_reader()
        self.shell.foreground()
        self.shell.key(CTRL_C)
        self.shell.run("echo status $?", "status 130")
        self.free()

    def test_kill_ends_one_that_has_stopped(self):
        self.stopped_reader()
        self.shell.run("kill %1", "Exit 143")
        self.free()

    def test_one_that_has_stopped_ends_with_its_shell(self):
        self.stopped_reader()
        self.shell.type("exit\nexit\n")
        self.free()

    def test_a_key_stops_it_and_it_goes_on(self):
        self.shell.run("""$HOLD sh -c 'echo on; read y; echo "got <$y>"; exec sleep 1000'""", "on")
        self.assertIn("Stopped", self.shell.key(CTRL_Z))
        self.shell.foreground()
        self.shell.run("line", "got <line>")
        self.assertIn("Stopped", self.shell.key(CTRL_Z))
        self.shell.run("bg", "&")
        self.shell.run("jobs", "Running")
        self.shell.foreground()
        self.shell.key(CTRL_C)
        self.shell.run("echo status $?", "status 130")
        self.free()

    def test_a_key_is_told_once(self):
        self.shell.run("""$HOLD sh -c 'trap "echo int" INT; echo on; read x; read y; echo "got <$y>"'""", "on")
        self.shell.type(CTRL_C)
        seen = self.shell.expect("int")
        self.shell.type("one\ntwo\n")
        seen += self.shell.expect("got <.*>")
        self.assertEqual(seen.count("int"), 1, seen)

    def test_the_rest_of_its_pipeline_has_the_terminal_too(self):
        self.shell.type("""$HOLD sh -c 'sleep 0.3; echo out' | sh -c 'echo on >/dev/tty; read x </dev/tty; echo "tty <$x>"; cat'\n""")
        self.shell.expect("on")
        time.sleep(0.2)  # it may be late, and then reads later
        self.shell.type("line\n")
        self.assertNotIn("Stopped", self.shell.expect("tty <line>\r?\nout"))
        self.free()

    def test_a_key_ends_all_of_its_pipeline(self):
        self.shell.run("$HOLD sleep 1000 | sh -c 'echo on; read x </dev/tty; sleep 1000'", "on")
        wait_for(lambda: self.lease() == "held", "the lease")
        self.shell.key(CTRL_C)
        self.shell.run("echo status ${PIPESTATUS[*]}", "status 130 130")
        self.free()

    def test_a_shell_in_it_can_suspend_itself(self):
        self.shell.run("""$HOLD bash --norc --noediting -i""", "")
        self.shell.run("echo in''side ${ATOLL_SANDBOX:+it}", "inside it")
        self.shell.run("suspend", r"Stopped .*\n")
        self.shell.run("echo out''side $ATOLL_SANDBOX.", r"outside \.")
        self.shell.foreground()
        self.shell.run("echo in''side ${ATOLL_SANDBOX:+it}", "inside it")
        self.shell.type("exit 5\n")
        self.shell.run("echo status $?", "status 5")
        self.free()

    def test_a_script_that_ends_it_is_not_stopped_with_it(self):
        """Whose parent does no job control has nobody that would let it go on."""
        script = self.folder() / "script"
        script.write_text("$HOLD sh -c 'echo on; kill -STOP $$' & sleep 0.2\n"
                          "until grep -q '^State:\tT' /proc/$(cat /proc/$!/task/$!/children | cut -d' ' -f1)/status; do sleep 0.05; done\n"
                          "sleep 0.2; kill -TERM $!; wait $!; echo status $?\n")
        self.shell.run(f"sh {script}", "status 143")
        self.free()


class NoTerminal(Jobs):
    def begin_stopped(self):
        """One whose command has stopped by itself."""
        client = subprocess.Popen(
            [ATOLL, "hold", self.sandbox, "--owner", "o", "--", "sh", "-c", "echo $$; kill -STOP $$; exit 3"],
            env=os.environ | self.env, stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        status = Path(f"/proc/{int(client.stdout.readline())}/status")
        wait_for(lambda: "State:\tT" in status.read_text(), "a command that has stopped")
        return client

    def test_one_that_has_stopped_can_be_told_to_end(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number.name):
                client = self.begin_stopped()
                client.send_signal(number)
                self.assertEqual(client.wait(LIMIT_S), 128 + number)
                self.assertEqual(self.lease(), "free")

    def test_one_that_has_stopped_goes_on_with_it(self):
        client = self.begin_stopped()
        client.send_signal(signal.SIGCONT)
        self.assertEqual(client.wait(LIMIT_S), 3)


if __name__ == "__main__":
    unittest.main()
