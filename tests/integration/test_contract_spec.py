# SPDX-License-Identifier: Apache-2.0
"""Rows A to C of tests/contract.md through the command line: what a spec may say, and what a backend is told."""
import json
import subprocess
import sys
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, HeldTest, SandboxTest, json_schema

FAKE = Path(__file__).resolve().parents[1] / "support/fake_backend.py"
OPEN_NETWORK = 8  # of CREATE's flags
BOUNDS = (
    "default_command_timeout", "max_command_timeout", "max_output_lines", "max_output_bytes", "max_read_bytes",
    "max_export_bytes",
)
KNOWN = ("local", "modal", "sbx", "opensandbox", "openshell", "boat", "islo", "kubernetes")


class SpecTest(SandboxTest):
    def check(self, spec, *options, env=None, status=None):
        """What `atoll check` finds in a text of YAML, without a look at this host."""
        done = subprocess.run(
            [ATOLL, "check", "--no-host", "--json", "--spec", "-", *options], input=spec.encode(), cwd="/",
            capture_output=True, timeout=LIMIT_S, check=False, env={"PATH": "/usr/bin:/bin"} if env is None else env)
        self.assertEqual(done.stderr, b"")
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout)
        value = json.loads(done.stdout)
        json_schema.validate(value, json_schema.load("check"))
        return value

    def problem(self, spec, field):
        """The one problem of a spec, which must be in that field."""
        problems = self.check("version: 1\n" + spec, status=125)["problems"]
        self.assertEqual([p["field"] for p in problems], [field], spec)
        self.assertTrue(problems[0]["remedy"], spec)
        return problems[0]["message"]


class Bounds(SpecTest):
    def assert_each_is_refused(self, *values):
        for name in BOUNDS:
            for value in values:
                with self.subTest(name=name, value=value):
                    self.problem(f"toolset: {{{name}: {value}}}\n", f"toolset.{name}")

    def test_zero_is_refused_by_name(self):
        self.assert_each_is_refused("0", "0.0")

    def test_less_than_zero_is_refused_by_name(self):
        self.assert_each_is_refused("-1", "-0.5")

    def test_infinity_is_refused_by_name(self):
        self.assert_each_is_refused(".inf", "-.inf", "'inf'")

    def test_what_is_no_number_is_refused_by_name(self):
        self.assert_each_is_refused(".nan", "'nan'")

    def test_a_boolean_is_refused_by_name(self):
        self.assert_each_is_refused("true", "false")

    def test_whole_and_broken_seconds_are_taken(self):
        for seconds in ("1", "0.5", "3600"):
            with self.subTest(seconds=seconds):
                spec = f"version: 1\ntoolset: {{default_command_timeout: {seconds}, max_command_timeout: 3600}}\n"
                self.assertEqual(self.check(spec, status=0)["problems"], [])

    def test_a_default_beyond_the_ceiling_is_refused_and_one_equal_to_it_taken(self):
        text = "toolset: {default_command_timeout: %d, max_command_timeout: %d}\n"
        found = self.problem(text % (100, 10), "toolset.default_command_timeout")
        self.assertIn("longer than max_command_timeout", found)
        self.check("version: 1\n" + text % (5, 5), status=0)


class Toolset(SpecTest):
    def test_a_handle_is_a_text_that_names_something(self):
        for value in ("", "''", "~", "null", "None", "5", "true"):
            with self.subTest(value=value):
                self.problem(f"toolset: {{attach_to: {value}}}\n", "toolset.attach_to")
        found = self.check("version: 1\ntoolset: {attach_to: sb-1}\n", status=0)
        self.assertIn("toolset.attach_to", [row["field"] for row in found["fields"]])

    def test_attaching_needs_a_backend_that_finds_what_another_run_has_made(self):
        spec = "version: 1\nbackend: {name: boat}\ntoolset: {attach_to: 'boat:1'}\n"
        found = self.check(spec, status=125)
        rows = [row for row in found["fields"] if row["field"] == "toolset.attach_to"]
        self.assertEqual([row["verdict"] for row in rows], ["refused"])
        self.assertIn("another run", rows[0]["how"])
        self.assertEqual(found["backend"]["name"], "boat")

    def test_an_owner_needs_a_backend_that_can_record_it(self):
        for name in ("sbx", "opensandbox", "openshell", "boat", "islo"):
            with self.subTest(name=name):
                found = self.check(f"version: 1\nbackend: {{name: {name}}}\nspec: {{owner: dag/run}}\n", status=125)
                row = next(row for row in found["fields"] if row["field"] == "spec.owner")
                self.assertEqual(row["verdict"], "refused")
                self.assertIn("the backend local or modal", row["remedy"])
        for name in ("local", "modal"):
            found = self.check(f"version: 1\nbackend: {{name: {name}}}\nspec: {{owner: dag/run}}\n")
            self.assertIn(("spec.owner", "accepted"), [(row["field"], row["verdict"]) for row in found["fields"]])

    def test_attaching_and_exports_go_together(self):
        found = self.check("version: 1\ntoolset: {attach_to: sb-1, exports: {a: 'file:///srv/a'}}\n", status=0)
        self.assertEqual(found["problems"], [])

    def test_an_empty_map_of_exports_is_none(self):
        without, empty = self.check("version: 1\n"), self.check("version: 1\ntoolset: {exports: {}}\n")
        self.assertEqual(without, empty)
        self.assertNotIn("toolset.exports", [row["field"] for row in empty["fields"]])

    def test_two_exports_to_one_destination_are_refused(self):
        for other in ("file:///srv/x", "file://localhost/srv/x", "file:///srv/%78", "file:///srv/x/y"):
            with self.subTest(other=other):
                spec = f"version: 1\ntoolset: {{exports: {{a: 'file:///srv/x', b: '{other}'}}}}\n"
                found = self.check(spec, status=125)
                self.assertIn("toolset.exports", json.dumps(found["problems"]))

    def test_no_backend_is_looked_for_outside_when_it_is_judged(self):
        for name in KNOWN:
            with self.subTest(name=name):
                found = self.check(f"version: 1\nbackend: {{name: {name}}}\n", env={})
                self.assertEqual((found["problems"], found["backend"]["name"]), ([], name))
                self.assertTrue(found["fields"])


class Recorded(HeldTest):
    """With a backend that keeps everything and notes what it was asked."""

    def setUp(self):
        super().setUp()
        self.desk = self.folder()
        folder = self.folder()
        program = folder / "atoll-backend-fake"
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -B '{FAKE}' '{self.desk}'\n")
        program.chmod(0o755)
        self.env["PATH"] = f"{folder}:{self.env['PATH']}"

    def told(self, spec=None):
        """The request for a sandbox with a spec of YAML, or without one."""
        (self.desk / "requests.jsonl").unlink(missing_ok=True)
        if spec is None:
            self.good("create", "--backend", "fake")
        else:
            self.good("create", "--spec", "-", stdin=spec.encode())
        (request,) = self.asked_for("create")
        return request

    def asked_for(self, kind):
        path = self.desk / "requests.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if row["kind"] == kind]

    def refused(self, spec, *words):
        """It is refused, and the backend has been asked for nothing."""
        self.assert_refused(self.atoll("create", "--spec", "-", stdin=spec.encode()), *words)
        self.assertEqual(self.asked_for("create"), [])

    @staticmethod
    def spec(text):
        return f"version: 1\nbackend: {{name: fake}}\nspec: {text}\n"

    def test_a_default_spec_is_a_closed_network_and_nothing_else(self):
        for told in (self.told(), self.told(self.spec("{}"))):
            self.assertEqual(told["create_flags"] & OPEN_NETWORK, 0)
            self.assertFalse({"allow_host", "allow_range", "private_range", "env", "owner"} & set(told), told)

    def test_an_open_network_is_no_restriction(self):
        told = self.told(self.spec("{block_network: false}"))
        self.assertEqual(told["create_flags"] & OPEN_NETWORK, OPEN_NETWORK)
        self.assertFalse({"allow_host", "allow_range", "private_range"} & set(told), told)

    def test_empty_lists_and_maps_are_none(self):
        told = self.told(self.spec("{env: {}, allow_egress_to: [], allow_egress_to_cidrs: []}"))
        self.assertEqual(told, self.told())

    def test_hosts_are_passed_as_they_are_written(self):
        hosts = ["Host.Example", "*.cdn.example", "a-b.example.co.uk"]
        told = self.told(self.spec(f"{{allow_egress_to: {json.dumps(hosts)}}}"))
        self.assertEqual(told["allow_host"], hosts)
        self.assertEqual(told["create_flags"] & OPEN_NETWORK, 0)
        self.assertNotIn("allow_range", told)

    def test_hosts_and_ranges_go_together_without_a_warning(self):
        told = self.told(self.spec("{allow_egress_to: [host.example], allow_egress_to_cidrs: [203.0.113.0/24]}"))
        self.assertEqual((told["allow_host"], told["allow_range"]), (["host.example"], ["203.0.113.0/24"]))

    def test_ranges_alone_need_no_permission(self):
        told = self.told(self.spec("{allow_egress_to_cidrs: [203.0.113.0/24, 2001:db8::/32]}"))
        self.assertEqual(told["allow_range"], ["203.0.113.0/24", "2001:db8::/32"])
        self.assertNotIn("allow_host", told)

    def test_variables_and_an_owner_are_passed_exactly(self):
        told = self.told(self.spec("{env: {A: '1', B: ' x=y '}, owner: dag/run}"))
        self.assertEqual((told["env"], told["owner"]), (["A=1", "B= x=y "], "dag/run"))

    def test_a_contradiction_is_refused_before_anything_exists(self):
        self.refused(self.spec("{block_network: false, allow_egress_to: [host.example]}"), "block_network")
        self.refused(self.spec("{block_network: false, allow_egress_to_cidrs: [203.0.113.0/24]}"), "block_network")

    def test_a_wrong_spec_is_refused_before_anything_exists(self):
        for text, words in (
            ("{env: {PORT: 8080}}", ["spec.env.PORT"]), ("{env: {DEBUG: true}}", ["spec.env.DEBUG"]),
            ("{env: {NONE: null}}", ["spec.env.NONE"]), ("{env: {5: x}}", ["spec.env.5"]),
            ("{env: {Z: 1, B: true, A: null}}", ["spec.env.Z", "spec.env.B", "spec.env.A"]),
            ("{allow_egress_to: [localhost], allow_egress_to_cidrs: [1.1.1], env: {A: 1}}",
             ["localhost", "1.1.1", "spec.env.A"]),
            ("{allow_egress_to: host.example}", ["not one string"]),
            ("{allow_egress_to_cidrs: 203.0.113.0/24}", ["not one string"]),
        ):
            with self.subTest(text=text):
                self.refused(self.spec(text), *words)

    def test_an_owner_beside_an_idle_time_is_taken(self):
        spec = "version: 1\nbackend: {name: fake, idle_timeout: 60}\nspec: {owner: dag/run}\n"
        told = self.told(spec)
        self.assertEqual((told["owner"], told["idle_us"]), ("dag/run", 60_000_000))

    def test_a_refusal_of_the_backends_own_is_told_in_its_words(self):
        error = {"message": "the account is empty", "remedy": "Fill it"}
        (self.desk / "script.json").write_text(json.dumps({"create": [{"error": error}]}))
        self.assert_refused(self.atoll("create", "--backend", "fake"), "the account is empty", "Fill it")
        self.assertEqual(len(self.asked_for("create")), 1)


class Local(HeldTest):
    def test_the_stamp_of_a_sandbox_is_its_network_alone(self):
        sandbox = self.create("--env", "TOKEN=tell-nobody", "--owner", "dag/run")
        found = self.json("inspect", sandbox)
        self.assertEqual(found["owner"], "dag/run")
        self.assertEqual(found["network"], {"allow_egress_to": [], "allow_egress_to_cidrs": [], "block_network": True})

    def test_a_hundred_ids_differ(self):
        made = [self.create() for _ in range(100)]
        self.assertEqual(len(set(made)), 100)
        self.good("rm", *made)


if __name__ == "__main__":
    unittest.main()
