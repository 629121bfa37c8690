# SPDX-License-Identifier: Apache-2.0
"""The toolset on a backend that follows a script: what a model is told, whatever happens below.

Names in brackets are rows of the scenario list that a test stands for.
"""
import json
import re
import unittest

from tool_support import FakeTest, libatoll  # first: it says where the other modules are
from protocol import Class, EndedBy, Kind, Reason
from support import wait_for

BASE = ["run_command", "read_file", "write_file", "list_directory"]
REPLACED = "[sandbox was replaced; files from earlier calls are gone]"
MARKER = "[... earlier output truncated]"
SECRET = "correct-horse-battery"
ATTACHED = {"toolset.attach_to": "fake:one", "toolset.owner": "me"}
ATTACH, RELEASE = ["tags", "set_tags", "tags"], ["tags", "set_tags"]  # what is asked where tags stand for a lease
DENY_ALL = '{"allow_egress_to":[],"allow_egress_to_cidrs":[],"block_network":true}'


class Tools(FakeTest):
    """The list of tools (G)."""

    def test_without_a_prefix_there_are_the_four_base_names(self):
        self.assertEqual(list(self.fake().tools), BASE)

    def test_a_prefix_stands_before_all_of_them(self):
        tools = self.fake({"toolset.tool_prefix": "local"})
        self.assertEqual(list(tools.tools), [f"local_{name}" for name in BASE])
        self.assertEqual(tools.id, "sandbox-fake-local")
        self.assertFalse(tools.call("local_run_command", command="x").retry)
        self.assert_usage(tools.call, "run_command", command="x", words=["run_command", "local_read_file"])

    def test_only_run_command_holds_code_and_all_are_barriers(self):
        for name, tool in self.fake().tools.items():
            code = ("command", "shell") if name == "run_command" else (None, None)
            self.assertEqual((tool["code_argument"], tool["code_language"]), code)
            self.assertEqual((tool["sequential"], tool["retries"]), (True, 2))
            self.assertEqual(json.loads(tool["schema"])["type"], "object")

    def test_run_command_alone_speaks_of_the_network(self):
        for name, tool in self.fake().tools.items():
            self.assertEqual("etwork" in tool["description"], name == "run_command", tool)
        self.assertIn("Network: none", self.fake().tools["run_command"]["description"])

    def test_hosts_are_named_in_order(self):
        tools = self.fake({"spec.allow_egress_to": ["b.example", "a.example"]})
        self.assertIn("b.example, a.example", tools.tools["run_command"]["description"])

    def test_exports_are_named_with_what_becomes_of_the_rest(self):
        text = self.fake({"toolset.exports": [f"out/r.json=file://{self.folder()}/r.json"]}).tools["run_command"]["description"]
        self.assertIn("out/r.json", text)
        self.assertIn("discarded", text)
        self.assertNotIn("file://", text)
        self.assertNotIn("discarded", self.fake().tools["run_command"]["description"])

    def test_texts_stay_the_same_for_a_whole_run(self):
        tools = self.fake()
        before = [tools.render(form) for form in range(3)]
        tools.call("run_command", command="x")
        tools.mask(b"Network")
        self.assertEqual([tools.render(form) for form in range(3)], before)

    def test_every_format_is_json_with_the_four_tools(self):
        tools = self.fake()
        mcp, anthropic, openai = (json.loads(tools.render(form)) for form in range(3))
        self.assertEqual([tool["name"] for tool in mcp], BASE)
        self.assertEqual([tool["name"] for tool in anthropic], BASE)
        self.assertEqual([tool["function"]["name"] for tool in openai], BASE)

    def test_two_toolsets_of_one_agent_need_different_names(self):
        first = self.fake()
        second = self.toolset(settings=self.SPEC | {"toolset.tool_prefix": "b"}, beside=first)
        for beside in (first, second):  # a third is compared with all
            self.assert_usage(self.toolset, settings=self.SPEC, beside=beside, words=["run_command", "tool_prefix"])
            self.assert_usage(self.toolset, settings=self.SPEC | {"toolset.tool_prefix": "b"}, beside=beside,
                              words=["b_run_command"])
        second.free()
        self.toolset(settings=self.SPEC | {"toolset.tool_prefix": "b"}, beside=first)

    def test_making_one_asks_no_backend_anything(self):
        self.toolset(settings=self.SPEC)
        self.assertEqual(self.requests(), [])

    def test_settings_that_exclude_each_other_are_refused(self):
        wrong = [
            {"spec.owner": "me"},
            {"toolset.attach_to": "fake:one", "spec.env": "A=b"},
            {"toolset.owner": "me"},
            {"spec.block_network": "false", "spec.allow_egress_to": "a.example"},
        ]
        for settings in wrong:
            with self.subTest(settings):
                self.assert_usage(self.toolset, settings=self.SPEC | settings)


class Arguments(FakeTest):
    """What a model may write (H)."""

    def test_what_does_not_fit_the_schema_is_answered_and_reaches_no_backend(self):
        tools = self.fake()
        wrong = [
            ("run_command", "{}"), ("run_command", '{"command":1}'), ("run_command", '{"command":null}'),
            ("run_command", '{"command":"x","timeout_seconds":"soon"}'), ("read_file", '{"path":"a","offset":2.5}'),
            ("list_directory", '{"path":null}'), ("run_command", "not json"), ("run_command", "[]"),
            ("write_file", '{"path":"a","content":"\\ud800"}'), ("read_file", '{"path":"a\\u0000b"}'),
            ("write_file", '{"path":"a\\u0000b","content":""}'), ("list_directory", '{"path":"a\\u0000b"}'),
            ("run_command", '{"command":"a\\u0000b"}'), ("read_file", '{"path":""}'), ("run_command", '{"command":""}'),
        ]
        for name, arguments in wrong:
            with self.subTest(arguments):
                self.assertTrue(tools.call(name, arguments).retry)
        self.assertEqual(self.requests(), [])
        self.assertIsNone(tools.sandbox)

    def test_unknown_arguments_are_passed_over(self):
        self.assertFalse(self.fake().call("run_command", command="x", why="because").retry)

    def test_a_number_may_be_a_text(self):
        self.fake().call("run_command", command="x", timeout_seconds="30")
        self.assertEqual(self.requests("exec")[0]["timeout_us"], 30_000_000)

    def test_without_a_path_the_working_directory_is_listed(self):
        tools = self.fake()
        tools.call("list_directory")
        tools.call("list_directory", path="")
        self.assertEqual([row["path"] for row in self.requests("list")], [".", "."])

    def test_a_command_beyond_the_kernels_limit_is_to_be_written_to_a_file(self):
        tools = self.fake({"toolset.tool_prefix": "p"})
        self.assertFalse(tools.call("p_run_command", command="x" * 131071).retry)
        self.assert_retry(tools.call("p_run_command", command="x" * 131072), "p_write_file", "128.0KB")


class RunCommand(FakeTest):
    """What a command is answered with (I)."""

    def test_both_streams_bear_labels_and_the_exit_code_is_last(self):
        answer = self.answer({"stdout": "hi", "stderr": "bad", "code": 3})
        self.assertEqual(answer.text, "[stdout]\nhi\n[stderr]\nbad\n[exit code: 3]")
        self.assertEqual((answer.retry, answer.failures, answer.exit.status), (False, 0, 3))

    def test_nothing_is_said_to_be_nothing(self):
        self.assertEqual(self.answer({}).text, "(no output)")

    def test_nothing_and_a_failure(self):
        self.assertEqual(self.answer({"code": 1}).text, "(no output)\n[exit code: 1]")

    def test_only_stderr(self):
        self.assertEqual(self.answer({"stderr": "note"}).text, "[stderr]\nnote")

    def test_a_line_end_makes_no_empty_line(self):
        self.assertEqual(self.answer({"stdout": "a\n", "stderr": "b\n"}).text, "[stdout]\na\n[stderr]\nb")

    def test_the_command_goes_to_a_shell_with_the_default_timeout(self):
        self.answer({}, {"toolset.default_command_timeout": "42"}, command="ls *; x")
        self.assertEqual(self.requests("exec")[0]["arg"], ["sh", "-c", "ls *; x"])
        self.assertEqual(self.requests("exec")[0]["timeout_us"], 42_000_000)

    def test_a_timeout_above_the_ceiling_becomes_the_ceiling(self):
        self.answer({}, {"toolset.max_command_timeout": "30", "toolset.default_command_timeout": "5"}, timeout_seconds=9999)
        self.assertEqual(self.requests("exec")[0]["timeout_us"], 30_000_000)

    def test_a_timeout_may_be_a_fraction(self):
        self.answer({}, timeout_seconds=0.5)
        self.assertEqual(self.requests("exec")[0]["timeout_us"], 500_000)

    def test_a_timeout_that_is_none_is_answered_with_its_value(self):
        tools = self.fake()
        for value, shown in (("0", "0"), ("-5", "-5"), ('"nan"', "nan"), ('"inf"', "inf")):
            answer = tools.call("run_command", f'{{"command":"x","timeout_seconds":{value}}}')
            self.assert_retry(answer, f" {shown} ")
        self.assertEqual(self.requests(), [])

    def test_a_timeout_is_told_instead_of_the_exit_code(self):
        answer = self.answer({"stdout": "so far", "reason": Reason.TIMEOUT, "signal": 9},
                             {"toolset.default_command_timeout": "5"})
        self.assertEqual(answer.text, "[stdout]\nso far\n[timed out after 5s]")
        self.assertEqual(answer.exit.status, 124)

    def test_the_timeout_that_was_applied_is_told(self):
        for us, shown in ((23_000_000, "23"), (2_500_000, "2.5")):
            answer = self.answer({"reason": Reason.TIMEOUT, "signal": 9, "applied_us": us}, timeout_seconds=60)
            self.assertEqual(answer.text, f"(no output)\n[timed out after {shown}s] "
                             "[that is less than the 60s it was to have: no more could be given]")
            self.assertEqual(answer.facts["applied_timeout_seconds"], us / 1e6)

    def test_a_signal_is_told_as_a_shell_does(self):
        self.assertEqual(self.answer({"signal": 11}).text, "(no output)\n[exit code: 139]")

    def test_memory_that_ran_out_is_told(self):
        text = self.answer({"signal": 9, "reason": Reason.OOM}).text
        self.assertEqual(text, "(no output)\n[exit code: 137] [ended because memory ran out]")

    def test_a_sandbox_lost_behind_a_timeout_is_told_and_replaced(self):
        self.script(exec=[{"reason": Reason.TIMEOUT, "signal": 9, "ended": EndedBy.ERROR}, {"stdout": "new"}])
        tools = self.fake({"toolset.default_command_timeout": "5"})
        answer = tools.call("run_command", command="x")
        self.assertEqual(answer.text, f"(no output)\n[timed out after 5s] {REPLACED}")
        self.assertTrue(answer.replaced)
        self.assertIsNone(tools.sandbox)
        answer = tools.call("run_command", command="y")
        self.assertEqual((answer.text, answer.replaced), ("[stdout]\nnew", False))
        self.assertEqual([row["sandbox"] for row in self.requests("exec")], ["fake1", "fake2"])

    def test_a_sandbox_lost_with_a_status_of_its_own(self):
        answer = self.answer({"code": 128, "stdout": "x", "ended": EndedBy.KILLED})
        self.assertEqual(answer.text, f"[stdout]\nx\n[exit code: 128] {REPLACED}")

    def test_a_sandbox_lost_under_a_command_shows_what_there_is(self):
        answer = self.answer({"vanish": True})
        self.assertEqual(answer.text, f"(no output)\n{REPLACED}")
        self.assertEqual((answer.replaced, answer.retry, answer.exit), (True, False, None))

    def test_output_that_was_cut_begins_with_a_whole_line_and_says_so(self):
        lines = "".join(f"line {i}\n" for i in range(1000))
        answer = self.answer({"stdout": lines, "stderr": "tiny"}, {"toolset.max_output_bytes": "50"})
        self.assertEqual(answer.text, f"[stdout]\n{MARKER}\nline 995\nline 996\nline 997\nline 998\nline 999\n[stderr]\ntiny")

    def test_one_long_line_keeps_its_end(self):
        answer = self.answer({"stdout": "x" * 100 + "end"}, {"toolset.max_output_bytes": "5"})
        self.assertEqual(answer.text, f"[stdout]\n{MARKER}\nxxend")

    def test_all_commands_of_a_run_have_a_ceiling_together(self):
        self.script(exec={"stdout": "12345678", "stderr": "abcd"})
        tools = self.fake({"toolset.max_run_output_bytes": "10"})
        note = ("[of all output of this session 10B may be shown, and that is used up: have commands write to files, "
                "and read what matters]")
        self.assertEqual(tools.call("run_command", command="x").text, f"[stdout]\n12345678\n[stderr]\n{MARKER}\ncd\n{note}")
        self.assertEqual(tools.call("run_command", command="x").text, f"[stdout]\n{MARKER}\n[stderr]\n{MARKER}\n{note}")
        tools.close()
        tools.open()
        self.assertEqual(tools.call("run_command", command="x").text, f"[stdout]\n12345678\n[stderr]\n{MARKER}\ncd\n{note}")

    def test_that_is_said_too_when_the_line_that_was_cut_would_have_left_a_few_bytes(self):
        self.script(exec={"stdout": "aaaa\nbbbb\ncccc"})
        tools = self.fake({"toolset.max_run_output_bytes": "10"})
        self.assertRegex(tools.call("run_command", command="x").text, rf"^\[stdout\]\n{re.escape(MARKER)}\nbbbb\ncccc\n\[of all output of")

    def test_and_not_when_the_ceiling_of_the_answer_has_cut(self):
        self.script(exec={"stdout": "aaaa\nbbbb\ncccc"})
        for own in ({"toolset.max_output_lines": "2"}, {"toolset.max_output_bytes": "10"}):
            tools = self.fake({"toolset.max_run_output_bytes": "12"} | own)
            self.assertEqual(tools.call("run_command", command="x").text, f"[stdout]\n{MARKER}\nbbbb\ncccc")
            tools.close()

    def test_only_so_many_lines_are_shown(self):
        answer = self.answer({"stdout": "1\n2\n3\n4\n"}, {"toolset.max_output_lines": "2"})
        self.assertEqual(answer.text, f"[stdout]\n{MARKER}\n3\n4")

    def test_bytes_that_are_no_text_are_replaced(self):
        self.assertEqual(self.answer({"stdout": "a\udcffb"}).text, "[stdout]\na\ufffdb")

    def test_an_error_that_another_command_may_mend_is_an_answer(self):
        answer = self.answer({"error": {"message": "too many commands run", "remedy": "Wait"}})
        self.assertEqual(answer.text, "The run_command tool failed: too many commands run. Wait.")
        self.assertTrue(answer.retry)

    def test_the_answer_names_the_tool_with_its_prefix(self):
        self.script(exec={"error": {"message": "no"}})
        answer = self.fake({"toolset.tool_prefix": "p"}).call("p_run_command", command="x")
        self.assertEqual(answer.text, "The p_run_command tool failed: no.")


class Files(FakeTest):
    """The other tools (K, L) as far as a backend matters."""

    def test_an_in_band_file_is_paged(self):
        self.script(read={"data": "".join(f"line {i}\n" for i in range(1, 20001))})
        tools = self.fake({"toolset.max_output_lines": "2"})
        self.assertEqual(tools.call("read_file", path="f").text, "line 1\nline 2\n[... 19998 more lines; read on with offset=3]")
        self.assertEqual(tools.call("read_file", path="f", offset=19999).text, "line 19999\nline 20000")

    def test_an_empty_file(self):
        self.assertEqual(self.fake().call("read_file", path="f").text, "(no lines at offset 1; file has 0 lines)")

    def test_the_read_limit_goes_to_the_backend_and_is_told(self):
        self.script(read={"error": {"cls": Class.TOO_LARGE, "code": 27, "message": "big"}}, stat={"size": 6 << 20})
        tools = self.fake()
        self.assert_retry(tools.call("read_file", path="a b"), "'a b' has 6.0MB", "read limit of 5.0MB", "run_command")
        self.assertEqual(self.requests("read")[0]["max_bytes"], 5 << 20)

    def test_a_device_has_no_size(self):
        self.script(read={"error": {"cls": Class.TOO_LARGE, "code": 22, "message": "dev"}}, stat={"file_kind": Kind.DEVICE})
        self.assert_retry(self.fake().call("read_file", path="/dev/x"), "'/dev/x' holds more than the read limit")

    def test_a_write_is_confirmed_in_bytes(self):
        tools = self.fake()
        self.assertEqual(tools.call("write_file", path="/w/a.txt", content="hello").text, "Wrote 5 bytes to '/w/a.txt'.")
        self.assertEqual(tools.call("write_file", path="a", content="é").text, "Wrote 2 bytes to 'a'.")
        self.assertEqual(tools.call("write_file", path="it's", content="").text, 'Wrote 0 bytes to "it\'s".')

    def test_a_list_is_sorted_before_the_slash(self):
        self.script(list={"entries": [["b", 0], ["a-b", 0], ["sub", 1], ["a", 1], ["link", 2]]})
        self.assertEqual(self.fake().call("list_directory").text, "a/\na-b\nb\nlink\nsub/")

    def test_an_empty_list(self):
        self.assertEqual(self.fake().call("list_directory").text, "(empty)")

    def test_a_long_list_shows_its_head_and_how_to_see_the_rest(self):
        self.script(list={"entries": [[f"f{i:03}", 0] for i in range(500)]})
        lines = self.fake({"toolset.max_output_lines": "3"}).call("list_directory").text.splitlines()
        self.assertEqual(lines[:3], ["f000", "f001", "f002"])
        self.assertEqual(len(lines), 4)
        self.assertIn("497 more", lines[3])
        self.assertIn("run_command", lines[3])

    def test_a_sandbox_lost_under_a_file_tool_is_told_as_such(self):
        for name, kind, arguments in (("read_file", "read", {"path": "a"}), ("list_directory", "list", {}),
                                      ("write_file", "write", {"path": "a", "content": "b"})):
            with self.subTest(name):
                self.script(**{kind: [{}] * len(self.requests(kind)) + [{"silent": True, "ended": EndedBy.KILLED}, {}]})
                tools = self.fake()
                answer = tools.call(name, **arguments)
                self.assert_retry(answer, "gone")
                self.assertTrue(answer.replaced)
                self.assertFalse(tools.call(name, **arguments).retry)
                tools.close(False)


class Errors(FakeTest):
    """Classes of failure (M)."""

    def test_failures_in_a_row_are_counted_for_each_tool(self):
        bad = {"error": {"message": "no"}}
        self.script(exec=[bad, bad, {"code": 1}, bad], read=[bad, bad])
        tools = self.fake()
        counts = [tools.call(name, **arguments).failures for name, arguments in (
            ("run_command", {"command": "x"}), ("read_file", {"path": "x"}), ("run_command", {"command": "x"}),
            ("run_command", {"command": "x"}), ("run_command", {"command": "x"}), ("read_file", {"path": "x"}))]
        self.assertEqual(counts, [1, 1, 2, 0, 1, 2])

    def test_a_failing_command_is_no_failure(self):
        self.script(exec={"code": 1})
        tools = self.fake()
        self.assertEqual({tools.call("run_command", command="x").failures for _ in range(20)}, {0})

    def test_a_terminal_error_ends_the_run(self):
        self.script(exec={"error": {"cls": Class.TERMINAL, "code": 13, "message": "credentials were rejected"}})
        self.assert_terminal(self.fake().call, "run_command", command="x", words=["credentials were rejected"])

    def test_a_creation_that_fails_is_terminal_whatever_its_class(self):
        for cls in Class:
            self.script(create={"error": {"cls": cls, "message": "no room"}})
            self.assert_terminal(self.fake().call, "run_command", command="x", words=["'fake'", "no room"])
        self.assertEqual(self.kinds("destroy", "exec"), [])

    def test_the_call_after_a_failed_creation_tries_again(self):
        self.script(create=[{"error": {"message": "busy"}}, {}], exec={"stdout": "hi"})
        tools = self.fake()
        self.assert_terminal(tools.call, "run_command", command="x")
        self.assertEqual(tools.call("run_command", command="x").text, "[stdout]\nhi")
        tools.close(False)
        self.assertEqual(self.kinds(), ["create", "create", "exec", "destroy"])

    def test_a_name_that_is_no_tool_is_the_programs_mistake(self):
        self.assert_usage(self.fake().call, "run", command="x", words=["'run'", "list_directory"])

    def test_the_end_of_the_lifetime_is_terminal_and_stays_so(self):
        for ended in (EndedBy.LIFETIME, EndedBy.IDLE):
            self.script(exec={"stdout": "x", "ended": ended})
            tools = self.fake()
            self.assertEqual(tools.call("run_command", command="x").text, "[stdout]\nx")
            for _ in range(2):
                self.assert_terminal(tools.call, "run_command", command="x", words=["has ended"])
            tools.close(False)
        self.assertEqual(self.kinds("create"), ["create"] * 2)

    def test_a_sandbox_whose_life_ends_under_a_command_is_terminal(self):
        self.script(exec={"reason": Reason.LIFETIME, "signal": 9, "ended": EndedBy.LIFETIME})
        tools = self.fake()
        for _ in range(2):
            self.assert_terminal(tools.call, "run_command", command="x", words=["lifetime"])
        self.assertEqual(self.kinds("exec"), ["exec"])


class Lifecycle(FakeTest):
    """From open to close (N)."""

    def dies_later(self):
        return {"ended": EndedBy.KILLED, "ended_when": str(self.signal("die"))}

    def die(self):
        """Ends such a sandbox while nobody drives the loop."""
        self.signal("die").touch()
        wait_for(lambda: self.requests("ended"), "the end of the sandbox")

    def test_a_run_without_a_call_makes_nothing(self):
        tools = self.fake()
        tools.close(True)
        self.assertEqual(self.requests(), [])

    def test_calls_share_one_sandbox_which_the_close_removes(self):
        tools = self.fake()
        tools.call("run_command", command="x")
        tools.call("write_file", path="a", content="b")
        self.assertEqual(tools.sandbox, "fake:fake1")
        tools.close(True)
        self.assertIsNone(tools.sandbox)
        self.assertEqual(self.kinds(), ["create", "exec", "write", "destroy"])

    def test_the_spec_reaches_the_backend_as_it_is(self):
        self.fake({"spec.env": ["A=1", "B=two words"], "spec.allow_egress_to": "a.example"}).call("run_command", command="x")
        row = self.requests("create")[0]
        self.assertEqual((row["env"], row["allow_host"]), (["A=1", "B=two words"], ["a.example"]))

    def test_a_destroy_that_fails_is_a_warning_with_id_and_backend(self):
        self.script(destroy={"error": {"cls": Class.TERMINAL, "message": "the vendor is away"}})
        tools = self.fake()
        tools.call("run_command", command="x")
        (warning,) = tools.close(True).warnings
        for word in ("fake:fake1", "'fake'", "the vendor is away"):
            self.assertIn(word, warning)

    def test_one_toolset_may_have_several_runs_each_with_a_sandbox(self):
        tools = self.toolset(settings=self.SPEC)
        for _ in range(2):
            tools.open()
            tools.call("run_command", command="x")
            tools.close(True)
        self.assertEqual([row["sandbox"] for row in self.requests("destroy")], ["fake1", "fake2"])

    def test_outside_of_a_run_a_call_is_terminal_and_makes_nothing(self):
        tools = self.toolset(settings=self.SPEC)
        self.assert_terminal(tools.call, "run_command", command="x", words=["not open", "atoll_toolset_open"])
        tools.open()
        tools.close(True)
        self.assert_terminal(tools.call, "run_command", command="x", words=["not open"])
        self.assertEqual(self.requests(), [])

    def test_opening_twice_and_closing_twice_are_the_programs_mistakes(self):
        tools = self.fake()
        self.assert_usage(tools.open, words=["open already"])
        tools.close(True)
        self.assert_usage(tools.close, words=["not open"])

    def test_a_sandbox_found_dead_is_replaced_and_the_answer_says_so(self):
        self.script(exec=[{"stdout": "one"} | self.dies_later(), {"stdout": "two"}])
        tools = self.fake()
        self.assertEqual(tools.call("run_command", command="x").text, "[stdout]\none")
        self.die()
        answer = tools.call("run_command", command="x")
        self.assertEqual((answer.text, answer.replaced), (f"[stdout]\ntwo\n{REPLACED}", True))
        self.assertFalse(tools.call("run_command", command="x").replaced)
        tools.close(True)
        self.assertEqual([row["sandbox"] for row in self.requests("destroy")], ["fake2"])

    def test_a_file_tool_that_finds_it_dead_says_so_below_its_answer(self):
        self.script(exec=self.dies_later())
        tools = self.fake()
        tools.call("run_command", command="x")
        self.die()
        answer = tools.call("write_file", path="a", content="b")
        self.assertEqual((answer.text, answer.replaced), (f"Wrote 1 bytes to 'a'.\n{REPLACED}", True))

    def test_freeing_without_a_close_removes_the_sandbox_and_publishes_nothing(self):
        target = self.folder() / "out"
        tools = self.fake({"toolset.exports": f"a=file://{target}"})
        tools.call("run_command", command="x")
        tools.free()
        self.context.free()
        self.assertEqual(self.kinds(), ["create", "exec", "destroy"])
        self.assertFalse(target.exists())

    def test_little_life_is_told_below_every_answer(self):
        self.script(inspect={"life_s": 90, "age_s": 3000})
        tools = self.opened(settings=ATTACHED)
        line = "[the sandbox has about 1 minute left; finish what matters]"
        self.assertEqual(tools.call("run_command", command="x").text, f"(no output)\n{line}")
        self.assertEqual(tools.call("write_file", path="a", content="").text, f"Wrote 0 bytes to 'a'.\n{line}")

    def test_enough_life_is_no_matter(self):
        for life in ({"life_s": 301, "age_s": 3000}, {"life_s": 200, "age_s": 1700}, {"life_s": 100, "age_s": 10}, {}):
            self.script(inspect=life)
            tools = self.opened(settings=ATTACHED)
            self.assertEqual(tools.call("run_command", command="x").text, "(no output)")
            tools.close(True)


class Together(FakeTest):
    """Several calls at once, cancelling, closing (O)."""

    def test_first_calls_together_share_one_creation(self):
        go = self.signal("go")
        self.script(create={"until": str(go)})
        tools = self.fake()
        calls = [tools.start("run_command", command=f"c{i}") for i in range(5)]
        go.touch()
        for call in calls:
            call.wait()
        self.assertEqual(self.kinds("create"), ["create"])

    def test_first_calls_together_share_a_failed_creation_too(self):
        self.script(create=[{"error": {"message": "busy"}}, {}])
        tools = self.fake()
        calls = [tools.start("run_command", command=f"c{i}") for i in range(3)]
        for call in calls:
            self.assert_terminal(call.wait, words=["busy"])
        self.assertEqual(self.kinds(), ["create"])

    def test_calls_run_one_at_a_time_in_order(self):
        go = self.signal("go")
        self.script(exec=[{"until": str(go), "stdout": "slow"}, {}])
        tools = self.fake()
        calls = [tools.start("write_file", path="a", content="b"), tools.start("run_command", command="x"),
                 tools.start("read_file", path="a"), tools.start("run_command", command="y")]
        calls[0].wait()
        self.step_until_asked("exec")
        self.assertEqual(self.kinds(), ["create", "write", "exec"])
        self.assertFalse(calls[2].done)
        go.touch()
        calls[3].wait()
        self.assertTrue(all(call.done for call in calls))
        self.assertEqual(self.kinds(), ["create", "write", "exec", "read", "exec"])

    def test_a_waiting_call_may_be_given_up(self):
        go = self.signal("go")
        self.script(exec=[{"until": str(go)}, {}])
        tools = self.fake()
        calls = [tools.start("run_command", command=f"c{i}") for i in range(3)]
        calls[1].cancel()
        self.assertTrue(calls[1].done)
        go.touch()
        calls[0].wait()
        calls[2].wait()
        self.assertEqual([row["arg"][2] for row in self.requests("exec")], ["c0", "c2"])

    def test_a_running_call_that_is_given_up_kills_its_command_before_the_next_begins(self):
        self.script(exec=[{"until": "/nonexistent"}, {}])
        tools = self.fake()
        calls = [tools.start("run_command", command=f"c{i}") for i in range(2)]
        self.step_until_asked("exec")
        calls[0].cancel()
        calls[1].wait()
        self.assertEqual(calls[0].error.code, 125)  # ECANCELED
        self.assertEqual(self.kinds(), ["create", "exec", "killed", "exec"])

    def test_a_call_that_is_freed_while_it_runs_kills_its_command(self):
        self.script(exec=[{"until": "/nonexistent"}, {}])
        tools = self.fake()
        first, second = (tools.start("run_command", command=f"c{i}") for i in range(2))
        self.step_until_asked("exec")
        first.free()
        second.wait()
        self.assertEqual(self.kinds(), ["create", "exec", "killed", "exec"])

    def test_the_callers_patience_ends_a_call(self):
        self.script(exec=[{"until": "/nonexistent"}, {}])
        tools = self.fake()
        call = tools.start("run_command", command="x")
        self.step_until_asked("exec")
        call.set_timeout(0.05)
        self.assert_fails(libatoll.RECOVERABLE, call.wait)
        self.assertEqual(call.error.code, 110)  # ETIMEDOUT
        self.assertFalse(tools.call("run_command", command="y").retry)

    def test_a_call_given_up_while_its_sandbox_is_made_leaves_none_behind(self):
        go = self.signal("go")
        self.script(create={"until": str(go)})
        tools = self.fake()
        call = tools.start("run_command", command="x")
        self.step_until_asked("create")
        call.cancel()
        closing = tools.start_close(True)
        self.assertFalse(closing.done)
        go.touch()
        closing.wait()
        self.assertEqual(self.kinds(), ["create", "destroy"])

    def test_closing_while_the_sandbox_is_made_waits_and_removes_it(self):
        go = self.signal("go")
        self.script(create={"until": str(go)})
        tools = self.fake()
        calls = [tools.start("run_command", command=f"c{i}") for i in range(2)]
        self.step_until_asked("create")
        closing = tools.start_close(False)
        for call in calls:
            self.assert_terminal(call.wait, words=["closed before its sandbox was there"])
        go.touch()
        closing.wait()
        self.assertEqual(self.kinds(), ["create", "destroy"])

    def test_closing_under_a_command_kills_it_first(self):
        self.script(exec={"until": "/nonexistent"})
        tools = self.fake()
        call, other = tools.start("run_command", command="x"), tools.start("read_file", path="x")
        self.step_until_asked("exec")
        tools.close(False)
        for one in (call, other):
            self.assert_terminal(one.wait, words=["closed"])
        self.assertEqual(self.kinds(), ["create", "exec", "killed", "destroy"])

    def test_freeing_while_the_sandbox_is_made_cancels_everything(self):
        self.script(create={"until": "/nonexistent"})
        tools = self.fake()
        call = tools.start("run_command", command="x")
        self.step_until_asked("create")
        tools.free()
        self.assertEqual(call.error.code, 125)

    def test_a_close_that_is_given_up_closes_all_the_same(self):
        self.script(destroy={"until": "/nonexistent"})
        tools = self.fake()
        tools.call("run_command", command="x")
        closing = tools.start_close(True)
        closing.cancel()
        self.assertEqual(closing.error.code, 125)
        self.assert_terminal(tools.call, "run_command", command="x", words=["not open"])
        tools.open()

    def test_everything_may_be_freed_at_any_moment(self):
        for stop in range(1, 40, 3):
            self.script(exec={"stdout": "x"}, read={"data": "y" * 100000})
            tools = self.fake()
            calls = [tools.start("run_command", command="x"), tools.start("read_file", path="a"),
                     tools.start("list_directory"), tools.start("write_file", path="a", content="b")]
            for _ in range(stop):
                self.context.step()
            closing = tools.start_close(True) if stop % 2 else None
            self.context.step()
            tools.free()
            self.assertTrue(all(call.done for call in calls))
            self.assertTrue(closing is None or closing.done)


class Secrets(FakeTest):
    """Masking (S)."""

    ENV = {"spec.env": f"TOKEN={SECRET}"}

    def test_values_of_the_environment_and_of_mask_never_reach_the_model(self):
        tools_secret = "another-secret"
        self.script(exec={"stdout": f"a {SECRET} b", "stderr": tools_secret})
        tools = self.fake(self.ENV | {"toolset.mask": tools_secret})
        self.assertEqual(tools.call("run_command", command="x").text, "[stdout]\na *** b\n[stderr]\n***")

    def test_a_text_may_be_masked_later(self):
        self.script(exec={"stdout": "later-secret"})
        tools = self.fake()
        self.assertEqual(tools.mask(b"later-secret"), 0)
        self.assertEqual(tools.mask(b"abc"), -22)
        self.assertEqual(tools.call("run_command", command="x").text, "[stdout]\n***")

    def test_no_fragment_remains_where_the_output_is_cut(self):
        for cut in range(1, len(SECRET) + 12):
            answer = self.answer({"stdout": f"front {SECRET} back"}, self.ENV | {"toolset.max_output_bytes": str(cut)})
            shown = answer.text.splitlines()[-1]
            self.assertTrue("front *** back".endswith(shown), shown)

    def test_no_fragment_remains_where_kept_bytes_begin_within_it(self):
        for length in range(40, 40 + len(SECRET) + 4):
            answer = self.answer({"stdout": f"{SECRET * 3}{'z' * length}"}, self.ENV | {"toolset.max_output_bytes": "45"})
            for n in range(4, len(SECRET)):
                self.assertNotIn(SECRET[-n:], answer.text)

    def test_in_files_names_and_confirmations(self):
        self.script(read={"data": f"x{SECRET}\n"}, list={"entries": [[f"{SECRET}.txt", 0]]})
        tools = self.fake(self.ENV)
        self.assertEqual(tools.call("read_file", path="a").text, "x***")
        self.assertEqual(tools.call("list_directory").text, "***.txt")
        self.assertEqual(tools.call("write_file", path=f"/{SECRET}", content="").text, "Wrote 0 bytes to '/***'.")

    def test_in_an_answer_that_says_what_to_mend(self):
        self.script(read={"error": {"message": f"bad {SECRET}", "remedy": f"Use {SECRET}"}})
        answer = self.fake(self.ENV).call("read_file", path="a")
        self.assertEqual(answer.text, "The read_file tool failed: bad ***. Use ***.")

    def test_in_terminal_errors(self):
        self.script(exec={"error": {"cls": Class.TERMINAL, "message": f"bad {SECRET}", "remedy": f"Use {SECRET}"}})
        error = self.assert_terminal(self.fake(self.ENV).call, "run_command", command="x")
        self.assertEqual((error.message, error.remedy), ("bad ***", "Use ***"))

    def test_in_errors_of_the_creation(self):
        self.script(create={"error": {"message": f"TOKEN={SECRET} is refused"}})
        error = self.assert_terminal(self.fake(self.ENV).call, "run_command", command="x")
        self.assertIn("TOKEN=*** is refused", error.message)

    def test_of_several_lines_also_where_an_error_shows_it_on_one(self):
        secret = "-----BEGIN-----\nabcdef\n-----END-----"
        self.script(create={"error": {"message": f"KEY={secret} is refused"}})
        error = self.assert_terminal(self.fake({"spec.env": f"KEY={secret}"}).call, "run_command", command="x")
        self.assertNotIn("abcdef", str(error))

    def test_in_warnings_of_the_close(self):
        self.script(destroy={"error": {"cls": Class.TERMINAL, "message": f"{SECRET} is no key"}})
        tools = self.fake(self.ENV)
        tools.call("run_command", command="x")
        (warning,) = tools.close(True).warnings
        self.assertIn("*** is no key", warning)

    def test_another_encoding_is_not_recognised(self):
        encoded = SECRET.encode().hex()
        self.assertIn(encoded, self.answer({"stdout": encoded}, self.ENV).text)

    def test_other_bytes_of_binary_output_stay(self):
        self.assertEqual(self.answer({"stdout": f"\udcfe{SECRET}\x01"}, self.ENV).text, "[stdout]\n\ufffd***\x01")


class Standing(FakeTest):
    """A sandbox that somebody else made (Q)."""

    def attach(self, **settings):
        return self.opened(settings=ATTACHED | settings)

    def test_it_is_used_and_left_as_it_is(self):
        tools = self.attach()
        self.assertEqual((tools.id, tools.sandbox), ("sandbox-fake", "fake:one"))
        tools.call("run_command", command="x")
        tools.close(True)
        self.assertEqual(self.kinds(), ["open", *ATTACH, "inspect", "exec", *RELEASE])
        self.assertEqual({row["sandbox"] for row in self.requests()}, {"one"})

    def test_the_caller_may_name_it_too(self):
        tools = self.opened(settings={"spec.env": "A=b"}, sandbox="fake:two")
        self.assertEqual(tools.sandbox, "fake:two")

    def test_its_owner_has_to_be_the_runs(self):
        for owner, claimed, words in (("a", "b", ["'a'", "'b'"]), ("a", None, ["owner is needed"]), (None, "b", ["owner"])):
            self.write_tags("one", *([f"airflow_owner={owner}"] if owner else []))
            settings = {"toolset.attach_to": "fake:one"} | ({"toolset.owner": claimed} if claimed else {})
            tools = self.toolset(settings=settings)
            self.assert_terminal(tools.open, words=["fake:one", *words])
            self.assertIsNone(tools.sandbox)
        self.write_tags("one", "airflow_owner=a")
        self.attach(**{"toolset.owner": "a"})
        self.assertEqual(self.kinds("exec", "destroy"), [])

    def test_one_that_is_not_there_is_terminal(self):
        self.script(open={"error": {"message": "no such sandbox"}})
        self.assert_terminal(self.toolset(settings=ATTACHED | {"toolset.attach_to": "fake:gone"}).open, words=["fake:gone", "no such sandbox"])

    def test_what_is_no_id_is_refused_at_once(self):
        self.assert_usage(self.toolset, settings={"toolset.attach_to": "NO:THING"}, words=["NO:THING"])

    def test_when_it_stops_no_call_goes_on(self):
        self.script(exec={"stdout": "x", "ended": EndedBy.DESTROYED})
        tools = self.attach()
        tools.call("run_command", command="x")
        for _ in range(2):
            self.assert_terminal(tools.call, "read_file", path="x", words=["fake:one", "destroyed", "cannot replace"])
        tools.close(True)
        self.assertEqual(self.kinds("create", "destroy"), [])

    def test_when_it_stops_under_a_command(self):
        self.script(exec={"silent": True, "ended": EndedBy.KILLED})
        tools = self.attach()
        for _ in range(2):
            self.assert_terminal(tools.call, "run_command", command="x", words=["fake:one"])

    def test_its_description_says_what_is_known(self):
        self.script(inspect={"life_s": 1805, "network": DENY_ALL})
        tools = self.toolset(settings=ATTACHED)
        before = tools.tools["run_command"]["description"]
        self.assertIn("set up by an earlier task", before)
        self.assertNotIn("etwork", before)
        self.assertEqual(tools.open().warnings, [])
        text = tools.tools["run_command"]["description"]
        for words in ("earlier task", "later task", "Network: none", "about 30 minutes"):
            self.assertIn(words, text)
        tools.close(True)
        self.assertEqual(tools.tools["run_command"]["description"], before)

    def test_an_unreadable_policy_is_not_known_and_warned_of(self):
        self.script(inspect={"network": "[1, 2]"})
        tools = self.toolset(settings=ATTACHED)
        (warning,) = tools.open().warnings
        self.assertIn("[1, 2]", warning)
        self.assertIn("not recorded", tools.tools["run_command"]["description"])

    def test_a_backend_that_describes_nothing_can_be_used(self):
        self.script(inspect={"error": {"cls": Class.USAGE, "code": 38, "message": "not here"}})
        tools = self.toolset(sandbox="fake:one")
        self.assertEqual(len(tools.open().warnings), 1)
        tools.close(True)
        self.assertEqual(self.toolset(settings=ATTACHED).open().warnings, [])  # its tags say enough

    def test_a_command_gets_no_more_time_than_the_sandbox_has(self):
        self.script(inspect={"life_s": 30})
        self.attach().call("run_command", command="x", timeout_seconds=300)
        self.assertIn(self.requests("exec")[0]["timeout_us"], (28_000_000, 29_000_000, 30_000_000))

    def test_without_time_left_no_command_is_started(self):
        self.script(inspect={"life_s": 0})
        self.assert_retry(self.attach().call("run_command", command="x"), "no time left")
        self.assertEqual(self.requests("exec"), [])


class Exports(FakeTest):
    """What is published at the end (P)."""

    def run_with(self, entries, succeeded=True, read=None, **script):
        """A run with one call, then the close, which is not waited for."""
        self.script(**({"read": read or {"data": "result\n"}} | script))
        tools = self.fake({"toolset.exports": entries})
        tools.call("run_command", command="x")
        return tools.start_close(succeeded)

    def test_a_file_is_published_before_the_sandbox_goes(self):
        target = self.folder() / "deep/er/r.txt"
        closing = self.run_with([f"r.txt=file://{target}"]).wait()
        self.assertEqual(target.read_text(), "result\n")
        ((path, url, _, files, size),) = closing.exported
        self.assertEqual((path, url, files, size), ("r.txt", f"file://{target}", 1, 7))
        self.assertEqual(self.kinds("read", "destroy")[-1], "destroy")
        self.assertEqual(list(target.parent.iterdir()), [target])

    def test_a_failed_run_publishes_nothing(self):
        target = self.folder() / "r.txt"
        self.run_with([f"r.txt=file://{target}"], succeeded=False).wait()
        self.assertFalse(target.exists())
        self.assertEqual(self.kinds("read", "destroy"), ["destroy"])

    def test_a_missing_file_fails_the_close_and_nothing_changes(self):
        folder = self.folder()
        (folder / "r.txt").write_text("old")
        closing = self.run_with([f"r.txt=file://{folder}/r.txt"], read={"error": {"code": 2, "message": "it is not there"}},
                                stat={"error": {"code": 2, "message": "it is not there"}})
        self.assert_terminal(closing.wait, words=["r.txt", "fake:fake1", f"{folder}/r.txt", "it is not there"])
        self.assertEqual([(p.name, p.read_text()) for p in folder.iterdir()], [("r.txt", "old")])
        self.assertEqual(self.kinds("destroy"), ["destroy"])

    def test_a_failed_destroy_does_not_spoil_it(self):
        target = self.folder() / "r.txt"
        closing = self.run_with([f"r.txt=file://{target}"], destroy={"error": {"message": "away"}}).wait()
        self.assertTrue(target.exists())
        self.assertEqual((len(closing.exported), len(closing.warnings)), (1, 1))

    def test_without_a_sandbox_promised_exports_fail(self):
        tools = self.fake({"toolset.exports": [f"a.txt=file://{self.folder()}/a", f"b.txt=file://{self.folder()}/b"]})
        self.assert_terminal(tools.close, words=["no sandbox stands", "a.txt, b.txt"])
        self.assertEqual(self.requests(), [])
        tools.open()  # closed all the same
        tools.close(False)

    def test_a_sandbox_that_the_last_command_killed_is_none(self):
        closing = self.run_with([f"a=file://{self.folder()}/a"], exec={"code": 1, "ended": EndedBy.KILLED})
        self.assert_terminal(closing.wait, words=["no sandbox stands"])

    def test_destinations_are_judged_before_anything_is_made(self):
        for url in ("", "None", "relative/path", "ftp://host/x"):
            with self.subTest(url), self.assertRaises(libatoll.AtollError):
                self.fake({"toolset.exports": f"a={url}"})
        self.assertEqual(self.requests(), [])

    def test_two_exports_to_one_place_are_refused(self):
        target = self.folder() / "x"
        with self.assertRaises(libatoll.AtollError):
            self.fake({"toolset.exports": [f"a=file://{target}", f"b=file://{target}"]})

    def test_a_standing_sandbox_exports_too(self):
        target = self.folder() / "r.txt"
        self.script(read={"data": "result\n"})
        tools = self.opened(settings=ATTACHED | {"toolset.exports": f"r.txt=file://{target}"})
        tools.close(True)
        self.assertEqual(target.read_text(), "result\n")
        self.assertEqual(self.kinds("destroy"), [])


if __name__ == "__main__":
    unittest.main()
