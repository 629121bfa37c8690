# SPDX-License-Identifier: Apache-2.0
"""Hosts that lack something: atoll refuses with the cause and a remedy, and doctor names it.

The hosts are imitated by namespaces and by system call filters. On none of them may a command run
without a sandbox, or in a lesser one.
"""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import support

DENY = str(Path(__file__).resolve().parents[1] / "support/deny_calls.py")

# A mount namespace of our own; an ordinary user gets one with a user namespace only.
OWN_MOUNTS = ("unshare", "-m") if support.is_root() else ("unshare", "-Urm")

MASKED = "mount --bind /dev/null /proc/cmdline"

# What holds inside, whatever the host lacks that is optional.
SEALED = """
import os, sys
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
facts = {
    "no capabilities": int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0,
    "no_new_privs": status["NoNewPrivs"] == "1",
    "filter": status["Seccomp"] == "2",
    "loopback only": [line.split(":")[0].strip() for line in open("/proc/net/dev")][2:] == ["lo"],
    "nothing of the host": not os.path.exists(sys.argv[1]) and os.listdir("/home") == [],
    "few processes": len([name for name in os.listdir("/proc") if name.isdigit()]) <= 2,
}
try:
    open("/usr/atoll-canary", "w")
    facts["read-only"] = False
except OSError:
    facts["read-only"] = True
print(",".join(name for name, good in facts.items() if not good) or "sealed")
"""


def denying(*kinds):
    """The host of a container whose filter denies these calls."""
    return (sys.executable, "-B", DENY, *kinds, "--")


def after(script, *namespaces):
    """A host after a shell script has run in namespaces of its own."""
    return (*namespaces, "sh", "-e", "-c", f'{script}\nexec "$@"', "sh")


class HostTest(support.SandboxTest):
    def setUp(self):
        super().setUp()
        for program in ("unshare", "setpriv", "capsh"):
            self.need(program)
        self.canary = self.folder()
        (self.canary / "file").write_text("untouched")

    def on(self, host, *arguments, path=None):
        """Runs atoll with these arguments on a host; whatever it is, the canary stays untouched."""
        before = support.listing(self.canary)
        done = subprocess.run(
            [*host, support.ATOLL, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            env={"PATH": path or os.environ["PATH"]},
            timeout=support.LIMIT_S,
            check=False,
        )
        self.assertEqual(support.listing(self.canary), before)
        return support.Result(done.returncode, done.stdout, done.stderr)

    def doctor(self, host, **how):
        """What doctor says on a host: its object, and the probes by name."""
        result = self.on(host, "doctor", "--json", **how)
        self.assertEqual(result.err, b"")
        said = json.loads(result.out)
        probes = {probe["name"]: probe for probe in said["probes"]}
        missing = [p for p in probes.values() if p["required"] and p["state"] != "ok"]
        self.assertEqual((result.status, said["ok"]), (1, False) if missing else (0, True), said)
        self.assertEqual(len(probes), len(said["probes"]))
        return probes

    def missing_on(self, host, **how):
        """The names of the required probes that are missing on a host."""
        probes = self.doctor(host, **how)
        return {n for n, p in probes.items() if p["required"] and p["state"] == "missing"}

    def assert_refuses(self, host, probe, *words, same_words=True):
        """Neither runs a command on the host, and both run and doctor name the cause and a remedy."""
        script = f"echo ran; touch {self.canary}/ran; rm {self.canary}/file"
        refused = self.on(host, "run", "--", "sh", "-c", script)
        self.assert_refused(refused)
        probes = self.doctor(host)
        said = probes[probe]
        self.assertEqual((said["state"], said["required"]), ("missing", True), probes)
        for word in words:
            self.assertIn(word, said["message"])
        self.assertTrue(said["remedy"])
        if same_words:
            self.assertIn(f"{said['message']}. {said['remedy']}", refused.err.decode())
        self.assertEqual(probes["sandbox"]["state"], "unknown")
        self.assertIn("is missing", probes["sandbox"]["message"])
        text = self.on(host, "doctor")
        self.assertEqual(text.status, 1)
        self.assertIn(f"\u2717 {probe} ", text.out.decode())
        self.assertIn("this host cannot run sandboxes: ", text.out.decode().splitlines()[-1])
        return refused

    def assert_works(self, host, **how):
        """A command runs on the host, as sealed as on any other, and doctor says that it would."""
        command = ("run", "--", support.PYTHON, "-c", SEALED, str(self.canary))
        done = self.on(host, *command, **how)
        self.assertEqual(done, support.Result(0, b"sealed\n", b""))
        self.assertEqual(self.missing_on(host, **how), set())


class HostsThatRefuse(HostTest):
    def test_no_user_namespaces(self):
        host = after("echo 0 > /proc/sys/user/max_user_namespaces", "unshare", "-Ur")
        self.assert_refuses(host, "user-namespace", "no more user namespaces", "max_user_namespaces")

    def test_no_network_namespaces(self):
        host = after("echo 0 > /proc/sys/user/max_net_namespaces", "unshare", "-Ur")
        words = ("no more network namespaces", "max_net_namespaces")
        # The host's root fails there for lack of ids before that.
        self.assert_refuses(host, "net-namespace", *words, same_words=not support.is_root())

    def test_filter_that_denies_namespaces(self):
        refused = self.assert_refuses(
            denying("namespaces"), "user-namespace", "namespaces is forbidden", "system call filter"
        )
        self.assertIn(b"seccomp=unconfined", refused.err)

    def test_filter_that_denies_mounts(self):
        refused = self.assert_refuses(
            denying("mounts"), "private-mounts", "cutting mounts off", "system call filter"
        )
        self.assertIn(b"seccomp=unconfined", refused.err)
        missing = {"private-mounts", "mount-api", "bind-mounts"}
        self.assertEqual(self.missing_on(denying("mounts")), missing)

    def test_filter_that_denies_the_loopback_interface(self):
        refused = self.assert_refuses(
            denying("loopback"), "loopback", "loopback interface", "system call filter"
        )
        self.assertIn(b"seccomp=unconfined", refused.err)

    def test_namespaces_without_power_in_them(self):
        host = denying("hostname", "loopback", "mounts")
        self.assert_refuses(host, "capabilities", "is refused", same_words=False)
        self.assertEqual(self.missing_on(host), {"capabilities"})

    def test_memory_files_that_may_not_be_executed(self):
        self.assert_refuses(denying("memfd"), "memfd", "memory file", "vm.memfd_noexec")

    def test_filter_from_before_openat2(self):
        self.assert_refuses(denying("openat2"), "openat2", "openat2(2)", same_words=False)

    def test_masked_proc(self):
        refused = self.assert_refuses(after(MASKED, *OWN_MOUNTS), "proc", "masks parts of /proc")
        self.assertIn(b"systempaths=unconfined", refused.err)

    def test_read_only_proc(self):
        host = after("mount -o remount,bind,ro /proc", *OWN_MOUNTS)
        self.assert_refuses(host, "id-map", "/proc is read-only")

    def test_no_proc(self):
        host = after("mount -t tmpfs none /proc", *OWN_MOUNTS)
        self.assert_refuses(host, "id-map", "/proc is not mounted")

    def test_the_host_s_root_without_other_ids(self):
        host = ("unshare", "-Ur")
        if support.is_root():
            self.assert_refuses(host, "id-map", "the host's root in a user namespace", "no other ids")
        else:
            self.assert_works(host)

    def test_the_host_s_root_without_the_power_to_give_ids(self):
        if support.is_root():
            host = ("capsh", "--drop=cap_setuid", "--", "-c", 'exec "$0" "$@"')
            self.assert_refuses(host, "id-map", "CAP_SETUID and CAP_SETGID")
        else:
            self.assert_works(("unshare", "-Ur", "capsh", "--drop=cap_setuid", "--", "-c", 'exec "$0" "$@"'))

    def test_all_lacks_are_named_at_once(self):
        host = after(MASKED, *OWN_MOUNTS) + denying("namespaces", "memfd", "openat2")
        self.assertEqual(self.missing_on(host), {"user-namespace", "proc", "memfd", "openat2"})
        last = self.on(host, "doctor").out.decode().splitlines()[-1]
        self.assertEqual(last, "this host cannot run sandboxes: 4 things are missing")


class HostsThatDoNotMatter(HostTest):
    def test_root_without_cap_sys_admin(self):
        drop = ("capsh", "--drop=cap_sys_admin", "--", "-c", 'exec "$0" "$@"')
        host = drop if support.is_root() else ("unshare", "-Ur", *drop)
        done = self.on(host, "run", "--", "id", "-u")
        self.assertEqual(done, support.Result(0, b"0\n", b""))
        self.assert_works(host)
        if support.is_root():
            idmapped = self.doctor(host)["idmapped-mounts"]
            self.assertEqual((idmapped["state"], idmapped["required"]), ("missing", False))
            self.assertIn("CAP_SYS_ADMIN", idmapped["message"])

    def test_no_new_privs(self):
        self.assert_works(("setpriv", "--no-new-privs"))

    def test_filter_from_before_clone3(self):
        self.assert_works(denying("clone3"))

    def test_filter_of_an_outer_container(self):
        probes = self.doctor(denying("clone3"))
        self.assertIn("is in force already", probes["outer-filter"]["message"])

    def test_alias_of_the_whole_root(self):
        work = self.folder()
        alias = work / "alias"
        volume = work / "volume"
        alias.mkdir()
        volume.mkdir()
        host = after(f"mount --rbind / {alias}", *OWN_MOUNTS)
        done = self.on(host, "run", "--volume", f"{volume}:/workspace", "--", "touch", "new")
        self.assertEqual(done, support.Result(0, b"", b""))
        self.assertTrue((volume / "new").exists())
        self.assert_works(host)

    def test_optional_things_hidden_in_turn(self):
        for probe, host, how in (
            ("landlock", denying("landlock"), {}),
            ("cgroup", after("mount -t tmpfs none /sys/fs/cgroup", *OWN_MOUNTS), {}),
            ("open-files", after("ulimit -n 256"), {}),
            ("subordinate-ids", (), {"path": str(self.canary)}),
        ):
            with self.subTest(probe=probe):
                self.assert_works(host, **how)
                said = self.doctor(host, **how)[probe]
                self.assertFalse(said["required"])
                if probe == "subordinate-ids" and support.is_root():
                    self.assertEqual(said["state"], "ok")
                    continue
                self.assertEqual(said["state"], "missing")
                self.assertTrue(said["message"])
                self.assertTrue(said["remedy"])

    def test_this_host(self):
        self.assert_works(())
        done = self.on((), "doctor")
        self.assertEqual((done.status, done.err), (0, b""))
        lines = done.out.decode().splitlines()
        self.assertEqual(lines[-1], "this host can run sandboxes")
        self.assertNotIn("\u2717", done.out.decode())
        self.assertNotIn("\033", done.out.decode())
        said = json.loads(self.on((), "doctor", "--json").out)
        self.assertEqual(list(said), ["ok", "kernel", "probes"])
        self.assertEqual(said["kernel"], os.uname().release)
        for probe in said["probes"]:
            self.assertEqual(list(probe), ["name", "required", "state", "message", "remedy"])
            if probe["required"]:
                self.assertEqual((probe["state"], probe["remedy"]), ("ok", None), probe)

    def test_doctor_takes_no_operand(self):
        self.assert_refused(self.on((), "doctor", "x"))


if __name__ == "__main__":
    unittest.main()
