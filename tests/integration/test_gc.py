# SPDX-License-Identifier: Apache-2.0
"""What killed exports and keepers leave is removed, what lives is not, and nothing else ever is."""
import fcntl
import json
import os
import signal
import unittest
from pathlib import Path

import support


class Gc(support.HeldTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder() / "out"
        self.out.mkdir()
        self.state.mkdir(mode=0o700)

    def journal(self, *paths, name="export-0123456789ab"):
        """What an export that was killed has written."""
        path = self.state / name
        path.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
        path.chmod(0o600)
        return path

    def staged(self, name="report.csv", number="0123456789ab"):
        path = self.out / os.fsdecode(os.fsencode(name) + b"." + number.encode() + b".partial")
        path.write_text("half")
        return path

    def test_nothing_to_do(self):
        self.assertEqual(self.good("gc"), b"0 staged paths, 0 records of sandboxes and 0 control groups removed\n")
        self.assertEqual(self.json("gc"), {"removed": [], "failed": [], "exports": 0, "sandboxes": 0,
                                           "control_groups": 0})
        self.assert_no_state()

    def test_what_a_killed_export_staged(self):
        file = self.staged()
        folder = self.out / "results.aaaaaaaaaaaa.partial"
        (folder / "deep/er").mkdir(parents=True)
        (folder / "deep/er/file").write_text("x")
        (folder / "deep").chmod(0)
        (self.out / "report.csv").write_text("published before")
        self.journal(file, folder, self.out / "never.bbbbbbbbbbbb.partial")
        self.assertEqual(
            self.good("gc").decode(),
            f"{file}\n{folder}\n2 staged paths, 0 records of sandboxes and 0 control groups removed\n")
        self.assertEqual(os.listdir(self.out), ["report.csv"])
        self.assert_no_state()

    def test_as_json(self):
        names = [b"a b", b"\xc3\xa4\n", b"\xff"]
        paths = [self.staged(name) for name in names]
        self.journal(*paths)
        value = self.json("gc")
        self.assertEqual([len(value["removed"]), value["failed"], value["exports"]], [3, [], 1])
        self.assertEqual([entry["path"] for entry in value["removed"]][:2], [str(path) for path in paths[:2]])
        self.assertIn("path_base64", value["removed"][2])
        self.assertEqual(os.listdir(self.out), [])

    def test_no_control_character_reaches_the_terminal(self):
        self.journal(self.staged(b"\x1b[31m\xff"))
        self.assertNotIn(b"\x1b", self.good("gc"))

    def test_one_that_lives_is_left_alone(self):
        path = self.staged()
        journal = self.journal(path)
        with journal.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual(self.json("gc")["exports"], 0)
            self.assertTrue(path.exists() and journal.exists())
        self.assertEqual(self.json("gc")["exports"], 1)
        self.assertFalse(path.exists() or journal.exists())

    def test_only_what_bears_a_staging_name_is_removed(self):
        precious = self.out / "precious"
        precious.mkdir()
        (precious / "file").write_text("kept")
        near = self.staged(number="0123456789aX")
        link = self.out / "link.0123456789ab.partial"
        link.symlink_to(precious)
        way = self.out / "way"
        way.symlink_to(precious)
        through = precious / "x.0123456789ab.partial"
        through.write_text("kept")
        self.journal(precious, precious / "file", near, link, way / through.name)
        self.assertEqual([entry["path"] for entry in self.json("gc")["removed"]], [str(link)])
        self.assertEqual((precious / "file").read_text() + through.read_text(), "keptkept")
        self.assertTrue(near.exists())

    def test_what_cannot_be_removed_is_told_and_tried_again(self):
        path = self.staged()
        hopeless = Path("/" + "n" * 300, "x.0123456789ab.partial")
        journal = self.journal(hopeless, path)
        done = self.atoll("gc", "--json")
        self.assertEqual(done.status, 125)
        self.assertIn(b"cannot be removed", done.err)
        value = json.loads(done.out)
        support.json_schema.validate(value, support.json_schema.load("gc"))
        self.assertEqual([entry["path"] for entry in value["failed"]], [str(hopeless)])
        self.assertEqual([entry["path"] for entry in value["removed"]], [str(path)])
        done = self.atoll("gc")
        self.assertEqual(done.status, 125)
        self.assertEqual(done.out, b"0 staged paths, 0 records of sandboxes and 0 control groups removed, 1 path left\n")
        journal.unlink()

    def test_an_export_that_is_killed(self):
        sandbox = self.create()
        self.exec(sandbox, "truncate -s 300M big; echo small > small")
        destination = self.out / "big"
        destination.write_text("as before")
        export = self.begin("export", sandbox, f"small=file://{self.out}/small", f"big=file://{destination}")
        support.wait_for(lambda: list(self.out.glob("big.*.partial")), "a staged file")
        export.send_signal(signal.SIGSTOP)
        self.assertEqual(self.json("gc")["removed"], [])  # it lives
        export.kill()
        export.wait(support.LIMIT_S)
        support.wait_for(lambda: not support.descendants(export.pid), "the end of what it started")
        removed = sorted(Path(entry["path"]).name.split(".")[0] for entry in self.json("gc")["removed"])
        self.assertEqual(removed, ["big", "small"])
        self.assertEqual(support.listing(self.out)["big"][2], b"as before")
        self.assertEqual(os.listdir(self.out), ["big"])
        self.good("rm", sandbox)
        self.assert_no_state()

    def test_the_record_of_a_killed_keeper(self):
        sandbox, other = self.create(), self.create()
        os.kill(self.keeper_of(sandbox), signal.SIGKILL)
        support.wait_for(lambda: len(support.keepers()) == 1, "the keeper's end")
        self.assertEqual(self.json("gc")["sandboxes"], 1)
        self.assertEqual(os.listdir(self.state), [other])
        self.assertEqual(self.json("gc")["sandboxes"], 0)

    def test_the_control_groups_of_a_killed_keeper(self):
        made = self.atoll("create", "--memory", "64M")
        if made.status == 125:
            self.assertIn(b"backend.memory cannot be enforced", made.err)  # test_ceilings.py has more
            return
        box = made.out.decode().strip()
        before = support.Traces.now().cgroups
        os.kill(self.keeper_of(box), signal.SIGKILL)
        support.wait_for(lambda: not support.keepers(), "the keeper's end")
        swept = self.json("gc")
        gone = before - support.Traces.now().cgroups
        self.assertEqual(swept["sandboxes"], 1)
        self.assertEqual(swept["control_groups"], len([path for path in gone if "/sandbox-" in path]))
        self.assertGreaterEqual(swept["control_groups"], 1)
        self.assertRegex(self.good("gc").decode(), "and 0 control groups removed\n$")

    def test_arguments_are_refused(self):
        done = self.atoll("gc", "everything")
        self.assertEqual((done.status, done.out), (125, b""))


if __name__ == "__main__":
    unittest.main()
