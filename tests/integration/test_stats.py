# SPDX-License-Identifier: Apache-2.0
"""What sandboxes use: as a table, as JSON, and on a terminal until somebody has seen enough."""
import os
import pty
import select
import signal
import time
import unittest

from support import LIMIT_S, HeldTest, wait_for

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
        waiting.kill()

    def test_processor_time_is_counted(self):
        box = self.create("--lifetime", "120s")
        burn = self.begin("exec", box, "--", "sh", "-c", "while :; do :; done")
        wait_for(lambda: (self.json("stats", box)["sandboxes"][0]["cpu_time"] or 0) >= 0.2, "CPU time", LIMIT_S)
        burn.kill()

    def test_what_is_not_there_is_refused(self):
        self.assert_refused(self.atoll("stats", "absent"), "no sandbox is called 'absent'")

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
