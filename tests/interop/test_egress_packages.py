# SPDX-License-Identifier: Apache-2.0
"""What leaves a sandbox, by package managers: indexes that redirect to a second host for the packages, and an apt repository."""
import unittest

import egress_clients as clients
from egress_servers import NAMES, EgressTest, sandbox


class Packages(EgressTest):
    PARTS = ("packages",)

    def setUp(self):
        self.lab.packets()

    def pip(self, *allow):
        return sandbox(self.lab, allow, *clients.pip(), options=[clients.VENV])

    def npm(self, *allow):
        return sandbox(self.lab, allow, *clients.npm())

    def apt(self, source, *allow):
        return sandbox(self.lab, allow, *clients.apt(source))

    def does_not_leave(self, outcome, name):
        """Refused and told, also where the client (as pip of its index) says nothing of the host; without a packet to it."""
        found = self.is_refused(outcome, name)
        self.assertIn(f"atoll: refused: {name}", outcome.err)
        self.assertEqual({item["name"] for item in found}, {name})
        self.assertEqual([p for p in self.lab.packets() if p[0] in NAMES[name]], [])

    def test_pip_follows_to_a_second_listed_host(self):
        outcome = self.pip("index.test", "files.test")
        self.reaches(outcome, "from the index")
        self.assertEqual(outcome.refused, [])

    def test_pip_is_refused_at_a_second_host_that_is_not_listed(self):
        before = len(self.lab.asked())
        self.does_not_leave(self.pip("index.test"), "files.test")
        self.assertEqual({row[2] for row in self.lab.asked()[before:]}, {"index.test"})

    def test_pip_is_refused_at_an_index_that_is_not_listed(self):
        self.does_not_leave(self.pip("files.test"), "index.test")

    def test_npm_follows_to_a_second_listed_host(self):
        before = len(self.lab.asked())
        outcome = self.npm("registry.test", "tarballs.test")
        self.reaches(outcome, "from the registry")
        self.assertEqual(outcome.refused, [])
        self.assertIn("/@lab%2fthing", [row[3] for row in self.lab.asked()[before:]])  # as it was written

    def test_npm_is_refused_at_a_second_host_that_is_not_listed(self):
        self.does_not_leave(self.npm("registry.test"), "tarballs.test")

    def test_npm_is_refused_at_a_registry_that_is_not_listed(self):
        self.does_not_leave(self.npm("tarballs.test"), "registry.test")

    def test_apt_updates_and_downloads(self):
        for source, allow in (("http://deb.test/", "deb.test:80"), ("https://deb.test/", "deb.test")):
            with self.subTest(source):
                outcome = self.apt(source, allow)
                self.reaches(outcome, "from the repository")
                self.assertEqual(outcome.refused, [])

    def test_apt_is_refused_at_a_repository_that_is_not_listed(self):
        outcome = self.apt("http://other.test/", "deb.test:80")
        self.is_refused(outcome, "other.test")
        self.assertEqual(self.lab.packets(), [])


if __name__ == "__main__":
    unittest.main()
