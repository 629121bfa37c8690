# SPDX-License-Identifier: Apache-2.0
"""Processes inside behave as on any system, and none outlives its command's sandbox."""
import os
import pty
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import support

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from protocol import Keeper, Reason, Tag, Type  # noqa: E402

REFORKING = """
import os, signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
"""


class Inside(support.SandboxTest):
    def test_the_command_is_not_process_1(self):
        self.assertNotEqual(self.output_of("echo $$"), "1\n")

    def test_orphans_are_reaped(self):
        script = (
            "for i in 1 2 3 4 5; do (sleep 0.1 &); done; sleep 0.5; "
            "cat /proc/[0-9]*/stat | grep -c ') Z '"
        )
        self.assertEqual(self.sh(script).out, b"0\n")

    def test_no_process_of_the_host_is_visible(self):
        script = """
import os
for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
    print(open(f"/proc/{pid}/cmdline").read().split("\\0")[0])
"""
        self.assertEqual(self.python_output_of(script), f"atoll-init\n{support.PYTHON}\n")

    def test_process_1_has_a_name(self):
        self.assertEqual(self.output_of("cat /proc/1/comm"), "atoll-init\n")

    def test_every_signal_has_its_default_action(self):
        how = {"preexec_fn": ignore_signals, "restore_signals": False}
        for options in ({}, how):
            with self.subTest(options=options):
                text = self.output_of("exec cat /proc/self/status", limit=20, **options)
                for field in ("SigIgn", "SigBlk", "SigPnd"):
                    self.assertEqual(int(support.status_field(text, field), 16), 0, field)

    def test_a_pipe_inside_ends_its_writer(self):
        self.assertEqual(self.output_of("yes | head -n 1; yes | head -n 1"), "y\ny\n")

    def test_the_command_leads_a_session_of_its_own(self):
        self.assertEqual(self.python_output_of("import os; print(os.getsid(0) == os.getpid())"), "True\n")


def ignore_signals():
    for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGALRM})


class Signals(support.SandboxTest):
    def test_signals_to_the_client_reach_the_program(self):
        for number, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"), (signal.SIGQUIT, "QUIT")):
            with self.subTest(name=name):
                script = f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
                client = self.start("--", "sh", "-c", script)
                self.assertEqual(client.stdout.readline(), b"ready\n")
                client.send_signal(number)
                result = client.result()  # the shell may say that its own sleep was hit, too
                self.assertEqual((result.status, result.out), (9, f"got {name}\n".encode()))

    def test_a_program_that_does_not_catch_it_ends_by_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number):
                client = self.start("--", "sh", "-c", "echo ready; exec sleep 1000")
                self.assertEqual(client.stdout.readline(), b"ready\n")
                client.inside("sleep", "1000")
                client.send_signal(number)
                self.assertEqual(client.result().status, 128 + number)

    def test_the_third_signal_ends_a_program_that_ignores_them(self):
        client = self.start("--", "sh", "-c", "trap '' INT TERM; echo ready; while :; do sleep 0.05; done")
        self.assertEqual(client.stdout.readline(), b"ready\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            client.send_signal(number)
            time.sleep(0.2)  # two equal signals that wait at once would be one
            self.assertIsNone(client.poll())
        client.send_signal(signal.SIGINT)
        self.assertEqual(client.result(limit=20).status, 130)
        self.assert_gone()


class Times(support.SandboxTest):
    def assert_timed_out(self, result):
        self.assertEqual(result.status, 124, result)
        self.assertRegex(result.err.decode(), r"^atoll: \S+: timed out after [0-9.]+ s\n$")

    def test_a_timeout_ends_new_sessions_and_double_forks(self):
        folder = self.folder()
        folder.chmod(0o777)
        script = (
            'setsid sh -c "sleep 2; echo late > late" & '
            '(setsid sh -c "(sleep 2; echo late > later) &" &) ; echo begun; sleep 100'
        )
        result = self.sh(script, "--timeout", "700ms", "--volume", f"{folder}:/workspace")
        self.assert_timed_out(result)
        self.assertEqual(result.out, b"begun\n")
        self.assertEqual(support.inits(), [])
        time.sleep(2.5)
        self.assertEqual(os.listdir(folder), [])

    def test_a_timeout_ends_what_forks_and_leaves_its_sessions(self):
        client = self.start("--timeout", "1s", "--", support.PYTHON, "-c",
                            f"import os, time\nif os.fork() == 0:\n    exec({REFORKING!r})\ntime.sleep(100)")
        self.assert_timed_out(client.result())
        self.assert_gone()

    def test_a_timeout_ends_a_program_that_ignores_every_signal(self):
        client = self.start("--timeout", "300ms", "--", "sh", "-c",
                            "trap '' INT TERM HUP QUIT; while :; do sleep 0.05; done")
        self.assert_timed_out(client.result(limit=20))

    def test_a_timeout_ends_a_stopped_program(self):
        self.assert_timed_out(self.sh("kill -STOP $$", "--timeout", "300ms", limit=20))

    def test_a_timeout_keeps_what_was_written_before(self):
        result = self.sh("printf begun; sleep 100", "--timeout", "300ms")
        self.assert_timed_out(result)
        self.assertEqual(result.out, b"begun")

    def test_a_timeout_ends_a_writer_that_nobody_reads(self):
        client = self.start("--timeout", "2s", "--", "yes")
        client.inside("yes")
        support.wait_for(
            lambda: not [p for p in support.descendants(client.pid) if p.arguments == (b"yes",)],
            "the end of the command", 20,
        )
        self.assert_timed_out(client.result())

    def test_a_command_in_time_is_not_touched(self):
        self.assertEqual(self.output_of("sleep 0.2; echo done", "--timeout", "60s"), "done\n")

    def test_a_lifetime_ends_the_sandbox(self):
        result = self.sh("echo begun; setsid sleep 100 & sleep 100", "--lifetime", "500ms")
        self.assertEqual((result.status, result.out), (124, b"begun\n"))
        self.assertRegex(result.err.decode(), "^atoll: .*lifetime ended\n$")

    def test_times_that_are_none_are_refused(self):
        for text in ("0", "-1s", "5 parsecs", "", "1e400", "400d"):
            for name in ("--timeout", "--lifetime"):
                with self.subTest(name=name, text=text):
                    self.assert_refused(self.run_atoll(f"{name}={text}", "--", "true"), name[2:])


class Background(support.SandboxTest):
    def test_a_child_that_holds_the_output_does_not_hold_the_call(self):
        result = self.sh("sleep 600 & printf tail", limit=30)
        self.assertEqual(result, support.Result(0, b"tail", b""))
        self.assertEqual(support.inits(), [])

    def test_its_last_bytes_arrive(self):
        result = self.sh("(sleep 0.05; printf late; sleep 600) & printf early; exit 4", limit=30)
        self.assertEqual(result, support.Result(4, b"earlylate", b""))

    def test_a_large_rest_in_the_pipe_arrives(self):
        client = self.start("--", "sh", "-c", "sleep 600 & head -c 200000 /dev/zero")
        time.sleep(1)
        result = client.result(limit=30)
        self.assertEqual((result.status, len(result.out)), (0, 200000))

    def test_nothing_is_left_when_the_call_returns(self):
        for script in ("true", "sleep 600 &", "setsid sleep 600 & disown 2>/dev/null; exit 3"):
            with self.subTest(script=script):
                self.sh(script)
                self.assertEqual([p for p in support.descendants() if not p.is_keeper], [])


class Racing(support.SandboxTest):
    def test_a_cancel_that_crosses_the_commands_end_kills_what_it_left(self):
        """Init has reaped its first process when it is to kill it, and the keeper has not heard of that yet."""
        with Keeper(support.ATOLL) as keeper:
            keeper.create()
            command = keeper.shell("sleep 4191 > /dev/null 2>&1 & sleep 4192; exit 3")
            keeper_process = [p for p in support.descendants() if p.is_keeper][0].pid
            first = support.wait_for(lambda: self.running("4192"), "the command")[0]
            os.kill(keeper_process, signal.SIGSTOP)
            try:
                keeper.request(Type.CANCEL, number=command)  # before the end of the command in its queue
                os.kill(first.pid, signal.SIGKILL)
                support.wait_for(lambda: not self.running("4192") and not [
                    p for p in support.processes() if p.pid == first.parent], "the end of its first process")
            finally:
                os.kill(keeper_process, signal.SIGCONT)
            self.assertEqual(keeper.finish(command)[0][Tag.REASON], Reason.KILLED)
            self.assertEqual(self.running("4191"), [])
            keeper.destroy()

    def running(self, word):
        return [p for p in support.descendants() if p.arguments == (b"sleep", word.encode())]


class Input(support.SandboxTest):
    def test_input_is_empty_unless_asked_for(self):
        self.assertEqual(self.run_atoll("--", "cat"), support.Result(0, b"", b""))
        result = self.python("input()")
        self.assertEqual(result.status, 1)
        self.assertIn(b"EOFError", result.err)

    def test_the_callers_input_is_not_read_unless_asked_for(self):
        path = self.folder() / "input"
        path.write_text("one\ntwo\n")
        with path.open("rb") as given:
            self.assertEqual(self.run_atoll("--", "cat", stdin_file=given), support.Result(0, b"", b""))
            self.assertEqual(given.tell(), 0)
        read, write = os.pipe()
        os.write(write, b"kept")
        self.assertEqual(self.run_atoll("--", "cat", stdin_file=read).out, b"")
        self.assertEqual(os.read(read, 10), b"kept")
        os.close(read)
        os.close(write)

    def run_atoll(self, *arguments, stdin_file=None, **options):
        if stdin_file is not None:
            return self.start(*arguments, **{"stdin": stdin_file}).result()
        return super().run_atoll(*arguments, **options)

    def test_input_is_passed_on_when_asked_for(self):
        self.assertEqual(self.run_atoll("-i", "--", "cat", stdin=b"hi").out, b"hi")
        self.assertEqual(self.run_atoll("-i", "--", "cat", stdin=b"").out, b"")
        data = os.urandom(5_000_000)
        self.assertEqual(self.run_atoll("-i", "--", "cat", stdin=data).out, data)

    def test_input_from_a_file_is_passed_on(self):
        path = self.folder() / "input"
        path.write_bytes(b"line\n" * 200000)
        with path.open("rb") as given:
            self.assertEqual(self.run_atoll("-i", "--", "wc", "-c", stdin_file=given).out, b"1000000\n")

    def test_input_comes_line_by_line_and_ends(self):
        client = self.start("-i", "--", "sh", "-c", "while read l; do echo got $l; done; echo end",
                            stdin=subprocess.PIPE)
        for line in (b"1", b"2"):
            client.stdin.write(line + b"\n")
            client.stdin.flush()
            self.assertEqual(client.stdout.readline(), b"got " + line + b"\n")
        self.assertEqual(client.result().out, b"end\n")

    def test_an_input_that_stays_open_does_not_hold_the_call(self):
        for options in ((), ("-i",)):
            with self.subTest(options=options):
                client = self.start(*options, "--", "echo", "hi", stdin=subprocess.PIPE)
                self.assertEqual(client.stdout.read(), b"hi\n")
                self.assertEqual(client.wait(30), 0)

    def test_an_input_that_stays_open_does_not_hold_a_timeout(self):
        client = self.start("-i", "--timeout", "300ms", "--", "sleep", "50", stdin=subprocess.PIPE)
        self.assertEqual(client.wait(30), 124)

    def test_a_program_that_does_not_read_leaves_the_call_alone(self):
        result = self.run_atoll("-i", "--", "true", stdin=b"x" * 10_000_000)
        self.assertEqual(result, support.Result(0, b"", b""))

    def test_a_closed_input_is_an_empty_one(self):
        client = self.start("--", "cat", stdin=subprocess.DEVNULL, preexec_fn=lambda: os.close(0))
        self.assertEqual(client.result(), support.Result(0, b"", b""))


class Greed(support.SandboxTest):
    def assert_host_is_usable(self):
        done = subprocess.run(["true"], check=False, timeout=30)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.output_of("echo fine"), "fine\n")

    def test_a_fork_bomb_ends_at_the_limit_of_processes(self):
        bomb = "import os, time\nwhile True:\n  try:\n    os.fork()\n  except OSError:\n    time.sleep(0.01)"
        client = self.start("--pids", "200", "--timeout", "3s", "--", support.PYTHON, "-c", bomb)
        most = 0
        while client.poll() is None:
            most = max(most, len(support.descendants(client.pid)))
            if most > 150:
                self.assertEqual(subprocess.run(["true"], check=False, timeout=30).returncode, 0)
        self.assertEqual(client.result().status, 124)
        self.assertGreater(most, 100)
        self.assertLessEqual(most, 203)  # with init and keeper, beside those counted inside
        self.assert_gone()
        self.assert_host_is_usable()

    def test_the_limit_of_processes_counts_threads(self):
        script = """
import threading, time
n = 0
try:
    for n in range(1000):
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
except RuntimeError:
    print(n)
"""
        self.assertTrue(20 < int(self.python_output_of(script, "--pids", "50")) <= 50)

    def test_open_files_have_a_limit(self):
        script = """
import os
n = 0
try:
    while n < 100_000:
        os.open("/dev/null", os.O_RDONLY)
        n += 1
except OSError as error:
    print(n, error.strerror)
"""
        number, _, why = self.python_output_of(script).strip().partition(" ")
        self.assertEqual(why, "Too many open files")
        self.assertLessEqual(int(number), 65536)
        self.assert_host_is_usable()

    def test_a_full_disk_is_the_sandboxs_own(self):
        script = (
            "head -c 100M /dev/zero > /tmp/fill; stat -c %s /tmp/fill; "
            "echo x > /workspace/x && cat /workspace/x"
        )
        result = self.sh(script, "--disk", "64M")
        self.assertIn(b"No space left on device", result.err)
        size = int(result.out.split()[0])
        self.assertTrue(50_000_000 < size <= 64 * 1024 * 1024, size)
        self.assert_host_is_usable()

    def test_many_empty_files_end_at_a_limit(self):
        script = """
import os
n = 0
try:
    for n in range(200_000):
        os.close(os.open(f"/tmp/{n}", os.O_CREAT | os.O_WRONLY))
except OSError as error:
    print(error.strerror)
"""
        self.assertEqual(self.python_output_of(script, "--disk", "64M"), "No space left on device\n")

    def test_a_large_disk_is_there_by_default_and_programs_run_from_it(self):
        script = (
            "head -c 600M /dev/zero > /tmp/a && stat -c %s /tmp/a; "
            r"printf '#!/bin/sh\necho ok\n' > /tmp/s; chmod +x /tmp/s; /tmp/s"
        )
        self.assertEqual(self.output_of(script), f"{600 * 1024 * 1024}\nok\n")


class Death(support.SandboxTest):
    """Whoever dies: everything is gone, at once and wholly."""

    def busy(self, **options):
        script = "setsid sleep 1000 & (setsid sleep 1001 &) ; trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done"
        client = self.start("--", "sh", "-c", script, **options)
        if client.stdout:
            self.assertEqual(client.stdout.readline(), b"ready\n")
        client.inside("sleep", "1001")
        return client

    def test_the_client_is_killed(self):
        client = self.busy()
        client.kill()
        client.wait()
        self.assert_gone(2)

    def test_the_client_is_killed_before_the_sandbox_is_ready(self):
        for delay in (0, 0.001, 0.002, 0.004, 0.008):
            with self.subTest(delay=delay):
                client = self.start("--", "sleep", "1000")
                time.sleep(delay)
                client.kill()
                client.wait()
                self.assert_gone(2)

    def test_the_client_is_hung_up(self):
        client = self.busy()
        client.send_signal(signal.SIGHUP)
        self.assertEqual(client.result(limit=20).status, 129)
        self.assert_gone(2)

    def test_the_clients_terminal_is_closed(self):
        child, master = pty.fork()
        if child == 0:
            os.execve(support.ATOLL, [support.ATOLL, "run", "-it", "--", "sh", "-c",
                                      "trap '' HUP TERM; sleep 1000 & echo ready; while :; do sleep 0.1; done"],
                      {"PATH": os.environ["PATH"]})
        seen = b""
        while b"ready" not in seen:
            seen += os.read(master, 1024)
        os.close(master)
        os.waitpid(child, 0)
        self.assert_gone(2)

    def test_the_clients_process_group_is_killed(self):
        client = self.busy()
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
        self.assert_gone(2)

    def assert_told(self, client):
        result = client.result(limit=20)
        self.assertEqual(result.status, 125)
        self.assertTrue(result.err.startswith(b"atoll: "), result.err)
        self.assert_gone(2)

    def test_the_keeper_is_killed(self):
        client = self.busy()
        os.kill(client.keeper().pid, signal.SIGKILL)
        self.assert_told(client)

    def test_the_keeper_is_asked_to_end(self):
        client = self.busy()
        os.kill(client.keeper().pid, signal.SIGTERM)
        self.assertIn(client.result(limit=20).status, (125, 137))
        self.assert_gone(2)

    def test_client_and_keeper_are_killed(self):
        client = self.busy()
        os.kill(client.keeper().pid, signal.SIGKILL)
        client.kill()
        client.wait()
        self.assert_gone(2)

    def kill_init(self, client):
        pid = client.init().pid
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            self.fail("the caller may not kill its own sandbox's first process")

    def test_init_is_killed_from_outside(self):
        client = self.busy()
        self.kill_init(client)
        self.assert_told(client)

    def test_a_stopped_client_does_not_keep_a_timeout_from_ending_the_command(self):
        client = self.start("--timeout", "1s", "--", "sh", "-c", "echo ready; exec sleep 1000")
        self.assertEqual(client.stdout.readline(), b"ready\n")
        client.inside("sleep", "1000")
        client.send_signal(signal.SIGSTOP)
        support.wait_for(
            lambda: not [p for p in support.descendants(client.pid) if p.arguments[:1] == (b"sleep",)],
            "the end of the command", 20,
        )
        client.send_signal(signal.SIGCONT)
        self.assertEqual(client.result().status, 124)

    def test_its_namespaces_are_gone(self):
        client = self.busy()
        spaces = support.namespaces_of(client.inside("sleep", "1001").pid)
        self.assertTrue({s.split(":")[0] for s in spaces} >= {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"})
        client.kill()
        client.wait()
        support.wait_for(lambda: not spaces & support.namespaces(), "the end of the namespaces", 2)


class Privacy(support.SandboxTest):
    def test_the_keeper_holds_no_descriptor_of_the_caller(self):
        canary = self.folder() / "canary"
        canary.write_text("x")
        with canary.open() as held:
            client = self.start("--", "sleep", "1000", pass_fds=[held.fileno()])
            keeper = client.keeper().pid
            client.inside("sleep", "1000")
            targets = [os.readlink(p) for p in Path(f"/proc/{keeper}/fd").iterdir()]
        self.assertNotIn(str(canary), targets)
        client.kill()


if __name__ == "__main__":
    unittest.main()
