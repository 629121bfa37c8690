# SPDX-License-Identifier: Apache-2.0
"""What goes over the standard streams of `atoll mcp`, byte by byte: framing, what is broken, ids,
batches, the two eras of the protocol, floods, and ends without a goodbye.
"""
import collections
import json
import re
import threading
import time
import unittest

from mcp_support import LEGACY, META, NEWEST, McpTest, modern_meta
from support import GONE_S, descendants, wait_for

PARSE, INVALID, UNKNOWN, PARAMS, VERSION = -32700, -32600, -32601, -32602, -32022
MIB = 1 << 20
PEAK_BYTES = 200 * MIB  # of a server that was sent more than it keeps
PING = b'{"jsonrpc":"2.0","id":"after","method":"ping"}\n'
SLEEP = ("sleep", "61")  # that nobody else runs


def request(id, method="ping", **params):
    """A line with an id that is written as it is given."""
    head = b'{"jsonrpc":"2.0","id":%s,"method":"%s"' % (id, method.encode())
    return head + (b',"params":' + json.dumps(params).encode() if params else b"") + b"}\n"


class RawTest(McpTest):
    """A test that sends bytes."""

    def assert_refused(self, server, data, code, legacy=False):
        """The line is answered by one error without an id, and the server goes on."""
        server.send_raw(data + b"\n")
        answer = server.receive()
        self.assert_error(answer, code)
        if legacy:
            self.assertIsNone(answer["id"], answer)
        else:
            self.assertNotIn("id", answer)
        server.send_raw(PING)
        self.assertEqual(server.receive(), {"jsonrpc": "2.0", "id": "after", "result": {}})


class Lines(RawTest):
    """Where a message ends."""

    def test_blank_lines_are_passed_over(self):
        server = self.serve()
        server.send_raw(b"\n\n \t\n\r\n" + request(b"1") + b"\n")
        self.assertEqual(server.receive()["id"], 1)
        self.assert_ended_well(server)

    def test_a_carriage_return_before_the_end_is_tolerated(self):
        server = self.serve()
        server.send_raw(request(b"1").replace(b"\n", b"\r\n"))
        self.assertEqual(server.receive(), {"jsonrpc": "2.0", "id": 1, "result": {}})
        self.assert_ended_well(server)

    def test_a_line_may_come_in_pieces(self):
        server = self.serve()
        for byte in request(b"1"):
            server.send_raw(bytes([byte]))
            time.sleep(0.001)
        self.assertEqual(server.receive()["id"], 1)
        server.send_raw(request(b"2")[:20])
        self.assertTrue(server.silent())
        server.send_raw(request(b"2")[20:] + request(b"3")[:20])
        self.assertEqual(server.receive()["id"], 2)
        server.send_raw(request(b"3")[20:])
        self.assertEqual(server.receive()["id"], 3)
        self.assert_ended_well(server)

    def test_several_lines_may_come_at_once(self):
        server = self.serve()
        server.send_raw(b"".join(request(b"%d" % i) for i in range(500)))
        answers = [server.receive() for _ in range(500)]
        self.assertEqual(sorted(a["id"] for a in answers), list(range(500)))
        self.assert_ended_well(server)

    def test_half_a_line_at_the_end_is_no_message(self):
        server = self.serve()
        server.send_raw(request(b"1") + request(b"2")[:-3])
        self.assertEqual(server.receive()["id"], 1)
        self.assertEqual(server.end()[0], 0)
        self.assertEqual([m for m in map(json.loads, server.kept) if "result" in m], [])

    def test_an_answer_is_one_line(self):
        server = self.serve()
        server.initialize()
        server.send(
            {"jsonrpc": "2.0", "id": "a\n\u2028", "method": "tools/call"}
            | {"params": {"name": "run_command", "arguments": {"command": "printf 'a\\n\\nb'"}}}
        )
        answer = server.receive()
        self.assertEqual(answer["id"], "a\n\u2028")
        self.assertIn("a\n\nb", answer["result"]["content"][0]["text"])
        self.assert_ended_well(server)

    def test_a_line_of_megabytes_is_read(self):
        server = self.serve()
        server.send_raw(request(b"1", "ping", _meta={"text": "\u00e9\n" * (5 * MIB), "list": [1] * MIB}))
        self.assertEqual(server.receive(), {"jsonrpc": "2.0", "id": 1, "result": {}})
        self.assert_ended_well(server)

    def overlong(self, legacy):
        server = self.serve()
        if legacy:
            server.initialize()
        piece = b"x" * MIB
        server.send_raw(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"')
        for _ in range(99):
            server.send_raw(piece)
        self.assert_refused(server, piece + b'"}}', INVALID, legacy)
        self.assertLess(server.peak_bytes(), PEAK_BYTES)
        self.assert_ended_well(server)

    def test_a_line_of_100_mib_is_dropped_as_it_comes(self):
        self.overlong(legacy=False)

    def test_a_line_of_100_mib_is_dropped_after_a_handshake_too(self):
        self.overlong(legacy=True)

    def test_an_overlong_line_may_be_the_last_of_all(self):
        server = self.serve()
        for _ in range(65):
            server.send_raw(b"x" * MIB)
        self.assertEqual(server.end()[0], 0)
        answers = [json.loads(line) for line in server.kept]
        self.assertLessEqual([a["error"]["code"] for a in answers], [INVALID])


class Broken(RawTest):
    """Lines that hold no message."""

    TEXTS = [
        b"{",
        b"nonsense",
        b"{} {}",
        b"[1,]",
        b"{'jsonrpc':'2.0'}",
        b'{"a":01}',
        b'{"a":NaN}',
        b'{"a":"\t"}',
        b'{"a":"\\x41"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xed\xa0\x80"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xc3"}}',
        b'{"jsonrpc":"2.0","id":1,\0"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\0',
        b'\0{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"pi\0ng"}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        "{}".encode("utf-16"),
        b"[" * 10000,
        b"[" * 10000 + b"]" * 10000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 10000 + b"1" + b"}" * 10001,
    ]

    def test_they_are_answered_without_an_id(self):
        server = self.serve()
        for text in self.TEXTS:
            with self.subTest(text[:60]):
                self.assert_refused(server, text, PARSE)
        self.assert_ended_well(server)

    def test_they_are_answered_with_the_id_null_after_a_handshake(self):
        server = self.serve()
        server.initialize()
        for text in self.TEXTS:
            with self.subTest(text[:60]):
                self.assert_refused(server, text, PARSE, legacy=True)
        self.assert_ended_well(server)

    def test_values_that_are_no_messages_are_refused(self):
        server = self.serve()
        for text in (b"1", b'"ping"', b"null", b"true", b"{}", b'{"jsonrpc":"2.0"}', b"[]", b"[{}]"):
            with self.subTest(text):
                self.assert_refused(server, text, INVALID)
        self.assert_ended_well(server)

    def test_what_is_wrong_with_a_request_is_told_under_its_id(self):
        server = self.serve()
        for text, code in [
            (b'{"id":7,"method":"ping"}', INVALID),
            (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', INVALID),
            (b'{"jsonrpc":2.0,"id":7,"method":"ping"}', INVALID),
            (b'{"jsonrpc":"2.0","id":7}', INVALID),
            (b'{"jsonrpc":"2.0","id":7,"method":null}', INVALID),
            (b'{"jsonrpc":"2.0","id":7,"method":["ping"]}', INVALID),
            (b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}', INVALID),
            (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', PARAMS),
            (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":null}', PARAMS),
        ]:
            with self.subTest(text):
                server.send_raw(text + b"\n")
                answer = server.receive()
                self.assert_error(answer, code)
                self.assertEqual(answer["id"], 7)
        self.assert_ended_well(server)

    def test_half_a_surrogate_pair_in_arguments_is_for_the_model_to_mend(self):
        server = self.serve()
        call = (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_command",'
            b'"arguments":{"command":"echo \\ud800"},"_meta":%s}}\n'
        )
        server.send_raw(call % (1, json.dumps(modern_meta()).encode()))
        self.assert_told(server.answer(1))
        server.initialize()
        server.send_raw(call % (99, b"{}"))
        self.assert_told(server.answer(99))
        self.assert_ended_well(server)

    def assert_told(self, answer):
        self.assertIs(answer["result"]["isError"], True, answer)
        self.assertIn("surrogate", answer["result"]["content"][0]["text"])

    # What may stand where a string, an object, or whatever else is expected.
    STRANGE = [
        b"null", b"true", b"1e400", b"-1", b"[]", b"{}", b'""', b'"\\u0000"', b'"\\ud800"', b'"ping\\u0000"',
        b'"' + b"x" * 100000 + b'"', b"[" * 500 + b"]" * 500, b'{"":{"":null,"":null}}', b"9" * 400,
    ]
    REQUESTS = [
        ("initialize", ["protocolVersion", "capabilities", "clientInfo"]),
        ("logging/setLevel", ["level"]),
        ("tools/list", ["cursor", "_meta"]),
        ("tools/call", ["name", "arguments", "_meta"]),
        ("resources/list", ["cursor"]),
        ("resources/read", ["uri"]),
        ("server/discover", ["_meta"]),
    ]

    def strange_requests(self):
        """Requests of both eras, each with a strange value in one place."""
        good = {name: b'"read_file"' for name in ("name", "uri", "level")} | {"arguments": b"{}"}
        meta = {key: json.dumps(value).encode() for key, value in modern_meta().items()}
        for method, members in self.REQUESTS:
            for strange in self.STRANGE:
                for member in members:
                    params = {m: good.get(m, b"{}") for m in members} | {member: strange}
                    yield method, params
                for key in (*meta, "progressToken", f"{META}logLevel"):
                    yield method, {m: good.get(m, b"{}") for m in members} | {"_meta": _object(meta | {key: strange})}

    def test_strange_values_are_answered_wherever_they_stand(self):
        server = self.serve()
        n = 0
        for method, params in self.strange_requests():
            n += 1
            line = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n' % (n, method.encode(), _object(params))
            server.send_raw(line)
            answer = server.receive()
            self.assertEqual(answer["id"], n, line[:500])
            self.assertEqual(len({"result", "error"} & set(answer)), 1, line[:500])
            if "error" in answer:
                self.assertIn(answer["error"]["code"], (INVALID, UNKNOWN, PARAMS, VERSION), line[:500])
                self.assertTrue(answer["error"]["message"].isprintable(), answer)
        self.assertGreater(n, 400)
        self.assertEqual(server.end(), (0, ""))

    def test_notifications_and_responses_are_passed_over(self):
        server = self.serve()
        for text in [
            b'{"jsonrpc":"2.0","method":"notifications/unknown"}',
            b'{"jsonrpc":"2.0","method":"notifications/unknown","params":{"a":1}}',
            b'{"jsonrpc":"2.0","method":"notifications/unknown","params":null}',
            b'{"jsonrpc":"2.0","method":"tools/list"}',
            b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"run_command","arguments":{"command":"x"}}}',
            b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}',
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
            b'{"jsonrpc":"2.0","id":1,"result":{}}',
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}',
            b'{"id":1.5,"result":null}',
        ]:
            server.send_raw(text + b"\n" + PING)
            self.assertEqual(server.receive()["id"], "after", text)
        self.assert_ended_well(server)
        self.assertEqual(descendants(), [])


def _object(members):
    """An object of values that are written already."""
    return b"{" + b",".join(json.dumps(k).encode() + b":" + v for k, v in members.items()) + b"}"


class Ids(RawTest):
    """By what an answer is known."""

    WRITTEN = [
        b"0",
        b"-0",
        b"-17",
        b"1" + b"0" * 40,
        b'""',
        b'"1"',
        b'"\\u0061\\/\\n"',
        '"\u00e9\u4e2d"'.encode(),
        b'"' + b"i" * 4094 + b'"',
    ]

    def test_an_id_is_echoed_as_it_was_written(self):
        server = self.serve()
        for id in self.WRITTEN:
            server.send_raw(request(id))
            self.assertRegex(server.receive_line(), b'"id": ?' + _literal(id) + b"[,}]", id)
        self.assert_ended_well(server)

    def test_a_call_echoes_it_too(self):
        server = self.serve()
        for id in self.WRITTEN:
            arguments = {"path": "f", "content": "x"}
            server.send_raw(
                request(id, "tools/call", name="write_file", arguments=arguments, _meta=modern_meta())
            )
            line = server.receive_line()
            self.assertRegex(line, b'"id": ?' + _literal(id) + b"[,}]", id)
            self.assertFalse(json.loads(line)["result"].get("isError", False), line)
        self.assert_ended_well(server)

    def test_what_is_no_id_is_refused(self):
        wrong = [b"null", b"1.5", b"1.0", b"1e3", b"true", b"false", b"{}", b"[]", b'"' + b"i" * 4095 + b'"']
        fresh, legacy = self.serve(), self.serve()
        legacy.initialize()
        for id in wrong:
            with self.subTest(id[:40]):
                self.assert_refused(fresh, request(id)[:-1], INVALID)
                self.assert_refused(legacy, request(id)[:-1], INVALID, legacy=True)
        self.assert_ended_well(fresh)
        self.assert_ended_well(legacy)

    def test_the_same_id_may_not_be_under_way_twice(self):
        server = self.serve()
        server.initialize()
        call = {"name": "run_command", "arguments": {"command": "sleep 1; echo first"}}
        server.send_raw(request(b"500", "tools/call", **call))
        for line in (request(b"500"), request(b"500", "tools/list"), request(b"500", "tools/call", **call)):
            server.send_raw(line)
            answer = server.receive()
            self.assertEqual(answer["id"], 500)
            self.assert_error(answer, INVALID)
        server.send_raw(request(b'"500"'))
        self.assertEqual(server.receive(), {"jsonrpc": "2.0", "id": "500", "result": {}})
        self.assertIn("first", server.receive()["result"]["content"][0]["text"])
        server.send_raw(request(b"500"))  # free again
        self.assertEqual(server.receive(), {"jsonrpc": "2.0", "id": 500, "result": {}})
        self.assert_ended_well(server)


def _literal(text):
    """A regular expression for these bytes."""
    return b"".join(b"\\x%02x" % byte for byte in text)


class Batches(RawTest):
    """Arrays of messages, which one revision alone has."""

    def test_no_other_revision_takes_them(self):
        batch = b"[" + request(b"1")[:-1] + b"]"
        self.assert_refused(self.serve(), batch, INVALID)
        for version in ("2024-11-05", "2025-06-18", LEGACY):
            server = self.serve()
            self.assertEqual(server.initialize(version)["protocolVersion"], version)
            self.assert_refused(server, batch, INVALID, legacy=True)

    def batching(self):
        server = self.serve()
        self.assertEqual(server.initialize("2025-03-26")["protocolVersion"], "2025-03-26")
        return server

    def test_a_batch_is_answered_by_one_array(self):
        server = self.batching()
        call = {"name": "run_command", "arguments": {"command": "echo called"}}
        server.send(
            [
                {"jsonrpc": "2.0", "id": "a", "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/unknown"},
                {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": call},
                {"jsonrpc": "2.0", "id": 1, "method": "no/such"},
                {"jsonrpc": "2.0", "id": 5, "result": {}},
                {"jsonrpc": "2.0", "id": "c", "method": "ping"},
            ]
        )
        answers = {a["id"]: a for a in server.receive()}
        self.assertEqual(set(answers), {"a", "b", "c", 1})
        self.assertEqual(answers["a"], {"jsonrpc": "2.0", "id": "a", "result": {}})
        self.assertIn("called", answers["b"]["result"]["content"][0]["text"])
        self.assert_error(answers[1], UNKNOWN)
        self.assert_ended_well(server)

    def test_a_batch_does_not_hold_up_what_comes_behind_it(self):
        server = self.batching()
        call = {"name": "run_command", "arguments": {"command": "sleep 1"}}
        server.send([{"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": call}])
        server.send_raw(PING)
        self.assertEqual(server.receive()["id"], "after")
        self.assertEqual([a["id"] for a in server.receive()], ["slow"])
        self.assert_ended_well(server)

    def test_notifications_alone_are_answered_by_nothing(self):
        server = self.batching()
        server.send([{"jsonrpc": "2.0", "method": "notifications/unknown"}] * 3)
        server.send_raw(PING)
        self.assertEqual(server.receive()["id"], "after")
        self.assert_ended_well(server)

    def test_an_empty_batch_is_refused_by_one_error(self):
        server = self.batching()
        for text in (b"[]", b" [ ] "):
            self.assert_refused(server, text, INVALID, legacy=True)
        self.assert_ended_well(server)

    def test_each_element_that_is_none_is_told_of(self):
        server = self.batching()
        initialize = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        server.send(
            [
                1,
                [],
                {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": initialize},
                {"jsonrpc": "2.0", "id": "p", "method": "ping"},
            ]
        )
        answers = server.receive()
        self.assertEqual(len(answers), 4)
        refused = [a for a in answers if a["id"] is None]
        self.assertEqual([a["error"]["code"] for a in refused], [INVALID] * 2)
        by_id = {a["id"]: a for a in answers}
        self.assert_error(by_id["i"], INVALID)
        self.assertEqual(by_id["p"]["result"], {})
        self.assert_ended_well(server)

    def test_a_batch_of_millions_is_not_answered_by_gigabytes(self):
        server = self.batching()
        server.send_raw(b"[" + b"1," * 3_000_000 + b"1]\n")
        answer = server.receive()
        for refused in answer if isinstance(answer, list) else [answer]:
            self.assert_error(refused, INVALID)
        server.send_raw(PING)
        self.assertEqual(server.receive()["id"], "after")
        self.assertLess(server.peak_bytes(), PEAK_BYTES)
        self.assert_ended_well(server)

    def test_a_broken_batch_is_one_error(self):
        server = self.batching()
        self.assert_refused(server, b"[" + request(b"1")[:-1], PARSE, legacy=True)
        self.assert_ended_well(server)


class Eras(RawTest):
    """With a handshake, without one, and both at once."""

    def test_before_a_handshake_little_is_answered(self):
        server = self.serve()
        self.assertEqual(server.request("ping")["result"], {})
        self.assertEqual(server.request("logging/setLevel", {"level": "info"})["result"], {})
        for method in ("tools/list", "tools/call", "no/such", "resources/list", "completion/complete"):
            answer = server.request(method, {"name": "run_command", "arguments": {"command": "x"}})
            self.assert_error(answer, PARAMS, "initialize", f"{META}protocolVersion")
        self.assert_error(server.request("server/discover"), PARAMS, f"{META}protocolVersion")
        self.assertIn("serverInfo", server.initialize())
        self.assertTrue(server.request("tools/list")["result"]["tools"])
        self.assert_ended_well(server)

    def test_methods_that_nobody_has_are_unknown(self):
        server = self.serve()
        for ask in (server.modern, self.handshaken(server).request):
            for method in ("no/such", "tools/List", "tools/call\0", "x" * 5000, "prompts/list", "\ud83d\ude00"):
                self.assert_error(ask(method, {}), UNKNOWN)
        self.assert_ended_well(server)

    def handshaken(self, server):
        server.initialize()
        return server

    def test_the_newest_revision_lacks_what_was_removed(self):
        server = self.serve()
        for method in ("ping", "initialize", "logging/setLevel", "resources/subscribe"):
            self.assert_error(server.modern(method), UNKNOWN)
        server.initialize()  # which changes nothing for those
        self.assert_error(server.modern("ping"), UNKNOWN)
        self.assert_ended_well(server)

    def test_the_newest_revision_wants_to_know_what_a_client_can(self):
        server = self.serve()
        for able in (None, [], "x", 1):
            meta = {f"{META}protocolVersion": NEWEST}
            if able is not None:
                meta[f"{META}clientCapabilities"] = able
            answer = server.request("tools/list", {"_meta": meta})
            self.assert_error(answer, PARAMS, f"{META}clientCapabilities")
        self.assert_ended_well(server)

    def test_another_version_is_refused_with_those_there_are(self):
        server = self.serve()
        for version in ("1900-01-01", "2999-01-01", "", "\u00e9"):
            answer = server.request("tools/list", {"_meta": modern_meta(version)})
            self.assert_error(answer, VERSION)
            self.assertEqual(answer["error"]["data"]["requested"], version)
            self.assertIn(NEWEST, answer["error"]["data"]["supported"])
        for version in (5, None, {}):
            answer = server.request("tools/list", {"_meta": modern_meta(version)})
            self.assert_error(answer, PARAMS, f"{META}protocolVersion")
        self.assert_ended_well(server)

    def assert_modern(self, answer):
        result = answer["result"]
        self.assertEqual(result["resultType"], "complete")
        server = result["_meta"][f"{META}serverInfo"]
        self.assertTrue(server["name"] and server["version"], server)
        return result

    def test_results_of_the_newest_revision_say_what_they_are(self):
        server = self.serve()
        self.assertIn(NEWEST, self.assert_modern(server.modern("server/discover"))["supportedVersions"])
        self.assertTrue(self.assert_modern(server.modern("tools/list"))["tools"])
        call = {"name": "run_command", "arguments": {"command": "echo hello"}}
        result = self.assert_modern(server.modern("tools/call", call))
        self.assertIn("hello", result["content"][0]["text"])
        self.assert_modern(server.modern("tools/call", call | {"arguments": {}}))
        self.assert_ended_well(server)

    def test_both_eras_live_side_by_side(self):
        server = self.serve()
        count = "n=$(cat n || echo 0); echo $((n + 1)) >n; cat n"
        call = {"name": "run_command", "arguments": {"command": count}}
        texts = []
        server.initialize()
        for ask in (server.request, server.modern, server.request, server.modern):
            answer = ask("tools/call", call)
            self.assertEqual("resultType" in answer["result"], ask == server.modern)
            texts.append(re.findall(r"^\d+$", answer["result"]["content"][0]["text"], re.MULTILINE))
        self.assertEqual(texts, [["1"], ["2"], ["3"], ["4"]])  # of one sandbox
        self.assertEqual(server.request("ping")["result"], {})
        self.assert_error(server.modern("ping"), UNKNOWN)
        self.assert_ended_well(server)


class Floods(RawTest):
    """More than can be worked off at once."""

    N = 10000

    def flood(self, server, lines, wait_s=0):
        """Writes all of it while somebody else reads; the ids that were answered, with how often."""
        failures = []

        def write():
            try:
                for at in range(0, len(lines), 100):
                    server.send_raw(b"".join(lines[at : at + 100]))
            except (AssertionError, OSError) as error:
                failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            time.sleep(wait_s)
            answers = [server.receive() for _ in lines]
        finally:
            writer.join()
        self.assertEqual(failures, [])
        return answers

    def assert_all_answered(self, server, answers):
        self.assertEqual(set(collections.Counter(a["id"] for a in answers).values()), {1})
        self.assertEqual({a["id"] for a in answers}, set(range(self.N)))
        server.send_raw(PING)
        self.assertEqual(server.receive()["id"], "after")
        self.assertLess(server.peak_bytes(), PEAK_BYTES)
        self.assert_ended_well(server)

    def calls(self):
        """Every tenth for the sandbox, the others for nobody."""
        write = {"name": "write_file", "arguments": {"path": "f", "content": "x"}}
        nobody = {"name": "no_such_tool", "arguments": {}}
        return [
            request(b"%d" % i, "tools/call", **(nobody if i % 10 else write)) for i in range(self.N)
        ]

    def test_every_call_is_answered_once(self):
        server = self.serve()
        server.initialize()
        answers = self.flood(server, self.calls())
        for answer in answers:
            if answer["id"] % 10:
                self.assert_error(answer, PARAMS)
            elif answer["result"].get("isError"):
                self.assertIn("too many", answer["result"]["content"][0]["text"])
        self.assertFalse(next(a for a in answers if a["id"] == 0)["result"].get("isError"))
        self.assert_all_answered(server, answers)

    def test_every_call_is_answered_once_to_who_reads_late(self):
        server = self.serve()
        server.initialize()
        self.assert_all_answered(server, self.flood(server, self.calls(), wait_s=2))

    def test_long_answers_wait_for_who_reads_late(self):
        server = self.serve()
        lines = [request(b"%d" % i, "tools/list", _meta=modern_meta()) for i in range(self.N)]
        self.assert_all_answered(server, self.flood(server, lines, wait_s=2))

    def test_who_reads_nothing_is_not_waited_for_at_the_end(self):
        server = self.serve()
        lines = [request(b"%d" % i, "tools/list", _meta=modern_meta()) for i in range(2000)]
        server.send_raw(b"".join(lines[:20]))
        server.close_input()
        wait_for(lambda: server.client.poll() is not None, "the end of a server that is not read", 30)


class Ends(RawTest):
    """Clients that go while a command runs."""

    def sleeping(self):
        server = self.serve()
        server.initialize()
        call = {"name": "run_command", "arguments": {"command": " ".join(SLEEP)}}
        server.send_raw(request(b"1", "tools/call", **call))
        server.client.inside(*SLEEP)
        return server

    def assert_all_gone(self, server):
        wait_for(lambda: server.client.poll() is not None, "the end of the server", 20)
        self.assert_gone(GONE_S)

    def test_the_end_of_input_ends_a_command(self):
        server = self.sleeping()
        self.assertEqual(server.end(20)[0], 0)
        self.assert_all_gone(server)

    def test_a_client_that_reads_no_more_ends_the_server(self):
        server = self.sleeping()
        server.client.stdout.close()
        self.assert_all_gone(server)

    def test_a_client_that_vanishes_ends_the_server(self):
        server = self.sleeping()
        server.client.stdout.close()
        server.close_input()
        self.assert_all_gone(server)

    def test_calls_that_were_read_are_answered_before_the_end(self):
        server = self.serve()
        server.initialize()
        call = {"name": "run_command", "arguments": {"command": "sleep 0.3; echo done"}}
        server.send_raw(request(b"1", "tools/call", **call) + request(b"2"))
        self.assertEqual(server.end()[0], 0)
        answers = {m["id"]: m for m in map(json.loads, server.kept)}
        self.assertIn("done", answers[1]["result"]["content"][0]["text"])
        self.assertEqual(answers[2]["result"], {})


if __name__ == "__main__":
    unittest.main()
