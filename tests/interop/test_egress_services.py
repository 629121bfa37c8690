# SPDX-License-Identifier: Apache-2.0
"""What leaves a sandbox, by programs that are no web clients: ssh, git and psql, to OpenSSH, git http-backend and PostgreSQL."""
import unittest

import egress_clients as clients
from egress_servers import DB_PORT, NAME_SERVER, NAMES, SSH_PORT, EgressTest, sandbox

SSH, DB = f"git.test:{SSH_PORT}", f"db.test:{DB_PORT}"


class Services(EgressTest):
    PARTS = ("git", "ssh", "db")

    def shell(self, allow, script):
        return sandbox(self.lab, allow, "sh", "-c", script, options=clients.keys(self.lab), env=clients.GIT_ENV)

    def goes_nowhere(self, outcome, name, port=None):
        """It is refused without a packet; a listed name, of which another port was asked for, may be looked up."""
        self.is_refused(outcome, name, port)
        look_up = (NAME_SERVER, 53) if name in ("git.test", "db.test") else None
        self.assertEqual([p for p in self.lab.packets() if (p[0], p[2]) != look_up], [], outcome)

    def setUp(self):
        self.lab.packets()


class Ssh(Services):
    def test_a_command(self):
        outcome = self.shell([SSH], clients.ssh(self.lab, "git.test", "'cat; echo from $SSH_CONNECTION'") + " <<END\nline\nEND\n")
        self.reaches(outcome, "line\n", "from 172.31.0.1")
        self.assertEqual(outcome.refused, [])

    def test_much_both_ways(self):
        script = clients.ssh(self.lab, "git.test", "cat")
        outcome = self.shell([SSH], f"head -c 8000000 /dev/urandom >/tmp/data; {script} </tmp/data >/tmp/back; "
                                    "cmp /tmp/data /tmp/back && echo same")
        self.reaches(outcome, "same")

    def test_another_host_is_refused(self):
        self.goes_nowhere(self.shell([SSH], clients.ssh(self.lab, "other.test", "echo in")), "other.test")

    def test_another_port_of_the_host_is_refused(self):
        self.goes_nowhere(self.shell(["git.test"], clients.ssh(self.lab, "git.test", "echo in")), "git.test", SSH_PORT)

    def test_its_address_is_refused(self):
        address = NAMES["git.test"][0]
        self.goes_nowhere(self.shell([SSH], clients.ssh(self.lab, address, "echo in")), address, SSH_PORT)


class Git(Services):
    def test_clone_and_push(self):
        for how, allow in (("ssh", SSH), ("https", "git.test")):
            with self.subTest(how):
                outcome = self.shell([allow], clients.git_push(clients.git_url(self.lab, how), f"by-{how}"))
                self.reaches(outcome, "a repository", f"refs/heads/by-{how}")
                self.assertEqual(outcome.refused, [])

    def test_another_host_is_refused(self):
        for how in ("ssh", "https"):
            with self.subTest(how):
                outcome = self.shell([SSH, "git.test"], clients.git_clone(clients.git_url(self.lab, how, "other.test")))
                self.goes_nowhere(outcome, "other.test")

    def test_one_way_to_a_host_does_not_open_the_other(self):
        self.goes_nowhere(self.shell(["git.test"], clients.git_clone(clients.git_url(self.lab, "ssh"))), "git.test", SSH_PORT)
        self.goes_nowhere(self.shell([SSH], clients.git_clone(clients.git_url(self.lab, "https"))), "git.test", 443)


class Psql(Services):
    def psql(self, allow, *words):
        return sandbox(self.lab, allow, *clients.psql(*words))

    def test_plain_and_with_tls_asked_for_first(self):
        for mode, words in (("disable", "by plain TCP"), ("require", "by TLSv1.3"), ("prefer", "by TLSv1.3")):
            with self.subTest(mode):
                outcome = self.psql([DB], "db.test", mode)
                self.reaches(outcome, words)
                self.assertEqual(outcome.refused, [])

    def test_another_host_is_refused(self):
        for mode in ("disable", "require"):
            with self.subTest(mode):
                self.goes_nowhere(self.psql([DB], "other.test", mode), "other.test")

    def test_its_address_is_refused(self):
        address = NAMES["db.test"][0]
        self.goes_nowhere(self.psql([DB], address), address, DB_PORT)


if __name__ == "__main__":
    unittest.main()
