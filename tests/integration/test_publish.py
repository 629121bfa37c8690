# SPDX-License-Identifier: Apache-2.0
"""Ports of the host that lead to servers inside: --publish."""
import json
import os
import subprocess
import unittest

import egress_lab
from egress_boxes import OTHER4, PYTHON, BoxTest
from egress_lab import HOST4, HOST6
from support import wait_for

GREETER = """
where, port = sys.argv[1], int(sys.argv[2])
s = socket.create_server((where, port), family=family_of(where), backlog=200, dualstack_ipv6=where == "::")
show("up")
while True:
    conn, peer = s.accept()
    conn.sendall(b"inside " + peer[0].encode())
    conn.shutdown(socket.SHUT_WR)
    threading.Thread(target=lambda c: (c.recv(1), c.close()), args=(conn,), daemon=True).start()
"""
ASK = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
    answer = b""
    while more := s.recv(65536):
        answer += more
    print(answer.decode())
except OSError as e:
    print(type(e).__name__)
"""


class PublishTest(BoxTest):
    def published(self, *options, **more):
        """A sandbox with published ports: its id, and for each port where it is on the host."""
        made = json.loads(self.atoll("create", "--json", "--lifetime", "300s", *options, **more))
        ends = [entry.rpartition(":")[0].rpartition(":") for entry in made["published"]]
        return made["id"], [(address.strip("[]"), int(port)) for address, _, port in ends]

    def serve(self, box, where="127.0.0.1", port=80, script=GREETER):
        process = self.begin(box, script, where, port)
        self.assertEqual(json.loads(process.stdout.readline()), "up")
        return process

    def ask(self, address, port, place="pid"):
        """What a client on the lab's host, or at the other end, is told."""
        return self.lab.run(PYTHON, "-c", ASK, address, str(port), place=place).stdout.strip()


class Publish(PublishTest):
    def test_a_port_that_was_picked_is_told_everywhere(self):
        box, ((address, port),) = self.published("--publish", "0:80")
        self.assertEqual(address, "127.0.0.1")
        self.assertGreater(port, 1023)
        entry = f"127.0.0.1:{port}:80"
        self.assertEqual(json.loads(self.atoll("inspect", "--json", box))["published"], [entry])
        self.assertIn(f"127.0.0.1:{port} -> 80", self.atoll("inspect", box))
        for command in ("create", "run"):
            done = self.lab.atoll(command, "--publish", "0:80", *(["--", "true"] if command == "run" else []))
            self.assertRegex(done.stderr, r"^atoll: published 127\.0\.0\.1:[0-9]+ -> 80\n$")

    def test_it_leads_inside_and_nowhere_but_from_loopback(self):
        """Of a sealed sandbox, which stays sealed."""
        box, ((address, port),) = self.published("--publish", "0:80")
        self.serve(box)
        self.assertEqual(self.ask(address, port), "inside 127.0.0.1")
        self.assertEqual(self.ask(HOST4, port), "ConnectionRefusedError")
        self.assertEqual(self.ask(HOST4, port, "servers"), "ConnectionRefusedError")
        with self.nothing_leaves():
            out = self.inside(box, "show([tcp(sys.argv[1], 80), tcp('127.0.0.1', int(sys.argv[2])), udp(sys.argv[1], 53), "
                                   "outcome(socket.getaddrinfo, 'ok.test', 80)])", OTHER4, port)
        self.assertIn(out[0], ("ENETUNREACH", "ECONNREFUSED"))
        self.assertEqual(out[1], "ECONNREFUSED")  # the host's port is not inside
        self.assertIn(out[2], ("ENETUNREACH", "EPERM"))
        self.assertIn(out[3], ("EAI_AGAIN", "gaierror", "EAI_NONAME"))

    def test_servers_at_one_address_or_all(self):
        box, ends = self.published("--publish", "0:8001", "--publish", "0:8002", "--publish", "0:8003")
        for (_, port), where, inside in zip(ends, ("127.0.0.1", "0.0.0.0", "::"), (8001, 8002, 8003)):
            with self.subTest(where):
                self.serve(box, where, inside)
                self.assertIn(self.ask("127.0.0.1", port), ("inside 127.0.0.1", "inside ::ffff:127.0.0.1"))

    def test_nobody_listens_inside(self):
        """The connection is reset, and may be made again when somebody does."""
        box, ((address, port),) = self.published("--publish", "0:80")
        for _ in range(3):
            self.assertEqual(self.ask(address, port), "ConnectionResetError")
        self.serve(box)
        self.assertEqual(self.ask(address, port), "inside 127.0.0.1")

    def test_an_address_of_the_hosts(self):
        box, ends = self.published("--publish", f"{HOST4}:0:80", "--publish", f"[{HOST6}]:0:80", "--publish", "0.0.0.0:0:80",
                                   "--publish", "[::1]:0:80")
        self.serve(box)
        for (address, port), where in zip(ends, (HOST4, HOST6, HOST4)):
            with self.subTest(address):
                self.assertEqual(self.ask(where, port, "servers"), "inside 127.0.0.1")
        self.assertEqual(self.ask("127.0.0.1", ends[0][1]), "ConnectionRefusedError")
        self.assertEqual(self.ask("127.0.0.1", ends[2][1]), "inside 127.0.0.1")
        self.assertEqual(self.ask("::1", ends[3][1]), "inside 127.0.0.1")
        self.assertEqual(self.ask(HOST6, ends[3][1], "servers"), "ConnectionRefusedError")

    def test_a_hundred_connections_at_once(self):
        box, ((address, port),) = self.published("--publish", "0:80")
        self.serve(box)
        done = self.lab.run(PYTHON, "-c", """
import socket, sys
all = [socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) for _ in range(100)]
print(sum(s.recv(100, socket.MSG_WAITALL) == b"inside 127.0.0.1" for s in all))
""", address, str(port))
        self.assertEqual(done.stdout, "100\n", done.stderr)

    def test_bulk_in_both_directions_and_half_closed(self):
        box, ((address, port),) = self.published("--publish", "0:80")
        self.serve(box, script="""
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
show("up")
while True:
    conn, _ = s.accept()
    n = 0
    while chunk := conn.recv(1 << 20):
        n += len(chunk)
    conn.sendall(bytes(n))
    conn.close()
""")
        n = 8_000_000
        done = self.lab.run(PYTHON, "-c", f"""
import socket
s = socket.create_connection(("{address}", {port}), 30)
s.sendall(bytes({n}))
s.shutdown(socket.SHUT_WR)
got = 0
while chunk := s.recv(1 << 20):
    got += len(chunk)
print(got)
""")
        self.assertEqual(done.stdout, f"{n}\n", done.stderr)
        (used,) = json.loads(self.atoll("stats", box, "--json"))["sandboxes"]
        self.assertEqual(used["egress_bytes"], {"sent": n, "received": n})

    def test_a_port_in_use(self):
        _, ((_, port),) = self.published("--publish", "0:80")
        for command in (("create",), ("run",)):
            done = self.lab.atoll(*command, "--publish", f"{port}:80", *(["--", "true"] if command == ("run",) else []))
            self.assertEqual((done.returncode, done.stdout), (125, ""))
            self.assertIn(f"publish '{port}:80'", done.stderr)
            self.assertIn("another port of the host, or 0", done.stderr)

    def test_an_address_that_the_host_has_not(self):
        done = self.lab.atoll("create", "--publish", "203.0.113.9:0:80")
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertIn("Name an address that this host has", done.stderr)

    def test_a_privileged_port(self):
        """Below 1024 it takes the host's authority, which the lab's own root has in its network only for itself."""
        if os.geteuid() == 0:
            box, ((address, port),) = self.published("--publish", "127.0.0.1:81:80")
            self.serve(box)
            self.assertEqual(self.ask(address, 81), "inside 127.0.0.1")
            return
        # Not in the lab, where the user is root of a namespace of its own.
        done = subprocess.run([egress_lab.ATOLL, "run", "--publish", "81:80", "--", "true"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertIn("Ports below 1024 need a privilege", done.stderr)

    def test_two_sandboxes(self):
        one, ((_, a),) = self.published("--publish", "0:80")
        two, ((_, b),) = self.published("--publish", "0:80")
        self.assertNotEqual(a, b)
        self.serve(one)
        self.assertEqual(self.ask("127.0.0.1", a), "inside 127.0.0.1")
        self.assertEqual(self.ask("127.0.0.1", b), "ConnectionResetError")

    def test_it_goes_with_the_sandbox(self):
        box, ((address, port),) = self.published("--publish", "0:80")
        self.serve(box)
        self.assertEqual(self.ask(address, port), "inside 127.0.0.1")
        self.atoll("rm", box)
        self.assertEqual(self.ask(address, port), "ConnectionRefusedError")
        again, ((_, same),) = self.published("--publish", f"{port}:80")
        self.assertEqual(same, port)

    def test_of_a_run(self):
        process = self.lab.start(egress_lab.ATOLL, "run", "--publish", "0:80", "--", PYTHON, "-m", "http.server", "80",
                                 "--bind", "127.0.0.1", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stderr.close()))
        port = process.stderr.readline().split()[2].rpartition(":")[2]
        answer = wait_for(lambda: self.lab.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                               f"http://127.0.0.1:{port}/").stdout == "200", "an answer")
        self.assertTrue(answer)
        process.terminate()
        process.wait(30)
        self.assertEqual(self.ask("127.0.0.1", port), "ConnectionRefusedError")


if __name__ == "__main__":
    unittest.main()
