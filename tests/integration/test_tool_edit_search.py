# SPDX-License-Identifier: Apache-2.0
"""The tools edit_file and search_files: in sandboxes of this kernel, and on a backend that follows a script."""
import json
import os
import unittest

from tool_support import FakeTest, ToolTest, libatoll  # first: it says where the other modules are
from json_schema import validate
from protocol import Class, EndedBy, Kind
from support import keepers

SECRET = "correct-horse-battery"
TOOLS = {"toolset.tools": ["edit_file", "search_files"]}
MORE = "[... more matches; narrow the search by text, name or path]"
REST = "search a directory further down for the rest]"
GONE = {"error": {"message": "gone", "code": 2}}
RETRY = {"error": {"message": "no such luck", "code": 5}}


class Uses:
    """Calls of the two tools, each answer held to the schema of its tool."""

    tools = None

    def begin(self, settings=None, **options):
        self.tools = self.opened(None, TOOLS | (settings or {}), **options)
        return self.tools

    def use(self, tool, **arguments):
        tools = self.tools or self.begin()
        answer = tools.call(tool, json.dumps(arguments))
        self.check(tool, answer)
        return answer

    def check(self, tool, answer):
        if answer.retry:
            self.assertIsNone(answer.facts)
        else:
            validate(answer.facts, json.loads(self.tools.tools[tool]["output_schema"]))
        self.assertNotIn(SECRET, answer.text + json.dumps(answer.facts, ensure_ascii=False))

    def edit(self, path, old, new):
        return self.use("edit_file", path=path, old_text=old, new_text=new)

    def assert_edited(self, path, old, new, line):
        answer = self.edit(path, old, new)
        self.assertEqual(answer.text, f"Edited '{path}' at line {line}.")
        self.assertEqual((answer.facts["path"], answer.facts["line"]), (path, line))

    def find(self, **arguments):
        """The lines of a complete answer; the facts have to say the same."""
        answer = self.use("search_files", **arguments)
        self.assertFalse(answer.retry, answer)
        self.assertTrue(answer.facts["complete"], answer)
        return self.lines(answer)

    def found(self, **arguments):
        """The lines of an answer that leaves something out, and the last line, which says so."""
        answer = self.use("search_files", **arguments)
        self.assertFalse(answer.retry, answer)
        self.assertFalse(answer.facts["complete"], answer)
        body, _, last = answer.text.rpartition("\n")
        self.assertRegex(last, r"^\[.*\]$")
        answer.text = body
        return self.lines(answer), last

    def lines(self, answer):
        matches = answer.facts["matches"]
        if not matches:
            return [answer.text] if answer.text else []
        plain = [m["path"] if "line" not in m else f"{m['path']}:{m['line']}: {m['text']}" for m in matches]
        if not any("\n" in line for line in plain) and "$'" not in answer.text:
            self.assertEqual(answer.text, "\n".join(plain))
        return answer.text.split("\n")


class LiveTest(Uses, ToolTest):
    def sh(self, command):
        answer = self.use("run_command", command=command, timeout_seconds=60)
        self.assertEqual(answer.exit.status, 0, answer)
        return answer.text.removeprefix("[stdout]\n")

    def put(self, path, data):
        """A file of these bytes, in pieces that a command line takes."""
        self.sh(f": > {path}")
        for at in range(0, len(data), 20000):
            octal = "".join(f"\\{byte:03o}" for byte in data[at:at + 20000])
            self.sh(f"printf '{octal}' >> {path}")

    def get(self, path):
        return bytes(int(word, 8) for word in self.sh(f"od -An -v -to1 {path}").split())


class Edit(LiveTest):
    """edit_file."""

    def test_one_piece_is_replaced_and_the_rest_stays(self):
        self.put("a", b"one\ntwo\nthree\n")
        self.assert_edited("a", "two", "2\n2b", 2)
        self.assertEqual(self.get("a"), b"one\n2\n2b\nthree\n")
        self.assert_edited("a", "one\n", "", 1)
        self.assert_edited("a", "three\n", "end", 3)
        self.assertEqual(self.get("a"), b"2\n2b\nend")
        self.assert_edited("a", "2\n2b\nend", "x", 1)
        self.assertEqual(self.get("a"), b"x")

    def test_what_is_not_there_is_told_and_nothing_changes(self):
        self.put("a", b"one\n")
        answer = self.edit("a", "two", "three")
        self.assert_retry(answer, "old_text does not occur in 'a', so nothing was changed. Read the file")
        self.assertEqual(answer.failures, 1)
        self.assert_retry(self.edit("a", "one\n\n" * 100, "x"), "does not occur")
        self.assertEqual(self.get("a"), b"one\n")

    def test_what_is_there_several_times_is_told_with_its_lines(self):
        self.put("a", b"x\na\nx x\nb\nx\nx\nx\nx\n")
        self.assert_retry(self.edit("a", "x", "y"), "old_text occurs 7 times in 'a', at lines 1, 3, 5, 6, 7, ..., so nothing")
        self.assert_retry(self.edit("a", "x x", "x x"), "the same")
        self.put("b", b"aaa")
        self.assert_retry(self.edit("b", "aa", "y"), "occurs 2 times in 'b', at line 1, so")
        self.assertEqual(self.get("a"), b"x\na\nx x\nb\nx\nx\nx\nx\n")
        self.assertEqual(self.get("b"), b"aaa")

    def test_arguments_that_mean_nothing_are_refused(self):
        self.begin({"toolset.tool_prefix": "p"})
        call = lambda **a: self.tools.call("p_edit_file", json.dumps(a))
        self.assert_retry(call(path="a", old_text="", new_text="x"), "old_text is empty", "p_write_file")
        self.assert_retry(call(path="a", old_text="x", new_text="x"), "the same")
        self.assert_retry(call(path="", old_text="x", new_text="y"), "path is empty")
        self.assert_retry(call(path="a\0b", old_text="x", new_text="y"), "NUL")
        self.assert_retry(call(path="a", old_text="x"), "new_text")
        self.assertIsNone(self.tools.sandbox)  # none was made for these

    def test_what_cannot_be_edited_is_an_answer(self):
        self.sh("mkdir d; mkfifo f; ln -s loop loop; echo x > closed; chmod 0 closed")
        for path, word in (("missing", "does not exist"), ("d", "is a folder"), ("f", "FIFO"), ("loop", "links"),
                           ("closed", "may not be accessed"), ("/dev/zero", "device"), ("/etc/x/y", "does not exist")):
            self.assert_retry(self.edit(path, "x", "y"), "The edit_file tool failed: ", word)

    def test_a_file_that_may_be_read_and_not_written_is_an_answer(self):
        self.sh("head -c 20 /etc/passwd > /dev/null")
        first = self.sh("head -1 /etc/passwd")
        self.assert_retry(self.edit("/etc/passwd", first, "x"), "The edit_file tool failed: ")

    def test_what_is_too_large_names_size_and_remedy(self):
        self.begin({"toolset.max_read_bytes": "1000"})
        self.sh("yes | head -c 1000 > fits; yes | head -c 1001 > large; echo end >> fits; truncate -s 1000 fits")
        self.assert_retry(self.edit("large", "x", "y"), "'large' has 1001B", "read limit of 1000B", "run_command", "sed -i")
        self.assert_retry(self.edit("fits", "y\ny", "z"), "occurs 499 times")

    def test_mode_owner_and_links_stay(self):
        self.sh("echo old > target; chmod 751 target; mkdir d; ln -s ../target d/link; ln target hard")
        before = self.sh("stat -c '%a %u %g' target")
        self.assert_edited("d/link", "old", "new", 1)
        self.assertEqual(self.sh("stat -c '%a %u %g' target"), before)
        self.assertEqual(self.sh("cat target; readlink d/link"), "new\n../target")
        self.assertEqual(self.sh("ls -A"), "d\nhard\ntarget")  # nothing is left beside it

    def test_line_ends_stay_as_they_are(self):
        self.put("crlf", b"one\r\ntwo\r\nthree\r\n")
        self.assert_edited("crlf", "two", "2", 2)
        self.assert_edited("crlf", "2\r\nthree", "2\r\n3", 2)
        self.assertEqual(self.get("crlf"), b"one\r\n2\r\n3\r\n")

    def test_other_line_ends_are_told(self):
        self.put("crlf", b"zero\r\none\r\ntwo\r\n")
        self.put("lf", b"zero\none\ntwo\n")
        self.assert_retry(self.edit("crlf", "one\ntwo", "x"), "But for the line ends it does at line 2: ",
                          "in the file they are CRLF (\\r\\n), in old_text LF (\\n).")
        self.assert_retry(self.edit("lf", "one\r\ntwo", "x"), "But for the line ends it does at line 2: ",
                          "in the file they are LF (\\n), in old_text CRLF (\\r\\n).")

    def test_other_spaces_are_told(self):
        self.put("a", b"x\n\tif (a) {\n\t\tb;\n\t}\n")
        answer = self.edit("a", "    if (a) {\n        b;\n    }\n", "y")
        self.assert_retry(answer, "But for spaces, tabs and line ends it does at line 2")
        self.assertNotIn("Read the file", answer.text)
        self.assertEqual(self.get("a"), b"x\n\tif (a) {\n\t\tb;\n\t}\n")

    def test_secrets_are_masked_and_cannot_be_matched(self):
        self.begin({"toolset.mask": [SECRET]})
        self.put("a", f"key={SECRET}\nother\n".encode())
        self.assert_retry(self.edit("a", "key=***", "key=x"), "does not occur", "*** may stand for a value that is hidden")
        self.assert_edited("a", "other", "another", 2)
        self.assertEqual(self.get("a"), f"key={SECRET}\nanother\n".encode())
        self.put(SECRET, b"x")
        answer = self.edit(SECRET, "x", "y")
        self.assertEqual((answer.text, answer.facts["path"]), ("Edited '***' at line 1.", "***"))
        self.assert_retry(self.edit(SECRET, "x", "z"), "old_text does not occur in '***'")

    def test_bytes_that_are_no_text_stay(self):
        data = bytes(range(256)) + b"needle" + bytes(range(255, -1, -1))
        self.put("bin", data)
        self.assert_edited("bin", "needle", "\0pin", 2)
        self.assertEqual(self.get("bin"), data.replace(b"needle", b"\0pin"))
        self.put("latin", b"caf\xe9 one\n")
        self.assert_retry(self.edit("latin", "caf\ufffd one", "x"), "U+FFFD may stand for a byte")
        self.assert_edited("latin", " one", " two", 1)
        self.assertEqual(self.get("latin"), b"caf\xe9 two\n")

    def test_hostile_names_are_taken(self):
        for name in ("a b", "it's", "line\nend", "-rf", "ünï", "*"):
            self.use("write_file", path=f"n/{name}", content="x")
            self.assertEqual(self.edit(f"n/{name}", "x", name).facts["path"], f"n/{name}")
            self.assertEqual(self.use("read_file", path=f"n/{name}").text, name)

    def test_a_megabyte_is_edited(self):
        self.sh("seq 1 500000 > numbers")
        self.assert_edited("numbers", "\n250000\n", "\nhere\n", 249999)
        self.assertEqual(self.sh("wc -l < numbers; sed -n 250000p numbers"), "500000\nhere")

    def test_a_file_that_is_written_all_the_time_is_edited_or_told(self):
        self.sh("echo start > log; "
                "(i=0; while [ ! -e stop ]; do echo $i >> log; i=$((i+1)); done; touch over) > /dev/null 2>&1 &")
        for i in range(50):
            answer = self.edit("log", "start", f"start{i}")
            if answer.retry:
                self.assert_retry(answer, "'log' was changed by something else meanwhile, so nothing was written.")
                self.assertEqual(self.sh("head -1 log"), "start")
            else:
                self.assertEqual(self.sh(f"head -1 log; sed -i 1s/.*/start/ log"), f"start{i}")
        self.sh("touch stop; while [ ! -e over ]; do sleep 0.01; done")
        self.assert_edited("log", "start", "end", 1)


class Search(LiveTest):
    """search_files."""

    def test_by_text(self):
        self.sh("mkdir -p src/deep; echo 'int main(void)' > src/main.c; printf 'a\\nb main\\nmain main\\n' > src/deep/x; echo x > y")
        self.assertEqual(self.find(text="main"),
                         ["src/deep/x:2: b main", "src/deep/x:3: main main", "src/main.c:1: int main(void)"])
        self.assertEqual(self.find(text="main", name="*.c"), ["src/main.c:1: int main(void)"])
        self.assertEqual(self.find(text="Main"), ["(no match; 3 text files were searched)"])
        self.assertEqual(self.find(text="m.*n"), ["(no match; 3 text files were searched)"])
        self.assertEqual(self.find(text="x", name="y", path=""), ["y:1: x"])

    def test_by_name(self):
        self.sh("mkdir -p a.py/b; touch a.py/one.py .hidden.py b.pyc a.py/b/two.PY 'a.py/b/sp ace.py'; "
                "ln -s b.pyc link.py; mkfifo fifo.py")
        found = [".hidden.py", "a.py/b/sp ace.py", "a.py/one.py", "fifo.py", "link.py"]
        self.assertEqual(self.find(name="*.py"), found)
        self.assertEqual(self.find(name="**/*.py"), found)
        self.assertEqual(self.find(name="?.pyc"), ["b.pyc"])
        self.assertEqual(self.find(name="[a-c].*"), ["b.pyc"])
        self.assertEqual(self.find(name="x"), ["(no match; 7 files were looked at)"])

    def test_all_files_in_the_order_of_their_paths(self):
        self.sh("mkdir -p a/b .git/x; touch a/b/c a/z a-b a.c a0 .git/x/y .env B; mkdir empty")
        found = [".env", ".git/x/y", "B", "a-b", "a.c", "a/b/c", "a/z", "a0"]
        self.assertEqual(self.find(), found)
        self.assertEqual(self.find(text=None, name=None, path=None), found)
        self.assertEqual(self.find(text="", name="", path=""), found)
        self.assertEqual(found, sorted(found, key=str.encode))

    def test_paths_are_told_from_what_was_given(self):
        self.sh("mkdir -p d/e; echo needle > d/e/f; ln -s d link")
        for path, shown in (("d", "d/e/f"), ("d/", "d/e/f"), ("./d", "d/e/f"), (".//d//", "d/e/f"),
                            ("/workspace/d", "/workspace/d/e/f"), (".", "d/e/f"), ("./", "d/e/f"), ("d/..", "d/../d/e/f"), ("link", "link/e/f")):
            self.assertEqual(self.find(text="needle", path=path), [f"{shown}:1: needle"], path)
        self.sh("mkdir /tmp/d; echo needle > /tmp/d/f")
        self.assertEqual(self.find(text="needle", path="//tmp/"), ["//tmp/d/f:1: needle"])
        self.assertIn("/tmp/d/f", self.use("search_files", path="/", name="f").text.split("\n"))

    def test_nothing_there_is_a_sentence(self):
        self.sh("mkdir none")
        self.assertEqual(self.find(text="x", path="none"), ["(no match; 0 text files were searched)"])
        self.assertEqual(self.find(path="none"), ["(no match; 0 files were looked at)"])
        self.sh("printf x > none/one")
        self.assertEqual(self.find(text="y", path="none"), ["(no match; 1 text file was searched)"])

    def test_a_path_that_is_no_folder_is_an_answer(self):
        self.sh("echo x > file; mkdir closed; chmod 0 closed")
        for path, word in (("missing", "does not exist"), ("file", "not a folder"), ("closed", "may not be accessed")):
            self.assert_retry(self.use("search_files", text="x", path=path), "The search_files tool failed: ", word)
        self.sh("chmod 700 closed")

    def test_arguments_that_mean_nothing_are_refused(self):
        for arguments, word in (({"text": "a\nb"}, "line end"), ({"name": "src/*.c"}, "has no / in it"),
                                ({"name": "a\0"}, "NUL"), ({"path": "a\0"}, "NUL"), ({"name": "x" * 1025}, "1024 bytes"), ({"text": 5}, "text")):
            self.assert_retry(self.use("search_files", **arguments), word)
        self.assertIsNone(self.tools.sandbox)

    def test_links_are_not_followed(self):
        self.sh("mkdir a; echo needle > a/f; ln -s . a/loop; ln -s .. a/up; "
                "ln -s a/f to-file; ln -s a to-folder; ln -s nowhere broken")
        self.assertEqual(self.find(text="needle"), ["a/f:1: needle"])
        self.assertEqual(self.find(), ["a/f", "a/loop", "a/up", "broken", "to-file", "to-folder"])

    def test_hostile_names_are_shown_on_one_line(self):
        self.sh(r"mkdir -p n/$(printf 'd\033'); cd n; echo hit > $(printf 'd\033')/f; echo hit > $(printf 'latin\351'); "
                '''for f in 'a b' "$(printf 'line\\nend')" 'a:1: b' -- -rf; do echo hit > "./$f"; done''')
        answer = self.use("search_files", text="hit", path="n")
        self.assertEqual(answer.text.split("\n"), [
            "n/--:1: hit", "n/-rf:1: hit", "n/a b:1: hit", "n/a:1: b:1: hit",
            "$'n/d\\x1b/f':1: hit", "$'n/latin\\xe9':1: hit", "$'n/line\\nend':1: hit"])
        self.assertEqual([m["path"] for m in answer.facts["matches"]],
                         ["n/--", "n/-rf", "n/a b", "n/a:1: b", "n/d\x1b/f", "$'n/latin\\xe9'", "n/line\nend"])
        self.assertEqual(self.use("search_files", name="line?end").text, "$'n/line\\nend'")
        self.assertEqual(self.use("search_files", name="latin?").text, "$'n/latin\\xe9'")

    def test_binary_files_are_not_searched_for_text(self):
        self.sh(r"printf 'a\0needle\n' > early; head -c 8192 /dev/zero | tr '\0' x > late; "
                r"printf '\nneedle\0\n' >> late; printf 'caf\351 needle\n' > latin; : > empty")
        self.assertEqual(self.find(text="needle"), ["late:2: needle\0", "latin:1: caf\ufffd needle"])
        self.assertEqual(self.find(text="caf?"), ["(no match; 3 text files were searched)"])
        self.assertEqual(self.find(name="early"), ["early"])

    def test_line_ends_and_long_lines(self):
        self.sh("printf 'one\\r\\ntwo\\r\\n' > crlf; "
                "(printf '%02000d' 0; printf needle; printf '%02000d' 0) > wide; printf 'last' > last")
        self.assertEqual(self.find(text="two"), ["crlf:2: two"])
        self.assertEqual(self.find(text="last"), ["last:1: last"])
        line, = self.find(text="needle")
        self.assertEqual(line, "wide:1: ..." + "0" * 197 + "needle" + "0" * 197 + "...")

    def test_secrets_are_masked_in_lines_and_paths(self):
        self.begin({"toolset.mask": [SECRET, "BEGIN\nfirst needle\nEND"]})
        self.sh(f"mkdir d; echo 'needle {SECRET} end' > d/f; echo needle > d/{SECRET}; printf 'BEGIN\\nfirst needle\\nEND\\n' > g")
        self.sh(f"(printf '%0195d' 0; printf needle; printf '%0195d{SECRET}%0500d' 0 0) > d/wide")
        found = self.find(text="needle")
        self.assertEqual([found[i] for i in (0, 1, 3)], ["d/***:1: needle", "d/f:1: needle *** end", "g:2: "])
        self.assertNotIn("corr", found[2])
        self.assertEqual([line[:9] for line in self.find(text="horse")], ["d/f:1: ne", "d/wide:1:"])
        self.assertEqual(self.find(name="correct*"), ["d/***"])

    def test_results_are_cut_at_the_limits_of_output(self):
        self.begin({"toolset.max_output_lines": "3"})
        self.sh("seq 1 10 | sed 's/$/ hit/' > a; mkdir b; touch b/1 b/2")
        lines, last = self.found(text="hit")
        self.assertEqual((lines, last), (["a:1: 1 hit", "a:2: 2 hit", "a:3: 3 hit"], MORE))
        self.assertEqual(self.find(), ["a", "b/1", "b/2"])  # just as many as fit
        self.sh("touch c")
        self.assertEqual(self.found()[0], ["a", "b/1", "b/2"])
        self.tools.close(False)
        self.begin({"toolset.max_output_bytes": "21"})
        self.sh("seq 1 10 | sed 's/$/ hit/' > a")
        self.assertEqual(self.found(text="hit")[0], ["a:1: 1 hit", "a:2: 2 hit"])
        self.tools.close(False)
        self.begin({"toolset.max_output_bytes": "1"})
        self.sh("echo hit > a")
        answer = self.use("search_files", text="hit")
        self.assertEqual((answer.text, answer.facts["matches"], answer.facts["complete"]),
                         (MORE, [], False))

    def test_what_is_too_large_is_left_out_and_told(self):
        self.begin({"toolset.max_read_bytes": "1000", "toolset.tool_prefix": "p"})
        call = lambda tool, **a: self.tools.call(f"p_{tool}", json.dumps(a))
        call("run_command", command="for i in 1 2 3 4 5; do (echo hit; head -c 1000 /dev/zero) > large$i; done; "
                                    "(echo hit; head -c 995 /dev/zero | tr '\\0' x; echo) > fits")
        answer = call("search_files", text="hit")
        self.assertEqual(answer.text, "fits:1: hit\n[larger than the read limit of 1000B and left out: 'large1', 'large2', "
                                      "'large3' and 2 more; search them with p_run_command and grep]")
        self.assertFalse(answer.facts["complete"])
        self.assertTrue(call("search_files", name="large*").facts["complete"])  # names need no reading

    def test_what_cannot_be_read_is_left_out_and_told(self):
        self.sh("mkdir closed open; echo hit > closed/f; echo hit > open/f; echo hit > shut; chmod 0 closed shut")
        lines, last = self.found(text="hit")
        self.assertEqual((lines, last), (["open/f:1: hit"], "[could not be read: 'closed', 'shut']"))
        lines, last = self.found()
        self.assertEqual((lines, last), (["open/f", "shut"], "[could not be read: 'closed']"))
        self.sh("chmod 700 closed")

    def test_no_more_than_a_number_of_files_is_looked_at(self):
        self.sh("mkdir -p a z; cd a; seq -w 1 20050 | xargs touch; echo needle > 19999; cd ..; echo needle > z/f; echo needle > 0")
        lines, last = self.found(text="needle")  # "0", "a" and 19998 files are 20000
        self.assertEqual(lines, ["0:1: needle"])
        self.assertEqual(last, f"[stopped after 20000 files and directories; {REST}")
        self.assertEqual(self.find(text="needle", path="z"), ["z/f:1: needle"])
        self.assertEqual(self.found()[1], MORE)  # that alone

    def test_no_more_than_an_amount_is_read(self):
        self.sh("mkdir a; cd a; for i in $(seq 10 64); do truncate -s 5M $i; done; echo needle > 9; echo needle > 0")
        lines, last = self.found(text="needle")
        self.assertEqual((lines, last), (["a/0:1: needle"], f"[stopped after reading 256.0MB; {REST}"))

    def test_folders_that_go_too_deep_are_left_out_and_told(self):
        self.sh("d=$(printf 'd/%.0s' $(seq 127)); mkdir -p $d/e; echo needle > $d/at; echo needle > $d/e/below")
        lines, last = self.found(text="needle")
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].endswith("/at:1: needle"), lines)
        self.assertEqual(last, "[directories more than 128 levels down were left out]")

    def test_paths_that_are_too_long_are_left_out_and_told(self):
        self.sh("n=$(printf 'x%.0s' $(seq 250)); mkdir $n; "
                "for i in $(seq 20); do mkdir t; mv $n t; echo needle > t/f; mv t $n; done; echo needle > z")
        lines, last = self.found(text="needle")
        self.assertEqual([len(line) for line in lines], [251 * n + len("f:1: needle") for n in range(1, 17)] + [11])
        self.assertEqual(last, f"[could not be read: '{'x' * 199}...]")

    def test_three_thousand_files(self):
        self.sh("for d in $(seq 30); do mkdir $d; for f in $(seq 100); do echo \"$d $f\" > $d/$f; done; done")
        self.assertEqual(self.find(text="17 42"), ["17/42:1: 17 42"])
        self.assertEqual(self.find(text="nowhere"), ["(no match; 3000 text files were searched)"])
        self.assertEqual(len(self.find(name="7?")), 300)
        self.assertEqual(len(self.found()[0]), 2000)

    def test_a_tree_that_changes_all_the_time_comes_to_an_end(self):
        self.sh("(while :; do mkdir -p t/a/b t/c; echo needle > t/a/b/f; echo needle > t/c/f; rm -rf t; done) > /dev/null 2>&1 &")
        for _ in range(50):
            answer = self.use("search_files", text="needle")
            self.assertFalse(answer.retry, answer)
            self.assertNotRegex(answer.text, "could not be read: '(?!t)")

    def test_a_search_may_be_given_up_anywhere(self):
        self.sh("for d in $(seq 20); do mkdir $d; for f in $(seq 50); do echo x > $d/$f; done; done")
        for steps in list(range(0, 60, 3)) + [200, 500]:
            call = self.tools.start("search_files", json.dumps({"text": "y"}))
            for _ in range(steps):
                self.context.step()
            call.cancel() if steps % 2 else call.free()
            self.assertEqual(self.find(text="y", path="1"), ["(no match; 50 text files were searched)"])

    def test_a_sandbox_lost_under_a_search_is_told_and_replaced(self):
        self.sh("for d in $(seq 20); do mkdir $d; for f in $(seq 100); do echo x > $d/$f; done; done")
        call = self.tools.start("search_files", json.dumps({"text": "y"}))
        for _ in range(100):
            self.context.step()
        self.assertFalse(call.done)
        os.kill(keepers()[0].pid, 9)
        answer = call.wait().answer
        self.assert_retry(answer, "The search_files tool failed: ", "the sandbox was lost")
        self.assertTrue(answer.replaced)
        self.assertEqual(self.find(), ["(no match; 0 files were looked at)"])

    def test_proc_is_no_trap(self):
        answer = self.use("search_files", text="no such text anywhere", path="/proc/self")
        self.assertFalse(answer.retry, answer)


class Scripted(Uses, FakeTest):
    """What only a script can do at the right moment."""

    def begin(self, settings=None, **options):
        return super().begin(self.SPEC | (settings or {}), **options)

    def test_a_file_that_changed_between_reading_and_writing_is_not_written(self):
        for now in ({"size": 4}, {"file_kind": Kind.FOLDER}):
            self.script(read={"data": "old"}, stat=now)
            self.assert_retry(self.edit("a", "old", "new"), "'a' was changed by something else meanwhile, so nothing was written")
        self.assertEqual(self.kinds("write"), [])
        self.script(read={"data": "old"})
        self.assert_edited("a", "old", "new", 1)
        self.assertEqual(self.kinds("read", "stat", "write")[-3:], ["read", "stat", "write"])

    def test_a_failure_anywhere_is_an_answer(self):
        for kind in ("read", "stat", "write"):
            self.script(**{"read": {"data": "old"}, kind: RETRY})
            self.assert_retry(self.edit("a", "old", "new"), "The edit_file tool failed: no such luck.")

    def test_a_sandbox_lost_under_an_edit_is_told(self):
        for kind in ("read", "stat", "write"):
            with self.subTest(kind):
                entries = [{}] * len(self.requests(kind)) + [{"silent": True, "ended": EndedBy.KILLED}, {"data": "old"}]
                self.script(**{"read": {"data": "old"}, kind: entries})
                answer = self.edit("a", "old", "new")
                self.assert_retry(answer, "the sandbox was lost")
                self.assertTrue(answer.replaced)

    def test_a_sandbox_lost_under_a_search_is_told(self):
        tree = [{"entries": [["a", Kind.FILE], ["d", Kind.FOLDER]]}, {"entries": []}]
        for kind, nth in (("list", 0), ("list", 1), ("read", 0)):
            with self.subTest(f"{kind} {nth}"):
                lists = [{}] * len(self.requests("list")) + tree
                reads = [{}] * len(self.requests("read")) + [{"data": "x"}]
                {"list": lists, "read": reads}[kind][len(self.requests(kind)) + nth] = {"silent": True, "ended": EndedBy.KILLED}
                self.script(list=lists, read=reads)
                self.assert_retry(self.use("search_files", text="x"), "the sandbox was lost")

    def test_time_that_is_over_ends_a_search_with_what_it_has(self):
        tree = [{"entries": [["a", Kind.FILE], ["d", Kind.FOLDER]]}, {"until": "/nonexistent"}]
        self.script(list=tree, read={"data": "hit"})
        self.begin({"toolset.default_command_timeout": "300ms"})
        lines, last = self.found(text="hit")
        self.assertEqual((lines, last), (["a:1: hit"], f"[stopped after 0.3 seconds; {REST}"))
        self.assertEqual(self.use("run_command", command="x").text, "(no output)")  # the connection is as it was

    def test_what_fails_on_the_way_is_left_out(self):
        top = {"entries": [["a", Kind.FILE], ["b", Kind.FILE], ["d", Kind.FOLDER], ["e", Kind.FOLDER]]}
        self.script(list=[top, RETRY, GONE], read=[RETRY, GONE])
        lines, last = self.found(text="hit")
        self.assertEqual((lines, last), (["(no match; 0 text files were searched)"], "[could not be read: 'a', 'd']"))

    def test_a_file_that_grew_meanwhile_is_left_out(self):
        self.script(list={"entries": [["a", Kind.FILE]]}, read={"error": {"message": "large", "code": 27, "cls": Class.TOO_LARGE}})
        self.begin({"toolset.max_read_bytes": "100"})
        _, last = self.found(text="hit")
        self.assertIn("larger than the read limit of 100B and left out: 'a'", last)

    def test_an_endless_tree_comes_to_an_end(self):
        self.script(list={"entries": [[f"d{i}", Kind.FOLDER] for i in range(200)] + [["f", Kind.FILE]]})
        lines, last = self.found(name="x")
        self.assertRegex(lines[0], r"^\(no match; \d+ files were looked at\)$")
        self.assertEqual(last, f"[stopped after 20000 files and directories; {REST} "
                               "[directories more than 128 levels down were left out]")

    def test_a_cancelled_search_leaves_the_next_call_alone(self):
        self.script(list={"until": "/nonexistent"}, read={"data": "x"})
        self.begin()
        call = self.tools.start("search_files", "{}")
        self.step_until_asked("list")
        call.cancel()
        self.assert_fails(libatoll.RECOVERABLE, call.wait)
        self.assertEqual(self.use("read_file", path="a").text, "x")


class Given(ToolTest):
    """That they are tools of those toolsets alone that ask for them."""

    def test_they_are_given_when_asked_for(self):
        self.assertNotIn("edit_file", self.toolset().tools)
        tools = self.toolset(settings=TOOLS).tools
        self.assertEqual(list(tools)[-2:], ["edit_file", "search_files"])
        for name in ("edit_file", "search_files"):
            self.assertEqual(json.loads(tools[name]["schema"])["type"], "object")
            self.assertEqual(json.loads(tools[name]["output_schema"])["type"], "object")


if __name__ == "__main__":
    unittest.main()
