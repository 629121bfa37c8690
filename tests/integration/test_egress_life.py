# SPDX-License-Identifier: Apache-2.0
"""Connections that pass, what becomes of them when something dies, and policies that change while a sandbox stands."""
import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

import egress_lab
from egress_boxes import (BOTH, LISTED4, LISTED6, NAMES, OK4, OK6, OTHER4, OTHER6, PYTHON, RANGES, BoxTest, end)
from egress_lab import GREETING_PORT, SINK_PORT, SOURCE_PORT, UDP_PORT
from support import descendants, processes, wait_for

HELLO4 = f"hello from ::ffff:{LISTED4}"
REFUSED = "ECONNREFUSED"
SILENT6, UNROUTABLE6 = "2a0e::1", "2a0f::1"


class Traffic(BoxTest):
    names = NAMES | {"silent.test": [SILENT6, OK4], "unroutable.test": [UNROUTABLE6, OK4], "gone.test": [UNROUTABLE6]}

    def answers(self, port, script):
        """A server at the other end that treats one connection, `conn`, and then prints `told`."""
        return self.server(f"""
s = socket.create_server(("::", {port}), family=10, dualstack_ipv6=True)
show("up")
conn, _ = s.accept()
told = None
{script}
show(told)
""")

    def test_the_server_closes_its_half_first(self):
        server = self.answers(2311, """
conn.sendall(b"all that I have")
conn.shutdown(socket.SHUT_WR)
told = 0
while chunk := conn.recv(65536):
    told += len(chunk)
""")
        out = self.inside(self.box(*BOTH), """
s = socket.create_connection((sys.argv[1], 2311), 20)
got = b""
while chunk := s.recv(100):
    got += chunk
for _ in range(100):
    s.sendall(bytes(10000))
s.shutdown(socket.SHUT_WR)
show([got.decode(), len(s.recv(10))])
""", LISTED4)
        self.assertEqual(out, ["all that I have", 0])
        self.assertEqual(server.stdout.readline(), b"1000000\n")

    def test_the_client_closes_its_half_first(self):
        out = self.inside(self.box(*BOTH), """
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
s.sendall(bytes(3000000))
s.shutdown(socket.SHUT_WR)
show([int(s.makefile().read())])
""", LISTED4, SINK_PORT)
        self.assertEqual(out, [3000000])

    def test_what_a_program_sent_last_arrives_although_its_sandbox_ends_then(self):
        """It writes, closes and exits, and waits for nobody; the server is slow."""
        n = 8_000_000
        server = self.answers(2315, """
told = 0
while chunk := conn.recv(65536):
    told += len(chunk)
    time.sleep(0.001)
""")
        done = self.lab.atoll("run", *BOTH, "--", PYTHON, "-c", f"""
import socket
socket.create_connection(("{LISTED4}", 2315)).sendall(bytes({n}))
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(server.stdout.readline(), b"%d\n" % n)

    def test_what_a_sandbox_sends_when_it_is_killed_is_no_success(self):
        """The server sees a reset, not an end."""
        server = self.answers(2316, """
try:
    while conn.recv(65536):
        pass
    told = "a clean end"
except OSError as e:
    told = text_of(e)
""")
        box = self.create(*BOTH)
        process = self.begin(box, """
s = socket.create_connection((sys.argv[1], 2316), 30)
s.sendall(b"x")
show("up")
while True:
    s.sendall(bytes(1000))
    time.sleep(0.01)
""", LISTED4)
        process.stdout.readline()
        os.kill(self.egress_of(box), signal.SIGKILL)
        self.assertEqual(server.stdout.readline(), b'"ECONNRESET"\n')

    def test_resets_pass_both_ways(self):
        self.answers(2312, """
conn.recv(1)
conn.setsockopt(1, 13, struct.pack("ii", 1, 0))
conn.close()
""")
        server = self.answers(2313, """
conn.sendall(b"x")
told = outcome(conn.recv, 10)
""")
        out = self.inside(self.box(*BOTH), """
s = socket.create_connection((sys.argv[1], 2312), 20)
s.sendall(b"x")
result = outcome(s.recv, 10)
s = socket.create_connection((sys.argv[1], 2313), 20)
s.recv(1)
s.setsockopt(1, 13, struct.pack("ii", 1, 0))
s.close()
show(result)
""", LISTED4)
        self.assertEqual(out, "ECONNRESET")
        self.assertEqual(json.loads(server.stdout.readline()), "ECONNRESET")

    def test_a_port_that_the_server_has_closed(self):
        """The connection was accepted before that was known: it is reset, and the event says why."""
        box = self.create(*BOTH, "--allow", "ok.test:2399")
        out = self.inside(box, "show([tcp(sys.argv[1], 2399), tcp(sys.argv[2], 2399), tcp('ok.test', 2399), "
                               "udp(sys.argv[1], 2399, wait=2)])", LISTED4, LISTED6)
        self.assertEqual(out[:3], ["ECONNRESET"] * 3)
        self.assertIn(out[3], (REFUSED, "TimeoutError"))  # a host tells of that a few times a second only
        failed = {(e["name"] or e["address"]) for e in self.denied(box) if e["reason"].startswith("dial failed")}
        self.assertEqual(failed, {LISTED4, LISTED6, "ok.test"})

    def test_ipv4_is_used_where_ipv6_leads_nowhere(self):
        # With an address like theirs as source IPv6 is the first choice (RFC 6724, rule 6); no other destination takes that.
        for command in ("-6 addr add 2a0e::2/128 dev out nodad",
                        f"-6 neigh add {SILENT6} lladdr 02:00:00:00:00:99 dev out nud permanent",
                        f"-6 route add {SILENT6}/128 dev out src 2a0e::2",
                        f"-6 route replace default via {egress_lab.SERVERS6} src {egress_lab.HOST6}",
                        f"-6 route add unreachable {UNROUTABLE6}/128"):
            self.assertEqual(self.lab.run("ip", *command.split()).returncode, 0, command)
        port = GREETING_PORT
        box = self.create(*(f"--allow={name}.test:{port}" for name in ("silent", "unroutable", "gone")))
        out = self.inside(box, """
show([tcp(name, int(sys.argv[1])) for name in ("silent.test", "unroutable.test", "gone.test")])
""", port)
        self.assertEqual(out, [f"hello from ::ffff:{OK4}"] * 2 + ["ECONNRESET"])
        self.assertIn(SILENT6, {p[0] for p in self.lab.packets()})  # it was tried

    def test_a_slow_reader_holds_the_server_back(self):
        n = 200_000_000  # far more than the buffers of all sockets on the way, which grow to tens of megabytes
        server = self.answers(2314, f"""
conn.settimeout(1)
block, sent = bytes(1 << 16), 0
try:
    while sent < {n}:
        sent += conn.send(block[:{n} - sent])
except TimeoutError:
    show(sent)
conn.settimeout(30)
while sent < {n}:
    sent += conn.send(block[:{n} - sent])
conn.close()
""")
        box = self.box(*BOTH)
        reader = self.begin(box, """
s = socket.create_connection((sys.argv[1], 2314), 30)
show("up")
sys.stdin.readline()
got = 0
while chunk := s.recv(1 << 20):
    got += len(chunk)
show(got)
""", LISTED4)
        reader.stdout.readline()
        sent = json.loads(server.stdout.readline())
        self.assertLess(sent, n)
        memory = Path(f"/proc/{self.egress_of(box)}/status").read_text()
        self.assertLess(int(memory.partition("VmRSS:")[2].split()[0]), 32 * 1024)
        out, err = reader.communicate(b"go\n", 60)
        self.assertEqual((json.loads(out), err), (n, b""))

    def egress_of(self, box):
        keeper = json.loads(self.atoll("inspect", "--json", box))["keeper_pid"]
        return next(p.pid for p in processes() if p.parent == keeper and p.name == "atoll-egress")

    def test_two_hundred_connections_at_once(self):
        out = self.inside(self.box(*BOTH), """
def connection(where):
    s = socket.create_connection((where, int(sys.argv[3])), 30)
    return s
all = [connection(where) for _ in range(100) for where in sys.argv[1:3]]
hellos = [s.recv(100).decode().split()[-1] for s in all]
for i, s in enumerate(all):
    s.sendall(b"%04d" % i)
echoes = [int(s.recv(4, socket.MSG_WAITALL)) for s in all]
show([sorted(set(hellos)), echoes == list(range(200))])
""", LISTED4, LISTED6, GREETING_PORT)
        self.assertEqual(out, [sorted([f"::ffff:{LISTED4}", LISTED6]), True])

    def test_a_connection_that_is_idle_for_a_while_stays(self):
        out = self.inside(self.box(*BOTH), """
s, u = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20), socket.socket(2, 2)
u.settimeout(20)
u.connect((sys.argv[1], int(sys.argv[3])))
s.recv(100)
time.sleep(5)
s.sendall(b"still there")
u.send(b"me too")
show([s.recv(100).decode(), u.recv(100).decode()])
""", LISTED4, GREETING_PORT, UDP_PORT)
        self.assertEqual(out, ["still there", "me too"])

    def test_much_both_ways_on_one_connection(self):
        n = 30_000_000
        out = self.inside(self.box(*BOTH), f"""
import hashlib
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 60)
s.recv(len(sys.argv[3]) + 1, socket.MSG_WAITALL)
block = os.urandom(100000)
def send():
    for _ in range({n} // len(block)):
        s.sendall(block)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
got, good = 0, hashlib.sha256()
while chunk := s.recv(1 << 20):
    got += len(chunk)
    good.update(chunk)
show([got, good.digest() == hashlib.sha256(block * ({n} // len(block))).digest()])
""", LISTED4, GREETING_PORT, HELLO4)
        self.assertEqual(out, [n, True])


class Ends(BoxTest):
    """When one of the processes is killed, the sandbox ends with all of them."""

    def helpers(self, keeper):
        """Names and numbers of the processes that a keeper has."""
        return {p.name: p.pid for p in processes() if p.parent == keeper and p.state not in "ZX"}

    def streaming(self):
        """A run that has begun to receive without end: its client's process, its keeper, and that one's helpers."""
        script = f"""
import socket
s = socket.create_connection(("{LISTED4}", 2321))
while chunk := s.recv(100):
    print(chunk.decode(), end="", flush=True)
print("a clean end")
"""
        process = self.lab.start(egress_lab.ATOLL, "run", *BOTH, "--", "sh", "-c", f"{PYTHON} -c '{script}'; echo after",
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(end, process)
        self.assertEqual(process.stdout.read(10), b"0123456789")
        keeper = next(p.pid for p in descendants(process.pid) if p.name == "atoll-keeper")
        helpers = self.helpers(keeper)
        self.assertLessEqual({"atoll-egress", "atoll-resolve", "atoll-init"}, set(helpers))
        return process, keeper, helpers

    def assert_all_gone(self, pids):
        wait_for(lambda: not [p for p in processes() if p.pid in pids and p.state not in "ZX"], f"the end of {pids}", 20)

    def test_a_stream_that_was_cut_is_no_success(self):
        self.server("""
s = socket.create_server(("::", 2321), family=10, dualstack_ipv6=True)
show("up")
def serve(conn):
    while outcome(conn.sendall, b"0123456789") == "done":
        time.sleep(0.01)
while True:
    conn, _ = s.accept()
    threading.Thread(target=serve, args=(conn,), daemon=True).start()
""")
        for victim in ("atoll-egress", "atoll-resolve", "atoll-keeper"):
            with self.subTest(victim):
                process, keeper, helpers = self.streaming()
                os.kill((helpers | {"atoll-keeper": keeper})[victim], signal.SIGKILL)
                out, err = process.communicate(timeout=30)
                self.assertNotEqual(process.returncode, 0)
                self.assertNotIn(b"a clean end", out)
                self.assertNotIn(b"after", out)
                self.assertIn(b"atoll: ", err)
                self.assert_all_gone({keeper, *helpers.values()})

    def test_a_held_sandbox_ends_too(self):
        for victim in ("atoll-egress", "atoll-resolve", "atoll-keeper"):
            with self.subTest(victim):
                box = self.create(*BOTH)
                keeper = json.loads(self.atoll("inspect", "--json", box))["keeper_pid"]
                helpers = self.helpers(keeper)
                os.kill((helpers | {"atoll-keeper": keeper})[victim], signal.SIGKILL)
                self.assert_all_gone({keeper, *helpers.values()})
                self.assertNotIn(box, self.atoll("list", "-q").split())
                self.assertFalse((self.lab.state / box).exists())

    def test_nothing_is_left_after_its_end(self):
        """No process, no socket of the host's, nothing in the state folder."""
        before = self.sockets()
        box = self.create(*BOTH, "--publish", "0:80")
        keeper = json.loads(self.atoll("inspect", "--json", box))["keeper_pid"]
        pids = {keeper, *self.helpers(keeper).values()}
        self.inside(box, """
show([tcp(sys.argv[1], int(sys.argv[2])), udp(sys.argv[1], int(sys.argv[3])), tcp("ok.test", int(sys.argv[2]))])
""", LISTED4, GREETING_PORT, UDP_PORT)
        self.atoll("rm", box)
        self.assert_all_gone(pids)
        self.assertEqual([p for p in self.lab.state.iterdir() if p.name.startswith("sb-")], [])
        wait_for(lambda: self.sockets() <= before, "the end of all sockets", 20)

    def sockets(self):
        """Of the lab host's network, those that some process holds."""
        tables = self.lab.run("cat", *(f"/proc/net/{name}" for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"))).stdout
        rows = [line.split() for line in tables.splitlines()]
        return {row[9] for row in rows if len(row) > 9 and row[9].isdigit() and row[9] != "0"}


class Floods(BoxTest):
    def cpu_s(self, pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def flood(self, script, *arguments):
        """The sum of the events, and how many lines they are; also the CPU that egress took of what the flood took."""
        box = self.create(*BOTH)
        keeper = json.loads(self.atoll("inspect", "--json", box))["keeper_pid"]
        egress = next(p.pid for p in processes() if p.parent == keeper and p.name == "atoll-egress")
        before = self.cpu_s(egress)
        with self.nothing_leaves():
            inside = self.inside(box, script + "\nshow(time.process_time())", *arguments)
        spent = self.cpu_s(egress) - before
        # The last counts are told within two more seconds.
        events = lambda: self.denied(box)
        wait_for(lambda: self.sum(events()) >= 10_000, "all attempts in the events", 20)
        return self.sum(events()), len(events()), spent, inside

    def sum(self, events):
        return sum(1 + e["repeated"] + e["dropped"] for e in events)

    def test_ten_thousand_times_the_same(self):
        total, lines, spent, inside = self.flood("""
s = [sys.argv[1], 80]
for _ in range(10000):
    c = socket.socket()
    assert c.connect_ex(tuple(s)) == errno.ECONNREFUSED
    c.close()
""", OTHER4)
        self.assertEqual(total, 10_000)
        self.assertLess(lines, 200)
        self.assertLess(spent, max(inside, 0.2))

    def test_ten_thousand_different_ones(self):
        total, lines, spent, inside = self.flood("""
u = socket.socket(2, socket.SOCK_DGRAM)
for i in range(10000):
    assert outcome(u.sendto, b"x", (f"151.101.{i % 100}.7", 1000 + i // 100)) == "EPERM"
""")
        self.assertEqual(total, 10_000)
        self.assertLess(lines, 2000)
        self.assertLess(spent, max(inside, 0.2))


class Policies(BoxTest):
    """A policy that changes while the sandbox stands."""

    def change(self, box, *edits):
        return json.loads(self.atoll("policy", box, "--json", *edits))

    def network(self, box):
        return json.loads(self.atoll("policy", box, "--json"))

    def refused(self, box, *edits):
        """A change that is refused leaves all as it was; what it says."""
        before = self.network(box)
        done = self.lab.atoll("policy", box, *edits)
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertEqual(self.network(box), before)
        return done.stderr

    def reach(self, box, *where):
        return self.inside(box, "show([tcp(a, int(sys.argv[1])) for a in sys.argv[2:]])", GREETING_PORT, *where)

    def test_a_sealed_sandbox_gets_a_host(self):
        box = self.create()
        self.assertIn(self.reach(box, OTHER4)[0], ("ENETUNREACH", REFUSED))
        self.change(box, "--allow", f"ok.test:{GREETING_PORT}")
        with self.nothing_leaves(egress_lab.SERVERS4, OK4, OK6):
            out = self.reach(box, "ok.test", OTHER4, OK4)
        self.assertIn(out[0], (f"hello from ::ffff:{OK4}", f"hello from {OK6}"))
        self.assertEqual(out[1:], [REFUSED] * 2)

    def test_a_sealed_sandbox_gets_a_range(self):
        box = self.create()
        self.change(box, "--allow-cidr", "45.33.32.0/24")
        with self.nothing_leaves(LISTED4):
            out = self.reach(box, LISTED4, OTHER4, OTHER6, "ok.test")
        self.assertEqual(out[:3], [HELLO4, REFUSED, REFUSED])
        self.assertIn(out[3], ("gaierror", "EAI_AGAIN", "EAI_NONAME"))

    def test_programs_that_run_already_follow_it(self):
        box = self.create(*BOTH)
        process = self.begin(box, """
for line in sys.stdin:
    where, port = line.split()
    show(tcp(where, int(port)))
""")
        def ask(where, port=GREETING_PORT):
            process.stdin.write(f"{where} {port}\n".encode())
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        self.assertEqual((ask(LISTED4), ask(OTHER4)), (HELLO4, REFUSED))
        changed = self.change(box, "--allow-cidr", "151.101.1.0/24", "--remove", "45.33.32.0/24", "--allow", "no.test:22")
        self.assertEqual(changed["generation"], 2)
        with self.nothing_leaves(OTHER4, OTHER6, egress_lab.SERVERS4):
            self.assertEqual((ask(LISTED4), ask(OTHER4)), (REFUSED, f"hello from ::ffff:{OTHER4}"))
            self.assertIn(ask("no.test", 22), (f"hello from ::ffff:{OTHER4}", f"hello from {OTHER6}"))

    def test_flows_that_it_forbids_are_cut(self):
        """Those of a range and of a name; the others go on."""
        box = self.create(*BOTH)
        process = self.begin(box, """
port = int(sys.argv[2])
all = [socket.create_connection((where, port), 30) for where in (sys.argv[1], "ok.test", sys.argv[3])]
for s in all:
    s.recv(100)
show("up")
for line in sys.stdin:
    def turn(s):
        s.sendall(b"x")
        return s.recv(10).decode() or "end"
    show([outcome(turn, s) for s in all])
""", LISTED4, GREETING_PORT, LISTED6)
        def turn():
            process.stdin.write(b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        process.stdout.readline()
        self.assertEqual(turn(), ["x"] * 3)
        changed = self.change(box, "--remove", "45.33.32.0/24", "--remove", f"ok.test:{GREETING_PORT}")
        self.assertEqual(changed["flows_cut"], 2)
        answers = turn()
        for answer in answers[:2]:
            self.assertIn(answer, ("ECONNRESET", "EPIPE", "ECONNABORTED"))
        self.assertEqual(answers[2], "x")

    def test_datagrams_that_it_forbids_are_cut(self):
        box = self.create(*BOTH)
        process = self.begin(box, """
s = socket.socket(2, 2)
s.settimeout(10)
s.connect((sys.argv[1], int(sys.argv[2])))
for line in sys.stdin:
    def turn():
        s.send(b"x")
        return s.recv(10).decode()
    show(outcome(turn))
""", LISTED4, UDP_PORT)
        def turn():
            process.stdin.write(b"\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        self.assertEqual(turn(), "x")
        self.change(box, "--remove", "45.33.32.0/24")
        with self.nothing_leaves():
            self.assertEqual(turn(), "EPERM")

    def test_wrong_entries_change_nothing(self):
        box = self.create(*BOTH)
        self.refused(box, "--allow", "not a host")
        self.refused(box, "--allow-cidr", "45.33.32.0/33", "--allow", "no.test")
        self.refused(box, "--remove", "absent.test", "--allow", "no.test")
        self.assertEqual(self.reach(box, LISTED4, OTHER4), [HELLO4, REFUSED])

    def test_a_range_that_holds_the_pool_is_refused(self):
        """Names that programs have looked up would become other addresses."""
        box = self.create(*BOTH)
        where = self.inside(box, "show(socket.gethostbyname('ok.test'))")
        words = self.refused(box, "--allow-cidr", f"{where}/32")
        self.assertIn("a listed range overlaps", words)
        with self.nothing_leaves(OK4, OK6, egress_lab.SERVERS4):
            self.assertIn("hello", self.reach(box, where)[0])

    def test_an_open_network_is_not_changed(self):
        box = self.create("--open-network")
        self.assertIn("open", self.refused(box, "--allow", "no.test"))

    def test_explain_and_denials_follow_it(self):
        box = self.create("--allow", "ok.test")
        def verdict(where):
            done = self.lab.atoll("explain", "--json", box, where)
            return json.loads(done.stdout)["allowed"]
        self.assertEqual([verdict(f"{LISTED4}:80"), verdict("ok.test:443")], [False, True])
        self.assertEqual(self.inside(box, "show(tcp(sys.argv[1], 4411))", LISTED4), REFUSED)
        self.change(box, "--allow-cidr", "45.33.33.0/24", "--remove", "ok.test")
        self.assertEqual([verdict(f"{LISTED4}:80"), verdict("45.33.33.1:80"), verdict("ok.test:443")], [False, True, False])
        self.assertEqual(self.inside(box, "show(tcp(sys.argv[1], 4412))", LISTED4), REFUSED)
        reasons = {e["port"]: e["reason"] for e in self.denied(box)}
        self.assertIn("allow_egress_to lists names", reasons[4411])
        self.assertNotIn("allow_egress_to lists names", reasons[4412])
        self.assertIn("allow_egress_to_cidrs", reasons[4412])

    def test_changes_at_the_same_time(self):
        """Each is done or refused as a whole: the last policy holds exactly those that succeeded."""
        box = self.create("--allow", "ok.test")
        clients = [self.lab.start(egress_lab.ATOLL, "policy", box, "--allow-cidr", f"45.33.{i}.0/24", "--allow",
                                  f"h{i}.test", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for i in range(8)]
        done = set()
        for i, client in enumerate(clients):
            self.addCleanup(end, client)
            _, err = client.communicate(timeout=60)
            self.assertIn(client.returncode, (0, 125))
            if client.returncode == 0:
                done.add(i)
            else:
                self.assertIn(b"being changed already", err)
        network = self.network(box)
        self.assertTrue(done)
        self.assertEqual(set(network["network"]["allow_egress_to_cidrs"]), {f"45.33.{i}.0/24" for i in done})
        self.assertEqual(set(network["network"]["allow_egress_to"]), {"ok.test", *(f"h{i}.test" for i in done)})
        self.assertEqual(network["generation"], 1 + len(done))
        out = self.reach(box, *(f"45.33.{i}.7" for i in range(8)))
        self.assertEqual([a != REFUSED for a in out], [i in done for i in range(8)])

    def test_many_changes_one_after_the_other_under_traffic(self):
        """While an address comes and goes, another that stays is always reached, and a third never."""
        box = self.create(*BOTH)
        process = self.begin(box, """
results = set()
show("up")
stop = []
threading.Thread(target=lambda: (sys.stdin.readline(), stop.append(1)), daemon=True).start()
while not stop:
    results.add(tcp(sys.argv[1], int(sys.argv[3])))
    results.add(tcp(sys.argv[2], int(sys.argv[3])))
show(sorted(results))
""", LISTED4, OTHER4, GREETING_PORT)
        process.stdout.readline()
        with self.nothing_leaves(LISTED4):
            for _ in range(5):
                self.change(box, "--allow-cidr", "93.184.216.0/24")
                self.change(box, "--remove", "93.184.216.0/24")
            out, _ = process.communicate(b"\n", 60)
        self.assertEqual(json.loads(out), sorted([HELLO4, REFUSED]))


class Explained(BoxTest):
    """`atoll explain` says what the engine does."""

    DESTINATIONS = [("ok.test", GREETING_PORT), ("ok.test", 443), ("ok.test", 8080), ("no.test", GREETING_PORT),
                    ("sub.ok.test", GREETING_PORT), (OK4, GREETING_PORT), (OK6, GREETING_PORT), (LISTED4, GREETING_PORT),
                    (LISTED4, 80), (LISTED6, GREETING_PORT), ("45.33.33.0", GREETING_PORT), ("2a01:7e01::1", GREETING_PORT),
                    (OTHER4, GREETING_PORT), (OTHER6, GREETING_PORT), ("10.20.0.5", GREETING_PORT),
                    ("192.168.1.1", GREETING_PORT), ("172.16.0.1", GREETING_PORT), ("100.64.0.1", GREETING_PORT),
                    ("169.254.169.254", GREETING_PORT), ("fe80::1", GREETING_PORT), ("fd00::1", GREETING_PORT),
                    ("ff02::1", GREETING_PORT), ("224.0.0.1", GREETING_PORT), ("255.255.255.255", GREETING_PORT),
                    ("64:ff9b::a14:5", GREETING_PORT), ("2002:a14:5::1", GREETING_PORT),
                    ("198.18.0.5", GREETING_PORT), ("240.0.0.5", GREETING_PORT), ("192.0.2.1", GREETING_PORT)]
    POLICIES = [("--allow", f"ok.test:{GREETING_PORT}"), RANGES, BOTH, ("--open-network",),
                ("--open-network", "--allow-private", "10.20.0.0/16"),
                ("--allow-cidr", "10.0.0.0/8", "--allow-cidr", "fd00::/8", "--allow-cidr", "64:ff9b::a00:0/104"),
                ("--allow-cidr", "100.64.0.0/10", "--allow", "no.test:2222"),
                ("--allow", "*.ok.test:2222", "--allow-cidr", "151.101.0.0/16")]
    names = NAMES | {"sub.ok.test": [OK4]}

    def explained(self, options, where, port):
        host = f"[{where}]" if ":" in where else where
        done = self.lab.atoll("explain", "--json", *options, f"{host}:{port}")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)["allowed"]

    def test_the_same_verdict(self):
        """Ports where the server speaks first, or anything comes back at all, are those that were let through."""
        for options in self.POLICIES:
            box = self.create(*options)
            tried = self.inside(box, """
def attempt(where, port):
    say = b"GET / HTTP/1.0\\r\\n\\r\\n" if port in (80, 8080) else b""
    if port == 443:  # what is judged there is more than the address
        return outcome(lambda: socket.create_connection((where, port), 10) and "connected")
    return tcp(where, port, say)
show([attempt(where, port) for where, port in json.loads(sys.argv[1])])
""", json.dumps(self.DESTINATIONS))
            for (where, port), outcome in zip(self.DESTINATIONS, tried):
                with self.subTest((options, where, port)):
                    passed = outcome.startswith(("hello", "HTTP/1.1", "connected"))
                    self.assertEqual(passed, self.explained(options, where, port), outcome)
            self.atoll("rm", box)


if __name__ == "__main__":
    unittest.main()
