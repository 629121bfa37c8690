# SPDX-License-Identifier: Apache-2.0
"""Each system call of a sandbox's set-up is made to fail once: nothing is ever left, and the caller gets one clear error.

Of calls that a process makes many times only some are tried here; ATOLL_FAULTS_EVERY=1 tries each, as the suite `storm` does.
"""
import collections
import os
import time
import unittest

import injected_faults
import support

EVERY = int(os.environ.get("ATOLL_FAULTS_EVERY", "12"))
NEEDED = {  # calls without which a scenario was not what it is thought to be
    "plain": {"clone", "mount_setattr", "pivot_root", "setns", "seccomp", "capset", "landlock_restrict_self", "execveat"},
    "files": {"clone", "mount_setattr", "fsmount", "renameat", "listen", "setns"},
    "network": {"clone", "setns", "socket", "bind", "listen", "sendto", "renameat", "seccomp"},
}


class InjectedFaults(support.SandboxTest):
    every = EVERY

    def every_fault_of(self, scenario):
        folder = self.folder()
        inject = injected_faults.build(self.need("cc"), folder)
        rows = injected_faults.record(injected_faults.Place(folder / "record", inject), scenario)
        self.assertEqual([row for row in rows if row[1] == "?"], [], "calls that the table of inject.c lacks")
        self.assertLessEqual(NEEDED[scenario], {row[2].partition(":")[0] for row in rows})
        before = support.namespaces()
        began = time.monotonic()
        tried = injected_faults.chosen(rows, self.every)
        found = injected_faults.run_all([(scenario, row) for row in tried], folder, inject)
        counts = collections.Counter(case["outcome"] for case in found)
        print(f"{scenario}: {len(tried)} of {len(rows)} calls in {time.monotonic() - began:.0f} s, {dict(counts)}", flush=True)
        wrong = [f"{' '.join(case['row'])}: {case['words']}" for case in found if case["outcome"] == "wrong"]
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertGreater(counts["refused"], len(tried) // 3)
        support.wait_for(lambda: len(support.namespaces()) <= len(before), "the end of all namespaces", 30)

    def test_a_plain_sandbox(self):
        self.every_fault_of("plain")

    def test_one_with_an_image_and_a_volume(self):
        self.every_fault_of("files")

    def test_one_with_an_allowed_name_and_a_published_port(self):
        self.every_fault_of("network")


if __name__ == "__main__":
    unittest.main()
