# SPDX-License-Identifier: Apache-2.0
"""Rows of tests/contract.md about the toolset that no test of a topic stands for yet."""
import ctypes
import os
import unittest
from unittest import mock

from tool_support import FakeTest, ToolTest, libatoll  # first: it says where the other modules are
from protocol import Class
from support import PYTHON

OPEN_NETWORK = 8  # of CREATE's flags
BACKENDS = ("local", "modal", "sbx", "opensandbox", "openshell", "boat", "islo", "kubernetes")
CALLS = (
    ("run_command", "exec", {"command": "x"}), ("read_file", "read", {"path": "f"}),
    ("write_file", "write", {"path": "f", "content": "x"}), ("list_directory", "list", {"path": "."}),
)


class Making(FakeTest):
    def test_an_empty_prefix_is_none(self):
        tools = self.fake({"toolset.tool_prefix": ""})
        self.assertEqual(list(tools.tools), ["run_command", "read_file", "write_file", "list_directory"])
        self.assertEqual(tools.id, "sandbox-fake")

    def test_the_id_names_backend_and_prefix(self):
        self.assertEqual(self.toolset(settings=self.SPEC).id, "sandbox-fake")
        self.assertEqual(self.toolset(settings=self.SPEC | {"toolset.tool_prefix": "box"}).id, "sandbox-fake-box")

    def test_a_sandbox_that_is_removed_at_the_end_has_no_owner(self):
        self.assert_usage(
            self.toolset, settings=self.SPEC | {"spec.owner": "dag/run"},
            words=["spec.owner", "removed at the end of its run"])

    def test_every_backend_is_taken_without_credentials(self):
        with mock.patch.dict(os.environ, {"PATH": "/usr/bin:/bin"}, clear=True):
            for name in BACKENDS:
                with self.subTest(name=name):
                    self.assertEqual(self.toolset(settings={"backend.name": name}).id, f"sandbox-{name}")

    def test_no_exports_and_an_empty_map_of_them_are_the_same(self):
        told = []
        for text in ("{}", "{exports: {}}"):
            tools = self.opened(f"version: 1\nbackend: {{name: fake}}\ntoolset: {text}\n")
            told.append(tools.render(libatoll.MCP))
            tools.call("run_command", command="x")
            self.assertEqual(tools.close(True).exported, [])
        self.assertEqual(told[0], told[1])
        self.assertNotIn("copied out", told[0])

    def test_it_keeps_the_spec_that_it_was_made_with(self):
        library = libatoll.library()
        error, made, spec = libatoll.CError(), ctypes.c_void_p(), library.atoll_spec_new()

        def setting(name, value):
            self.assertEqual(library.atoll_spec_set(spec, name, value, ctypes.byref(error)), 0, error.message)

        setting(b"backend.name", b"fake")
        setting(b"spec.env", b"A=first")
        done = library.atoll_toolset_new(self.context.pointer, spec, None, ctypes.byref(made), ctypes.byref(error))
        self.assertEqual(done, 0, error.message)
        tools = libatoll.Toolset(self.context, made)
        before = tools.tools
        setting(b"spec.env", b"A=later")
        setting(b"spec.block_network", b"false")
        setting(b"toolset.tool_prefix", b"later")
        library.atoll_spec_free(spec)
        self.assertEqual(tools.tools, before)
        tools.open()
        tools.call("run_command", command="x")
        (row,) = self.requests("create")
        self.assertEqual((row["env"], row["create_flags"] & OPEN_NETWORK), (["A=first"], 0))

    def test_without_a_spec_the_default_one_is_stated(self):
        self.fake().call("run_command", command="x")
        (row,) = self.requests("create")
        self.assertEqual((row["create_flags"] & OPEN_NETWORK, row["lifetime_us"]), (0, 3600 * 10**6))
        self.assertFalse({"allow_host", "allow_range", "private_range", "env"} & set(row), row)

    def test_two_of_one_spec_are_alike_and_share_nothing(self):
        settings = {"toolset.tool_prefix": "box", "toolset.max_output_lines": "1",
                    "toolset.exports": f"a=file://{self.folder()}/a"}
        self.script(exec={"stdout": "1\n2\n"})
        first, second = self.fake(settings), self.fake(settings)
        self.assertEqual((first.id, first.tools, first.render(libatoll.MCP)),
                         (second.id, second.tools, second.render(libatoll.MCP)))
        for tools in (first, second):
            self.assertTrue(tools.call("box_run_command", command="x").text.endswith("truncated]\n2"))
        self.assertEqual((first.sandbox, second.sandbox), ("fake:fake1", "fake:fake2"))
        first.close(False)
        self.assertEqual(second.call("box_run_command", command="x").replaced, False)
        second.close(False)
        self.assertEqual([row["sandbox"] for row in self.requests("destroy")], ["fake1", "fake2"])


class Failures(FakeTest):
    def test_a_recoverable_one_of_any_tool_is_a_retry_with_its_text(self):
        self.script(**{kind: {"error": {"message": "the disk is asleep"}} for _, kind, _ in CALLS})
        for prefix in ("", "box_"):
            tools = self.fake({"toolset.tool_prefix": prefix[:-1]})
            for name, _, arguments in CALLS:
                with self.subTest(name=prefix + name):
                    answer = tools.call(prefix + name, **arguments)
                    self.assert_retry(answer, f"The {prefix}{name} tool failed: ", "the disk is asleep")

    def test_a_terminal_one_of_any_tool_ends_the_run(self):
        error = {"cls": Class.TERMINAL, "message": "the account is closed"}
        self.script(**{kind: {"error": error} for _, kind, _ in CALLS})
        tools = self.fake()
        for name, _, arguments in CALLS:
            with self.subTest(name=name):
                self.assert_terminal(tools.call, name, words=["the account is closed"], **arguments)

    def test_one_of_any_other_kind_ends_the_run(self):
        error = {"cls": Class.USAGE, "code": 38, "message": "this was not meant to be asked"}
        self.script(**{kind: {"error": error} for _, kind, _ in CALLS})
        tools = self.fake()
        for name, _, arguments in CALLS:
            with self.subTest(name=name):
                self.assert_terminal(tools.call, name, words=["this was not meant to be asked"], **arguments)

    def test_a_plain_name_is_unknown_where_there_is_a_prefix(self):
        tools = self.fake({"toolset.tool_prefix": "box"})
        for name, _, arguments in CALLS:
            self.assert_usage(tools.call, name, words=[f"'{name}'", "box_run_command"], **arguments)
        self.assertEqual(self.requests(), [])

    def test_a_hundred_failing_commands_are_no_failure(self):
        self.script(exec={"code": 1})
        tools = self.fake()
        for _ in range(100):
            answer = tools.call("run_command", command="x")
            self.assertEqual((answer.retry, answer.failures, answer.exit.status), (False, 0, 1))


class Shown(FakeTest):
    def test_no_more_than_the_limit_of_a_stream_is_kept(self):
        # The middle line is whole in what is kept, but nobody knows that its beginning was not lost: of all
        # that was written both last lines would fit.
        answer = self.answer({"stdout": "aaaa\nbbbb\ncccc\n"}, {"toolset.max_output_bytes": "10"})
        self.assertEqual(answer.text, "[stdout]\n[... earlier output truncated]\ncccc")
        self.assertEqual(answer.exit.stdout_total, 15)

    def test_an_offset_below_one_is_one_and_a_limit_below_one_is_none(self):
        self.script(read={"data": "a\nb\nc\n"})
        tools = self.fake()
        for name in ("offset", "limit"):
            for value in (0, -3, -1, None, "-2"):
                with self.subTest(name=name, value=value):
                    answer = tools.call("read_file", path="f", **{name: value})
                    self.assertEqual((answer.text, answer.retry), ("a\nb\nc", False))


class Order(FakeTest):
    def test_ten_calls_run_in_the_order_of_their_start(self):
        tools = self.fake()
        calls = [tools.start("run_command", command=str(n)) for n in range(10)]
        for call in reversed(calls):
            call.wait()
        self.assertEqual([row["arg"][2] for row in self.requests("exec")], [str(n) for n in range(10)])


class Exports(FakeTest):
    def run_with(self, prefix="", **settings):
        """A run on a backend that has one file, before its close, and where that is to go."""
        target = self.folder() / "r.txt"
        self.script(read={"data": "result\n"})
        tools = self.fake({"toolset.exports": f"r.txt=file://{target}", "toolset.tool_prefix": prefix} | settings)
        tools.call(f"{prefix}_run_command" if prefix else "run_command", command="x")
        return tools, target

    def test_a_prefix_changes_nothing(self):
        tools, target = self.run_with("box")
        self.assertEqual(len(tools.close(True).exported), 1)
        self.assertEqual(target.read_text(), "result\n")

    def test_the_program_alone_says_whether_a_run_succeeded(self):
        try:
            raise ValueError("an older failure that is being handled")
        except ValueError:
            tools, target = self.run_with()
            tools.close(True)
        self.assertEqual(target.read_text(), "result\n")
        tools, target = self.run_with()
        tools.close(False)  # nothing is being raised
        self.assertFalse(target.exists())

    def test_a_run_is_exported_once(self):
        tools, target = self.run_with()
        tools.close(True)
        target.unlink()
        self.assert_usage(tools.close, words=["not open"])
        tools.free()
        self.assertFalse(target.exists())


class Standing(ToolTest):
    """Runs on a sandbox of this host that stands already."""

    def test_two_runs_in_a_row_use_it_and_leave_it(self):
        sandbox = self.create()
        for number in (1, 2):
            tools = self.opened(sandbox=sandbox)
            text = tools.call("run_command", command=f"echo {number} >> log; cat log").text
            self.assertEqual((text.splitlines()[-1], tools.sandbox), (str(number), sandbox))
            tools.close(True)
        self.assertEqual((self.listed(), self.exec(sandbox, "cat log")), ([sandbox], b"1\n2\n"))

    def test_what_is_told_does_not_change_during_the_run(self):
        tools = self.opened(sandbox=self.create("--lifetime", "30m"))
        before = tools.render(libatoll.MCP)
        self.assertRegex(before, "about (29|30) minutes left")
        for command in ("true", "sleep 1.2", "exit 3"):
            tools.call("run_command", command=command)
            self.assertEqual(tools.render(libatoll.MCP), before)
        tools.close(True)

    def test_a_handle_that_is_nothing_makes_no_sandbox(self):
        for handle in ("", "None"):
            with self.subTest(handle=handle), self.assertRaises(libatoll.AtollError) as caught:
                self.toolset(settings={"toolset.attach_to": handle})
            self.assertIn("attach_to", str(caught.exception))
        self.assertEqual(self.listed(), [])

    def test_collecting_without_a_handle_is_one_clear_error(self):
        gone = self.create()
        self.good("rm", gone)
        for handle in ("", "None", gone):
            for arguments in (("rm", handle), ("read", handle, "result")):
                with self.subTest(arguments=arguments):
                    result = self.atoll(*arguments)
                    self.assert_refused(result)
                    self.assertEqual(result.err.count(b"atoll: "), 1, result.err)


LISTEN = """
import socket, time
for family, address in ((socket.AF_INET, ("0.0.0.0", 7070)), (socket.AF_UNIX, "\\0atoll-neighbour")):
    server = socket.socket(family)
    server.bind(address)
    server.listen()
    globals()[family.name] = server
open("/tmp/up", "w").close()
time.sleep(1000)
"""
CONNECT = """
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", 7070)), (socket.AF_UNIX, "\\0atoll-neighbour")):
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError as error:
        print(error.strerror)
"""


class Apart(ToolTest):
    """Two sandboxes of one agent, and what made them."""

    def python(self, tools, script):
        tools.call("write_file", path="/tmp/script.py", content=script)
        return tools.call("run_command", command=f"{PYTHON} /tmp/script.py").text.removeprefix("[stdout]\n")

    def test_two_sandboxes_do_not_reach_each_other(self):
        one, two = self.opened(), self.opened()
        one.call("write_file", path="/tmp/listen.py", content=LISTEN)
        wait = "until [ -e /tmp/up ]; do sleep 0.05; done"
        one.call("run_command", command=f"{PYTHON} /tmp/listen.py >/dev/null 2>&1 & {wait}")
        self.assertEqual(self.python(one, CONNECT), "connected\nconnected")  # the question is a fair one
        self.assertEqual(self.python(two, CONNECT), "Connection refused\nConnection refused")
        self.assertEqual(two.call("list_directory", path="/tmp").text, "script.py")
        seen = two.call("run_command", command="cat /proc/[0-9]*/cmdline | tr '\\0' ' '").text
        self.assertIn("/proc/[0-9]*", seen)
        self.assertNotIn("listen.py", seen)

    def test_what_made_it_cannot_be_used_from_inside(self):
        tools = self.opened()
        self.assertEqual(tools.call("run_command", command="true").text, "(no output)")
        text = tools.call("run_command", command=(
            f"ls -d {self.state} /run/atoll* /run/user/*/atoll /tmp/atoll-* 2>/dev/null; command -v atoll; "
            "grep -la atoll-keeper /proc/[0-9]*/comm; find / -xdev -name control -type s 2>/dev/null; "
            "echo looked")).text
        self.assertEqual(text, "[stdout]\nlooked")


if __name__ == "__main__":
    unittest.main()
