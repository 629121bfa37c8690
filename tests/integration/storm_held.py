# SPDX-License-Identifier: Apache-2.0
"""Kills creators, clients, keepers and inits of held sandboxes at random moments; `list` must stay true.

ATOLL_STORM_SEED repeats a storm, ATOLL_STORM_ROUNDS makes it longer or shorter.
"""
import os
import random
import signal
import time
import unittest

import support

ROUNDS = int(os.environ.get("ATOLL_STORM_ROUNDS", "200"))
SEED = int(os.environ.get("ATOLL_STORM_SEED", str(random.SystemRandom().randrange(1 << 32))))
SCRIPT = "setsid sleep 1000 & trap '' TERM HUP; echo ready; while :; do sleep 0.1; done"
WHO = ("creator", "keeper", "init", "client", "copier")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Storm(support.HeldTest):
    def look(self):
        """What `list` says is so: everything in it can be used, and nothing lives that is not in it."""
        listed = []

        def agree():  # a sandbox whose creator was killed may appear a moment later
            listed[:] = self.listed()
            return len(support.inits()) == len(listed)

        support.wait_for(agree, "a list of all that lives and nothing else", support.GONE_S)
        for sandbox in listed:
            self.assertEqual(self.exec(sandbox, "echo alive"), b"alive\n")
        return listed

    def kill_creator(self, chance, _sandbox):
        client = self.begin("create", "--lifetime", "60s")
        time.sleep(chance.uniform(0, 0.01))
        client.kill()
        client.wait()
        self._end(client)

    def kill_client(self, chance, sandbox):
        client = self.begin("exec", sandbox, "--", "sh", "-c", SCRIPT)
        client.stdout.readline()
        time.sleep(chance.uniform(0, 0.02))
        client.kill()
        client.wait()
        self._end(client)
        support.wait_for(lambda: b"sleep" not in self.exec(sandbox, "cat /proc/[0-9]*/comm 2>/dev/null || :"),
                         "the end of the client's command", support.GONE_S)

    def kill_copier(self, chance, sandbox):
        client = self.begin("cp", "/usr/share/doc", f"{sandbox}:/tmp/doc")
        time.sleep(chance.uniform(0, 0.05))
        client.kill()
        client.wait()
        self._end(client)
        support.wait_for(lambda: b"atoll-files" not in self.exec(sandbox, "cat /proc/[0-9]*/comm 2>/dev/null || :"),
                         "the end of the process that serves files", support.GONE_S)
        self.assertEqual(self.exec(sandbox, "find /tmp -name '.atoll-*' | head; rm -rf /tmp/doc"), b"")

    def kill_keeper(self, chance, sandbox):
        self.good("exec", "--detach", sandbox, "--", "sh", "-c", SCRIPT)
        time.sleep(chance.uniform(0, 0.02))
        kill(self.keeper_of(sandbox))
        support.wait_for(lambda: sandbox not in self.listed(), "a list without it", support.GONE_S)

    def kill_init(self, chance, sandbox):
        keeper = self.keeper_of(sandbox)
        time.sleep(chance.uniform(0, 0.02))
        for process in support.descendants(keeper):
            if process.is_init:
                kill(process.pid)
        support.wait_for(lambda: sandbox not in self.listed(), "a list without it", support.GONE_S)

    def test_the_list_is_true_after_kills_at_random_moments(self):
        print(f"storm of {ROUNDS} rounds, seed {SEED}", flush=True)
        chance = random.Random(SEED)
        for number in range(ROUNDS):
            who = WHO[number % len(WHO)]
            with self.subTest(number=number, who=who):
                sandbox = (self.look() or [self.create("--lifetime", "60s")])[0]
                getattr(self, f"kill_{who}")(chance, sandbox)
                self.look()
        left = self.listed()
        if left:
            self.good("rm", *left)
        self.assert_gone()
        self.assert_no_state()


if __name__ == "__main__":
    unittest.main()
