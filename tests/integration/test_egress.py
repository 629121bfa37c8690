# SPDX-License-Identifier: Apache-2.0
"""What leaves a sandbox: hosts, ranges, an open network; and what does not. See egress_lab."""
import json
import socket
import unittest

import egress_lab
from egress_lab import GREETING_PORT, SINK_PORT, SOURCE_PORT, UDP_PORT, Lab

PYTHON = "/usr/bin/python3"
OK4, OK6, OTHER4, PRIVATE4 = "93.184.215.14", "2a00:1450::14", "151.101.1.69", "10.20.0.5"
NAMES = {
    "ok.test": [OK4, OK6],
    "four.test": [OK4],
    "six.test": [OK6],
    "other.test": [OTHER4],
    "a.wild.test": [OK4],
    "wild.test": [OK4],
    "private.test": [PRIVATE4],
    "loopback.test": ["127.0.0.1"],
    "host.test": [egress_lab.HOST4],
    "metadata.test": ["169.254.169.254"],
    "mapped.test": ["::ffff:10.20.0.5"],
    "nat64.test": ["64:ff9b::a14:5"],
    "mixed.test": [PRIVATE4, OK4],
    "no.test": [OTHER4],
}
CONNECT = """
import socket, sys
family, where, port, say = sys.argv[1:5]
s = socket.socket({"4": socket.AF_INET, "6": socket.AF_INET6}[family], socket.SOCK_STREAM)
s.settimeout(10)
try:
    s.connect((where, int(port)))
    s.sendall(say.encode())
    print(s.recv(4096).decode("latin-1").strip())
except OSError as e:
    print(type(e).__name__)
"""
UDP = """
import socket, sys
s = socket.socket({"4": socket.AF_INET, "6": socket.AF_INET6}[sys.argv[1]], socket.SOCK_DGRAM)
s.settimeout(5)
try:
    s.connect((sys.argv[2], int(sys.argv[3])))
    s.send(b"x" * int(sys.argv[4]))
    print(len(s.recv(65536)))
except OSError as e:
    print(type(e).__name__)
"""


class EgressTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab(NAMES))

    def inside(self, options, *command, status=0, **more):
        """What a command prints in a sandbox with these options."""
        run = self.lab.atoll("run", *options, "--volume", f"{self.lab.ca}:/ca.pem:ro", "--", *command, **more)
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        return run.stdout.strip()

    def connect(self, options, where, port, say="x\n", family="4"):
        return self.inside(options, PYTHON, "-c", CONNECT, family, where, str(port), say)

    def udp(self, options, where, port, size=5, family="4"):
        return self.inside(options, PYTHON, "-c", UDP, family, where, str(port), str(size))

    def result(self, options, *command):
        """What --result tells of a run."""
        path = self.lab.folder / "result.json"
        self.lab.atoll("run", *options, "--result", path, "--volume", f"{self.lab.ca}:/ca.pem:ro", "--", *command)
        return json.loads(path.read_text())


class Hosts(EgressTest):
    def test_https_by_name(self):
        out = self.inside(["--allow", "ok.test"], "curl", "-s", "--cacert", "/ca.pem", "https://ok.test/")
        self.assertEqual(json.loads(out)["host"], "ok.test")

    def test_http_by_name_on_port_80(self):
        out = self.inside(["--allow", "ok.test:80"], "curl", "-s", "http://ok.test/x")
        self.assertEqual(json.loads(out)["line"], "GET /x HTTP/1.1")

    def test_tcp_by_name_on_another_port_where_the_server_speaks_first(self):
        self.assertEqual(self.connect([f"--allow=ok.test:{GREETING_PORT}"], "ok.test", GREETING_PORT, ""),
                         f"hello from ::ffff:{OK4}")

    def test_a_name_that_is_not_listed_does_not_exist_and_nobody_is_asked(self):
        self.lab.questions(), self.lab.packets()
        self.assertEqual(self.connect(["--allow", "ok.test:80"], "no.test", 80), "gaierror")
        self.assertEqual(self.lab.questions(), [])
        self.assertEqual(self.lab.packets(), [])

    def test_an_address_is_refused_at_once_although_a_listed_name_has_it(self):
        self.lab.packets()
        self.assertEqual(self.connect(["--allow", "ok.test:80"], OK4, 80), "ConnectionRefusedError")
        self.assertEqual(self.connect(["--allow", "ok.test:80"], OK6, 80, family="6"), "ConnectionRefusedError")
        self.assertEqual(self.lab.packets(), [])

    def test_another_port_of_a_listed_name_is_refused(self):
        self.assertEqual(self.connect(["--allow", "ok.test:80"], "ok.test", 22), "ConnectionRefusedError")

    def test_six_only_host_is_reached_by_programs_that_know_only_ipv4(self):
        self.assertEqual(self.connect([f"--allow=six.test:{GREETING_PORT}"], "six.test", GREETING_PORT, ""),
                         f"hello from {OK6}")
        self.assertEqual(self.connect([f"--allow=six.test:{GREETING_PORT}"], "six.test", GREETING_PORT, "", "6"),
                         f"hello from {OK6}")

    def test_a_name_with_ipv4_alone_has_no_ipv6_address(self):
        out = self.inside(["--allow", "four.test:80"], PYTHON, "-c",
                          "import socket; print({i[0].name for i in socket.getaddrinfo('four.test', 80)})")
        self.assertEqual(out, "{'AF_INET'}")

    def test_programs_that_ask_only_for_families_that_the_machine_has(self):
        out = self.inside(["--allow", "ok.test:80"], PYTHON, "-c", """
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNSPEC):
    found = socket.getaddrinfo("ok.test", 80, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    print(len(found), end=" ")
    socket.create_connection(found[0][4][:2]).close()
""")
        self.assertEqual(out.split(), ["1", "1", "2"])

    def test_wildcard_lists_what_is_below_it_and_not_itself(self):
        options = [f"--allow=*.wild.test:{GREETING_PORT}"]
        self.assertEqual(self.connect(options, "a.wild.test", GREETING_PORT, ""), f"hello from ::ffff:{OK4}")
        self.assertEqual(self.connect(options, "wild.test", GREETING_PORT, ""), "gaierror")

    def test_forbidden_addresses_of_a_listed_name(self):
        for name in ("private.test", "loopback.test", "host.test", "metadata.test", "mapped.test", "nat64.test"):
            with self.subTest(name):
                self.lab.packets()
                out = self.connect([f"--allow={name}:{GREETING_PORT}"], name, GREETING_PORT, "")
                self.assertIn(out, ("ConnectionResetError", "ConnectionRefusedError"))
                self.assertEqual([p for p in self.lab.packets() if p[2] == GREETING_PORT], [])

    def test_of_mixed_addresses_only_the_public_one_is_dialled(self):
        self.lab.packets()
        self.assertEqual(self.connect([f"--allow=mixed.test:{GREETING_PORT}"], "mixed.test", GREETING_PORT, ""),
                         f"hello from ::ffff:{OK4}")
        self.assertEqual({p[0] for p in self.lab.packets() if p[2] == GREETING_PORT}, {OK4})

    def test_a_range_lets_a_listed_name_have_a_private_address(self):
        out = self.connect([f"--allow=private.test:{GREETING_PORT}", "--allow-cidr=10.20.0.0/16"],
                           "private.test", GREETING_PORT, "")
        self.assertEqual(out, f"hello from ::ffff:{PRIVATE4}")

    def test_a_pinned_name_needs_no_look_up(self):
        self.lab.questions()
        out = self.connect([f"--allow=pinned.test:{GREETING_PORT}", "--add-host=pinned.test=10.20.0.9"],
                           "pinned.test", GREETING_PORT, "")
        self.assertEqual(out, "hello from ::ffff:10.20.0.9")
        self.assertEqual(self.lab.questions(), [])

    def test_bulk_both_ways(self):
        n = 50_000_000
        options = [f"--allow=ok.test:{SOURCE_PORT}", f"--allow=ok.test:{SINK_PORT}"]
        out = self.inside(options, PYTHON, "-c", f"""
import socket, hashlib
s = socket.create_connection(("ok.test", {SOURCE_PORT}))
s.sendall(b"{n}\\n")
got = 0
block = bytes(range(256)) * 256
while chunk := s.recv(1 << 20):
    got += len(chunk)
print(got)
s = socket.create_connection(("ok.test", {SINK_PORT}))
s.sendall(bytes({n}))
s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode().strip())
""")
        self.assertEqual(out.split(), [str(n), str(n)])


class Tls(EgressTest):
    def handshake(self, options, server_name, port=443, to="ok.test"):
        name = f", server_hostname={server_name!r}" if server_name else ""
        return self.inside(options, PYTHON, "-c", f"""
import socket, ssl
c = ssl.create_default_context(cafile="/ca.pem")
c.check_hostname = False
s = socket.create_connection(("{to}", {port}))
try:
    t = c.wrap_socket(s{name})
    t.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    print(t.recv(12).decode())
except OSError as e:
    print(type(e).__name__)
""")

    def test_the_server_name_must_be_the_name(self):
        options = ["--allow", "ok.test", "--allow", "four.test"]
        self.assertEqual(self.handshake(options, "ok.test"), "HTTP/1.1 200")
        self.assertEqual(self.handshake(options, "OK.TEST"), "HTTP/1.1 200")
        for name in ("no.test", "four.test", "xok.test", "ok.test.no.test", None):
            with self.subTest(name):
                self.lab.packets()
                self.assertEqual(self.handshake(options, name), "ConnectionResetError")
                self.assertEqual([p for p in self.lab.packets() if p[2] == 443], [])

    def test_what_is_no_tls_is_refused_on_port_443(self):
        self.assertEqual(self.connect(["--allow", "ok.test"], "ok.test", 443, "GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n"),
                         "ConnectionResetError")

    def test_tls_on_another_port_is_judged_too(self):
        options = ["--allow", "ok.test:8443"]
        self.assertEqual(self.handshake(options, "ok.test", 8443), "HTTP/1.1 200")
        self.assertEqual(self.handshake(options, "no.test", 8443), "ConnectionResetError")


class Http(EgressTest):
    def raw(self, text, options=("--allow", "ok.test:80")):
        return self.connect(list(options), "ok.test", 80, text)

    def test_host_of_every_request_must_be_the_name(self):
        good = "GET /1 HTTP/1.1\r\nHost: ok.test\r\n\r\n"
        self.assertIn("200 OK", self.raw(good))
        for bad in ("GET / HTTP/1.1\r\nHost: no.test\r\n\r\n",
                    "GET http://no.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
                    "GET / HTTP/1.1\r\nHost: ok.test\r\nHost: no.test\r\n\r\n",
                    "GET / HTTP/1.1\r\n\r\n",
                    "CONNECT no.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n",
                    "POST / HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
            with self.subTest(bad):
                self.assertEqual(self.raw(bad), "ConnectionResetError")

    def test_a_second_request_for_another_host_does_not_arrive(self):
        before = len(self.lab.notes())
        self.raw("GET /first HTTP/1.1\r\nHost: ok.test\r\n\r\nGET /second HTTP/1.1\r\nHost: no.test\r\n\r\n")
        lines = [note[2] for note in self.lab.notes()[before:]]
        self.assertNotIn("GET /second HTTP/1.1", lines)

    def test_websocket(self):
        out = self.inside(["--allow", "ok.test:80"], PYTHON, "-c", """
import socket
s = socket.create_connection(("ok.test", 80))
s.sendall(b"GET / HTTP/1.1\\r\\nHost: ok.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
print(s.recv(12).decode())
while b"\\r\\n\\r\\n" not in s.recv(4096): pass
s.sendall(b"\\x81\\x05hello")
print(s.recv(100))
""")
        self.assertEqual(out.split("\n"), ["HTTP/1.1 101", r"b'\x81\x05hello'"])


class Ranges(EgressTest):
    def test_tcp_and_udp_on_any_port_of_both_families(self):
        options = ["--allow-cidr", "93.184.215.0/24", "--allow-cidr", "2a00:1450::/32"]
        self.assertEqual(self.connect(options, OK4, GREETING_PORT, ""), f"hello from ::ffff:{OK4}")
        self.assertEqual(self.connect(options, OK6, GREETING_PORT, "", "6"), f"hello from {OK6}")
        self.assertEqual(self.udp(options, OK4, UDP_PORT), "5")
        self.assertEqual(self.udp(options, OK6, UDP_PORT, family="6"), "5")
        self.assertEqual(self.udp(options, OK4, UDP_PORT, 60000), "60000")

    def test_other_addresses_are_refused_by_the_kernel(self):
        options = ["--allow-cidr", "93.184.215.0/24"]
        self.lab.packets()
        self.assertEqual(self.connect(options, OTHER4, 80), "ConnectionRefusedError")
        self.assertEqual(self.connect(options, OK6, 80, family="6"), "ConnectionRefusedError")
        self.assertEqual(self.udp(options, OTHER4, UDP_PORT), "PermissionError")
        self.assertEqual(self.lab.packets(), [])

    def test_no_name_resolves_with_ranges_alone(self):
        self.lab.questions()
        self.assertEqual(self.connect(["--allow-cidr", "93.184.215.0/24"], "ok.test", 80), "gaierror")
        self.assertEqual(self.lab.questions(), [])

    def test_a_listed_name_server_is_asked_directly(self):
        out = self.connect(["--allow-cidr", "93.184.215.0/24", "--allow-cidr", egress_lab.SERVERS4],
                           "ok.test", GREETING_PORT, "")
        self.assertEqual(out, f"hello from ::ffff:{OK4}")

    def test_lists_of_both_kinds_stay_exact(self):
        options = ["--allow", "ok.test", "--allow-cidr", "10.20.0.0/16"]
        self.assertEqual(self.connect(options, PRIVATE4, GREETING_PORT, ""), f"hello from ::ffff:{PRIVATE4}")
        self.assertEqual(self.connect(options, OK4, 443), "ConnectionRefusedError")
        self.assertEqual(self.connect(options, OTHER4, 443), "ConnectionRefusedError")


class Open(EgressTest):
    def test_public_addresses_and_all_names(self):
        self.assertEqual(self.connect(["--open-network"], "no.test", GREETING_PORT, ""), f"hello from ::ffff:{OTHER4}")
        self.assertEqual(self.connect(["--open-network"], OK6, GREETING_PORT, "", "6"), f"hello from {OK6}")
        self.assertEqual(self.udp(["--open-network"], OTHER4, UDP_PORT), "5")

    def test_what_is_not_public_is_refused(self):
        self.lab.packets()
        for where in (PRIVATE4, "169.254.169.254", "100.64.0.1", egress_lab.SERVERS4):
            with self.subTest(where):
                self.assertEqual(self.connect(["--open-network"], where, GREETING_PORT, ""), "ConnectionRefusedError")
        for where in ("fd00::1", "::ffff:10.20.0.5", "64:ff9b::a14:5", "fe80::1"):
            with self.subTest(where):
                self.assertIn(self.connect(["--open-network"], where, GREETING_PORT, "", "6"),
                              ("ConnectionRefusedError", "ConnectionResetError", "OSError"))
        self.assertEqual([p for p in self.lab.packets() if p[2] == GREETING_PORT], [])

    def test_private_ranges_as_listed(self):
        self.assertEqual(self.connect(["--open-network", "--allow-private=10.20.0.0/16"], PRIVATE4, GREETING_PORT, ""),
                         f"hello from ::ffff:{PRIVATE4}")

    def test_names_cannot_lead_to_the_host(self):
        listener = self.lab.start(PYTHON, "-c", """
import socket
s = socket.create_server(("", 2299)); print("up", flush=True)
while True: s.accept()[0].sendall(b"host")
""", stdout=-1)
        self.addCleanup(lambda: (listener.kill(), listener.wait(), listener.stdout.close()))
        listener.stdout.readline()
        for name in ("loopback.test", "host.test", "private.test"):
            with self.subTest(name):
                self.assertIn(self.connect(["--open-network"], name, 2299, ""),
                              ("gaierror", "ConnectionRefusedError", "ConnectionResetError"))


class Loopback(EgressTest):
    def test_loopback_inside_is_the_sandboxs_own(self):
        out = self.inside(["--allow", "ok.test"], "sh", "-c", """
for p in 80 443 8123; do python3 -m http.server $p >/dev/null 2>&1 & done
for p in 80 443 8123; do
  for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:$p/ && break; sleep 0.1; done
  for host in 127.0.0.1 localhost 127.7.7.7; do curl -s -o /dev/null -w '%{http_code} ' http://$host:$p/; done
done""")
        self.assertEqual(out.split(), ["200"] * 9)

    def test_a_sandbox_that_is_sealed_reaches_nothing(self):
        for where, family in ((OK4, "4"), (OK6, "6"), ("ok.test", "4")):
            with self.subTest(where):
                self.assertIn(self.connect([], where, 80, family=family), ("OSError", "gaierror"))


if __name__ == "__main__":
    unittest.main()
