# SPDX-License-Identifier: Apache-2.0
"""A sandbox that one process provisions, another uses and a third collects from; who may do what meanwhile."""
import json
import os
import pty
import signal
import subprocess
import unittest
from pathlib import Path

from support import ATOLL, GONE_S, LIMIT_S, HeldTest, wait_for
import libatoll  # noqa: E402
from share_support import attach, open_lease, open_plain  # noqa: E402
from test_held import with_other


class ShareTest(HeldTest):
    def setUp(self):
        super().setUp()
        self.env["ATOLL"] = ATOLL

    def provision(self, owner="a/b", *options):
        return self.create("--owner", owner, *options)

    def hold(self, sandbox, script, *options, owner="a/b", **how):
        """Starts `atoll hold` with a shell script of the host."""
        return self.begin("hold", sandbox, "--owner", owner, *options, "--", "sh", "-c", script, **how)

    def held(self, sandbox, *options, **how):
        """The same, waited for until the script runs; it runs until its standard input ends."""
        client = self.hold(sandbox, "echo started; read line; exit 7", *options, stdin=subprocess.PIPE, **how)
        self.assertEqual(client.stdout.readline(), b"started\n")
        return client

    def lease(self, sandbox):
        return self.json("inspect", sandbox)["lease"]

    def content(self, sandbox, path):
        result = self.atoll("read", sandbox, path)
        return result.out if result.status == 0 else None


class Story(ShareTest):
    PROVISION = """
        id=$($ATOLL create --owner etl/42 --lifetime 10m --name story)
        printf '3\\n4\\n5\\n' | $ATOLL write "$id" numbers
        echo "$id"
    """
    ANALYSE = """
        $ATOLL exec "$ATOLL_SANDBOX" -- sh -c '
            if [ -e half ]; then echo retried >> log; else echo begun >> log; fi
            head -n 2 numbers > half'
        [ -z "$STUCK" ] || $ATOLL exec "$ATOLL_SANDBOX" -- sleep 1000
        $ATOLL exec "$ATOLL_SANDBOX" -- sh -c 'tail -n 1 numbers | cat half - > result'
    """
    COLLECT = """
        set -e
        $ATOLL read "$1" log
        $ATOLL read "$1" result
        $ATOLL rm --owner etl/42 "$1"
    """

    def run_script(self, script, *arguments):
        done = subprocess.run(["sh", "-c", script, "sh", *arguments], env=self.env, capture_output=True, text=True,
                              check=False, timeout=LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def analyse(self, sandbox, stuck):
        return self.begin("hold", sandbox, "--owner", "etl/42", "--holder", "etl/42/analyse", "--", "sh", "-c", self.ANALYSE,
                          env={"STUCK": "1" if stuck else ""})

    def sleeps(self, sandbox):
        found = self.json("ps", sandbox)["commands"]
        return any(row["argv"][:1] == ["sleep"] for row in found)

    def test_three_processes_share_one_though_one_of_them_is_killed(self):
        sandbox = self.run_script(self.PROVISION).strip()
        first = self.analyse(sandbox, stuck=True)
        wait_for(lambda: self.sleeps(sandbox), "the middle of the analysis")
        self.assertEqual(self.lease(sandbox)["holder"], "etl/42/analyse")
        self.assert_refused(self.atoll("hold", sandbox, "--owner", "etl/42", "--holder", "etl/42/other", "--", "true"),
                            "held by 'etl/42/analyse'", "'etl/42/other'")
        self.assertEqual(self.content(sandbox, "half"), b"3\n4\n")
        first.kill()
        first.wait()
        wait_for(lambda: self.lease(sandbox)["state"] == "free", "the end of the lease", GONE_S)
        wait_for(lambda: not self.sleeps(sandbox), "the end of its commands", GONE_S)
        again = self.analyse(sandbox, stuck=False).result()
        self.assertEqual((again.status, again.out, again.err), (0, b"", b""))
        self.assertEqual(self.run_script(self.COLLECT, "story"), "begun\nretried\n3\n4\n5\n")
        self.assert_no_state()

    def test_whoever_made_it_may_be_killed_with_all_that_it_started(self):
        script = self.PROVISION + "\nsleep 1000 & sleep 1000"
        with subprocess.Popen(["sh", "-c", script], env=self.env, stdout=subprocess.PIPE, start_new_session=True) as made:
            sandbox = made.stdout.readline().decode().strip()
            os.killpg(made.pid, signal.SIGKILL)
        self.assertEqual(self.content(sandbox, "numbers"), b"3\n4\n5\n")
        self.good("rm", "--owner", "etl/42", sandbox)


class Rights(ShareTest):
    """What others may do while one has it."""

    def setUp(self):
        super().setUp()
        self.sandbox = self.provision()
        self.good("write", self.sandbox, "note", stdin=b"one\n")

    def test_reading_is_open_to_all_and_the_rest_is_not(self):
        holder = self.held(self.sandbox, "--holder", "h")
        for verb, *arguments in (["read", "note"], ["ls", "."], ["inspect"], ["ps"], ["policy"], ["events"]):
            with self.subTest(verb):
                self.good(verb, self.sandbox, *arguments)
        self.good("cp", f"{self.sandbox}:note", str(self.folder()))
        file = self.folder() / "file"
        file.write_text("two\n")
        for verb, *arguments in (["exec", self.sandbox, "--", "true"], ["write", self.sandbox, "note"],
                                 ["cp", str(file), f"{self.sandbox}:note"], ["kill", self.sandbox],
                                 ["policy", self.sandbox, "--allow", "example.org"]):
            with self.subTest(verb):
                self.assert_refused(self.atoll(verb, *arguments, stdin=b"two\n"), "held by 'h'", "reading is open to all")
        self.assertEqual(self.content(self.sandbox, "note"), b"one\n")
        self.end(holder)
        self.good("write", self.sandbox, "note", stdin=b"two\n")

    def end(self, holder, status=7):
        holder.stdin.close()
        self.assertEqual(holder.wait(LIMIT_S), status)

    def test_its_commands_act_for_it(self):
        script = """set -e
            echo in | $ATOLL write $ATOLL_SANDBOX note
            $ATOLL exec share-box -- sh -c 'cat note; echo more >> note'
            $ATOLL cp $ATOLL_SANDBOX:note - | tar -xO
            $ATOLL cp "$0" share-box:copy
            $ATOLL policy share-box --allow example.org >/dev/null
            $ATOLL exec --detach share-box -- sleep 1000
            $ATOLL kill share-box
        """
        sandbox = self.provision("a/b", "--name", "share-box")
        file = self.folder() / "file"
        file.write_text("x\n")
        result = self.begin("hold", sandbox, "--owner", "a/b", "--", "sh", "-c", script, str(file)).result()
        self.assertEqual((result.status, result.err), (0, b""), result)
        self.assertEqual(result.out.split(b"\n")[:3], [b"in", b"in", b"more"])
        self.assertEqual(self.content(sandbox, "copy"), b"x\n")

    def test_a_lease_of_another_sandbox_is_not_looked_at(self):
        other = self.provision()
        result = self.hold(self.sandbox, f"$ATOLL exec {other} -- echo there").result()
        self.assertEqual((result.status, result.out), (0, b"there\n"), result)

    def test_a_lease_that_is_none_is_named(self):
        spec = self.folder() / "spec.yaml"
        spec.write_text(f"version: 1\ntoolset: {{attach_to: '{self.sandbox}', owner: a/b}}\n")
        for text in ("x", f"{self.sandbox}", f"{self.sandbox}#", f"{self.sandbox}#-1", f"{self.sandbox}#1x", "#1",
                     f"{self.sandbox}#4294967296"):
            with self.subTest(text):
                for verb, *arguments in (["exec", self.sandbox, "--", "true"], ["kill", self.sandbox],
                                         ["hold", self.sandbox, "--owner", "a/b", "--", "true"],
                                         ["tool", self.sandbox, "run_command", '{"command": "true"}'],
                                         ["mcp", "--spec", str(spec)]):
                    result = self.atoll(verb, *arguments, env={"ATOLL_LEASE": text})
                    self.assert_refused(result, "ATOLL_LEASE", text, "ID#GENERATION")
        self.assertEqual(self.good("read", self.sandbox, "note", env={"ATOLL_LEASE": "x"}), b"one\n")

    def test_a_lease_that_is_over_opens_nothing(self):
        lease = self.hold(self.sandbox, "echo $ATOLL_LEASE").result().out.decode().strip()
        self.assertRegex(lease, rf"^{self.sandbox}#\d+$")
        env = {"ATOLL_LEASE": lease}
        self.assert_refused(self.atoll("exec", self.sandbox, "--", "touch", "bad", env=env), "is over")
        self.assert_refused(self.atoll("write", self.sandbox, "bad", stdin=b"", env=env), "is over")
        holder = self.held(self.sandbox, "--holder", "h")
        self.assert_refused(self.atoll("exec", self.sandbox, "--", "touch", "bad", env=env), "is over", "'h'")
        self.end(holder)
        self.assertIsNone(self.content(self.sandbox, "bad"))

    def test_rm_needs_the_owner_and_force_while_it_is_held(self):
        self.assert_refused(self.atoll("rm", self.sandbox), "made for 'a/b'")
        self.assert_refused(self.atoll("rm", "--owner", "x", self.sandbox), "'a/b'", "'x'")
        holder = self.held(self.sandbox, "--holder", "h")
        self.assert_refused(self.atoll("rm", "--owner", "a/b", self.sandbox), "held by 'h'", "--force")
        self.assertEqual(self.listed(), [self.sandbox])
        self.good("rm", "--owner", "a/b", "--force", self.sandbox)
        self.assertEqual(holder.wait(LIMIT_S), 125)
        self.assertIn(b"ended", holder.stderr.read())

    def test_rm_by_owner_takes_all_of_that_owner_and_no_other(self):
        other, mine = self.provision("x"), self.provision()
        self.good("rm", "--owner", "a/b", mine)  # with an id it selects nothing
        self.assertEqual(set(self.listed()), {self.sandbox, other})
        self.good("rm", "--owner", "a/b")
        self.assertEqual(self.listed(), [other])

    def test_inspect_says_who_has_it(self):
        self.assertEqual(self.lease(self.sandbox), {"state": "free", "holder": None, "generation": None, "until": None})
        self.assertEqual(self.lease(self.create())["state"], "none")
        holder = self.held(self.sandbox, "--holder", "h")
        self.assertEqual(self.lease(self.sandbox), {"state": "held", "holder": "h", "generation": 1, "until": None})
        self.assertIn(b"held by 'h'\n", self.good("inspect", self.sandbox))
        self.end(holder)
        self.assertEqual(self.lease(self.sandbox), {"state": "free", "holder": None, "generation": 1, "until": None})

    def test_a_handle_from_elsewhere_is_refused_as_that(self):
        for place, words in ((3, "another host"), (7, "before"), (11, "another user")):
            with self.subTest(words):
                result = self.atoll("hold", with_other(self.sandbox, place), "--owner", "a/b", "--", "true")
                self.assert_refused(result, "made", words)


class Hold(ShareTest):
    """`atoll hold` itself: statuses, signals, ends."""

    def setUp(self):
        super().setUp()
        self.sandbox = self.provision()

    def status(self, script, *options):
        return self.hold(self.sandbox, script, *options).result().status

    def test_the_status_is_the_commands(self):
        self.assertEqual(self.status("exit 0"), 0)
        self.assertEqual(self.status("exit 3"), 3)
        self.assertEqual(self.status("kill -KILL $$"), 128 + signal.SIGKILL)

    def test_a_command_that_cannot_be_started(self):
        for word, status, remedy in (("/etc/passwd", 126, "chmod +x"), ("/tmp", 126, "not a folder"),
                                     ("no-such-program", 127, "PATH")):
            result = self.atoll("hold", self.sandbox, "--owner", "a/b", "--", word, env={"PATH": "/usr/bin:/bin"})
            self.assertEqual(result.status, status)
            self.assertIn(f"'{word}' cannot be started".encode(), result.err)
            self.assertIn(remedy.encode(), result.err)
        self.assertEqual(self.lease(self.sandbox)["state"], "free")

    def test_what_is_wrong_is_said_and_nothing_is_run(self):
        marker = self.folder() / "marker"
        run = ["--", "touch", str(marker)]
        plain = self.create()
        self.assert_refused(self.atoll("hold", self.sandbox, *run), "--owner NAME")
        self.assert_refused(self.atoll("hold", self.sandbox, "--owner", "a/b"), "no command")
        self.assert_refused(self.atoll("hold", self.sandbox, "--owner", "x", *run), "'a/b'", "'x'")
        self.assert_refused(self.atoll("hold", plain, "--owner", "x", *run), "no owner")
        self.assert_refused(self.atoll("hold", "nobody", "--owner", "x", *run), "no sandbox is called 'nobody'")
        self.assertFalse(marker.exists())

    def test_the_holder_is_the_owner_unless_it_is_said(self):
        holder = self.held(self.sandbox)
        self.assertEqual(self.lease(self.sandbox)["holder"], "a/b")
        holder.stdin.close()
        holder.wait(LIMIT_S)

    def test_signals_go_to_the_command_and_all_of_its_group(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(number.name):
                name = number.name.removeprefix("SIG")
                client = self.hold(self.sandbox, f"trap 'echo got; exit 9' {name}; echo started; while :; do sleep 0.05; done")
                self.assertEqual(client.stdout.readline(), b"started\n")
                client.send_signal(number)
                result = client.result()
                self.assertEqual((result.status, result.out), (9, b"got\n"))
        self.assertEqual(self.lease(self.sandbox)["state"], "free")

    def test_a_signal_before_it_is_held_ends_it(self):
        keeper = self.keeper_of(self.sandbox)
        os.kill(keeper, signal.SIGSTOP)
        self.addCleanup(os.kill, keeper, signal.SIGCONT)
        marker = self.folder() / "marker"
        client = self.hold(self.sandbox, f"touch {marker}")
        wait_for(lambda: "SigBlk:\t0000000000000000" not in Path(f"/proc/{client.pid}/status").read_text(), "its signals")
        client.send_signal(signal.SIGTERM)
        self.assertEqual(client.result().status, 128 + signal.SIGTERM)
        self.assertFalse(marker.exists())

    def test_the_sandboxs_end_ends_the_command(self):
        client = self.hold(self.sandbox, "trap 'echo told; exit 0' TERM; echo started; while :; do sleep 0.05; done")
        self.assertEqual(client.stdout.readline(), b"started\n")
        self.good("rm", "--force", self.sandbox)
        result = client.result()
        self.assertEqual((result.status, result.out), (125, b"told\n"))
        self.assertIn(b"the sandbox has ended (destroyed); the command is told to end", result.err)

    def test_the_same_holder_takes_over_and_the_earlier_one_is_told(self):
        first = self.hold(self.sandbox, "trap 'echo told; exit 0' TERM; echo started; while :; do sleep 0.05; done", "--holder", "h")
        self.assertEqual(first.stdout.readline(), b"started\n")
        second = self.held(self.sandbox, "--holder", "h")
        result = first.result()
        self.assertEqual((result.status, result.out), (125, b"told\n"))
        self.assertIn(b"the lease is over", result.err)
        self.assertEqual(self.lease(self.sandbox)["generation"], 2)
        second.stdin.close()
        self.assertEqual(second.wait(LIMIT_S), 7)

    def test_its_command_need_not_hold_it_once_more(self):
        script = "$ATOLL hold $ATOLL_SANDBOX --owner a/b --holder h -- echo bad; echo $?; $ATOLL exec $ATOLL_SANDBOX -- echo good"
        result = self.hold(self.sandbox, script, "--holder", "h").result()
        self.assertEqual((result.status, result.out), (0, b"125\ngood\n"), result)
        self.assertIn(b"this command has the lease already, as 'h'. Run COMMAND without atoll hold.", result.err)
        self.assertEqual(self.lease(self.sandbox), {"state": "free", "holder": None, "generation": 1, "until": None})
        other = self.provision()
        result = self.hold(self.sandbox, f"$ATOLL hold {other} --owner a/b -- echo other").result()
        self.assertEqual((result.status, result.out, result.err), (0, b"other\n", b""))

    def test_what_an_earlier_attempt_left_does_not_take_it_back(self):
        result = self.hold(self.sandbox, "echo $ATOLL_LEASE", "--holder", "h").result()
        env = {"ATOLL_LEASE": result.out.decode().strip()}
        later = self.held(self.sandbox, "--holder", "h")
        hold = ["hold", self.sandbox, "--owner", "a/b", "--holder", "h", "--", "true"]
        self.assert_refused(self.atoll(*hold, env=env), "is over", "'h'", "unset ATOLL_LEASE")
        self.assertEqual(self.lease(self.sandbox)["generation"], 2)
        later.stdin.close()
        self.assertEqual(later.wait(LIMIT_S), 7)
        self.good(*hold, env=env)  # nobody has it now

    def test_a_killed_holder_is_waited_for_if_it_asked_for_that(self):
        client = self.held(self.sandbox, "--holder", "h", "--keep", "1h")
        client.kill()
        client.wait()
        wait_for(lambda: self.lease(self.sandbox)["state"] == "kept", "a lease that is kept", GONE_S)
        self.assertGreater(self.lease(self.sandbox)["until"], 0)
        self.assertRegex(self.good("inspect", self.sandbox).decode(), r"lease +kept for 'h' until \d")
        self.assert_refused(self.atoll("hold", self.sandbox, "--owner", "a/b", "--holder", "x", "--", "true"), "'h'", "'x'")
        self.assertEqual(self.status("exit 5", "--holder", "h"), 5)
        self.assertEqual(self.lease(self.sandbox)["state"], "free")

    def test_a_kept_lease_is_free_when_its_time_is_over(self):
        client = self.held(self.sandbox, "--keep", "200ms")
        client.kill()
        client.wait()
        wait_for(lambda: self.lease(self.sandbox)["state"] == "free", "the end of a kept lease", GONE_S)

    def test_its_command_gets_the_terminal(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        script = "[ \"$(ps -o tpgid= -p $$)\" -eq \"$(ps -o pgid= -p $$)\" ] && echo foreground; read line; echo \"<$line>\""
        code = f"import os; os.setsid(); import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv({ATOLL!r}, " \
               f"['atoll', 'hold', {self.sandbox!r}, '--owner', 'a/b', '--', 'sh', '-c', {script!r}])"
        self.need("ps")
        with subprocess.Popen(["python3", "-c", code], stdin=slave, stdout=subprocess.PIPE, env=self.env) as client:
            os.close(slave)
            self.assertEqual(client.stdout.readline(), b"foreground\n")
            os.write(master, b"a line\n")
            self.assertEqual(client.stdout.read(), b"<a line>\n")
        self.assertEqual(client.returncode, 0)


class Library(ShareTest):
    """Handles of libatoll."""

    def setUp(self):
        super().setUp()
        self.addCleanup(os.environ.pop, "ATOLL_STATE_DIR", None)
        os.environ["ATOLL_STATE_DIR"] = str(self.state)
        try:
            self.context = libatoll.Context(ATOLL)
        except libatoll.Unavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.context.free)
        self.sandbox = self.provision()

    def refused(self, call, *arguments, words):
        with self.assertRaises(libatoll.AtollError) as caught:
            call(*arguments)
        for word in words:
            self.assertIn(word, str(caught.exception))
        return caught.exception

    def test_attach_and_release(self):
        handle = attach(self.context, self.sandbox, "a/b", "h")
        self.assertEqual((handle.attached.generation, handle.lease), (1, 1))
        self.assertAlmostEqual(handle.attached.left, 3600, delta=60)
        self.assertTrue(json.loads(handle.attached.network)["block_network"])
        self.assertEqual(handle.attached.workdir, "/workspace")
        self.assertIsNone(handle.attached.warning)
        handle.exec("true")
        other = open_plain(self.context, self.sandbox)
        self.assertEqual((other.lease, other.attached), (0, None))
        self.refused(other.exec, "true", words=["held by 'h'"])
        self.refused(other.write, "f", b"x", words=["held by 'h'", "needs its lease"])
        handle.release()
        self.assertEqual(handle.lease, 0)
        handle.release()  # good also when it is over
        other.exec("true")
        other.write("f", b"x")

    def test_freeing_a_handle_gives_it_back(self):
        attach(self.context, self.sandbox, "a/b", "h").free()
        wait_for(lambda: self.lease(self.sandbox)["state"] == "free", "the end of the lease", GONE_S)
        attach(self.context, self.sandbox, "a/b", "h", keep=100).free()
        wait_for(lambda: self.lease(self.sandbox)["state"] == "kept", "a lease that is kept", GONE_S)

    def test_who_is_refused_gets_no_handle(self):
        handle = attach(self.context, self.sandbox, "a/b", "h")
        for owner, holder, words in (("x", "h", ["'a/b'", "'x'"]), ("", "h", ["'a/b'"]), ("a/b", "", ["holder"]),
                                     ("a/b", "g", ["'h'", "'g'"])):
            with self.subTest((owner, holder)):
                error = self.refused(attach, self.context, self.sandbox, owner, holder, words=words)
                self.assertEqual(error.cls, libatoll.TERMINAL)
        self.assertEqual(handle.lease, 1)
        self.refused(attach, self.context, self.create(), "x", "h", words=["no owner"])

    def test_a_later_attach_fences_the_earlier_handle(self):
        first = attach(self.context, self.sandbox, "a/b", "h")
        acting = open_lease(self.context, self.sandbox, 1)
        self.assertEqual(acting.lease, 1)
        acting.exec("true")
        acting.write("f", b"x")
        second = attach(self.context, self.sandbox, "a/b", "h")
        self.assertEqual(second.lease, 2)
        for handle in (first, acting):
            self.refused(handle.exec, "true", words=["is over"])
            self.assertEqual(handle.lease, 0)
        first.release()  # it is not first's any more
        self.assertEqual(self.lease(self.sandbox)["state"], "held")
        self.refused(open_lease, self.context, self.sandbox, 1, words=["is over"])
        second.exec("true")

    def test_the_owner_may_end_it(self):
        handle = open_plain(self.context, self.sandbox)
        self.refused(handle.destroy, words=["'a/b'"])
        self.refused(handle.destroy_as, "x", words=["'a/b'", "'x'"])
        attached = attach(self.context, self.sandbox, "a/b", "h")
        self.refused(handle.destroy_as, "a/b", words=["held by 'h'"])
        attached.release()
        handle.destroy_as("a/b")
        self.assert_no_state()
        self.assertEqual(attached.lease, 0)

    def test_force_ends_it_whoever_has_it(self):
        handle = attach(self.context, self.sandbox, "a/b", "h")
        open_plain(self.context, self.sandbox).destroy_as(None, True)
        self.refused(handle.exec, "true", words=["ended"])
        self.assertEqual(handle.lease, 0)


if __name__ == "__main__":
    unittest.main()
