# SPDX-License-Identifier: Apache-2.0
"""Exports: what is published is exact and whole, and when anything fails nothing has changed."""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from support import ATOLL, GONE_S, LIMIT_S, PYTHON, HeldTest, SandboxTest, is_root, json_schema, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import driver  # noqa: E402

MIB = 1 << 20
SIZES = (0, 1, 4 * MIB - 1, 4 * MIB, 4 * MIB + 1, 30 * MIB)
NAMES = (
    b"with space", b"quo'te", b'dou"ble', b"dol$lar", b"-rf", b"new\nline", "报告 final.txt".encode(), b"\xff.bin",
    b"...", b".hidden", b"a:b", b"a=b", b"back\\slash", b"x" * 230,
)
MANIFEST = "atoll-manifest.json"
LARGE = "truncate -s 300M large"  # takes long enough to copy for others to act meanwhile


def digest(data):
    return hashlib.sha256(data).hexdigest()


def url_of(path):
    """A file:// URL of a path of any bytes."""
    special = re.compile(rb"[^A-Za-z0-9_./-]")
    return "file://" + special.sub(lambda m: b"%%%02X" % m[0][0], os.fsencode(path)).decode()


class ExportTest(HeldTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder()
        self.addCleanup(self.check_nothing_is_staged)

    def check_nothing_is_staged(self):
        """No staging name is left, and no journal that tells of one."""
        self.assertEqual([str(p) for p in self.out.rglob("*.partial")], [])
        if self.state.exists():
            self.assertEqual([p.name for p in self.state.iterdir() if p.name.startswith("export-")], [])

    def to(self, path, name):
        """PATH=URL of a place in the folder of this test."""
        return f"{path}={url_of(self.out / name)}"

    def judged(self, folder):
        """The manifest of a published folder, which must be true: path to item."""
        text = (folder / MANIFEST).read_text()
        manifest = json.loads(text)
        json_schema.validate(manifest, json_schema.load("manifest"))
        found = {os.fsencode(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir() or p.is_symlink()}
        told = {}
        for item in manifest["files"] + manifest["links"]:
            name = item["path"].encode()
            if "path_base64" in item:
                name = __import__("base64").b64decode(item["path_base64"])
            told[name] = item
        self.assertEqual(set(told), found - {MANIFEST.encode()})
        for name, item in told.items():
            path = folder / os.fsdecode(name)
            if "target" in item:
                self.assertEqual(os.readlink(path), item["target"])
            else:
                data = path.read_bytes()
                self.assertEqual((len(data), digest(data)), (item["size"], item["sha256"]), path)
                self.assertEqual(f"{path.stat().st_mode & 0o777:04o}", item["mode"], path)
        self.assertEqual(manifest["total"]["files"], len(manifest["files"]))
        self.assertEqual(manifest["total"]["bytes"], sum(f["size"] for f in manifest["files"]))
        return told


class Held(ExportTest):
    """atoll export, from a sandbox that stands."""

    def setUp(self):
        super().setUp()
        self.sandbox = self.create("--name", "box")

    def inside(self, script):
        return self.exec(self.sandbox, script)

    def start_inside(self, script):
        """A program inside that runs on; it has begun."""
        writer = self.begin("exec", self.sandbox, "--", PYTHON, "-c", "print('up', flush=True)\n" + script)
        self.assertEqual(writer.stdout.readline(), b"up\n")
        return writer

    def export(self, *arguments, **options):
        return self.json("export", "box", *arguments, **options)["exports"]

    def refuse(self, words, *arguments, **options):
        before = self.everything()
        result = self.atoll("export", "box", *arguments, **options)
        self.assert_refused(result, *words)
        self.assertEqual(self.everything(), before)
        return result.err.decode(errors="replace")

    def everything(self):
        """Paths and contents of the folder of this test."""
        return {str(p): p.read_bytes() if p.is_file() else None for p in self.out.rglob("*")}


class Good(Held):
    def test_bytes_are_exact_whatever_the_size(self):
        for size in SIZES:
            with self.subTest(size=size):
                self.inside(f"head -c {size} /dev/urandom > f")
                expected = self.inside("sha256sum f").decode().split()[0]
                [told] = self.export(self.to("f", f"to/{size}"))
                data = (self.out / f"to/{size}").read_bytes()
                self.assertEqual((len(data), digest(data)), (size, expected))
                self.assertEqual((told["bytes"], told["files"], told["sha256"]), (size, 1, expected))

    def test_hostile_names_inside_and_here(self):
        for number, name in enumerate(NAMES):
            with self.subTest(name=name):
                self.good("write", "--", "box", os.fsdecode(name), stdin=name)
                place = os.fsencode(self.out) + b"/" + name
                self.export("--", f"{os.fsdecode(name)}={url_of(place)}")
                self.assertEqual(Path(os.fsdecode(place)).read_bytes(), name)
                self.export(f"/workspace/{os.fsdecode(name)}={url_of(self.out / f'n{number}')}")
                self.assertEqual((self.out / f"n{number}").read_bytes(), name)

    def test_what_it_says(self):
        self.inside("printf 12345 > f; mkdir d; printf 1 > d/1; printf 2 > d/2")
        text = self.good("export", "box", self.to("f", "f"), self.to("d", "d"), self.to("d/*", "p")).decode()
        self.assertEqual(text.splitlines(), [
            f"Exported f from sandbox {self.sandbox} (5 B)",
            f"Exported d from sandbox {self.sandbox} (2 B in 2 files)",
            f"Exported 'd/*' from sandbox {self.sandbox} (2 B in 2 files)",
            *(f"Published file://{self.out}/{name}" for name in "fdp"),
        ])

    def test_an_existing_destination_is_replaced_and_modes_are_those_inside_less_set_id(self):
        (self.out / "f").write_text("old")
        self.inside("printf new > f; chmod 6755 f; printf x > g; chmod 640 g")
        self.export(self.to("f", "f"), self.to("g", "g"))
        self.assertEqual((self.out / "f").read_text(), "new")
        self.assertEqual((self.out / "f").stat().st_mode & 0o7777, 0o755)
        self.assertEqual((self.out / "g").stat().st_mode & 0o7777, 0o640)
        self.assertEqual((self.out / "f").stat().st_uid, os.geteuid())

    def test_a_link_to_a_file_is_followed_inside(self):
        self.inside("printf data > f; ln -s f l; ln -s /workspace m")
        self.export(self.to("l", "l"), self.to("m/l", "m"))
        for name in ("l", "m"):
            self.assertFalse((self.out / name).is_symlink())
            self.assertEqual((self.out / name).read_text(), "data")

    def test_a_folder_gets_a_manifest(self):
        self.inside("mkdir -p d/sub/deep d/empty; printf one > d/1; head -c 9000000 /dev/urandom > d/sub/big; : > d/nothing;"
                    "ln -s 1 d/l; ln -s ../1 d/sub/up; ln d/1 d/hard; chmod 4755 d/1; mkfifo elsewhere")
        for name in NAMES:
            self.good("write", "--", "box", os.fsdecode(b"d/sub/deep/" + name), stdin=name)
        [told] = self.export(self.to("d", "made/d"))
        items = self.judged(self.out / "made/d")
        self.assertEqual(told["files"], 5 + len(NAMES) - 1)
        self.assertIsNone(told["sha256"])
        self.assertEqual(items[b"l"]["target"], "1")
        self.assertEqual(items[b"hard"]["sha256"], digest(b"one"))
        self.assertEqual(items[b"1"]["mode"], "0755")
        self.assertEqual((self.out / "made/d/hard").stat().st_nlink, 1)
        self.assertTrue((self.out / "made/d/empty").is_dir())
        for name in NAMES:
            self.assertIn(b"sub/deep/" + name, items)

    def test_a_folder_is_replaced_whole(self):
        self.inside("mkdir d; printf 1 > d/1; printf 2 > d/2")
        self.export(self.to("d", "d"))
        self.inside("rm d/1; printf 3 > d/3")
        self.export(self.to("d/", "d"))
        self.assertEqual(set(self.judged(self.out / "d")), {b"2", b"3"})

    def test_the_working_directory_itself(self):
        self.inside("printf 1 > 1")
        self.export(self.to(".", "all"), self.to("/workspace", "too"))
        self.assertEqual(set(self.judged(self.out / "all")), {b"1"})
        self.assertEqual(set(self.judged(self.out / "too")), {b"1"})

    def test_a_pattern_is_published_as_a_folder(self):
        self.inside("mkdir -p o/x o/y; for f in o/b.csv o/a.csv o/x/r.txt o/y/r.txt; do echo $f > $f; done; chmod 755 o/a.csv;"
                    "ln -s a.csv o/l.csv; touch o/.h.csv")
        self.export(self.to("o/*.csv", "csv"), self.to("o/*/r.txt", "txt"), self.to("o/?", "folders"))
        self.assertEqual(set(self.judged(self.out / "csv")), {b"a.csv", b"b.csv"})
        self.assertEqual((self.out / "csv/a.csv").stat().st_mode & 0o777, 0o755)
        self.assertEqual(set(self.judged(self.out / "txt")), {b"x/r.txt", b"y/r.txt"})
        self.assertEqual(set(self.judged(self.out / "folders")), {b"x/r.txt", b"y/r.txt"})

    def test_many_small_files(self):
        self.inside("mkdir m; cd m; seq 3000 | split -l 1 -a 4")
        self.export(self.to("m", "m"))
        self.assertEqual(len(self.judged(self.out / "m")), 3000)

    def test_files_of_proc_are_exported_as_they_are_inside(self):
        self.export(self.to("/proc/sys/kernel/ostype", "ostype"))
        self.assertEqual((self.out / "ostype").read_text(), "Linux\n")


class Refused(Held):
    def setUp(self):
        super().setUp()
        self.inside("printf data > f; mkdir d; printf 1 > d/1")
        (self.out / "old").write_text("old")

    def test_what_is_no_file_or_folder(self):
        self.inside("mkfifo p; ln -s nowhere dangling; touch secret; chmod 0 secret; ln -s loop loop")
        for path, words in (("gone", "does not exist"), ("gone/x", "does not exist"), ("f/x", "not a folder"), ("p", "FIFO"),
                            ("/dev/zero", "device"), ("dangling", "does not exist"), ("loop", "links"), ("g*", "matches")):
            with self.subTest(path=path):
                text = self.refuse([words], self.to("f", "first"), self.to(path, "old"))
                self.assertIn(f"Could not export {path} from sandbox {self.sandbox} on backend local to "
                              f"file://{self.out}/old: ", text)

    def test_the_second_is_missing_and_the_first_is_as_it_was(self):
        self.refuse(["does not exist"], self.to("f", "old"), self.to("gone", "new"))
        self.refuse(["does not exist"], self.to("f", "deep/er/new"), self.to("gone", "deep/x/new"))
        self.assertFalse((self.out / "deep").exists())

    def test_what_is_too_large(self):
        self.inside("head -c 5000 /dev/urandom > large; cp large d/large")
        for entry in (self.to("large", "old"), self.to("d", "new"), self.to("l*", "new")):
            text = self.refuse(["5000", "4999"], entry, "--max-bytes", "4999B")
            self.assertIn("at most", text)
        self.export(self.to("large", "exact"), "--max-bytes", "5000B")

    def test_destinations_that_will_not_do(self):
        (self.out / "dir").mkdir()
        (self.out / "dir/mine").write_text("mine")
        (self.out / "link").symlink_to(self.out / "old")
        (self.out / "lost").symlink_to("nowhere")
        os.mkfifo(self.out / "fifo")
        for entry, words in (
            (self.to("f", "dir"), "folder"), (self.to("d", "old"), "file"), (self.to("f", "link"), "link"),
            (self.to("f", "lost"), "link"), (self.to("d", "link"), "link"), (self.to("f", "fifo"), "FIFO"),
            (self.to("f", "old/x"), "file"), (self.to("d", "dir"), "no export has made"),
            (self.to("f", "x" * 250), "name"), ("f=file:///proc/nowhere/x", "cannot be written"),
        ):
            with self.subTest(entry=entry):
                before = (self.out / "old").read_text()
                self.assert_refused(self.atoll("export", "box", entry), words)
                self.assertEqual((self.out / "old").read_text(), before)
        self.assertEqual((self.out / "dir/mine").read_text(), "mine")
        (self.out / "fifo").unlink()

    def test_what_is_no_destination(self):
        for entry, words in (
            ("f", "'='"), ("=file:///x", "path"), ("f=", "URL"), ("f=None", "URL"), ("f=out/x", "URL"), ("f=/x", "URL"),
            ("f=file:///", ""), ("f=file:///x/", ""), ("f=file://host/x", ""), ("f=file:///a/../b", ""),
            ("f=file:///x.partial", "partial"), ("f=s3://bucket/key", "file://"), ("a/**/b=file:///x", "**"),
        ):
            with self.subTest(entry=entry):
                self.assert_refused(self.atoll("export", "box", entry), words)
        text = self.atoll("export", "box", "f=https://user:hunter2@example.com/x").err
        self.assertNotIn(b"hunter2", text)

    def test_destinations_that_clash(self):
        (self.out / "a").mkdir()
        (self.out / "b").symlink_to("a")
        for first, second in (("x", "x"), ("x", "x/y"), ("x/y", "x"), ("a/x", "b/x")):
            with self.subTest(first=first, second=second):
                self.refuse(["place"], self.to("f", first), self.to("d", second))

    def test_a_folder_with_something_that_cannot_be_exported(self):
        for script, words in (
            ("mkfifo d/p", "'d/p' is a FIFO"), ("ln -s /etc/passwd d/p", "'d/p' is a link that leads out"),
            ("ln -s ../f d/p", "'d/p' is a link that leads out"), ("mkdir d/s; ln -s ../../f d/s/p", "leads out"),
            ("printf x > d/atoll-manifest.json", "manifest"),
            (f"{PYTHON} -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"d/p\")'", "'d/p' is a"),
        ):
            with self.subTest(script=script):
                self.inside(script)
                self.refuse([words], self.to("d", "new"))
                self.inside("rm -rf d/p d/s d/atoll-manifest.json")
        self.inside("printf x > atoll-manifest.json")
        self.refuse(["manifest"], self.to("atoll*", "new"))

    def test_files_that_tools_of_the_host_would_use(self):
        for name in (".git/hooks/post-checkout", ".envrc", "sub/.vscode/tasks.json", "CLAUDE.md", ".GIT/config"):
            with self.subTest(name=name):
                self.inside(f"mkdir -p d/{os.path.dirname(name) or '.'}; echo bad > d/{name}")
                self.refuse([f"'d/{name}' would be used by tools of this host"], self.to("d", "new"))
                self.export(self.to("d", "all"), self.to(f"d/{name}", f"by/{name.replace('/', '-')}"))
                self.assertEqual((self.out / "all" / name).read_text(), "bad\n")
                self.inside(f"rm -rf d/{name.partition('/')[0]}")
        self.inside("mkdir -p .git/hooks; echo bad > .git/hooks/pre-push; ln -s .git d/.git; mkdir d/g; mv d/.git d/g/.git")
        self.refuse(["tools of this host"], self.to(".git", "new"))
        self.refuse(["tools of this host"], self.to(".git/hooks/*", "new"))
        self.refuse(["tools of this host"], self.to(".git/hooks", ".git/hooks"), self.to("f", "x"))
        self.inside("rm -r d/g; mkdir -p h/hooks; echo bad > h/hooks/x")
        self.refuse(["tools of this host"], self.to("h", "new/.git"))  # what it would be called here counts
        self.export(self.to(".git/hooks/pre-push", "named"))

    def test_a_sandbox_that_is_not_there(self):
        result = self.atoll("export", "nobody", self.to("f", "new"))
        self.assertEqual(result.status, 125)


class Changing(Held):
    """Files that do not stay as they are while they are copied."""

    def refuse_changing(self, script, words, entry, *options):
        self.start_inside("import os, time\n" + script)
        return self.refuse([words], entry, *options)

    def test_one_that_grows(self):
        self.inside("head -c 20M /dev/zero > f")
        self.refuse_changing("f = open('f', 'ab', 0)\nwhile 1: f.write(b'x'); time.sleep(0.0002)", "changed while it was exported",
                             self.to("f", "new"))

    def test_one_that_grows_past_the_limit(self):
        self.inside("head -c 40M /dev/zero > f")  # so that copying lasts until it is written to
        self.start_inside("import time\nf = open('f', 'ab', 0)\nfor i in range(500): f.write(bytes(1 << 20)); time.sleep(0.001)")
        result = self.atoll("export", "box", self.to("f", "new"), "--max-bytes", "64M")
        self.assertEqual(result.status, 125)
        self.assertRegex(result.err, rb"at most 67108864 may be exported|changed while it was exported")
        self.assertFalse((self.out / "new").exists())

    def test_one_that_shrinks(self):
        self.inside("head -c 60M /dev/zero > f")
        self.refuse_changing("n = 60 << 20\nwhile n > 0: n -= 1; os.truncate('f', n); time.sleep(0.0002)",
                             "changed while it was exported", self.to("f", "new"))

    def test_one_that_keeps_its_size(self):
        self.inside("head -c 60M /dev/zero > f")
        self.refuse_changing("f = os.open('f', os.O_WRONLY)\nwhile 1: os.pwrite(f, b'x', 5); time.sleep(0.0002)",
                             "changed while it was exported", self.to("f", "new"))

    def test_one_in_a_folder(self):
        self.inside("mkdir d; head -c 60M /dev/zero > d/f; head -c 1000 /dev/zero > d/a")
        self.refuse_changing("f = os.open('d/f', os.O_WRONLY)\nwhile 1: os.pwrite(f, b'x', 5); time.sleep(0.0002)",
                             "'d/f' changed", self.to("d", "new"))

    def test_one_that_matches_a_pattern(self):
        self.inside("mkdir d; head -c 60M /dev/zero > d/f; head -c 1000 /dev/zero > d/a")
        self.refuse_changing("f = os.open('d/f', os.O_WRONLY)\nwhile 1: os.pwrite(f, b'x', 5); time.sleep(0.0002)",
                             "'d/f' changed", self.to("d/*", "new"))

    def test_a_path_that_is_swapped_for_a_link_changes_nothing(self):
        self.inside("head -c 30M /dev/urandom > a; cp a b; mkdir s; ln -s /etc/passwd s/l; ln -s /usr/bin/env s/m")
        expected = {self.inside(f"sha256sum {f}").decode().split()[0] for f in ("a", "/etc/passwd", "/usr/bin/env")}
        self.start_inside("import os\nos.link('a', 'x')\nwhile 1:\n for p in ('s/l', 'a', 's/m', 'b'):\n"
                          "  os.link(p, 't', follow_symlinks=False); os.rename('t', 'x')\n  if os.path.lexists('t'): os.unlink('t')")
        for number in range(40):
            # The link count of what is swapped is a change of the inode, which may be told.
            result = self.atoll("export", "box", self.to("x", f"x{number}"))
            if result.status != 0:
                self.assertIn(b"changed while it was exported", result.err)
                continue
            self.assertIn(digest((self.out / f"x{number}").read_bytes()), expected)
            (self.out / f"x{number}").unlink()

    def test_a_sandbox_that_ends_meanwhile(self):
        self.inside("mkdir d; for i in 1 2 3 4 5 6 7 8; do truncate -s 100M d/$i; done")
        client = self.begin("export", "box", self.to("d", "new"))
        wait_for(lambda: list(self.out.glob("new.*.partial/*")), "a staged file")
        self.good("rm", "--force", "box")
        result = client.result()
        self.assert_refused(result, "Could not export d")
        self.assertFalse((self.out / "new").exists())

    def test_a_signal_gives_it_up(self):
        self.inside(LARGE)
        for number in (signal.SIGINT, signal.SIGTERM):
            client = self.begin("export", "box", self.to("large", "deep/new"))
            wait_for(lambda: list(self.out.rglob("*.partial")), "a staged file")
            client.send_signal(number)
            result = client.result()
            self.assertEqual((result.status, result.err), (128 + number, b""))
            self.assertEqual(list(self.out.iterdir()), [])
            self.check_nothing_is_staged()


class Publishing(Held):
    """A rename that fails, when all is copied."""

    def fail_second(self, first):
        self.inside(f"printf new > f; {LARGE}")
        client = self.begin("export", "box", first, self.to("large", "b"), self.to("f", "c"))
        wait_for(lambda: list(self.out.glob("b.*.partial")), "a staged file")
        (self.out / "b").mkdir()
        result = client.result()
        self.assert_refused(result, f"Could not export large from sandbox {self.sandbox}", "folder stands in its place",
                            "what was published before was taken back")
        self.assertFalse((self.out / "c").exists())
        (self.out / "b").rmdir()

    def test_the_first_is_taken_back(self):
        (self.out / "a").write_text("old")
        self.fail_second(self.to("f", "a"))
        self.assertEqual((self.out / "a").read_text(), "old")

    def test_the_first_is_removed_again(self):
        self.fail_second(self.to("f", "deep/a"))
        self.assertEqual(list(self.out.iterdir()), [])

    def test_a_folder_is_taken_back(self):
        self.inside("mkdir d; printf old > d/1")
        self.export(self.to("d", "a"))
        self.inside("printf new > d/1")
        self.fail_second(self.to("d", "a"))
        self.assertEqual((self.out / "a/1").read_text(), "old")
        self.judged(self.out / "a")

    def test_readers_see_the_old_or_the_new_one(self):
        self.inside("head -c 3M /dev/zero | tr '\\0' a > a; tr a b < a > b")
        a, b = (letter * (3 * MIB) for letter in (b"a", b"b"))
        self.export(self.to("a", "f"))
        for number in range(10):
            client = self.begin("export", "box", self.to("ab"[number % 2], "f"))
            while client.poll() is None:
                self.assertIn((self.out / "f").read_bytes(), (a, b))
            self.assertEqual(client.result().status, 0)

    def test_a_full_disk(self):
        unshare = ["unshare", "--mount"] + ([] if is_root() else ["--map-root-user"])
        make = "printf data >f; head -c 3M /dev/urandom >large; mkdir d; cp large d; printf x >d/0"
        for entry in ("large", "d", "l*"):
            with self.subTest(entry=entry):
                script = (f"mount -t tmpfs -o size=1M none {self.out} && {ATOLL} run --export f=file://{self.out}/f "
                          f"--export '{entry}=file://{self.out}/e' -- sh -c '{make}'; echo $?; ls -A {self.out}")
                done = subprocess.run([*unshare, "sh", "-c", script], env=self.env, capture_output=True, timeout=LIMIT_S,
                                      check=False)
                self.assertIn(b"the disk is full", done.stderr)
                self.assertEqual(done.stdout, b"125\n")


class Run(ExportTest):
    """atoll run --export."""

    def run_with(self, script, *options, **how):
        return self.atoll("run", *options, "--", "sh", "-c", script, **how)

    def result_of(self, script, *options):
        """How a run ended, by its status and its result form."""
        path = self.folder() / "result"
        done = self.run_with(script, "--result", str(path), *options)
        value = json.loads(path.read_text())
        json_schema.validate(value, json_schema.load("result"))
        return done, value

    def test_a_good_end(self):
        done, value = self.result_of("echo out; printf data > r; mkdir d; printf 1 > d/1", "--export", self.to("r", "r"), "--export",
                                     self.to("d", "d"))
        self.assertEqual((done.status, done.out, done.err), (0, b"out\n", b""))
        self.assertEqual((self.out / "r").read_text(), "data")
        self.judged(self.out / "d")
        self.assertEqual([(e["path"], e["bytes"], e["sha256"]) for e in value["exports"]],
                         [("r", 4, digest(b"data")), ("d", 1, None)])

    def test_nothing_comes_out_of_a_run_that_fails(self):
        (self.out / "r").write_text("old")
        for script, options, status in (("printf new > r; exit 3", [], 3), ("printf new > r; sleep 60", ["--timeout", "0.3s"], 124),
                                        ("printf new > r; kill -9 $$", [], 137)):
            with self.subTest(script=script):
                done, value = self.result_of(script, "--export", self.to("r", "r"), *options)
                self.assertEqual((done.status, value["exports"]), (status, []))
                self.assertEqual((self.out / "r").read_text(), "old")

    def test_a_promised_file_that_is_missing(self):
        done, value = self.result_of("echo out; printf new > r", "--export", self.to("r", "r"), "--export", self.to("gone", "g"))
        self.assertEqual((done.status, done.out), (125, b"out\n"))
        self.assertRegex(done.err.decode(), r"atoll: Could not export gone from sandbox sb-\w{26} on backend local to "
                                            rf"file://{self.out}/g: 'gone' does not exist")
        self.assertEqual(value["error"]["class"], "terminal")
        self.assertEqual(list(self.out.iterdir()), [])

    def test_destinations_are_judged_before_anything_runs(self):
        for entries, words in ((["r=None"], "URL"), (["r=s3://b/k"], "file://"), ([self.to("r", "x"), self.to("q", "x")], "place"),
                               (["a/**=file:///x"], "**")):
            with self.subTest(entries=entries):
                marker = self.folder() / "ran"
                done = self.run_with("echo ran", *(f"--export={e}" for e in entries), "--volume", f"{marker.parent}:/m")
                self.assert_refused(done, words)

    def test_entries_of_a_spec_file_and_the_limit(self):
        spec = self.folder() / "spec.json"
        spec.write_text(json.dumps({"version": 1, "toolset": {"exports": {"r": url_of(self.out / "r")}, "max_export_bytes": 10}}))
        self.assertEqual(self.run_with("printf 0123456789 > r", "--spec", str(spec)).status, 0)
        self.assertEqual((self.out / "r").read_text(), "0123456789")
        self.assertIn(b"at most 10", self.run_with("printf 0123456789a > r", "--spec", str(spec)).err)
        done = self.run_with("printf 0123456789a > r; printf 2 > q", "--spec", str(spec), "--max-export-bytes", "1M", "--export",
                             self.to("q", "q"))
        self.assertEqual((done.status, (self.out / "q").read_text()), (0, "2"), done)

    def test_the_two_lines_of_the_log(self):
        for options, env in ((["-v"], {}), ([], {"ATOLL_LOG": "info"})):
            done = self.run_with("printf data > r; echo out", *options, "--export", self.to("r", "r"), env=env)
            self.assertEqual((done.status, done.out), (0, b"out\n"))
            self.assertRegex(done.err.decode(), r"atoll: export: Exported r from sandbox sb-\w{26} \(4 B\)\n"
                                                rf"atoll: export: Published file://{self.out}/r\n")

    def test_what_a_command_leaves_running_is_no_obstacle(self):
        done = self.run_with("printf data > r; sleep 1000 & exit 0", "--export", self.to("r", "r"))
        self.assertEqual((done.status, (self.out / "r").read_text()), (0, "data"), done)

    def test_a_signal_while_it_is_exported(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            client = self.begin("run", "--export", self.to("large", "deep/r"), "--", "sh", "-c", LARGE)
            wait_for(lambda: list(self.out.rglob("*.partial")), "a staged file")
            client.send_signal(number)
            self.assertEqual(client.result().status, 128 + number)
            self.assertEqual(list(self.out.iterdir()), [])
            self.check_nothing_is_staged()

    def test_a_sandbox_that_ends_while_it_is_exported(self):
        client = self.begin("run", "--lifetime", "0.8s", "--export", self.to("d", "r"), "--", "sh", "-c",
                            "mkdir d; for i in $(seq 200); do truncate -s 30M d/$i; done")
        result = client.result()
        self.assertIn(result.status, (0, 124, 125))  # it may have been quick, or not have come to that
        self.assertEqual((self.out / "r").exists(), result.status == 0)


class InBand(SandboxTest):
    """A backend program, whose files come as messages."""

    def setUp(self):
        super().setUp()
        self.bin, self.out = self.folder(), self.folder()
        self.env = {"PATH": f"{self.bin}:/usr/bin:/bin", "ATOLL_STATE_DIR": str(self.folder() / "state"),
                    "ATOLL_FOLDER_DIR": str(self.folder() / "sandboxes")}
        words = " ".join(f"'{w}'" for w in driver.Folder(self.folder()).arguments)
        program = self.bin / "atoll-backend-folder"
        program.write_text(f"#!/bin/sh\nexec {words}\n")
        program.chmod(0o755)
        self.sandbox = self.atoll("create", "--backend", "folder", "--open-network").stdout.decode().strip()
        self.addCleanup(self.atoll, "rm", self.sandbox)

    def atoll(self, *arguments, stdin=b""):
        return subprocess.run([ATOLL, *arguments], input=stdin, capture_output=True, env=self.env, timeout=LIMIT_S, cwd="/",
                              check=False)

    def inside(self, script):
        done = self.atoll("exec", self.sandbox, "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return done.stdout

    def test_files_of_all_sizes(self):
        for size in (*SIZES, 70 * MIB):
            with self.subTest(size=size):
                self.inside(f"head -c {size} /dev/urandom > f")
                done = self.atoll("export", self.sandbox, f"f=file://{self.out}/{size}")
                self.assertEqual(done.returncode, 0, done)
                self.assertEqual(digest((self.out / str(size)).read_bytes()), self.inside("sha256sum f").decode().split()[0])

    def test_folders_and_patterns(self):
        self.inside("mkdir -p d/x/empty; printf 1 > d/1; printf 2 > d/2; printf 3 > d/x/3; ln -s ../1 d/x/l; chmod 700 d/2")
        done = self.atoll("export", self.sandbox, f"d=file://{self.out}/d", f"d/?=file://{self.out}/p", f"d/*/3=file://{self.out}/q")
        self.assertEqual(done.returncode, 0, done)
        for place, names in (("d", ["1", "2", "x/3", "x/l"]), ("q", ["x/3"])):
            manifest = json.loads((self.out / place / MANIFEST).read_text())
            json_schema.validate(manifest, json_schema.load("manifest"))
            self.assertEqual(sorted(i["path"] for i in manifest["files"] + manifest["links"]), names)
        self.assertEqual(((self.out / "d/x/3").read_text(), os.readlink(self.out / "d/x/l")), ("3", "../1"))
        self.assertEqual((self.out / "d/2").stat().st_mode & 0o777, 0o700)
        self.assertTrue((self.out / "d/x/empty").is_dir())
        self.assertEqual((self.out / "p/x/3").read_text(), "3")

    def test_folders_that_are_refused(self):
        for script, words in (("mkfifo d/x/p", b"'d/x/p' is a FIFO"), ("ln -s /etc d/x/p", b"'d/x/p' is a link that leads out"),
                              ("mkdir d/x/p; printf x > d/x/p/.envrc", b"tools of this host")):
            self.inside(f"mkdir -p d/x; {script}")
            done = self.atoll("export", self.sandbox, f"d=file://{self.out}/d")
            self.assertEqual(done.returncode, 125, done)
            self.assertIn(words, done.stderr)
            self.inside("rm -rf d")
        self.assertEqual(list(self.out.iterdir()), [])

    def test_refusals(self):
        self.inside("printf 1 > f; mkfifo p; head -c 5000 /dev/zero > large")
        for path, words in (("gone", b"does not exist"), ("p", b"FIFO"), ("large", b"at most 4096")):
            done = self.atoll("export", "--max-bytes", "4K", self.sandbox, f"f=file://{self.out}/f", f"{path}=file://{self.out}/x")
            self.assertEqual(done.returncode, 125, done)
            self.assertIn(words, done.stderr)
            self.assertIn(b"on backend folder to", done.stderr)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_one_that_changes(self):
        self.inside("head -c 60M /dev/zero > f")
        writer = subprocess.Popen([ATOLL, "exec", self.sandbox, "--", "sh", "-c", "while :; do printf x >> f; done"], env=self.env)
        try:
            wait_for(lambda: int(self.inside("stat -c %s f")) > 60 * MIB, "a writer", GONE_S)
            done = self.atoll("export", self.sandbox, f"f=file://{self.out}/f")
        finally:
            writer.kill()
            writer.wait()
        self.assertEqual(done.returncode, 125, done)
        self.assertIn(b"changed while it was exported", done.stderr)
        self.assertEqual(list(self.out.iterdir()), [])

    def test_a_run(self):
        done = self.atoll("run", "--backend", "folder", "--open-network", "--export", f"r=file://{self.out}/r", "--", "sh", "-c",
                          "printf data > r; echo out")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"out\n", b""))
        self.assertEqual((self.out / "r").read_text(), "data")


SWAP = """
import os
os.mkdir("p"); os.mkdir("p/dir"); open("p/dir/passwd", "w").write("inside")
os.symlink("/etc", "p/link")
print("up", flush=True)
for i in range(10000):
    os.rename("p/dir", "p/t"); os.rename("p/link", "p/dir"); os.rename("p/t", "p/link")
print("over", flush=True)
"""


class Race(Held):
    """Inside, a folder and a link to /etc take each other's place, 10,000 times."""

    def test_no_byte_of_the_hosts_comes_out(self):
        allowed = {b"inside", self.inside("cat /etc/passwd")}
        self.assertNotIn(Path("/etc/passwd").read_bytes(), allowed)
        swapper = self.begin("exec", self.sandbox, "--", PYTHON, "-c", SWAP)
        self.assertEqual(swapper.stdout.readline(), b"up\n")
        rounds, seen = 0, set()
        while swapper.poll() is None or rounds == 0:
            entries = [self.to("p/dir/passwd", f"{rounds % 2}/{n}") for n in range(20)]
            result = self.atoll("export", "box", *entries)
            self.assertIn(result.status, (0, 125), result)
            seen |= {p.read_bytes() for p in self.out.rglob("*") if p.is_file()}
            rounds += 1
        self.assertEqual(swapper.stdout.read(), b"over\n")
        self.assertLessEqual(seen, allowed)
        shutil.rmtree(self.out)
        self.out.mkdir()


if __name__ == "__main__":
    unittest.main()
