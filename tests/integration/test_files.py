# SPDX-License-Identifier: Apache-2.0
"""Reading, writing and listing files of a sandbox: bytes, names, ranges, limits, and what must not hang."""
import base64
import hashlib
import os
import subprocess
import unittest

from support import LIMIT_S, PYTHON, HeldTest, is_root, wait_for

PROMPTLY_S = 20  # what could wait for ever has ended by then

HOSTILE_NAMES = [
    b"with space", b"quo'te", b'dou"ble', b"semi;colon", b"dol$lar", b"back\\slash", b"-rf", b"--", b"*", b"~", b"#",
    b"new\nline", b"tab\tname", b"\x1b[31mred", "报告 final.txt".encode(), b"e\xcc\x81", b"\xff.bin", b"\x80\xfe", b"...",
    b".hidden", b"colon:name", b"sb-x:y", b"x" * 255,
]


class FileTest(HeldTest):
    options = ()

    def setUp(self):
        super().setUp()
        self.sandbox = self.create(*self.options)

    def read(self, path, *options):
        return self.good("read", *options, self.sandbox, "--", path)

    def write(self, path, data, *options):
        self.assertEqual(self.good("write", *options, self.sandbox, "--", path, stdin=data), b"")

    def ls(self, path="."):
        """The entries by name, as bytes."""
        value = self.json("ls", self.sandbox, "--", path)
        return {self.bytes_of(entry, "name"): entry for entry in value["entries"]}

    def bytes_of(self, entry, key):
        if key + "_base64" in entry:
            return base64.b64decode(entry[key + "_base64"])
        return os.fsencode(entry[key])

    def run_inside(self, script):
        return self.exec(self.sandbox, script)

    def python_inside(self, script):
        return self.good("exec", self.sandbox, "--", PYTHON, "-c", script)

    def refuse(self, words, verb, *arguments, **how):
        how.setdefault("limit", PROMPTLY_S)
        self.assert_refused(self.atoll(verb, self.sandbox, *arguments, **how), *words)


class Reading(FileTest):
    def test_what_was_written_is_read(self):
        self.write("hello", b"hello\n")
        self.assertEqual(self.read("hello"), b"hello\n")
        self.assertEqual(self.run_inside("cat hello"), b"hello\n")

    def test_all_bytes_survive(self):
        data = bytes(range(256)) * 257 + os.urandom(70000)
        self.write("bytes", data)
        self.assertEqual(self.read("bytes"), data)
        self.assertEqual(self.run_inside("cat bytes"), data)

    def test_an_empty_file_is_no_error(self):
        self.write("empty", b"")
        self.assertEqual(self.read("empty"), b"")
        self.assertEqual(self.ls()[b"empty"]["size"], 0)

    def test_what_is_not_there(self):
        self.run_inside("ln -s nowhere dangling; ln -s loop loop")
        self.refuse(["'nowhere' does not exist"], "read", "nowhere")
        self.refuse(["does not exist"], "read", "dangling")
        self.refuse(["does not exist"], "read", "/nowhere/at/all")
        self.refuse(["circle"], "read", "loop")
        self.refuse(["is not a folder"], "read", "/etc/hosts/x")

    def test_folders_are_not_read(self):
        self.run_inside("mkdir folder; ln -s folder link")
        for path in ("folder", "link", "/", ".", "folder/"):
            self.refuse(["is a folder; list it instead"], "read", path)

    def test_links_are_followed_inside(self):
        self.run_inside("mkdir -p a/b; echo in > a/b/c; ln -s a/b l; ln -s /workspace/a abs; ln -s ../../../../../etc/hostname up")
        for path in ("l/c", "abs/b/c", "./a/../l/c"):
            self.assertEqual(self.read(path), b"in\n")
        self.assertEqual(self.read("up"), b"sandbox\n")

    def test_ranges(self):
        self.write("digits", b"0123456789")
        for options, expected in (
            (("--offset", "3"), b"3456789"), (("--length", "4"), b"0123"), (("--offset", "8", "--length", "5"), b"89"),
            (("--offset", "10"), b""), (("--offset", "11"), b""), (("--length", "0"), b""),
            (("--offset", str(2**63 - 1), "--length", str(2**63 - 1)), b""),
        ):
            with self.subTest(options=options):
                self.assertEqual(self.read("digits", *options), expected)

    def test_more_than_the_limit_is_refused_before_a_byte_moves(self):
        self.write("500", bytes(500))
        self.refuse(["500"], "read", "500", "--max-bytes", "100")
        self.refuse(["500"], "read", "500", "--max-bytes", "499")
        self.assertEqual(self.read("500", "--max-bytes", "500"), bytes(500))
        self.assertEqual(self.read("500", "--max-bytes", "100", "--length", "100"), bytes(100))
        self.assertEqual(self.read("500", "--max-bytes", "100", "--offset", "400"), bytes(100))

    def test_a_large_file_and_outputs_of_each_kind(self):
        self.python_inside("import random; open('/tmp/big', 'wb').write(random.Random(7).randbytes(20 << 20))")
        digest = self.run_inside("sha256sum < /tmp/big").split()[0].decode()
        folder = self.folder()
        for mode in ("wb", "ab"):  # the kernel does not send to what is opened to append
            with open(folder / mode, mode) as file:
                self.assertEqual(self.atoll("read", self.sandbox, "/tmp/big", stdout=file).status, 0)
            self.assertEqual(hashlib.sha256((folder / mode).read_bytes()).hexdigest(), digest)
        self.assertEqual(hashlib.sha256(self.read("/tmp/big")).hexdigest(), digest)

    def test_an_output_that_is_closed_or_full(self):
        self.run_inside("head -c 3000000 /dev/zero > big")
        reading, writing = os.pipe()
        os.close(reading)
        result = self.atoll("read", self.sandbox, "big", stdout=writing)
        os.close(writing)
        self.assertEqual(result.status, 125)
        with open("/dev/full", "wb") as full:
            result = self.atoll("read", self.sandbox, "big", stdout=full)
        self.assertEqual(result.status, 125)
        self.assertIn(b"No space left", result.err)

    def test_what_is_no_file_never_hangs(self):
        self.run_inside("mkfifo fifo; ln -s fifo link")
        self.python_inside("import socket; socket.socket(socket.AF_UNIX).bind('socket')")
        for verb, more in (("read", {}), ("write", {"stdin": b"x"})):
            for path, word in (("fifo", "is a FIFO"), ("link", "is a FIFO"), ("socket", "is a socket"),
                               ("/dev/zero", "is a device"), ("/dev/null", "is a device"), ("/dev/tty", "is a device")):
                with self.subTest(verb=verb, path=path):
                    self.refuse([word], verb, path, **more)
        self.refuse(["is a device"], "read", "/dev/zero", "--max-bytes", "1024")

    def test_unreadable_is_an_error(self):
        sandbox = self.create("--user", "1000")
        self.assert_refused(self.atoll("read", sandbox, "/proc/1/mem"), "may not be accessed")
        self.exec(sandbox, "echo x > /tmp/secret; chmod 000 /tmp/secret; mkdir -m 000 /tmp/shut")
        self.assert_refused(self.atoll("read", sandbox, "/tmp/secret"), "may not be accessed")
        self.assert_refused(self.atoll("ls", sandbox, "/tmp/shut"), "may not be accessed")

    def test_proc_shows_the_sandboxs_own(self):
        self.assertEqual(self.read("/proc/sys/kernel/hostname"), b"sandbox\n")
        self.assertNotIn(os.uname().nodename.encode() + b"\n", self.read("/proc/sys/kernel/hostname"))
        for path in ("/proc/self/status", "/proc/thread-self/status"):
            self.assertRegex(self.read(path).decode(), r"(?m)^NStgid:.*$|^Name:")
            self.assertNotIn(f"\nPid:\t{os.getpid()}\n".encode(), self.read(path))
        self.assertEqual(self.read("/proc/1/cmdline").split(b"\0")[0], b"atoll-init")
        mounts = self.read("/proc/self/mounts")
        self.assertIn(b" /workspace ", mounts)
        self.assertEqual(self.read("/proc/net/dev").count(b":"), self.run_inside("cat /proc/net/dev").count(b":"))
        self.assertEqual(self.read("/proc/sys/kernel/hostname", "--offset", "3", "--length", "2"), b"db")


class Writing(FileTest):
    def test_missing_folders_are_made(self):
        self.write("one/two/three", b"x")
        self.write("/tmp/a/b", b"y")
        self.assertEqual(self.run_inside("cat one/two/three /tmp/a/b"), b"xy")

    def test_a_shorter_content_replaces_a_longer_one(self):
        self.write("f", b"a long content")
        self.write("f", b"short")
        self.assertEqual(self.read("f"), b"short")

    def test_a_link_is_followed_and_kept(self):
        self.run_inside("mkdir d; echo old > d/target; ln -s d/target link; ln -s d/new dangling")
        self.write("link", b"new")
        self.write("dangling", b"made")
        self.assertEqual(self.run_inside("cat d/target d/new; readlink link dangling"), b"newmaded/target\nd/new\n")

    def test_mode_owner_and_attributes_stay(self):
        self.run_inside("echo x > f; chmod 4751 f")
        self.python_inside("import os; os.setxattr('f', 'user.note', b'kept')")
        self.write("f", b"y")
        self.assertEqual(self.run_inside("stat -c %a:%u:%g f"), b"4751:0:0\n")
        self.assertEqual(self.python_inside("import os; print(os.getxattr('f', 'user.note'))"), b"b'kept'\n")
        self.write("new", b"")
        self.write("script", b"#!/bin/sh\necho ran\n", "--mode", "755")
        self.write("f", b"z", "--mode", "0600")
        self.assertEqual(self.run_inside("stat -c %a new script f; ./script"), b"644\n755\n600\nran\n")
        for mode in ("8", "rwx", "77777", "", "-1"):
            self.refuse(["mode"], "write", "f", "--mode", mode, stdin=b"")
        self.assertEqual(self.read("f"), b"z")

    def test_folders_are_not_written(self):
        self.run_inside("mkdir folder")
        for path in ("folder", "/", ".", "folder/", "new/"):
            self.refuse(["folder"], "write", path, stdin=b"x")
        self.refuse(["is not a folder"], "write", "/etc/hosts/x", stdin=b"x")
        self.refuse(["read-only"], "write", "/usr/x", stdin=b"x")

    def test_json_says_how_much(self):
        value = self.json("write", self.sandbox, "f", stdin=b"12345")
        self.assertEqual(value, {"path": "f", "bytes": 5})

    def test_large_inputs_of_each_kind(self):
        data = os.urandom(5 << 20)
        source = self.folder() / "source"
        source.write_bytes(data)
        self.write("piped", data)
        with open(source, "rb") as file:
            self.assertEqual(self.atoll("write", self.sandbox, "file", stdin=file).status, 0)
        self.assertEqual(self.run_inside("cmp piped file && wc -c < file"), f"{5 << 20}\n".encode())

    def test_until_its_end_the_old_file_is_read(self):
        self.write("f", b"old")
        client = self.begin("write", self.sandbox, "f", stdin=subprocess.PIPE)
        client.stdin.write(b"new" * 100000)
        client.stdin.flush()
        self.assertEqual(self.read("f"), b"old")
        self.assertEqual(client.result(b".").status, 0)
        self.assertEqual(len(self.read("f")), 300001)

    def test_a_writer_that_dies_leaves_the_old_file(self):
        self.write("f", b"old")
        client = self.begin("write", self.sandbox, "f", stdin=subprocess.PIPE)
        client.stdin.write(b"new" * 100000)
        client.stdin.flush()
        wait_for(lambda: b".atoll-" in self.run_inside("ls -A"), "a temporary file")
        client.kill()
        client.wait(LIMIT_S)
        wait_for(lambda: b".atoll-" not in self.run_inside("ls -A"), "the temporary file's end")
        self.assertEqual(self.read("f"), b"old")

    def test_an_input_that_cannot_be_read_leaves_the_old_file(self):
        self.write("f", b"old")
        folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        result = self.atoll("write", self.sandbox, "f", stdin=folder)
        os.close(folder)
        self.assertEqual(result.status, 125)
        self.assertIn(b"input cannot be read", result.err)
        self.assertEqual(self.read("f"), b"old")

    def test_twenty_writers_at_once_leave_one_whole_file(self):
        clients = [self.begin("write", self.sandbox, "f", stdin=subprocess.PIPE) for _ in range(20)]
        for n, client in enumerate(clients):
            self.assertEqual(client.result(bytes([65 + n]) * 70000).status, 0)
        data = self.read("f")
        self.assertEqual(data, data[:1] * 70000)
        self.assertEqual(self.run_inside("ls -A"), b"f\n")

    def test_an_immutable_file_says_so(self):
        if self.atoll("exec", self.sandbox, "--", "sh", "-c", "echo x > i && chattr +i i").status != 0:
            folder = self.folder()
            (folder / "i").write_text("old")
            if not is_root() or subprocess.run(["chattr", "+i", folder / "i"], stderr=subprocess.DEVNULL, check=False).returncode:
                return  # nothing here can be made immutable
            self.addCleanup(subprocess.run, ["chattr", "-i", folder / "i"], check=True)
            sandbox = self.create("--volume", f"{folder}:/vol")
            result = self.atoll("write", sandbox, "/vol/i", stdin=b"new")
            self.assert_refused(result, "immutable")
            self.assertEqual((folder / "i").read_text(), "old")

    def test_a_volume_that_is_read_only(self):
        folder = self.folder()
        (folder / "f").write_text("old")
        sandbox = self.create("--volume", f"{folder}:/vol:ro")
        self.assert_refused(self.atoll("write", sandbox, "/vol/f", stdin=b"new"), "read-only")
        self.assertEqual((folder / "f").read_text(), "old")


class FullDisk(FileTest):
    options = ("--disk", "8M")

    def test_a_full_disk_is_an_error_and_keeps_the_old_file(self):
        self.write("f", b"old")
        self.refuse(["disk is full"], "write", "f", stdin=bytes(20 << 20))
        self.assertEqual(self.read("f"), b"old")
        self.assertEqual(self.run_inside("ls -A"), b"f\n")
        self.write("f", bytes(4 << 20))
        self.write("f", b"new")
        self.assertEqual(self.read("f"), b"new")

    def test_no_inodes_left(self):
        self.python_inside("import os\ntry:\n    for i in range(100000): open(f'/tmp/{i}', 'w').close()\nexcept OSError: pass")
        self.refuse(["full"], "write", "f", stdin=b"x")
        inodes = self.json("inspect", self.sandbox)["inodes"]
        self.assertEqual(inodes["used"], inodes["limit"])


class Listing(FileTest):
    def test_kinds(self):
        self.run_inside("mkdir folder; echo x > file; ln -s folder tofolder; ln -s file tofile; ln -s no dangling; mkfifo fifo; touch .hidden")
        self.python_inside("import socket; socket.socket(socket.AF_UNIX).bind('socket')")
        entries = self.ls()
        self.assertEqual(
            {name: (e["kind"], e.get("target"), e.get("target_kind")) for name, e in entries.items()},
            {b".hidden": ("file", None, None), b"dangling": ("link", "no", None), b"fifo": ("fifo", None, None),
             b"file": ("file", None, None), b"folder": ("folder", None, None), b"socket": ("socket", None, None),
             b"tofile": ("link", "file", "file"), b"tofolder": ("link", "folder", "folder")})
        self.assertEqual(self.ls("/dev")[b"null"]["kind"], "device")
        self.assertEqual(
            self.good("ls", self.sandbox).decode().split(),
            [".hidden", "dangling", "fifo", "file", "folder/", "socket", "tofile", "tofolder"])

    def test_the_long_form(self):
        self.run_inside("mkdir -m 1777 d; echo 12345 > f; chmod 4755 f; ln -s d l; touch -d '2020-02-03 04:05:06Z' f")
        self.assertEqual(
            [line.split() for line in self.good("ls", "-l", self.sandbox).decode().splitlines() if " f" in line],
            [["-rwsr-xr-x", "6", "2020-02-03", "04:05:06", "UTC", "f"]])
        text = self.good("ls", "-l", self.sandbox).decode()
        self.assertRegex(text, r"(?m)^drwxrwxrwt .* d/$")
        self.assertRegex(text, r"(?m)^lrwxrwxrwx .* l -> d$")
        entry = self.ls()[b"f"]
        self.assertEqual((entry["mode"], entry["size"], entry["mtime"]), ("4755", 6, 1580702706))

    def test_an_empty_folder(self):
        self.assertEqual(self.good("ls", self.sandbox), b"")
        self.assertEqual(self.json("ls", self.sandbox), {"path": ".", "entries": []})

    def test_what_is_no_folder(self):
        self.run_inside("echo x > file; mkfifo fifo; ln -s no dangling; mkdir d; ln -s d link; touch d/inner")
        for path, word in (("file", "is not a folder"), ("fifo", "is not a folder"), ("nowhere", "does not exist"),
                           ("dangling", "does not exist")):
            self.refuse([word], "ls", path)
        self.assertEqual(list(self.ls("link")), [b"inner"])

    def test_names_are_bytes(self):
        for name in HOSTILE_NAMES:
            self.write(b"./" + name, name)
        self.assertEqual(set(self.ls()), set(HOSTILE_NAMES))
        self.assertEqual(self.good("ls", "-0", self.sandbox), b"".join(n + b"\0" for n in sorted(HOSTILE_NAMES)))
        self.assertEqual(self.good("ls", self.sandbox), b"".join(n + b"\n" for n in sorted(HOSTILE_NAMES)))
        for name in HOSTILE_NAMES:
            self.assertEqual(self.read(b"./" + name), name)

    def test_a_terminal_gets_quoted_names(self):
        for name in HOSTILE_NAMES:
            self.write(b"./" + name, b"")
        master, slave = os.openpty()
        client = self.begin("ls", self.sandbox, stdout=slave)
        os.close(slave)
        shown = b""
        try:
            while data := os.read(master, 65536):
                shown += data
        except OSError:
            pass  # the end of a terminal
        os.close(master)
        self.assertEqual(client.result().status, 0)
        lines = shown.replace(b"\r\n", b"\n").splitlines()
        self.assertEqual(len(lines), len(HOSTILE_NAMES))
        self.assertNotIn(b"\x1b", shown)
        # As a shell reads them back.
        words = subprocess.run(["bash", "-c", "printf '%s\\0' " + b" ".join(lines).decode()], stdout=subprocess.PIPE, check=True)
        self.assertEqual(words.stdout.split(b"\0")[:-1], sorted(HOSTILE_NAMES))

    def test_many_entries(self):
        self.python_inside("for i in range(20000): open(f'{i:05}-' + 'x' * 60, 'w').close()")
        names = self.good("ls", "-0", self.sandbox).split(b"\0")[:-1]
        self.assertEqual(names, [f"{i:05}-".encode() + b"x" * 60 for i in range(20000)])


class OneAfterTheOther(FileTest):
    def test_paths_start_at_the_working_directory(self):
        sandbox = self.create("--workdir", "/tmp/made/here")
        self.good("write", sandbox, "f", stdin=b"x")
        self.assertEqual(self.exec(sandbox, "cat /tmp/made/here/f; pwd"), b"x/tmp/made/here\n")
        self.assertEqual(self.good("ls", sandbox), b"f\n")
        self.assertEqual(self.good("read", sandbox, "../here/f"), b"x")

    def test_a_path_that_is_too_long_or_empty(self):
        self.refuse(["4095"], "read", "x/" * 2100)
        self.refuse(["too long"], "read", "x" * 256)
        self.refuse(["empty"], "read", "--", "")

    def test_commands_cannot_break_file_operations_for_long(self):
        self.write("f", b"x")
        self.atoll("exec", self.sandbox, "--", "sh", "-c", "kill -9 -1")
        self.assertEqual(self.read("f"), b"x")


if __name__ == "__main__":
    unittest.main()
