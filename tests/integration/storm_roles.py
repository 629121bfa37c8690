# SPDX-License-Identifier: Apache-2.0
"""Kills each process that a sandbox consists of, or that uses it, in each state of its life.

What a role's death has to come to is in the table. After each kill, within two seconds, nothing is left of a sandbox
that has ended: no process, mount, file; the list is true; and what only a sweep can remove, since who would have done
it was killed, is removed by `atoll gc`. ATOLL_STORM_ROUNDS repeats the table more often.
"""
import os
import signal
import time
import unittest

import support

ROUNDS = int(os.environ.get("ATOLL_STORM_ROUNDS", "4"))
GONE_S = 2
STEP_S = 0.002  # the later rounds kill so much later each
FIND_S = 1  # some processes live for a moment only, and may have gone by
OWNER = "storm/owner"
SCRIPT = "setsid sleep 1000 & trap '' TERM HUP; echo ready; while :; do sleep 0.1; done"

ENDS, LIVES, EITHER = "the sandbox ends", "the sandbox lives", "it ends or it lives"

# Role, state, outcome. EITHER: it depends on how far the sandbox was made, or whether its end had begun.
TABLE = (
    ("client", "create", EITHER), ("keeper", "create", EITHER), ("init", "create", EITHER), ("egress", "create", EITHER),
    ("resolve", "create", EITHER), ("visitor", "create", EITHER), ("setup", "create", EITHER),
    ("client", "idle", LIVES), ("keeper", "idle", ENDS), ("init", "idle", ENDS), ("egress", "idle", ENDS),
    ("resolve", "idle", ENDS),
    ("client", "exec", LIVES), ("keeper", "exec", ENDS), ("init", "exec", ENDS), ("egress", "exec", ENDS),
    ("resolve", "exec", ENDS),
    ("client", "files", LIVES), ("keeper", "files", ENDS), ("init", "files", ENDS), ("egress", "files", ENDS),
    ("resolve", "files", ENDS), ("server", "files", LIVES),
    ("client", "policy", LIVES), ("keeper", "policy", ENDS), ("init", "policy", ENDS), ("egress", "policy", ENDS),
    ("resolve", "policy", ENDS), ("visitor", "policy", EITHER),
    ("client", "hold", LIVES), ("keeper", "hold", ENDS), ("init", "hold", ENDS), ("egress", "hold", ENDS),
    ("resolve", "hold", ENDS),
    ("client", "destroy", EITHER), ("keeper", "destroy", ENDS), ("init", "destroy", ENDS), ("egress", "destroy", ENDS),
    ("resolve", "destroy", ENDS),
)
BRIEF = {"visitor", "setup", "server"}  # roles that may be over before they are found
BUSY = {  # what each state is: the arguments of a command of atoll that makes it so; ID is the sandbox
    "create": ("create", "--owner", OWNER, "--lifetime", "60s", "--allow", "example.com:443"),
    "idle": ("events", "ID", "--follow"),
    "exec": ("exec", "ID", "--", "sh", "-c", SCRIPT),
    "files": ("cp", "/usr/share/doc", "ID:/tmp/doc"),
    "policy": ("policy", "ID", "--allow", "example.org:443"),
    "hold": ("hold", "ID", "--owner", OWNER, "--holder", "h", "--", "sleep", "1000"),
    "destroy": ("rm", "--owner", OWNER, "ID"),
}


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def name_of(pid):
    with open(f"/proc/{pid}/comm") as file:
        return file.read().strip()


def family(pid):
    """The processes below one, as far as they are there: process id, name and its parent's name. Much faster than a
    look at all of /proc, since some live for a millisecond."""
    try:
        parent = name_of(pid)
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
    except OSError:
        return
    for child in reversed(children):
        try:
            yield int(child), name_of(child), parent
        except OSError:
            continue
        yield from family(int(child))


def playing(role, below):
    """The process id of a role among the processes below one; None when it is not there."""
    name = {"setup": "atoll-keeper", "server": "atoll-files"}.get(role, f"atoll-{role}")
    for pid, found, parent in family(below):
        # A child of the keeper has that one's name at first: the set-up, or what helps it.
        if found == name and (role == "server" or (parent == "atoll-keeper") == (role != "keeper")):
            return pid
    return None


class Roles(support.HeldTest):
    def find(self, role, client, keeper):
        """Waits for a process of the role, a while."""
        if role == "client":
            return client.pid
        end = time.monotonic() + (FIND_S if role in BRIEF else support.LIMIT_S)
        while time.monotonic() < end:
            # A new keeper is nobody's child: it comes to this process.
            found = keeper if role == "keeper" and keeper else playing(role, keeper or os.getpid())
            if found or (client.poll() is not None and (role in BRIEF or client.args[1] != "exec")):
                return found
        return None

    @staticmethod
    def patience():
        """Two seconds, unless the machine has far more to do than this."""
        return GONE_S * (5 if os.getloadavg()[0] > 2 * os.cpu_count() else 1)

    def gone_within(self, condition, what):
        support.wait_for(condition, what, self.patience())

    def one(self, role, state, outcome, delay):
        """One row of the table, once. Whether there was somebody to kill."""
        sandbox = None if state == "create" else self.create(*BUSY["create"][1:])
        keeper = self.keeper_of(sandbox) if sandbox else None
        words = [word.replace("ID", sandbox or "") for word in BUSY[state]]
        client = self.begin(*words)
        try:
            if state in ("exec", "hold"):
                self.settle(state, client, sandbox)
            if state != "create" and role != "visitor" and role != "server":
                time.sleep(delay)
            pid = self.find(role, client, keeper)
            if state == "create":
                time.sleep(delay)
            if pid:
                kill(pid)
            if state in ("idle", "hold", "exec") and not (pid and outcome == ENDS):
                client.kill()  # which would go on
            client.wait(support.LIMIT_S)
        finally:
            client.kill()
            self._end(client)
        self.judge(role, sandbox, outcome if pid else EITHER)
        return bool(pid)

    def settle(self, state, client, sandbox):
        if state == "exec":
            client.stdout.readline()
        else:
            support.wait_for(lambda: self.json("inspect", sandbox)["lease"]["state"] == "held", "a lease")

    def judge(self, role, sandbox, outcome):
        if outcome == ENDS:
            self.gone_within(lambda: sandbox not in self.listed(), f"a list without {sandbox}")
        if outcome == LIVES:
            self.assertEqual(self.listed(), [sandbox])
            self.gone_within(lambda: self.json("inspect", sandbox)["lease"]["state"] == "free", "a free lease")
            self.gone_within(lambda: self.exec(sandbox, "cat /proc/[0-9]*/comm 2>/dev/null").split().count(b"sleep") == 0,
                             "the end of the client's command")
        # Whatever is listed can be used and ended; whatever is not leaves nothing behind.
        for left in self.listed():
            result = self.atoll("rm", "--owner", OWNER, "--force", left)
            self.assertIn(result.status, (0, 1, 125), result)
        self.gone_within(lambda: not self.listed(), "an empty list")
        self.atoll("gc")
        self.assertEqual(os.listdir(self.state), [], f"after {role}")
        self.assert_gone(self.patience())

    def test_each_role_is_killed_in_each_state(self):
        hits = {}
        for number in range(ROUNDS):
            for role, state, outcome in TABLE:
                with self.subTest(role=role, state=state, number=number):
                    hit = self.one(role, state, outcome, number * STEP_S)
                    hits[role, state] = hits.get((role, state), 0) + hit
        print(f"{sum(hits.values())} kills in {ROUNDS} rounds of {len(TABLE)} rows", flush=True)
        # A role that lives for a moment need not be met in each row, but in one.
        met = {role for (role, state), count in hits.items() if count}
        self.assertEqual(met, {role for role, _, _ in TABLE})
        missed = [row for row, count in hits.items() if not count and row[0] not in BRIEF and row[1] not in ("create", "destroy")]
        self.assertEqual(missed, [])


if __name__ == "__main__":
    unittest.main()
