# SPDX-License-Identifier: Apache-2.0
"""Sharing a sandbox of a backend that has tags in the place of leases: read, compared, written, read back."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, SandboxTest
import libatoll  # noqa: E402
from protocol import Create, Program, Tag  # noqa: E402
from share_support import attach, open_plain  # noqa: E402

BAD = Path(__file__).resolve().parents[1] / "conformance/bad_backend.py"
OPEN = '{"allow_egress_to":[],"allow_egress_to_cidrs":[],"block_network":false}'
RANGES = '{"allow_egress_to":[],"allow_egress_to_cidrs":["10.0.0.0/8"],"block_network":true}'


class Tags(SandboxTest):
    """The example backend, and its file of tags before our eyes."""

    def setUp(self):
        super().setUp()
        self.bin, self.folders = self.folder(), self.folder() / "sandboxes"
        self.environment = {
            "PATH": f"{self.bin}:{Path(ATOLL).parent}:/usr/bin:/bin", "ATOLL_FOLDER_DIR": str(self.folders)}
        for name, value in self.environment.items():
            self.addCleanup(os.environ.__setitem__, name, os.environ.get(name, ""))
            os.environ[name] = value
        try:
            self.context = libatoll.Context()
        except libatoll.Unavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.context.free)

    def atoll(self, *arguments, env=None):
        return subprocess.run([ATOLL, *arguments], capture_output=True, env=self.environment | (env or {}), timeout=LIMIT_S,
                              cwd="/", check=False)

    def create(self, *options, owner="a/b"):
        done = self.atoll("create", "--backend", "folder", "--open-network", *(["--owner", owner] if owner else []), *options)
        self.assertEqual(done.returncode, 0, done)
        sandbox = done.stdout.decode().strip()
        self.addCleanup(self.atoll, "rm", "--force", sandbox)
        return sandbox

    def file(self, sandbox):
        return self.folders / sandbox.partition(":")[2] / "tags"

    def tags(self, sandbox):
        return self.file(sandbox).read_text().split("\0")[:-1]

    def tag(self, sandbox, key):
        return dict(tag.split("=", 1) for tag in self.tags(sandbox)).get(key)

    def set(self, sandbox, **tags):
        kept = dict(tag.split("=", 1) for tag in self.tags(sandbox)) | tags
        self.file(sandbox).write_text("".join(f"{k}={v}\0" for k, v in kept.items() if v is not None))

    def attach(self, sandbox, owner="a/b", holder="t"):
        return attach(self.context, sandbox, owner, holder)

    def refuse(self, sandbox, *words, owner="a/b", holder="t"):
        """Refused for good, in these words; and no program is left that would speak with the backend."""
        with self.assertRaises(libatoll.AtollError) as caught:
            self.attach(sandbox, owner, holder)
        self.assertEqual(caught.exception.cls, libatoll.TERMINAL)
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertFalse(self.context.sandboxes)
        self.assert_gone()


class Attaching(Tags):
    def test_a_sandbox_without_an_owner_cannot_be_held(self):  # F1
        sandbox = self.create(owner=None)
        before = self.tags(sandbox)
        self.refuse(sandbox, "carries no owner")
        self.assertEqual(self.tags(sandbox), before)

    def test_another_owner_is_refused_with_both_names(self):  # F2, F20
        sandbox = self.create("--tag", "team=x")
        before = self.tags(sandbox)
        self.refuse(sandbox, "'a/b'", "'a/c'", owner="a/c")
        self.assertEqual(self.tags(sandbox), before)

    def test_one_that_another_holds_is_refused_with_its_name(self):  # F3
        sandbox = self.create()
        self.attach(sandbox, holder="first")
        before = self.tags(sandbox)
        with self.assertRaises(libatoll.AtollError) as caught:
            self.attach(sandbox, holder="second")
        self.assertEqual(caught.exception.cls, libatoll.TERMINAL)
        self.assertIn("held by 'first', and 'second' asked", str(caught.exception))
        self.assertEqual(self.tags(sandbox), before)

    def test_the_same_holder_gets_in_and_writes_nothing(self):  # F4
        sandbox = self.create()
        self.attach(sandbox)
        before = self.file(sandbox).stat()
        again = self.attach(sandbox)
        self.assertEqual(again.attached.generation, 0)
        after = self.file(sandbox).stat()
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))

    def test_other_tags_are_kept(self):  # F5
        sandbox = self.create("--tag", "team=x", "--tag", "kind=a=b")
        before = self.tags(sandbox)
        self.attach(sandbox)
        self.assertEqual(self.tags(sandbox), [*before, "airflow_holder=t"])
        self.assertIn("kind=a=b", before)

    def test_what_is_left_is_counted_from_the_tag(self):  # F7, F8, F9
        sandbox = self.create("--lifetime", "10m")
        self.set(sandbox, airflow_expires_at=int(time.time()) + 600)
        self.assertAlmostEqual(self.attach(sandbox).attached.left, 600, delta=5)
        self.set(sandbox, airflow_expires_at=int(time.time()) - 100)
        self.assertEqual(self.attach(sandbox).attached.left, 0)
        for unknown in ("soon", "", None):
            self.set(sandbox, airflow_expires_at=unknown)
            self.assertIsNone(self.attach(sandbox).attached.left)

    def test_the_network_is_told_as_it_was_recorded(self):  # F10, F11, F12
        sandbox = self.create()
        self.assertEqual(self.attach(sandbox).attached.network, OPEN)
        self.set(sandbox, airflow_network=RANGES)
        self.assertEqual(self.attach(sandbox).attached.network, RANGES)
        self.set(sandbox, airflow_network=None)
        found = self.attach(sandbox).attached
        self.assertEqual((found.network, found.warning), (None, None))
        self.set(sandbox, airflow_network="half open")
        found = self.attach(sandbox).attached
        self.assertIsNone(found.network)
        self.assertIn("'half open'", found.warning)

    def test_the_working_directory_is_told_if_one_was_chosen(self):  # F13
        self.assertEqual(self.attach(self.create("--workdir", "/data")).attached.workdir, "/data")
        sandbox = self.create()
        self.assertIsNone(self.attach(sandbox).attached.workdir)
        self.set(sandbox, airflow_workdir="")
        self.assertIsNone(self.attach(sandbox).attached.workdir)

    def test_a_sandbox_that_is_not_there_is_terminal(self):  # F17
        self.refuse("folder:0123456789", "no such sandbox")

    def test_an_author_cannot_set_what_atoll_keeps(self):  # F18
        for key in ("owner", "holder", "expires_at", "network", "workdir"):
            done = self.atoll("create", "--backend", "folder", "--open-network", "--tag", f"airflow_{key}=forged")
            self.assertEqual(done.returncode, 125)
            self.assertIn(f"'airflow_{key}' is kept for atoll itself".encode(), done.stderr)
        # One that speaks the protocol itself is not refused; the backend's library does not take it.
        with Program(Path(ATOLL).parent / "atoll-backend-folder", env=os.environ) as program:
            made = program.create(
                (Tag.CREATE_FLAGS, Create.OPEN_NETWORK), (Tag.IMAGE, "host"), (Tag.OWNER, "a/b"),
                (Tag.LABEL, "airflow_owner=forged"), (Tag.LABEL, "airflow_holder=forged"), (Tag.LABEL, "team=x"))
            sandbox = "folder:" + made[Tag.SANDBOX_ID]
        self.addCleanup(self.atoll, "rm", "--force", sandbox)
        self.assertEqual(
            self.tags(sandbox), ["team=x", "airflow_owner=a/b", f"airflow_network={OPEN}"])

    def test_a_new_sandbox_records_what_an_attach_asks_for(self):  # F19
        before = int(time.time())
        sandbox = self.create("--lifetime", "10m", "--workdir", "/data")
        self.assertEqual(self.tag(sandbox, "airflow_owner"), "a/b")
        self.assertEqual(self.tag(sandbox, "airflow_network"), OPEN)
        self.assertEqual(self.tag(sandbox, "airflow_workdir"), "/data")
        self.assertIn(int(self.tag(sandbox, "airflow_expires_at")), range(before + 600, int(time.time()) + 601))


class Ending(Tags):
    def refuse_rm(self, sandbox, words, *options):
        done = self.atoll("rm", *options, sandbox)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(words, done.stderr)
        self.assertTrue(self.file(sandbox).exists())

    def test_one_that_was_made_for_somebody_needs_its_owner(self):
        sandbox = self.create()
        self.refuse_rm(sandbox, b"made for 'a/b', and no owner was given")
        self.refuse_rm(sandbox, b"made for 'a/b', and not for 'a/c'", "--owner", "a/c")
        self.assertEqual(self.atoll("rm", "--owner", "a/b", sandbox).returncode, 0)
        self.assertFalse(self.file(sandbox).exists())

    def test_one_that_is_held_goes_only_by_force(self):
        sandbox = self.create()
        handle = self.attach(sandbox)
        self.refuse_rm(sandbox, b"held by 't'", "--owner", "a/b")
        handle.release()
        self.assertEqual(self.atoll("rm", "--owner", "a/b", sandbox).returncode, 0)
        sandbox = self.create()
        self.attach(sandbox)
        self.assertEqual(self.atoll("rm", "--force", sandbox).returncode, 0)
        self.assertFalse(self.file(sandbox).exists())

    def test_one_without_an_owner_is_anyones(self):
        sandbox = self.create(owner=None)
        self.assertEqual(self.atoll("rm", sandbox).returncode, 0)
        self.assertFalse(self.file(sandbox).exists())


class Releasing(Tags):
    def test_it_takes_the_holder_out_and_nothing_else(self):  # F14, F16
        sandbox = self.create("--tag", "team=x")
        before = self.tags(sandbox)
        handle = self.attach(sandbox)
        self.assertEqual(handle.lease, 0)
        handle.release()
        self.assertEqual(self.tags(sandbox), before)
        handle.release()
        self.assertEqual(self.tags(sandbox), before)
        handle.exec("true")  # the handle is still one

    def test_nobody_releases_what_another_holds(self):  # F15
        sandbox = self.create()
        handle = self.attach(sandbox)
        self.set(sandbox, airflow_holder="winner")
        handle.release()
        self.assertEqual(self.tag(sandbox, "airflow_holder"), "winner")
        open_plain(self.context, sandbox).release()
        self.assertEqual(self.tag(sandbox, "airflow_holder"), "winner")

    def test_one_that_has_gone_meanwhile_is_terminal(self):  # F17
        sandbox = self.create()
        handle = self.attach(sandbox)
        self.assertEqual(self.atoll("rm", "--force", sandbox).returncode, 0)
        with self.assertRaises(libatoll.AtollError) as caught:
            handle.release()
        self.assertEqual(caught.exception.cls, libatoll.TERMINAL)

    def test_a_handle_that_goes_without_it_leaves_its_name(self):
        sandbox = self.create()
        self.attach(sandbox).free()
        self.assertEqual(self.tag(sandbox, "airflow_holder"), "t")


class Holding(Tags):
    """The same by `atoll hold`."""

    def test_it_writes_the_holder_for_as_long_as_the_command_runs(self):
        sandbox = self.create()
        done = self.atoll("hold", sandbox, "--owner", "a/b", "--holder", "t", "--", "sh", "-c",
                          f"echo $ATOLL_LEASE; tr '\\0' '\\n' < {self.file(sandbox)}; {ATOLL} exec $ATOLL_SANDBOX -- echo in")
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        lines = done.stdout.decode().splitlines()
        self.assertEqual((lines[0], lines[-1]), (f"{sandbox}#0", "in"))
        self.assertIn("airflow_holder=t", lines)
        self.assertIsNone(self.tag(sandbox, "airflow_holder"))

    def test_who_is_killed_leaves_its_name_and_gets_in_again(self):
        sandbox = self.create()
        self.set(sandbox, airflow_holder="t")
        done = self.atoll("hold", sandbox, "--owner", "a/b", "--holder", "u", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"held by 't', and 'u' asked for it", done.stderr)
        self.assertIn(b"if the holder has died, \"atoll hold ID --owner OWNER --holder 't' -- true\"", done.stderr)
        self.assertEqual(self.atoll("hold", sandbox, "--owner", "a/b", "--holder", "t", "--", "true").returncode, 0)
        self.assertIsNone(self.tag(sandbox, "airflow_holder"))

    def test_a_time_to_keep_it_for_is_refused(self):
        sandbox = self.create()
        before = self.tags(sandbox)
        done = self.atoll("hold", sandbox, "--owner", "a/b", "--keep", "1m", "--", "touch", str(self.folder() / "marker"))
        self.assertEqual(done.returncode, 125)
        for words in (b"cannot be kept for a time", b"tags and no lease", b"--keep"):
            self.assertIn(words, done.stderr)
        self.assertEqual(self.tags(sandbox), before)

    def test_its_command_need_not_hold_it_once_more(self):
        sandbox = self.create()
        script = f"{ATOLL} hold $ATOLL_SANDBOX --owner a/b -- true; echo $?; tr '\\0' '\\n' < {self.file(sandbox)} | grep holder"
        done = self.atoll("hold", sandbox, "--owner", "a/b", "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stdout), (0, b"125\nairflow_holder=a/b\n"), done)
        self.assertIn(b"has the lease already, as 'a/b'. Run COMMAND without atoll hold; unset ATOLL_LEASE if", done.stderr)

    def test_others_are_not_refused_what_is_no_hold(self):
        """As the manual says of tags."""
        sandbox = self.create()
        self.set(sandbox, airflow_holder="t")
        self.assertEqual(self.atoll("exec", sandbox, "--", "echo", "in").stdout, b"in\n")

    def test_inspect_tells_who_has_it(self):
        sandbox = self.create()
        found = json.loads(self.atoll("inspect", "--json", sandbox).stdout)["lease"]
        self.assertEqual((found["state"], found["holder"], found["generation"]), ("free", None, None))
        self.attach(sandbox)
        found = json.loads(self.atoll("inspect", "--json", sandbox).stdout)["lease"]
        self.assertEqual((found["state"], found["holder"], found["until"]), ("held", "t", None))

    def test_the_backend_says_what_it_has(self):
        done = self.atoll("backends", "--json")
        rows = {row["name"]: row["features"] for row in json.loads(done.stdout)["backends"]}
        self.assertIn("lease", rows["local"])
        self.assertNotIn("tags", rows["local"])
        spec = self.folder() / "spec.yaml"
        spec.write_text("version: 1\nbackend: {name: folder}\ntoolset: {attach_to: 'folder:00'}\n")
        done = self.atoll("check", "--spec", str(spec), "--json")
        rows = {row["field"]: row["how"] for row in json.loads(done.stdout)["fields"]}
        self.assertEqual(rows["toolset.attach_to"], "attach: by tags, read back; not a lock")


class LosingTheProgram(Tags):
    """A run whose backend program is killed, while the sandbox stands."""

    def kill_program(self):
        killed = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, rest = path.read_text().partition("(")[2].rsplit(")", 1)
            except OSError:  # it has ended meanwhile
                continue
            if name == "atoll-backend-f" and int(rest.split()[1]) == os.getpid() and rest.split()[0] != "Z":
                os.kill(int(path.parent.name), signal.SIGKILL)
                killed.append(name)
        self.assertEqual(len(killed), 1)

    def run_on(self, sandbox):
        tools = self.context.toolset(None, {"toolset.attach_to": sandbox, "toolset.owner": "a/b"}, holder="t")
        self.addCleanup(tools.free)
        tools.open()
        return tools

    def test_the_holder_is_taken_out_all_the_same(self):
        sandbox = self.create("--tag", "team=x")
        before = self.tags(sandbox)
        for called in (False, True):
            tools = self.run_on(sandbox)
            self.assertEqual(tools.call("run_command", command="echo in").text, "[stdout]\nin")
            self.assertEqual(self.tag(sandbox, "airflow_holder"), "t")
            self.kill_program()
            if called:
                with self.assertRaises(libatoll.AtollError) as caught:
                    tools.call("run_command", command="true")
                self.assertIn(f"'{sandbox}' was lost", str(caught.exception))
            closing = tools.close(False)
            self.assertEqual((closing.warnings, closing.notes, self.tags(sandbox)), ([], [], before))
        self.attach(sandbox, holder="u")

    def test_a_holder_that_cannot_be_taken_out_is_a_warning(self):
        sandbox = self.create()
        tools = self.run_on(sandbox)
        self.kill_program()
        os.environ["ATOLL_FOLDER_DIR"] = str(self.bin / "file")
        (self.bin / "file").touch()
        closing = tools.close(False)
        os.environ["ATOLL_FOLDER_DIR"] = str(self.folders)
        self.assertEqual(closing.notes, [])
        self.assertIn("'t' is left as its holder", closing.warnings[0])
        self.assertEqual(self.tag(sandbox, "airflow_holder"), "t")

    def test_a_sandbox_that_is_gone_by_then_is_a_line_in_the_log(self):
        sandbox = self.create()
        tools = self.run_on(sandbox)
        self.kill_program()
        self.assertEqual(self.atoll("rm", "--force", sandbox).returncode, 0)
        closing = tools.close(False)
        self.assertEqual(closing.warnings, [])
        self.assertIn("has ended, so nothing was to be released", closing.notes[0])


class Misbehaving(Tags):
    """Backends that do not keep what was written."""

    def install(self, how):
        path = self.bin / "atoll-backend-bad"
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' -B '{BAD}' '{how}'\n")
        path.chmod(0o755)

    def test_one_that_behaves_lets_us_in_and_is_warned_of(self):  # F12
        self.install("keeps its tags")
        found = self.attach("bad:one").attached
        self.assertIsNone(found.network)
        self.assertIn("'soon'", found.warning)

    def test_of_two_that_write_at_once_the_one_that_reads_the_other_has_lost(self):  # F6
        self.install("lets another writer win")
        self.refuse("bad:one", "held by 'winner', and 't' asked")

    def test_a_holder_that_is_not_there_any_more_is_no_lease(self):
        self.install("forgets who has written")
        self.refuse("bad:one", "not there any more")

    def test_damaged_tags_are_the_programs_mistake(self):
        self.install("damages its tags")
        self.refuse("bad:one", "atoll-backend-bad")

    def test_an_older_program_has_neither(self):
        self.install("behaves")
        self.refuse_old("bad:one")

    def refuse_old(self, sandbox):
        with self.assertRaises(libatoll.AtollError) as caught:
            self.attach(sandbox)
        self.assertIn("version 1.1 and has no lease", str(caught.exception))
        self.assert_gone()


if __name__ == "__main__":
    unittest.main()
