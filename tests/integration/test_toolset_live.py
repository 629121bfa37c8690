# SPDX-License-Identifier: Apache-2.0
"""The toolset in sandboxes of this kernel: what an agent sees of a real machine.

Names in brackets are rows of the scenario list that a test stands for.
"""
import os
import resource
import unittest
from pathlib import Path

from tool_support import ToolTest, libatoll  # first: it says where the other modules are
from support import ATOLL, descendants, keepers, wait_for

SECRET = "correct-horse-battery"
MIB = 1 << 20


class LiveTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.tools = None

    def sh(self, command, **arguments):
        """One command of a run that is opened when it is first needed."""
        self.tools = self.tools or self.opened()
        return self.tools.call("run_command", command=command, **arguments)

    def out(self, command, **arguments):
        """What a command writes, which must end well and leave standard error alone."""
        answer = self.sh(command, **arguments)
        self.assertTrue(answer.text.startswith("[stdout]\n") and answer.exit.status == 0, answer)
        return answer.text.removeprefix("[stdout]\n")

    def use(self, name, **arguments):
        self.tools = self.tools or self.opened()
        return self.tools.call(name, **arguments)

    def read_all(self, path, **first):
        """All pages of a file, by the offsets that the answers name."""
        lines, offset = [], 1
        while offset:
            text = self.use("read_file", path=path, offset=offset, **first).text
            page = text.splitlines()
            offset = int(page.pop().rpartition("offset=")[2][:-1]) if page[-1].startswith("[... ") else None
            lines += page
        return lines


class Commands(LiveTest):
    """run_command (T)."""

    def test_files_are_shared_with_commands(self):
        self.assertEqual(self.use("write_file", path="deep/er/a.txt", content="one\ntwo\n").text, "Wrote 8 bytes to 'deep/er/a.txt'.")
        self.assertEqual(self.out("cat \"$(pwd)\"/deep/er/a.txt"), "one\ntwo")
        self.assertEqual(self.use("read_file", path="deep/er/a.txt").text, "one\ntwo")

    def test_a_status_and_a_message(self):
        self.assertEqual(self.sh("echo x >&2; exit 3").text, "[stderr]\nx\n[exit code: 3]")

    def test_a_timeout_ends_the_command_and_files_stay(self):
        self.use("write_file", path="a", content="kept")
        answer = self.sh("echo begun; sleep 1000", timeout_seconds=0.5)
        self.assertEqual(answer.text, "[stdout]\nbegun\n[timed out after 0.5s]")
        self.assertFalse(answer.replaced)
        self.assertEqual(self.use("read_file", path="a").text, "kept")

    def test_a_timeout_reaches_what_ignores_signals_and_forks(self):
        script = "trap '' TERM INT HUP; for i in 1 2 3; do (trap '' TERM; exec sleep 1000) & done; setsid sleep 1000 & wait"
        self.assertIn("[timed out after 0.3s]", self.sh(script, timeout_seconds=0.3).text)
        self.assertEqual(self.out("grep -l '^sleep' /proc/[0-9]*/cmdline | wc -l"), "0")

    def test_signals_are_told_as_a_shell_does(self):
        self.assertEqual(self.sh("kill -SEGV $$").text, "(no output)\n[exit code: 139]")

    def test_shell_state_does_not_stay_and_files_do(self):
        self.sh("X=1; export X; cd /tmp; echo here > file")
        self.assertEqual(self.out('echo "[$X] $(pwd)"; cat /tmp/file'), "[] /workspace\nhere")

    def test_standard_input_is_empty(self):
        self.assertEqual(self.out("cat; echo end"), "end")

    def test_nothing_of_this_process_is_in_the_environment(self):
        self.set_environment(AIRFLOW_CONN_X="secret", ATOLL_TEST_VALUE="1")
        names = {line.partition("=")[0] for line in self.out("env").splitlines()}
        self.assertFalse(names & {"AIRFLOW_CONN_X", "ATOLL_TEST_VALUE", "ATOLL_STATE_DIR"}, names)

    def test_no_name_resolves(self):
        self.assertNotEqual(self.sh("getent hosts example.com").exit.status, 0)

    def test_a_background_process_that_holds_the_output_is_not_waited_for(self):
        self.assertEqual(self.sh("sleep 1000 & echo started").text,
                         "[stdout]\nstarted\n[a background process still holds the output; what it writes from now on "
                         "is not shown]")
        self.assertEqual(self.out("grep -l '^sleep' /proc/[0-9]*/cmdline | wc -l"), "1")

    def test_a_flood_shows_its_tail_and_costs_no_memory(self):
        self.out("echo warm")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = self.sh("head -c 1G /dev/zero | tr '\\0' '\\n'; echo the end; echo bad >&2")
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 16 * 1024)  # KiB
        self.assertEqual(answer.exit.stdout_total, (1 << 30) + len("the end\n"))
        self.assertIn("[stdout]\n[... earlier output truncated]\n", answer.text)
        self.assertTrue(answer.text.endswith("\nthe end\n[stderr]\nbad"), answer.text[-100:])


class Files(LiveTest):
    """The other tools (K, L, T)."""

    def test_an_endless_device_is_told_of_at_once(self):
        for path in ("/dev/zero", "/dev/urandom"):
            self.assert_retry(self.use("read_file", path=path), "read limit", "run_command")

    def test_what_has_no_content_is_an_answer_and_never_a_wait(self):
        self.sh("mkfifo pipe; ln -s nowhere dangling; touch secret; chmod 0 secret; mkdir folder")
        for path in ("pipe", "dangling", "missing", "folder"):
            with self.subTest(path):
                self.assert_retry(self.use("read_file", path=path), "The read_file tool failed: ")

    def test_a_file_of_proc_is_read(self):
        self.assertIn("Name:", self.use("read_file", path="/proc/self/status").text)

    def test_folders_bear_a_slash_and_links_to_them_do_not(self):
        self.sh("mkdir sub; touch -- file .hidden -dash; ln -s sub link; touch sub/inner")
        self.assertEqual(self.use("list_directory").text, "-dash\n.hidden\nfile\nlink\nsub/")
        self.assertEqual(self.use("list_directory", path="link").text, "inner")
        self.assertEqual(self.use("list_directory", path="sub/..").text, "-dash\n.hidden\nfile\nlink\nsub/")
        for path in ("file", "missing"):
            self.assert_retry(self.use("list_directory", path=path), "The list_directory tool failed: ")

    def test_hostile_names_survive(self):
        names = ["a b", "it's", 'say "x"', "semi;colon", "$HOME", "line\nend", "-rf", "ünï"]
        for name in names:
            self.assertFalse(self.use("write_file", path=f"n/{name}", content=name).retry)
        self.assertEqual(self.out("ls -A n | wc -l"), str(len(names) + 1))  # one holds a line end
        for name in names:
            self.assertEqual(self.use("read_file", path=f"n/{name}").text, name)
        for line in self.use("list_directory", path="n").text.splitlines():
            quoted = line if line.startswith("$'") else "'" + line.replace("'", "'\\''") + "'"
            self.assertEqual(self.sh(f"cd n; bash -c {self.quote('test -e ./' + quoted)}").exit.status, 0, line)

    @staticmethod
    def quote(text):
        return "'" + text.replace("'", "'\\''") + "'"

    def test_a_write_follows_a_link_and_keeps_mode_and_link(self):
        self.sh("echo old > target; chmod 751 target; ln -s target link")
        self.use("write_file", path="link", content="new")
        self.assertEqual(self.out("cat target; stat -c %a target; readlink link"), "new751\ntarget")

    def test_a_write_of_a_megabyte(self):
        text = "x" * 99 + "\n"
        self.use("write_file", path="big", content=text * 20000)
        self.assertEqual(self.out("wc -c < big; sort -u big | wc -l"), "2000000\n1")

    def test_a_write_that_cannot_be_is_an_answer(self):
        self.sh("mkdir d")
        for path in ("d", "/usr/x", "/proc/x"):
            self.assert_retry(self.use("write_file", path=path, content="x"), "The write_file tool failed: ")

    def test_a_large_file_needs_a_page_and_every_line_comes_once(self):
        self.sh("seq 1 3000000 > numbers")  # 22 MB
        answer = self.use("read_file", path="numbers")
        self.assert_retry(answer, "'numbers' has 21.8MB", "read limit of 5.0MB")
        page = self.use("read_file", path="numbers", offset=2900001, limit=5).text.splitlines()
        self.assertEqual(page[:5], [str(i) for i in range(2900001, 2900006)])
        self.assertEqual(page[5], "[... 99995 more lines; read on with offset=2900006]")
        self.assertEqual(self.use("read_file", path="numbers", offset=3000000).text, "3000000")
        self.assertEqual(self.use("read_file", path="numbers", offset=3000001).text, "(no lines at offset 3000001; file has 3000000 lines)")

    def test_pages_hold_every_line_exactly_once(self):
        self.sh("seq 1 20000 > numbers")
        self.assertEqual(self.read_all("numbers"), [str(i) for i in range(1, 20001)])
        self.assertEqual(self.read_all("numbers", limit=777), [str(i) for i in range(1, 20001)])

    def test_reading_a_large_file_costs_no_memory(self):
        self.sh("head -c 300M /dev/zero | tr '\\0' 'x' | fold -w 99 > big")
        self.use("read_file", path="big", offset=1, limit=1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertEqual(self.use("read_file", path="big", offset=3000000, limit=1).text.splitlines()[0], "x" * 99)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 16 * 1024)  # KiB

    def test_a_file_that_grows_all_the_time_comes_to_an_end(self):
        self.sh("yes > log & sleep 0.1")
        self.assertTrue(self.use("read_file", path="log", offset=1, limit=2).text.startswith("y\ny\n[... "))
        self.sh("pkill yes")


class Secrets(LiveTest):
    """Masking (S)."""

    def setUp(self):
        super().setUp()
        self.tools = self.opened(settings={"spec.env": f"TOKEN={SECRET}"})

    def test_in_output_files_and_names(self):
        self.assertEqual(self.out('echo "$TOKEN"'), "***")
        self.assertEqual(self.sh('echo "$TOKEN" >&2').text, "[stderr]\n***")
        self.sh('mkdir s; echo "a $TOKEN b" > s/"$TOKEN"')
        self.assertEqual(self.use("list_directory", path="s").text, "***")
        self.assertEqual(self.use("read_file", path=f"s/{SECRET}").text, "a *** b")
        self.assertIn("'s/***x' does not exist", self.use("read_file", path=f"s/{SECRET}x").text)

    def test_across_pieces_of_a_large_file(self):
        self.sh('head -c 262140 /dev/zero | tr "\\0" "x" > f; echo "$TOKEN end" >> f')
        answer = self.sh("tail -c 30 f")
        self.assertIn("***", answer.text)
        lines = self.use("read_file", path="f", offset=1).text
        self.assertNotIn(SECRET, lines)

    def test_where_the_kept_bytes_begin_within_it(self):
        limit = 50 * 1024
        answer = self.sh(f'echo front; printf "%s" "$TOKEN"; head -c {limit - 10} /dev/zero | tr "\\0" "y"')
        self.assertIn("yyyy", answer.text)
        for n in range(4, len(SECRET)):
            self.assertNotIn(SECRET[-n:], answer.text)

    def test_the_sandbox_itself_has_it(self):
        self.assertEqual(self.out(f'test "$TOKEN" = {SECRET[:5]}"{SECRET[5:]}" && echo same'), "same")

    def test_another_encoding_is_not_recognised(self):
        self.assertIn(SECRET.encode().hex(), self.out('printf "%s" "$TOKEN" | od -An -tx1 | tr -d " \\n"'))

    def test_of_a_standing_sandbox_too(self):
        sandbox = self.create("--env", "KEY=another-long-secret")
        tools = self.opened(sandbox=sandbox)
        self.assertEqual(tools.call("run_command", command='echo "$KEY"').text, "[stdout]\n***")


class Lifecycle(LiveTest):
    """Sandboxes that come and go (M, N, O, Q)."""

    def test_the_close_leaves_nothing(self):
        self.sh("sleep 1000 & true")
        self.assertEqual(len(keepers()), 1)
        self.tools.close(True)
        wait_for(lambda: not keepers(), "the end of the keeper")

    def test_freeing_leaves_nothing(self):
        self.sh("true")
        self.tools.free()
        self.context.free()
        self.assertEqual(keepers(), [])

    def test_a_run_that_dies_takes_its_sandbox_along(self):
        child = os.fork()
        if child == 0:
            context = libatoll.Context()
            tools = context.toolset()
            tools.open()
            tools.call("run_command", command="sleep 1000 & true")
            os._exit(0)
        os.waitpid(child, 0)
        wait_for(lambda: not keepers(), "the end of the sandbox")

    def test_a_sandbox_killed_between_calls_is_replaced(self):
        self.use("write_file", path="a", content="x")
        keeper = keepers()[0]
        os.kill(keeper.pid, 9)
        wait_for(lambda: not keepers(), "the end of the keeper")
        answer = self.use("read_file", path="a")
        self.assert_retry(answer, "does not exist", "[sandbox was replaced; files from earlier calls are gone]")
        self.assertTrue(answer.replaced)
        self.assertEqual(self.out("echo again"), "again")

    def test_a_sandbox_killed_under_a_command_shows_what_there_is(self):
        self.sh("true")
        call = self.tools.start("run_command", command="echo begun; touch there; sleep 1000")
        self.context.step()
        wait_for(lambda: self.context.step() or self.inside(), "the command")
        os.kill(keepers()[0].pid, 9)
        answer = call.wait().answer
        self.assertEqual(answer.text, "[stdout]\nbegun\n[sandbox was replaced; files from earlier calls are gone]")
        self.assertEqual(self.use("list_directory").text, "(empty)")

    def inside(self):
        return [p for p in descendants() if p.name == "sleep"]

    def test_the_process_that_serves_files_may_be_killed(self):
        self.use("write_file", path="a", content="x")
        kill = "for p in /proc/[0-9]*; do [ $(cat $p/comm) != atoll-files ] || { kill -9 ${p#/proc/} && echo killed; }; done"
        self.assertEqual(self.out(kill), "killed")
        answer = self.use("read_file", path="a")
        if answer.retry:  # it was under way
            answer = self.use("read_file", path="a")
        self.assertEqual((answer.text, answer.replaced), ("x", False))

    def test_the_end_of_the_lifetime_is_terminal(self):
        tools = self.opened(settings={"backend.sandbox_timeout": "2"})
        answer = tools.call("run_command", command="sleep 1000")
        self.assertRegex(answer.text, r"\[timed out after [\d.]+s\] \[that is less than the 60s it was to have: no more could be given\]$")
        wait_for(lambda: not keepers(), "the end of the sandbox")
        for _ in range(2):
            self.assert_terminal(tools.call, "run_command", command="x", words=["lifetime"])
        tools.close(False)

    def test_twenty_five_runs_at_once(self):
        tools = [self.opened() for _ in range(25)]
        calls = [t.start("run_command", command=f"echo {i} > n; sleep 0.1; cat n") for i, t in enumerate(tools)]
        self.assertEqual([c.wait().answer.text for c in calls], [f"[stdout]\n{i}" for i in range(25)])
        self.assertEqual(len({t.sandbox for t in tools}), 25)
        closes = [t.start_close(True) for t in tools]
        for close in closes:
            close.wait()
        wait_for(lambda: not keepers(), "the end of the keeper")

    def test_two_runs_of_one_agent_do_not_share_anything(self):
        one = self.opened(settings={"toolset.tool_prefix": "a"})
        two = self.opened(settings={"toolset.tool_prefix": "b"}, beside=one)
        one.call("a_write_file", path="/tmp/x", content="mine")
        self.assert_retry(two.call("b_read_file", path="/tmp/x"), "does not exist")

    def test_a_standing_sandbox_is_used_and_left(self):
        sandbox = self.create("--owner", "me")
        tools = self.toolset(settings={"toolset.attach_to": sandbox, "toolset.owner": "somebody"})
        self.assert_terminal(tools.open, words=["'me'", "'somebody'"])
        tools = self.opened(settings={"toolset.attach_to": sandbox, "toolset.owner": "me"})
        self.assertIn("about 60 minutes", tools.tools["run_command"]["description"])
        tools.call("write_file", path="a", content="left here")
        tools.close(True)
        self.assertEqual(self.exec(sandbox, "cat a"), b"left here")
        self.good("rm", "--owner", "me", sandbox)

    def test_a_standing_sandbox_that_goes_ends_the_run(self):
        sandbox = self.create()
        tools = self.opened(sandbox=sandbox)
        self.good("rm", sandbox)
        for _ in range(2):
            self.assert_terminal(tools.call, "run_command", command="x", words=[sandbox])
        self.assert_terminal(self.toolset(sandbox=sandbox).open, words=[sandbox])

    def test_a_cancelled_call_kills_what_it_started(self):
        self.sh("true")
        call = self.tools.start("run_command", command="setsid sleep 1000 & sleep 1000")
        wait_for(lambda: self.context.step() or len(self.inside()) == 2, "the command")
        call.cancel()
        self.assertEqual(self.out("echo next"), "next")
        self.assertEqual(self.inside(), [])

    def test_exports_are_published_from_a_run(self):
        folder = self.folder()
        exports = [f"out/r.txt=file://{folder}/r.txt", f"out/data=file://{folder}/data"]
        tools = self.opened(settings={"toolset.exports": exports})
        tools.call("run_command", command="mkdir -p out/data; echo result > out/r.txt; seq 1 1000 > out/data/n")
        closing = tools.close(True)
        self.assertEqual((folder / "r.txt").read_text(), "result\n")
        self.assertEqual(len((folder / "data/n").read_text().splitlines()), 1000)
        self.assertEqual([row[0] for row in closing.exported], ["out/r.txt", "out/data"])
        wait_for(lambda: not keepers(), "the end of the keeper")

    def test_exports_of_a_failed_run_are_not(self):
        target = self.folder() / "r.txt"
        tools = self.opened(settings={"toolset.exports": f"r.txt=file://{target}"})
        tools.call("write_file", path="r.txt", content="x")
        tools.close(False)
        self.assertFalse(target.exists())

    def test_one_missing_export_leaves_all_as_it_was(self):
        folder = self.folder()
        (folder / "a").write_text("old")
        tools = self.opened(settings={"toolset.exports": [f"a=file://{folder}/a", f"b=file://{folder}/b"]})
        tools.call("write_file", path="a", content="new")
        self.assert_terminal(tools.close, words=["b", str(folder), "does not exist"])
        self.assertEqual([(p.name, p.read_text()) for p in folder.iterdir()], [("a", "old")])
        wait_for(lambda: not keepers(), "the end of the keeper")

    def test_closing_under_a_writer_publishes_what_stands_still(self):
        target = self.folder() / "r.txt"
        tools = self.opened(settings={"toolset.exports": f"r.txt=file://{target}"})
        tools.call("write_file", path="r.txt", content="fixed\n")
        call = tools.start("run_command", command="while :; do echo more >> r.txt; done")
        wait_for(lambda: self.context.step() or self.busy(), "the writer")
        tools.close(True)
        self.assert_terminal(call.wait, words=["closed"])
        self.assertRegex(target.read_text(), r"\Afixed\n(more\n)*\Z")

    def busy(self):
        return [p for p in descendants() if b"echo more" in b" ".join(p.arguments)]


class OtherBackend(LiveTest):
    """The same tools on a backend program, where every byte goes through a stream."""

    def setUp(self):
        super().setUp()
        programs = Path(ATOLL).resolve().parent
        if not (programs / "atoll-backend-folder").exists():
            self.skipTest("atoll-backend-folder is not beside the program under test")
        self.set_environment(PATH=f"{programs}:{os.environ['PATH']}", ATOLL_FOLDER_DIR=str(self.folder()))
        self.addCleanup(self.context.free)  # before the folder goes
        self.tools = self.opened(settings={"backend.name": "folder", "spec.block_network": "false"})

    def test_all_tools(self):
        self.assertEqual(self.use("write_file", path="d/a", content="x\n" * 300000).text, "Wrote 600000 bytes to 'd/a'.")
        self.assertEqual(self.out("wc -c < d/a; exit 0"), "600000")
        self.assertEqual(self.sh("echo bad >&2; exit 4").text, "[stderr]\nbad\n[exit code: 4]")
        self.assertEqual(self.use("list_directory").text, "d/")
        self.assertIn("[timed out after 0.3s]", self.sh("sleep 1000", timeout_seconds=0.3).text)
        self.assert_retry(self.use("read_file", path="none"), "The read_file tool failed: ")
        self.assertEqual(self.use("read_file", path="d/a", offset=300000).text, "x")

    def test_a_large_file_is_paged(self):
        self.sh("seq 1 3000000 > numbers")  # 22 MB
        self.assert_retry(self.use("read_file", path="numbers"), "'numbers' has 21.8MB", "read limit of 5.0MB")
        page = self.use("read_file", path="numbers", offset=2999998, limit=2).text
        self.assertEqual(page, "2999998\n2999999\n[... 1 more line; read on with offset=3000000]")
        page = self.use("read_file", path="numbers", limit=1).text
        self.assertEqual(page, "1\n[... more lines; read on with offset=2]")
        self.assertEqual(self.out("echo next"), "next")


if __name__ == "__main__":
    unittest.main()
