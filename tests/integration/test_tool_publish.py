# SPDX-License-Identifier: Apache-2.0
"""Results before the end of a run: the tool publish_exports, and places that differ from run to run."""
import json
import os
import re
import time
import unittest
from hashlib import sha256

from tool_support import FakeTest, ToolTest, libatoll  # first: it says where the other modules are
from json_schema import validate
from protocol import EndedBy
from support import wait_for

SECRET = "correct-horse-battery"
TIME = r"\d{8}T\d{6}Z"
TOOL = "publish_exports"
BRACES = "Write {id} or {time}, or %7B and %7D for the braces themselves"


def told(result):
    """What a command has said, on lines of any width."""
    return " ".join((result.out + result.err).decode().split())


class PublishTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder()
        self.addCleanup(self.check_nothing_is_staged)

    def check_nothing_is_staged(self):
        self.assertEqual([str(p) for p in self.out.rglob("*.partial")], [])
        if self.state.exists():
            self.assertEqual([p.name for p in self.state.iterdir() if p.name.startswith("export-")], [])

    def url(self, name):
        return f"file://{self.out}/{name}"

    def promise(self, places, settings=None, **options):
        """A run that promises these: path to name of the place."""
        exports = [f"{path}={self.url(name)}" for path, name in places.items()]
        return self.opened(None, {"toolset.exports": exports, "toolset.tools": TOOL} | (settings or {}), **options)

    def publish(self, tools, *words):
        """What a publication that goes well answers; its facts keep to the schema."""
        answer = tools.call(TOOL, "{}")
        self.assertFalse(answer.retry, answer)
        validate(answer.facts, json.loads(tools.tools[TOOL]["output_schema"]))
        for word in words:
            self.assertIn(word, answer.text)
        return answer

    def found(self):
        """Names beneath the folder of this test, files with their texts."""
        return {str(p.relative_to(self.out)): p.read_text() for p in self.out.rglob("*") if p.is_file()}


class Local(PublishTest):
    def write(self, tools, path, content):
        self.assertFalse(tools.call("write_file", path=path, content=content).retry)

    def test_what_is_complete_is_published_at_once_and_again_later(self):
        tools = self.promise({"out/r.csv": "to/r.csv"})
        self.write(tools, "out/r.csv", "first")
        answer = self.publish(tools)
        self.assertEqual(answer.text, f"Published 'out/r.csv' (5B) at {self.url('to/r.csv')}.")
        self.assertEqual(answer.facts["exports"], [{
            "path": "out/r.csv", "url": self.url("to/r.csv"), "files": 1, "bytes": 5,
            "sha256": sha256(b"first").hexdigest()}])
        self.assertNotIn("warnings", answer.facts)
        self.assertEqual(self.found(), {"to/r.csv": "first"})
        self.write(tools, "out/r.csv", "second")
        self.assertEqual(self.found(), {"to/r.csv": "first"})
        self.publish(tools, "(6B)")
        self.assertEqual(self.found(), {"to/r.csv": "second"})
        self.write(tools, "out/r.csv", "third")
        self.assertEqual(tools.close(True).exported, [
            ("out/r.csv", self.url("to/r.csv"), sha256(b"third").hexdigest(), 1, 5)])
        self.assertEqual(self.found(), {"to/r.csv": "third"})

    def test_what_was_published_stays_when_the_run_fails(self):
        tools = self.promise({"r": "r"})
        self.write(tools, "r", "published")
        self.publish(tools)
        self.write(tools, "r", "not any more")
        tools.close(False)
        self.assertEqual(self.found(), {"r": "published"})

    def test_the_program_is_told_too(self):
        tools = self.promise({"a": "a", "b": "b"})
        call = tools.start("run_command", command="echo 1 > a; echo 22 > b")
        self.assertEqual(call.wait().exported, [])
        call = tools.start(TOOL, "{}").wait()
        self.assertEqual([(row[0], row[1], row[4]) for row in call.exported], [
            ("a", self.url("a"), 2), ("b", self.url("b"), 3)])
        tools.close(True)
        self.assertEqual(call.exported[0][2], sha256(b"1\n").hexdigest())  # as long as the call is kept

    def test_all_of_them_or_none(self):
        tools = self.promise({"a": "a", "b": "b"})
        self.write(tools, "a", "there")
        answer = tools.call(TOOL, "{}")
        self.assert_retry(
            answer, f"The {TOOL} tool failed: Could not export b from sandbox sb-", f"to {self.url('b')}", "'b' does not exist")
        self.assertIsNone(answer.facts)
        self.assertEqual((answer.failures, self.found()), (1, {}))
        self.write(tools, "b", "now too")
        self.publish(tools)
        self.assertEqual(self.found(), {"a": "there", "b": "now too"})

    def test_what_is_refused_can_be_mended(self):
        tools = self.promise({"site": "site"})
        self.write(tools, "site/.git/hooks/post-checkout", "echo gotcha")
        self.assert_retry(tools.call(TOOL, "{}"), "git runs the hooks in it")
        (self.out / "site").write_text("a file in the place of a folder")
        tools.call("run_command", command="rm -r site/.git; echo x > site/page")
        self.assert_retry(tools.call(TOOL, "{}"), "a file stands in its place")
        (self.out / "site").unlink()
        self.publish(tools)
        self.assertEqual(set(self.found()), {"site/atoll-manifest.json", "site/page"})

    def test_the_model_is_told_when_nothing_was_made_yet(self):
        tools = self.promise({"r": "r"})
        self.assert_retry(tools.call(TOOL, "{}"), "'r' does not exist")
        self.assertEqual(tools.call("run_command", command="true").exit.status, 0)

    def test_folders_and_patterns_are_counted(self):
        tools = self.promise({"d": "d", "*.csv": "tables"})
        tools.call("run_command", command="mkdir d; echo 1 > d/1; echo 2 > d/2; echo 3 > 3.csv")
        answer = self.publish(tools, "Published 'd' (4B in 2 files) at ", "Published '*.csv' (2B in 1 file) at ")
        self.assertEqual([(row["files"], row["bytes"], "sha256" in row) for row in answer.facts["exports"]],
                         [(2, 4, False), (1, 2, False)])

    def test_a_standing_sandbox_is_published_from_too(self):
        box = self.create()
        tools = self.promise({"r": "{id}"}, sandbox=box)
        self.write(tools, "r", "x")
        self.publish(tools)
        self.assertEqual(self.found(), {box: "x"})
        self.good("rm", box)
        self.assert_terminal(tools.call, TOOL, "{}", words=[box, "has ended"])

    def test_secrets_are_masked_and_published_all_the_same(self):
        tools = self.promise({f"{SECRET}.txt": f"x/{SECRET}/r"}, {"spec.env": f"KEY={SECRET}"})
        failed = tools.call(TOOL, "{}")
        self.assert_retry(failed, "'***.txt' does not exist")
        tools.call("run_command", command=f"echo {SECRET} > {SECRET}.txt")
        answer = self.publish(tools, f"Published '***.txt' (22B) at {self.url('x/***/r')}.")
        for text in (failed.text, answer.text, json.dumps(answer.facts)):
            self.assertNotIn(SECRET, text)
        self.assertEqual(self.found(), {f"x/{SECRET}/r": f"{SECRET}\n"})

    def test_the_end_of_a_secret_is_not_shown_where_a_sentence_is_cut(self):
        # The sentence shows the last 100 bytes of a URL: here they begin within the secret.
        for left in (4, 10, len(SECRET) - 1):
            name = "y" * (100 - left)
            tools = self.promise({"r": f"{SECRET}{name}"}, {"toolset.mask": SECRET})
            text = tools.call(TOOL, "{}").text
            self.assertIn(f"...***{name}: ", text)
            self.assertNotIn(SECRET[-4:], text)
            tools.close(False)

    def test_a_cancelled_one_leaves_nothing(self):
        tools = self.promise({"large": "large"})
        tools.call("run_command", command="truncate -s 300M large")
        call = tools.start(TOOL, "{}")
        wait_for(lambda: self.context.step() or list(self.out.glob("large.*.partial")), "a staged file")
        call.cancel()
        self.assertEqual(list(self.out.iterdir()), [])
        call.free()
        self.publish(tools)
        self.assertEqual((self.out / "large").stat().st_size, 300 << 20)

    def test_the_close_ends_one_that_is_under_way(self):
        tools = self.promise({"large": "large"})
        tools.call("run_command", command="truncate -s 300M large")
        call = tools.start(TOOL, "{}")
        wait_for(lambda: self.context.step() or list(self.out.glob("large.*.partial")), "a staged file")
        tools.close(False)
        self.assertEqual(call.error.cls, libatoll.TERMINAL)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_many_lines_are_cut_and_all_facts_are_there(self):
        places = {f"f{i}": f"to/{i}" for i in range(20)}
        tools = self.promise(places, {"toolset.max_output_lines": "3"})
        tools.call("run_command", command="for i in $(seq 0 19); do echo > f$i; done")
        answer = self.publish(tools, "\n[... 17 more, published too]")
        self.assertEqual((answer.text.count("Published"), len(answer.facts["exports"])), (3, 20))

    def test_it_needs_something_to_publish(self):
        settings = {"toolset.tools": TOOL}
        self.assert_usage(self.toolset, None, settings, words=[
            "tools names publish_exports", "exports promises nothing", "Add exports, or leave publish_exports out"])
        self.assertNotIn(TOOL, self.toolset(None, {"toolset.exports": f"r={self.url('r')}"}).tools)
        spec = self.folder() / "spec.yaml"
        spec.write_text(f"version: 1\ntoolset: {{tools: [{TOOL}]}}\n")
        result = self.atoll("check", "--spec", spec)
        self.assertEqual(result.status, 125)
        self.assertIn("toolset.tools: tools names publish_exports", told(result))


class Placeholders(PublishTest):
    def one(self):
        """The only name in the folder of this test."""
        [name] = os.listdir(self.out)
        return name

    def test_a_run_with_a_command_fills_them(self):
        result = self.sh("echo x > r; echo y > s", "--export", f"r={self.url('{id}-{time}/r')}",
                         "--export", f"s={self.url('{id}-{time}/s')}")
        self.assertEqual(result.status, 0, result)
        self.assertRegex(self.one(), rf"^sb-[a-z2-7]{{26}}-{TIME}$")
        self.assertEqual(set(self.found().values()), {"x\n", "y\n"})

    def test_export_fills_them_by_the_sandbox_whatever_it_is_called_by(self):
        box = self.create("--name", "box")
        self.exec(box, "echo x > r")
        before = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for called in ("box", box):
            [told] = self.json("export", called, f"r={self.url('{id}/{time}.csv')}")["exports"]
            self.assertRegex(told["url"], rf"^{self.url(box)}/{TIME}\.csv$")
            self.assertLessEqual(before, told["url"][-20:-4])
            self.assertEqual((self.out / told["url"].removeprefix(self.url(""))).read_text(), "x\n")

    def test_each_publication_of_a_run_has_its_own_time_and_one_for_all(self):
        tools = self.promise({"a": "{id}/{time}/a", "b": "{id}/{time}/b"})
        tools.call("run_command", command="echo > a; echo > b")
        urls = [[row["url"] for row in self.publish(tools).facts["exports"]]]
        box = tools.sandbox
        wait_for(lambda: time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) not in urls[0][0], "another second")
        urls.append([row[1] for row in tools.close(True).exported])
        times = [{re.search(TIME, url)[0] for url in both} for both in urls]
        self.assertEqual([len(both) for both in times], [1, 1])
        self.assertNotEqual(*times)
        self.assertEqual(len(self.found()), 4)
        self.assertTrue(all(f"/{box}/" in url for both in urls for url in both))

    def test_a_failing_export_names_the_place_that_it_would_have_had(self):
        box = self.create()
        self.assert_refused(self.atoll("export", box, f"r={self.url('{id}')}"), f"to {self.url(box)}: 'r' does not exist")

    def test_encoded_braces_are_characters_of_a_name(self):
        self.assertEqual(self.sh("echo x > r", "--export", f"r={self.url('%7Bid%7D')}").status, 0)
        self.assertEqual(self.one(), "{id}")

    def test_other_braces_are_refused_wherever_exports_are_given(self):
        box = self.create()
        for name, words in {
                "{run}": "a placeholder that is neither {id} nor {time}",
                "{id": "a '{' without a '}' behind it",
                "id}": "a '}' that ends no placeholder"}.items():
            with self.subTest(name=name):
                entry = f"r={self.url(name)}"
                self.assert_refused(self.sh("true", "--export", entry), words, BRACES)
                self.assert_refused(self.atoll("export", box, entry), "the export of 'r'", words, BRACES)
                self.assert_usage(self.toolset, None, {"toolset.exports": entry}, words=[words, BRACES])
                spec = self.folder() / "spec.yaml"
                spec.write_text(f"version: 1\ntoolset:\n  exports:\n    r: '{self.url(name)}'\n")
                result = self.atoll("check", "--spec", spec)
                self.assertEqual(result.status, 125)
                self.assertIn(f"toolset.exports.r: the destination has {words}", told(result))

    def test_two_that_will_be_in_one_place_are_refused_at_once(self):
        both = ["--export", f"a={self.url('{id}')}", "--export", f"b={self.url('{id}/b')}"]
        self.assert_refused(self.sh("touch a b", *both), "goes to the same place")

    def test_two_that_turn_out_to_be_in_one_place_change_nothing(self):
        box = self.create()
        self.exec(box, "touch a b")
        self.assert_refused(self.atoll("export", box, f"a={self.url('{id}')}", f"b={self.url(box)}"), "goes to the same place")
        self.assertEqual(self.found(), {})


class OnABackend(FakeTest, PublishTest):
    def test_an_id_is_a_part_of_one_name_whatever_it_holds(self):
        for made, name in {"a/b": "a%2Fb", "../../x": "%2E.%2F..%2Fx", ".envrc": "%2Eenvrc", "ns:pod": "ns%3Apod"}.items():
            with self.subTest(id=made):
                (self.desk / "requests.jsonl").unlink(missing_ok=True)
                self.script(create={"id": made}, read={"data": "x"})
                tools = self.promise({"r": "in/{id}"}, self.SPEC)
                tools.call("run_command", command="x")
                self.publish(tools)
                self.assertEqual(self.found(), {f"in/{name}": "x"})
                tools.close(False)
                (self.out / "in" / name).unlink()

    def test_a_sandbox_that_is_lost_is_told_as_after_any_call(self):
        self.script(read={"silent": True, "ended": EndedBy.KILLED})
        tools = self.promise({"r": "r"}, self.SPEC)
        answer = tools.call(TOOL, "{}")
        self.assert_retry(answer, "the sandbox was lost", "a new, empty one")
        self.assertTrue(answer.replaced)
        self.assertEqual(self.found(), {})

    def test_one_that_was_made_by_others_and_is_lost_ends_the_run(self):
        self.script(read={"silent": True, "ended": EndedBy.KILLED})
        tools = self.promise({"r": "r"}, {"toolset.attach_to": "fake:one", "toolset.owner": "me"})
        self.assert_terminal(tools.call, TOOL, "{}", words=["fake:one", "has ended"])
        self.assertEqual(self.found(), {})

    def test_a_failure_of_any_other_kind_is_for_the_model(self):
        for cls in (libatoll.RECOVERABLE, libatoll.TOO_LARGE, libatoll.TERMINAL, libatoll.USAGE):
            with self.subTest(cls=cls):
                (self.desk / "requests.jsonl").unlink(missing_ok=True)
                self.script(read={"error": {"cls": cls, "code": 5, "message": "the disk is broken"}})
                tools = self.promise({"r": "r"}, self.SPEC)
                self.assert_retry(tools.call(TOOL, "{}"), "Could not export r", "the disk is broken")
                self.assertEqual(tools.call("run_command", command="x").exit.status, 0)
                tools.close(False)

    def test_the_limit_of_a_file_holds(self):
        self.script(read={"data": "x" * 100})
        tools = self.promise({"r": "r"}, self.SPEC | {"toolset.max_export_bytes": "99"})
        self.assert_retry(tools.call(TOOL, "{}"), "Could not export r")


if __name__ == "__main__":
    unittest.main()
