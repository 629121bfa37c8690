# SPDX-License-Identifier: Apache-2.0
"""What the tools answer beside their text: facts that keep to the tool's schema, bytes, and news of a command."""
import json
import random
import time
import unittest

from tool_support import FakeTest, ToolTest, libatoll  # first: it says where the other modules are
from json_schema import validate
from protocol import EndedBy, Reason
from support import wait_for

SECRET = "correct-horse-battery"
MARKER = "[... earlier output truncated]"
EINVAL = 22
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082")


class StructuredTest(ToolTest):
    """Every answer is held to the schema of its tool."""

    def setUp(self):
        super().setUp()
        self.tools = None

    def begin(self, settings=None, **options):
        self.tools = self.opened(None, settings or {}, **options)
        return self.tools

    def use(self, name, **arguments):
        tools = self.tools or self.begin()
        answer = tools.call(name, **arguments)
        if answer.retry:
            self.assertIsNone(answer.facts)
        else:
            validate(answer.facts, json.loads(tools.tools[name]["output_schema"]))
        self.assertNotIn(SECRET, json.dumps(answer.facts, ensure_ascii=False))
        return answer

    def facts(self, name, **arguments):
        """Those of a call that went well, without what all answers may have."""
        answer = self.use(name, **arguments)
        self.assertFalse(answer.retry, answer)
        return {key: value for key, value in answer.facts.items() if key not in ("remaining_seconds", "replaced")}

    def sh(self, command, **arguments):
        return self.facts("run_command", command=command, **arguments)

    def put(self, path, data):
        """A file of these bytes, in pieces that a command line takes."""
        self.sh(f": > {path}")
        for at in range(0, len(data), 20000):
            octal = "".join(f"\\{byte:03o}" for byte in data[at:at + 20000])
            self.assertEqual(self.sh(f"printf '{octal}' >> {path}").get("exit_code"), 0)


def ran(stdout="", stderr="", dropped=(0, 0), timed_out=False, **end):
    """The facts of a command."""
    return {
        "stdout": stdout, "stderr": stderr, "truncated": any(dropped), "timed_out": timed_out,
        "stdout_dropped_bytes": dropped[0], "stderr_dropped_bytes": dropped[1]} | end


class Schemas(FakeTest):
    ALL = ["edit_file", "search_files", "start_process", "process_output", "stop_process", "publish_exports"]

    def test_every_tool_has_one_of_an_object(self):
        tools = self.fake({"toolset.tools": self.ALL, "toolset.exports": [f"a=file://{self.folder()}/a"]}).tools
        self.assertEqual(list(tools)[4:], self.ALL)
        for tool in tools.values():
            schema = json.loads(tool["output_schema"])
            self.assertEqual(schema["type"], "object")
            self.assertIn("remaining_seconds", schema["properties"])

    def test_an_mcp_client_is_given_it(self):
        tools = self.fake()
        for tool in json.loads(tools.render(libatoll.MCP)):
            self.assertEqual(tool["outputSchema"], json.loads(tools.tools[tool["name"]]["output_schema"]))


class Commands(StructuredTest):
    def test_how_it_ended(self):
        self.assertEqual(self.sh("true"), ran(exit_code=0))
        self.assertEqual(self.sh("echo out; echo err >&2; exit 3"), ran("out", "err", exit_code=3))
        self.assertEqual(self.sh("kill -9 $$"), ran(signal=9))
        self.assertEqual(self.sh("exit 137"), ran(exit_code=137))
        self.assertEqual(self.sh("no-such-program 2>/dev/null"), ran(exit_code=127))

    def test_a_timeout_is_no_end_of_its_own(self):
        self.assertEqual(self.sh("echo before; sleep 1000", timeout_seconds=0.5), ran("before", timed_out=True))

    def test_the_streams_are_those_of_the_text_and_no_more(self):
        answer = self.use("run_command", command="printf 'a\\n\\nb\\n'; printf ' c' >&2")
        self.assertEqual(answer.text, "[stdout]\na\n\nb\n[stderr]\n c")
        self.assertEqual((answer.facts["stdout"], answer.facts["stderr"]), ("a\n\nb", " c"))

    def test_output_that_was_cut_at_lines(self):
        self.begin({"toolset.max_output_lines": "3"})
        answer = self.use("run_command", command="seq 1 10; seq 1 3 >&2")
        self.assertEqual(answer.text, f"[stdout]\n{MARKER}\n8\n9\n10\n[stderr]\n1\n2\n3")
        self.assertEqual(self.sh("seq 1 10; seq 1 3 >&2"), ran("8\n9\n10", "1\n2\n3", (14, 0), exit_code=0))
        self.assertEqual(self.sh("seq 1 10 >&2"), ran("", "8\n9\n10", (0, 14), exit_code=0))

    def test_output_that_was_cut_at_bytes(self):
        self.begin({"toolset.max_output_bytes": "1000"})
        whole = "".join(f"{i}\n" for i in range(1, 50001))
        facts = self.sh("seq 1 50000")
        self.assertTrue(facts["truncated"])
        self.assertEqual(whole[facts["stdout_dropped_bytes"]:], facts["stdout"] + "\n")
        self.assertTrue(900 < len(facts["stdout"]) <= 1000)

    def test_one_line_that_was_cut(self):
        self.begin({"toolset.max_output_bytes": "1000"})
        facts = self.sh("head -c 5000 /dev/zero | tr '\\0' x; printf end")
        self.assertEqual(facts, ran("x" * 997 + "end", "", (4003, 0), exit_code=0))
        self.assertEqual(self.sh("printf 'é%.0s' $(seq 1 1000)")["stdout"], "é" * 500)

    def test_output_at_exactly_the_cap_is_not_cut(self):
        self.begin({"toolset.max_output_bytes": "1000"})
        self.assertEqual(self.sh("head -c 1000 /dev/zero | tr '\\0' x"), ran("x" * 1000, exit_code=0))

    def test_progress_bars_are_counted_in_bytes_written(self):
        self.begin({"toolset.max_output_lines": "2"})
        self.assertEqual(self.sh("printf '10%%\\r20%%\\r30%%\\rdone\\n'"), ran("30%\ndone", "", (8, 0), exit_code=0))
        self.assertEqual(self.sh("printf 'a\\r\\nb\\r\\nc\\r\\n'"), ran("b\nc", "", (3, 0), exit_code=0))

    def test_output_that_is_no_text(self):
        self.begin({"toolset.max_output_lines": "2"})
        self.assertEqual(self.sh("printf '\\377\\0a\\303'"), ran("\ufffd\0a\ufffd", exit_code=0, bytes_replaced=True))
        self.assertEqual(self.sh("printf '\\377\\376\\nb\\nc\\n'"), ran("b\nc", "", (3, 0), exit_code=0))

    def test_random_bytes_are_shown_and_counted_as_they_can_be(self):
        self.begin({"toolset.max_output_bytes": "2000"})
        for size in (100, 3000, 100000):
            facts = self.sh(f"head -c {size} /dev/urandom")
            self.assertLessEqual(facts["stdout_dropped_bytes"], size)
            self.assertLessEqual(len(facts["stdout"].encode()), 2000)

    def test_values_are_masked_in_both_streams(self):
        self.begin({"spec.env": [f"TOKEN={SECRET}"]})
        self.assertEqual(self.sh("echo a $TOKEN b; echo $TOKEN >&2"), ran("a *** b", "***", exit_code=0))

    def test_lines_that_held_a_value_are_counted_as_they_were_written(self):
        self.begin({"spec.env": [f"TOKEN={SECRET}"], "toolset.max_output_lines": "2"})
        self.assertEqual(
            self.sh("echo $TOKEN; echo $TOKEN; echo $TOKEN; echo b"),
            ran("***\nb", "", (2 * len(SECRET) + 2, 0), exit_code=0))

    def test_a_value_that_the_cut_goes_through_shows_no_part(self):
        self.begin({"spec.env": [f"TOKEN={SECRET}"], "toolset.max_output_bytes": "100"})
        for behind in range(70, 130):
            facts = self.sh(f"printf %s $TOKEN; head -c {behind} /dev/zero | tr '\\0' x")
            self.assertNotIn(SECRET[-4:], facts["stdout"])
            self.assertRegex(facts["stdout"], r"^\**x+$")

    def test_a_value_of_several_lines_keeps_the_count(self):
        self.begin({"toolset.mask": ["first\nsecond\nthird"], "toolset.max_output_lines": "2"})
        self.assertEqual(self.sh("printf 'first\\nsecond\\nthird\\na\\nb\\n'"), ran("a\nb", "", (19, 0), exit_code=0))

    def test_what_could_not_be_run_has_no_facts(self):
        for arguments in ({"command": ""}, {"command": "a\0"}, {}, {"command": "x", "timeout_seconds": -1}):
            self.assertTrue(self.use("run_command", **arguments).retry)

    def test_the_life_that_is_left(self):
        self.begin({"backend.sandbox_timeout": "1000"})
        left = self.use("run_command", command="true").facts["remaining_seconds"]
        self.assertTrue(900 < left <= 1000, left)
        self.assertLessEqual(self.use("list_directory").facts["remaining_seconds"], left)


class FakeCommands(FakeTest):
    """Ends that only a script can bring about."""

    def facts(self, entry, settings=None, **script):
        self.script(exec=entry, **script)
        tools = self.fake(settings)
        answer = tools.call("run_command", command="x")
        validate(answer.facts, json.loads(tools.tools["run_command"]["output_schema"]))
        return {key: value for key, value in answer.facts.items() if key != "remaining_seconds"}

    def test_memory_that_ran_out_has_the_signal(self):
        self.assertEqual(self.facts({"reason": Reason.OOM, "signal": 9}), ran(signal=9))

    def test_an_end_from_outside_is_no_end_of_its_own(self):
        self.assertEqual(self.facts({"reason": Reason.KILLED, "signal": 9, "stdout": "x"}), ran("x"))

    def test_a_life_whose_end_is_not_known_is_not_told(self):
        for life in ({}, {"life_s": 100}):
            self.script(inspect=life)
            tools = self.opened(settings={"toolset.attach_to": "fake:one", "toolset.owner": "me"})
            self.assertEqual("remaining_seconds" in tools.call("run_command", command="x").facts, "life_s" in life)
            tools.close(False)

    def test_a_sandbox_that_is_lost_is_told(self):
        self.assertEqual(self.facts({"vanish": True}), ran(replaced=True))
        self.assertEqual(
            self.facts([{}, {"code": 128, "stdout": "x", "ended": EndedBy.KILLED}]), ran("x", exit_code=128, replaced=True))

    def test_it_is_told_once_and_in_whatever_comes_next(self):
        self.script(write=[{"silent": True, "ended": EndedBy.KILLED}, {}])
        tools = self.fake()
        self.assertTrue(tools.call("write_file", path="a", content="b").retry)
        self.assertNotIn("replaced", tools.call("write_file", path="a", content="b").facts)
        self.script(exec={"stdout": "x", "ended": EndedBy.KILLED})
        self.assertIs(tools.call("run_command", command="x").facts["replaced"], True)
        self.assertNotIn("replaced", tools.call("list_directory").facts)


class Files(StructuredTest):
    def test_what_was_written(self):
        self.assertEqual(self.facts("write_file", path="d/a.txt", content="é\n"), {"path": "d/a.txt", "bytes": 3})
        self.assertEqual(self.facts("write_file", path="b", content=""), {"path": "b", "bytes": 0})

    def test_what_was_read(self):
        self.facts("write_file", path="a", content="one\ntwo\n")
        self.assertEqual(
            self.facts("read_file", path="a"),
            {"text": "one\ntwo", "first_line": 1, "lines": 2, "remaining_lines": 0})

    def test_an_empty_file(self):
        self.facts("write_file", path="a", content="")
        self.assertEqual(self.facts("read_file", path="a"), {"text": "", "first_line": 1, "lines": 0, "remaining_lines": 0})

    def test_pages_follow_from_one_another(self):
        self.sh("seq 1 1000 > a")
        lines, offset, pages = [], 1, 0
        while offset:
            facts = self.facts("read_file", path="a", offset=offset, limit=170)
            page = facts["text"].split("\n")
            self.assertEqual((facts["first_line"], facts["lines"]), (offset, len(page)))
            lines, pages = lines + page, pages + 1
            self.assertEqual(facts["remaining_lines"], 1000 - len(lines))
            offset = facts.get("next_offset")
        self.assertEqual((lines, pages), ([str(i) for i in range(1, 1001)], 6))

    def test_what_the_caps_leave_is_told_as_a_page(self):
        self.begin({"toolset.max_output_bytes": "1000"})
        self.sh("seq 1 100000 > a")
        facts = self.facts("read_file", path="a")
        self.assertEqual(facts["text"], "\n".join(str(i) for i in range(1, facts["lines"] + 1)))
        self.assertEqual((facts["next_offset"], facts["remaining_lines"]), (facts["lines"] + 1, 100000 - facts["lines"]))

    def test_behind_the_end_there_is_nothing(self):
        self.sh("seq 1 3 > a")
        self.assertEqual(
            self.facts("read_file", path="a", offset=9), {"text": "", "first_line": 9, "lines": 0, "remaining_lines": 0})

    def test_a_line_that_is_too_long_is_told_as_such(self):
        self.begin({"toolset.max_output_bytes": "100"})
        self.sh("seq 1 3 > a; head -c 200 /dev/zero | tr '\\0' x >> a")
        self.assertEqual(
            self.facts("read_file", path="a", offset=4), {"text": "", "first_line": 4, "lines": 0, "line_too_long": True})
        self.assertEqual(self.facts("read_file", path="a")["next_offset"], 4)

    def test_a_file_that_is_no_text_is_shown_as_such(self):
        self.put("a", b"\x89PNG\0\nb")
        answer = self.use("read_file", path="a")
        self.assertEqual(answer.facts["text"], "\ufffdPNG\0\nb")
        self.assertEqual((answer.bytes, answer.type), (None, None))

    def test_what_a_directory_holds(self):
        self.sh("mkdir d d/sub; touch d/b d/.a; ln -s sub d/link; touch \"d/$(printf 'n\\nl')\"")
        self.assertEqual(self.facts("list_directory", path="d"), {"omitted": 0, "entries": [
            {"name": ".a", "directory": False}, {"name": "b", "directory": False},
            {"name": "link", "directory": False}, {"name": "n\nl", "directory": False},
            {"name": "sub", "directory": True}]})
        self.assertFalse(self.use("read_file", path="d/n\nl").retry)

    def test_an_empty_directory(self):
        self.sh("mkdir d")
        self.assertEqual(self.use("list_directory", path="d").text, "(empty)")
        self.assertEqual(self.facts("list_directory", path="d"), {"entries": [], "omitted": 0})

    def test_names_that_do_not_fit_are_counted(self):
        self.begin({"toolset.max_output_lines": "3"})
        self.sh("mkdir d; cd d; touch a b c d e")
        facts = self.facts("list_directory", path="d")
        self.assertEqual(([entry["name"] for entry in facts["entries"]], facts["omitted"]), (["a", "b", "c"], 2))

    def test_a_name_that_is_not_utf8_is_one_that_a_command_takes(self):
        self.sh("mkdir d; touch \"d/$(printf 'a\\377')\"")
        name = self.facts("list_directory", path="d")["entries"][0]["name"]
        self.assertEqual(name, "$'a\\xff'")
        self.assertIn(name, self.use("list_directory", path="d").text)

    def test_values_are_masked_in_every_fact(self):
        self.begin({"spec.env": [f"TOKEN={SECRET}"]})
        self.assertEqual(self.facts("write_file", path=f"d/{SECRET}.txt", content=SECRET)["path"], "d/***.txt")
        self.assertEqual(self.facts("read_file", path=f"d/{SECRET}.txt")["text"], "***")
        self.assertEqual(self.facts("list_directory", path="d")["entries"][0]["name"], "***.txt")
        self.assertEqual(self.facts("write_file", path="d/n", content=f"a\n{SECRET}\nb")["path"], "d/n")
        self.assertEqual(self.facts("read_file", path="d/n", offset=2, limit=1)["text"], "***")

    def test_a_value_that_splits_a_character_leaves_a_text(self):
        tools = self.begin()
        tools.mask(b"abc\xc3")
        self.assertEqual(self.facts("write_file", path="abcé", content="")["path"], "***\ufffd")

    def test_what_is_not_there_has_no_facts(self):
        self.assertTrue(self.use("read_file", path="none").retry)
        self.assertTrue(self.use("list_directory", path="none").retry)
        self.assertTrue(self.use("write_file", path="/proc/none", content="").retry)


class FakeFiles(FakeTest):
    """What comes in pieces through a program."""

    def read(self, data, settings=None, files_as_bytes=True, **arguments):
        text = data.decode("utf-8", "surrogateescape")
        self.script(read={"data": text})
        tools = self.fake(settings, files_as_bytes=files_as_bytes)
        answer = tools.call("read_file", **({"path": "a"} | arguments))
        if not answer.retry:
            validate(answer.facts, json.loads(tools.tools["read_file"]["output_schema"]))
        tools.close(False)
        return answer

    def test_lines_that_are_not_counted_are_not_told(self):
        # The first page is whole long before as much has come as is looked through.
        data = b"".join(b"%d\n" % i for i in range(40000))
        facts = self.read(data, {"toolset.max_read_bytes": "1000"}, limit=2).facts
        self.assertEqual((facts["text"], facts["next_offset"]), ("0\n1", 3))
        self.assertNotIn("remaining_lines", facts)

    def test_bytes_come_whole(self):
        data = PNG + random.Random(1).randbytes(150000)
        answer = self.read(data)
        self.assertEqual((answer.bytes, answer.type), (data, "image/png"))

    def test_text_comes_as_text(self):
        for data in (b"", b"a\n", "é\n".encode() * 60000, b"x" * 65535 + "é".encode()):
            answer = self.read(data)
            self.assertEqual((answer.bytes, answer.retry), (None, False))

    def test_one_that_is_larger_than_said_is_refused(self):
        answer = self.read(b"\0" * 2000, {"toolset.max_read_bytes": "1000"})
        self.assert_retry(answer, "1000B")
        self.assertIsNone(answer.bytes)


class Bytes(StructuredTest):
    """read_file, where bytes are asked for."""

    def begin(self, settings=None, **options):
        return super().begin(settings, **({"files_as_bytes": True} | options))

    def read(self, data, **arguments):
        self.put("f", data)
        return self.use("read_file", path="f", **arguments)

    def assert_bytes(self, data, kind):
        answer = self.read(data)
        self.assertEqual((answer.bytes, answer.type), (data, kind))
        self.assertEqual({"media_type": kind, "bytes": len(data)},
                         {key: answer.facts[key] for key in answer.facts if key != "remaining_seconds"})
        self.assertIn(f"'f' is no text: {kind}, ", answer.text)

    def assert_text(self, data, **arguments):
        answer = self.read(data, **arguments)
        self.assertEqual((answer.bytes, answer.type), (None, None))
        self.assertNotIn("media_type", answer.facts)
        return answer.facts["text"]

    def test_an_image(self):
        self.assert_bytes(PNG, "image/png")
        self.assertEqual(self.use("read_file", path="f").text, f"'f' is no text: image/png, {len(PNG)}B.")

    def test_other_kinds(self):
        self.assert_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg")
        self.assert_bytes(b"GIF89a\1\0\1\0\0\0\0;", "image/gif")
        self.assert_bytes(b"RIFF\x1a\0\0\0WEBPVP8L", "image/webp")
        self.assert_bytes(b"%PDF-1.7\n%\xe2\xe3\n", "application/pdf")
        self.assert_bytes(b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav")
        self.assert_bytes(b"\x7fELF\2\1\1\0", "application/octet-stream")
        self.assert_bytes("é".encode("latin-1"), "application/octet-stream")

    def test_text_is_answered_as_before(self):
        self.assertEqual(self.assert_text(b"one\ntwo\n"), "one\ntwo")
        self.assertEqual(self.assert_text(b""), "")
        self.assertEqual(self.assert_text(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "<svg xmlns='http://www.w3.org/2000/svg'/>")

    def test_a_part_of_it_is_shown_as_text(self):
        self.assertEqual(self.assert_text(b"a\0\nb\n", limit=1), "a\0")
        self.assertEqual(self.assert_text(b"a\xff\nb\n", offset=1), "a\ufffd\nb")

    def test_the_beginning_decides(self):
        self.begin({"toolset.max_output_bytes": "1M", "toolset.max_output_lines": "100000"})
        self.sh("head -c 300000 /dev/zero | tr '\\0' 'x' | fold -w 100 > f; printf '\\377\\0' >> f")
        self.assertTrue(self.use("read_file", path="f").facts["text"].endswith("\ufffd\0"))
        self.sh("head -c 65535 /dev/zero | tr '\\0' 'x' > f; printf é >> f; echo more >> f")
        self.assertTrue(self.use("read_file", path="f").facts["text"].endswith("émore"))
        self.sh("head -c 65535 /dev/zero | tr '\\0' 'x' > f; printf '\\303' >> f")
        self.assertEqual(self.use("read_file", path="f").facts["text"][-1:], "\ufffd")
        self.sh("head -c 65534 /dev/zero | tr '\\0' 'x' > f; printf '\\303' >> f")
        self.assertEqual(self.use("read_file", path="f").type, "application/octet-stream")

    def test_the_read_limit_holds_for_bytes(self):
        self.begin({"toolset.max_read_bytes": "1000000"})
        self.sh("head -c 1000001 /dev/zero > f")
        self.assert_retry(self.use("read_file", path="f"), "976.6KB", "read limit")
        self.sh("head -c 1000000 /dev/zero > f")
        answer = self.use("read_file", path="f")
        self.assertEqual((answer.bytes, answer.facts["bytes"]), (bytes(1000000), 1000000))

    def test_a_file_that_tells_no_size(self):
        answer = self.use("read_file", path="/proc/self/auxv")
        self.assertEqual((answer.type, answer.facts["bytes"]), ("application/octet-stream", len(answer.bytes)))
        self.assertGreater(len(answer.bytes), 100)
        self.tools.close(False)
        self.begin({"toolset.max_read_bytes": "100"})
        self.assert_retry(self.use("read_file", path="/proc/self/auxv"), "holds more than the read limit")

    def test_bytes_that_hold_a_value_are_refused(self):
        self.begin({"spec.env": [f"TOKEN={SECRET}"]})
        answer = self.read(PNG + SECRET.encode() + b"\0")
        self.assert_retry(answer, "'f' is no text", "must not be shown", "run_command")
        self.assertEqual((answer.bytes, answer.type), (None, None))
        self.assert_bytes(PNG + SECRET[1:].encode(), "image/png")

    def test_a_path_with_a_value_is_masked(self):
        self.begin({"spec.env": [f"TOKEN={SECRET}"]})
        self.put(SECRET, b"\0")
        self.assertEqual(self.use("read_file", path=SECRET).text, "'***' is no text: application/octet-stream, 1B.")


class Progress(StructuredTest):
    """What is told of a command while it runs."""

    def start(self, command, follow=True, **arguments):
        tools = self.tools or self.begin()
        operation = tools.start("run_command", command=command, **arguments)
        if follow:
            self.assertEqual(operation.follow(), 0)
        return operation

    def news_until(self, operation, word):
        """What was told, until that word was."""
        told = ""

        def found():
            nonlocal told
            self.context.step()
            progress = operation.progress()
            if progress != -EINVAL:
                told += progress.news
            self.assertFalse(operation.done, told)
            return word in told

        wait_for(found, f"news with {word}: {told!r}")
        return told

    def test_news_come_as_they_are_written(self):
        operation = self.start("echo one; sleep 1000", timeout_seconds=50)
        self.assertFalse(operation.progress().running)
        self.assertEqual(self.news_until(operation, "one"), "one\n")
        progress = operation.progress()
        self.assertEqual((progress.running, progress.news, progress.dropped, progress.timeout), (True, "", 0, 50))
        self.assertGreater(progress.elapsed, 0)
        operation.cancel()

    def test_both_streams_are_told_in_order(self):
        operation = self.start("echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three; sleep 1000")
        self.assertEqual(self.news_until(operation, "three"), "one\ntwo\nthree\n")
        operation.cancel()

    def test_time_goes_on(self):
        operation = self.start("echo x; sleep 1000")
        self.news_until(operation, "x")
        before = operation.progress().elapsed
        time.sleep(0.01)
        self.assertGreaterEqual(operation.progress().elapsed, before + 0.01)
        operation.cancel()

    def test_values_are_masked(self):
        self.begin({"spec.env": [f"TOKEN={SECRET}"]})
        operation = self.start("printf correct-; sleep 0.2; echo horse-battery; echo end; sleep 1000")
        self.assertEqual(self.news_until(operation, "end\n"), "***\nend\n")
        operation.cancel()

    def test_of_much_the_last_is_told(self):
        operation = self.start("seq 1 100000; echo end; sleep 1000")
        whole = "".join(f"{i}\n" for i in range(1, 100001)) + "end\n"
        told, dropped = "", 0
        while not told.endswith("end\n"):
            self.context.step()
            progress = operation.progress()
            self.assertLessEqual(len(progress.news), 4096)
            told, dropped = told + progress.news, dropped + progress.dropped
        self.assertEqual(len(told) + dropped, len(whole))
        operation.cancel()

    def test_who_does_not_follow_is_told_no_news(self):
        operation = self.start("echo one; touch done; sleep 1000", follow=False)
        wait_for(lambda: self.context.step() or operation.progress().running, "the command")
        for _ in range(20):
            self.context.step()
            time.sleep(0.01)
        self.assertEqual((operation.progress().news, operation.progress().dropped), ("", 0))
        operation.cancel()

    def test_the_answer_is_the_same_for_who_follows(self):
        operation = self.start("echo one; echo two >&2")
        self.assertEqual(operation.wait().answer.text, "[stdout]\none\n[stderr]\ntwo")

    def test_after_its_end_there_is_no_progress(self):
        operation = self.start("true")
        operation.wait()
        self.assertEqual(operation.progress(), -EINVAL)
        self.assertEqual(operation.follow(), 0)
        opening = self.toolset().start_open()
        self.assertEqual((opening.progress(), opening.follow()), (-EINVAL, 0))

    def test_calls_without_a_command_have_none(self):
        tools = self.begin()
        self.sh("true")
        operation = tools.start("list_directory")
        self.assertEqual(operation.follow(), 0)
        progress = operation.progress()
        self.assertEqual((progress.running, progress.elapsed, progress.news), (False, 0, ""))
        self.assertFalse(operation.wait().answer.retry)

    def test_a_call_that_waits_has_not_begun(self):
        first, second = self.start("sleep 0.5"), self.start("echo second; sleep 1000")
        wait_for(lambda: self.context.step() or first.progress().running, "the first command")
        self.assertFalse(second.progress().running)
        self.assertEqual(self.news_until(second, "second"), "second\n")
        self.assertTrue(first.done)
        second.cancel()

    def test_the_timeout_is_the_one_that_applies(self):
        self.begin({"toolset.default_command_timeout": "20", "toolset.max_command_timeout": "30"})
        for arguments, applied in (({}, 20), ({"timeout_seconds": 5}, 5), ({"timeout_seconds": 500}, 30)):
            operation = self.start("sleep 1000", **arguments)
            wait_for(lambda: self.context.step() or operation.progress().running, "the command")
            self.assertEqual(operation.progress().timeout, applied)
            operation.cancel()

    def test_a_call_that_is_given_up_while_it_writes(self):
        operation = self.start("while :; do echo x; done")
        self.news_until(operation, "x")
        operation.cancel()
        with self.assertRaises(libatoll.AtollError):
            operation.wait()
        self.assertEqual(operation.progress(), -EINVAL)
        self.assertEqual(self.sh("echo next"), ran("next", exit_code=0))

    def test_a_call_that_is_freed_while_it_writes(self):
        operation = self.start("while :; do echo x; done")
        self.news_until(operation, "x")
        operation.free()
        self.assertEqual(self.sh("echo next"), ran("next", exit_code=0))

    def test_a_run_that_is_closed_while_a_command_writes(self):
        for freed in (False, True):
            operation = self.start("while :; do echo x; done")
            self.news_until(operation, "x")
            closing = self.tools.start_close(False)
            self.assertEqual(operation.progress(), -EINVAL)
            if freed:
                operation.free()
            closing.wait()
            self.tools.open()


class FakeProgress(FakeTest):
    def test_a_command_in_the_place_of_a_lost_sandbox_is_followed(self):
        self.script(exec=[{"stdout": "one", "ended": EndedBy.KILLED}, {"stdout": "two\n", "until": str(self.signal("go"))}])
        tools = self.fake()
        tools.call("run_command", command="x")
        operation = tools.start("run_command", command="y")
        self.assertEqual(operation.follow(), 0)
        wait_for(lambda: self.context.step() or operation.progress().running, "the command")
        self.signal("go").touch()
        self.assertEqual(operation.wait().answer.facts["stdout"], "two")


if __name__ == "__main__":
    unittest.main()
