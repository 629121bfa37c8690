# SPDX-License-Identifier: Apache-2.0
"""Port 80 of a name: which requests get out, whatever else is around them. See egress_lab and egress_attempts."""
import unittest

from egress_attempts import ODD_NAMES, OK4, OTHER4, PYTHON, TCP, AttemptsTest, expected_to_run, got, tcp_case

ALLOWED = ["--allow", "ok.test:80", "--allow", "four.test:80", "--allow", "*.wild.test:80"]
GOOD = b"GET /good HTTP/1.1\r\nHost: ok.test\r\n\r\n"
OTHER = b"GET /smuggled HTTP/1.1\r\nHost: no.test\r\n\r\n"


def request(*lines, method=b"GET / HTTP/1.1", host=b"ok.test", body=b""):
    """A request with more lines, or without Host for host None."""
    lines = [method, *([b"Host: " + host] if host is not None else []), *lines]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class HttpTest(AttemptsTest):
    def cases(self, cases, to, **more):
        return [tcp_case(to, 80, *(pieces if isinstance(pieces, list) else [pieces]), **more)
                for pieces in cases.values()]

    def pass_all(self, cases, to="ok.test", **more):
        """Each is answered by the server."""
        more = {"want": b"\r\n\r\n".hex(), **more}
        outcomes = self.attempts(ALLOWED, TCP, self.cases(cases, to, **more))
        for label, outcome in zip(cases, outcomes):
            with self.subTest(label):
                self.assertTrue(got(outcome).startswith(b"HTTP/1.1 200 OK\r\n"), outcome)
        self.assertEqual(self.denied, [])

    def refuse_all(self, cases, reason, to="ok.test", **more):
        """Each is cut, is told of, and nobody outside hears of it."""
        with self.only_questions_for(to):
            outcomes = self.attempts(ALLOWED, TCP, self.cases(cases, to, **more))
        for label, outcome in zip(cases, outcomes):
            with self.subTest(label):
                self.assertEqual((outcome["error"], outcome["got"]), ("ConnectionResetError", ""))
        self.assertEqual(self.attempts_denied("http", to, 80), len(cases), self.denied)
        self.assertTrue(any(reason in d["reason"] for d in self.denied), self.denied)

    def cut_after(self, cases, **more):
        """Each begins with what may go on; then it is cut and told of, and of the rest nothing arrives."""
        seen = len(self.lab.notes())
        self.lab.packets()
        outcomes = self.attempts(ALLOWED, TCP, self.cases(cases, "ok.test", want=b"never".hex(), **more))
        for label, outcome in zip(cases, outcomes):
            with self.subTest(label):
                self.assertEqual(outcome["error"], "ConnectionResetError")
        self.assertEqual(self.attempts_denied("http", "ok.test", 80), len(cases), self.denied)
        packets = self.lab.packets()
        self.assertEqual({p[0] for p in packets if p[2] == 80} - {OK4, "2a00:1450::14"}, set())
        self.no_word_in(packets, (b"no.test", b"smuggled"))
        self.assertEqual([n for n in self.lab.notes()[seen:] if "smuggled" in str(n) or "no.test" in str(n)], [])


class Hosts(HttpTest):
    def test_the_name_in_each_of_its_forms_passes(self):
        self.pass_all({host: request(host=host) for host in (b"ok.test", b"OK.TEST", b"ok.test.", b"ok.test:80",
                                                             b"  ok.test\t")})  # blanks around are no part of it
        self.pass_all({"absolute": request(method=b"GET http://ok.test/x HTTP/1.1"),
                       "absolute, port": request(method=b"GET http://OK.test:80/x HTTP/1.1"),
                       "of HTTP/1.0": request(method=b"GET / HTTP/1.0"),
                       "a server as a whole": request(method=b"OPTIONS * HTTP/1.1"),
                       "a field in lower case": b"GET / HTTP/1.1\r\nhost:ok.test\r\n\r\n"})
        self.pass_all({"below a wildcard": request(host=b"a.wild.test")}, to="a.wild.test")

    def test_no_other_reading_of_a_host_passes(self):
        self.refuse_all({name: request(host=name) for name in ODD_NAMES}, "request")

    def test_no_other_reading_of_a_target_passes(self):
        self.refuse_all({name: request(method=b"GET http://" + name + b"/ HTTP/1.1") for name in ODD_NAMES}, "request")

    def test_target_and_host_must_be_the_same(self):
        self.refuse_all({"another": request(method=b"GET http://no.test/ HTTP/1.1"),
                         "both another": request(method=b"GET http://no.test/ HTTP/1.1", host=b"no.test"),
                         "listed elsewhere": request(method=b"GET http://four.test/ HTTP/1.1"),
                         "https": request(method=b"GET https://ok.test/ HTTP/1.1"),
                         "ftp": request(method=b"GET ftp://ok.test/ HTTP/1.1"),
                         "no scheme": request(method=b"GET ok.test/ HTTP/1.1"),
                         "two slashes": request(method=b"GET //no.test/ HTTP/1.1", host=b"no.test"),
                         "a user": request(method=b"GET http://ok.test@no.test/ HTTP/1.1"),
                         "a user before it": request(method=b"GET http://no.test@ok.test/ HTTP/1.1"),
                         "another port": request(method=b"GET http://ok.test:8080/ HTTP/1.1"),
                         "a blank": request(method=b"GET http://no.test/ http://ok.test/ HTTP/1.1"),
                         "a fragment": request(method=b"GET http://ok.test#@no.test/ HTTP/1.1"),
                         "a backslash": request(method=b"GET http://no.test\\@ok.test/ HTTP/1.1")}, "request")

    def test_ports_and_users_in_host_do_not_pass(self):
        self.refuse_all({host: request(host=host) for host in (
            b"ok.test:443", b"ok.test:8080", b"ok.test:0", b"ok.test:080", b"ok.test:", b"ok.test:80:80", b"ok.test:+80",
            b"ok.test:99999", b"ok.test: 80", b"user@ok.test", b"user:pw@ok.test", b"ok.test/", b"http://ok.test",
            b"ok.test, no.test", b"ok.test no.test")}, "request")

    def test_another_listed_host_does_not_pass_at_this_ones_address(self):
        self.refuse_all({"four.test": request(host=b"four.test")},
                        "for the Host 'four.test', and the address is that of 'ok.test'")
        self.refuse_all({name: request(host=name) for name in (b"b.wild.test", b"wild.test", b"evilwild.test")},
                        "and the address is that of 'a.wild.test'", to="a.wild.test")

    def test_one_host_and_no_more(self):
        self.refuse_all({"none": request(host=None), "empty": request(host=b""),
                         "two": request(b"Host: no.test"), "two, the other way round": request(b"Host: ok.test", host=b"no.test"),
                         "the same twice": request(b"Host: ok.test"),
                         "one folded": request(b" Host: no.test"), "one continued": request(b"\tno.test"),
                         "a blank before the colon": request(b"Host : no.test"),
                         "a blank first": b"GET / HTTP/1.1\r\n Host: ok.test\r\n\r\n",
                         "a zero byte in the field": request(b"Ho\0st: no.test"),
                         "a zero byte in another": request(b"X: a\0b"),
                         "a lone return": request(b"X: a\rHost: no.test"),
                         "dropped by Connection": request(b"Connection: Host"),
                         "none of HTTP/1.0": request(method=b"GET / HTTP/1.0", host=None),
                         "of HTTP/0.9": b"GET /\r\n\r\n"}, "request")

    def test_addresses_are_no_host_of_a_name(self):
        self.refuse_all({host: request(host=host) for host in (
            OK4.encode(), OTHER4.encode(), b"[2a00:1450::14]", b"[::ffff:93.184.215.14]", b"198.18.0.2", b"1572394766",
            b"0x5d.0xb8.0xd7.0xe", b"localhost", b"127.0.0.1:80")}, "request")


class Framing(HttpTest):
    def test_bodies_pass_by_their_length(self):
        self.pass_all({"length": request(b"Content-Length: 5", method=b"POST / HTTP/1.1", body=b"hello"),
                       "of a request that is quoted": request(b"Content-Length: %d" % len(OTHER), body=OTHER,
                                                              method=b"POST / HTTP/1.1"),
                       "zero": request(b"Content-Length: 0")})

    def test_a_body_that_two_servers_would_end_differently_is_refused(self):
        lines = {
            "CL.TE": [b"Content-Length: 6", b"Transfer-Encoding: chunked"],
            "TE.CL": [b"Transfer-Encoding: chunked", b"Content-Length: 4"],
            "TE.TE": [b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"],
            "TE.TE, one unknown": [b"Transfer-Encoding: chunked", b"Transfer-Encoding: x"],
            "unknown coding": [b"Transfer-Encoding: xchunked"], "two codings": [b"Transfer-Encoding: chunked, identity"],
            "a coding before": [b"Transfer-Encoding: gzip, chunked"], "no coding": [b"Transfer-Encoding:"],
            "quoted": [b'Transfer-Encoding: "chunked"'], "vertical tab": [b"Transfer-Encoding:\x0bchunked"],
            "blank before the colon": [b"Transfer-Encoding : chunked"], "underscore": [b"Transfer_Encoding: chunked"],
            "folded": [b"Transfer-Encoding:", b" chunked"], "folded elsewhere": [b"X: y", b"\tTransfer-Encoding: chunked"],
            "bare line end": [b"X: y\nTransfer-Encoding: chunked"], "bare return": [b"X: y\rTransfer-Encoding: chunked"],
            "two lengths": [b"Content-Length: 5", b"Content-Length: 6"],
            "the same length twice": [b"Content-Length: 5", b"Content-Length: 5"], "a list": [b"Content-Length: 5, 5"],
            "a sign": [b"Content-Length: +5"], "negative": [b"Content-Length: -1"], "hexadecimal": [b"Content-Length: 0x5"],
            "octal": [b"Content-Length: 05"], "too large": [b"Content-Length: 18446744073709551617"],
            "blank within": [b"Content-Length: 5 5"], "no digits": [b"Content-Length:"],
            "blank before the colon of length": [b"Content-Length : 5"], "underscore of length": [b"Content_Length: 5"],
            "dropped by Connection": [b"Transfer-Encoding: chunked", b"Connection: Transfer-Encoding"],
            "no colon": [b"Transfer-Encoding"], "no name": [b": chunked"],
        }
        self.refuse_all({label: request(*more, method=b"POST / HTTP/1.1", body=b"0\r\n\r\n" + OTHER)
                         for label, more in lines.items()}, "request")
        self.refuse_all({"chunks of HTTP/1.0": request(b"Transfer-Encoding: chunked", method=b"POST / HTTP/1.0",
                                                       body=b"0\r\n\r\n" + OTHER)}, "a body whose length")

    def test_lines_end_with_return_and_line_feed(self):
        self.refuse_all({"line feeds alone": b"GET / HTTP/1.1\nHost: ok.test\n\n" + OTHER,
                         "one of them": b"GET / HTTP/1.1\r\nHost: ok.test\n\r\n" + OTHER,
                         "an empty line first": b"\r\n" + GOOD,
                         "a line feed in the target": request(method=b"GET /\nHost: no.test HTTP/1.1"),
                         "two blanks": request(method=b"GET  / HTTP/1.1"), "tabs": request(method=b"GET\t/\tHTTP/1.1"),
                         "a blank at its end": request(method=b"GET / HTTP/1.1 "),
                         "a control byte": request(method=b"GET /\x01 HTTP/1.1"),
                         "HTTP/1.2": request(method=b"GET / HTTP/1.2"), "HTTP/2.0": request(method=b"GET / HTTP/2.0"),
                         "http/1.1": request(method=b"GET / http/1.1"), "HTTP/01.1": request(method=b"GET / HTTP/01.1")},
                        "request")

    def test_chunks_that_two_servers_would_end_differently_are_cut(self):
        head = request(b"Transfer-Encoding: chunked", method=b"POST /good HTTP/1.1")
        self.cut_after({label: [head, chunks + OTHER] for label, chunks in {
            "0x": b"0x5\r\nhello\r\n0\r\n\r\n", "a sign": b"+5\r\nhello\r\n0\r\n\r\n", "a blank": b" 5\r\nhello\r\n0\r\n\r\n",
            "a blank behind": b"5 \r\nhello\r\n0\r\n\r\n", "too large": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
            "no size": b"\r\nhello\r\n0\r\n\r\n", "a bare line end": b"5\nhello\r\n0\r\n\r\n",
            "one in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n", "data too long": b"5\r\nhelloX\r\n0\r\n\r\n",
            "data ended by a line feed": b"5\r\nhello\n0\r\n\r\n", "a Host behind": b"0\r\nHost: no.test\r\n\r\n",
            "a length behind": b"0\r\nContent-Length: 5\r\n\r\n", "a folded line behind": b"0\r\nX: y\r\n z\r\n\r\n",
        }.items()}, gap=0.05)


class Streams(HttpTest):
    def test_requests_one_after_another_pass(self):
        self.pass_all({"at once": GOOD * 3, "one by one": [GOOD, GOOD, GOOD], "in pieces": [GOOD[:20], GOOD[20:] + GOOD + GOOD]},
                      gap=0.05, want=b"HTTP/1.1 200".hex(), times=3)

    def test_a_later_request_for_another_host_is_cut(self):
        post = request(b"Content-Length: 2", method=b"POST /good HTTP/1.1", body=b"ab")
        chunked = request(b"Transfer-Encoding: chunked", method=b"POST /good HTTP/1.1", body=b"2\r\nab\r\n0\r\n\r\n")
        self.cut_after({"at once": GOOD + OTHER, "later": [GOOD, OTHER], "after the answer": [GOOD, "answer", OTHER],
                        "behind a body": post + OTHER, "behind chunks": [chunked, OTHER],
                        "in pieces": [GOOD, OTHER[:10], OTHER[10:30], OTHER[30:]],
                        "the tenth": GOOD * 9 + OTHER,
                        "by its target": GOOD + request(method=b"GET http://no.test/smuggled HTTP/1.1"),
                        "by its port": GOOD + request(method=b"GET /smuggled HTTP/1.1", host=b"ok.test:8080"),
                        "CONNECT": GOOD + request(method=b"CONNECT no.test:443 HTTP/1.1"),
                        "late upgrade": GOOD + request(b"Connection: upgrade", b"Upgrade: websocket",
                                                       method=b"GET /smuggled HTTP/1.1"),
                        "no HTTP": GOOD + b"\x16\x03\x01smuggled",
                        "not said to be kept": request(b"Connection: close", method=b"GET /good HTTP/1.1") + OTHER}, gap=0.05)

    def test_a_head_that_never_ends_is_refused(self):
        self.refuse_all({"too long a head": request(*[b"X-%d: " % i + b"a" * 900 for i in range(80)]),
                         "too long a line": request(b"X: " + b"a" * 70000), "too long a method": b"A" * 100 + GOOD,
                         "an end within": GOOD[:-2]}, "request", end=True)

    def test_tunnels_by_connect_are_refused(self):
        def connects(targets):
            return {t: request(method=b"CONNECT " + t + b" HTTP/1.1") for t in targets}

        self.refuse_all(connects([b"ok.test:80", b"ok.test:443", b"no.test:443", OTHER4.encode() + b":443",
                                  b"[2a04:4e42::69]:443"]), "asks for a tunnel by CONNECT")
        self.refuse_all(connects(name + b":443" for name in ODD_NAMES), "request")  # some of them are no request at all

    def test_other_protocols_are_refused(self):
        self.refuse_all({"HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), "SOCKS 5": b"\x05\x01\x00",
                         "SOCKS 4a": b"\x04\x01\x01\xbb\0\0\0\1\0no.test\0", "TLS": b"\x16\x03\x01\x02\x00\x01", "a zero byte": b"\0",
                         "a PROXY header": b"PROXY TCP4 1.2.3.4 1.2.3.4 1 80\r\n" + GOOD,
                         "ssh": b"SSH-2.0-x\r\n"}, "request")


class Upgrades(HttpTest):
    WEBSOCKET = [b"Connection: keep-alive, Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"]

    def test_a_websocket_is_a_stream_once_the_server_agrees(self):
        (outcome,) = self.attempts(ALLOWED, TCP, [tcp_case("ok.test", 80, request(*self.WEBSOCKET), "answer",
                                                           b"\x81\x05hello", want=b"hello".hex())])
        self.assertIsNone(outcome["error"], outcome)
        self.assertTrue(got(outcome).startswith(b"HTTP/1.1 101 "))
        self.assertEqual(self.denied, [])

    def test_bytes_behind_an_upgrade_wait_for_the_servers_word(self):
        """A server that agrees gets them; one that does not is sent requests, and those are judged."""
        refused = request(*self.WEBSOCKET, method=b"GET /refuse HTTP/1.1")
        self.cut_after({"at once": refused + OTHER, "later": [refused, "answer", OTHER]}, gap=0.05)
        (outcome,) = self.attempts(ALLOWED, TCP, [tcp_case("ok.test", 80, request(*self.WEBSOCKET) + b"\x81\x05hello",
                                                           want=b"hello".hex())])
        self.assertIsNone(outcome["error"], outcome)
        (outcome,) = self.attempts(ALLOWED, TCP, [tcp_case("ok.test", 80, refused, "answer", GOOD, want=b"200 OK".hex(), times=2)])
        self.assertIsNone(outcome["error"], outcome)

    def test_an_offer_of_http2_passes_and_http2_does_not(self):
        """Java's client offers it with each request; a server that takes it waits for the preface (RFC 9113, section 3.4)."""
        offer = request(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9) + b"smuggled"
        self.pass_all({"alone": offer, "and requests behind it": offer + GOOD}, want=b"HTTP/1.1 200 OK".hex())
        self.cut_after({"at once": offer + preface, "later": [offer, "answer", preface], "in pieces": [offer, preface[:3], preface[3:]],
                        "another host behind it": [offer, OTHER]}, gap=0.05)

    def test_other_upgrades_are_refused(self):
        self.refuse_all({"h2c behind websocket": request(b"Connection: Upgrade", b"Upgrade: websocket, h2c"),
                         "two of them": request(*self.WEBSOCKET, b"Upgrade: h2c"),
                         "two of them, the other way round": request(b"Upgrade: h2c", *self.WEBSOCKET),
                         "h2": request(b"Connection: Upgrade", b"Upgrade: h2"),
                         "TLS": request(b"Connection: Upgrade", b"Upgrade: TLS/1.0"),
                         "not said to be one": request(b"Upgrade: websocket"),
                         "with a body": request(*self.WEBSOCKET, b"Content-Length: 5", body=b"hello"),
                         "of another method": request(*self.WEBSOCKET, method=b"POST / HTTP/1.1"),
                         "of HTTP/1.0": request(*self.WEBSOCKET, method=b"GET / HTTP/1.0"),
                         "for another host": request(*self.WEBSOCKET, host=b"no.test")}, "request")


PROXY = """
import socket, threading, sys
# A proxy of a program inside: whatever it is asked for, it connects to.
def copy(a, b):
    try:
        while chunk := a.recv(65536): b.sendall(chunk)
    except OSError: pass
    for s in (a, b):
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def serve(c):
    f = c.makefile("rb")
    host, port = f.readline().split()[1].decode().rsplit(":", 1)
    while f.readline().strip(): pass
    try:
        s = socket.create_connection((host, int(port)), 10)
    except OSError as e:
        return c.sendall(b"HTTP/1.1 502 %s\\r\\n\\r\\n" % type(e).__name__.encode()), c.close()
    c.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
    threading.Thread(target=copy, args=(c, s), daemon=True).start()
    copy(s, c)
l = socket.create_server(("127.0.0.1", 3128))
def forever():
    while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
threading.Thread(target=forever, daemon=True).start()
import os, subprocess
for place, say in (("ok.test:80", b"GET / HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n"),
                   ("ok.test:80", b"GET / HTTP/1.1\\r\\nHost: no.test\\r\\n\\r\\n"),
                   ("SECRET.no.test:443", b""), ("151.101.1.69:443", b""), ("ok.test:22", b"")):
    c = socket.create_connection(("127.0.0.1", 3128))
    c.sendall(b"CONNECT %s HTTP/1.1\\r\\n\\r\\n" % place.encode())
    answer = c.recv(4096)
    if answer.startswith(b"HTTP/1.1 200"):
        try:
            c.sendall(say)
            answer = c.recv(15)
        except OSError: answer = b""
    print(place, answer.strip().decode() or "cut")
"""


class ProxiesInside(HttpTest):
    def test_a_proxy_inside_reaches_no_more_than_its_clients(self):
        with self.only_questions_for("ok.test", secrets=()):
            out = self.run_in(["--allow", "ok.test"], PYTHON, "-c", PROXY)
            self.assertEqual(out.split("\n")[2:4], ["SECRET.no.test:443 HTTP/1.1 502 gaierror",
                                                    "151.101.1.69:443 HTTP/1.1 502 ConnectionRefusedError"])
        self.lab.packets()
        out = self.run_in(ALLOWED, PYTHON, "-c", PROXY)
        self.assertEqual(out.split("\n"), ["ok.test:80 HTTP/1.1 200 OK", "ok.test:80 cut",
                                           "SECRET.no.test:443 HTTP/1.1 502 gaierror",
                                           "151.101.1.69:443 HTTP/1.1 502 ConnectionRefusedError",
                                           "ok.test:22 HTTP/1.1 502 ConnectionRefusedError"])
        self.no_word_in(self.lab.packets())
        for protocol, name, port in (("http", "ok.test", 80), ("dns", "secret.no.test", 0), ("tcp", "ok.test", 22)):
            self.assertGreater(self.attempts_denied(protocol, name, port), 0, self.denied)

    def test_proxy_variables_lead_nowhere_else(self):
        expected_to_run(self, "curl")
        for proxy, refused in (("http://no.test:3128", ("dns", "no.test", "", 0)),
                               ("http://151.101.1.69:3128", ("tcp", "", OTHER4, 3128)),
                               ("http://ok.test:3128", ("tcp", "ok.test", "198.18.0.2", 3128)),
                               ("socks5h://151.101.1.69:1080", ("tcp", "", OTHER4, 1080))):
            with self.subTest(proxy), self.only_questions_for("ok.test"):
                out = self.run_in(["--allow", "ok.test", "--env", f"ALL_PROXY={proxy}"], "sh", "-c",
                                  "curl -sS -o /dev/null https://ok.test/ 2>/dev/null || echo failed")
                self.assertEqual(out, "failed")
                self.assertIn(refused, [(d["protocol"], d["name"], d["address"], d["port"]) for d in self.denied])


if __name__ == "__main__":
    unittest.main()
