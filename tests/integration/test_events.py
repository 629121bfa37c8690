# SPDX-License-Identifier: Apache-2.0
"""What happens to a sandbox: told after a command, in its result, in the events of a sandbox, and in an audit file."""
import hashlib
import json
import os
import signal
import stat
import subprocess
import threading
import time
import unittest

from support import GONE_S, LIMIT_S, PYTHON, HeldTest, SandboxTest, json_schema, wait_for

# Tries to connect to each HOST:PORT of its arguments, and fails on the first that lets it.
TRY = """
import socket, sys
for place in sys.argv[1:]:
    host, port = place.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 5)
    except OSError:
        continue
    sys.exit("reached " + place)
"""
ADDRESS = "192.0.2.9:8080"  # RFC 5737: nobody's
ALLOWED = ("--allow", "example.org")


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


class RefusedTest(SandboxTest):
    """One command in a sandbox of its own."""

    def attempts(self, *places, options=ALLOWED, status=0):
        """What a run of TRY told on standard error, and its result."""
        path = self.folder() / "result.json"
        done = self.run_in(*options, "--result", str(path), "--", PYTHON, "-c", TRY, *places)
        self.assertEqual((done.status, done.out), (status, b""), done.err)
        result = json.loads(path.read_text())
        json_schema.validate(result, json_schema.load("result"))
        return done.err.decode().splitlines(), result

    def run_in(self, *arguments):
        return self.start(*arguments).result()

    def test_each_place_is_told_once_and_why(self):
        told, result = self.attempts(ADDRESS, ADDRESS, "absent.test:443", ADDRESS)
        self.assertEqual(len(told), 2, told)
        for line, place in zip(sorted(told), [ADDRESS, "absent.test"]):
            self.assertRegex(line, rf"^atoll: refused: {place} \(.*{place.split(':', maxsplit=1)[0]}.*\)$")
        denied = {(d["protocol"], d["name"], d["address"], d["port"]) for d in result["denied"]}
        self.assertEqual(denied, {("tcp", "", "192.0.2.9", 8080), ("dns", "absent.test", "", 0)})
        self.assertEqual(result["denied_more"], 0)
        self.assertEqual({d["rule"] for d in result["denied"]}, {"no rule"})
        for d in result["denied"]:
            self.assertLess(abs(d["time"] - time.time()), 60)

    def test_many_places_are_counted(self):
        told, result = self.attempts(*(f"192.0.2.{n}:80" for n in range(1, 41)))
        self.assertEqual(len(result["denied"]), 16)
        self.assertGreater(result["denied_more"], 0)
        self.assertEqual(len(told), 17)
        self.assertRegex(told[-1], r"^atoll: refused: [0-9]+ more$")

    def test_udp_and_ipv6_are_told_too(self):
        script = ("import socket\n"
                  "for family, to in ((socket.AF_INET, ('192.0.2.9', 53000)), (socket.AF_INET6, ('2001:db8::9', 53000))):\n"
                  "    try:\n"
                  "        socket.socket(family, socket.SOCK_DGRAM).sendto(b'x', to)\n"
                  "    except OSError:\n"
                  "        pass\n")
        done = self.run_in(*ALLOWED, "--", PYTHON, "-c", script)
        told = done.err.decode()
        self.assertIn("atoll: refused: 192.0.2.9:53000 (", told)
        self.assertIn("atoll: refused: [2001:db8::9]:53000 (", told)

    def test_a_sealed_sandbox_tells_of_nothing(self):
        told, result = self.attempts(ADDRESS, options=())
        self.assertEqual(told, [])
        self.assertNotIn("denied", result)

    def test_nothing_refused_is_nothing_told(self):
        told, result = self.attempts()
        self.assertEqual(told, [])
        self.assertNotIn("denied", result)

    def test_a_command_that_fails_tells_its_status_too(self):
        done = self.run_in(*ALLOWED, "--", PYTHON, "-c", TRY + "sys.exit(7)", ADDRESS)
        self.assertEqual(done.status, 7)
        self.assertIn(b"atoll: refused: " + ADDRESS.encode(), done.err)


class EventsTest(HeldTest):
    def setUp(self):
        super().setUp()
        self.box = self.create("--lifetime", "120s", *ALLOWED)

    def attempt(self, *places, box=None):
        """Attempts that are refused in a sandbox; what was told of them."""
        done = self.atoll("exec", box or self.box, "--", PYTHON, "-c", TRY, *places)
        self.assertEqual(done.status, 0, done.err)
        return done.err.decode()

    def events(self, *arguments):
        """The lines of a sandbox's events, judged by their schema."""
        found = lines(self.good("events", "--json", *(arguments or (self.box,))))
        for event in found:
            json_schema.validate(event, json_schema.load("events"))
        return found

    def refusals(self, *arguments):
        """Those of what the network policy refused."""
        return self.events(*(arguments or (self.box,)), "--kind", "egress")

    def test_a_refusal_is_one_line_with_its_command(self):
        before = time.time()
        told = self.attempt(ADDRESS)
        self.assertEqual(told.count("\n"), 1, told)
        (event,) = self.refusals()
        self.assertEqual((event["kind"], event["event"], event["commands"]), ("egress", "denied", [1]))
        self.assertEqual((event["protocol"], event["address"], event["port"]), ("tcp", "192.0.2.9", 8080))
        self.assertIn(event["reason"], told)
        at = time.strptime(event["time"][:19], "%Y-%m-%dT%H:%M:%S")
        self.assertLess(abs(before - (time.mktime(at) - time.timezone)), 60)
        self.attempt(ADDRESS)
        self.assertEqual([e["commands"] for e in self.refusals()], [[1], [2]])

    def test_the_file_is_the_owners_alone_and_goes_with_the_sandbox(self):
        path = self.state / self.box / "events.jsonl"
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.attempt(ADDRESS)
        self.assertEqual(lines(path.read_text()), self.events())
        self.good("rm", self.box)
        self.assert_no_state()

    def test_one_whose_keeper_was_killed_is_swept_with_its_events(self):
        self.attempt(ADDRESS)
        os.kill(self.keeper_of(self.box), 9)
        wait_for(lambda: self.listed() == [], "an empty list", GONE_S)
        self.assert_no_state()

    def test_events_for_people_are_lines(self):
        self.attempt(ADDRESS, "absent.test:443")
        out = self.good("events", self.box).decode()
        self.assertRegex(out, r"(?m)^[0-9-]{10} [0-9:]{8} refused tcp 192\.0\.2\.9:8080 command 1 \(.+\)$")
        self.assertRegex(out, r"(?m) refused dns absent\.test command 1 \(.+\)$")

    def test_a_flood_is_counted_and_fills_no_file(self):
        audit = self.folder() / "audit"
        box = self.create("--lifetime", "120s", "--audit", str(audit), *ALLOWED)
        done = self.atoll("exec", box, "--", PYTHON, "-c",
                          "import socket, time\n"
                          "u = socket.socket(2, socket.SOCK_DGRAM)\n"
                          "for port in range(1000, 1500):\n"
                          "    try:\n"
                          "        u.sendto(b'x', ('192.0.2.9', port))\n"
                          "    except OSError:\n"
                          "        time.sleep(0.008)\n")  # slow enough for egress to tell of most
        self.assertIn(b"atoll: refused: 484 more\n", done.err)  # a command is told of all
        attempts = lambda found: sum(1 + e["repeated"] + e["dropped"] for e in found if e["kind"] == "egress")
        wait_for(lambda: attempts(self.events(box)) == 500, "all attempts in the events", LIMIT_S)
        self.assertLess(len(self.refusals(box)), 300)
        self.good("rm", box)
        found = lines(audit.read_text())
        self.assertEqual(attempts(found), 500)
        self.assertLess(len(found), 304)

    def test_a_line_that_is_too_long_is_passed_over(self):
        with (self.state / self.box / "events.jsonl").open("a") as file:
            file.write('{"time":"2026-11-30T10:00:00.123456Z","kind":"lease","owner":"' + "x" * 3000000 + '"}\n')
        self.exec(self.box, "true")
        self.assertEqual([(e["kind"], e["event"]) for e in self.events()],
                         [("state", "created"), ("events", "dropped"), ("command", "started"), ("command", "exited")])
        self.assertIn(b"2026-11-30 10:00:00 there was no room for 1 event\n", self.good("events", self.box))

    def test_names_cannot_drive_a_terminal(self):
        script = ("import socket, struct\n"
                  "name = b'a\\x1b[2J\\n'\n"
                  "query = struct.pack('>6H', 7, 256, 1, 0, 0, 0) + bytes([len(name)]) + name + b'\\4test\\0' + struct.pack('>2H', 1, 1)\n"
                  "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                  "s.settimeout(5)\n"
                  "s.sendto(query, ('192.0.2.53', 53))\n"
                  "s.recv(512)\n")
        done = self.atoll("exec", self.box, "--", PYTHON, "-c", script)
        for text in (done.err, self.good("events", self.box), self.good("events", "--json", self.box)):
            self.assertNotIn(b"\x1b", text)
        self.events()

    def test_one_kind_is_asked_for(self):
        self.attempt(ADDRESS)
        self.good("policy", self.box, "--remove", "example.org")
        self.assertEqual({e["kind"] for e in self.events()}, {"state", "command", "egress", "policy"})
        for kind in ("state", "command", "egress", "policy"):
            self.assertEqual({e["kind"] for e in self.events(self.box, "--kind", kind)}, {kind})
        self.assertEqual(self.events(self.box, "--kind", "lease"), [])
        (change,) = self.events(self.box, "--kind", "policy")
        self.assertEqual((change["generation"], change["policy"]["allow_egress_to"]), (2, []))

    def test_events_that_are_not_there_are_told_with_every_kind(self):
        gap = {"time": "2026-01-01T00:00:00.000Z", "kind": "events", "event": "dropped", "lines": 3}
        with (self.state / self.box / "events.jsonl").open("a") as file:
            file.write(json.dumps(gap) + "\n")
        for kind in ("state", "command", "egress", "events"):
            self.assertIn(gap, self.events(self.box, "--kind", kind))
            self.assertIn(b" 3 events\n", self.good("events", self.box, "--kind", kind))
        self.assertEqual([e["lines"] for e in self.events("--kind", "lease")], [3])

    def test_what_cannot_be_printed_is_said(self):
        self.exec(self.box, "for i in 1 2 3; do true; done")
        for arguments in ((self.box,), (), (self.box, "--follow"), ("--follow", "--json")):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = self.atoll("events", *arguments, stdout=full)
                self.assertEqual((done.status, done.err),
                                 (125, b"atoll: cannot write to standard output: No space left on device\n"))

    def test_following_ends_when_nobody_reads(self):
        for ignored, status in ((False, 128 + signal.SIGPIPE), (True, 125)):
            for arguments in ((self.box, "--follow"), ("--follow",)):
                with self.subTest(arguments=arguments, ignored=ignored):
                    reader, writer = os.pipe()
                    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL)
                    try:
                        follower = self.begin("events", *arguments, stdout=writer, restore_signals=False)
                    finally:
                        signal.signal(signal.SIGPIPE, before)
                    os.close(writer)
                    self.assertIn(b" created", os.read(reader, 4096))
                    self.assertIsNone(follower.poll())
                    os.close(reader)
                    done = follower.result()
                    self.assertEqual(done.status, status)
                    self.assertEqual(b"Broken pipe" in done.err, ignored, done.err)

    def test_without_an_id_those_of_all_are_told(self):
        other = self.create("--lifetime", "120s", *ALLOWED)
        sealed = self.create("--lifetime", "120s")
        self.attempt(ADDRESS)
        self.attempt(ADDRESS, box=other)
        found = self.refusals("--json")
        self.assertEqual({e["id"] for e in found}, {self.box, other})
        self.assertIn(other, self.good("events").decode())
        self.assertEqual([e["event"] for e in self.events(sealed)], ["created"])
        self.assertTrue((self.state / sealed / "events.jsonl").exists())
        times = [e["time"] for e in self.events("--kind", "command")]
        self.assertEqual(times, sorted(times))

    def test_tags_say_which(self):
        tagged = self.create("--lifetime", "120s", "--tag", "job=1", "--tag", "team=a")
        self.create("--lifetime", "120s", "--tag", "job=2")
        self.assertEqual({e["id"] for e in self.events("--tag", "job=1")}, {tagged})
        self.assertEqual({e["id"] for e in self.events("--tag", "job=1", "--tag", "team=a")}, {tagged})
        self.assertEqual(self.events("--tag", "job=3"), [])

    def test_following_ends_with_the_sandbox(self):
        follower = self.begin("events", self.box, "--follow", "--json", "--kind", "egress")
        wait_for(lambda: self.follows(follower), "a follower that watches", LIMIT_S)
        self.attempt(ADDRESS)
        self.attempt("192.0.2.10:81")
        self.good("rm", self.box)
        done = follower.result()
        self.assertEqual((done.status, done.err), (0, b""))
        self.assertEqual([e["port"] for e in lines(done.out)], [8080, 81])

    def follows(self, follower):
        """Whether it has its connection to the keeper, which it makes after it watches."""
        try:
            return any("socket" in os.readlink(f"/proc/{follower.pid}/fd/{fd}")
                       for fd in os.listdir(f"/proc/{follower.pid}/fd"))
        except OSError:
            return False

    def test_following_ends_when_the_keeper_is_killed(self):
        self.attempt(ADDRESS)
        follower = self.begin("events", self.box, "--follow", "--json", "--kind", "egress")
        wait_for(lambda: self.follows(follower), "a follower that watches", LIMIT_S)
        os.kill(self.keeper_of(self.box), 9)
        done = follower.result()
        self.assertEqual((done.status, len(lines(done.out))), (0, 1))

    def test_two_commands_at_once_both_hear_of_it(self):
        waiting = self.begin("exec", "-i", self.box, "--", "cat", stdin=subprocess.PIPE)
        wait_for(lambda: b"cat" in self.good("ps", self.box), "the waiting command", LIMIT_S)
        self.attempt(ADDRESS)
        done = waiting.result(b"")
        self.assertIn(b"atoll: refused: " + ADDRESS.encode(), done.err)
        self.assertEqual(sorted(self.refusals()[0]["commands"]), [1, 2])

    def test_what_cannot_be_is_said(self):
        for arguments, words in [
            ((self.box, "--tag", "job=1"), b"--tag says which of all"),
            (("--tag", "job"), b"'job' is not a tag"),
            ((self.box, "--kind", "dns"), b"kind"),
            (("absent",), b"no sandbox is called 'absent'"),
        ]:
            with self.subTest(arguments):
                done = self.atoll("events", *arguments)
                self.assertEqual(done.status, 125)
                self.assertIn(words, done.err)


class KindsTest(HeldTest):
    """Every kind of event, by its schema."""

    SECRET = "correct-horse"

    def events(self, *arguments):
        found = lines(self.good("events", "--json", *arguments))
        for event in found:
            json_schema.validate(event, json_schema.load("events"))
        return found

    def test_commands_are_told_from_start_to_end(self):
        box = self.create("--lifetime", "120s", "--tag", "job=1", "--name", "told")
        self.atoll("exec", box, "--", "sh", "-c", "exit 3")
        self.atoll("exec", "--timeout", "0.2s", box, "--", "sleep", "30")
        self.atoll("exec", box, "--", "/absent/program")
        self.good("exec", "--detach", box, "--", "true")
        wait_for(lambda: len(self.events(box)) == 8, "the end of the detached command", LIMIT_S)
        created, first, exited, slow, late, absent, detached, over = self.events(box)
        self.assertEqual((created["event"], created["name"], created["tags"], created["held"]),
                         ("created", "told", ["job=1"], True))
        self.assertEqual(created["lifetime"], 120)
        self.assertEqual((first["event"], first["command"], first["argv"], first["detached"]),
                         ("started", 1, ["sh", "-c", "exit 3"], False))
        self.assertEqual((exited["event"], exited["command"], exited["reason"], exited["exit_code"]),
                         ("exited", 1, "exited", 3))
        self.assertEqual((slow["event"], slow["command"]), ("started", 2))
        self.assertEqual((late["reason"], late["status"], late["applied_timeout"]), ("timeout", 124, 0.2))
        self.assertEqual((absent["event"], absent["argv"], absent["status"]), ("exited", ["/absent/program"], 127))
        self.assertTrue(detached["detached"])
        self.assertEqual((over["command"], over["status"]), (4, 0))
        out = self.good("events", box).decode()
        for words in (" created as told with job=1; it lives 2 min", " command 1 started: sh -c 'exit 3'",
                      " command 1 exited with 3 after ", " command 2 timed out after 0.2",
                      " command 3 could not be started: /absent/program", " command 4 started, detached: true"):
            self.assertIn(words, out)

    def test_reading_and_writing_files_are_no_commands(self):
        box = self.create("--lifetime", "120s")
        self.good("write", box, "a", stdin=b"x")
        self.good("read", box, "a")
        self.assertEqual([e["kind"] for e in self.events(box)], ["state"])

    def test_exports_are_told(self):
        box = self.create("--lifetime", "120s")
        target = self.folder() / "out"
        target.mkdir()
        self.good("write", box, "a b.txt", stdin=b"hello")
        self.exec(box, "mkdir d; echo x >d/y")
        self.atoll("export", box, f"a b.txt=file://{target}/x.txt", f"d=file://{target}/d")
        self.assertEqual(self.atoll("export", box, f"absent=file://{target}/y").status, 125)
        wait_for(lambda: len(self.events(box, "--kind", "export")) == 3, "three events", LIMIT_S)
        file, folder, failed = self.events(box, "--kind", "export")
        digest = "sha256:" + hashlib.sha256(b"hello").hexdigest()
        self.assertEqual((file["event"], file["path"], file["url"], file["bytes"], file["digest"]),
                         ("published", "a b.txt", f"file://{target}/x.txt", 5, digest))
        self.assertEqual((folder["event"], folder["path"], folder["digest"]), ("published", "d", None))
        self.assertEqual((failed["event"], failed["path"]), ("failed", "absent"))
        self.assertIn("does not exist", failed["message"])
        self.assertIn(f" published 'a b.txt' to file://{target}/x.txt (5 B)", self.good("events", box).decode())

    def test_secrets_are_shown_nowhere(self):
        audit = self.folder() / "audit"
        self.env["SECRET"] = self.SECRET
        box = self.create("--lifetime", "120s", "--env", "SECRET", "--audit", str(audit), *ALLOWED)
        path = self.state / box / "events.jsonl"
        long = "x" * 4090 + self.SECRET
        self.good("exec", box, "--", "true", self.SECRET, f"--password={self.SECRET}", self.SECRET * 2)
        self.good("exec", box, "--", "true", long)
        self.good("exec", box, "--", "true", *(["y" * 50] * 100), self.SECRET)
        self.atoll("exec", box, "--", "/absent/" + self.SECRET)
        self.atoll("exec", box, "--", PYTHON, "-c", TRY, f"{self.SECRET}.test:443")
        self.good("write", box, self.SECRET, stdin=b"x")
        target = self.folder()
        self.atoll("export", box, f"{self.SECRET}=file://{target}/{self.SECRET}")
        self.atoll("export", box, f"{self.SECRET}/no=file://{target}/{self.SECRET}/x")
        wait_for(lambda: len(self.events(box, "--kind", "export")) == 2, "the exports", LIMIT_S)
        self.events(box)
        kept = path.read_text()
        for text in (kept, audit.read_text(), self.good("events", box).decode(), self.good("events", "--json").decode()):
            self.assertNotIn(self.SECRET, text)
            self.assertNotIn(self.SECRET[:6], text)
            self.assertNotIn(self.SECRET[-6:], text)
            self.assertIn("--password=***", text)
        self.assertIn('"name":"***.test"', kept)

    def test_following_all_picks_up_what_is_made(self):
        first = self.create("--lifetime", "120s", "--tag", "job=1")
        follower = self.begin("events", "--follow", "--json", "--tag", "job=1", stdin=subprocess.DEVNULL)
        told = []
        reader = threading.Thread(target=lambda: told.extend(json.loads(line) for line in follower.stdout))
        reader.start()
        wait_for(lambda: told, "what was there", LIMIT_S)
        second = self.create("--lifetime", "120s", "--tag", "job=1")
        other = self.create("--lifetime", "120s", "--tag", "job=2")
        self.exec(second, "true")
        self.good("rm", first, second, other)
        wait_for(lambda: [e["kind"] for e in told].count("end") == 2, "both ends", LIMIT_S)
        follower.terminate()
        follower.wait()
        reader.join()
        self.assertEqual({e["id"] for e in told}, {first, second})
        self.assertEqual([e["kind"] for e in told if e["id"] == second], ["state", "command", "command", "end"])
        for event in told:
            json_schema.validate(event, json_schema.load("events"))

    def test_a_line_is_there_before_create_answers(self):
        for _ in range(5):
            box = self.create("--lifetime", "120s")
            self.assertEqual([e["event"] for e in lines((self.state / box / "events.jsonl").read_text())], ["created"])


class AuditTest(HeldTest):
    def audited(self, path):
        found = lines(path.read_text())
        for event in found:
            json_schema.validate(event, json_schema.load("events"))
            self.assertRegex(event["id"], r"^sb-[a-z2-7]{26}$")
        return found

    def test_it_outlives_the_sandbox(self):
        path = self.folder() / "audit"
        box = self.create("--lifetime", "120s", "--audit", str(path))
        self.exec(box, "true")
        kept = lines((self.state / box / "events.jsonl").read_text())
        self.assertEqual([{k: v for k, v in e.items() if k != "id"} for e in self.audited(path)], kept)
        self.good("rm", box)
        self.assertEqual([(e["kind"], e["event"]) for e in self.audited(path)],
                         [("state", "created"), ("command", "started"), ("command", "exited"), ("end", "ended")])
        self.assertEqual(self.audited(path)[-1]["by"], "destroyed")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(path.stat().st_uid, os.geteuid())

    def test_a_run_is_audited_too(self):
        path = self.folder() / "audit"
        done = self.run_atoll("--audit", str(path), "--", "sh", "-c", "exit 4")
        self.assertEqual((done.status, done.err), (4, b""))
        found = self.audited(path)
        self.assertEqual([(e["kind"], e["event"]) for e in found],
                         [("state", "created"), ("command", "started"), ("command", "exited"), ("end", "ended")])
        self.assertEqual((found[0]["held"], found[2]["exit_code"]), (False, 4))

    def test_many_write_to_one_file(self):
        path = self.folder() / "audit"
        runs = [self.start("--audit", str(path), "--", "sh", "-c", "true " + "x" * 3000) for _ in range(8)]
        for run in runs:
            self.assertEqual(run.result().status, 0)
        found = self.audited(path)
        self.assertEqual((len(found), len({e["id"] for e in found})), (32, 8))

    def test_a_caller_that_is_killed_leaves_an_end(self):
        path = self.folder() / "audit"
        client = self.start("--audit", str(path), "--", "sleep", "60")
        wait_for(lambda: path.exists() and "started" in path.read_text(), "the command", LIMIT_S)
        client.kill()
        wait_for(lambda: "ended" in path.read_text(), "the end", GONE_S)
        self.assertEqual(self.audited(path)[-1]["by"], "caller_died")

    def test_a_file_of_the_spec_is_found_from_there(self):
        folder = self.folder()
        (folder / "box.yaml").write_text("version: 1\nbackend:\n  audit: audit.jsonl\n")
        done = self.run_atoll("--spec", str(folder / "box.yaml"), "--", "true")
        self.assertEqual((done.status, done.err), (0, b""))
        self.assertEqual(len(self.audited(folder / "audit.jsonl")), 4)

    def test_what_cannot_be_written_is_refused_before_there_is_a_sandbox(self):
        folder = self.folder()
        (folder / "link").symlink_to(folder / "target")
        os.mkfifo(folder / "fifo")
        for path, words in [(folder / "absent/audit", "is not there"), (folder, "is not a regular file"),
                            (folder / "link", "is not a regular file"), (folder / "fifo", "is not a regular file")]:
            with self.subTest(path):
                self.assert_refused(self.atoll("create", "--audit", str(path)), words)
                self.assert_refused(self.run_atoll("--audit", str(path), "--", "true"), words)
        self.assertFalse((folder / "target").exists())
        self.assertEqual(self.listed(), [])

    def test_where_programs_inside_could_change_it_it_is_refused(self):
        folder = self.folder()
        (folder / "deep").mkdir()
        (folder.parent / f"{folder.name}-beside").symlink_to(folder)
        self.addCleanup((folder.parent / f"{folder.name}-beside").unlink)
        for path in (folder / "audit", folder / "deep/audit", folder.parent / f"{folder.name}-beside/audit"):
            with self.subTest(path):
                self.assert_refused(self.run_atoll("--audit", str(path), "--volume", f"{folder}:/data", "--", "true"),
                                    "programs inside could change it", "Name a file elsewhere")
                self.assertFalse(path.exists())
        done = self.run_atoll("--audit", str(folder / "audit"), "--volume", f"{folder}:/data:ro", "--", "true")
        self.assertEqual((done.status, done.err), (0, b""))

    def test_a_folder_in_which_nothing_can_be_made_is_refused(self):
        path = "/proc/audit-of-atoll"  # not even root can
        self.assert_refused(self.run_atoll("--audit", path, "--", "true"),
                            path, "cannot be written to", "Set backend.audit to a file")

    def test_other_backends_refuse_it(self):
        path = self.folder() / "audit"
        for backend in ("modal", "islo", "boat", "sbx", "opensandbox", "openshell", "kubernetes"):
            (path.parent / "box.yaml").write_text(f"version: 1\nbackend:\n  name: {backend}\n  audit: {path}\n")
            done = self.atoll("check", "--json", "--spec", str(path.parent / "box.yaml"))
            rows = {row["field"]: row for row in json.loads(done.out)["fields"]}
            self.assertEqual(rows["backend.audit"]["verdict"], "refused", backend)


if __name__ == "__main__":
    unittest.main()
