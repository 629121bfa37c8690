# SPDX-License-Identifier: Apache-2.0
"""Port 443 of a name, and TLS on its other ports: which ClientHello gets out. See egress_lab and egress_attempts."""
import os
import struct
import unittest

from egress_attempts import (ODD_NAMES, OK4, OTHER4, TCP, AttemptsTest, client_hello, got, hello_for, hello_of,
                             hello_parts, records, server_names, tcp_case)
from egress_lab import GREETING_PORT

ALLOWED = ["--allow", "ok.test", "--allow", "four.test", "--allow", "*.wild.test"]
ECH, EARLY_DATA, PADDING, UNKNOWN = 0xFE0D, 42, 21, 0x1A1A


def ech(outer=b"\0"):
    """An encrypted_client_hello extension as one that only pretends has it (RFC 9849, section 6.2)."""
    return [ECH, outer + struct.pack("!HHB", 1, 1, 7) + struct.pack("!H", 32) + os.urandom(32)
            + struct.pack("!H", 144) + os.urandom(144)]


class TlsTest(AttemptsTest):
    def hello_cases(self, cases, port=443, to="ok.test", **more):
        """label -> bytes, or pieces of them, as cases."""
        return [tcp_case(to, port, *(pieces if isinstance(pieces, list) else [pieces]), **more)
                for pieces in cases.values()]

    def pass_all(self, cases, options=ALLOWED, **more):
        """Each gets a ServerHello, which is what a record of a handshake at first is."""
        outcomes = self.attempts(options, TCP, self.hello_cases(cases, **more))
        for label, outcome in zip(cases, outcomes):
            with self.subTest(label):
                self.assertEqual(got(outcome)[:1] + got(outcome)[5:6], b"\x16\x02", outcome)
        self.assertEqual(self.denied, [])

    def refuse_all(self, cases, reason, options=ALLOWED, port=443, to="ok.test", protocol="tls", **more):
        """Each is cut, is told of, and nobody outside hears of it."""
        with self.only_questions_for(to):
            outcomes = self.attempts(options, TCP, self.hello_cases(cases, port, to, **more))
        for label, outcome in zip(cases, outcomes):
            with self.subTest(label):
                self.assertEqual((outcome["error"], outcome["got"]), ("ConnectionResetError", ""))
        self.assertEqual(self.attempts_denied(protocol, to, port), len(cases), self.denied)
        self.assertTrue(any(reason in d["reason"] for d in self.denied), self.denied)


class ServerNames(TlsTest):
    def test_the_name_in_each_of_its_forms_passes(self):
        self.pass_all({name: records(hello_for(name)) for name in (b"ok.test", b"OK.TEST", b"Ok.tEst", b"ok.test.")})

    def test_a_name_below_a_wildcard_passes_as_itself_alone(self):
        self.pass_all({"itself": records(hello_for(b"a.wild.test"))}, to="a.wild.test")
        self.refuse_all({name: records(hello_for(name)) for name in (b"b.wild.test", b"wild.test", b"evilwild.test",
                                                                     b"*.wild.test", b"ok.test")},
                        "and the address is that of 'a.wild.test'", to="a.wild.test")

    def test_no_other_reading_of_a_name_passes(self):
        self.refuse_all({name: records(hello_for(name)) for name in ODD_NAMES}, "ClientHello")

    def test_another_listed_name_does_not_pass_at_this_ones_address(self):
        self.refuse_all({"four.test": records(hello_for(b"four.test")), "a.wild.test": records(hello_for(b"a.wild.test"))},
                        "names the server")

    def test_names_with_bytes_around_them_do_not_pass(self):
        self.refuse_all({name: records(hello_for(name)) for name in (
            b" ok.test", b"ok.test ", b"ok.test\t", b"\tok.test", b"ok.test\n", b"ok.test\r\n", b"ok.test:443",
            b"ok.test/", b"https://ok.test", b"ok.test" + b"\0" * 100, b"a" * 248 + b".ok.test", b"a" * 300)}, "ClientHello")

    def test_addresses_are_no_server_names(self):
        self.refuse_all({name: records(hello_for(name)) for name in (
            OK4.encode(), OTHER4.encode(), b"2a00:1450::14", b"[2a00:1450::14]", b"198.18.0.2", b"0x5db8d70e",
            b"1572394766", b"0135.0270.0327.016")}, "names the server")

    def test_without_a_server_name_nothing_passes(self):
        head, extensions = hello_parts(client_hello(None))
        self.refuse_all({"none": records(client_hello(None)),
                         "no extensions": records(b"\x01" + len(head).to_bytes(3, "big") + head),
                         "an empty list": records(hello_for(server_name=b"\0\0")),
                         "an empty extension": records(hello_for(server_name=b"")),
                         "an empty name": records(hello_for(b"")),
                         "another kind alone": records(hello_for((1, b"ok.test"))),
                         "in the encrypted part alone": records(hello_of(head, [*extensions, ech()]))}, "ClientHello")

    def test_two_server_names_do_not_pass(self):
        twice = [[0, server_names(b"no.test")]]
        self.refuse_all({"in one list": records(hello_for(b"ok.test", b"no.test")),
                         "the other way round": records(hello_for(b"no.test", b"ok.test")),
                         "the same": records(hello_for(b"ok.test", b"ok.test")),
                         "two extensions": records(hello_for(b"ok.test", more=twice)),
                         "two extensions, the other way round":
                             records(hello_for(b"no.test", more=[[0, server_names(b"ok.test")]])),
                         "beside another kind": records(hello_for((1, b"ok.test"), b"no.test")),
                         "bytes after the list": records(hello_for(server_name=server_names(b"ok.test") + b"no.test"))},
                        "ClientHello")

    def test_encryption_of_the_hello_passes_by_its_outer_name(self):
        """What is within is the residue of shared endpoints: who answers for ok.test decides."""
        self.pass_all({"at the end": records(hello_for(b"ok.test", more=[ech()]))})
        self.refuse_all({"other name": records(hello_for(b"no.test", more=[ech()])),
                         "ok.test within alone": records(hello_for(b"no.test", more=[ech(b"\1")])),
                         "two of them": records(hello_for(b"ok.test", more=[ech(), ech()]))}, "ClientHello")


class Records(TlsTest):
    def test_a_hello_in_many_segments_passes(self):
        whole = records(hello_for(b"ok.test"))
        at = whole.index(b"ok.test")
        self.pass_all({"within the name": [whole[: at + 3], whole[at + 3 :]],
                       "within the header": [whole[:3], whole[3:7], whole[7:]],
                       "byte by byte": [bytes([b]) for b in whole]}, gap=0.001)

    def test_a_hello_in_many_records_passes(self):
        hello = hello_for(b"ok.test")
        at = hello.index(b"ok.test") + 3
        self.pass_all({"within the name": records(hello[:at]) + records(hello[at:]),
                       "of 50 bytes": records(hello, 50),
                       "of 1 byte at first": records(hello[:1]) + records(hello[1:]),
                       "and segments": [records(hello[:at]), records(hello[at:])]}, gap=0.05)

    def test_another_name_in_many_pieces_does_not(self):
        hello = hello_for(b"no.test")
        at = hello.index(b"no.test") + 3
        whole = records(hello)
        self.refuse_all({"records": records(hello[:at]) + records(hello[at:]),
                         "tiny records": records(hello, 3),
                         "a record a segment": [records(hello[:at]), records(hello[at:])],
                         "segments": [whole[: at + 5], whole[at + 5 :]],
                         "bytes": [bytes([b]) for b in whole[:300]] + [whole[300:]]}, "names the server", gap=0.001)

    def test_a_large_hello_passes_in_its_records(self):
        """Larger than one record; beyond 64 KiB no server takes it, and nor do we."""
        self.pass_all({"20 KiB": records(hello_for(b"ok.test", more=[[UNKNOWN, bytes(20 << 10)]]))})
        self.refuse_all({"another name": records(hello_for(b"no.test", more=[[UNKNOWN, bytes(20 << 10)]]))}, "names the server")

    def test_a_huge_hello_is_refused(self):
        _, extensions = hello_parts(hello_for(b"ok.test"))
        room = 0xFFFF - sum(4 + len(content) for _, content in extensions) - 4
        huge = hello_for(b"ok.test", more=[[UNKNOWN, bytes(room)]])  # with what stands before it, above 64 KiB
        self.assertGreater(len(huge), 64 << 10)
        self.refuse_all({"there in full": records(huge), "its first record": records(huge)[: 5 + (1 << 14)],
                         "16 MiB, its header": struct.pack("!BHH", 22, 0x0301, 4) + b"\x01\xff\xff\xff",
                         "a record above its maximum": struct.pack("!BHH", 22, 0x0301, 0x4001) + b"\x01",
                         "an empty record first": struct.pack("!BHH", 22, 0x0301, 0) + records(hello_for(b"ok.test")),
                         "of 12,000 records": records(hello_for(b"ok.test", more=[[UNKNOWN, bytes(12 << 10)]]), 1)},
                        "damaged or too large")

    def test_a_damaged_hello_is_refused(self):
        hello = hello_for(b"ok.test")
        longer = b"\x01" + (len(hello) - 4 - 1).to_bytes(3, "big") + hello[4:]
        cut = hello[:-10]
        self.refuse_all({"one byte too many": records(longer),
                         "a ServerHello": records(b"\x02" + hello[1:]),
                         "lengths beyond its end": records(b"\x01" + (len(cut) - 4).to_bytes(3, "big") + cut[4:]),
                         "another message behind": records(hello + hello_for(b"no.test")),
                         "an alert within": records(hello[:100]) + records(b"\x01\x00", kind=21) + records(hello[100:]),
                         "an SSL 2 version within": records(hello[:4] + b"\x02\x00" + hello[6:])},
                        "damaged or too large")

    def test_a_hello_that_stops_is_refused(self):
        whole = records(hello_for(b"ok.test"))
        self.refuse_all({"before its last byte": whole[:-1], "in its header": whole[:4]}, "ended within its ClientHello",
                        end=True)

    def test_data_behind_the_hello_changes_nothing(self):
        """Early data goes to whom the hello names."""
        self.pass_all({"early data": records(hello_for(b"ok.test", more=[[EARLY_DATA, b""]]))
                       + records(os.urandom(50), kind=23, version=0x0303)})
        self.refuse_all({"ok.test behind no.test": records(hello_for(b"no.test")) + records(hello_for(b"ok.test"))},
                        "names the server")


class NotTls(TlsTest):
    def test_what_is_no_hello_is_refused_on_443(self):
        ssl2 = b"\x01\x03\x01\x00\x03\x00\x00\x00\x10\x01\x00\x80" + os.urandom(16)
        self.refuse_all({"SSL 2": struct.pack("!H", 0x8000 | len(ssl2)) + ssl2,
                         "an alert": records(b"\x01\x00", kind=21),
                         "a change of ciphers": records(b"\x01", kind=20),
                         "data": records(b"hello", kind=23),
                         "DTLS": b"\x16\xfe\xff" + bytes(60),
                         "HTTP": b"GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
                         "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                         "CONNECT": b"CONNECT no.test:443 HTTP/1.1\r\nHost: no.test\r\n\r\n",
                         "SOCKS 5": b"\x05\x01\x00", "SOCKS 4": b"\x04\x01\x01\xbb\x97\x65\x01\x45\x00",
                         "ssh": b"SSH-2.0-x\r\n", "a PROXY header": b"PROXY TCP4 1.2.3.4 1.2.3.4 1 443\r\n",
                         "a zero byte": b"\0", "a line end first": b"\r\n" + records(hello_for(b"ok.test"))},
                        "the first bytes are not TLS")

    def test_whoever_says_nothing_is_not_heard_of(self):
        with self.only_questions_for("ok.test"):
            (outcome,) = self.attempts(ALLOWED, TCP, [tcp_case("ok.test", 443, end=True)])
        self.assertIn(outcome["error"], ("end", "ConnectionResetError"))
        self.assertEqual(self.denied, [])

    def test_the_servers_address_is_refused_whatever_the_hello_names(self):
        for to, v6 in ((OK4, False), (OTHER4, False), ("2a00:1450::14", True)):
            with self.subTest(to), self.only_questions_for():
                (outcome,) = self.attempts(ALLOWED, TCP, [tcp_case(to, 443, records(hello_for(b"ok.test")), v6=v6)])
                self.assertEqual(outcome["error"], "ConnectionRefusedError")
                self.assertEqual([(d["protocol"], d["address"], d["port"]) for d in self.denied], [("tcp", to, 443)])


class OtherPorts(TlsTest):
    def test_a_hello_first_is_judged_on_any_port(self):
        options = ["--allow", "ok.test:8443", "--allow", f"ok.test:{GREETING_PORT}"]
        self.pass_all({"itself": records(hello_for(b"ok.test"))}, options, port=8443)
        bad = {"no.test": records(hello_for(b"no.test")), "none": records(client_hello(None)),
               "in pieces": [records(hello_for(b"no.test"))[:9], records(hello_for(b"no.test"))[9:]]}
        self.lab.packets()
        outcomes = self.attempts(options, TCP, self.hello_cases(bad, 8443, gap=0.05))
        self.assertEqual([o["error"] for o in outcomes], ["ConnectionResetError"] * len(bad))
        self.assertEqual(self.attempts_denied("tls", "ok.test", 8443), len(bad))
        self.no_word_in(self.lab.packets())

    def test_a_hello_after_the_servers_greeting_is_judged_too(self):
        self.lab.packets()
        (outcome,) = self.attempts([f"--allow=ok.test:{GREETING_PORT}"], TCP, [
            tcp_case("ok.test", GREETING_PORT, "answer", records(hello_for(b"no.test")), want=b"\x16".hex())])
        self.assertEqual(outcome["error"], "ConnectionResetError")
        self.assertTrue(got(outcome).startswith(b"hello from "), outcome)
        self.assertEqual(self.attempts_denied("tls", "ok.test", GREETING_PORT), 1)
        self.no_word_in(self.lab.packets())

    def test_other_bytes_first_make_it_a_stream_to_that_name(self):
        """As STARTTLS does it: the stream is not judged any more, and goes to ok.test and nowhere else."""
        self.lab.packets()
        (outcome,) = self.attempts([f"--allow=ok.test:{GREETING_PORT}"], TCP, [
            tcp_case("ok.test", GREETING_PORT, "answer", b"STARTTLS\n", records(hello_for(b"no.test")), gap=0.05,
                     want=b"no.test".hex())])
        self.assertIsNone(outcome["error"], outcome)
        self.assertEqual({p[0] for p in self.lab.packets() if p[2] == GREETING_PORT}, {OK4})


class SharedEndpoints(TlsTest):
    def test_what_is_said_within_tls_is_not_seen(self):
        """The residue of `pinned`: a server of several names answers for whichever is asked for within."""
        out = self.run_in(["--allow", "ok.test"], "/usr/bin/python3", "-c", """
import socket, ssl
t = ssl.create_default_context(cafile="/ca.pem").wrap_socket(socket.create_connection(("ok.test", 443)), server_hostname="ok.test")
t.sendall(b"GET / HTTP/1.1\\r\\nHost: no.test\\r\\n\\r\\n")
print(t.recv(12).decode())
""")
        self.assertEqual(out, "HTTP/1.1 200")
        self.assertEqual(self.denied, [])


if __name__ == "__main__":
    unittest.main()
