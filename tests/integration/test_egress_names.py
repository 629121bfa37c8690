# SPDX-License-Identifier: Apache-2.0
"""Names: what the resolver inside says, what is asked for outside, and where a name may lead. See egress_lab."""
import random
import socket
import string
import struct
import time
import unittest

import egress_lab
from egress_attempts import (A, AAAA, ANY, AXFR, CNAME, DNS, FORMERR, HTTPS, MX, NOERROR, NOTIMP, NS, NULL, NXDOMAIN, ODD_NAMES,
                             OK4, OK6, OTHER4, OTHER6, PRIVATE4, PTR, PYTHON, REFUSED, SERVFAIL, SRV, SVCB, TCP, TXT, Answer,
                             AttemptsTest, expected_to_run, got, hello_for, opt_option, opt_record, query, records,
                             stream_case, tcp_case, udp_case)
from egress_lab import GREETING_PORT, SERVERS4, UDP_PORT

ALLOWED = ["--allow", "ok.test:80", "--allow", "*.wild.test:80"]
BOUND_S = 5  # what happens at once, on a busy machine
HELLO = "hello from "
# Connects to each NAME PORT of its arguments; says what the server said, or how it failed.
CONNECT = """
import socket, sys
for name, port in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        with socket.create_connection((name, int(port)), 20) as s:
            print(s.recv(4096).decode().strip() or "end")
    except OSError as e:
        print(type(e).__name__)
"""


_later = {}


def setUpModule():
    lab = _later["lab"] = unittest.enterModuleContext(egress_lab.Lab({"rebind.test": [OK4]}))
    box = _later["box"] = lab.atoll("create", "--lifetime", "300s", f"--allow=rebind.test:{GREETING_PORT}").stdout.strip()
    unittest.addModuleCleanup(lab.atoll, "rm", box)
    first = lab.atoll("exec", box, "--", PYTHON, "-c", CONNECT, "rebind.test", str(GREETING_PORT))
    _later.update(first=first.stdout.strip(), at=time.monotonic())
    lab.set_names({"rebind.test": [PRIVATE4]})


class NamesTest(AttemptsTest):
    def ask(self, cases, options=ALLOWED):
        """The answers to these cases; or to these messages by UDP."""
        cases = [c if isinstance(c, dict) else udp_case(c) for c in cases]
        return [Answer(outcome, case.get("tcp")) for case, outcome in zip(cases, self.attempts(options, DNS, cases))]

    def connect(self, options, *places):
        return self.run_in(options, PYTHON, "-c", CONNECT, *map(str, places)).split("\n")

    def no_addresses(self, answers, labels, rcodes):
        for label, answer in zip(labels, answers, strict=True):
            with self.subTest(label):
                self.assertEqual(answer.addresses, [])
                self.assertIn(answer.rcode, rcodes)


class Questions(NamesTest):
    def test_the_name_in_each_of_its_forms_is_one(self):
        names = ("ok.test", "OK.TEST", "oK.tEsT")
        answers = self.ask([query(name) for name in names])
        self.assertEqual({tuple(a.addresses) for a in answers}, {((A, socket.inet_aton("198.18.0.2")),)})
        for name, answer in zip(names, answers):
            self.assertIn(query(name)[12:], answer.message, "the question is echoed byte for byte")

    def test_case_is_no_channel(self):
        self.lab.packets()
        self.ask([query("oK.TeSt")])
        sent = [bytes.fromhex(p[3]) for p in self.lab.packets()]
        self.assertTrue(any(b"\2ok\4test" in data for data in sent))
        self.assertFalse(any(b"\2oK" in data for data in sent))

    def test_no_other_reading_of_a_name_is_answered(self):
        names = [n for n in ODD_NAMES if all(len(label) < 64 for label in n.split(b".")) and n not in (
            b"ok.test..", b".ok.test", b"ok..test", b".".join([b"a" * 62] * 4) + b".ok.test",  # such bytes cannot be said
            b"localhost", b"test")]  # which are inside, and above a listed name
        for part in (names[:15], names[15:30], names[30:]):
            with self.only_questions_for():
                answers = self.ask([query(n) for n in part])
            self.no_addresses(answers, part, (FORMERR, NXDOMAIN))
            self.assertEqual(self.told(), len(part), self.denied)
        self.assertTrue(any("no place in the names of hosts" in d["reason"] or "no name of a host" in d["reason"]
                            for d in self.denied), self.denied)

    def test_odd_labels_are_not_answered(self):
        labels = {"a dot within": [b"ok.test"], "a dot within the first": [b"a.b", b"ok", b"test"],
                  "a zero byte": [b"ok\0", b"test"], "a zero byte between names": [b"no.test\0", b"ok", b"test"],
                  "a blank": [b" ok", b"test"], "one at its end": [b"ok", b"test "], "a tab": [b"ok\t", b"test"],
                  "a line end": [b"ok", b"test\r\n"], "a star": [b"*", b"wild", b"test"], "8 bits": [b"\xe6k", b"test"]}
        with self.only_questions_for():
            answers = self.ask([query(x) for x in labels.values()])
        self.no_addresses(answers, labels, (FORMERR, NXDOMAIN))
        self.assertEqual(self.told(), len(labels), self.denied)

    def test_the_root_and_what_is_above_listed_names_are_empty(self):
        with self.only_questions_for():
            answers = self.ask([query(""), query("test"), query("wild.test"), query("localhost"), query("x.localhost", AAAA)])
        self.assertEqual([a.rcode for a in answers], [NOERROR] * 5)
        self.assertEqual([a.addresses for a in answers], [[], [], [], [(A, b"\x7f\0\0\1")], [(AAAA, bytes(15) + b"\1")]])
        self.assertEqual(self.denied, [])

    def test_messages_that_are_no_question_are_faults(self):
        ok = b"\2ok\4test\0" + struct.pack("!HH", A, 1)
        head = query("ok.test")[:12]
        messages = {
            "none": (query("", counts=(0, 0, 0, 0))[:12], FORMERR),
            "two": (query("ok.test", counts=(2, 0, 0, 0), after=b"\2no\4test\0\0\1\0\1"), FORMERR),
            "two, the other first": (query("SECRET.no.test", counts=(2, 0, 0, 0), after=ok), FORMERR),
            "65535": (query("ok.test", counts=(65535, 0, 0, 0)), FORMERR),
            "bytes behind": (query("ok.test", after=b"\2no\4test\0"), FORMERR),
            "an answer record": (query("ok.test", counts=(1, 1, 0, 0), after=b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 1, 4) + bytes(4)),
                                 FORMERR),
            "an authority": (query("ok.test", counts=(1, 0, 1, 0), after=b"\xc0\x0c" + struct.pack("!HHIH", NS, 1, 1, 0)), FORMERR),
            "another record than OPT": (query("ok.test", counts=(1, 0, 0, 1), after=b"\0" + struct.pack("!HHIH", TXT, 1, 1, 0)), FORMERR),
            "a pointer": (head + b"\2ok\xc0\x0c" + struct.pack("!HH", A, 1), FORMERR),
            "a pointer to itself": (head + b"\xc0\x0c" + struct.pack("!HH", A, 1), FORMERR),
            "a pointer beyond": (head + b"\xff\xff" + struct.pack("!HH", A, 1), FORMERR),
            "a label of 64": (head + b"\x40" + b"a" * 64 + b"\0" + struct.pack("!HH", A, 1), FORMERR),
            "an extended label": (head + b"\x41" + b"ok\0" + struct.pack("!HH", A, 1), FORMERR),
            "a name of 256": (head + (b"\x3f" + b"a" * 63) * 4 + b"\0" + struct.pack("!HH", A, 1), FORMERR),
            "a name without end": (head + b"\2ok\4test", FORMERR),
            "an empty label within": (head + b"\2ok\4test\0\0\0\1\0\1", FORMERR),
            "cut within its type": (query("ok.test")[:-3], FORMERR),
            "truncated, it says": (query("ok.test", flags=0x0300), FORMERR),
            "a notification": (query("ok.test", flags=0x2000), NOTIMP),
            "an update": (query("ok.test", flags=0x2800), NOTIMP),
            "an inverse query": (query("ok.test", flags=0x0800), NOTIMP),
            "CHAOS": (query("ok.test", TXT, 3), REFUSED),
            "the server's version": (query("version.bind", TXT, 3), REFUSED),
            "HESIOD": (query("ok.test", A, 4), REFUSED),
            "any class": (query("ok.test", A, 255), REFUSED),
            "class NONE": (query("ok.test", A, 254), REFUSED),
            "class 0": (query("ok.test", A, 0), REFUSED),
            "type OPT": (query("ok.test", 41), FORMERR),
        }
        with self.only_questions_for():
            answers = self.ask([m for m, _ in messages.values()])
        for (label, (_, rcode)), answer in zip(messages.items(), answers):
            with self.subTest(label):
                self.assertEqual((answer.rcode, answer.addresses), (rcode, []))

    def test_what_is_no_query_gets_no_answer(self):
        """An answer to it could go round for ever."""
        messages = [query("ok.test", flags=0x8180), query("SECRET.no.test", flags=0x8180), b"", b"x", query("ok.test")[:11]]
        with self.only_questions_for():
            answers = self.ask([udp_case(m, limit=0.5) for m in messages])
        self.assertEqual([a.error for a in answers], ["TimeoutError"] * len(messages))

    def test_other_types_of_a_listed_name_are_empty_and_not_asked_for(self):
        kinds = (TXT, NULL, ANY, PTR, SRV, HTTPS, SVCB, CNAME, MX, NS, 6, 13, 35, 43, 48, 250, 251, AXFR, 256, 257, 32769, 65280, 0)
        with self.only_questions_for():
            answers = self.ask([query("ok.test", kind) for kind in kinds])
            below = self.ask([query("x.wild.test", kind) for kind in kinds])
        self.no_addresses(answers + below, kinds * 2, (NOERROR,))
        self.assertEqual(self.denied, [])

    def test_other_types_of_other_names_do_not_exist(self):
        kinds = (TXT, NULL, ANY, PTR, SRV, HTTPS, SVCB, CNAME, MX)
        names = ("SECRET.no.test", "_SECRET.ok.test", "SECRET.ok.test", "1.0.0.10.in-addr.arpa", "secret.ip6.arpa")
        for name in names:
            with self.subTest(name), self.only_questions_for():
                self.no_addresses(self.ask([query(name, kind) for kind in kinds]), kinds, (NXDOMAIN,))
                self.assertEqual(self.attempts_denied("dns", name.lower()), len(kinds), self.denied)


class Edns(NamesTest):
    def test_sizes_and_options(self):
        options = opt_option(8, b"\0\1\x18\0SECRET") + opt_option(10, b"secret!!") + opt_option(12, bytes(400)) + opt_option(65001, b"SECRET")
        after = {"0": opt_record(0), "512": opt_record(512), "4096": opt_record(4096), "65535": opt_record(65535),
                 "options": opt_record(1232, options=options), "the flag DO": b"\0" + struct.pack("!HHIH", 41, 1232, 0x8000, 0)}
        with self.only_questions_for("ok.test"):
            answers = self.ask([query("ok.test", counts=(1, 0, 0, 1), after=x) for x in after.values()])
        for label, answer in zip(after, answers):
            with self.subTest(label):
                self.assertEqual(answer.addresses, [(A, socket.inet_aton("198.18.0.2"))])
                self.assertEqual(answer.additionals, 1)

    def test_what_is_no_edns_is_a_fault(self):
        after = {"version 1": opt_record(version=1), "options beyond its end": opt_record(options=b"\0\1\0\x09a"),
                 "a length beyond its end": opt_record(rdlen=9), "an owner": b"\1a" + opt_record(),
                 "bytes behind": opt_record() + b"SECRET"}
        two = query("ok.test", counts=(1, 0, 0, 2), after=opt_record() * 2)
        with self.only_questions_for():
            answers = self.ask([*(query("ok.test", counts=(1, 0, 0, 1), after=x) for x in after.values()), two])
        for label, answer in zip([*after, "two"], answers):
            with self.subTest(label):
                # BADVERS is 16: its low bits are those of no error, its high ones stand in the record.
                self.assertEqual((answer.rcode, answer.addresses), (NOERROR if label == "version 1" else FORMERR, []))


class Tcp(NamesTest):
    def test_in_fragments_and_many_in_one(self):
        with self.only_questions_for("ok.test"):
            answers = self.attempts(ALLOWED, DNS, [
                stream_case(query("ok.test"), piece=1, gap=0.002),
                stream_case(query("ok.test"), piece=3, gap=0.002, to="2001:db8::53"),
                stream_case(*[query("ok.test", ident=i) for i in range(20)]),
                stream_case(*[query("ok.test", ident=i) for i in range(5)], piece=7, gap=0.002),
                stream_case(query("ok.test"), query("SECRET.no.test"), query("ok.test"), end=True)])
        address = socket.inet_aton("198.18.0.2")
        self.assertEqual([got(a).count(address) for a in answers], [1, 1, 20, 5, 2])
        self.assertEqual(self.attempts_denied("dns", "secret.no.test"), 1)

    def test_streams_that_are_none_are_closed(self):
        cases = {"a length of 0": b"\0\0", "a length of 11": b"\0\x0b" + bytes(11), "a length of 65535": b"\xff\xff" + bytes(100),
                 "HTTP": b"GET / HTTP/1.1\r\nHost: no.test\r\n\r\n", "ssh": b"SSH-2.0-x\r\n"}
        with self.only_questions_for():
            outcomes = self.attempts(ALLOWED, DNS, [{"message": m.hex(), "to": "198.18.0.1", "tcp": True} for m in cases.values()])
            half = {"message": (b"\0\x40" + query("SECRET.no.test")).hex(), "to": "198.18.0.1", "tcp": True, "end": True}
            outcomes += self.attempts(ALLOWED, DNS, [half])
        for label, outcome in zip([*cases, "half of one"], outcomes):
            with self.subTest(label):
                self.assertIn(outcome["error"], ("end", "ConnectionResetError", "BrokenPipeError"))
                self.assertEqual(outcome["got"], "")


class Channels(NamesTest):
    def test_data_in_names_stays_inside(self):
        names = ["SECRET.no.test", "SECRET.ok.test", "ok.test.SECRET", "SECRET.test", "SECRET", "_SECRET.no.test",
                 "SECRET.wild.test.no.test", "SECRETwild.test"]
        with self.only_questions_for():
            answers = self.ask([query(name) for name in names] + [stream_case(query(name)) for name in names])
        self.no_addresses(answers, names * 2, (NXDOMAIN,))
        for name in names:
            self.assertEqual(self.attempts_denied("dns", name.lower()), 2, self.denied)

    def test_every_name_server_is_the_one_inside(self):
        """By UDP and TCP, of both families: of the servers there, none hears of it."""
        places = (OTHER4, OTHER6, SERVERS4, egress_lab.SERVERS6, "8.8.8.8", "127.0.0.53", "10.0.0.1", "169.254.169.254")
        secret, ok = query("SECRET.no.test"), query("ok.test")
        with self.only_questions_for("ok.test"):
            cases = [make(message, to=to) for to in places if not to.startswith("127.") for message in (secret, ok)
                     for make in (udp_case, stream_case)]
            answers = self.ask(cases)
        for case, answer in zip(cases, answers):
            with self.subTest(case["to"]):
                expected = (NXDOMAIN, 0) if b"SECRET" in bytes.fromhex(case["message"]) else (NOERROR, 1)
                self.assertEqual((answer.rcode, len(answer.addresses)), expected)

    def test_other_ways_to_ask_are_refused(self):
        """DNS over TLS and HTTPS, multicast names, names of the local link."""
        with self.only_questions_for():
            outcomes = self.attempts(ALLOWED, TCP, [
                *(tcp_case(to, 853, records(hello_for(b"no.test"))) for to in ("198.18.0.1", OTHER4, "1.1.1.1")),
                *(tcp_case(to, 443, records(hello_for(b"no.test"))) for to in ("198.18.0.1", OTHER4)),
                tcp_case(OTHER6, 853, b"x", v6=True), tcp_case("198.18.0.1", 80, b"x"), tcp_case(OTHER4, 5353, b"x")])
        # The resolver's own address passes the kernel, as those of names do, and ends there.
        self.assertLessEqual({o["error"] for o in outcomes}, {"ConnectionRefusedError", "ConnectionResetError"})
        self.assertEqual({o["got"] for o in outcomes}, {""})
        self.assertIn((OTHER4, 853), [(d["address"], d["port"]) for d in self.denied])
        with self.only_questions_for():
            outcomes = self.attempts(ALLOWED, DNS, [
                udp_case(query("SECRET.local"), to=to, port=port, limit=2)
                for to, port in (("224.0.0.251", 5353), ("ff02::fb", 5353), ("224.0.0.252", 5355), ("255.255.255.255", 137),
                                 (OTHER4, 5353), (OTHER4, 853), (OTHER4, 443), ("198.18.0.1", 5353))])
        for outcome in outcomes:
            self.assertIn(outcome["error"], ("PermissionError", "OSError", "ConnectionRefusedError"))
        self.assertIn((OTHER4, 5353), [(d["address"], d["port"]) for d in self.denied])

    def test_names_below_a_wildcard_are_counted(self):
        random.seed(1)
        names = {"".join(random.choices(string.ascii_lowercase, k=12)) + ".wild.test" for _ in range(500)}
        self.lab.questions()
        answers = self.ask([query(name) for name in sorted(names)])
        asked = {name for name, _ in self.lab.questions()}
        self.assertEqual(len(asked), 60)
        self.assertLess(asked, names)
        rcodes = [a.rcode for a in answers]
        self.assertEqual((rcodes.count(NXDOMAIN), rcodes.count(REFUSED)), (60, len(names) - 60))
        self.assertGreater(len(self.denied) + self.denied_more, 0)
        self.assertIn("too many new names below a wildcard", self.denied[0]["reason"])

    def test_a_star_stands_for_few_and_short_labels(self):
        inside = ("e.d.c.b.a.wild.test", "a" * 49 + "." + "b" * 50 + ".wild.test")
        beyond = ("SECRET.e.d.c.b.a.wild.test", "SECRET" + "a" * 44 + "." + "b" * 50 + ".wild.test")
        with self.only_questions_for(*inside):
            answers = self.ask([query(name) for name in inside + beyond])
        self.assertEqual([a.rcode for a in answers], [NXDOMAIN] * 4)  # outside, or inside
        self.assertEqual({d["name"] for d in self.denied}, {name.lower() for name in beyond})
        self.assertTrue(all("5 parts and 100 characters in the star's place" in d["reason"] for d in self.denied), self.denied)

    def test_a_wildcard_lists_what_is_below_it(self):
        with self.only_questions_for("a.wild.test"):
            answers = self.ask([query(name) for name in ("a.wild.test", "evilwild.test", "wild.test.no.test", "*.wild.test", "wild.test")])
        self.assertEqual([len(a.addresses) for a in answers], [1, 0, 0, 0, 0])
        self.assertEqual([a.rcode for a in answers], [NOERROR, NXDOMAIN, NXDOMAIN, NXDOMAIN, NOERROR])


class Synthetic(NamesTest):
    """Addresses that stand for names."""

    OPTIONS = ["--allow", "ok.test:80", "--allow", f"four.test:{GREETING_PORT}"]

    def test_addresses_that_were_not_given_out(self):
        places = ["198.18.0.2", "198.18.0.77", "198.18.255.254", "198.18.255.255", "198.18.0.0", "198.18.0.1"]
        with self.only_questions_for():
            outcomes = self.attempts(self.OPTIONS, TCP, [tcp_case(to, 80, b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n") for to in places])
        for to, outcome in zip(places, outcomes):
            with self.subTest(to):
                self.assertIn(outcome["error"], ("ConnectionRefusedError", "ConnectionResetError"))
        self.assertEqual({d["address"] for d in self.denied}, set(places))

    def test_the_port_of_one_name_at_the_address_of_another(self):
        self.lab.packets()
        out = self.run_in(self.OPTIONS, PYTHON, "-c", f"""
import socket
for name, port in (("ok.test", {GREETING_PORT}), ("four.test", 80), ("ok.test", 22), ("four.test", {GREETING_PORT})):
    try:
        with socket.create_connection((name, port), 20) as s:
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n")
            print(s.recv(100).decode().strip())
    except OSError as e:
        print(type(e).__name__)
""").split("\n")
        self.assertLessEqual(set(out[:3]), {"ConnectionRefusedError", "ConnectionResetError"}, out)
        self.assertEqual(out[3], f"{HELLO}::ffff:{OK4}")
        self.assertEqual({p[2] for p in self.lab.packets() if p[0] in (OK4, OK6)}, {GREETING_PORT})
        for name, port in (("ok.test", GREETING_PORT), ("four.test", 80), ("ok.test", 22)):
            self.assertGreater(self.attempts_denied("tcp", name, port), 0, self.denied)

    def test_udp_to_a_name_is_refused(self):
        with self.only_questions_for("ok.test"):
            out = self.run_in(["--allow", "ok.test", "--allow", "ok.test:80"], PYTHON, "-c", f"""
import socket
for port in (443, 80, {UDP_PORT}):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    try:
        s.connect((socket.gethostbyname("ok.test"), port))
        s.send(b"x")
        print(s.recv(10))
    except OSError as e:
        print(type(e).__name__)
""")
        self.assertLessEqual(set(out.split()), {"PermissionError", "ConnectionRefusedError"})
        self.assertEqual(sum(self.attempts_denied("udp", name) for name in ("ok.test", "")), 3, self.denied)

    def test_names_that_a_program_gives_itself_lead_nowhere_else(self):
        """A hosts file, or a resolver of its own, inside: the judgement is of the address, and of the name said to it."""
        cases = [tcp_case("198.18.0.2", 80, b"GET / HTTP/1.1\r\nHost: no.test\r\n\r\n"),
                 tcp_case(OTHER4, 80, b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n")]
        with self.only_questions_for("ok.test"):
            outcomes = self.attempts(ALLOWED, "import socket\nsocket.gethostbyname('ok.test')\n" + TCP, cases)
        self.assertEqual([o["error"] for o in outcomes], ["ConnectionResetError", "ConnectionRefusedError"])
        self.assertEqual({d["protocol"] for d in self.denied}, {"http", "tcp"})

    def test_an_address_is_no_way_once_its_name_is_removed(self):
        box = self.lab.atoll("create", "--lifetime", "120s", *self.OPTIONS).stdout.strip()
        self.addCleanup(self.lab.atoll, "rm", box)
        program = f"import socket; print(socket.gethostbyname('four.test'))\n{CONNECT}"
        address = self.lab.atoll("exec", box, "--", PYTHON, "-c", program).stdout.strip()
        again = ("exec", box, "--", PYTHON, "-c", CONNECT, address, str(GREETING_PORT))
        self.assertEqual(self.lab.atoll(*again).stdout.strip(), f"{HELLO}::ffff:{OK4}")
        self.assertEqual(self.lab.atoll("policy", box, "--remove", f"four.test:{GREETING_PORT}").returncode, 0)
        with self.only_questions_for():
            done = self.lab.atoll(*again)
        self.assertEqual(done.stdout.strip(), "ConnectionRefusedError", done.stderr)
        self.assertIn(f":{GREETING_PORT}", self.lab.atoll("events", box, "--kind", "egress").stdout)
        # Another name with that port has an address of its own.
        self.assertEqual(self.lab.atoll("policy", box, "--allow", f"no.test:{GREETING_PORT}").returncode, 0)
        self.assertIn(self.lab.atoll(*again).stdout.strip(), ("ConnectionRefusedError", "ConnectionResetError"))
        other = self.lab.atoll("exec", box, "--", PYTHON, "-c", CONNECT, "no.test", str(GREETING_PORT))
        self.assertIn(HELLO, other.stdout)


class Answers(NamesTest):
    """What a name turns out to be, outside."""

    FORBIDDEN = {
        "private.test": PRIVATE4, "private12.test": "172.16.0.1", "private16.test": "192.168.1.1", "shared.test": "100.64.0.1",
        "loopback.test": "127.0.0.1", "loopback6.test": "::1", "any.test": "0.0.0.0", "any6.test": "::",
        "host.test": egress_lab.HOST4, "host6.test": egress_lab.HOST6, "metadata.test": "169.254.169.254",
        "metadata6.test": "fd00:ec2::254", "link.test": "169.254.1.1", "link6.test": "fe80::1", "local.test": "fd00::1",
        "multicast.test": "224.0.0.251", "multicast6.test": "ff02::fb", "broadcast.test": "255.255.255.255",
        "reserved.test": "240.0.0.1", "pool.test": "198.18.0.2", "mapped.test": "::ffff:10.20.0.5",
        "mappedloop.test": "::ffff:127.0.0.1", "compatible.test": "::10.20.0.5", "nat64.test": "64:ff9b::a14:5",
        "nat64meta.test": "64:ff9b::a9fe:a9fe", "sixtofour.test": "2002:a14:5::1", "sixtofourmeta.test": "2002:a9fe:a9fe::1",
        "teredo.test": "2001:0:a14:5::1", "site.test": "fec0::1",
    }
    NAMES = {**AttemptsTest.NAMES, **{name: [address] for name, address in FORBIDDEN.items()},
             "mixed.test": [PRIVATE4, "127.0.0.1", OK4], "alias.test": ["CNAME no.test", OTHER4],
             "aliasprivate.test": ["CNAME no.test", PRIVATE4], "later.test": [OK4],
             "silent.test": [OK4], "dual.test": [OK4, "2a00:dead::1"], "sixdead.test": ["2a00:dead::2"],
             "sixsilent.test": [OK4, "2a00:5113:7::1"],
             "six.test": [OK6], "ok.test.corp.test": [OTHER4], "absent.test.corp.test": [OTHER4], "ok.corp.test": [OTHER4]}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for command in ("unreachable 2a00:dead::/32", "2a00:5113::/32 dev out"):  # nobody answers for the latter
            cls.lab.run("ip", "-6", "route", "add", *command.split()).check_returncode()

    def test_forbidden_addresses_are_not_connected_to(self):
        names, out, told = list(self.FORBIDDEN), [], []
        with self.only_questions_for(*names):
            for part in (names[:10], names[10:20], names[20:]):  # a result tells of 16
                out += self.connect([f"--allow={name}:{GREETING_PORT}" for name in part],
                                    *(place for name in part for place in (name, GREETING_PORT)))
                told += self.denied
        for name, outcome in zip(self.FORBIDDEN, out, strict=True):
            with self.subTest(name):
                self.assertIn(outcome, ("ConnectionResetError", "ConnectionRefusedError", "gaierror"))
                self.assertIn(name, [d["name"] for d in told])

    def test_of_several_addresses_only_allowed_ones_are_tried(self):
        self.lab.packets()
        self.assertEqual(self.connect([f"--allow=mixed.test:{GREETING_PORT}"], "mixed.test", GREETING_PORT), [f"{HELLO}::ffff:{OK4}"])
        self.assertEqual({p[0] for p in self.lab.packets() if p[2] == GREETING_PORT}, {OK4})

    def test_an_alias_is_followed_outside_and_judged_by_its_addresses(self):
        options = [f"--allow={name}:{GREETING_PORT}" for name in ("alias.test", "aliasprivate.test")]
        out = self.connect(options, "alias.test", GREETING_PORT, "aliasprivate.test", GREETING_PORT, "no.test", GREETING_PORT)
        self.assertEqual(out[0], f"{HELLO}::ffff:{OTHER4}")
        self.assertIn(out[1], ("ConnectionResetError", "ConnectionRefusedError"))
        self.assertEqual(out[2], "gaierror")
        (answer,) = self.ask([query("alias.test")], options)
        self.assertEqual(answer.addresses, [(A, socket.inet_aton("198.18.0.2"))])

    def test_a_name_that_changes_after_it_was_asked_for(self):
        """Whatever an address leads to is judged when it is connected to."""
        out = self.lab.start(egress_lab.ATOLL, "run", "-i", f"--allow=later.test:{GREETING_PORT}", "--", PYTHON, "-c",
                             "import socket, sys\nprint(socket.gethostbyname('later.test'), flush=True)\n"
                             "sys.stdin.readline()\n" + CONNECT.replace("sys.argv[1::2], sys.argv[2::2]",
                                                                            f"['later.test'], [{GREETING_PORT}]"),
                             stdin=-1, stdout=-1, text=True)
        self.assertEqual(out.stdout.readline().strip(), "198.18.0.2")
        self.lab.set_names({"later.test": [PRIVATE4]})
        self.lab.packets()
        told, _ = out.communicate("\n", timeout=60)
        self.assertEqual(told.strip(), f"{HELLO}::ffff:{OK4}")
        self.assertEqual({p[0] for p in self.lab.packets() if p[2] == GREETING_PORT}, {OK4})

    def test_a_name_server_that_is_silent_holds_up_nobody_else(self):
        self.lab.set_silent(["silent.test"])
        options = ["--allow", f"silent.test:{GREETING_PORT}", "--allow", f"ok.test:{GREETING_PORT}"]
        start = time.monotonic()
        silent, ok = self.ask([udp_case(query("silent.test"), limit=30), udp_case(query("ok.test"), limit=BOUND_S)], options)
        self.assertEqual((silent.rcode, silent.addresses), (SERVFAIL, []))
        self.assertEqual(len(ok.addresses), 1)
        self.assertLess(time.monotonic() - start, 25)
        self.lab.set_silent([])

    def test_programs_of_both_families_reach_what_there_is_a_way_to(self):
        options = [f"--allow={name}:{GREETING_PORT}" for name in ("dual.test", "six.test", "sixsilent.test")]
        start = time.monotonic()
        out = self.connect(options, "dual.test", GREETING_PORT, "six.test", GREETING_PORT, "sixsilent.test", GREETING_PORT)
        self.assertEqual(out, [f"{HELLO}::ffff:{OK4}", f"{HELLO}{OK6}", f"{HELLO}::ffff:{OK4}"])
        self.assertLess(time.monotonic() - start, BOUND_S)

    def test_a_name_without_a_way_to_it_fails_and_says_why(self):
        start = time.monotonic()
        out = self.connect([f"--allow=sixdead.test:{GREETING_PORT}"], "sixdead.test", GREETING_PORT)
        self.assertIn(out[0], ("ConnectionResetError", "ConnectionRefusedError"))
        self.assertLess(time.monotonic() - start, BOUND_S)
        self.assertEqual({(d["name"], d["rule"]) for d in self.denied}, {("sixdead.test", "dial failed")})

    def test_short_names_and_search_lists(self):
        resolv = self.lab.folder / "resolv.conf"
        before = resolv.read_text()
        self.addCleanup(resolv.write_text, before)
        resolv.write_text(before + "search corp.test test\noptions ndots:15\n")
        options = ["--allow", "ok.test:80", "--allow", "absent.test:80"]
        program = ("import socket, sys\nfor n in sys.argv[1:]:\n    try: print(socket.gethostbyname(n))\n"
                   "    except OSError as e: print(type(e).__name__)\n")
        with self.only_questions_for("ok.test", "absent.test", secrets=(b"corp",)):
            out = self.run_in(options, PYTHON, "-c", program, "ok.test.", "ok.test", "ok", "absent.test", "absent", "ok.corp.test")
        self.assertEqual(out.split(), ["198.18.0.2", "198.18.0.2", *["gaierror"] * 4])
        self.assertEqual(self.attempts_denied("dns", "ok.test.corp.test"), 0, self.denied)
        with self.only_questions_for("ok.test", secrets=(b"corp",)):
            # A search list of the program's own finds listed names, and nothing else.
            out = self.run_in(options, "sh", "-c", "LOCALDOMAIN=test RES_OPTIONS=ndots:15 getent ahosts ok | head -1; "
                              "LOCALDOMAIN=corp.test getent ahosts ok || echo none")
        self.assertEqual(out.split()[0], "198.18.0.2")
        self.assertEqual(out.split()[-1], "none")


class Clients(NamesTest):
    """Programs that know nothing of us, and have no variable that tells of a proxy."""

    PROGRAMS = {
        "curl": ("curl", ["curl", "-sS", "-m", "20", "URL"]),
        "urllib": ("python3", [PYTHON, "-c", "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())", "URL"]),
        "fetch": ("node", ["node", "-e", "fetch(process.argv[1]).then(r => r.text()).then(console.log)"
                           ".catch(e => {console.error(e); process.exit(1)})", "URL"]),
        "perl": ("perl", ["perl", "-MIO::Socket::INET", "-e", "($h) = $ARGV[0] =~ m{//([^/]*)}; $s = IO::Socket::INET->new("
                          "PeerAddr => $h, PeerPort => 80) or die; print $s \"GET / HTTP/1.0\\r\\nHost: $h\\r\\n\\r\\n\"; "
                          "while (<$s>) { print; last if /host/ }", "URL"]),
    }

    def client(self, label):
        program, command = self.PROGRAMS[label]
        expected_to_run(self, program)
        listed, other = ([x.replace("URL", f"http://{name}/") for x in command] for name in ("ok.test", "SECRET.no.test"))
        out = self.run_in(["--allow", "ok.test:80", "--allow", "ok.test"], "env", "-u", "http_proxy", *listed)
        self.assertIn('"host": "ok.test"', out)
        self.assertEqual(self.denied, [])
        start = time.monotonic()
        with self.only_questions_for():
            self.run_in(["--allow", "ok.test:80"], "sh", "-c", '! "$@" 2>/dev/null', "sh", *other)
        self.assertLess(time.monotonic() - start, BOUND_S * 2)
        self.assertGreater(self.attempts_denied("dns", "secret.no.test"), 0)

    def test_curl(self):
        self.client("curl")

    def test_urllib_of_python(self):
        self.client("urllib")

    def test_fetch_of_node(self):
        self.client("fetch")

    def test_sockets_of_perl(self):
        self.client("perl")

    def test_a_port_of_a_server_that_speaks_first(self):
        """As ssh and databases need it, by name and port, and no other port."""
        expected_to_run(self, "ssh")
        self.lab.packets()
        out = self.connect([f"--allow=ok.test:{GREETING_PORT}"], "ok.test", GREETING_PORT)
        self.assertTrue(out[0].startswith(HELLO))
        ssh = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=10"
        start = time.monotonic()
        out = self.run_in([f"--allow=ok.test:{GREETING_PORT}"], "sh", "-c",
                          f"{ssh} -p 22 ok.test true 2>&1; {ssh} -p {GREETING_PORT} SECRET.no.test true 2>&1; true")
        self.assertLess(time.monotonic() - start, BOUND_S)
        self.assertIn("port 22: Connection refused", out)
        self.assertIn("could not resolve hostname secret.no.test", out.lower())
        packets = self.lab.packets()
        self.assertEqual({p[2] for p in packets if p[0] in (OK4, OK6)}, {GREETING_PORT})
        self.no_word_in(packets)
        self.assertGreater(self.attempts_denied("tcp", "ok.test", 22), 0, self.denied)
        self.assertGreater(self.attempts_denied("dns", "secret.no.test"), 0, self.denied)

    def test_loopback_is_the_sandboxs_own(self):
        listener = self.lab.start(PYTHON, "-c", "import socket\ns = socket.create_server(('', 8124)); print('up', flush=True)\n"
                                  "while True: s.accept()[0].sendall(b'host')\n", stdout=-1)
        self.addCleanup(lambda: (listener.kill(), listener.wait(), listener.stdout.close()))
        listener.stdout.readline()
        with self.only_questions_for():
            out = self.run_in(ALLOWED, PYTHON, "-c", """
import socket, threading
def serve(s):
    while True: s.accept()[0].sendall(b"inside")
for family, where in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "127.9.9.9")):
    for port in (80, 443, 53, 8123):
        threading.Thread(target=serve, args=(socket.create_server((where, port), family=family),), daemon=True).start()
for where in ("127.0.0.1", "::1", "127.9.9.9", "localhost", "x.localhost"):
    print(*(socket.create_connection((where, port)).recv(10).decode() for port in (80, 443, 53, 8123)))
try: print(socket.create_connection(("127.0.0.1", 8124)).recv(10))
except OSError as e: print(type(e).__name__)
""")
        self.assertEqual(out.split("\n"), [" ".join(["inside"] * 4)] * 5 + ["ConnectionRefusedError"])
        self.assertEqual(self.denied, [])


class WhatChangesLater(unittest.TestCase):
    """Last of all, since what was found outside is used for 30 s: it began with the module."""

    def test_a_name_that_changes_and_is_asked_for_again(self):
        lab, box = _later["lab"], _later["box"]
        self.assertEqual(_later["first"], f"{HELLO}::ffff:{OK4}")
        time.sleep(max(0, _later["at"] + 31 - time.monotonic()))
        lab.packets(), lab.questions()
        again = lab.atoll("exec", box, "--", PYTHON, "-c", CONNECT, "rebind.test", str(GREETING_PORT))
        self.assertIn(again.stdout.strip(), ("ConnectionRefusedError", "ConnectionResetError"))
        self.assertIn("rebind.test", {name for name, _ in lab.questions()})
        self.assertEqual([p for p in lab.packets() if p[0] != SERVERS4], [])
        self.assertIn(PRIVATE4, lab.atoll("events", box, "--kind", "egress").stdout)


if __name__ == "__main__":
    unittest.main()
