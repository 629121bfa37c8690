# SPDX-License-Identifier: Apache-2.0
"""Kills the client, the keeper and init at random moments, and then looks for anything left.

ATOLL_STORM_SEED repeats a storm, ATOLL_STORM_ROUNDS makes it longer or shorter.
"""
import os
import random
import signal
import subprocess
import time
import unittest

import support

ROUNDS = int(os.environ.get("ATOLL_STORM_ROUNDS", "500"))
SEED = int(os.environ.get("ATOLL_STORM_SEED", str(random.SystemRandom().randrange(1 << 32))))
SCRIPT = "setsid sleep 1000 & (setsid sleep 1001 &); echo x > /dev/shm/x; trap '' TERM HUP; echo ready; while :; do sleep 0.1; done"

# Who is killed. Those of one row are killed one right after the other.
WHO = (
    ("client",), ("keeper",), ("init",), ("client", "keeper"), ("keeper", "client"), ("init", "client"),
    ("keeper", "init"),
)
# When: a random moment within so many seconds after the start, or after the command is at work.
WHEN = (("while it is made", False, 0.012), ("while it starts", False, 0.05), ("at work", True, 0.03))
OPTIONS = ((), ("-i",), ("-t",), ("--disk", "16M"), ("--volume", "/usr/share:/workspace:ro"), ("--user", "1000"))


class Storm(support.SandboxTest):
    def victim(self, client, who):
        """The process to kill; None when it is not there, be it not yet or not any more."""
        if who == "client":
            return client.pid
        for process in support.descendants(client.pid):
            if (who == "keeper" and process.is_keeper) or (who == "init" and process.is_init):
                return process.pid
        return None

    def one_round(self, chance, who, when):
        _, at_work, within = when
        client = self.start(*chance.choice(OPTIONS), "--", "sh", "-c", SCRIPT)
        try:
            if at_work:
                client.stdout.readline()
            time.sleep(chance.uniform(0, within))
            victims = [self.victim(client, name) for name in who]
            for pid in victims:
                try:
                    if pid:
                        os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not any(victims):
                client.kill()  # nobody to kill was there: end the round
            try:
                client.wait(10)
            except subprocess.TimeoutExpired:
                if victims[0] and who[0] != "client":
                    raise AssertionError(f"the client outlived {who} by 10 s") from None
                client.kill()
                client.wait()
            self.assert_gone()
        finally:
            self._end(client)

    def test_nothing_is_left_after_kills_at_random_moments(self):
        print(f"storm of {ROUNDS} rounds, seed {SEED}", flush=True)
        chance = random.Random(SEED)
        before = support.namespaces()
        for number in range(ROUNDS):
            who = WHO[number % len(WHO)]
            when = WHEN[number // len(WHO) % len(WHEN)]
            with self.subTest(number=number, who=who, when=when[0]):
                self.one_round(chance, who, when)
        support.wait_for(lambda: len(support.namespaces()) <= len(before), "the end of all namespaces", 30)


if __name__ == "__main__":
    unittest.main()
