# SPDX-License-Identifier: Apache-2.0
"""`atoll mcp` as a client of the Model Context Protocol sees it: tools, progress, cancelling, the end."""
import base64
import json
import os
import signal
import struct
import subprocess
import sys
import time
import unittest
import zlib

import support
from mcp_support import LEGACY, NEWEST, McpTest, modern_meta

import json_schema  # noqa: E402  # found by way of support

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
SECRET = "correct-horse-battery"


def text_of(result):
    """The first block of a result, which is what a model reads."""
    assert result["content"][0]["type"] == "text", result
    return result["content"][0]["text"]


def png():
    """A picture of one pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + chunk(b"IEND", b"")
    )


def python_bytes(data, path):
    """A command that writes these bytes inside."""
    coded = base64.b64encode(data).decode()
    return f"echo {coded} | base64 -d > {path}"


class Served(McpTest):
    """A server that has agreed on the newest revision with a handshake."""

    def legacy(self, *arguments, version=LEGACY, **options):
        server = self.serve(*arguments, **options)
        server.initialize(version)
        return server

    def tools(self, server):
        answer = server.request("tools/list")
        return {tool["name"]: tool for tool in answer["result"]["tools"]}

    def assert_structured(self, server, name, result):
        """The structured answer keeps to the schema that the tool was listed with."""
        self.assertFalse(result["isError"], result)
        json_schema.validate(result["structuredContent"], self.tools(server)[name]["outputSchema"])

    def assert_no_command(self, *words):
        """No process of these words is left inside of any sandbox of this test."""

        def none():
            return not [p for p in support.descendants() if all(w in str(p) for w in words)]

        support.wait_for(none, f"the end of {words}", support.GONE_S)


class Handshakes(Served):
    def test_every_revision_is_agreed_on(self):
        for version in REVISIONS:
            with self.subTest(version=version):
                server = self.serve()
                result = server.initialize(version)
                self.assertEqual(result["protocolVersion"], version)
                self.assertEqual(result["serverInfo"]["name"], "atoll")
                self.assertIn("disposable sandbox", result["instructions"])
                self.assertEqual(server.call("run_command", {"command": "echo hi"})["isError"], False)
                self.assert_ended_well(server)

    def test_another_revision_gets_the_newest(self):
        server = self.serve()
        self.assertEqual(server.initialize("1999-01-01")["protocolVersion"], LEGACY)
        self.assert_ended_well(server)

    def test_the_newest_revision_needs_no_handshake(self):
        server = self.serve()
        first = server.modern("tools/list")["result"]
        self.assertEqual(first["resultType"], "complete")
        self.assertIsInstance(first["ttlMs"], int)
        self.assertEqual(first["cacheScope"], "private")
        self.assertEqual(first["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "atoll")
        self.assertEqual(server.modern("tools/list")["result"], first)
        result = server.call("run_command", {"command": "echo hi"}, modern=True)
        self.assertEqual(text_of(result), "[stdout]\nhi")
        self.assertEqual(server.modern("tools/list")["result"], first)
        discovered = server.modern("server/discover")["result"]
        self.assertEqual(discovered["supportedVersions"], [NEWEST])
        self.assertIn("tools", discovered["capabilities"])
        self.assert_ended_well(server)

    def test_what_the_newest_revision_wants_to_know(self):
        server = self.serve()
        known = modern_meta()
        known["io.modelcontextprotocol/clientInfo"] = {"name": "x", "version": "1"}
        self.assertIn("result", server.request("tools/list", {"_meta": known}))
        for key in ("io.modelcontextprotocol/clientCapabilities",):
            lacking = {k: v for k, v in known.items() if k != key}
            self.assert_error(server.request("tools/list", {"_meta": lacking}), -32602, key)
        answer = server.request("tools/list", {"_meta": modern_meta("1900-01-01")})
        self.assert_error(answer, -32022)
        self.assertEqual(answer["error"]["data"], {"supported": [NEWEST], "requested": "1900-01-01"})
        for method in ("ping", "initialize", "logging/setLevel", "tasks/list", "subscriptions/listen"):
            self.assert_error(server.modern(method), -32601)
        self.assert_ended_well(server)


class Tools(Served):
    def test_four_tools_are_listed_in_one_order(self):
        server = self.legacy()
        listed = server.request("tools/list")["result"]["tools"]
        names = [tool["name"] for tool in listed]
        self.assertEqual(names, ["run_command", "read_file", "write_file", "list_directory"])
        for tool in listed:
            self.assertEqual(tool["inputSchema"]["type"], "object")
            self.assertEqual(tool["outputSchema"]["type"], "object")
            self.assertTrue(tool["title"])
            self.assertIn("readOnlyHint", tool["annotations"])
        self.assertTrue(listed[1]["annotations"]["readOnlyHint"])
        self.assertTrue(listed[0]["annotations"]["destructiveHint"])
        self.assertEqual(server.request("tools/list")["result"]["tools"], listed)
        self.assert_error(server.request("tools/list", {"cursor": "garbage"}), -32602)
        self.assert_ended_well(server)

    def test_others_are_there_when_they_are_asked_for(self):
        wanted = ["edit_file", "search_files", "start_process", "process_output", "stop_process"]
        options = [word for name in reversed(wanted) for word in ("--tool", name)]
        server = self.legacy(*options)
        self.assertEqual(list(self.tools(server))[4:], wanted)
        server.call("write_file", {"path": "a.txt", "content": "one\ntwo\n"})
        edit = {"path": "a.txt", "old_text": "two", "new_text": "three"}
        self.assert_structured(server, "edit_file", server.call("edit_file", edit))
        self.assertTrue(server.call("edit_file", edit)["isError"])
        found = server.call("search_files", {"text": "three"})
        self.assertIn("a.txt:2: three", text_of(found))
        self.assert_structured(server, "search_files", found)
        started = server.call("start_process", {"command": "echo up; sleep 300"})
        number = started["structuredContent"]["process"]
        said = server.call("process_output", {"process": number, "wait_seconds": 10})
        self.assertIn("up", said["structuredContent"]["output"])
        self.assertTrue(said["structuredContent"]["running"])
        stopped = server.call("stop_process", {"process": number})
        self.assertFalse(stopped["structuredContent"]["running"])
        self.assert_structured(server, "stop_process", stopped)
        self.assert_ended_well(server)

    def test_a_command_that_fails_is_an_answer(self):
        server = self.legacy()
        result = server.call("run_command", {"command": "echo out; echo err >&2; exit 3"})
        self.assertEqual(text_of(result), "[stdout]\nout\n[stderr]\nerr\n[exit code: 3]")
        facts = result["structuredContent"]
        self.assertEqual((facts["exit_code"], facts["stdout"], facts["stderr"]), (3, "out", "err"))
        self.assertEqual((facts["timed_out"], facts["truncated"]), (False, False))
        self.assertGreater(facts["remaining_seconds"], 3000)
        self.assert_structured(server, "run_command", result)
        self.assertNotIn("bytes_replaced", facts)
        binary = server.call("run_command", {"command": "printf 'a\\377b'"})
        self.assertEqual(binary["structuredContent"]["stdout"], "a\ufffdb")
        self.assertTrue(binary["structuredContent"]["bytes_replaced"])
        self.assert_structured(server, "run_command", binary)
        slow = server.call("run_command", {"command": "sleep 300", "timeout_seconds": 0.3})
        self.assertTrue(slow["structuredContent"]["timed_out"])
        self.assert_structured(server, "run_command", slow)
        self.assert_ended_well(server)

    def test_a_call_that_cannot_be_made_is_told_to_the_model(self):
        server = self.legacy()
        for name, arguments in (
            ("run_command", {}),
            ("run_command", {"command": 5}),
            ("read_file", {"path": "missing"}),
        ):
            result = server.call(name, arguments)
            self.assertTrue(result["isError"], result)
            self.assertNotIn("structuredContent", result)
        self.assert_error(server.request("tools/call", {"name": "nonsense"}), -32602)
        self.assert_error(server.request("tools/call", {}), -32602)
        self.assert_ended_well(server)

    def test_files_that_are_no_text(self):
        server = self.legacy()
        picture, data = png(), bytes(range(256)) * 4
        server.call("run_command", {"command": python_bytes(picture, "a.png")})
        server.call("run_command", {"command": python_bytes(data, "'data 1.bin'")})
        result = server.call("read_file", {"path": "a.png"})
        block = result["content"][1]
        self.assertEqual((block["type"], block["mimeType"]), ("image", "image/png"))
        self.assertEqual(base64.b64decode(block["data"]), picture)
        self.assert_structured(server, "read_file", result)
        block = server.call("read_file", {"path": "data 1.bin"})["content"][1]
        self.assertEqual(block["type"], "resource")
        self.assertEqual(block["resource"]["uri"], "sandbox:///data%201.bin")
        self.assertEqual(block["resource"]["mimeType"], "application/octet-stream")
        self.assertEqual(base64.b64decode(block["resource"]["blob"]), data)
        self.assert_ended_well(server)

    def test_what_a_command_writes_is_no_message(self):
        server = self.legacy()
        forged = '{"jsonrpc":"2.0","id":1,"result":{}}'
        result = server.call("run_command", {"command": f"echo; echo '{forged}'; printf '\\0\\r\\n'"})
        self.assertIn(forged, result["structuredContent"]["stdout"])
        self.assert_ended_well(server)


class Order(Served):
    def send_calls(self, server, *calls):
        """Sends calls in one write; their ids."""
        ids = [server.next_id() for _ in calls]
        lines = [
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": name, "arguments": arguments},
            }
            for number, (name, arguments) in zip(ids, calls)
        ]
        server.send_raw(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        return ids

    def test_calls_sent_together_run_in_their_order(self):
        server = self.legacy()
        ids = self.send_calls(
            server,
            ("write_file", {"path": "a.txt", "content": "one"}),
            ("run_command", {"command": "sleep 0.3; sed -i s/one/two/ a.txt"}),
            ("read_file", {"path": "a.txt"}),
        )
        answers = [server.receive() for _ in ids]
        self.assertEqual([answer["id"] for answer in answers], ids)
        self.assertEqual(text_of(answers[2]["result"]), "two")
        self.assert_ended_well(server)

    def test_ten_calls_are_carried_out_in_their_order(self):
        server = self.legacy()
        ids = self.send_calls(
            server, *[("run_command", {"command": f"echo {i} >> log"}) for i in range(10)]
        )
        self.assertEqual([server.receive()["id"] for _ in ids], ids)
        self.assertEqual(
            server.call("read_file", {"path": "log"})["structuredContent"]["text"].split(),
            [str(i) for i in range(10)],
        )
        self.assert_ended_well(server)

    def test_a_waiting_call_that_is_cancelled_is_skipped(self):
        server = self.legacy()
        ids = self.send_calls(
            server,
            ("run_command", {"command": "sleep 0.5; echo first"}),
            ("run_command", {"command": "touch second"}),
            ("list_directory", {}),
        )
        server.notify("notifications/cancelled", {"requestId": ids[1]})
        self.assertIn("first", text_of(server.answer(ids[0])["result"]))
        self.assertEqual(text_of(server.answer(ids[2])["result"]), "(empty)")
        self.assertTrue(server.silent())
        self.assert_ended_well(server)

    def test_a_running_command_that_is_cancelled_is_killed(self):
        for modern in (False, True):
            with self.subTest(modern=modern):
                server = self.serve() if modern else self.legacy()
                params = {"name": "run_command", "arguments": {"command": "sleep 301 & sleep 302"}}
                if modern:
                    params["_meta"] = modern_meta()
                server.send(
                    {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params}
                )
                support.wait_for(
                    lambda: any("302" in str(p) for p in support.descendants()), "the command"
                )
                server.notify("notifications/cancelled", {"requestId": "slow", "reason": "bored"})
                self.assert_no_command("302")
                self.assert_no_command("301")
                result = server.call("run_command", {"command": "echo next"}, modern=modern)
                self.assertEqual(text_of(result), "[stdout]\nnext")
                self.assertTrue(server.silent())
                self.assert_ended_well(server)

    def test_cancelling_what_is_not_there_changes_nothing(self):
        server = self.legacy()
        for params in ({"requestId": 77}, {"requestId": None}, {}, None):
            server.notify("notifications/cancelled", params)
        self.assertEqual(server.request("ping")["result"], {})
        self.assert_ended_well(server)


class Progress(Served):
    def run_with_token(self, server, command, token, **more):
        """The notifications of a call, and its result."""
        params = {
            "name": "run_command",
            "arguments": {"command": command},
            "_meta": {"progressToken": token} | more,
        }
        number = server.next_id()
        server.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        told = []
        while "id" not in (message := server.receive()):
            self.assertEqual(message["method"], "notifications/progress")
            told.append(message["params"])
        self.assertEqual(message["id"], number)
        return told, message["result"]

    def test_new_output_is_told_while_a_command_runs(self):
        server = self.legacy()
        command = "for i in 1 2 3; do echo line $i; sleep 0.7; done"
        for token in ("a token", 7):
            told, result = self.run_with_token(server, command, token)
            self.assertEqual(result["structuredContent"]["stdout"], "line 1\nline 2\nline 3")
            self.assertTrue(all(params["progressToken"] == token for params in told))
            numbers = [params["progress"] for params in told]
            self.assertEqual(numbers, sorted(set(numbers)))
            heard = "".join(params.get("message", "") for params in told)
            self.assertTrue(heard.startswith("line 1\nline 2\n"), told)
            self.assertAlmostEqual(told[-1]["total"], 60, delta=15)
        self.assertTrue(server.silent())
        self.assert_ended_well(server)

    def test_a_silent_command_is_told_of_too(self):
        server = self.legacy()
        told, _ = self.run_with_token(server, "sleep 2.5", "x")
        self.assertGreaterEqual(len(told), 1)
        self.assertFalse([params for params in told if "message" in params])
        self.assert_ended_well(server)

    def test_without_a_token_nothing_is_told(self):
        server = self.legacy()
        server.call("run_command", {"command": "for i in 1 2 3; do echo $i; sleep 0.5; done"})
        self.assertEqual(server.kept, [])
        self.assert_ended_well(server)

    def test_secrets_are_masked_in_what_is_told(self):
        server = self.legacy("--env", f"TOKEN={SECRET}")
        half = len(SECRET) // 2
        command = (
            f"printf %s '{SECRET[:half]}'; sleep 0.6; echo '{SECRET[half:]}'; sleep 0.6; "
            'echo "$TOKEN" >&2; sleep 0.6'
        )
        told, result = self.run_with_token(server, command, "x")
        whole = json.dumps([told, result])
        self.assertNotIn(SECRET, whole)
        self.assertNotIn(SECRET[:half], "".join(p.get("message", "") for p in told))
        self.assertIn("***", "".join(p.get("message", "") for p in told))
        self.assert_ended_well(server)


class Secrets(Served):
    def test_values_of_variables_appear_nowhere(self):
        server = self.legacy("--env", f"TOKEN={SECRET}", "--tool", "search_files")
        server.request("logging/setLevel", {"level": "debug"})
        calls = (
            ("run_command", {"command": "echo $TOKEN; echo $TOKEN >&2; exit 1"}),
            ("run_command", {"command": "yes $TOKEN | head -c 300000"}),
            ("write_file", {"path": SECRET, "content": SECRET}),
            ("read_file", {"path": SECRET}),
            ("read_file", {"path": f"missing-{SECRET}"}),
            ("list_directory", {}),
            ("list_directory", {"path": f"{SECRET}/x"}),
            ("search_files", {"text": "horse"}),
            ("run_command", {"command": 5, SECRET: SECRET}),
            ("run_command", {"command": "printf '\\0\\377%s' $TOKEN > bin"}),
            ("read_file", {"path": "bin"}),
        )
        for name, arguments in calls:
            result = server.call(name, arguments)
            coded = json.dumps(result)
            self.assertNotIn(SECRET, coded)
            for block in result["content"][1:]:
                data = block.get("data") or block["resource"]["blob"]
                self.assertNotIn(SECRET.encode(), base64.b64decode(data))
        self.assertNotIn(SECRET, json.dumps([json.loads(line) for line in server.kept]))
        server.kept.clear()
        self.assert_ended_well(server)


class Logging(Served):
    def levels(self, server):
        told = [json.loads(line) for line in server.kept]
        server.kept.clear()
        return [m["params"]["level"] for m in told if m.get("method") == "notifications/message"]

    def test_only_what_was_asked_for_is_logged(self):
        server = self.legacy()
        self.assert_error(server.request("logging/setLevel", {"level": "loud"}), -32602)
        self.assertEqual(server.request("logging/setLevel", {"level": "warning"})["result"], {})
        server.call("run_command", {"command": "true"})
        self.assertEqual(self.levels(server), [])
        for keeper in support.keepers():
            os.kill(keeper.pid, signal.SIGKILL)
        support.wait_for(lambda: not support.inits(), "the end of the sandbox")
        result = server.call("run_command", {"command": "true"})
        self.assertTrue(result["structuredContent"]["replaced"])
        self.assertIn("replaced", text_of(result))
        self.assertEqual(self.levels(server), ["warning"])
        self.assert_ended_well(server)

    def test_modern_requests_ask_each_for_themselves(self):
        server = self.serve()
        server.call("run_command", {"command": "true"}, modern=True)
        self.assertEqual(self.levels(server), [])
        meta = modern_meta() | {"io.modelcontextprotocol/logLevel": "loud"}
        self.assert_error(server.request("tools/list", {"_meta": meta}), -32602)
        self.assert_ended_well(server)


class Ends(Served):
    def test_a_sandbox_is_made_by_the_first_call_and_goes_with_the_client(self):
        server = self.legacy()
        server.request("tools/list")
        self.assertEqual(support.keepers(), [])
        server.call("run_command", {"command": "true"})
        self.assertEqual(len(support.keepers()), 1)
        self.assert_ended_well(server)
        self.assertEqual(support.keepers(), [])

    def test_calls_that_were_read_are_answered_after_the_end_of_input(self):
        server = self.legacy()
        server.send(
            {
                "jsonrpc": "2.0",
                "id": "last",
                "method": "tools/call",
                "params": {"name": "run_command", "arguments": {"command": "sleep 0.5; echo done"}},
            }
        )
        self.assertEqual(server.end(), (0, ""))
        self.assertEqual(text_of(server.answer("last")["result"]), "[stdout]\ndone")

    def test_a_call_that_takes_longer_is_ended(self):
        server = self.legacy()
        server.send(
            {
                "jsonrpc": "2.0",
                "id": "last",
                "method": "tools/call",
                "params": {"name": "run_command", "arguments": {"command": "sleep 303"}},
            }
        )
        self.assertEqual(server.end(), (0, ""))
        self.assertEqual(server.kept, [])
        self.assert_gone()

    def test_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number=number):
                server = self.legacy()
                server.call("run_command", {"command": "true"})
                server.client.send_signal(number)
                self.assertEqual(server.wait(), (128 + number, ""))
                self.assert_gone()

    def test_a_killed_server_leaves_nothing(self):
        server = self.legacy()
        server.call("run_command", {"command": "sleep 304 >/dev/null 2>&1 &"})
        server.client.kill()
        server.client.wait()
        self.assert_gone()

    def test_a_sandbox_whose_life_is_over_is_followed_by_another(self):
        server = self.legacy("--lifetime", "2s")
        server.call("write_file", {"path": "a", "content": "x"})
        support.wait_for(lambda: not support.inits(), "the end of the sandbox")
        result = server.call("list_directory")
        self.assertTrue(result["isError"])
        self.assertIn("lifetime is over", text_of(result))
        self.assertIn("next call gets a new, empty sandbox", text_of(result))
        self.assertEqual(text_of(server.call("list_directory")).splitlines()[0], "(empty)")
        self.assert_ended_well(server)


class Exports(Served):
    def setUp(self):
        super().setUp()
        self.place = self.folder()

    def exporting(self, *options, name="out.txt"):
        return self.legacy("--export", f"out.txt=file://{self.place}/{name}", *options)

    def write(self, server, text="result"):
        server.call("write_file", {"path": "out.txt", "content": text})

    def published(self):
        return {path.name: path.read_text() for path in self.place.iterdir()}

    def test_files_leave_when_the_client_goes(self):
        server = self.exporting()
        self.write(server)
        self.assertEqual(self.published(), {})
        self.assert_ended_well(server)
        self.assertEqual(self.published(), {"out.txt": "result"})

    def test_without_a_call_nothing_was_promised(self):
        server = self.exporting()
        server.request("tools/list")
        self.assert_ended_well(server)
        self.assertEqual(self.published(), {})

    def test_what_is_missing_is_a_failure_told_in_one_line(self):
        server = self.exporting()
        server.call("run_command", {"command": "true"})
        status, errors = server.end()
        self.assertEqual(status, 125)
        self.assertTrue(errors.startswith("atoll: "), errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("out.txt", errors)

    def test_a_run_that_was_cut_publishes_nothing(self):
        server = self.exporting()
        self.write(server)
        server.send(
            {
                "jsonrpc": "2.0",
                "id": "last",
                "method": "tools/call",
                "params": {"name": "run_command", "arguments": {"command": "sleep 305"}},
            }
        )
        status, errors = server.end()
        self.assertEqual((status, errors.count("\n")), (125, 1), errors)
        self.assertIn("nothing was published", errors)
        self.assertEqual(self.published(), {})

    def test_a_signal_publishes_nothing(self):
        server = self.exporting()
        self.write(server)
        server.client.terminate()
        self.assertEqual(server.wait(), (128 + signal.SIGTERM, ""))
        self.assertEqual(self.published(), {})

    def test_a_client_that_is_killed_publishes_nothing(self):
        script = (
            "import json, subprocess, sys, os, time\n"
            "p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE,\n"
            "                     stderr=open(os.devnull, 'w'))\n"
            "def ask(i, method, params):\n"
            "    p.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': i, 'method': method,\n"
            "                              'params': params}).encode() + b'\\n')\n"
            "    p.stdin.flush()\n"
            "    p.stdout.readline()\n"
            f"ask(1, 'initialize', {{'protocolVersion': '{LEGACY}'}})\n"
            "ask(2, 'tools/call', {'name': 'write_file',\n"
            "                      'arguments': {'path': 'out.txt', 'content': 'x'}})\n"
            "print('ready', flush=True)\n"
            "time.sleep(60)\n"
        )
        client = subprocess.Popen(
            [
                *(sys.executable, "-c", script, support.ATOLL, "mcp"),
                *("--export", f"out.txt=file://{self.place}/out.txt"),
            ],
            stdout=subprocess.PIPE,
        )
        self.addCleanup(client.stdout.close)
        self.assertEqual(client.stdout.readline(), b"ready\n")
        client.kill()
        client.wait()
        self.assert_gone()
        self.assertEqual(self.published(), {})

    def test_the_model_can_publish_earlier(self):
        server = self.exporting("--tool", "publish_exports")
        early = server.call("publish_exports")
        self.assertTrue(early["isError"], early)
        self.write(server)
        result = server.call("publish_exports")
        self.assert_structured(server, "publish_exports", result)
        self.assertEqual(self.published(), {"out.txt": "result"})
        link = result["content"][1]
        self.assertEqual((link["type"], link["size"]), ("resource_link", 6))
        self.assertEqual(link["uri"], f"file://{self.place}/out.txt")
        self.assertIn("notifications/resources/list_changed", str(server.kept))
        server.kept.clear()
        listed = server.request("resources/list")["result"]["resources"]
        self.assertEqual([resource["uri"] for resource in listed], [link["uri"]])
        contents = server.request("resources/read", {"uri": link["uri"]})["result"]["contents"]
        self.assertEqual(contents[0]["text"], "result")
        self.write(server, "better")
        self.assert_ended_well(server)
        self.assertEqual(self.published(), {"out.txt": "better"})

    def test_background_processes_are_ended_before_files_leave(self):
        server = self.exporting("--tool", "start_process")
        writing = "while :; do echo line >> out.txt; done"
        for command in (writing, f"setsid sh -c '{writing}' & sleep 306"):
            server.call("start_process", {"command": command})
        server.call("run_command", {"command": "while [ ! -s out.txt ]; do sleep 0.05; done"})
        self.assert_ended_well(server)
        self.assertRegex(self.published()["out.txt"], r"^(line\n)+$")

    def test_older_revisions_know_no_links(self):
        server = self.serve(
            *("--export", f"out.txt=file://{self.place}/out.txt", "--tool", "publish_exports")
        )
        server.initialize("2025-03-26")
        self.write(server)
        result = server.call("publish_exports")
        self.assertEqual([block["type"] for block in result["content"]], ["text"])
        server.kept.clear()
        self.assert_ended_well(server)

    def test_nothing_but_what_was_published_can_be_read(self):
        (self.place / "secret").write_text("not published")
        server = self.exporting("--tool", "publish_exports")
        self.write(server)
        server.call("publish_exports")
        server.kept.clear()
        base = f"file://{self.place}"
        for uri in (
            f"{base}/secret",
            f"{base}/out.txt/../secret",
            f"{base}/out.txt/%2e%2e/secret",
            f"{base}//out.txt",
            f"{base}/./out.txt",
            "file:///etc/passwd",
            "file:///etc/../etc/passwd",
            "sandbox:///out.txt",
            "",
        ):
            answer = server.modern("resources/read", {"uri": uri})
            self.assert_error(answer, -32602)
            self.assertEqual(answer["error"]["data"], {"uri": uri})
            self.assert_error(server.request("resources/read", {"uri": uri}), -32002)
        self.assert_ended_well(server)

    def test_id_and_time_make_places_of_their_own(self):
        for _ in range(2):
            server = self.exporting(name="{id}-{time}.txt")
            self.write(server)
            self.assert_ended_well(server)
        names = sorted(self.published())
        self.assertEqual(len(names), 2)
        for name in names:
            self.assertRegex(name, r"^sb-[a-z2-7]{26}-\d{8}T\d{6}Z\.txt$")

    def test_without_exports_there_are_no_resources(self):
        server = self.serve()
        self.assertNotIn("resources", server.initialize()["capabilities"])
        self.assert_error(server.request("resources/list"), -32601)
        self.assert_error(server.request("prompts/list"), -32601)
        self.assert_ended_well(server)


if __name__ == "__main__":
    unittest.main()
