# SPDX-License-Identifier: Apache-2.0
"""What sandboxes use: as a table, as JSON, and on a terminal until somebody has seen enough."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from support import ATOLL, GONE_S, LIMIT_S, HeldTest, wait_for

HEADER = ["SANDBOX", "CPU", "S", "MEMORY", "PEAK", "LIMIT", "DISK", "PROCS", "SENT", "RECEIVED", "COST", "LEFT"]
BEGIN, END = b"\x1b[?1049h", b"\x1b[?25h\x1b[?1049l"


class StatsTest(HeldTest):
    def test_the_table_has_a_line_for_each(self):
        first = self.create("--lifetime", "120s", "--name", "first")
        second = self.create("--lifetime", "2h")
        table = [line.split() for line in self.good("stats").decode().splitlines()]
        self.assertEqual(table[0], HEADER)
        self.assertEqual([row[0] for row in table[1:]], ["first", second])
        self.assertEqual(table[1][-2:], ["119", "s"])
        self.assertEqual(self.good("stats", second, first).decode().splitlines()[1].split()[0], second)
        self.assertEqual(self.good("stats", "--once"), self.good("stats", "--no-stream"))

    def test_without_a_sandbox_there_is_a_header(self):
        self.assertEqual(self.good("stats").decode().split(), HEADER)
        self.assertEqual(self.json("stats"), {"sandboxes": []})

    def test_numbers_are_those_of_the_sandbox(self):
        box = self.create("--lifetime", "120s", "--name", "busy", "--disk", "64M", "--pids", "50", "--owner", "me")
        self.exec(box, "head -c 1000000 /dev/zero >zeros")
        waiting = self.begin("exec", box, "--", "sleep", "60")
        wait_for(lambda: b"sleep" in self.good("ps", box), "the command", LIMIT_S)
        (row,) = self.json("stats", box)["sandboxes"]
        self.assertEqual((row["id"], row["name"], row["owner"]), (box, "busy", "me"))
        self.assertGreaterEqual(row["disk_bytes"]["used"], 1000000)
        self.assertEqual(row["disk_bytes"]["limit"], 64 << 20)
        self.assertEqual(row["processes"], {"used": 2, "limit": 50})
        self.assertTrue(0 < row["left"] <= 120)
        self.assertIsNone(row["cost"])
        self.assertIsNone(row["memory_bytes"]["limit"])
        self.assertTrue(row["answered"])
        waiting.kill()

    def test_inspect_tells_the_same(self):
        box = self.create("--lifetime", "120s")
        self.exec(box, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
        shown = self.json("inspect", box)
        (row,) = self.json("stats", box)["sandboxes"]
        same = ["id", "memory_bytes", "egress_bytes", "cpu_limit", "cost", "max_cost", "oom_kills"]
        self.assertEqual({key: shown[key] for key in same}, {key: row[key] for key in same})
        words = [line.split()[0] for line in self.good("inspect", box).decode().splitlines()]
        for label in ("CPU", "memory", "disk", "processes", "traffic", "cost"):
            self.assertIn(label, words)

    def test_processor_time_is_counted(self):
        box = self.create("--lifetime", "120s")
        burn = self.begin("exec", box, "--", "sh", "-c", "while :; do :; done")
        wait_for(lambda: (self.json("stats", box)["sandboxes"][0]["cpu_time"] or 0) >= 0.2, "CPU time", LIMIT_S)
        burn.kill()

    def test_what_is_not_there_is_refused(self):
        self.assert_refused(self.atoll("stats", "absent"), "no sandbox is called 'absent'")

    # --- one that does not answer ---

    def stop(self, box):
        """A keeper that is there and does nothing."""
        keeper = self.keeper_of(box)
        os.kill(keeper, signal.SIGSTOP)
        self.addCleanup(os.kill, keeper, signal.SIGCONT)
        return keeper

    def test_one_that_does_not_answer_holds_up_no_other(self):
        box, silent = self.create("--lifetime", "120s"), self.create("--lifetime", "120s", "--name", "silent")
        self.stop(silent)
        table = [line.split() for line in self.good("stats").decode().splitlines()[1:]]
        self.assertEqual([row[0] for row in table], [box, "silent"])
        self.assertEqual(table[1][1:], ["no", "answer"])
        self.assertEqual([row["answered"] for row in self.json("stats")["sandboxes"]], [True, False])

    def test_one_that_was_named_and_does_not_answer_is_a_failure(self):
        box, silent = self.create("--lifetime", "120s"), self.create("--lifetime", "120s")
        keeper = self.stop(silent)
        done = self.atoll("stats", silent, box)
        self.assertEqual(done.status, 125)
        self.assertIn(f"{silent} no answer\n{box} ", done.out.decode())
        self.assertIn(f"sandbox {silent} gave no answer", done.err.decode())
        os.kill(keeper, signal.SIGCONT)
        self.good("stats", silent, box)

    def test_many_are_asked_a_few_at_a_time(self):
        boxes = [self.create("--lifetime", "120s", "--pids", "20") for _ in range(3)]
        names = [box for _ in range(40) for box in boxes]  # each has a descriptor while it is asked
        limited = ["sh", "-c", 'ulimit -n 100 && exec "$@"', "sh", ATOLL]
        done = subprocess.run([*limited, "stats", *names], capture_output=True, env=self.env, timeout=LIMIT_S,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual([line.split()[0] for line in done.stdout.decode().splitlines()[1:]], names)

    # --- on a terminal ---

    def on_terminal(self, *arguments):
        """The command on a terminal of its own; its other end."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        client = self.begin("stats", *arguments, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        return client, ours

    def read_until(self, fd, wanted, times=1):
        seen, end = b"", time.monotonic() + LIMIT_S
        while seen.count(wanted) < times:
            self.assertLess(time.monotonic(), end, seen)
            if select.select([fd], [], [], 0.1)[0]:
                try:
                    seen += os.read(fd, 65536)
                except OSError:  # the other end is closed
                    break
        self.assertGreaterEqual(seen.count(wanted), times, seen)
        return seen

    def test_a_terminal_is_drawn_anew_until_q(self):
        box = self.create("--lifetime", "120s")
        for key in (b"q", b"\x03"):
            with self.subTest(key):
                client, fd = self.on_terminal()
                seen = self.read_until(fd, b"SANDBOX", 2)
                self.assertTrue(seen.startswith(BEGIN), seen)
                self.assertIn(box[:13].encode(), seen)
                os.write(fd, b"x" + key)
                self.read_until(fd, END)
                self.assertEqual(client.wait(LIMIT_S), 0)

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        self.create("--lifetime", "120s")
        client, fd = self.on_terminal()
        self.read_until(fd, b"SANDBOX")
        client.send_signal(signal.SIGTERM)
        self.read_until(fd, END)
        self.assertEqual(client.wait(LIMIT_S), 128 + signal.SIGTERM)

    def wait_until_it_asks(self, client):
        """It waits for one that is stopped: a connection of it stays."""
        def sockets():
            links = []
            for fd in os.listdir(f"/proc/{client.pid}/fd"):
                try:
                    links.append(os.readlink(f"/proc/{client.pid}/fd/{fd}"))
                except OSError:  # closed meanwhile
                    pass
            return {link for link in links if link.startswith("socket:")}

        def stays():
            before = sockets()
            time.sleep(0.05)
            return before & sockets()
        wait_for(stays, "a connection", LIMIT_S)

    def test_it_can_be_ended_while_a_keeper_does_not_answer(self):
        silent = self.create("--lifetime", "120s", "--name", "silent")
        for name, end, status in [("q", lambda client, fd: os.write(fd, b"q"), 0),
                                  ("Ctrl-C", lambda client, fd: os.write(fd, b"\x03"), 0),
                                  ("SIGTERM", lambda client, fd: client.terminate(), 128 + signal.SIGTERM)]:
            with self.subTest(name):
                client, fd = self.on_terminal()
                self.read_until(fd, b"silent")
                keeper = self.stop(silent)
                self.wait_until_it_asks(client)
                end(client, fd)
                self.assertEqual(client.wait(GONE_S), status)
                self.read_until(fd, END)
                os.kill(keeper, signal.SIGCONT)

    def test_one_that_does_not_answer_is_said_and_comes_back(self):
        box, silent = self.create("--lifetime", "120s"), self.create("--lifetime", "120s", "--name", "silent")
        client, fd = self.on_terminal()
        self.read_until(fd, b"silent")
        keeper = self.stop(silent)
        seen = self.read_until(fd, b" no answer", 2)
        self.assertIn(box[:13].encode(), seen.rsplit(b"SANDBOX", 1)[0])
        os.kill(keeper, signal.SIGCONT)
        after = self.read_until(fd, b"SANDBOX", 4)
        self.assertNotIn(b"no answer", after.rsplit(b"SANDBOX", 2)[1])
        os.write(fd, b"q")
        self.read_until(fd, END)
        self.assertEqual(client.wait(LIMIT_S), 0)

    def test_sandboxes_that_end_end_nothing(self):
        self.create("--lifetime", "120s", "--name", "stays")
        client, fd = self.on_terminal()
        self.read_until(fd, b"stays")
        for _ in range(12):
            self.good("rm", *[self.create("--lifetime", "120s") for _ in range(3)])
        self.read_until(fd, b"stays")
        self.assertIsNone(client.poll())
        os.write(fd, b"q")
        self.read_until(fd, END)
        self.assertEqual(client.wait(LIMIT_S), 0)

    def test_what_is_not_there_is_refused_on_a_terminal_too(self):
        client, fd = self.on_terminal("absent")
        seen = self.read_until(fd, b"no sandbox is called 'absent'")
        self.assertNotIn(b"\x1b", seen)
        self.assertEqual(client.wait(LIMIT_S), 125)

    def test_it_ends_when_what_was_named_is_gone(self):
        box = self.create("--lifetime", "120s")
        client, fd = self.on_terminal(box)
        self.read_until(fd, b"SANDBOX")
        self.good("rm", box)
        self.assertIn(b" gone", self.read_until(fd, END))
        self.assertEqual(client.wait(LIMIT_S), 0)

    def test_once_is_once_on_a_terminal_too(self):
        self.create("--lifetime", "120s")
        client, fd = self.on_terminal("--once")
        self.assertNotIn(b"\x1b", self.read_until(fd, b"SANDBOX"))
        self.assertEqual(client.wait(LIMIT_S), 0)


if __name__ == "__main__":
    unittest.main()
