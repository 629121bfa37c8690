# SPDX-License-Identifier: Apache-2.0
"""Files of the host inside: volumes, and a folder as the whole root."""
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

import support

EVERY_KIND_OF_CHANGE = "echo a > n; mkdir d; mv n d/; ln d/n d/h; ln -s n d/s; chmod 600 d/n; mkfifo d/p; echo b >> d/h; rm d/h"


class VolumeTest(support.SandboxTest):
    def own_folder(self, mode=0o755):
        """A folder that belongs to this test's user."""
        folder = self.folder()
        folder.chmod(mode)
        return folder


class Owners(VolumeTest):
    def assert_changed(self, folder, uid, gid):
        found = {path.name: path.lstat() for path in [*folder.rglob("*")]}
        self.assertEqual(set(found), {"d", "n", "s", "p"})
        self.assertEqual({(info.st_uid, info.st_gid) for info in found.values()}, {(uid, gid)})
        self.assertEqual(stat.S_IMODE(found["n"].st_mode), 0o600)
        self.assertEqual((folder / "d/n").read_text(), "a\nb\n")

    def test_what_is_made_inside_belongs_to_the_caller(self):
        folder = self.own_folder()
        self.output_of(EVERY_KIND_OF_CHANGE, "--volume", f"{folder}:/workspace")
        self.assert_changed(folder, os.geteuid(), os.getegid())

    def test_a_private_folder_and_a_strict_mask_do_not_matter(self):
        folder = self.own_folder(0o700)
        self.output_of(EVERY_KIND_OF_CHANGE, "--volume", f"{folder}:/workspace", umask=0o077)
        self.assert_changed(folder, os.geteuid(), os.getegid())

    def test_it_works_for_any_ids(self):
        if not support.is_root():
            if os.getuid() == 1000:
                self.skipTest("only an id other than 1000 tells anything")
            return
        folder = self.own_folder()
        os.chown(folder, 4321, 992)
        for umask in (0o022, 0o077):
            with self.subTest(umask=umask):
                inner = folder / f"{umask}"
                inner.mkdir()
                inner.chmod(0o700)
                os.chown(inner, 4321, 992)
                self.output_of(EVERY_KIND_OF_CHANGE, "--volume", f"{inner}:/workspace", umask=umask,
                               user=4321, group=992, extra_groups=[])
                self.assert_changed(inner, 4321, 992)

    def test_the_callers_files_are_the_sandboxs_own_inside(self):
        folder = self.own_folder()
        (folder / "file").write_text("x")
        (folder / "file").chmod(0o600)
        volume = ("--volume", f"{folder}:/workspace")
        self.assertEqual(self.output_of("stat -c %u:%g . file; cat file", *volume), "0:0\n0:0\nx")
        self.assertEqual(self.output_of("stat -c %u:%g . file; cat file", *volume, "--user", "1000"),
                         "1000:1000\n1000:1000\nx")

    def test_another_user_inside_makes_files_of_the_caller(self):
        folder = self.own_folder(0o700)
        self.output_of(EVERY_KIND_OF_CHANGE, "--volume", f"{folder}:/workspace", "--user", "1000")
        self.assert_changed(folder, os.geteuid(), os.getegid())

    def test_files_of_others_cannot_be_changed(self):
        if not support.is_root():
            self.assertIn(b"ermission denied", self.sh("echo x >> /workspace/v", "--volume", "/etc/passwd:/workspace/v").err)
            return
        folder = self.own_folder()
        for name, uid in (("other", 1234), ("mine", 0)):
            (folder / name).write_text("kept")
            (folder / name).chmod(0o644)
            os.chown(folder / name, uid, uid)
        result = self.sh("echo x >> other; echo x >> mine", "--volume", f"{folder}:/workspace")
        self.assertIn(b"other", result.err)
        self.assertEqual((folder / "other").read_text(), "kept")
        self.assertEqual((folder / "mine").read_text(), "keptx\n")

    def test_set_user_id_bits_and_device_nodes_are_inert(self):
        folder = self.own_folder()
        shutil.copy("/usr/bin/id", folder / "id")
        (folder / "id").chmod(0o6755)
        volume = ("--volume", f"{folder}:/workspace")
        text = self.output_of("./id; grep NoNewPrivs /proc/self/status", *volume, "--user", "1000")
        self.assertNotIn("euid", text)
        self.assertIn("nosuid", self.output_of("grep ' /workspace ' /proc/self/mounts", *volume))
        if support.is_root():
            os.mknod(folder / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            (folder / "null").chmod(0o666)
            self.assertIn(b"ermission denied", self.sh("cat null", *volume).err)


class Kinds(VolumeTest):
    def test_a_read_only_one_cannot_be_changed(self):
        folder = self.own_folder()
        (folder / "file").write_text("kept")
        before = support.listing(folder)
        result = self.sh("cat file; echo x > new; echo x >> file; rm -f file; chmod 777 file; mv file b",
                         "--volume", f"{folder}:/workspace:ro")
        self.assertEqual(result.out, b"kept")
        self.assertEqual(result.err.count(b"Read-only file system"), 5, result.err)
        self.assertEqual(support.listing(folder), before)

    def test_a_single_file_may_be_one(self):
        folder = self.own_folder()
        (folder / "file").write_text("one\n")
        (folder / "beside").write_text("hidden")
        volume = f"{folder}/file:/workspace/deep/in/file"
        self.assertEqual(self.output_of("cd deep/in; ls; cat file; echo two >> file", "--volume", volume), "file\none\n")
        self.assertEqual((folder / "file").read_text(), "one\ntwo\n")
        self.assertIn(b"Read-only", self.sh("echo x >> deep/in/file", "--volume", f"{volume}:ro").err)

    def test_it_may_be_given_relative_to_the_callers_folder(self):
        folder = self.own_folder()
        (folder / "a").mkdir()
        (folder / "a/file").write_text("x")
        for given in ("a", "./a", "a/", "a/../a"):
            self.assertEqual(self.output_of("ls", "--volume", f"{given}:/workspace", cwd=folder), "file\n")
        self.assertEqual(self.output_of("ls", "--volume", ".:/workspace", cwd=folder), "a\n")

    def test_a_link_on_the_host_is_followed_once_at_the_start(self):
        folder = self.own_folder()
        (folder / "real").mkdir()
        (folder / "real/file").write_text("x")
        (folder / "link").symlink_to("real")
        self.assertEqual(self.output_of("ls; touch new", "--volume", f"{folder}/link:/workspace"), "file\n")
        self.assertTrue((folder / "real/new").exists())

    def test_names_may_hold_anything(self):
        folder = self.own_folder()
        for name in ("with space", "über", "a:b", "new\nline", "quote'\"", "-dash", "back\\slash", "per%cent"):
            with self.subTest(name=name):
                (folder / name).mkdir()
                (folder / name / "file").write_text("x")
                self.assertEqual(self.output_of("ls", "--volume", f"{folder}/{name}:/workspace/v", "--workdir",
                                                "/workspace/v"), "file\n")
        text = self.output_of("ls", "--volume", f"{folder}/über:/workspace/with space/ü", "--workdir", "/workspace/with space/ü")
        self.assertEqual(text, "file\n")

    def test_links_inside_lead_nowhere_outside(self):
        folder = self.own_folder()
        secret = self.own_folder() / "secret"
        secret.write_text("seen")
        (folder / "link").symlink_to(secret)
        (folder / "up").symlink_to("../../../../../../../../" + str(secret))
        (folder / "root").symlink_to("/")
        result = self.sh(f"cat link up root{secret} ../..{secret}; cat root/etc/hostname", "--volume", f"{folder}:/workspace")
        self.assertEqual(result.out, b"sandbox\n")

    def test_several_may_lie_in_one_another(self):
        outer, inner = self.own_folder(), self.own_folder()
        (outer / "sub").mkdir()
        (outer / "o").write_text("")
        (inner / "i").write_text("")
        for order in (1, -1):
            volumes = [("--volume", f"{outer}:/workspace/v"), ("--volume", f"{inner}:/workspace/v/sub:ro")][::order]
            text = self.output_of("cd v; ls; ls sub; touch new; touch sub/new 2> /dev/null || echo refused",
                                  *[part for volume in volumes for part in volume])
            self.assertEqual(text, "o\nsub\ni\nrefused\n" if order == 1 else "new\no\nsub\ni\nrefused\n")

    def test_a_mount_below_it_comes_along(self):
        folder = self.own_folder()
        (folder / "sub").mkdir()
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if support.is_root() else []
        script = f'mount -t tmpfs none {folder}/sub && touch {folder}/sub/file && exec "$@"'
        for mode, said in (("rw", "file\n"), ("ro", "file\nrefused\n")):
            done = subprocess.run(
                [*drop, self.need("unshare"), "-Urm", "sh", "-c", script, "sh", support.ATOLL, "run", "--volume",
                 f"{folder}:/workspace:{mode}", "--", "sh", "-c", "ls sub; touch sub/new 2> /dev/null || echo refused"],
                capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL,
            )
            self.assertEqual((done.returncode, done.stdout.decode()), (0, said), done.stderr)

    def test_one_may_hide_the_programs(self):
        folder = self.own_folder()
        result = self.run_atoll("--volume", f"{folder}:/usr/share", "--", "ls", "-A", "/usr/share")
        self.assertEqual(result, support.Result(0, b"", b""))

    def test_what_is_removed_outside_meanwhile_does_no_harm(self):
        folder = self.own_folder()
        (folder / "v").mkdir()
        client = self.start("-i", "--volume", f"{folder}/v:/workspace", "--", "sh", "-c", "echo ready; read l; ls; echo end",
                            stdin=subprocess.PIPE)
        self.assertEqual(client.stdout.readline(), b"ready\n")
        (folder / "v").rmdir()
        self.assertEqual(client.result(b"\n").out, b"end\n")


class Refused(VolumeTest):
    def test_what_cannot_be_is_refused_by_name(self):
        folder = self.own_folder()
        (folder / "file").write_text("")
        for volume in (
            f"{folder}/nosuch:/workspace", f"{folder}:relative", f"{folder}", f"{folder}:", ":/workspace", "",
            f"{folder}:/", f"{folder}:/a/../b", f"{folder}:/workspace/./a", f"{folder}:/proc", f"{folder}:/proc/sys",
            f"{folder}:/dev", f"{folder}:/dev/shm", f"{folder}:/sys", f"{folder}:/usr/nosuch", f"{folder}:/etc/nosuch",
            f"{folder}/file/x:/workspace/v", f"{folder}/file:/usr",
        ):
            with self.subTest(volume=volume):
                self.assert_refused(self.run_atoll(f"--volume={volume}", "--", "true"), "volume")

    def test_two_of_one_name_are_refused(self):
        folder = self.own_folder()
        result = self.run_atoll("--volume", f"{folder}:/workspace/a", "--volume", "/tmp:/workspace/a", "--", "true")
        self.assert_refused(result, "/workspace/a")

    def test_a_folder_that_the_caller_may_not_enter_is_refused(self):
        if support.is_root():
            folder = self.own_folder(0o700)
            (folder / "v").mkdir()
            result = self.run_atoll("--volume", f"{folder}/v:/workspace", "--", "true", user=4321, group=4321, extra_groups=[])
        else:
            result = self.run_atoll("--volume", "/root/x:/workspace", "--", "true")
        self.assert_refused(result, "volume")

    def test_a_link_planted_in_a_volume_does_not_lead_another_one_astray(self):
        outer, inner = self.own_folder(), self.own_folder()
        (outer / "link").symlink_to("/etc")
        result = self.run_atoll("--volume", f"{outer}:/workspace", "--volume", f"{inner}:/workspace/link/x", "--", "ls", "/etc/x")
        self.assertNotEqual(result.status, 0)
        self.assertEqual(list(inner.iterdir()), [])


class Image(support.SandboxTest):
    """A small root file system, made of a few programs of this host and their libraries."""

    @classmethod
    def setUpClass(cls):
        cls.image = Path(tempfile.mkdtemp(prefix="atoll-tests-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.image, ignore_errors=True)
        cls.image.chmod(0o755)
        for program in ("sh", "ls", "cat", "touch", "rm", "mkdir", "id", "env", "stat"):
            cls.add_program(program)
        for folder in ("etc", "tmp", "opt/data"):
            (cls.image / folder).mkdir(parents=True)
        (cls.image / "etc/release").write_text("the image's own\n")
        (cls.image / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nguest:x:5:5::/:/bin/sh\n")
        (cls.image / "opt/data/file").write_text("from the image\n")
        cls.secret = Path(tempfile.mkdtemp(prefix="atoll-tests-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.secret, ignore_errors=True)
        cls.secret.chmod(0o755)
        (cls.secret / "secret").write_text("seen")
        (cls.image / "out").symlink_to(cls.secret)
        (cls.image / "opt/up").symlink_to("../../../../../.." + str(cls.secret))

    @classmethod
    def add_program(cls, name):
        path = os.path.realpath(shutil.which(name, path="/usr/bin:/bin"))
        libraries = re.findall(r"(/\S+)", subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout)
        for source, target in [(path, f"/bin/{name}"), *((lib, lib) for lib in libraries)]:
            target = cls.image / target.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def inside(self, script, *options, **how):
        return self.output_of(script, "--image", f"dir:{self.image}", *options, **how)

    def test_it_is_what_the_command_sees(self):
        self.assertEqual(self.inside("cat /etc/release /opt/data/file"), "the image's own\nfrom the image\n")
        names = set(self.inside("ls -A /").split())
        self.assertLessEqual({"bin", "etc", "opt", "out", "tmp", "proc", "dev", "workspace"}, names)
        self.assertNotIn("usr" if not (self.image / "usr").exists() else "boot", names)
        self.assertIn("guest", self.inside("cat /etc/passwd"))
        self.assertEqual(self.inside("cat /etc/hostname"), "sandbox\n")

    def test_writes_to_it_are_thrown_away(self):
        before = support.listing(self.image)
        script = "echo new > /etc/release; rm -r /opt/data; mkdir /opt/more; touch /file; cat /etc/release; ls /opt"
        self.assertEqual(self.inside(script), "new\nmore\nup\n")
        self.assertEqual(support.listing(self.image), before)
        self.assertEqual(self.inside("cat /etc/release; ls /opt"), "the image's own\ndata\nup\n")

    def test_its_links_do_not_lead_out(self):
        result = self.sh("cat /out/secret /opt/up/secret", "--image", f"dir:{self.image}")
        self.assertEqual(result.out, b"")
        self.assertNotEqual(result.status, 0)

    def hostile(self, *links):
        image = Path(tempfile.mkdtemp(prefix="atoll-tests-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, image, ignore_errors=True)
        shutil.copytree(self.image, image, symlinks=True, dirs_exist_ok=True)
        image.chmod(0o755)
        for name, target in links:
            path = image / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.exists() or path.is_symlink():
                path.unlink()
            path.symlink_to(target)
        return image

    def test_links_in_place_of_its_folders_do_not_lead_set_up_out(self):
        for name in ("etc", "dev", "proc", "tmp", "workspace", "root", "run", "var", "home", "etc/hosts", "etc/hostname"):
            with self.subTest(name=name):
                target = self.folder()
                target.chmod(0o777)
                image = self.hostile((name, target))
                result = self.sh("echo fine", "--image", f"dir:{image}")
                self.assertIn(result.status, (0, 125), result)
                self.assertEqual(os.listdir(target), [])

    def test_a_workdir_or_volume_behind_its_links_does_not_lead_out(self):
        target = self.folder()
        target.chmod(0o777)
        image = self.hostile(("link", target))
        volume = self.folder()
        (volume / "here").write_text("")
        for options in (("--workdir", "/link/new"), ("--volume", f"{volume}:/link/new")):
            result = self.sh("echo fine", "--image", f"dir:{image}", *options)
            self.assertIn(result.status, (0, 125), result)
            self.assertEqual(os.listdir(target), [])

    def test_it_has_the_same_locks(self):
        text = self.inside("cat /proc/self/status")
        self.assertEqual(int(support.status_field(text, "CapBnd"), 16), 0)
        self.assertEqual(support.status_field(text, "Seccomp"), "2")
        self.assertEqual(set(self.inside("ls /dev").split()),
                         {"fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
                          "urandom", "zero"})
        self.assertNotEqual(self.sh("echo x > /proc/sys/kernel/core_pattern", "--image", f"dir:{self.image}").status, 0)

    def test_a_volume_lies_in_it(self):
        folder = self.folder()
        self.assertEqual(self.inside("touch /data/new; ls /data", "--volume", f"{folder}:/data"), "new\n")
        self.assertEqual((folder / "new").stat().st_uid, os.geteuid())

    def test_another_user_may_be_asked_for(self):
        self.assertEqual(self.inside("id -u; cat /etc/release", "--user", "1000"), "1000\nthe image's own\n")

    def test_what_is_no_image_is_refused(self):
        for image in ("dir:/nosuch", "dir:/etc/passwd", "dir:", "nosuch", "", "dir:/", "docker.io/x"):
            with self.subTest(image=image):
                self.assert_refused(self.run_atoll(f"--image={image}", "--", "true"), "image")

    def test_an_empty_image_has_no_program(self):
        folder = self.folder()
        result = self.run_atoll("--image", f"dir:{folder}", "--", "true")
        self.assertEqual(result.status, 127)
        self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
