# SPDX-License-Identifier: Apache-2.0
"""atoll tool: calls as a model would make them, and what a model is told."""
import json
import os
import signal
import sys
import unittest
from pathlib import Path

from support import ATOLL, HeldTest, PYTHON, descendants, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import json_schema  # noqa: E402

NAMES = ["run_command", "read_file", "write_file", "list_directory"]
REQUIRED = {"run_command": ["command"], "read_file": ["path"], "write_file": ["path", "content"], "list_directory": []}

# What each protocol wants of a definition, as far as it concerns a client that reads it.
ARGUMENTS = {
    "type": "object",
    "required": ["type", "properties"],
    "properties": {
        "type": {"const": "object"},
        "properties": {"type": "object"},
        "required": {"type": "array", "items": {"type": "string"}},
    },
}
FORMATS = {
    "mcp": ("inputSchema", {
        "type": "object",
        "required": ["name", "description", "inputSchema"],
        "properties": {
            "name": {"type": "string"}, "title": {"type": "string"}, "description": {"type": "string"},
            "inputSchema": ARGUMENTS, "annotations": {"type": "object"},
        },
    }),
    "anthropic": ("input_schema", {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "description", "input_schema"],
        "properties": {"name": {"type": "string"}, "description": {"type": "string"}, "input_schema": ARGUMENTS},
    }),
    "openai": ("parameters", {
        "type": "object",
        "required": ["type", "function"],
        "properties": {
            "type": {"const": "function"},
            "function": {
                "type": "object",
                "required": ["name", "description", "parameters"],
                "properties": {"name": {"type": "string"}, "description": {"type": "string"}, "parameters": ARGUMENTS},
            },
        },
    }),
}


class ToolTest(HeldTest):
    def call(self, name, arguments=None, *options, sandbox=None, **how):
        """The whole result of one call; arguments are a value, or JSON text, or nothing."""
        text = [] if arguments is None else [arguments if isinstance(arguments, str) else json.dumps(arguments)]
        return self.atoll("tool", sandbox or self.sandbox, name, *text, *options, **how)

    def answer(self, name, arguments=None, *options, status=0, **how):
        """What a model would see, of a call that must end with a status."""
        result = self.call(name, arguments, *options, **how)
        self.assertEqual((result.status, result.err), (status, b""), result.out[-2000:])
        self.assertTrue(result.out.endswith(b"\n"))
        return result.out.decode().removesuffix("\n")

    def object_of(self, name, arguments=None, *options, status=0):
        """The same as JSON, judged by its schema."""
        value = json.loads(self.answer(name, arguments, "--json", *options, status=status))
        json_schema.validate(value, json_schema.load("tool"))
        return value


class Calls(ToolTest):
    def setUp(self):
        super().setUp()
        self.sandbox = self.create("--name", "box", "-e", "TOKEN=tok-123456789")

    def test_an_answer_is_printed_as_a_model_sees_it(self):
        answer = self.answer("run_command", '{"command":"printf partial; exit 3"}')
        self.assertEqual(answer, "[stdout]\npartial\n[exit code: 3]")
        self.assertEqual(self.answer("run_command", {"command": "true"}), "(no output)")
        answer = self.answer("run_command", {"command": "echo out; echo err >&2"})
        self.assertEqual(answer, "[stdout]\nout\n[stderr]\nerr")

    def test_the_four_tools_work_on_the_same_files(self):
        self.assertEqual(self.answer("list_directory"), "(empty)")
        wrote = self.answer("write_file", {"path": "notes/one.txt", "content": "first\nsecond\n"})
        self.assertEqual(wrote, "Wrote 13 bytes to 'notes/one.txt'.")
        self.assertEqual(self.answer("list_directory", "{}"), "notes/")
        self.assertEqual(self.answer("read_file", {"path": "/workspace/notes/one.txt"}), "first\nsecond")
        page = self.answer("read_file", {"path": "notes/one.txt", "limit": 1})
        self.assertEqual(page, "first\n[... 1 more line; read on with offset=2]")
        self.assertEqual(self.good("read", "box", "notes/one.txt"), b"first\nsecond\n")

    def test_arguments_come_from_standard_input(self):
        arguments = json.dumps({"path": "big.txt", "content": "x" * 300000 + "\u00e4\n"}).encode()
        wrote = self.answer("write_file", "-", stdin=arguments)
        self.assertEqual(wrote, "Wrote 300003 bytes to 'big.txt'.")
        self.assertEqual(self.exec("box", "wc -c <big.txt").split(), [b"300003"])

    def test_what_the_model_can_mend_has_a_status_of_its_own(self):
        cases = (
            ("read_file", {"path": "missing.txt"}, "The read_file tool failed: "),
            ("read_file", "{}", "The arguments of read_file were refused: "),
            ("read_file", '{"path": ', "The arguments of read_file were refused: "),
            ("read_file", "[]", "The arguments of read_file were refused: "),
            ("run_command", {"command": 5}, "The arguments of run_command were refused: "),
            ("run_command", {"command": "true", "timeout_seconds": -1}, "timeout_seconds must be a number above 0"),
            ("write_file", {"path": "f", "content": "\udc00"}, "The arguments of write_file were refused: "),
        )
        for name, arguments, words in cases:
            with self.subTest(name=name, arguments=arguments):
                self.assertIn(words, self.answer(name, arguments, status=1))

    def test_json_says_what_is_known_beside_the_text(self):
        value = self.object_of("run_command", {"command": "printf partial; exit 3"})
        self.assertEqual(value["text"], "[stdout]\npartial\n[exit code: 3]")
        self.assertEqual((value["tool"], value["retry"], value["failures"], value["replaced"]),
                         ("run_command", False, 0, False))
        self.assertEqual((value["exit"]["reason"], value["exit"]["status"], value["exit"]["exit_code"]),
                         ("exited", 3, 3))
        value = self.object_of("run_command", {"command": "kill -TERM $$"})
        self.assertEqual((value["exit"]["status"], value["exit"]["signal"]), (143, 15))
        value = self.object_of("run_command", {"command": "sleep 100", "timeout_seconds": 0.2})
        self.assertEqual((value["exit"]["reason"], value["text"]), ("timeout", "(no output)\n[timed out after 0.2s]"))
        value = self.object_of("read_file", {"path": "missing"}, status=1)
        self.assertEqual((value["retry"], value["failures"], value["exit"]), (True, 1, None))
        self.assertIsNone(self.object_of("list_directory")["exit"])

    def test_an_unknown_tool_is_a_mistake_and_the_nearest_is_named(self):
        self.assert_refused(self.call("run_comand", "{}"), "no tool 'run_comand'", "nearest one is run_command")
        self.assert_refused(self.call("shell", "{}"), "no tool 'shell'", *NAMES)

    def test_a_prefix_stands_before_every_name(self):
        answer = self.answer("py_run_command", {"command": "echo hi"}, "--tool-prefix", "py")
        self.assertEqual(answer, "[stdout]\nhi")
        self.assert_refused(self.call("run_command", "{}", "--tool-prefix", "py"), "no tool 'run_command'")
        failed = self.answer("py_read_file", {"path": "missing"}, "--tool-prefix", "py", status=1)
        self.assertIn("The py_read_file tool failed: ", failed)
        self.assert_refused(self.call("run_command", "{}", "--tool-prefix", "a b"), "--tool-prefix")

    def test_sandboxes_are_named_as_in_other_commands(self):
        for name in (self.sandbox, "box", self.sandbox[:12]):
            self.assertEqual(self.answer("run_command", {"command": "echo $0"}, sandbox=name), "[stdout]\nsh")
        self.assert_refused(self.call("run_command", "{}", sandbox="nobody"), "no sandbox is called 'nobody'")
        other = self.create()
        self.good("rm", other)
        self.assert_refused(self.call("list_directory", sandbox=other), "gone")

    def test_masked_texts_are_not_shown(self):
        (secrets := self.folder() / "secrets").write_text("no-such-text\r\nswordfish\r\n\r\n")
        for where in ("FISH", f"@{secrets}"):
            with self.subTest(where):
                mask = ("--mask", where)
                script = {"command": "echo swordfish; echo sword >&2"}
                self.assertEqual(self.masked("run_command", script, *mask), "[stdout]\n***\n[stderr]\nsword")
                self.exec("box", "echo swordfish >swordfish.txt")
                self.assertEqual(self.masked("list_directory", None, *mask), "***.txt")
                self.assertEqual(self.masked("read_file", {"path": "swordfish.txt"}, *mask), "***")
                failed = self.masked("read_file", {"path": "no/swordfish"}, *mask, status=1)
                self.assertNotIn("swordfish", failed)

    def masked(self, name, arguments, *options, status=0):
        """An answer, where the caller's variable FISH holds a secret."""
        return self.answer(name, arguments, *options, status=status, env={"FISH": "swordfish"})

    def test_what_cannot_be_masked_is_refused_and_not_shown(self):
        (secrets := self.folder() / "secrets").write_text("long enough\nxyz\n")
        for mask, env, *words in (
            ("FISH", {}, "--mask FISH", "no variable FISH"),
            ("FISH", {"FISH": ""}, "--mask FISH", "0 bytes"),
            ("FISH", {"FISH": "xyz"}, "--mask FISH", "3 bytes"),
            ("sword-xyz", {}, "--mask", "not the name of a variable"),
            (f"@{secrets}", {}, f"{secrets}:2", "3 bytes"),
            ("@/nowhere/at-all", {}, "mask file '/nowhere/at-all'", "No such file"),
        ):
            with self.subTest(mask, env=env):
                refused = self.call("list_directory", None, "--mask", mask, env=env)
                self.assert_refused(refused, *words)
                self.assertNotIn(b"xyz", refused.err)

    def test_the_environment_of_the_sandbox_is_masked_without_being_named(self):
        answer = self.answer("run_command", {"command": "printenv TOKEN; echo ${#TOKEN}"})
        self.assertEqual(answer, "[stdout]\n***\n13")

    def test_the_limits_of_the_toolset_are_options(self):
        answer = self.answer("run_command", {"command": "seq 5"}, "--max-output-lines", "2")
        self.assertEqual(answer, "[stdout]\n[... earlier output truncated]\n4\n5")
        answer = self.answer("run_command", {"command": "seq 5"}, "--max-output-bytes", "3")
        self.assertEqual(answer, "[stdout]\n[... earlier output truncated]\n4\n5")
        self.exec("box", "yes | head -c 2000 >long.txt")
        failed = self.answer("read_file", {"path": "long.txt"}, "--max-read-bytes", "1K", status=1)
        self.assertIn("more than the read limit of 1.0KB", failed)
        answer = self.answer("run_command", {"command": "sleep 100"}, "--default-command-timeout", "200ms")
        self.assertEqual(answer, "(no output)\n[timed out after 0.2s]")
        answer = self.answer("run_command", {"command": "sleep 100", "timeout_seconds": 99},
                             "--default-command-timeout", "200ms", "--max-command-timeout", "300ms")
        self.assertEqual(answer, "(no output)\n[timed out after 0.3s] "
                         "[that is less than the 99s it was to have: no more could be given]")
        self.assert_refused(self.call("list_directory", None, "--max-command-timeout", "10s"),
                            "--max-command-timeout", "longer than max_command_timeout")

    def test_of_a_spec_file_only_the_toolset_counts(self):
        folder = self.folder()
        spec = folder / "agent.yaml"
        spec.write_text("version: 1\ntoolset:\n  tool_prefix: job\n  max_output_lines: 1\n  mask: [swordfish]\n")
        answer = self.answer("job_run_command", {"command": "seq 3; echo swordfish"}, "--spec", str(spec))
        self.assertEqual(answer, "[stdout]\n[... earlier output truncated]\n***")
        answer = self.answer("run_command", {"command": "echo swordfish"}, "--spec", str(spec), "--no-tool-prefix",
                             "--no-mask")
        self.assertEqual(answer, "[stdout]\nswordfish")
        for text, field in (("spec: {env: {A: b}}", "spec.env"), ("backend: {pids: 100}", "backend.pids")):
            spec.write_text(f"version: 1\n{text}\n")
            self.assert_refused(self.call("list_directory", None, "--spec", str(spec)), field, "stands already")
        self.assert_refused(self.call("list_directory", None, "-e", "A=b"), "spec.env", "stands already")

    def test_an_interrupt_kills_the_command_with_all_it_started(self):
        script = f"{PYTHON} -c 'import time; time.sleep(7654)' & echo started >mark; wait"
        client = self.begin("tool", self.sandbox, "run_command", json.dumps({"command": script}))
        wait_for(lambda: b"mark" in self.good("ls", "box"), "the command")
        wait_for(lambda: [p for p in descendants() if b"import time; time.sleep(7654)" in p.arguments], "its child")
        client.send_signal(signal.SIGINT)
        result = client.result()
        self.assertEqual((result.status, result.out, result.err), (130, b"", b""))
        self.assertEqual([p for p in descendants() if b"import time; time.sleep(7654)" in p.arguments], [])
        self.assertEqual(self.json("ps", self.sandbox)["commands"], [])
        self.assertEqual(self.answer("run_command", {"command": "echo on"}), "[stdout]\non")

    def test_wrong_uses_are_refused_before_anything_happens(self):
        self.assert_refused(self.atoll("tool"), "needs more arguments")
        self.assert_refused(self.atoll("tool", "box"), "needs more arguments")
        self.assert_refused(self.atoll("tool", "box", "read_file", "{}", "more"), 'unexpected argument "more"')
        self.assert_refused(self.atoll("tool", "--describe", "box", "read_file"), 'unexpected argument "read_file"')
        self.assert_refused(self.atoll("tool", "--describe", "--json"), "--format")
        self.assert_refused(self.atoll("tool", "--describe", "--format", "xml"), "mcp")

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            result = self.atoll("tool", "box", "list_directory", stdout=full)
        self.assertEqual(result.status, 125)
        self.assertIn(b"atoll: ", result.err)


class Descriptions(ToolTest):
    def described(self, form, *options):
        """Definitions in a form, judged by what its protocol wants: name, description and schema of each."""
        where, schema = FORMATS[form]
        found = []
        for tool in json.loads(self.good("tool", "--describe", "--format", form, *options)):
            json_schema.validate(tool, schema)
            inner = tool.get("function", tool)
            found.append((inner["name"], inner["description"], inner[where]))
        return found

    def test_every_form_says_the_same_and_makes_nothing(self):
        forms = {form: self.described(form) for form in FORMATS}
        for form, tools in forms.items():
            self.assertEqual([name for name, _, _ in tools], NAMES, form)
            for name, text, schema in tools:
                self.assertEqual(schema.get("required", []), REQUIRED[name])
                self.assertGreater(len(text), 40)
                for argument in schema["properties"].values():
                    self.assertTrue(argument["description"])
        self.assertEqual(forms["mcp"], forms["anthropic"])
        self.assertEqual(forms["mcp"], forms["openai"])
        self.assertFalse(self.state.exists() and os.listdir(self.state))

    def test_people_get_the_same_words(self):
        text = self.good("tool", "--describe").decode()
        words = " ".join(text.split())
        for name, description, schema in self.described("mcp"):
            self.assertIn(f"{name}\n", text)
            self.assertIn(" ".join(description.split()), words)
            for argument, told in schema["properties"].items():
                self.assertIn(f"  {argument} (", text)
                self.assertIn(told["description"], words)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_a_spec_decides_names_and_what_is_told(self):
        tools = self.described("mcp", "--tool-prefix", "py")
        self.assertEqual([name for name, _, _ in tools], [f"py_{name}" for name in NAMES])
        self.assertIn("Network: none.", tools[0][1])
        spec = self.folder() / "agent.yaml"
        spec.write_text("version: 1\ntoolset:\n  exports:\n    out/result.csv: file:///tmp/somewhere/result.csv\n")
        text = self.described("mcp", "--spec", str(spec))[0][1]
        self.assertIn("out/result.csv", text)
        self.assertNotIn("/tmp/somewhere", text)

    def test_what_the_backend_cannot_enforce_is_refused(self):
        cases = (("--egress-enforcement", "inspect", "egress_enforcement"), ("--max-cost", "1", "max_cost"),
                 ("--backend", "nowhere", "nowhere"))
        for option, value, word in cases:
            self.assert_refused(self.atoll("tool", "--describe", option, value), word)
        self.assert_refused(self.atoll("tool", "--describe", "--spec", "/nonexistent"), "/nonexistent")

    def test_a_backend_program_is_asked_what_it_can_enforce(self):
        path = {"PATH": f"{Path(ATOLL).parent}:{os.environ['PATH']}", "ATOLL_FOLDER_DIR": str(self.folder())}
        refused = self.atoll("tool", "--describe", "--backend", "folder", env=path)
        self.assert_refused(refused, "spec.block_network", "the backend folder refuses it")
        text = self.good("tool", "--describe", "--backend", "folder", "--open-network", env=path)
        self.assertIn(b"Network: outbound access", text)

    def test_a_sandbox_that_stands_is_asked_what_it_is(self):
        sandbox = self.create("--name", "box", "--lifetime", "30m")
        for name in (sandbox, "box"):
            text = self.described("mcp", name)[0][1]
            self.assertIn("set up by an earlier task", text)
            self.assertIn("Network: none.", text)
            self.assertRegex(text, r"about (29|30) minutes left")
        self.assert_refused(self.atoll("tool", "--describe", "box", "--pids", "10"), "backend.pids", "stands already")
        self.assert_refused(self.atoll("tool", "--describe", "other"), "no sandbox is called 'other'")
        spec = self.folder() / "attach.yaml"
        spec.write_text("version: 1\ntoolset: {attach_to: box}\n")
        self.assertIn("set up by an earlier task", self.described("mcp", "--spec", str(spec))[0][1])


if __name__ == "__main__":
    unittest.main()
