# SPDX-License-Identifier: Apache-2.0
"""The reference that the program writes of itself, and the pages of docs/reference that hold it."""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, SandboxTest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import json_schema  # noqa: E402

PAGES = ("cli", "spec", "limits", "errors", "backends")
OTHERS = ("man", "bash", "zsh", "fish", "json")
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def atoll(*arguments, **options):
    return subprocess.run(
        [ATOLL, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False, **options
    )


def reference(form):
    done = atoll("reference", form)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def commands():
    """The commands that help shows."""
    return re.findall(r"^  ([a-z]+)  ", atoll("--help").stdout, re.MULTILINE)


class Forms(unittest.TestCase):
    def test_each_form_is_written_to_standard_output_and_ends_with_a_line_end(self):
        for form in (*PAGES, *OTHERS):
            with self.subTest(form):
                self.assertRegex(reference(form), r"\A\S[^\0]*[^\n]\n\Z")

    def test_a_form_that_does_not_exist_is_refused_and_the_others_are_named(self):
        for arguments in (["novel"], [], ["cli", "spec"]):
            with self.subTest(arguments):
                done = atoll("reference", *arguments)
                self.assertEqual((done.returncode, done.stdout), (125, ""))
                for form in (*PAGES, *OTHERS):
                    self.assertIn(form, done.stderr)

    def test_the_command_itself_is_hidden(self):
        self.assertNotIn("reference", commands())
        self.assertNotIn("### atoll reference", reference("cli"))

    def test_a_page_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [ATOLL, "reference", "spec"], stdout=full, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False
            )
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"atoll: ", done.stderr)

    def test_no_page_holds_a_name_of_the_sources_or_a_text_that_was_not_filled_in(self):
        for form in PAGES:
            with self.subTest(form):
                page = reference(form)
                for mark in ("(null)", "%s", "LIMIT_", "CAPABILITY_", "Unknown error"):
                    self.assertNotIn(mark, page)
                for number, line in enumerate(page.splitlines(), 1):
                    if line.startswith("|"): # as many cells as the head of its table
                        cells = len(re.findall(r"(?<!\\)\|", line))
                        width = cells if not page.splitlines()[number - 2].startswith("|") else width
                        self.assertEqual(cells, width, line)


class Pages(unittest.TestCase):
    def test_the_pages_are_what_the_program_prints(self):
        for form in PAGES:
            page = ROOT / f"docs/reference/{form}.md"
            if not page.exists():
                self.skipTest("docs/reference is not beside the tests")
            with self.subTest(form):
                self.assertEqual(page.read_text(), reference(form), "run 'make reference'")

    def test_every_option_of_every_command_is_in_the_page_of_the_command_line(self):
        page = reference("cli")
        names = commands()
        self.assertIn("run", names)
        for name in names:
            section = page.partition(f"\n### atoll {name}\n")[2].partition("\n### ")[0]
            options = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", atoll(name, "--help").stdout, re.MULTILINE)
            self.assertIn("--help", options)
            for option in options:
                with self.subTest(command=name, option=option):
                    self.assertRegex(section, rf"\n- `(?:-\w, )?{option}[ `]")

    def test_every_example_of_the_spec_can_be_read(self):
        blocks = YAML.findall(reference("spec"))
        self.assertGreater(len(blocks), 30)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data").mkdir()
            (Path(folder) / "proxy-credentials").touch()
            for block in blocks:
                with self.subTest(block):
                    done = atoll("check", "--no-host", "--json", "--spec", "-", input=block, cwd=folder)
                    self.assertEqual(json.loads(done.stdout)["problems"], [])

    def test_every_example_is_of_the_field_above_it(self):
        fields = re.split(r"^### ", reference("spec"), flags=re.MULTILINE)[1:]
        for field in fields:
            section, _, name = field.partition("\n")[0].partition(".")
            block = YAML.search(field)[1]
            self.assertRegex(block, rf"\n{section}:\n(?:  .*\n)*?  {name}:")

    def test_the_defaults_of_the_spec_are_those_of_the_limits(self):
        spec, limits = reference("spec"), reference("limits")
        self.assertRegex(spec, r"\| \[`pids`\]\(#backendpids\) \| [^|]* \| `4096` \|")
        self.assertRegex(limits, r"\| processes and threads at once \| 4096 \|")
        self.assertRegex(spec, r"\| \[`max_read_bytes`\]\(#toolsetmax_read_bytes\) \| [^|]* \| `5M` \|")
        self.assertRegex(limits, r"\| bytes of one file that the tools read \| 5M \|")

    def test_the_table_of_backends_says_what_check_says(self):
        rows = [
            [cell.strip(" `") for cell in line.strip("|").split("|")]
            for line in reference("backends").partition("## Fields")[2].partition("## Features")[0].splitlines()
            if line.startswith("|")
        ]
        names = rows[0][1:]
        table = {row[0]: dict(zip(names, row[1:])) for row in rows[2:]}
        self.assertIn("local", names)
        document = {"version": 1, "backend": {"pids": 64, "memory": "4G", "hostname": "h", "tags": {"a": "b"}}}
        for name in names:
            done = atoll(
                "check", "--no-host", "--json", "--backend", name, "--spec", "-", input=json.dumps(document)
            )
            answer = json.loads(done.stdout)
            self.assertEqual(answer["problems"], [])
            stated = [f for f in answer["fields"] if f["field"] in ("backend.pids", "backend.memory",
                                                                    "backend.hostname", "backend.tags")]
            self.assertEqual(len(stated), 4)
            for field in stated:
                with self.subTest(backend=name, field=field["field"]):
                    self.assertIn(table[field["field"]][name], (field["verdict"], "depends"))


class Endings(SandboxTest):
    def test_statuses_are_those_of_the_page(self):
        page = reference("errors")
        for status, arguments in (
            (0, ("--", "true")),
            (124, ("--timeout", "100ms", "--", "sleep", "60")),
            (125, ("--pids", "1", "--", "true")),
            (126, ("--", "/etc/passwd")),
            (127, ("--", "no-such-program")),
        ):
            with self.subTest(status):
                self.assertEqual(self.run_atoll(*arguments).status, status)
                self.assertIn(f"| `{status}` | ", page)


class Schemas(unittest.TestCase):
    def setUp(self):
        if not json_schema.FOLDER.exists():
            self.skipTest("docs/reference/json is not beside the tests")

    def test_every_form_that_the_program_writes_has_a_schema_with_a_title(self):
        forms = [line.partition(".schema.json:")[0] for line in reference("json").splitlines()]
        self.assertIn("create", forms)
        self.assertEqual(len(forms), len(set(forms)))
        self.assertEqual({f"{form}.schema.json" for form in forms}, {p.name for p in json_schema.FOLDER.iterdir()})
        for form in forms:
            schema = json_schema.load(form)
            self.assertTrue(schema["title"])
            self.assertTrue(schema["$schema"].startswith("https://json-schema.org/"))
            self.assertNotIn("$id", schema)

    def test_version_and_doctor_print_what_their_schemas_say(self):
        for form in ("version", "doctor"):
            with self.subTest(form):
                value = json.loads(atoll(form, "--json").stdout)
                schema = json_schema.load(form)
                json_schema.validate(value, schema)
                with self.assertRaises(json_schema.Invalid):
                    json_schema.validate({**value, "surprise": 1}, schema)
