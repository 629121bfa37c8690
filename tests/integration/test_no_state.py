# SPDX-License-Identifier: Apache-2.0
"""A run keeps nothing on disk, so no folder of the caller's has to be good for anything."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

import support

DENY = str(Path(__file__).resolve().parents[1] / "support/deny_calls.py")
FOLDERS = ("HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "TMPDIR", "ATOLL_STATE_DIR")
# Every mount read-only, and nothing of its own to write to. An ordinary user needs a namespace for that.
READ_ONLY = "mount -o remount,bind,ro / && for d in /tmp /run /dev/shm; do mount -t tmpfs -o ro none $d; done"


class NoState(support.SandboxTest):
    def environment(self, folder):
        return os.environ | dict.fromkeys(FOLDERS, str(folder))

    def test_folders_that_do_not_exist_do_not_matter(self):
        result = self.sh("echo ok", env=self.environment("/nonexistent/folder"))
        self.assertEqual((result.status, result.out, result.err), (0, b"ok\n", b""))

    def test_folders_stay_empty(self):
        folder = self.folder()
        self.sh("echo ok", env=self.environment(folder))
        self.assertEqual(os.listdir(folder), [])

    def test_a_machine_on_which_nothing_can_be_written_will_do(self):
        unshare = ["unshare", "--mount"] if support.is_root() else ["unshare", "--mount", "--map-root-user"]
        binary = os.environ["ATOLL"]
        if binary.startswith(("/tmp/", "/run/")):  # about to be hidden: held by a descriptor instead
            holder = os.open(binary, os.O_RDONLY)
            self.addCleanup(os.close, holder)
            os.set_inheritable(holder, True)
            binary, kept = f"/proc/self/fd/{holder}", (holder,)
        else:
            kept = ()
        script = f"{READ_ONLY} && ! touch /tmp/x 2>/dev/null && exec {binary} run -- sh -c 'echo ok'"
        found = subprocess.run([*unshare, "sh", "-c", script], capture_output=True, pass_fds=kept, timeout=60,
                               check=False)
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, b"ok\n", b""))

    def test_a_file_system_without_attributes_and_locks_will_do(self):
        found = subprocess.run(
            [sys.executable, "-B", DENY, "attributes", "locks", "--", os.environ["ATOLL"], "run", "--", "echo", "ok"],
            capture_output=True, timeout=60, check=False)
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, b"ok\n", b""))


if __name__ == "__main__":
    unittest.main()
