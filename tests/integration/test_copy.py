# SPDX-License-Identifier: Apache-2.0
"""Copying files and folders in and out, also from a sandbox that does all it can to reach the host."""
import io
import json
import os
import signal
import socket
import stat
import subprocess
import tarfile
import time
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, PYTHON, HeldTest, descendants, json_schema, listing, wait_for

NAMES = [
    b"with space", b"quo'te", b'dou"ble', b"dol$lar", b"-rf", b"new\nline", "报告 final.txt".encode(), b"e\xcc\x81",
    b"\xff.bin", b"...", b".hidden", b"a:b", b"x" * 255,
]


class CopyTest(HeldTest):
    def setUp(self):
        super().setUp()
        self.sandbox = self.create("--name", "box")
        self.host = self.folder()

    def inside(self, script):
        return self.exec(self.sandbox, script)

    def python_inside(self, script):
        return self.good("exec", self.sandbox, "--", PYTHON, "-c", script)

    def cp(self, *arguments, **options):
        """A copy that leaves nothing out; its summary."""
        value = self.json("cp", *arguments, **options)
        self.assertEqual(value["skipped"], [])
        return value

    def cp_skipping(self, *arguments):
        """A copy that leaves something out; its summary, and what it said."""
        result = self.atoll("cp", "--json", *arguments)
        self.assertEqual(result.status, 0, result.err)
        return self.judged(result.out), result.err.decode()

    def judged(self, text):
        value = json.loads(text)
        json_schema.validate(value, json_schema.load("cp"))
        return value

    def refuse(self, words, *arguments, **options):
        self.assert_refused(self.atoll("cp", *arguments, **options), *words)

    def tree(self, folder):
        """A folder with something of every kind that is copied."""
        (folder / "deep/er").mkdir(parents=True)
        (folder / "empty").mkdir(mode=0o700)
        (folder / "deep/er/bytes").write_bytes(os.urandom(300000))
        (folder / "script").write_text("#!/bin/sh\n")
        (folder / "script").chmod(0o755)
        (folder / "private").write_text("x")
        (folder / "private").chmod(0o600)
        (folder / "nothing").touch()
        (folder / "link").symlink_to("deep/er")
        (folder / "deep/up").symlink_to("../script")
        (folder / "dangling").symlink_to("nowhere")
        for name in NAMES:
            Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(name)
        os.utime(folder / "script", (1, 1600000000))


class Places(CopyTest):
    """Where a copy goes: as cp -r has it."""

    def setUp(self):
        super().setUp()
        (self.host / "file").write_text("file")
        (self.host / "other").write_text("other")
        (self.host / "dir").mkdir()
        (self.host / "dir/inner").write_text("inner")

    def test_in(self):
        for arguments, expected in (
            ((f"{self.host}/file", "box:"), "file"),
            ((f"{self.host}/file", "box:new"), "new"),
            ((f"{self.host}/other", "box:new"), "new"),  # replaced
            ((f"{self.host}/file", "box:/tmp"), "/tmp/file"),
            ((f"{self.host}/file", "box:/tmp/"), "/tmp/file"),
            ((f"{self.host}/file", "box:made/here/as"), "made/here/as"),
            ((f"{self.host}/dir", "box:"), "dir/inner"),
            ((f"{self.host}/dir", "box:copy"), "copy/inner"),
            ((f"{self.host}/dir", "box:copy"), "copy/dir/inner"),  # it is there now
            ((f"{self.host}/dir/", "box:slash/"), "slash/inner"),
            ((f"{self.host}/dir/.", "box:"), "inner"),
            ((f"{self.host}/dir/.", "box:fresh"), "fresh/inner"),
            ((f"{self.host}/file", f"{self.host}/dir", "box:/var/tmp"), "/var/tmp/dir/inner"),
            ((f"{self.host}/file", f"local:{self.sandbox}:byid"), "byid"),
        ):
            with self.subTest(arguments=arguments):
                self.cp(*arguments)
                text = self.inside(f"cat {expected}").decode()
                self.assertEqual(text, Path(arguments[0].rstrip("/.")).name if "inner" not in expected else "inner")
        self.cp(".", "box:/tmp/dot", cwd=self.host / "dir")
        self.assertEqual(self.inside("ls /tmp/dot"), b"inner\n")

    def test_in_refused(self):
        self.inside("mkdir d; touch f")
        for arguments, words in (
            ((f"{self.host}/dir", "box:f"), "'f' is not a folder"),
            ((f"{self.host}/file", "box:nowhere/"), "is not a folder"),
            ((f"{self.host}/file", f"{self.host}/dir", "box:new"), "is not a folder"),
            ((f"{self.host}/gone", "box:"), "No such file"),
            ((f"{self.host}/file", "box:/usr/x"), "read-only"),
            ((f"{self.host}/file", "box:f/x"), "is not a folder"),
        ):
            with self.subTest(arguments=arguments):
                self.refuse([words, "was not copied to"], *arguments)
        self.assertEqual(self.inside("ls -A . d"), b".:\nd\nf\n\nd:\n")

    def test_out(self):
        self.inside("mkdir -p dir/sub; echo file > file; echo inner > dir/inner; echo other > other")
        out = self.host / "out"
        out.mkdir()
        for arguments, expected in (
            (("box:file", f"{out}"), "file"),
            (("box:file", f"{out}/new"), "new"),
            (("box:other", f"{out}/new"), "new"),
            (("box:/workspace/file", f"{out}/a/"), None),
            (("box:dir", f"{out}"), "dir/inner"),
            (("box:dir/.", f"{out}/dir"), "dir/dir/inner"),
            (("box:dir", f"{out}/copy/"), "copy/inner"),
            (("box:dir", f"{out}/copy"), "copy/dir/inner"),
            (("box:", f"{out}/all"), "all/dir/inner"),
            (("box:", f"{out}"), "workspace/dir/inner"),
            (("box:file", "box:dir", f"{out}/all"), "all/file"),
        ):
            with self.subTest(arguments=arguments):
                if expected is None:
                    self.refuse(["does not exist"], *arguments)
                    continue
                self.cp(*arguments)
                name = arguments[0].partition(":")[2]
                self.assertEqual((out / expected).read_text(), ("inner" if "inner" in expected else name) + "\n")

    def test_out_refused(self):
        self.inside("mkdir d; touch f")
        (self.host / "d").write_text("a file")
        (self.host / "f").mkdir()
        for arguments, words in (
            (("box:d", f"{self.host}/d"), "a file stands in the place of a folder"),
            (("box:f", f"{self.host}"), "a folder stands in its place"),
            (("box:f", "box:d", f"{self.host}/new"), "is not a folder"),
            (("box:nowhere", f"{self.host}"), "does not exist"),
            (("box:f", f"{self.host}/no/where"), "does not exist"),
            (("box:f", "/dev/null"), "neither a file nor a folder"),
            (("box:/", f"{self.host}"), "has no name"),
        ):
            with self.subTest(arguments=arguments):
                self.refuse([words, "was not copied to"], *arguments)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertEqual((self.host / "d").read_text(), "a file")
        self.assertEqual(sorted(os.listdir(self.host)), ["d", "dir", "f", "file", "other"])

    def test_what_operands_mean(self):
        (self.host / "C:foo").write_text("colon")
        self.cp("./C:foo", "box:", cwd=self.host)
        self.assertEqual(self.inside("cat C:foo"), b"colon")
        self.cp("box:C:foo", str(self.host / "dir"))
        self.assertEqual((self.host / "dir/C:foo").read_text(), "colon")
        self.refuse(["no sandbox is called 'C'", "./C:"], "C:foo", str(self.host), cwd=self.host)
        self.refuse(["both ends", "cp A:x - |".replace("x", "PATH")], "box:a", "box:b")
        self.refuse(["neither end"], "a", "b")
        self.refuse(["several sandboxes"], "box:a", f"{self.sandbox}:b", str(self.host))
        self.refuse(["together with other paths"], "-", "x", "box:")
        self.refuse(["needs more arguments"], "box:a")


class RoundTrips(CopyTest):
    def test_a_tree_comes_back_as_it_was(self):
        tree = self.host / "tree"
        tree.mkdir()
        self.tree(tree)
        summary = self.cp(str(tree), "box:")
        self.assertEqual(summary["files"], 4 + len(NAMES))
        self.assertEqual((summary["folders"], summary["links"]), (4, 3))
        self.assertEqual(self.cp("box:tree", str(self.host / "back")), summary)
        self.assertEqual(listing(tree), listing(self.host / "back"))
        self.assertEqual((self.host / "back/script").stat().st_mtime, 1600000000)
        # Once more through a second sandbox.
        other = self.create("--name", "other")
        packed = self.good("cp", "box:tree", "-")
        self.good("cp", "-", "other:/tmp/new", stdin=packed)
        self.cp("other:/tmp/new/tree", str(self.host / "third"))
        self.assertEqual(listing(tree), listing(self.host / "third"))
        self.good("rm", other)

    def test_names_alone(self):
        for name in NAMES:
            path = os.fsencode(self.host) + b"/" + name
            with open(path, "wb") as file:
                file.write(name)
            self.cp(path, "box:")
            os.unlink(path)
            self.cp(b"box:./" + name, str(self.host))
            with open(path, "rb") as file:
                self.assertEqual(file.read(), name)

    def test_streams_are_tar(self):
        self.inside("mkdir d; echo x > d/f; ln -s f d/l")
        with tarfile.open(fileobj=io.BytesIO(self.good("cp", "box:d", "-"))) as archive:
            self.assertEqual({m.name: m.type for m in archive}, {"d": tarfile.DIRTYPE, "d/f": tarfile.REGTYPE, "d/l": tarfile.SYMTYPE})
            self.assertEqual(archive.extractfile("d/f").read(), b"x\n")
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            info = tarfile.TarInfo("some/where")
            info.size = 4
            archive.addfile(info, io.BytesIO(b"here"))
        self.good("cp", "-", "box:into", stdin=made.getvalue())
        self.assertEqual(self.inside("cat into/some/where"), b"here")
        self.refuse(["standard output"], "--json", "box:d", "-")
        self.refuse([""], "-", "box:into", stdin=b"this is no archive" * 100)
        self.refuse(["does not exist"], "box:nowhere", "-")

    def test_a_large_file(self):
        large = self.host / "large"
        large.write_bytes(os.urandom(1 << 20) * 40)
        self.assertEqual(self.cp(str(large), "box:")["bytes"], 40 << 20)
        self.cp("box:large", str(self.host / "back"))
        self.assertEqual(large.read_bytes(), (self.host / "back").read_bytes())

    def test_a_full_disk_inside(self):
        small = self.create("--disk", "4M")
        large = self.host / "large"
        large.write_bytes(bytes(8 << 20))
        self.refuse(["disk is full", str(large)], str(large), f"{small}:")
        self.assertEqual(self.exec(small, "ls -A"), b"")


class Hostile(CopyTest):
    """Made inside, where everything is under the control of whoever means harm."""

    def setUp(self):
        super().setUp()
        self.canary = self.host / "canary"
        self.canary.write_text("host content")
        self.out = self.host / "out"
        self.out.mkdir()

    def copy_all(self, *sources):
        """Copies the sources out; what was left out, by its path below the destination."""
        value, said = self.cp_skipping(*(sources or ("box:",)), str(self.out))
        self.assertEqual(self.canary.read_text(), "host content")
        for item in value["skipped"]:
            self.assertIn("not copied: ", said)
        return {item["path"]: item["reason"] for item in value["skipped"]}

    def test_links_that_lead_out_are_left_out(self):
        self.inside(f"ln -s /etc/passwd abs; ln -s / root; ln -s ../../../../etc up; mkdir d; ln -s ../.. d/upup;"
                    f"ln -s {self.canary} canary; ln -s ../canary d/side; echo x > d/f; ln -s d/f good; ln -s .. dots; ln -s loop loop")
        left = self.copy_all()
        self.assertEqual(sorted(Path(p).name for p in left), ["abs", "canary", "dots", "root", "up", "upup"])
        self.assertEqual(os.readlink(self.out / "workspace/good"), "d/f")
        self.assertEqual(os.readlink(self.out / "workspace/d/side"), "../canary")  # stays in the tree
        self.assertEqual(sorted(os.listdir(self.out / "workspace")), ["d", "good", "loop"])

    def test_a_link_is_followed_inside_alone(self):
        self.inside("ln -s /etc/passwd out; ln -s / root; ln -s ../../../../etc d; ln -s loop loop")
        self.cp("box:out", str(self.out / "passwd"))
        self.assertEqual((self.out / "passwd").read_bytes(), self.inside("cat /etc/passwd"))
        self.cp("box:root/etc/hostname", str(self.out))
        self.assertEqual((self.out / "hostname").read_text(), "sandbox\n")
        self.cp("box:d/hostname", str(self.out / "again"))
        self.assertEqual((self.out / "again").read_text(), "sandbox\n")
        self.refuse(["circle"], "box:loop", str(self.out))

    def test_special_files_are_named_and_left_out(self):
        self.inside("mkdir t; mkfifo t/pipe; echo x > t/f")
        self.python_inside("import socket; socket.socket(socket.AF_UNIX).bind('t/socket')")
        self.assertEqual(sorted(Path(p).name for p in self.copy_all("box:t")), ["pipe", "socket"])
        self.assertEqual(os.listdir(self.out / "t"), ["f"])
        for path, word in (("t/pipe", "FIFO"), ("t/socket", "socket"), ("/dev/zero", "device")):
            self.refuse([word], f"box:{path}", str(self.out), limit=20)
        os.mkfifo(self.host / "pipe")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(self.host / "socket"))
            value, said = self.cp_skipping(str(self.host), "box:back")
        self.assertEqual(sorted(Path(i["path"]).name for i in value["skipped"]), ["pipe", "socket"])
        self.assertIn("it is a FIFO", said)
        self.refuse(["FIFO"], str(self.host / "pipe"), "box:", limit=20)

    def test_what_stands_in_the_destination_is_not_followed(self):
        self.inside("mkdir t; echo new > t/canary; mkdir t/folder; echo new > t/folder/f")
        (self.host / "victim").mkdir()
        (self.out / "t").mkdir()
        (self.out / "t/canary").symlink_to(self.canary)
        self.cp("box:t", str(self.out))
        self.assertEqual(self.canary.read_text(), "host content")
        self.assertFalse((self.out / "t/canary").is_symlink())
        (self.out / "t/folder/f").unlink()
        (self.out / "t/folder").rmdir()
        (self.out / "t/folder").symlink_to(self.host / "victim")
        self.refuse(["symbolic link stands in the place of a folder"], "box:t", str(self.out))
        self.assertEqual(os.listdir(self.host / "victim"), [])

    def test_hard_links_and_set_id(self):
        self.inside("mkdir t; echo x > t/a; ln t/a t/b; cp /bin/sh t/suid; chmod 6755 t/suid; mkdir t/sticky; chmod 1777 t/sticky")
        self.cp("box:t", str(self.out))
        self.assertEqual((self.out / "t/b").read_text(), "x\n")
        self.assertEqual((self.out / "t/suid").stat().st_mode & 0o7777, 0o755)
        self.assertEqual((self.out / "t/sticky").stat().st_mode & 0o7777, 0o777 & ~0)
        self.assertEqual({(p.stat().st_uid, p.stat().st_gid) for p in self.out.rglob("*")}, {(os.geteuid(), os.getegid())})

    def test_deep_trees(self):
        self.python_inside("import os\nfor i in range(200): os.mkdir('d'); os.chdir('d')\nopen('bottom', 'w').write('x')")
        self.cp("box:d", str(self.out))
        self.assertEqual((self.out / ("d/" * 200) / "bottom").read_text(), "x")
        # Deeper than a path can be.
        self.python_inside("import os\nos.mkdir('e'); os.chdir('e')\nfor i in range(100): os.mkdir('x' * 100); os.chdir('x' * 100)")
        self.refuse(["was not copied to"], "box:e", str(self.out))

    def test_modes_that_forbid(self):
        sandbox = self.create("--user", "1000")
        self.exec(sandbox, "mkdir -p t/ok; echo x > t/secret; chmod 000 t/secret; mkdir -m 000 t/shut")
        self.refuse(["may not be accessed"], f"{sandbox}:t", str(self.out))
        self.inside("mkdir -p t/d; echo x > t/f; chmod 400 t/f; echo y > t/d/g; chmod 555 t/d")
        self.cp("box:t", str(self.out))
        self.assertEqual({p.name: p.stat().st_mode & 0o777 for p in (self.out / "t").iterdir()}, {"d": 0o555, "f": 0o400})
        os.chmod(self.out / "t/d", 0o755)

    def test_a_file_that_changes_is_said_to(self):
        client = self.begin("exec", self.sandbox, "--", PYTHON, "-c",
            "import os\nf = os.open('f', os.O_RDWR | os.O_CREAT)\nprint('up', flush=True)\n"
            "while True:\n    os.ftruncate(f, 1 << 26)\n    os.ftruncate(f, 0)")
        self.assertEqual(client.stdout.readline(), b"up\n")
        for n in range(30):  # whole, or an error; never a hang
            result = self.atoll("cp", "box:f", str(self.out / "f"))
            self.assertIn(result.status, (0, 125), result.err)
            self.assertIn((self.out / "f").stat().st_size if (self.out / "f").exists() else 0, range(0, (1 << 26) + 1))
        self.assertEqual([p for p in os.listdir(self.out) if p != "f"], [])


class Interrupted(CopyTest):
    def test_nothing_half_made_stays_on_the_host(self):
        self.python_inside("f = open('big', 'wb')\nfor i in range(300): f.write(bytes(1 << 20))")
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            client = self.begin("cp", "box:big", str(self.host))
            wait_for(lambda: os.listdir(self.host) or client.poll() is not None, "a temporary file")
            client.send_signal(number)
            result = client.result()
            if result.status != 0:
                self.assertEqual((result.status, result.err), (status, b""))
                self.assertEqual(os.listdir(self.host), [])
            (self.host / "big").unlink(missing_ok=True)

    def test_nothing_half_made_stays_inside(self):
        large = self.host / "large"
        with open(large, "wb") as file:
            file.truncate(400 << 20)
        for number in (signal.SIGINT, signal.SIGKILL):
            client = self.begin("cp", str(large), "box:")
            wait_for(lambda: self.inside("ls -A") or client.poll() is not None, "a temporary file")
            client.send_signal(number)
            client.wait(LIMIT_S)
            wait_for(lambda: self.inside("ls -A") in (b"", b"large\n"), "the temporary file's end")
            self.inside("rm -f large")

    def test_the_sandboxs_end_is_an_error(self):
        self.python_inside("f = open('big', 'wb')\nfor i in range(300): f.write(bytes(1 << 20))")
        client = self.begin("cp", "box:big", "-")
        client.stdout.read(1 << 20)
        self.good("rm", "box")
        client.stdout.read()
        self.assertEqual(client.wait(LIMIT_S), 125)
        self.assertEqual(os.listdir(self.host), [])


class Progress(CopyTest):
    def shown(self, master):
        """All that was written to a terminal that is closed by now."""
        text = b""
        try:
            while data := os.read(master, 4096):
                text += data
        except OSError:
            pass  # the end of a terminal
        os.close(master)
        return text

    def test_a_short_copy_is_silent(self):
        (self.host / "f").write_text("x")
        master, slave = os.openpty()
        client = self.begin("cp", str(self.host / "f"), "box:", stderr=slave)
        os.close(slave)
        self.assertEqual(client.result().status, 0)
        self.assertEqual(self.shown(master), b"")

    def test_a_long_one_tells_a_terminal_how_far_it_is(self):
        self.inside("truncate -s 8G big")
        keeper = self.keeper_of(self.sandbox)
        known = {p.pid for p in descendants(keeper)}
        master, slave = os.openpty()
        client = self.begin("cp", "box:big", str(self.host), stderr=slave)
        os.close(slave)
        server = wait_for(lambda: [p for p in descendants(keeper) if p.pid not in known], "who serves the files")[0]
        os.kill(server.pid, signal.SIGSTOP)  # a slow one, that does not fill the disk
        text = b""
        while b"copied" not in text:
            text += os.read(master, 4096)
        self.assertRegex(text, rb"\r\x1b\[Katoll: [0-9.]+ [KMG]?i?B copied")
        client.send_signal(signal.SIGINT)
        self.assertEqual(client.result().status, 130)
        self.assertTrue(self.shown(master).endswith(b"\r\x1b[K"))
        self.assertEqual(os.listdir(self.host), [])


SWAP = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.mkdir('p')
os.chdir('p')
os.mkdir('dir')
for name in ('canary', 'passwd'):
    open('dir/' + name, 'w').write('inside\n')
os.symlink('HOST', 'host')
os.symlink('/etc', 'etc')
print('up', flush=True)
while True:
    for other in (b'host', b'etc'):
        for _ in range(2):
            libc.renameat2(-100, b'dir', -100, other, 2)
"""


class Race(CopyTest):
    """Inside, a folder and links to paths of the host take each other's place without end."""

    ROUNDS = 10000
    SECONDS = 60

    def setUp(self):
        super().setUp()
        self.victim = self.host / "victim"
        self.victim.mkdir()
        for name in ("canary", "passwd"):
            (self.victim / name).write_text("host content\n")
        self.out = self.host / "out"
        self.out.mkdir()
        (self.host / "source").write_text("inside\n")
        self.own_passwd = self.inside("cat /etc/passwd")
        self.assertNotEqual(self.own_passwd, Path("/etc/passwd").read_bytes())
        swapper = self.begin("exec", self.sandbox, "--", PYTHON, "-c", SWAP.replace("HOST", str(self.victim)))
        self.assertEqual(swapper.stdout.readline(), b"up\n")

    def test_no_byte_of_the_hosts_comes_out_and_no_file_of_it_changes(self):
        before, end = listing(self.victim), time.monotonic() + self.SECONDS
        rounds, seen = 0, set()
        while rounds < self.ROUNDS and time.monotonic() < end:
            seen.add(self.attempt("read", "box", "p/dir/canary"))
            seen.add(self.attempt("read", "box", "p/dir/passwd"))
            rounds += 2
            if rounds % 8 == 0:
                self.attempt("cp", "box:p", str(self.out / "tree"))
                self.attempt("cp", "box:p/dir/passwd", str(self.out / "passwd"))
                self.attempt("write", "box", "p/dir/canary", stdin=b"inside\n")
                self.attempt("cp", str(self.host / "source"), "box:p/dir/canary")
                rounds += 4
                self.judge_copies()
        self.assertEqual(seen, {None, b"inside\n", self.own_passwd})
        self.assertEqual(listing(self.victim), before)

    def judge_copies(self):
        for path in self.out.rglob("*"):
            self.assertFalse(path.is_symlink(), path)
            if path.is_file():
                self.assertIn(path.read_bytes(), (b"inside\n", self.own_passwd), path)

    def attempt(self, verb, *arguments, stdin=b""):
        """Standard output, or None when it was refused; as little around it as can be."""
        done = subprocess.run([ATOLL, verb, *arguments], env=self.env, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
        self.assertIn(done.returncode, (0, 125), done.stderr)
        return done.stdout if done.returncode == 0 else None


if __name__ == "__main__":
    unittest.main()
