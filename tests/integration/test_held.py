# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that are held: made, found, used by several clients at once, ended by whatever ends them."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from support import ATOLL, GONE_S, LIMIT_S, PYTHON, HeldTest, inits, is_root, json_schema, keepers, wait_for
from protocol import FRAME, Type, hello  # noqa: E402, of tests/support

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def other(character):
    """Another character of an id."""
    return ALPHABET[(ALPHABET.index(character) + 1) % len(ALPHABET)]


def with_other(sandbox, place):
    """The id as if made elsewhere: 3 is on another host, 7 before another boot, 11 by another user."""
    return sandbox[:place] + other(sandbox[place]) + sandbox[place + 1 :]


class Life(HeldTest):
    def test_a_sandbox_stands_between_commands_and_is_gone_after_rm(self):
        sandbox = self.create()
        self.exec(sandbox, "echo first > note; cd /tmp; mkdir kept")
        self.assertEqual(self.exec(sandbox, "cat note; pwd; ls /tmp"), b"first\n/workspace\nkept\n")
        self.assertEqual(self.listed(), [sandbox])
        self.assertEqual(self.good("rm", sandbox), b"")
        self.assertEqual(self.listed(), [])
        self.assert_no_state()
        self.assert_gone()

    def test_rm_returns_when_nothing_is_left(self):
        sandbox = self.create()
        self.good("exec", "--detach", sandbox, "--", "sleep", "1000")
        self.assertTrue(inits())
        self.good("rm", sandbox)
        self.assertEqual(inits(), [])
        self.assertEqual(os.listdir(self.state), [])

    def test_create_prints_the_id_alone_and_lets_a_pipe_end(self):
        with subprocess.Popen([ATOLL, "create"], env=self.env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as made:
            self.assertRegex(made.stdout.read().decode(), r"^sb-[a-z2-7]{26}\n$")  # at its end: nobody holds it
        self.assertEqual(made.returncode, 0)

    def test_an_id_that_cannot_be_printed_belongs_to_no_sandbox(self):
        with open("/dev/full", "wb") as full:
            result = self.atoll("create", stdout=full)
        self.assertEqual(result.status, 125)
        self.assertEqual(self.listed(), [])
        self.assert_gone()

    def test_verbose_names_each_step(self):
        result = self.atoll("create", "-v")
        self.assertEqual(result.status, 0)
        self.assertRegex(result.err.decode(), r"atoll: set-up: step 1: .* us\)")
        self.assertRegex(result.out.decode(), r"^sb-[a-z2-7]{26}\n$")

    def test_the_lifetime_ends_it(self):
        sandbox = self.create("--lifetime", "300ms")
        wait_for(lambda: not self.listed(), "the end of its lifetime")
        self.assert_refused(self.atoll("exec", sandbox, "--", "true"), sandbox, "is gone")
        self.assert_no_state()
        self.assert_gone()

    def test_the_lifetime_ends_a_command(self):
        sandbox = self.create("--lifetime", "500ms")
        result = self.atoll("exec", sandbox, "--", "sleep", "1000")
        self.assertEqual(result.status, 124, result.err)
        self.assertIn(b"lifetime", result.err)
        self.assert_no_state()

    def test_the_lifetime_is_an_hour_unless_told(self):
        made = self.json("create")
        self.assertAlmostEqual(made["expires_at"] - made["created_at"], 3600, places=3)
        made = self.json("create", "--lifetime", "90s")
        self.assertAlmostEqual(made["expires_at"] - made["created_at"], 90, places=3)

    def test_idleness_ends_it(self):
        self.create("--idle-timeout", "300ms")
        wait_for(lambda: not os.listdir(self.state), "the end of an idle sandbox")
        self.assert_gone()

    def test_a_running_command_is_no_idleness(self):
        sandbox = self.create("--idle-timeout", "200ms")
        self.assertEqual(self.exec(sandbox, "sleep 1; echo done"), b"done\n")

    def test_a_file_that_is_being_written_is_no_idleness(self):
        sandbox = self.create("--idle-timeout", "200ms")
        writer = self.begin("write", sandbox, "slow", stdin=subprocess.PIPE)
        time.sleep(1)  # longer than the idle time
        self.assertEqual(writer.result(b"late").status, 0)

    def test_the_keepers_death_is_its_end(self):
        sandbox = self.create()
        self.good("exec", "--detach", sandbox, "--", "sleep", "1000")
        os.kill(self.keeper_of(sandbox), signal.SIGKILL)
        self.assert_gone()
        self.assertEqual(os.listdir(self.state), [sandbox])
        self.assertEqual(self.listed(), [])
        self.assertEqual(os.listdir(self.state), [])

    def test_the_keepers_death_ends_a_client_with_a_sentence(self):
        sandbox = self.create()
        client = self.begin("exec", sandbox, "--", "sh", "-c", "echo here; sleep 1000")
        self.assertEqual(client.stdout.readline(), b"here\n")
        os.kill(self.keeper_of(sandbox), signal.SIGKILL)
        result = client.result()
        self.assertEqual(result.status, 125)
        self.assertTrue(result.err.startswith(b"atoll: "), result.err)
        self.listed()

    def test_an_interrupted_create_leaves_nothing(self):
        source = self.folder() / "pipe"
        source.mkdir()
        (source / "large").write_bytes(bytes(1 << 20))
        for number in (signal.SIGINT, signal.SIGTERM):
            client = self.begin("create", "--disk", "1G", *["--input", f"{source}=/tmp/x"] * 1)
            client.send_signal(number)
            result = client.result()
            if result.status != 0:  # it came in time
                self.assertIn(result.status, (128 + number,))
                self.assertEqual(result.out, b"")
                self.assertEqual(self.listed(), [])
            else:
                self.good("rm", result.out.decode().strip())


class Using(HeldTest):
    def setUp(self):
        super().setUp()
        self.sandbox = self.create()

    def test_the_status_is_the_commands_own(self):
        for script, status in (("exit 3", 3), ("kill -9 $$", 137), ("true", 0)):
            self.assertEqual(self.atoll("exec", self.sandbox, "--", "sh", "-c", script).status, status)
        self.assertEqual(self.atoll("exec", self.sandbox, "--", "/nowhere").status, 127)
        self.assertEqual(self.atoll("exec", self.sandbox, "--", "/etc/hosts").status, 126)

    def test_streams_are_passed_on_as_they_are(self):
        data = os.urandom(300000)
        result = self.atoll("exec", "-i", self.sandbox, "--", "sh", "-c", "cat; echo err >&2", stdin=data)
        self.assertEqual((result.status, result.out, result.err), (0, data, b"err\n"))

    def test_input_is_empty_without_i(self):
        self.assertEqual(self.atoll("exec", self.sandbox, "--", "cat", stdin=b"not passed").out, b"")

    def test_a_timeout_ends_all_that_the_command_started_and_nothing_else(self):
        self.good("exec", "--detach", self.sandbox, "--", "sleep", "1001")
        result = self.atoll(
            "exec", "--timeout", "300ms", self.sandbox, "--", "sh", "-c", "setsid sleep 1002 & sleep 1003")
        self.assertEqual(result.status, 124)
        self.assertIn(b"timed out", result.err)
        running = self.exec(self.sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        self.assertIn(b"sleep 1001", running)
        self.assertNotIn(b"sleep 1002", running)
        self.assertNotIn(b"sleep 1003", running)

    def test_variables_of_one_command(self):
        sandbox = self.create("-e", "A=spec", "-e", "B=spec")
        env = {"C": "callers", "D": "not passed"}
        out = self.exec(sandbox, 'echo "$A $B $C $D"', "-e", "B=two words", "-e", "C", env=env)
        self.assertEqual(out, b"spec two words callers \n")
        self.assert_refused(self.atoll("exec", "-e", "1x=y", sandbox, "--", "true"), "1x")

    def test_workdir_and_user_of_one_command(self):
        # To an ordinary user the kernel gives one id, which the sandbox's own user has.
        user, out = ("7:8", b"/tmp\n7\n8\n") if is_root() else ("0:0", b"/tmp\n0\n0\n")
        self.assertEqual(self.exec(self.sandbox, "pwd; id -u; id -g", "--workdir", "/tmp", "--user", user), out)
        if not is_root():
            self.assertEqual(self.atoll("exec", "--user", "7:8", self.sandbox, "--", "true").status, 125)
        result = self.atoll("exec", "--workdir", "/nowhere", self.sandbox, "--", "true")
        self.assertEqual(result.status, 126)
        self.assertIn(b"cannot enter its working directory /nowhere", result.err)
        self.assert_refused(self.atoll("exec", "--user", "x", self.sandbox, "--", "true"), "user")

    def test_a_result_tells_how_it_ended(self):
        file = self.folder() / "result"
        schema = json_schema.load("result")
        for arguments, expected in (
            (("--", "sh", "-c", "exit 4"), {"reason": "exited", "status": 4, "exit_code": 4}),
            (("--timeout", "200ms", "--", "sleep", "1000"), {"reason": "timeout", "status": 124}),
            (("--", "sh", "-c", "kill -TERM $$"), {"reason": "exited", "status": 143, "signal": 15}),
        ):
            self.atoll("exec", self.sandbox, "--result", str(file), *arguments)
            value = json.loads(file.read_text())
            json_schema.validate(value, schema)
            self.assertLessEqual(expected.items(), value.items())
        self.atoll("exec", "no-such-sandbox", "--result", str(file), "--", "true")
        value = json.loads(file.read_text())
        json_schema.validate(value, schema)
        self.assertEqual(value["reason"], "error")

    def test_a_terminal(self):
        client = self.good("exec", "-t", self.sandbox, "--", "sh", "-c", "test -t 1 && tty")
        self.assertRegex(client.decode(), r"^/dev/pts/\d+\r\n$")

    def test_two_clients_at_once(self):
        first = self.begin("exec", "-i", self.sandbox, "--", "sh", "-c", "echo ready; read x; echo $x", stdin=subprocess.PIPE)
        self.assertEqual(first.stdout.readline(), b"ready\n")
        self.assertEqual(self.exec(self.sandbox, "echo second"), b"second\n")
        self.assertEqual(first.result(b"first\n").out, b"first\n")

    def test_ten_at_once_keep_apart(self):
        script = 'for i in 1 2 3; do head -c 100000 /dev/zero | tr "\\0" "$1"; done; exit $1'
        clients = [self.begin("exec", self.sandbox, "--", "sh", "-c", script, "sh", str(n)) for n in range(10)]
        for n, client in enumerate(clients):
            result = client.result()
            self.assertEqual((result.status, result.err), (n, b""))
            self.assertEqual(result.out, str(n).encode() * 300000)

    def test_a_clients_death_is_that_of_its_command_alone(self):
        self.good("exec", "--detach", self.sandbox, "--", "sleep", "1001")
        for number in (signal.SIGKILL, signal.SIGHUP):
            client = self.begin("exec", self.sandbox, "--", "sh", "-c", "setsid sleep 1002 & echo up; exec sleep 1003")
            self.assertEqual(client.stdout.readline(), b"up\n")
            client.send_signal(number)
            client.wait(LIMIT_S)
            wait_for(lambda: [c["argv"] for c in self.json("ps", self.sandbox)["commands"]] == [["sleep", "1001"]],
                     "the end of the command")
            wait_for(lambda: b"100" in (left := self.exec(self.sandbox, "cat /proc/[0-9]*/cmdline")) and
                     b"1002" not in left and b"1003" not in left, "the end of its processes")

    def test_interrupting_goes_to_the_command(self):
        client = self.begin("exec", self.sandbox, "--", "sh", "-c",
                            "trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.05; done")
        self.assertEqual(client.stdout.readline(), b"up\n")
        client.send_signal(signal.SIGINT)
        result = client.result()
        self.assertEqual((result.status, result.out), (5, b"caught\n"))

    def test_a_detached_command_survives_and_has_a_number(self):
        number = int(self.good("exec", "--detach", self.sandbox, "--", "sh", "-c", "sleep 0.3; echo late > /tmp/late; sleep 1000"))
        commands = self.json("ps", self.sandbox)["commands"]
        self.assertEqual([(c["number"], c["detached"], c["tty"]) for c in commands], [(number, True, False)])
        self.assertEqual(commands[0]["argv"][:2], ["sh", "-c"])
        wait_for(lambda: self.atoll("read", self.sandbox, "/tmp/late").out == b"late\n", "what it writes later")

    def test_detaching_excludes_streams(self):
        for flag in ("-i", "-t"):
            self.assert_refused(self.atoll("exec", "--detach", flag, self.sandbox, "--", "true"), "detached")
        self.assert_refused(self.atoll("exec", "--detach", "--result", "9", self.sandbox, "--", "true"), "detached")

    def test_kill_ends_one_or_all(self):
        numbers = [int(self.good("exec", "--detach", self.sandbox, "--", "sleep", "1000")) for _ in range(3)]
        client = self.begin("exec", self.sandbox, "--", "sh", "-c", "echo up; exec sleep 1000")
        self.assertEqual(client.stdout.readline(), b"up\n")
        self.assertEqual(self.json("kill", self.sandbox, str(numbers[1]))["killed"], [numbers[1]])
        left = [c["number"] for c in self.json("ps", self.sandbox)["commands"]]
        self.assertEqual(left[:2], [numbers[0], numbers[2]])
        self.assertEqual(len(left), 3)
        self.assertEqual(sorted(self.json("kill", self.sandbox)["killed"]), left)
        self.assertEqual(self.json("ps", self.sandbox)["commands"], [])
        self.assertEqual(client.result().status, 137)
        self.assertEqual(self.good("kill", self.sandbox), b"")  # there is none, and that is fine
        self.assert_refused(self.atoll("kill", self.sandbox, str(numbers[0])), "no command", "atoll ps")
        self.assert_refused(self.atoll("kill", self.sandbox, "x"), "not the number")

    def test_no_command_is_an_error(self):
        self.assert_refused(self.atoll("exec", self.sandbox), "no command was given")
        self.assert_refused(self.atoll("exec"), "needs more arguments")


class Finding(HeldTest):
    def test_names_ids_and_beginnings(self):
        first, second = self.create("--name", "box"), self.create("--name", "Box.2_b-c")
        for typed in (first, "box", "local:box", "local:" + first):
            self.assertEqual(self.json("inspect", typed)["id"], first)
        self.assertEqual(self.json("inspect", "Box.2_b-c")["id"], second)
        apart = next(n for n in range(30) if first[n] != second[n]) + 1
        self.assertEqual(self.json("inspect", first[:max(apart, 9)])["id"], first)
        self.assert_refused(self.atoll("inspect", first[:9]), "begin with", "more of the id")
        self.good("rm", second)
        self.assertEqual(self.json("inspect", first[:9])["id"], first)
        self.assert_refused(self.atoll("inspect", first[:8]), "no sandbox is called")
        self.assert_refused(self.atoll("inspect", "bo"), "no sandbox is called")

    def test_a_name_is_one_sandboxs_at_a_time(self):
        first = self.create("--name", "box")
        self.assert_refused(self.atoll("create", "--name", "box"), first, "called 'box' already")
        self.good("rm", "box")
        self.create("--name", "box")

    def test_of_many_that_want_a_name_one_gets_it(self):
        results = [client.result() for client in [self.begin("create", "--name", "one") for _ in range(6)]]
        self.assertEqual(sorted(r.status for r in results), [0] + [125] * 5)
        self.assertEqual(len(self.listed()), 1)

    def test_what_cannot_be_a_name(self):
        for name in ("sb-x", "a/b", "a:b", "-a", "a b", "x" * 64, "modal", "local", "ä"):
            self.assert_refused(self.atoll("create", "--name", name), "cannot be the name")
        self.create("--name", "x" * 63)

    def test_ids_of_elsewhere_say_so(self):
        sandbox = self.create()
        for place, words in ((3, "another host"), (7, "before this host was last started"), (11, "another user")):
            strange = with_other(sandbox, place)
            for arguments in (("exec", strange, "--", "true"), ("inspect", strange), ("rm", strange),
                              ("rm", "--force", strange), ("read", strange, "x"), ("ls", strange),
                              ("cp", strange + ":x", "/tmp/")):
                with self.subTest(words=words, verb=arguments[0]):
                    self.assert_refused(self.atoll(*arguments), words, strange)
        self.assert_refused(self.atoll("exec", with_other(sandbox, 20), "--", "true"), "is gone")

    def test_other_backends(self):
        for typed, words in (("modal:abc", "modal"), ("nobackend:abc", "nobackend"), ("A:b", "no sandbox is called")):
            with self.subTest(typed=typed):
                self.assert_refused(self.atoll("exec", typed, "--", "true"), words)
                self.assert_refused(self.atoll("ls", typed), words)
        self.assert_refused(self.atoll("list", "--backend", "modal"), "modal")
        self.assert_refused(self.atoll("create", "--backend", "modal"), "modal")

    def test_what_is_refused_is_what_check_refuses(self):
        for option in (("--max-cost", "1"), ("--egress-enforcement", "inspect")):
            with self.subTest(option=option):
                self.assert_refused(self.atoll("create", *option), "backend")
        self.assertEqual(self.listed(), [])

    def test_explain_answers_for_a_sandbox(self):
        sandbox = self.create("--name", "box")
        for name in (sandbox, "box"):
            result = self.atoll("explain", name, "example.com:443")
            self.assertEqual(result.status, 1, result.err)
            self.assertIn(b"block_network: true", result.out)
        self.assert_refused(self.atoll("explain", "nobody", "example.com:443"), "nobody")
        network = self.json("inspect", "box")["network"]
        self.assertEqual(network, {"allow_egress_to": [], "allow_egress_to_cidrs": [], "block_network": True})

    def test_inspect_tells_all_but_values(self):
        sandbox = self.create("--name", "box", "-e", "SECRET=tell-nobody", "--owner", "me", "--tag", "job=42",
                              "--hostname", "inner", "--pids", "99", "--disk", "8M", "--workdir", "/tmp/here",
                              "--idle-timeout", "5m")
        self.exec(sandbox, "head -c 3000000 /dev/zero > big")
        text = self.good("inspect", sandbox).decode()
        for words in (sandbox, "box", "me", "job=42", "inner", "/tmp/here", "of 99", "MiB of 8.0 MiB", "running"):
            self.assertIn(words, text)
        self.assertRegex(text, r"fences +namespaces, .*Landlock")
        record = (self.state / sandbox / "record.json").read_text()
        value = self.json("inspect", sandbox)
        for told in (text, record, json.dumps(value)):
            self.assertNotIn("tell-nobody", told)
        self.assertEqual(
            (value["name"], value["owner"], value["tags"], value["hostname"], value["workdir"], value["idle_timeout"]),
            ("box", "me", {"job": "42"}, "inner", "/tmp/here", 300))
        self.assertEqual(value["disk_bytes"]["limit"], 8 << 20)
        self.assertGreaterEqual(value["disk_bytes"]["used"], 3000000)
        self.assertEqual(value["processes"]["limit"], 99)

    def test_list_filters(self):
        a = self.create("--tag", "job=1", "--tag", "kind=x", "--owner", "me", "--name", "a")
        b = self.create("--tag", "job=1")
        c = self.create("--tag", "job=2", "--owner", "me")
        for options, expected in (
            ((), [a, b, c]), (("--tag", "job=1"), [a, b]), (("--tag", "job=1", "--tag", "kind=x"), [a]),
            (("--owner", "me"), [a, c]), (("--owner", "me", "--tag", "job=2"), [c]), (("--tag", "job=3"), []),
        ):
            with self.subTest(options=options):
                self.assertEqual(self.good("list", "-q", *options).decode().split(), expected)
                self.assertEqual([s["id"] for s in self.json("list", *options)["sandboxes"]], expected)
        text = self.good("list").decode().splitlines()
        self.assertEqual(len(text), 4)
        self.assertRegex(text[1], re.escape(a) + r" a +running +59 min +me +job=1 +kind=x")
        self.assert_refused(self.atoll("list", "--tag", "job"), "not a tag")

    def test_rm_by_tag_and_owner(self):
        a, b = self.create("--tag", "job=1"), self.create("--tag", "job=1", "--owner", "me")
        c = self.create("--tag", "job=2", "--owner", "me")
        self.assertEqual(self.json("rm", "--tag", "job=1", "--owner", "me")["removed"], [b])
        self.assertEqual(self.good("rm", "--tag", "job=9"), b"")
        self.assertEqual(self.good("rm", "--tag", "job=1", "--owner", "me", c), b"")
        self.assertEqual(self.listed(), [a])
        self.assertEqual(self.good("rm", "--tag", "job=1"), b"")
        self.assertEqual(self.listed(), [])
        self.assert_refused(self.atoll("rm"), "not said which")
        self.assertNotEqual(a, b)

    def test_rm_tries_all_and_tells_each_failure(self):
        a, b = self.create(), self.create("--name", "b")
        self.create("--name", "theirs", "--owner", "them")
        gone = with_other(a, 20)
        result = self.atoll("rm", "--json", gone, a, "no-such", "theirs", "b", a)
        self.assertEqual(result.status, 125)
        lines = result.err.decode().splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertTrue(lines[0].startswith(f"atoll: sandbox {gone} is gone. "), lines)
        self.assertTrue(lines[1].startswith("atoll: no sandbox is called 'no-such'. "), lines)
        self.assertEqual(lines[2], "atoll: theirs: the sandbox was made for 'them', and no owner was given. "
                                   "Give --owner NAME as at create, or --force.")
        told = json.loads(result.out)
        json_schema.validate(told, json_schema.load("rm"))
        theirs = self.listed()
        self.assertEqual(told["removed"], [a, b])
        self.assertEqual([x["id"] for x in told["failed"]], [gone, "no-such", *theirs])
        self.assertEqual(lines, [f"atoll: {said}{x['reason']}" for said, x in zip(("", "", "theirs: "), told["failed"])])
        self.good("rm", "--force", "theirs")
        self.assertEqual(self.listed(), [])
        self.assertEqual(self.good("rm", "--force", gone, a, "no-such"), b"")
        self.assert_refused(self.atoll("rm", a), "is gone")

    def test_several_rm_at_once_are_none_in_each_others_way(self):
        for _ in range(3):
            made = [self.create("--tag", "job=race") for _ in range(6)]
            runs = [self.begin("rm", "--tag", "job=race") for _ in range(2)] + [self.begin("rm", "--force", *made)]
            for done in [run.result() for run in runs]:
                self.assertEqual((done.status, done.out, done.err), (0, b"", b""))
            self.assertEqual(self.listed(), [])

    def test_whoever_comes_while_it_ends_is_told_so(self):
        """Also who was let in and is not greeted any more: all of them have one of these words."""
        for _ in range(4):
            sandbox = self.create()
            clients = [self.begin("exec", sandbox, "--", "true") for _ in range(3)]
            ender = self.begin("rm", sandbox)
            clients += [self.begin("inspect", sandbox) for _ in range(3)]
            self.assertEqual(ender.result().status, 0)
            for done in [client.result() for client in clients]:
                if done.status == 137:  # it ran already
                    continue
                if done.status != 0:
                    self.assertRegex(done.err.decode(), r"^atoll: .*(is gone|has ended|sandbox ended).*\n$")
                    self.assertNotIn(b"does not speak", done.err)

    def test_an_owner_that_a_sandbox_does_not_have_is_refused(self):
        sandbox = self.create()
        words = ("carries no owner, and 'nobody' was given", "Leave --owner out")
        self.assert_refused(self.atoll("rm", sandbox, "--owner", "nobody"), sandbox, *words)
        self.assert_refused(self.atoll("extend", sandbox, "5m", "--owner", "nobody"), *words)
        self.assertEqual(self.listed(), [sandbox])
        self.good("rm", "--owner", "nobody")  # without ids it selects
        self.assertEqual(self.listed(), [sandbox])
        self.good("rm", "--owner", "nobody", "--force", sandbox)

    def test_a_keeper_that_hangs_is_named_and_the_others_go(self):
        stopped, deaf, good = self.create("--name", "stopped"), self.deaf_keeper(), self.create()
        pid = self.keeper_of(stopped)
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        result = self.atoll("rm", "--force", "--json", "stopped", deaf, good)
        self.assertEqual(result.status, 125)
        self.assertEqual(json.loads(result.out)["removed"], [good])
        lines = result.err.decode().splitlines()
        self.assertEqual(len(lines), 2, lines)
        for line, name, process in zip(lines, ("stopped", deaf), (pid, os.getpid())):
            self.assertTrue(line.startswith(f"atoll: {name}: its keeper, process {process}, does not answer. "), line)
            self.assertIn(f'"kill -9 {process}"', line)
        self.assertEqual([p.pid for p in keepers() if p.pid == pid], [pid])

    def deaf_keeper(self):
        """The id of a sandbox whose keeper greets, and then answers nothing: this process."""
        like = self.create()
        record = json.loads((self.state / like / "record.json").read_text())
        self.good("rm", like)
        sandbox = with_other(like, 20)
        folder = self.state / sandbox
        folder.mkdir(mode=0o700)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(listener.close)
        listener.bind(str(folder / "control"))
        listener.listen(8)
        (folder / "record.json").write_text(json.dumps(record | {"id": sandbox, "keeper_pid": os.getpid()}))
        (folder / "record.json").chmod(0o600)

        def greet():
            payload = hello(1, 3)
            while True:  # whoever looks which sandboxes live comes too
                try:
                    client = listener.accept()[0]
                except OSError:
                    return
                self.addCleanup(client.close)
                with contextlib.suppress(OSError):
                    client.send(FRAME.pack(len(payload), Type.HELLO, 0, 0, 0) + payload)

        greeter = threading.Thread(target=greet)
        greeter.start()
        self.addCleanup(greeter.join)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return sandbox

    def test_create_and_its_form(self):
        value = self.json("create", "--name", "box", "--tag", "a=b=c", "--owner", "me")
        self.assertEqual((value["name"], value["owner"], value["tags"], value["backend"]),
                         ("box", "me", {"a": "b=c"}, "local"))
        self.assertEqual(self.listed(), [value["id"]])


class Inputs(HeldTest):
    def test_files_and_folders_are_there_before_the_id_is_printed(self):
        source = self.folder()
        (source / "one.txt").write_text("one")
        (source / "in.txt").write_text("in")
        (source / "tree/deep").mkdir(parents=True)
        (source / "tree/deep/two.sh").write_text("#!/bin/sh\necho two\n")
        (source / "tree/deep/two.sh").chmod(0o755)
        shutil.copytree(source / "tree", source / "same")
        sandbox = self.create("--input", f"{source}/one.txt=/tmp/new/name.txt", "--input", f"{source}/in.txt=in/",
                              "--input", f"{source}/tree=/workspace", "--input", f"{source}/same=other")
        self.assertEqual(
            self.exec(sandbox, "cat /tmp/new/name.txt in/in.txt; deep/two.sh; other/deep/two.sh"), b"oneintwo\ntwo\n")

    def test_one_that_cannot_be_copied_undoes_all(self):
        source = self.folder()
        (source / "good").write_text("x")
        os.mkfifo(source / "pipe")
        for options, words in (
            (("--input", f"{source}/good=/proc/no"), "/proc/no"),
            (("--input", f"{source}/good=/tmp"), "is a folder"),
            (("--input", f"{source}/pipe=/tmp/x"), "FIFO"),
            (("--input", f"{source}/gone=/tmp/x"), "gone"),
        ):
            with self.subTest(options=options):
                self.assert_refused(self.atoll("create", "--input", f"{source}/good=/tmp/a", *options), words)
                self.assertEqual(self.listed(), [])
                self.assert_gone()

    def test_a_full_disk_undoes_all(self):
        source = self.folder() / "large"
        source.write_bytes(bytes(3 << 20))
        self.assert_refused(self.atoll("create", "--disk", "1M", "--input", f"{source}=/tmp/large"), "disk is full")
        self.assertEqual(self.listed(), [])


class Users(HeldTest):
    def test_another_users_folder_is_refused(self):
        if not is_root():  # then root is the other one
            self.assert_refused(self.atoll("create", env={"ATOLL_STATE_DIR": "/usr"}), "belongs to another user")
            return
        sandbox = self.create("--name", "box")
        os.chmod(self.state, 0o755)  # even then
        stranger = {"user": 52999, "group": 52999, "extra_groups": []}
        self.assert_refused(self.atoll("exec", sandbox, "--", "true", **stranger), "another user")
        self.assert_refused(self.atoll("exec", "box", "--", "true", **stranger), "belongs to another user")
        self.assertEqual(self.atoll("list", **stranger).status, 125)

    def test_a_folder_that_others_may_write_to_is_refused(self):
        self.state.mkdir()
        os.chmod(self.state, 0o777)
        self.assert_refused(self.atoll("create"), "written to by others")
        os.chmod(self.state, 0o700)


class Programs(HeldTest):
    def test_a_command_can_outlive_many_clients(self):
        sandbox = self.create()
        self.good("write", sandbox, "server.py", stdin=(
            b"import socket, os\ns = socket.socket()\ns.bind(('127.0.0.1', 7070))\ns.listen()\n"
            b"open('/tmp/up', 'w').close()\nwhile True:\n    c = s.accept()[0]\n    c.sendall(b'served')\n    c.close()\n"))
        self.good("exec", "--detach", sandbox, "--", PYTHON, "server.py")
        wait_for(lambda: self.atoll("read", sandbox, "/tmp/up").status == 0, "the server")
        ask = "import socket; s = socket.create_connection(('127.0.0.1', 7070)); print(s.recv(9).decode())"
        for _ in range(3):
            self.assertEqual(self.good("exec", sandbox, "--", PYTHON, "-c", ask), b"served\n")

    def test_many_sandboxes_side_by_side(self):
        made = [client.result().out.decode().strip() for client in [self.begin("create") for _ in range(12)]]
        self.assertEqual(len(set(made)), 12)
        self.assertEqual(set(self.listed()), set(made))
        self.assertEqual(len(keepers()), 12)
        self.good("rm", *made)
        self.assertEqual(self.listed(), [])
        wait_for(lambda: not keepers(), "the keepers' end", GONE_S)


if __name__ == "__main__":
    unittest.main()
