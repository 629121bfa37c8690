# SPDX-License-Identifier: Apache-2.0
"""The tools for background processes: start_process, process_output and stop_process."""
import json
import os
import resource
import time
import unittest

from tool_support import FakeTest, ToolTest, libatoll  # first: it says where the other modules are
from protocol import Class, EndedBy, Reason
from support import PYTHON, descendants, json_schema, keepers, wait_for

TOOLS = ["start_process", "process_output", "stop_process"]
REPLACED = "[sandbox was replaced; files from earlier calls are gone]"
MARKER = "[... earlier output truncated]"
SECRET = "correct-horse-battery"


def running(name):
    """The living processes below this test whose first argument is that."""
    return [p for p in descendants() if p.arguments[:1] == (name.encode(),)]


class ProcessTest(ToolTest):
    SETTINGS = {"toolset.tools": TOOLS}

    def setUp(self):
        super().setUp()
        self.tools = None

    def use(self, name, **arguments):
        """One call of a run that is opened when it is first needed; what it answers keeps to its schema."""
        self.tools = self.tools or self.opened(settings=self.SETTINGS)
        answer = self.tools.call(name, **arguments)
        if not answer.retry:
            json_schema.validate(answer.facts, json.loads(self.tools.tools[name]["output_schema"]))
        return answer

    def launch(self, command):
        """Starts a process; its number."""
        answer = self.use("start_process", command=command)
        self.assertEqual(answer.text, f"Started process {answer.facts['process']}.")
        return answer.facts["process"]

    def output(self, process, **arguments):
        return self.use("process_output", process=process, **arguments)

    def stop(self, process):
        return self.use("stop_process", process=process)

    def until(self, process, found, **arguments):
        """Asks on until what was written since the beginning holds a text; all of it."""
        text, end = "", time.monotonic() + libatoll.LIMIT_S
        while found not in text:
            self.assertLess(time.monotonic(), end, text)
            facts = self.output(process, wait_seconds=5, **arguments).facts
            text += facts["output"] + "\n"
            self.assertTrue(facts["running"] or found in text, (text, facts))
        return text

    def end_of(self, process):
        """The answer that tells of its end."""
        answer = self.output(process, wait_seconds=30)
        while answer.facts["running"]:
            answer = self.output(process, wait_seconds=30)
        return answer


class Output(ProcessTest):
    """What it wrote."""

    def test_a_server_answers_commands_and_tells_what_it_was_asked(self):
        server = self.launch(f"{PYTHON} -u -m http.server --bind 127.0.0.1 8123")
        self.until(server, "Serving HTTP")
        client = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8123/?found').status)"
        self.assertEqual(self.use("run_command", command=f'{PYTHON} -c "{client}"').text, "[stdout]\n200")
        self.assertIn('"GET /?found HTTP/1.1" 200', self.until(server, "GET"))
        stopped = self.stop(server)
        self.assertEqual(stopped.text, "(no new output)\n[ended by signal 15]")
        self.assertEqual(running(PYTHON), [])

    def test_what_was_told_once_is_not_told_again(self):
        process = self.launch("echo out; echo err >&2; sleep 1000")
        text = self.until(process, "err")
        self.assertEqual(sorted(text.split()), ["err", "out"])
        answer = self.output(process)
        self.assertEqual(answer.text, "(no new output)\n[running]")
        self.assertEqual({k: answer.facts[k] for k in ("process", "running", "output", "dropped_bytes")},
                         {"process": process, "running": True, "output": "", "dropped_bytes": 0})
        self.assertFalse({"exit_code", "signal"} & set(answer.facts))

    def test_an_end_is_told_with_its_code(self):
        process = self.launch("echo done; exit 7")
        answer = self.end_of(process)
        self.assertEqual(answer.facts["exit_code"], 7)
        self.assertTrue(answer.text.endswith("\n[exit code: 7]"), answer.text)
        again = self.output(process, wait_seconds=1000)
        self.assertEqual(again.text, "(no new output)\n[exit code: 7]")

    def test_an_end_by_a_signal_is_told(self):
        process = self.launch("kill -SEGV $$")
        answer = self.output(process, wait_seconds=30)
        self.assertEqual(answer.text, "(no new output)\n[ended by signal 11]")
        self.assertEqual(answer.facts["signal"], 11)

    def test_a_shell_that_leaves_a_process_in_the_background_says_that_it_holds_the_output(self):
        process = self.launch("sleep 1000 & echo started")
        answer = self.end_of(process)
        self.assertIn("[exit code: 0] [a background process still holds the output", answer.text)
        self.assertEqual(len(running("sleep")), 1)

    def test_a_flood_is_bounded_and_shows_its_tail(self):
        process = self.launch("head -c 300M /dev/zero | tr '\\0' '\\n'; echo the end; sleep 1000")
        self.output(process, wait_seconds=5)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        text = self.until(process, "the end")
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 16 * 1024)  # KiB
        self.assertTrue(text.rstrip("\n").endswith("\nthe end"), text[-100:])
        self.launch("yes")
        endless = self.launch("yes abcdefg")
        answer = self.output(endless, wait_seconds=5)
        wait_for(lambda: self.output(endless).facts["dropped_bytes"] > 0, "more than is kept")
        wait_for(lambda: self.output(endless).text.startswith(MARKER + "\nabcdefg\n"), "a first line that is whole")
        self.assertLess(len(answer.text), 60 * 1024)

    def test_what_is_kept_and_shown_follows_the_limits(self):
        self.tools = self.opened(settings=self.SETTINGS | {"toolset.max_output_bytes": "100",
                                                           "toolset.max_output_lines": "3"})
        process = self.launch("seq 100; echo ä; exec sleep 1000")
        wait_for(lambda: running("sleep"), "its end")
        answer = self.output(process, wait_seconds=5)
        total = len("".join(f"{i}\n" for i in range(1, 101)) + "ä\n".encode().decode()) + 1
        self.assertEqual(answer.text, f"{MARKER}\n99\n100\nä\n[running]")
        self.assertEqual(answer.facts["output"], "99\n100\nä")
        self.assertEqual(answer.facts["dropped_bytes"], total - len("99\n100\nä\n".encode()))

    def test_secrets_are_masked_across_pieces(self):
        self.tools = self.opened(settings=self.SETTINGS | {"spec.env": f"TOKEN={SECRET}"})
        process = self.launch('printf "a ${TOKEN%battery}"; sleep 0.4; echo "battery b"; printf correct; '
                             'while [ ! -e go ]; do sleep 0.01; done; echo -horses; echo "$TOKEN" >&2; sleep 1000')
        text = self.until(process, "b")
        text += self.until(process, "*** b") if "*** b" not in text else ""
        self.assertNotIn("correct", text)  # what could begin a secret waits
        self.use("run_command", command="touch go")
        text += self.until(process, "***")
        self.assertEqual(text.replace("\n", ""), "a *** bcorrect-horses***")

    def test_characters_are_whole_and_bytes_that_are_none_are_replaced(self):
        process = self.launch("printf 'caf\\303'; sleep 0.3; printf '\\251 \\377'; sleep 1000")
        self.assertEqual(self.until(process, "\ufffd").replace("\n", ""), "café \ufffd")

    def test_only_new_output_or_the_end_is_waited_for(self):
        process = self.launch("while [ ! -e go ]; do sleep 0.01; done; echo gone; sleep 1000")
        begun = time.monotonic()
        self.assertEqual(self.output(process, wait_seconds=0.3).text, "(no new output)\n[running]")
        self.assertGreaterEqual(time.monotonic() - begun, 0.3)
        call = self.tools.start("process_output", process=process, wait_seconds=1000)
        self.use_while(call, "touch go")

    def use_while(self, call, command):
        """A command that is asked for behind a call that waits runs when that has been cancelled."""
        other = self.tools.start("run_command", command=command)
        with self.assertRaises(TimeoutError):
            other.wait(0.3)
        self.assertFalse(call.done)
        call.cancel()
        self.assertTrue(call.done)
        self.assertFalse(other.wait().answer.retry)
        call.free()
        other.free()
        self.assertEqual(self.output(1, wait_seconds=1000).text, "gone\n[running]")

    def test_waiting_ends_with_the_longest_that_a_command_may_take(self):
        self.tools = self.opened(settings=self.SETTINGS | {"toolset.max_command_timeout": "1",
                                                           "toolset.default_command_timeout": "1"})
        process = self.launch("sleep 1000")
        self.assertEqual(self.output(process, wait_seconds=100000).text, "(no new output)\n[running]")


class Ends(ProcessTest):
    """Stopping, and what is left."""

    def test_stopping_ends_everything_that_it_started(self):
        kinds = {
            "one program": "exec sleep 1001",
            "new sessions": "setsid sleep 1001 & setsid -f sleep 1001; sleep 1001",
            "double fork": "(sleep 1001 & ) & (sleep 1001 >/dev/null 2>&1 &); sleep 1001",
            "children that ignore it": "(trap '' TERM; exec sleep 1001) & setsid sh -c 'trap \"\" TERM; sleep 1001' & sleep 1001",
        }
        other = self.launch("exec sleep 1002")
        self.use("run_command", command="sleep 1003 >/dev/null 2>&1 &")
        for name, command in kinds.items():
            with self.subTest(name):
                process = self.launch(command + " & echo up; wait")
                self.until(process, "up")
                wait_for(lambda: self.sleeping("1001"), "its processes")
                answer = self.stop(process)
                self.assertEqual(answer.text, "(no new output)\n[ended by signal 15]")
                self.assertEqual(answer.facts["signal"], 15)
                self.assertEqual(self.sleeping("1001"), [])
                self.assertEqual(len(self.sleeping("1002")), 1)
                self.assertEqual(len(self.sleeping("1003")), 1)
        self.assertEqual(self.output(other).text, "(no new output)\n[running]")

    @staticmethod
    def sleeping(seconds):
        return [p for p in descendants() if p.arguments == (b"sleep", seconds.encode())]

    def test_one_that_does_not_listen_is_killed_after_two_seconds(self):
        process = self.launch("trap '' TERM; setsid sleep 1001 & echo up; while :; do sleep 0.05; done")
        self.until(process, "up")
        begun = time.monotonic()
        answer = self.stop(process)
        self.assertGreaterEqual(time.monotonic() - begun, 2)
        self.assertEqual(answer.text, "(no new output)\n[ended by signal 9]")
        self.assertEqual(self.sleeping("1001"), [])

    def test_one_that_tidies_up_says_its_last_words(self):
        process = self.launch("trap 'echo tidy; exit 3' TERM; echo up; while :; do sleep 0.05; done")
        self.until(process, "up")
        answer = self.stop(process)
        self.assertTrue(answer.text.endswith("tidy\n[exit code: 3]"), answer.text)
        self.assertEqual(self.stop(process).text, "(no new output)\n[exit code: 3]")
        self.assertEqual(self.output(process).facts["exit_code"], 3)

    def test_a_timeout_of_a_command_leaves_it_alone(self):
        process = self.launch("echo up; exec sleep 1002")
        self.until(process, "up")
        self.assertIn("[timed out after", self.use("run_command", command="sleep 1001", timeout_seconds=0.3).text)
        self.assertEqual(self.output(process).text, "(no new output)\n[running]")

    def test_a_call_that_is_cancelled_while_it_stops_one_leaves_the_rest_in_order(self):
        process = self.launch("trap '' TERM; echo up; while :; do sleep 0.05; done")
        self.until(process, "up")
        call = self.tools.start("stop_process", process=process)
        with self.assertRaises(TimeoutError):
            call.wait(0.3)
        call.cancel()
        self.assertTrue(call.done)
        call.free()
        self.assertEqual(self.stop(process).text, "(no new output)\n[ended by signal 9]")

    def test_the_close_leaves_nothing(self):
        for end in ("close", "free"):
            with self.subTest(end):
                self.tools = None
                for _ in range(3):
                    self.launch("setsid sleep 1001 & exec sleep 1001")
                self.launch("true")
                wait_for(lambda: len(self.sleeping("1001")) == 6, "all of them")
                self.tools.close() if end == "close" else self.tools.free()
                wait_for(lambda: not keepers(), "the end of the sandbox")
                self.assertEqual(self.sleeping("1001"), [])

    def test_in_a_standing_sandbox_the_close_ends_what_was_started(self):
        sandbox = self.context.create()
        self.tools = self.opened(settings=self.SETTINGS, sandbox=sandbox.id)
        self.launch("setsid sleep 1001 & exec sleep 1001")
        wait_for(lambda: len(self.sleeping("1001")) == 2, "both")
        self.tools.close()
        wait_for(lambda: not self.sleeping("1001"), "the end of what was started")
        self.assertEqual(len(keepers()), 1)
        sandbox.destroy()

    def test_a_lost_sandbox_takes_its_processes_and_their_numbers(self):
        process = self.launch("echo up; sleep 1000")
        self.until(process, "up")
        os.kill(keepers()[0].pid, 9)
        wait_for(lambda: not keepers(), "the end of the keeper")
        answer = self.output(process)
        self.assert_retry(answer, "There is no process 1: none has been started in this sandbox.", REPLACED)
        self.assertEqual(self.launch("sleep 1000"), 1)

    def test_a_sandbox_that_is_lost_under_a_wait_is_told_with_what_there_was(self):
        process = self.launch("sleep 1000")
        call = self.tools.start("process_output", process=process, wait_seconds=1000)
        with self.assertRaises(TimeoutError):
            call.wait(0.3)
        os.kill(keepers()[0].pid, 9)
        answer = call.wait().answer
        self.assertEqual(answer.text, f"(no new output)\n[ended with its sandbox]\n{REPLACED}")
        self.assertTrue(answer.replaced and answer.facts["replaced"] and not answer.facts["running"], answer.facts)
        call.free()
        self.assert_retry(self.output(process), "There is no process 1")

    def test_a_sandbox_that_is_lost_while_one_is_stopped_is_told(self):
        process = self.launch("trap '' TERM; echo up; while :; do sleep 0.05; done")
        self.until(process, "up")
        call = self.tools.start("stop_process", process=process)
        with self.assertRaises(TimeoutError):
            call.wait(0.3)
        os.kill(keepers()[0].pid, 9)
        self.assertEqual(call.wait().answer.text, f"(no new output)\n[ended with its sandbox]\n{REPLACED}")
        call.free()


class Refusals(ProcessTest):
    """What is not done."""

    def test_a_number_that_is_none_is_answered_with_those_there_are(self):
        for name in ("process_output", "stop_process"):
            self.assert_retry(self.use(name, process=7), "There is no process 7: none has been started")
        self.assertIsNone(self.tools.sandbox)
        self.launch("sleep 1000")
        self.launch("sleep 1000")
        self.output(self.launch("true"), wait_seconds=30)
        self.launch("sleep 1000")
        text = "There is no process 7. Those that run: 1, 2 and 4. Those that have ended: 3."
        self.assertEqual(self.output(7).text, text)
        self.assertEqual(self.stop(7).text, text)
        for number in (0, -1, 2**32 + 1, 10**30):
            self.assert_retry(self.output(number), "There is no process", "Those that run: 1, 2 and 4.")

    def test_seventeen_at_once_are_one_too_many(self):
        for _ in range(16):
            self.launch("sleep 1000")
        answer = self.use("start_process", command="sleep 1000")
        self.assert_retry(answer, "16 processes run already", "15 and 16", "Stop one")
        self.stop(5)
        self.assertEqual(self.launch("sleep 1000"), 17)

    def test_of_those_that_ended_the_last_thirty_two_can_be_asked_for(self):
        kept = self.launch("sleep 1000")
        for number in range(2, 36):
            self.assertEqual(self.launch("true"), number)
            self.output(number, wait_seconds=30)
        self.assert_retry(self.output(2), "There is no process 2.", f"Those that run: {kept}.", "ended: 4, 5,", "34 and 35.")
        self.assert_retry(self.output(3), "There is no process 3.")
        self.assertEqual(self.output(4).facts["exit_code"], 0)

    def test_arguments_that_are_none_are_refused(self):
        self.launch("sleep 1000")
        self.assert_retry(self.use("start_process", command=""), "command is empty")
        self.assert_retry(self.use("start_process", command="a\0b"), "NUL")
        self.assert_retry(self.use("start_process", command="x" * 131072), "128.0KB")
        for wrong in (-1, "nan", "inf"):
            self.assert_retry(self.output(1, wait_seconds=wrong), "wait_seconds must be a number of 0 or more")
        self.assert_retry(self.tools.call("process_output", "{}"), "process")
        self.assert_retry(self.tools.call("stop_process", '{"process":1.5}'), "process")
        self.assertEqual(self.output("1", wait_seconds=None).text, "(no new output)\n[running]")

    def test_a_toolset_without_them_does_not_have_them(self):
        self.tools = self.opened()
        self.assert_usage(self.tools.call, "start_process", command="true", words=["start_process"])

    def test_a_shell_that_is_not_there_is_an_answer(self):
        image = self.folder()
        for name in ("proc", "dev", "tmp", "workspace"):
            (image / name).mkdir()
        self.tools = self.opened(settings=self.SETTINGS | {"backend.image": f"dir:{image}"})
        answer = self.use("start_process", command="true")
        self.assert_retry(answer, "The command could not be started: sh: not found in the sandbox.")
        self.assert_retry(self.output(1), "none has been started")


class Scripted(FakeTest):
    """What a backend may make of it."""

    def begun(self, *entries, signal=None, **others):
        """A run of which each entry is a process."""
        self.script(exec=list(entries), signal=signal or {}, **others)
        tools = self.fake({"toolset.tools": TOOLS})
        for number in range(1, len(entries) + 1):
            answer = tools.call("start_process", command="x")
            self.assertEqual(answer.text, f"Started process {number}.")
        return tools

    def test_it_is_started_as_run_command_does_without_a_timeout(self):
        self.begun({"until": str(self.signal("never"))})
        (asked,) = self.requests("exec")
        self.assertEqual(asked["arg"], ["sh", "-c", "x"])
        self.assertNotIn("timeout_us", asked)

    def test_what_it_wrote_counts_towards_the_ceiling_of_the_run_and_who_is_cut_is_told(self):
        self.script(exec={"stdout": "aaaa\nbbbb\ncccc"})
        tools = self.fake({"toolset.tools": TOOLS, "toolset.max_run_output_bytes": "10"})
        tools.call("start_process", command="x")
        answer = tools.call("process_output", process=1, wait_seconds=10)
        self.assertIn(f"{MARKER}\nbbbb\ncccc\n[of all output of this session 10B may be shown", answer.text)

    def test_a_start_is_told_when_it_has_come(self):
        self.script(exec={"mute": True, "until": str(self.signal("go"))})
        tools = self.fake({"toolset.tools": TOOLS})
        call = tools.start("start_process", command="x")
        with self.assertRaises(TimeoutError):
            call.wait(0.3)
        self.signal("go").touch()
        self.assertEqual(call.wait().answer.text, "Started process 1.")
        call.free()

    def test_a_start_that_is_cancelled_kills_the_command(self):
        self.script(exec=[{"mute": True, "until": str(self.signal("never"))}, {}])
        tools = self.fake({"toolset.tools": TOOLS})
        call = tools.start("start_process", command="x")
        self.step_until_asked("exec")
        call.cancel()
        with self.assertRaises(libatoll.AtollError):
            call.wait()
        call.free()
        self.assertEqual(self.kinds("killed"), ["killed"])
        self.assertEqual(tools.call("start_process", command="y").text, "Started process 1.")

    def test_a_start_that_is_refused_is_an_answer(self):
        self.script(exec={"error": {"message": "no more commands today", "code": 11}})
        tools = self.fake({"toolset.tools": TOOLS})
        self.assert_retry(tools.call("start_process", command="x"),
                          "The start_process tool failed: ", "no more commands today")

    def test_ends_are_told_in_words(self):
        tools = self.begun({"signal": 9, "reason": Reason.OOM}, {"signal": 9, "reason": Reason.KILLED}, {"code": 4})
        ends = ["(no new output)\n[ended by signal 9] [ended because memory ran out]",
                "(no new output)\n[ended by signal 9] [ended from outside]", "(no new output)\n[exit code: 4]"]
        for number, text in enumerate(ends, 1):
            self.assertEqual(tools.call("process_output", process=number, wait_seconds=30).text, text)

    def test_output_wakes_who_waits_for_it(self):
        tools = self.begun({"early": "up", "until": str(self.signal("never"))})
        self.assertEqual(tools.call("process_output", process=1, wait_seconds=1000).text, "up\n[running]")

    def test_where_no_signal_can_be_sent_it_is_killed_at_once(self):
        lacks = {"error": {"cls": Class.USAGE, "code": 38, "message": "it cannot send signals"}}
        tools = self.begun({"until": str(self.signal("never"))}, signal=lacks)
        begun = time.monotonic()
        self.assertEqual(tools.call("stop_process", process=1).text, "(no new output)\n[ended by signal 9]")
        self.assertLess(time.monotonic() - begun, 2)
        self.assertEqual(self.kinds("killed"), ["killed"])

    def test_a_signal_says_that_all_has_to_end(self):
        tools = self.begun({"until": str(self.signal("never"))})
        self.assertEqual(tools.call("stop_process", process=1).text, "(no new output)\n[ended by signal 9]")
        (asked,) = self.requests("signal")
        self.assertEqual((asked["signal"], asked["signal_flags"]), (15, 1))

    def test_a_sandbox_whose_life_is_over_ends_the_run(self):
        tools = self.begun({"until": str(self.signal("go")), "signal": 9, "reason": Reason.LIFETIME, "ended": EndedBy.LIFETIME})
        call = tools.start("process_output", process=1, wait_seconds=1000)
        with self.assertRaises(TimeoutError):
            call.wait(0.3)
        self.signal("go").touch()
        self.assert_terminal(call.wait, words=["lifetime"])
        call.free()

    def test_an_end_that_is_not_known_is_told(self):
        tools = self.begun({"until": str(self.signal("go")), "error": {"message": "the line to it broke"}})
        self.signal("go").touch()
        self.assertEqual(tools.call("process_output", process=1, wait_seconds=1000).text,
                         "(no new output)\n[ended, and it is not known how: the line to it broke]")
        self.assertEqual(tools.call("stop_process", process=1).text,
                         "(no new output)\n[ended, and it is not known how: the line to it broke]")

    def test_a_dead_connection_is_noticed_and_the_process_started_in_a_new_sandbox(self):
        self.script(exec=[{"ended": EndedBy.KILLED, "ended_when": str(self.signal("end"))},
                          {"until": str(self.signal("never"))}])
        tools = self.fake({"toolset.tools": TOOLS})
        tools.call("run_command", command="x")
        self.signal("end").touch()
        wait_for(lambda: self.requests("ended"), "the end of the sandbox")
        answer = tools.call("start_process", command="y")
        self.assertEqual(answer.text, f"Started process 1.\n{REPLACED}")


if __name__ == "__main__":
    unittest.main()
