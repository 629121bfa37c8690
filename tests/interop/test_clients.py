# SPDX-License-Identifier: Apache-2.0
"""`atoll mcp` by the SDKs of others, two languages and two generations of each, which judge every answer themselves:
by the schemas of the protocol, and by the tools' own schemas of what they answer.

Names in brackets are rows of the scenario list that a test stands for.
"""
import base64
import unittest

import clients
from clients import Conversation, Error, SandboxTest, descendants, wait_for

FOUR = ["run_command", "read_file", "write_file", "list_directory"]
MORE = ["edit_file", "search_files", "start_process", "process_output", "stop_process", "publish_exports"]
SECRET = "tok-0123456789"


def setUpModule():
    clients.need_clients()


class Session:
    """One conversation for all tests of a class: a server with every tool, a secret and an export."""

    @classmethod
    def setUpClass(cls):
        cls.host = SandboxTest()
        cls.addClassCleanup(cls.host.doCleanups)
        SandboxTest.setUp(cls.host)
        cls.work = cls.host.folder()
        cls.out = cls.work / "report.txt"
        options = [word for name in MORE for word in ("--tool", name)]
        options += ["-e", f"API_TOKEN={SECRET}", "--export", f"report.txt=file://{cls.out}"]
        cls.client = Conversation(cls.driver(), options, cls.work)
        cls.addClassCleanup(cls.client.end)

    @classmethod
    def tearDownClass(cls):
        if cls.client.close() != 0:
            raise AssertionError(f"the client ended badly: {cls.client.complaint()}")
        cls.host._check_nothing_is_left()

    def setUp(self):
        pass  # the sandbox stays from test to test; what it left is looked at when the conversation is over

    # What it is and has

    def test_the_client_and_the_server_agree(self):
        hello = self.client.hello
        self.assertEqual(hello["protocol"], self.revision)
        self.assertEqual(hello["server"]["name"], "atoll")
        self.assertIn("sandbox", hello["instructions"])
        self.assertLessEqual({"tools", "resources", "logging"}, set(hello["capabilities"]))

    def test_the_tools_are_listed_in_order_with_all_that_a_client_shows(self):
        tools = self.client.tools()
        self.assertEqual([tool["name"] for tool in tools], FOUR + MORE)
        self.assertEqual(tools, self.client.tools())
        for tool in tools:
            with self.subTest(tool["name"]):
                self.assertTrue(tool["title"] and tool["description"])
                self.assertEqual((tool["inputSchema"]["type"], tool["outputSchema"]["type"]), ("object", "object"))
                for schema in tool["inputSchema"].get("properties", {}).values():
                    self.assertTrue(schema["description"])
        reading = {tool["name"] for tool in tools if tool["annotations"].get("readOnlyHint")}
        self.assertLessEqual({"read_file", "list_directory", "search_files"}, reading)
        self.assertFalse(reading & {"run_command", "write_file", "edit_file"})

    # Calls (E, K, L, T)

    def test_a_command_that_fails_is_an_answer_with_its_exit_code(self):
        result = self.client.call("run_command", command="echo out; echo err >&2; exit 3")
        self.assertFalse(result["isError"])
        self.assertEqual(result["content"][0]["text"], "[stdout]\nout\n[stderr]\nerr\n[exit code: 3]")
        facts = result["structuredContent"]
        self.assertEqual((facts["exit_code"], facts["stdout"], facts["stderr"]), (3, "out", "err"))

    def test_arguments_that_are_wrong_are_told_to_the_model(self):
        for arguments in ({}, {"command": 5}):
            with self.subTest(arguments):
                result = self.client.call("run_command", **arguments)
                self.assertTrue(result["isError"])
                self.assertIn("arguments of run_command were refused", result["content"][0]["text"])

    def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(self):
        with self.assertRaises(Error) as caught:
            self.client.call("format_disk")
        self.assertEqual(caught.exception.code, -32602, str(caught.exception))

    def test_files_are_written_read_and_listed(self):
        text = "one\ntwo ✓\n"
        wrote = self.client.call("write_file", path="files/a.txt", content=text)
        self.assertEqual(wrote["structuredContent"]["bytes"], len(text.encode()))
        self.assertEqual(self.client.call("read_file", path="files/a.txt")["structuredContent"]["text"], "one\ntwo ✓")
        listed = self.client.call("list_directory", path="files")["structuredContent"]
        self.assertEqual((listed["entries"], listed["omitted"]), ([{"name": "a.txt", "directory": False}], 0))
        missing = self.client.call("read_file", path="files/b.txt")
        self.assertTrue(missing["isError"])
        self.assertIn("files/b.txt", missing["content"][0]["text"])

    def test_an_image_comes_as_one_and_other_bytes_as_a_resource(self):
        self.client.sh(f"echo {base64.b64encode(clients.PNG).decode()} | base64 -d >pixel.png; printf 'a\\0\\377' >raw").text()
        image = self.client.call("read_file", path="pixel.png")["content"][-1]
        self.assertEqual((image["type"], image["mimeType"]), ("image", "image/png"))
        self.assertEqual(base64.b64decode(image["data"]), clients.PNG)
        raw = self.client.call("read_file", path="raw")["content"][-1]
        self.assertEqual(raw["type"], "resource")
        self.assertEqual(base64.b64decode(raw["resource"]["blob"]), b"a\0\xff")

    def test_a_secret_is_masked_in_both_forms(self):
        result = self.client.call("run_command", command="echo $API_TOKEN ${#API_TOKEN}")
        self.assertEqual(result["content"][0]["text"], f"[stdout]\n*** {len(SECRET)}")
        self.assertNotIn(SECRET, str(result))

    def test_files_are_edited_and_searched(self):
        self.client.call("write_file", path="code/a.py", content="x = 1\ny = 2\n")
        self.assertEqual(self.client.call("edit_file", path="code/a.py", old_text="y = 2", new_text="y = 3")
                         ["structuredContent"]["line"], 2)
        self.assertTrue(self.client.call("edit_file", path="code/a.py", old_text="z", new_text="")["isError"])
        found = self.client.call("search_files", text="= 3", name="*.py", path="code")["structuredContent"]
        self.assertTrue(found["complete"])
        self.assertEqual([(match["line"], match["text"]) for match in found["matches"]], [(2, "y = 3")])

    def test_a_process_goes_on_in_the_background(self):
        number = self.client.call("start_process", command="echo up; exec sleep 4711")["structuredContent"]["process"]
        seen = self.client.call("process_output", process=number, wait_seconds=10)["structuredContent"]
        self.assertEqual((seen["running"], seen["output"].strip()), (True, "up"))
        ended = self.client.call("stop_process", process=number)["structuredContent"]
        self.assertFalse(ended["running"])
        self.client.gone("sleep 4711")

    # Progress

    def test_new_output_comes_as_progress(self):
        call = self.client.sh("echo first; sleep 0.5; echo second; sleep 0.5", progress=True)
        call.result()
        self.assertRegex("".join(news.get("message") or "" for news in call.progress), r"first\n[^$]*second")
        values = [news["progress"] for news in call.progress]
        self.assertEqual(values, sorted(set(values)))
        self.assertTrue(any(news.get("total") for news in call.progress), call.progress)

    # Several at once (O)

    def test_calls_at_once_are_done_in_their_order(self):  # O4
        wrote = self.client.begin("write_file", path="order/run.sh", content="wc -c <order/run.sh >order/size\n")
        ran = self.client.sh("sh order/run.sh")
        read = self.client.begin("read_file", path="order/size")
        self.assertEqual(read.facts()["text"].strip(), "32")
        self.assertEqual((wrote.order + 1, ran.order + 1), (ran.order, read.order))

    def test_what_comes_behind_a_slow_command_waits(self):  # O5
        slow = self.client.sh("sleep 0.5; echo done >slow")
        self.assertEqual(self.client.begin("read_file", path="slow").facts()["text"], "done")
        self.assertTrue(slow.ended.is_set())

    def test_ten_calls_at_once(self):  # O6
        calls = [self.client.sh(f"echo {i} >>ten; echo {i}") for i in range(10)]
        self.assertEqual([call.facts()["stdout"] for call in calls], [str(i) for i in range(10)])
        self.assertEqual(self.client.sh("tr '\\n' ' ' <ten").facts()["stdout"].split(), [str(i) for i in range(10)])

    def test_a_call_that_waits_is_given_up_and_later_ones_proceed(self):  # O7
        first = self.client.sh("sleep 0.5; echo first")
        waiting = self.client.sh("touch never")
        last = self.client.sh("test -e never && echo it ran || echo it did not")
        self.client.cancel(waiting)
        self.assertEqual(first.facts()["stdout"], "first")
        with self.assertRaises(Error):
            waiting.result()
        self.assertEqual(last.facts()["stdout"], "it did not")

    # Giving up

    def test_a_command_is_killed_when_its_call_is_given_up(self):
        call = self.client.sh("sleep 4712")
        self.client.inside("sleep 4712")
        self.client.cancel(call)
        with self.assertRaises(Error):
            call.result()
        self.client.gone("sleep 4712")
        self.assertEqual(self.client.sh("echo still here").facts()["stdout"], "still here")

    def test_a_command_is_killed_when_the_client_waits_no_longer(self):
        with self.assertRaises(Error) as caught:
            self.client.sh("sleep 4713", timeout=0.5).result()
        self.assertIn("timed out", str(caught.exception).lower())
        self.client.gone("sleep 4713")
        self.assertEqual(self.client.sh("echo still here").facts()["stdout"], "still here")

    # Results

    def test_exports_are_published_linked_and_read(self):
        self.out.unlink(missing_ok=True)
        self.client.call("write_file", path="report.txt", content="42\n")
        result = self.client.call("publish_exports")
        self.assertFalse(result["isError"], result)
        link = result["content"][-1]
        self.assertEqual((link["type"], link["size"]), ("resource_link", 3))
        self.assertEqual(self.out.read_text(), "42\n")
        uri = link["uri"]
        self.assertEqual(uri, f"file://{self.out}")
        self.assertEqual([row["uri"] for row in self.client.ask("resources").result()["resources"]], [uri])
        self.assertEqual(self.client.ask("read", uri=uri).result()["contents"][0]["text"], "42\n")
        with self.assertRaises(Error):
            self.client.ask("read", uri="file:///etc/passwd").result()


class Ending:
    """How it begins and ends, with nothing left on the host."""

    def setUp(self):
        super().setUp()
        self.work = self.folder()

    def begun(self, *options):
        client = Conversation(self.driver(), options, self.work)
        self.addCleanup(client.end)
        return client

    def test_the_four_tools_and_a_close_that_takes_the_sandbox_along(self):
        client = self.begun("--export", f"out.txt=file://{self.work}/out.txt")
        self.assertEqual([tool["name"] for tool in client.tools()], FOUR)
        self.assertFalse([p for p in descendants() if p.is_init], "a sandbox before it is needed")
        client.sh("echo result >out.txt; setsid sleep 4714 >/dev/null 2>&1 &").result()
        client.inside("sleep 4714")
        self.assertEqual(client.close(), 0)
        self.assert_gone()
        wait_for((self.work / "out.txt").exists, "the export at the end of the run", clients.LIMIT_S)

    def test_a_client_that_is_killed_leaves_nothing_and_publishes_nothing(self):
        client = self.begun("--export", f"out.txt=file://{self.work}/out.txt")
        client.sh("echo result >out.txt").result()
        client.sh("sleep 4715")
        client.inside("sleep 4715")
        client.kill()
        self.assert_gone()
        self.assertFalse((self.work / "out.txt").exists())


def add_client(name, driver, revision):
    """All tests of above for one client."""
    for tests in (Session, Ending):
        title = name + tests.__name__
        globals()[title] = type(title, (tests, SandboxTest), {
            "driver": staticmethod(driver), "revision": revision, "__module__": __name__, "__qualname__": title})


add_client("Python1", lambda: clients.python_driver(clients.LEGACY_PYTHON, "legacy"), "2025-11-25")
add_client("Python2Legacy", lambda: clients.python_driver(clients.AGENT_PYTHON, "legacy"), "2025-11-25")
add_client("Python2", lambda: clients.python_driver(clients.AGENT_PYTHON, "auto"), "2026-07-28")
add_client("TypeScript1", lambda: clients.node_driver("sdk1"), "2025-11-25")
add_client("TypeScript2", lambda: clients.node_driver("auto"), "2026-07-28")


if __name__ == "__main__":
    unittest.main()
