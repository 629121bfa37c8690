# SPDX-License-Identifier: Apache-2.0
"""What the network policy refused: told after a command, in its result, and in the events of a sandbox."""
import json
import os
import stat
import subprocess
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

    def test_a_refusal_is_one_line_with_its_command(self):
        before = time.time()
        told = self.attempt(ADDRESS)
        self.assertEqual(told.count("\n"), 1, told)
        (event,) = self.events()
        self.assertEqual((event["kind"], event["event"], event["commands"]), ("egress", "denied", [1]))
        self.assertEqual((event["protocol"], event["address"], event["port"]), ("tcp", "192.0.2.9", 8080))
        self.assertIn(event["reason"], told)
        at = time.strptime(event["time"][:19], "%Y-%m-%dT%H:%M:%S")
        self.assertLess(abs(before - (time.mktime(at) - time.timezone)), 60)
        self.attempt(ADDRESS)
        self.assertEqual([e["commands"] for e in self.events()], [[1], [2]])

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
        self.assertEqual({e["kind"] for e in self.events()}, {"egress", "policy"})
        self.assertEqual({e["kind"] for e in self.events(self.box, "--kind", "egress")}, {"egress"})
        (change,) = self.events(self.box, "--kind", "policy")
        self.assertEqual((change["generation"], change["policy"]["allow_egress_to"]), (2, []))

    def test_without_an_id_those_of_all_are_told(self):
        other = self.create("--lifetime", "120s", *ALLOWED)
        sealed = self.create("--lifetime", "120s")
        self.attempt(ADDRESS)
        self.attempt(ADDRESS, box=other)
        found = self.events("--kind", "egress")
        self.assertEqual({e["id"] for e in found}, {self.box, other})
        self.assertIn(other, self.good("events").decode())
        self.assertEqual(self.events(sealed), [])
        self.assertFalse((self.state / sealed / "events.jsonl").exists())

    def test_following_ends_with_the_sandbox(self):
        follower = self.begin("events", self.box, "--follow", "--json")
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
            return any("inotify" in os.readlink(f"/proc/{follower.pid}/fd/{fd}")
                       for fd in os.listdir(f"/proc/{follower.pid}/fd"))
        except OSError:
            return False

    def test_following_ends_when_the_keeper_is_killed(self):
        self.attempt(ADDRESS)
        follower = self.begin("events", self.box, "--follow", "--json")
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
        self.assertEqual(sorted(self.events()[0]["commands"]), [1, 2])

    def test_what_cannot_be_is_said(self):
        for arguments, words in [
            (("--follow",), b"--follow needs the ID"),
            ((self.box, "--kind", "dns"), b"kind"),
            (("absent",), b"no sandbox is called 'absent'"),
        ]:
            with self.subTest(arguments):
                done = self.atoll("events", *arguments)
                self.assertEqual(done.status, 125)
                self.assertIn(words, done.err)


if __name__ == "__main__":
    unittest.main()
