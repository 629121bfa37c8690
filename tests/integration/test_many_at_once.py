# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes at once do not see or disturb one another."""
import subprocess
import unittest

import support

COUNT = 25


class ManyAtOnce(support.SandboxTest):
    def test_each_has_its_own_output_and_status(self):
        clients = [self.start("--", "sh", "-c", f"echo {n}; seq 1 20000; exit {n}") for n in range(COUNT)]
        rest = "".join(f"{n}\n" for n in range(1, 20001)).encode()
        for n, client in enumerate(clients):
            self.assertEqual(client.result(), support.Result(n, b"%d\n" % n + rest, b""))

    def test_all_live_at_the_same_time_and_see_only_themselves(self):
        script = "touch /tmp/mine; echo $(ls /tmp); read line"
        clients = [self.start("-i", "--", "sh", "-c", script, stdin=subprocess.PIPE) for _ in range(COUNT)]
        seen = {client.stdout.readline() for client in clients}
        self.assertEqual(seen, {b"mine\n"})
        self.assertEqual(len(support.inits()), COUNT)
        spaces = [frozenset(support.namespaces_of(client.keeper().pid)) for client in clients]
        self.assertEqual(set(spaces), {frozenset()})  # keepers stay on the host's side
        for client in clients:
            self.assertEqual(client.result(b"\n").status, 0)

    def test_all_may_be_killed_at_once(self):
        clients = [self.start("--", "sh", "-c", "echo ready; setsid sleep 1000 & sleep 1000") for _ in range(COUNT)]
        for client in clients:
            self.assertEqual(client.stdout.readline(), b"ready\n")
        for client in clients:
            client.kill()
        for client in clients:
            client.wait()
        self.assert_gone()

    def test_they_share_a_volume(self):
        folder = self.folder()
        clients = [
            self.start("--volume", f"{folder}:/workspace", "--", "sh", "-c", f"echo {n} > {n}; echo line >> all")
            for n in range(COUNT)
        ]
        for client in clients:
            self.assertEqual(client.result(), support.Result(0, b"", b""))
        self.assertEqual({path.name for path in folder.iterdir()}, {"all", *map(str, range(COUNT))})
        self.assertEqual((folder / "all").read_text(), "line\n" * COUNT)


if __name__ == "__main__":
    unittest.main()
