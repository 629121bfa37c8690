# SPDX-License-Identifier: Apache-2.0
"""Judging a spec before anything exists: check, explain, backends, as text and as JSON."""
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import json_schema  # noqa: E402

BACKENDS = ["local", "modal", "sbx", "opensandbox", "openshell", "boat", "islo", "kubernetes"]


class CheckTest(unittest.TestCase):
    def atoll(self, *arguments, status=0, path=None, stdin=b""):
        environment = dict(os.environ, NO_COLOR="1", PATH=path or os.environ["PATH"])
        done = subprocess.run(
            [support.ATOLL, *arguments], input=stdin, capture_output=True, env=environment,
            timeout=support.LIMIT_S, check=False)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done

    def text(self, *arguments, **options):
        """Standard output with line breaks undone."""
        done = self.atoll(*arguments, **options)
        self.assertEqual(done.stderr, b"")
        return " ".join(done.stdout.decode().split())

    def json(self, form, *arguments, **options):
        done = self.atoll(form, "--json", *arguments, **options)
        self.assertEqual(done.stderr, b"")
        value = json.loads(done.stdout)
        json_schema.validate(value, json_schema.load(form))
        return value

    def check(self, *arguments, **options):
        return self.json("check", *arguments, **options)

    def fields(self, *arguments, **options):
        return {row["field"]: row for row in self.check(*arguments, **options)["fields"]}

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Path(folder.name)

    def assert_usage(self, done, *words):
        self.assertEqual(done.stdout, b"")
        self.assertTrue(done.stderr.startswith(b"atoll: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr.decode())


class Check(CheckTest):
    def test_the_default_spec_is_enforced_on_this_host(self):
        found = self.check()
        self.assertTrue(found["ok"])
        self.assertEqual(found["backend"], {"name": "local", "state": "built-in"})
        self.assertEqual(found["host"], {"ok": True, "missing": []})
        self.assertEqual({row["verdict"] for row in found["fields"]}, {"enforced"})
        self.assertEqual(
            {row["field"] for row in found["fields"]},
            {"spec.env", "spec.block_network", "backend.image", "backend.sandbox_timeout"})

    def test_it_says_how_and_by_whom(self):
        text = self.text("check")
        self.assertIn("spec.block_network enforced by the kernel: a network namespace with nothing but loopback", text)
        self.assertIn("backend.sandbox_timeout enforced by atoll's keeper: ", text)
        self.assertIn("the backend local enforces this spec", text)

    def test_the_host_is_left_out_on_demand(self):
        self.assertIsNone(self.check("--no-host")["host"])
        self.assertIn("this host", self.text("check"))
        self.assertNotIn("this host", self.text("check", "--no-host"))

    def test_what_is_recorded_alone_is_not_called_enforced(self):
        found = self.check("--no-host", "--tag", "team=data", "--owner", "dag/run")
        self.assertTrue(found["ok"])
        verdicts = {row["field"]: row["verdict"] for row in found["fields"]}
        self.assertEqual(verdicts["backend.tags"], "accepted")
        self.assertEqual(verdicts["spec.owner"], "accepted")
        self.assertIn("recorded", found["summary"])

    def test_every_refused_field_says_what_to_change(self):
        found = self.check("--no-host", "-m", "1G", "--cpu", "2", "--max-cost", "2", "--pids", "100",
                           "--egress-enforcement", "inspect", status=125)
        self.assertFalse(found["ok"])
        refused = {row["field"]: row for row in found["fields"] if row["verdict"] == "refused"}
        self.assertEqual(set(refused), {"backend.egress_enforcement", "backend.max_cost"})
        for row in refused.values():
            self.assertTrue(row["remedy"])
        text = self.text("check", "--no-host", "--max-cost", "1", status=125)
        self.assertIn("backend.max_cost refused: ", text)
        self.assertIn("\u2192 Set backend.prices, or remove backend.max_cost", text)
        self.assertIn("the backend local refuses this spec: 1 field", text)

    def test_every_network_but_an_inspected_one_is_enforced(self):
        for options, field, by in [
            (["--open-network"], "spec.block_network", "atoll's egress process"),
            (["--allow", "example.com"], "spec.allow_egress_to", "atoll's egress process"),
            (["--allow", "example.com"], "spec.block_network", "the kernel"),
            (["--allow-cidr", "8.8.8.0/24"], "spec.allow_egress_to_cidrs", "the kernel"),
            (["--open-network", "--allow-private", "10.0.0.0/8"], "spec.private_cidrs", "the kernel"),
            (["--allow", "a.example", "--add-host", "a.example=10.0.0.1"], "backend.add_hosts",
             "atoll's egress process"),
            (["--resolver", "9.9.9.9"], "backend.resolver", "atoll's egress process"),
            (["--proxy", "http://proxy.example:3128"], "backend.proxy", "atoll's egress process"),
            (["--publish", "0:80"], "backend.publish", "atoll's egress process"),
        ]:
            with self.subTest(options):
                row = self.fields("--no-host", *options)[field]
                self.assertEqual((row["verdict"], row["by"]), ("enforced", by))
        for options, field in [
            (["--egress-enforcement", "inspect"], "backend.egress_enforcement"),
            (["--proxy", "socks5://proxy.example:1080"], "backend.proxy"),
            (["--proxy", "https://proxy.example"], "backend.proxy"),
        ]:
            with self.subTest(options):
                row = self.fields("--no-host", *options, status=125)[field]
                self.assertEqual(row["verdict"], "refused")
                self.assertTrue(row["remedy"])

    def test_ten_thousand_hosts_are_a_spec(self):
        spec = self.folder() / "job.yaml"
        hosts = "".join(f"    - host{i}.example.com\n" for i in range(10000))
        spec.write_text(f"version: 1\nspec:\n  allow_egress_to:\n{hosts}")
        self.assertEqual(self.fields("--no-host", "--spec", str(spec))["spec.allow_egress_to"]["verdict"], "enforced")

    def test_a_password_stands_in_a_file_and_in_no_message(self):
        found = self.check("--no-host", "--proxy", "http://me:hunter2@proxy.example:3128", status=125)
        self.assertNotIn("hunter2", json.dumps(found))
        self.assertIn("proxy_credentials", found["problems"][0]["remedy"])
        folder = self.folder()
        (folder / "login").write_text("me:hunter2\n")
        (folder / "job.yaml").write_text(
            "version: 1\nbackend:\n  proxy: http://proxy.example:3128\n  proxy_credentials: login\n")
        rows = self.fields("--no-host", "--spec", str(folder / "job.yaml"))
        self.assertEqual(rows["backend.proxy_credentials"]["verdict"], "enforced")
        self.assertIn("no proxy", self.text("check", "--no-host", "--proxy-credentials", str(folder / "login"),
                                            status=125))

    def test_an_address_is_given_to_a_listed_name_alone(self):
        found = self.check("--no-host", "--add-host", "a.example=10.0.0.1", status=125)
        self.assertEqual(found["problems"][0]["field"], "--add-host")
        self.assertIn("allow_egress_to", found["problems"][0]["message"])

    def test_a_spec_that_is_wrong_is_refused_with_all_its_problems(self):
        spec = self.folder() / "job.yaml"
        spec.write_text(
            "version: 1\n"
            "spec:\n"
            "  allow_egress_to: ['https://example.com', localhost]\n"
            "backend:\n"
            "  memory: 512\n")
        found = self.check("--no-host", "--spec", str(spec), status=125)
        self.assertIsNone(found["backend"])
        self.assertEqual(found["fields"], [])
        self.assertEqual(len(found["problems"]), 3)
        memory = next(x for x in found["problems"] if x["field"] == "backend.memory")
        self.assertEqual((memory["file"], memory["line"]), (str(spec), 5))
        self.assertIn("wrong: 3 problems", found["summary"])
        text = self.text("check", "--spec", str(spec), status=125)
        self.assertIn(f"{spec}:5:", text)
        self.assertIn("\u2192", text)

    def test_contradictions_are_found_without_a_backend(self):
        found = self.check("--no-host", "--open-network", "--allow", "example.com", status=125)
        self.assertIsNone(found["backend"])
        self.assertIn("block_network", json.dumps(found["problems"]))

    def test_bytes_that_are_not_text_are_shown_as_such(self):
        for arguments in [["--allow", b"caf\xe9.org"], ["--tag", b"\xff=1"], ["--spec", b"/tmp/\xff\x1b[2J"]]:
            with self.subTest(arguments):
                done = self.atoll("check", "--json", *arguments, status=125)
                if done.stdout:
                    json_schema.validate(json.loads(done.stdout), json_schema.load("check"))
                done = self.atoll("check", *arguments, status=125)
                self.assertNotIn(b"\x1b", done.stdout + done.stderr)
                (done.stdout + done.stderr).decode()

    def test_a_file_that_is_not_there_is_a_failure(self):
        done = self.atoll("check", "--spec", "/nonexistent/spec.yaml", status=125)
        self.assert_usage(done, "/nonexistent/spec.yaml")

    def test_a_known_backend_is_judged_by_its_own_table(self):
        for backend in BACKENDS[1:]:
            with self.subTest(backend):
                found = self.check("--backend", backend, status=125)
                self.assertEqual(found["backend"], {"name": backend, "state": "known"})
                self.assertIsNone(found["host"])
                self.assertIn("not built into", found["summary"])
                self.assertIn("local", found["summary"])
        network = {
            backend: self.fields("--backend", backend, status=125)["spec.block_network"]["verdict"]
            for backend in BACKENDS[1:]
        }
        self.assertEqual(
            {backend for backend, verdict in network.items() if verdict == "refused"},
            {"sbx", "boat", "kubernetes"})

    def test_what_is_known_from_documentation_alone_says_so(self):
        options = ["--backend", "sbx", "--open-network", "--workdir", "/srv"]
        self.assertTrue(self.fields(*options, status=125)["backend.workdir"]["documented"])
        self.assertIn("(as documented)", self.text("check", *options, status=125))

    def test_an_unknown_backend_is_refused_with_the_nearest(self):
        done = self.atoll("check", "--backend", "modl", status=125)
        self.assert_usage(done, "there is no backend 'modl'", "'modal'", "atoll-backend-modl")

    def test_a_program_that_does_not_say_what_it_can_do_is_an_error(self):
        folder = self.folder()
        self._program(folder, "modal")
        done = self.atoll("check", "--backend", "modal", path=f"{folder}:{os.environ['PATH']}", status=125)
        self.assertIn(b"atoll-backend-modal", done.stderr)

    @staticmethod
    def _program(folder, name):
        program = folder / f"atoll-backend-{name}"
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return program

    def test_operands_are_refused(self):
        self.assert_usage(self.atoll("check", "job.yaml", status=125), "job.yaml")


class Explain(CheckTest):
    def explain(self, *arguments, **options):
        return self.json("explain", *arguments, **options)

    def test_the_default_lets_nothing_out(self):
        found = self.explain("https://example.com/", status=1)
        self.assertFalse(found["allowed"])
        self.assertEqual(found["rule"], {"kind": "none"})
        self.assertIn("example.com", found["remedy"])

    def test_a_listed_host_is_let_out_by_its_entry(self):
        found = self.explain("--allow", "example.org", "--allow", "*.example.com", "https://a.example.com/simple")
        self.assertTrue(found["allowed"])
        self.assertEqual(found["destination"], "https://a.example.com/simple")
        self.assertEqual(
            found["rule"], {"kind": "host", "field": "spec.allow_egress_to[1]", "entry": "*.example.com"})
        self.explain("--allow", "*.example.com", "https://example.com/", status=1)
        self.explain("--allow", "example.com", "example.com:80", status=1)

    def test_addresses_go_by_ranges(self):
        options = ["--allow-cidr", "10.1.0.0/16"]
        self.assertEqual(self.explain(*options, "10.1.2.3:5432")["rule"]["field"], "spec.allow_egress_to_cidrs[0]")
        self.explain(*options, "10.2.2.3:5432", status=1)
        self.explain(*options, "[2001:db8::1]:443", status=1)

    def test_an_open_network_keeps_private_addresses_closed(self):
        self.assertEqual(self.explain("--open-network", "1.1.1.1:443")["rule"]["field"], "spec.block_network")
        self.assertEqual(self.explain("--open-network", "169.254.169.254:80", status=1)["rule"]["kind"], "class")
        found = self.explain("--open-network", "--allow-private", "10.0.0.0/8", "10.9.9.9:22")
        self.assertEqual(found["rule"]["field"], "spec.private_cidrs[0]")

    def test_it_tells_where_a_name_leads_by_the_spec(self):
        options = ["--allow", "db.example:5432", "--add-host", "db.example=10.0.0.7"]
        found = self.explain(*options, "db.example:5432")
        self.assertTrue(found["allowed"])
        self.assertIn("backend.add_hosts gives it the address 10.0.0.7", found["explanation"])
        self.explain(*options, "10.0.0.7:5432", status=1)

    def test_it_reads_a_spec_file(self):
        spec = self.folder() / "job.json"
        spec.write_text(json.dumps({"version": 1, "spec": {"allow_egress_to": ["example.com"]}}))
        self.assertIn("allowed: ", self.text("explain", "--spec", str(spec), "example.com:443"))
        self.assertIn("spec.allow_egress_to[0] example.com", self.text("explain", "--spec", str(spec), "example.com:443"))
        text = self.text("explain", "--spec", str(spec), "example.org:443", status=1)
        self.assertIn("refused: ", text)
        self.assertIn("\u2192 ", text)

    def test_wrong_questions_are_usage_errors(self):
        for arguments in [[], ["example.com:443", "more"], ["example.com"], ["--allow", "localhost", "example.com:443"],
                          ["http://a@b@c/"]]:
            with self.subTest(arguments):
                self.assert_usage(self.atoll("explain", *arguments, status=125))


class Backends(CheckTest):
    def test_all_are_listed(self):
        found = self.json("backends", path="/usr/bin")["backends"]
        self.assertEqual([row["name"] for row in found], BACKENDS)
        self.assertEqual([row["name"] for row in found if row["state"] == "built-in"], ["local"])
        self.assertIn("exec", found[0]["features"])
        self.assertNotIn("program", found[0])
        lines = self.atoll("backends", path="/usr/bin").stdout.decode().splitlines()
        self.assertEqual([line.split()[:2] for line in lines if line[0] != " "],
                         [[row["name"], row["state"]] for row in found])

    def test_programs_on_the_path_are_listed_and_win_over_what_is_known(self):
        folder = self.folder()
        for name in ("zebra", "boat"):
            (folder / f"atoll-backend-{name}").write_text("")
            (folder / f"atoll-backend-{name}").chmod(0o755)
        (folder / "atoll-backend-plain").write_text("")
        (folder / "atoll-backend-BAD").write_text("")
        (folder / "atoll-backend-BAD").chmod(0o755)
        found = {row["name"]: row for row in self.json("backends", path=f".:{folder}")["backends"]}
        self.assertEqual(set(found), {*BACKENDS, "zebra"})
        for name in ("zebra", "boat"):
            self.assertEqual(found[name]["state"], "program")
            self.assertEqual(found[name]["program"], str(folder / f"atoll-backend-{name}"))


class Schemas(unittest.TestCase):
    """The validator must be able to refuse."""

    def test_wrong_values_are_refused(self):
        good = {"backends": [{"name": "a", "state": "known", "summary": "", "features": ["exec"]}]}
        schema = json_schema.load("backends")
        json_schema.validate(good, schema)
        for change in [{"more": 1}, {"backends": {}}, {"backends": [{"name": "a"}]},
                       {"backends": [dict(good["backends"][0], state="gone")]},
                       {"backends": [dict(good["backends"][0], features=[True])]},
                       {"backends": [dict(good["backends"][0], name=1)]}]:
            with self.subTest(change), self.assertRaises(json_schema.Invalid):
                json_schema.validate({**good, **change}, schema)

    def test_each_keyword_is_followed(self):
        for schema, good, bad in [
            ({"type": "integer", "minimum": 1}, 1, 0),
            ({"type": "integer"}, 1, True),
            ({"type": ["string", "null"]}, None, 1),
            ({"const": 1}, 1, True),
            ({"oneOf": [{"type": "null"}, {"type": "string"}]}, "", 1),
            ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, 1, 7),
            ({"additionalProperties": {"type": "string"}}, {"a": ""}, {"a": 1}),
        ]:
            with self.subTest(schema):
                json_schema.validate(good, schema)
                with self.assertRaises(json_schema.Invalid):
                    json_schema.validate(bad, schema)
        with self.assertRaises(ValueError):
            json_schema.validate("", {"pattern": "x"})


if __name__ == "__main__":
    unittest.main()
