# SPDX-License-Identifier: Apache-2.0
"""A toolset on a sandbox that another task made, and that it holds for a run (F, Q).

First with tags in the place of a lease, on a backend that follows a script; then with the lock of a keeper.
"""
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from tool_support import SUPPORT, FakeTest, ToolTest, libatoll  # first: it says where the other modules are
from mcp_support import McpServer
from protocol import Class, EndedBy, Reason
from support import ATOLL, wait_for

DENY_ALL = '{"allow_egress_to":[],"allow_egress_to_cidrs":[],"block_network":true}'
RANGE = '{"allow_egress_to":[],"allow_egress_to_cidrs":["203.0.113.0/24"],"block_network":true}'
AWAY = {"error": {"message": "the vendor is away"}}
GONE = {"error": {"cls": Class.TERMINAL, "code": 2, "message": "there is no such sandbox"}}


class TagsTest(FakeTest):
    """Sandbox "one" of the backend, made for "a/b"."""

    SETTINGS = {"toolset.attach_to": "fake:one", "toolset.owner": "a/b"}

    def setUp(self):
        super().setUp()
        self.write_tags("one", "airflow_owner=a/b", "colour=blue")

    def attaching(self, holder="a/b/c", **settings):
        return self.toolset(settings=self.SETTINGS | settings, holder=holder)

    def attach(self, holder="a/b/c", **settings):
        tools = self.attaching(holder, **settings)
        tools.opening = tools.open()
        return tools

    def holder(self):
        """Whose name the tags bear."""
        found = [tag for tag in self.tags("one") if tag.startswith("airflow_holder=")]
        return found[0].partition("=")[2] if found else None


class Attaching(TagsTest):
    """What an attach needs and does."""

    def test_it_is_held_during_the_run_and_free_behind_it(self):
        tools = self.attach()
        self.assertEqual(self.tags("one"), ["airflow_owner=a/b", "colour=blue", "airflow_holder=a/b/c"])
        tools.call("run_command", command="x")
        tools.close(True)
        self.assertEqual(self.tags("one"), ["airflow_owner=a/b", "colour=blue"])
        self.assertEqual(self.kinds("create", "destroy"), [])

    def test_it_is_free_behind_a_run_that_failed(self):
        self.script(exec={"error": {"cls": Class.TERMINAL, "code": 13, "message": "no more"}})
        tools = self.attach()
        self.assert_terminal(tools.call, "run_command", command="x", words=["no more"])
        tools.close(False)
        self.assertIsNone(self.holder())
        self.assertEqual(self.kinds("create", "destroy"), [])

    def test_an_owner_is_needed(self):
        tools = self.toolset(settings={"toolset.attach_to": "fake:one"})
        self.assert_terminal(tools.open, words=["fake:one", "an owner is needed", "toolset.owner"])
        self.assertEqual(self.requests(), [])

    def test_another_owner_is_refused_with_both_names_and_nothing_is_changed(self):
        self.assert_terminal(self.attaching(**{"toolset.owner": "a/x"}).open, words=["fake:one", "a/b", "a/x"])
        self.assertEqual(self.kinds("set_tags", "exec"), [])
        self.assertIsNone(self.holder())

    def test_a_sandbox_without_an_owner_cannot_be_held(self):
        self.write_tags("one", "colour=blue")
        self.assert_terminal(self.attaching().open, words=["fake:one", "owner"])
        self.assertEqual(self.kinds("set_tags"), [])

    def test_without_a_holder_it_is_the_owner(self):
        self.attach(holder=None)
        self.assertEqual(self.holder(), "a/b")

    def test_a_holder_is_a_name(self):
        for holder in ("", "x" * 1025):
            self.assert_usage(self.attaching, holder, words=["holder"])

    def test_what_another_holds_is_refused_with_its_name(self):
        self.write_tags("one", "airflow_owner=a/b", "airflow_holder=a/b/c")
        for holder in ("a/b/d", "a/b/c[3]"):
            self.assert_terminal(self.attaching(holder).open, words=["fake:one", "'a/b/c'", holder])
        self.assertEqual((self.holder(), self.kinds("set_tags", "exec")), ("a/b/c", []))

    def test_the_same_holder_enters_again_without_a_write(self):
        self.write_tags("one", "airflow_owner=a/b", "airflow_holder=a/b/c")
        tools = self.attach()
        self.assertEqual(self.kinds("set_tags"), [])
        tools.close(False)
        self.assertIsNone(self.holder())

    def test_of_two_that_write_at_once_one_is_told_who_won(self):
        self.script(set_tags={"labels": ["airflow_owner=a/b", "airflow_holder=a/b/z"]})
        self.assert_terminal(self.attaching().open, words=["'a/b/z'"])
        self.assertEqual(self.kinds("exec", "inspect"), [])
        self.assertEqual(self.holder(), "a/b/z")

    def test_a_failure_of_any_kind_is_terminal_and_names_the_sandbox(self):
        for kind in ("open", "tags", "set_tags", "inspect"):
            self.write_tags("one", "airflow_owner=a/b")
            self.script(**{kind: AWAY})
            tools = self.attaching()
            self.assert_terminal(tools.open, words=["fake:one", "the vendor is away"])
            self.assertIsNone(tools.sandbox)
            self.assertIsNone(self.holder() if kind != "tags" else None)
            self.assert_terminal(tools.call, "run_command", command="x", words=["not open"])

    def test_what_is_attached_to_and_cannot_be_used_is_let_go_again(self):
        self.script(inspect=GONE)
        self.assert_terminal(self.attaching().open, words=["fake:one", "no such sandbox"])
        self.assertEqual(self.kinds()[-2:], ["tags", "set_tags"])
        self.assertIsNone(self.holder())

    def test_a_refused_attach_leaves_no_connection(self):
        self.write_tags("one", "airflow_owner=other")
        before = self.connections()
        self.assert_terminal(self.attaching().open)
        wait_for(lambda: self.context.step() or self.connections() == before, "the end of the backend program")

    @staticmethod
    def connections():
        """Backend programs of this process that live."""
        children = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
        with open(children, encoding="ascii") as file:
            return len(file.read().split())

    def test_two_runs_in_a_row_find_what_was_left(self):
        for holder in ("a/b/c", "a/b/d"):
            tools = self.attach(holder)
            self.assertEqual((tools.sandbox, self.holder()), ("fake:one", holder))
            tools.close(True)

    def test_a_call_before_the_open_is_terminal(self):
        self.assert_terminal(self.attaching().call, "run_command", command="x", words=["not open"])
        self.assertEqual(self.requests(), [])

    def test_a_sandbox_that_the_caller_names_is_not_held(self):
        tools = self.opened(sandbox="fake:one")
        tools.close(True)
        self.assertEqual(self.kinds(), ["open", "inspect"])

    def test_a_lease_of_tags_cannot_be_acted_by(self):
        tools = self.toolset(settings=self.SETTINGS, lease=3)
        self.assert_terminal(tools.open, words=["fake:one", "no lease to act by"])


class Told(TagsTest):
    """What is known of the sandbox: in the log, and to the model."""

    def opened_with(self, *tags, inspect=None):
        self.write_tags("one", "airflow_owner=a/b", *tags)
        self.script(**({"inspect": inspect} if inspect else {}))
        tools = self.attach()
        return tools, tools.tools["run_command"]["description"]

    def expiry(self, seconds):
        return f"airflow_expires_at={int(time.time() + seconds)}"

    def test_the_log_has_a_line(self):
        tools, _ = self.opened_with(self.expiry(600.5))
        (line,) = tools.opening.notes
        self.assertRegex(line, r"^Attached to sandbox 'fake:one' on backend 'fake' as 'a/b/c'; (59\d|600) s of its lifetime remain$")
        self.assertEqual(tools.close(True).notes, [])

    def test_an_end_in_the_past_is_none_left(self):
        tools, text = self.opened_with(self.expiry(-50))
        self.assertIn("; 0 s of its lifetime remain", tools.opening.notes[0])
        self.assertIn("less than a minute left", text)

    def test_an_end_that_is_not_known_is_unknown(self):
        for tags in ((), ("airflow_expires_at=soon",)):
            tools, text = self.opened_with(*tags)
            self.assertIn("how much of its lifetime remains is unknown", tools.opening.notes[0])
            self.assertIn("is not known", text)
            tools.close(True)

    def test_the_clock_is_told_in_minutes(self):
        for seconds, words in ((0, "less than a minute"), (59, "less than a minute"), (75, "about 1 minute left"),
                               (150, "about 2 minutes left"), (1800, "about 30 minutes left")):
            tools, text = self.opened_with(self.expiry(seconds + 0.9))
            self.assertIn(words, text)
            tools.close(True)

    def test_the_description_has_both_tasks_the_network_and_the_clock(self):
        tools, text = self.opened_with(self.expiry(1800.9), f"airflow_network={DENY_ALL}")
        for words in ("earlier task", "later task to collect", "Network: none", "about 30 minutes left"):
            self.assertIn(words, text)
        self.assertEqual(tools.opening.warnings, [])

    def test_a_recorded_network_is_told(self):
        self.assertIn("203.0.113.0/24", self.opened_with(f"airflow_network={RANGE}")[1])

    def test_one_that_is_not_recorded_is_admitted_and_no_warning(self):
        tools, text = self.opened_with()
        self.assertIn("not recorded", text)
        self.assertEqual(tools.opening.warnings, [])

    def test_one_that_cannot_be_read_is_one_warning(self):
        tools, text = self.opened_with("airflow_network=all of it")
        self.assertIn("not recorded", text)
        (warning,) = tools.opening.warnings
        self.assertIn("'all of it'", warning)

    def test_it_stays_the_same_for_the_run(self):
        tools, _ = self.opened_with(self.expiry(1800))
        before = tools.render(libatoll.MCP)
        self.script(exec={"left_s": 20})
        tools.call("run_command", command="x")
        self.write_tags("one", "airflow_owner=a/b", self.expiry(20))
        tools.call("read_file", path="x")
        self.assertEqual(tools.render(libatoll.MCP), before)

    def test_before_the_open_and_behind_the_close_only_the_first_fact_is_told(self):
        tools = self.attaching()
        before = tools.tools["run_command"]["description"]
        self.assertIn("set up by an earlier task.", before)
        self.assertNotIn("later task", before)
        tools.open()
        tools.close(True)
        self.assertEqual(tools.tools["run_command"]["description"], before)


class Ends(TagsTest):
    """Letting go, and a sandbox that is gone."""

    def test_three_failures_are_one_warning_and_no_error(self):
        tools = self.attach()
        self.script(tags=AWAY)
        closing = tools.close(True)
        (warning,) = closing.warnings
        for words in ("'fake:one'", "'fake'", "3 attempts", "'a/b/c'", "the vendor is away"):
            self.assertIn(words, warning)
        self.assertEqual((closing.notes, self.holder()), ([], "a/b/c"))
        self.assertEqual(len(self.requests("tags")), 2 + 3)

    def test_the_third_attempt_may_be_the_one(self):
        self.script(tags=[{}, {}, AWAY, AWAY, {}])
        closing = self.attach().close(True)
        self.assertEqual((closing.warnings, closing.notes, self.holder()), ([], [], None))

    def test_a_sandbox_that_is_gone_is_a_line_in_the_log(self):
        tools = self.attach()
        self.script(tags=GONE)
        closing = tools.close(True)
        self.assertEqual(closing.warnings, [])
        (note,) = closing.notes
        self.assertIn("'fake:one' on backend 'fake' has ended", note)

    def test_what_another_holds_by_now_is_left_to_it(self):
        tools = self.attach()
        self.write_tags("one", "airflow_owner=a/b", "airflow_holder=a/b/z")
        self.assertEqual(tools.close(True).warnings, [])
        self.assertEqual(self.holder(), "a/b/z")

    def test_letting_go_of_what_is_free_is_harmless(self):
        tools = self.attach()
        self.write_tags("one", "airflow_owner=a/b")
        closing = tools.close(True)
        self.assertEqual((closing.warnings, closing.notes), ([], []))

    def test_one_that_stops_under_a_command_ends_the_run(self):
        self.script(exec={"silent": True, "ended": EndedBy.DESTROYED})
        tools = self.attach()
        for _ in range(2):
            self.assert_terminal(tools.call, "run_command", command="x", words=["fake:one", "has ended", "cannot replace it"])
        closing = tools.close(True)
        self.assertEqual((closing.warnings, self.kinds("create", "destroy"), len(self.requests("exec"))), ([], [], 1))
        (note,) = closing.notes
        self.assertIn("has ended", note)

    def test_what_was_promised_of_it_is_an_error_that_says_why(self):
        target = self.folder() / "r"
        self.script(exec={"silent": True, "ended": EndedBy.DESTROYED})
        tools = self.attach(**{"toolset.exports": f"r=file://{target}"})
        self.assert_terminal(tools.call, "run_command", command="x")
        self.assert_terminal(tools.close, True, words=["nothing was exported of r", "has ended"])
        self.assertFalse(target.exists())

    def test_what_was_promised_is_published_before_it_is_let_go(self):
        target = self.folder() / "r"
        self.script(read={"data": "result"})
        tools = self.attach(**{"toolset.exports": f"r=file://{target}"})
        tools.close(True)
        self.assertEqual(target.read_text(), "result")
        self.assertEqual(self.kinds("read", "tags", "set_tags", "destroy")[-3:], ["read", "tags", "set_tags"])

    def test_a_close_that_is_given_up_while_it_tries_again_closes(self):
        tools = self.attach()
        self.script(tags=AWAY)
        closing = tools.start_close(True)
        wait_for(lambda: self.context.step() or len(self.requests("tags")) == 3, "the first attempt")
        closing.cancel()
        self.assertIsNone(tools.sandbox)
        tools.free()


class Lost(TagsTest):
    """The backend's program is gone, and the sandbox is not: its holder is still to be taken out."""

    def lose(self, **script):
        """A run whose program vanished under a command."""
        self.script(exec={"vanish": True}, **script)
        tools = self.attach()
        for _ in range(2):
            self.assert_terminal(tools.call, "run_command", command="x",
                                 words=["'fake:one' was lost", "'atoll-backend-fake' is gone", "cannot replace it"])
        self.assertEqual(self.holder(), "a/b/c")
        return tools

    def test_the_close_reaches_it_anew(self):
        closing = self.lose().close(True)
        self.assertEqual((closing.warnings, closing.notes, self.holder()), ([], [], None))
        self.assertEqual(self.kinds()[-3:], ["open", "tags", "set_tags"])

    def test_a_program_that_ends_between_two_calls_is_no_other_case(self):
        go = self.signal("go")
        self.script(exec={"until": str(go), "early": "x", "vanish": True})
        tools = self.attach(**{"toolset.tools": ["start_process"]})
        tools.call("start_process", command="x")
        go.touch()
        wait_for(lambda: self.children() == 0, "the end of the program")  # it is not heard of yet
        closing = tools.close(False)
        self.assertEqual((closing.warnings, closing.notes, self.holder()), ([], [], None))

    @staticmethod
    def children():
        """Living ones of this process."""
        with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children", encoding="ascii") as file:
            numbers = file.read().split()
        states = (Path(f"/proc/{number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] for number in numbers)
        return sum(state != "Z" for state in states)

    def test_three_failures_are_a_warning_and_no_note(self):
        closing = self.lose(tags=[{}, {}, AWAY]).close(True)
        (warning,) = closing.warnings
        for words in ("'fake:one'", "'fake'", "3 attempts", "'a/b/c'", "the vendor is away"):
            self.assertIn(words, warning)
        self.assertEqual((closing.notes, self.holder()), ([], "a/b/c"))

    def test_a_program_that_vanishes_again_and_again_is_started_three_times(self):
        closing = self.lose(open=[{}, {"vanish": True}]).close(True)
        (warning,) = closing.warnings
        self.assertIn("could not be released in 3 attempts", warning)
        self.assertEqual((len(self.requests("open")), self.holder()), (4, "a/b/c"))

    def test_it_may_vanish_while_it_is_asked_to_let_go(self):
        self.script(tags=[{}, {}, {"vanish": True}, {}])
        closing = self.attach().close(True)
        self.assertEqual((closing.warnings, closing.notes, self.holder()), ([], [], None))

    def test_a_sandbox_that_is_gone_too_is_a_line_in_the_log(self):
        closing = self.lose(open=[{}, GONE]).close(True)
        (note,) = closing.notes
        self.assertIn("'fake:one' on backend 'fake' has ended", note)
        self.assertEqual(closing.warnings, [])


class GivenUp(TagsTest):
    """An open that comes to nothing gives back what it has taken, at whatever moment that is."""

    def opening(self, kind, **script):
        """An open that has got to a request of that kind, whose answer waits for the signal."""
        self.script(**{kind: {"until": str(self.signal("go"))}} | script)
        tools = self.attaching()
        opening = tools.start_open()
        self.step_until_asked(kind)
        return tools, opening

    def assert_cancelled(self, operation):
        with self.assertRaises(libatoll.AtollError) as caught:
            operation.wait()
        self.assertIn("cancelled", str(caught.exception))

    def test_a_cancelled_one_waits_for_what_it_takes_and_gives_it_back(self):
        for kind in ("set_tags", "inspect"):
            self.write_tags("one", "airflow_owner=a/b")
            self.signal("go").unlink(missing_ok=True)
            tools, opening = self.opening(kind)
            opening.cancel()
            self.signal("go").touch()
            self.assert_cancelled(opening)
            self.assertIsNone(self.holder(), kind)
            self.assertEqual(opening.warnings, [])
            tools.open()  # and can have it again
            tools.close(False)
            (self.desk / "requests.jsonl").unlink()

    def test_so_does_one_that_is_closed_meanwhile(self):
        for kind in ("set_tags", "inspect"):
            self.write_tags("one", "airflow_owner=a/b")
            self.signal("go").unlink(missing_ok=True)
            tools, opening = self.opening(kind)
            closing = tools.start_close(False)
            self.signal("go").touch()
            closing.wait()
            self.assert_cancelled(opening)
            self.assertIsNone(self.holder(), kind)
            self.assertEqual((closing.warnings, closing.notes), ([], []))
            (self.desk / "requests.jsonl").unlink()

    def test_one_that_is_cancelled_and_then_closed_ends_both(self):
        tools, opening = self.opening("set_tags")
        opening.cancel()
        closing = tools.start_close(False)
        self.signal("go").touch()
        closing.wait()
        self.assert_cancelled(opening)
        self.assertIsNone(self.holder())

    def test_an_open_that_is_freed_leaves_the_release_to_the_close(self):
        tools, opening = self.opening("set_tags")
        closing = tools.start_close(False)
        opening.free()
        closing.wait()
        self.assertIsNone(self.holder())

    def test_what_was_promised_is_not_looked_for_where_no_run_has_begun(self):
        target = self.folder() / "r"
        self.script(inspect={"until": str(self.signal("go"))}, read={"data": "of another run"})
        tools = self.attaching(**{"toolset.exports": f"r=file://{target}"})
        opening = tools.start_open()
        self.step_until_asked("inspect")
        self.assert_terminal(tools.start_close(True).wait, words=["nothing was exported"])
        self.assert_cancelled(opening)
        self.assertEqual((target.exists(), self.holder()), (False, None))

    def test_a_backend_that_says_no_more_holds_nobody_up_for_long(self):
        self.script(set_tags=[{"silent": True}, {}])
        tools = self.attaching()
        opening = tools.start_open()
        self.step_until_asked("set_tags")
        self.write_tags("one", "airflow_owner=a/b", "airflow_holder=a/b/c")  # it was done all the same
        opening.cancel()
        self.assert_cancelled(opening)
        self.assertIsNone(self.holder())

    def test_a_toolset_that_is_freed_meanwhile_goes_at_once(self):
        tools, opening = self.opening("set_tags")
        opening.cancel()
        tools.free()
        self.assert_cancelled(opening)

    def test_one_that_fails_behind_its_write_takes_it_back(self):
        for script in ({"tags": [{}, AWAY, {}]}, {"tags": [{}, {"vanish": True}, {}]}, {"set_tags": [AWAY, {}]}):
            self.write_tags("one", "airflow_owner=a/b", "colour=blue")
            self.script(**script)
            self.assert_terminal(self.attaching().open, words=["fake:one"])
            self.assertEqual(self.tags("one"), ["airflow_owner=a/b", "colour=blue"], script)
            (self.desk / "requests.jsonl").unlink()

    def test_what_could_not_be_given_back_is_told(self):
        self.script(inspect=GONE, tags=[{}, {}, AWAY])
        opening = self.attaching().start_open()
        self.assert_terminal(opening.wait, words=["no such sandbox"])
        (warning,) = opening.warnings
        for words in ("could not be released in 3 attempts", "'a/b/c'", "the vendor is away"):
            self.assertIn(words, warning)
        self.assertEqual(self.holder(), "a/b/c")

    def test_a_tool_of_the_command_line_that_is_interrupted_lets_go(self):
        spec = self.folder() / "attach.yaml"
        spec.write_text("version: 1\ntoolset: {attach_to: 'fake:one', owner: a/b}\n")
        self.script(inspect={"until": str(self.signal("never"))})
        child = subprocess.Popen([ATOLL, "tool", "--spec", str(spec), "fake:one", "run_command", "{}"], env=dict(os.environ))
        self.addCleanup(child.kill)
        wait_for(lambda: self.requests("inspect"), "the attach")
        self.assertEqual(self.holder(), "a/b")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(libatoll.LIMIT_S), 128 + signal.SIGINT)
        self.assertIsNone(self.holder())


class Behind(TagsTest):
    """What a run leaves to the next holder."""

    def test_what_it_started_is_dead_before_it_is_let_go(self):
        for succeeded in (False, True):
            self.script(exec={"until": str(self.signal("never"))})
            tools = self.attach(**{"toolset.tools": ["start_process"]})
            tools.call("start_process", command="x")
            tools.call("start_process", command="y")
            tools.close(succeeded)
            self.assertEqual(self.kinds("killed", "set_tags"), ["set_tags", "killed", "killed", "set_tags"])
            (self.desk / "requests.jsonl").unlink()


class Time(TagsTest):
    """Commands get what is left, and the model hears of it."""

    LITTLE = "[the sandbox has about 4 minutes left; finish what matters]"

    def applied(self):
        return self.requests("exec")[-1]["timeout_us"] / 1e6

    def test_a_command_gets_what_is_left(self):
        self.script(inspect={"life_s": 30.9})
        self.attach().call("run_command", command="x", timeout_seconds=300)
        self.assertIn(self.applied(), (29, 30))

    def test_with_nothing_left_none_is_started(self):
        self.script(inspect={"life_s": 0})
        self.assert_retry(self.attach().call("run_command", command="x"), "no time left")
        self.assertEqual(self.requests("exec"), [])

    def test_a_timeout_that_was_cut_short_says_so(self):
        self.script(inspect={"life_s": 30.9}, exec={"reason": Reason.TIMEOUT, "signal": 9})
        answer = self.attach().call("run_command", command="x", timeout_seconds=60)
        self.assertRegex(answer.text, r"\[timed out after (29|30)s\] \[that is less than the 60s it was to have: no more could be given\]")
        self.assertIn(answer.facts["applied_timeout_seconds"], (29, 30))

    def test_so_does_one_at_the_ceiling_and_one_that_was_not_cut_says_nothing(self):
        self.script(exec={"reason": Reason.TIMEOUT, "signal": 9})
        tools = self.attach()
        self.assertIn("[timed out after 300s] [that is less than the 999s it",
                      tools.call("run_command", command="x", timeout_seconds=999).text)
        answer = tools.call("run_command", command="x", timeout_seconds=20)
        self.assertEqual(answer.text, "(no output)\n[timed out after 20s]")
        self.assertNotIn("applied_timeout_seconds", answer.facts)

    def test_what_is_left_follows_from_every_command(self):
        self.script(inspect={"life_s": 7000, "age_s": 1}, exec=[{"left_s": 299.9}, {"left_s": 5000}, {"left_s": 30}])
        tools = self.attach()
        texts = [tools.call("run_command", command="x").text for _ in range(3)]
        self.assertEqual(texts, [f"(no output)\n{self.LITTLE}", "(no output)",
                                 "(no output)\n[the sandbox has less than a minute left; finish up]"])

    def test_so_it_does_from_the_end_of_what_was_started(self):
        self.script(inspect={"life_s": 7000, "age_s": 1}, exec=[{"left_s": 30}, {"left_s": 5000}])
        tools = self.attach(**{"toolset.tools": ["start_process", "process_output"]})
        for process, told in ((1, True), (2, False)):
            tools.call("start_process", command="x")
            self.context.step()
            answer = tools.call("process_output", process=process, wait_seconds=10)
            self.assertFalse(answer.facts["running"])
            self.assertEqual("[the sandbox has less than a minute left" in answer.text, told)

    def test_one_that_somebody_has_prolonged_gives_more_again(self):
        self.script(inspect=[{"life_s": 20, "age_s": 100}, {"life_s": 5000, "age_s": 100}])
        tools = self.attach()
        tools.call("run_command", command="x", timeout_seconds=60)
        self.assertEqual(self.applied(), 60)

    def test_little_is_less_than_five_minutes_and_a_tenth(self):
        for life, age, told in ((299.9, 9000, True), (301, 9000, False), (95.9, 900, True), (105, 900, False)):
            self.script(inspect={"life_s": life, "age_s": age})
            tools = self.attach()
            self.assertEqual("[the sandbox has" in tools.call("run_command", command="x").text, told, (life, age))
            tools.close(True)


class Locked(ToolTest):
    """With the keeper of this host, whose lease is a lock."""

    def setUp(self):
        super().setUp()
        self.box = self.create("--owner", "a/b")

    def attaching(self, holder="a/b/c", settings=None, **options):
        settings = {"toolset.attach_to": self.box, "toolset.owner": "a/b"} | (settings or {})
        return self.toolset(settings=settings, holder=holder, **options)

    def attach(self, *arguments, **options):
        tools = self.attaching(*arguments, **options)
        tools.opening = tools.open()
        return tools

    def lease(self):
        """The state of the lease and its holder."""
        x = self.json("inspect", self.box)
        lease = x["lease"]
        return (lease, x.get("holder")) if isinstance(lease, str) else (lease["state"], lease.get("holder"))

    def test_it_is_held_during_the_run_and_free_behind_it(self):
        self.assertEqual(self.lease()[0], "free")
        tools = self.attach()
        self.assertEqual(self.lease(), ("held", "a/b/c"))
        (line,) = tools.opening.notes
        self.assertRegex(line, rf"^Attached to sandbox '{self.box}' on backend 'local' as 'a/b/c'; 3\d+ s of its lifetime remain$")
        self.assertEqual(tools.call("run_command", command="echo hi > f; cat f").text, "[stdout]\nhi")
        closing = tools.close(True)
        self.assertEqual((closing.warnings, closing.notes), ([], []))
        self.assertEqual(self.lease()[0], "free")
        self.assertEqual(self.exec(self.box, "cat f"), b"hi\n")

    def test_others_may_read_and_not_write(self):
        self.attach().call("write_file", path="f", content="text")
        self.assertEqual(self.good("read", self.box, "f"), b"text")
        self.assert_refused(self.atoll("exec", self.box, "--", "true"), "a/b/c")
        self.assert_refused(self.atoll("write", self.box, "g", stdin=b"x"), "a/b/c")

    def test_another_is_refused_by_name_and_changes_nothing(self):
        tools = self.attach()
        for other in ("a/b/d", "a/b/c[3]"):
            self.assert_terminal(self.attaching(other).open, words=[self.box, "'a/b/c'", other])
        wrong = self.attaching(settings={"toolset.owner": "a/x"})
        self.assert_terminal(wrong.open, words=["a/b", "a/x"])
        self.assertEqual(self.lease(), ("held", "a/b/c"))
        self.assertEqual(tools.call("run_command", command="echo mine").text, "[stdout]\nmine")

    def test_one_without_an_owner_cannot_be_held(self):
        other = self.create()
        tools = self.attaching(settings={"toolset.attach_to": other})
        self.assert_terminal(tools.open, words=[other, "owner"])

    def test_another_attempt_of_the_same_holder_takes_over(self):
        target = self.folder() / "f"
        first = self.attach(settings={"toolset.exports": f"f=file://{target}"})
        first.call("write_file", path="f", content="from the first")
        second = self.attach()
        self.assertEqual(second.call("read_file", path="f").text, "from the first")
        for name, arguments in (("run_command", {"command": "true"}), ("write_file", {"path": "f", "content": "late"})):
            self.assert_terminal(first.call, name, words=[self.box, "another attempt of 'a/b/c' took over"], **arguments)
        closing = first.start_close(True)
        self.assert_terminal(closing.wait, words=["nothing was exported of f", "took over"])
        self.assertFalse(target.exists())
        self.assertEqual(closing.warnings, [])
        self.assertEqual(self.lease(), ("held", "a/b/c"))  # it is the second one's
        self.assertEqual(second.call("read_file", path="f").text, "from the first")
        second.close(True)
        self.assertEqual(self.lease()[0], "free")

    def test_that_ends_what_the_earlier_one_runs(self):
        first = self.attach()
        running = first.start("run_command", command="echo here > up; sleep 1000")
        wait_for(lambda: self.context.step() or self.atoll("read", self.box, "up").status == 0, "the command")
        second = self.attach()
        self.assert_terminal(running.wait, words=["another attempt of 'a/b/c' took over"])
        self.assertNotIn("sleep", second.call("run_command", command="cat /proc/[0-9]*/cmdline | tr '\\0' ' '").text)

    def test_two_runs_in_a_row_may_have_other_holders(self):
        for holder in ("a/b/c", "a/b/d"):
            tools = self.attach(holder)
            self.assertEqual(self.lease(), ("held", holder))
            tools.close(True)

    def test_a_process_that_dies_gives_it_back_at_once_or_keeps_it_for_a_retry(self):
        for keep, after in ((0, ("free", None)), (1000, ("kept", "a/b/c"))):
            child = self.hold_in_a_process(keep)
            self.assertEqual(self.lease(), ("held", "a/b/c"))
            child.send_signal(signal.SIGKILL)
            child.wait()
            wait_for(lambda: self.lease()[0] == after[0], "the end of the holder")  # pylint: disable=cell-var-from-loop
            self.assertEqual(self.lease()[1], after[1])
        self.assert_terminal(self.attaching("a/b/d").open, words=["'a/b/c'"])
        retry = self.attach()
        self.assertEqual(retry.call("read_file", path="left").text, "by the first")
        retry.close(True)
        self.assertEqual(self.lease()[0], "free")

    def hold_in_a_process(self, keep):
        """A process that attaches, writes a file, and waits to be killed."""
        script = (
            f"import sys; sys.path.insert(0, {str(SUPPORT)!r})\n"
            "import libatoll\n"
            "context = libatoll.Context()\n"
            f"settings = {{'toolset.attach_to': {self.box!r}, 'toolset.owner': 'a/b'}}\n"
            f"tools = context.toolset(None, settings, holder='a/b/c', keep={keep})\n"
            "tools.open()\n"
            "tools.call('write_file', path='left', content='by the first')\n"
            "print('held', flush=True)\n"
            "sys.stdin.read()\n")
        child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), b"held\n")
        return child

    def test_one_that_is_removed_meanwhile_ends_the_run(self):
        tools = self.attach()
        self.good("rm", "--force", self.box)
        for _ in range(2):
            self.assert_terminal(tools.call, "run_command", command="true", words=[self.box, "cannot replace it"])
        closing = tools.close(True)
        self.assertEqual(closing.warnings, [])
        self.assertIn("has ended", closing.notes[0])
        self.assertEqual(self.listed(), [])

    def test_one_that_is_removed_before_the_close_is_a_line_in_the_log(self):
        tools = self.attach()
        self.good("rm", "--force", self.box)
        closing = tools.close(True)
        self.assertEqual((closing.warnings, len(closing.notes)), ([], 1))

    def test_what_it_writes_is_published(self):
        target = self.folder() / "r"
        tools = self.attach(settings={"toolset.exports": f"r=file://{target}"})
        tools.call("write_file", path="r", content="result")
        tools.close(True)
        self.assertEqual(target.read_text(), "result")
        self.assertEqual(self.lease()[0], "free")

    def test_an_open_that_comes_to_nothing_keeps_it_for_nobody(self):
        for give_up in (lambda tools, opening: opening.cancel(), lambda tools, opening: tools.start_close(False).wait()):
            tools = self.attaching(keep=1000)
            opening = tools.start_open()
            wait_for(lambda: self.lease()[0] == "held" or self.context.step(), "the attach")
            give_up(tools, opening)
            with self.assertRaises(libatoll.AtollError):
                opening.wait()
            self.assertEqual(self.lease()[0], "free")

    def test_a_held_sandbox_is_not_idle(self):
        self.box = self.create("--owner", "a/b", "--idle-timeout", "1s")
        tools = self.attach()
        time.sleep(2.2)
        self.assertEqual(tools.call("run_command", command="echo here").text, "[stdout]\nhere")

    def test_one_that_is_prolonged_gives_commands_more_time(self):
        self.box = self.create("--owner", "a/b", "--lifetime", "20s")
        tools = self.attach()
        slow = {"command": "true", "timeout_seconds": 60}
        self.assertLess(tools.call("run_command", **slow).facts["applied_timeout_seconds"], 20)
        self.good("extend", "--owner", "a/b", self.box, "1h")
        facts = tools.call("run_command", **slow).facts
        self.assertNotIn("applied_timeout_seconds", facts)
        self.assertGreater(facts["remaining_seconds"], 3000)

    def test_a_process_that_was_given_the_lease_acts_by_it(self):
        spec = self.folder() / "attach.yaml"
        spec.write_text(f"version: 1\ntoolset: {{attach_to: {self.box}, owner: a/b}}\n")
        call = [ATOLL, "tool", "--spec", str(spec), self.box, "run_command", '{"command":"echo by lease"}']
        held = self.atoll("hold", "--owner", "a/b", "--holder", "x", self.box, "--", *call)
        self.assertEqual((held.status, held.out), (0, b"[stdout]\nby lease\n"), held)
        self.assertEqual(self.lease()[0], "free")

    def test_a_lease_that_is_over_ends_the_run(self):
        first = self.attach()
        generation = self.json("inspect", self.box)
        number = generation.get("lease_generation") or generation["lease"]["generation"]
        by_lease = self.toolset(settings={"toolset.attach_to": self.box, "toolset.owner": "a/b"}, lease=number)
        (line,) = by_lease.open().notes
        self.assertIn(f"by its lease {number}", line)
        self.assertEqual(by_lease.call("run_command", command="echo both").text, "[stdout]\nboth")
        self.attach()
        for tools in (first, by_lease):
            self.assert_terminal(tools.call, "run_command", command="true", words=[self.box, "took over"])
        by_lease.close(True)
        self.assertEqual(self.lease(), ("held", "a/b/c"))

    def test_a_tool_call_of_the_command_line_attaches_and_lets_go(self):
        spec = self.folder() / "attach.yaml"
        spec.write_text(f"version: 1\ntoolset: {{attach_to: {self.box}, owner: a/b}}\n")
        call = ("--spec", str(spec), "--holder", "me", self.box, "run_command", '{"command":"echo hi"}')
        result = self.atoll("tool", *call, env={"ATOLL_LOG": "info"})
        self.assertEqual((result.status, result.out), (0, b"[stdout]\nhi\n"), result)
        self.assertIn(b"Attached to sandbox", result.err)
        self.assertEqual(self.lease()[0], "free")
        self.attach()
        self.assert_refused(self.atoll("tool", *call), "a/b/c")
        self.assertIn(b"earlier task", self.good("tool", "--describe", "--spec", str(spec)))  # disturbs nobody
        self.assert_refused(self.atoll("tool", "--holder", "me", self.box, "run_command", "{}"), "--holder")

    def test_a_server_holds_it_until_its_client_goes(self):
        spec = self.folder() / "attach.yaml"
        spec.write_text(f"version: 1\ntoolset: {{attach_to: {self.box}, owner: a/b}}\n")
        server = McpServer.spawn("--spec", str(spec), "--holder", "agent", env=self.env)
        self.addCleanup(server.client.stdout.close)
        self.addCleanup(server.close_errors)
        self.addCleanup(server.end)
        server.initialize()
        self.assertEqual(server.call("run_command", {"command": "echo hi"})["content"][0]["text"], "[stdout]\nhi")
        self.assertEqual(self.lease(), ("held", "agent"))
        server.end()
        self.assertEqual(self.lease()[0], "free")

    def test_a_server_without_such_a_sandbox_has_no_holder(self):
        self.assert_refused(self.atoll("mcp", "--holder", "me", stdin=b""), "--holder", "attach_to")


if __name__ == "__main__":
    unittest.main()
