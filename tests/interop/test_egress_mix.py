# SPDX-License-Identifier: Apache-2.0
"""Twenty-four sandboxes at once, each with another client or another task, under allowlists; and every packet that left."""
import concurrent.futures
import unittest

import egress_clients as clients
from egress_servers import DB_PORT, NAME_SERVER, NAMES, SSH_PORT, EgressTest, sandbox

SSH, DB = f"git.test:{SSH_PORT}", f"db.test:{DB_PORT}"


class Mix(EgressTest):
    PARTS = ("web", "git", "ssh", "db", "packages")

    def tasks(self):
        """Of each task: its name, what it may reach, command, options, environment, and words of its output."""
        for name, client in clients.web_clients(self.lab).items():
            for scheme, host in (("https", "www.test"), ("http", "shop.test:80")):
                url = f"{scheme}://{host.partition(':')[0]}/"
                yield (f"{name} {scheme}", [host], client.command(url), client.options, client.env,
                       f"this is {host.partition(':')[0]} by {scheme}")
        keys, env = clients.keys(self.lab), clients.GIT_ENV
        ssh = clients.ssh(self.lab, "git.test", "echo by ssh")
        yield "ssh", [SSH], ["sh", "-c", ssh], keys, env, "by ssh"
        for how, allow in (("ssh", SSH), ("https", "git.test")):
            push = clients.git_push(clients.git_url(self.lab, how), f"mix-{how}")
            yield f"git {how}", [allow], ["sh", "-c", push], keys, env, f"refs/heads/mix-{how}"
        yield "psql", [DB], clients.psql("db.test", "disable"), [], {}, "by plain TCP"
        yield "psql with TLS", [DB], clients.psql("db.test", "require"), [], {}, "by TLSv1.3"
        yield "pip", ["index.test", "files.test"], clients.pip(), [clients.VENV], {}, "from the index"
        yield "npm", ["registry.test", "tarballs.test"], clients.npm(), [], {}, "from the registry"
        yield "apt", ["deb.test:80"], clients.apt(), [], {}, "from the repository"

    def test_all_succeed_and_no_packet_goes_elsewhere(self):
        tasks = list(self.tasks())
        self.assertEqual(len(tasks), 24)
        self.lab.packets()
        with concurrent.futures.ThreadPoolExecutor(len(tasks)) as pool:
            ended = [(task, pool.submit(sandbox, self.lab, task[1], *task[2], options=task[3], env=task[4])) for task in tasks]
        for (name, *_, words), future in ended:
            with self.subTest(name):
                self.reaches(future.result(), words)
        listed = {host.partition(":")[0] for task in tasks for host in task[1]}
        self.assertNotIn("other.test", listed)
        addresses = {address for name in listed for address in NAMES[name]}
        went = {p[0] for p in self.lab.packets()}
        self.assertEqual(went - addresses - {NAME_SERVER}, set())
        for name in listed:  # so nothing was overlooked either
            self.assertTrue(went & {*NAMES[name]}, name)
        self.assertEqual(self.lab.looked_up() - listed, set())


if __name__ == "__main__":
    unittest.main()
