# SPDX-License-Identifier: Apache-2.0
"""What leaves a sandbox, by other people's web clients to nginx: the listed host is reached, another is not, and that is told."""
import unittest

from egress_clients import web_clients
from egress_servers import NAME_SERVER, OTHER4, SIX6, WWW4, EgressTest, sandbox

WWW = ["www.test", "www.test:80"]


class WebTest(EgressTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.clients = web_clients(cls.lab)

    def fetch(self, client, *urls, allow=WWW, options=()):
        client = self.clients[client]
        return sandbox(self.lab, allow, *client.command(*urls), options=[*client.options, *options], env=client.env)

    def goes_nowhere(self, outcome, name, port=None):
        """It is refused, and no packet was on its way to the other host."""
        self.is_refused(outcome, name, port)
        self.assertEqual([p for p in self.lab.packets() if p[0] == OTHER4], [], outcome)
        self.assertNotIn("this is other.test", outcome.out)


class Clients(WebTest):
    """Three things of each client, set by the loop below."""


def listed(name):
    def test(self):
        outcome = self.fetch(name, "https://www.test/", "http://www.test/")
        self.reaches(outcome, "this is www.test by https", "this is www.test by http")
        self.assertEqual(outcome.refused, [])
    return test


def listed_to_chromium(self):
    outcome = self.fetch("chromium", "https://www.test/")
    self.reaches(outcome, "this is www.test by https")
    # Hosts of its maker's are, which it asks for by itself.
    self.assertNotIn("www.test", {item["name"] for item in outcome.refused})


def unlisted(name):
    def test(self):
        self.lab.packets()
        outcome = self.fetch(name, "https://other.test/")
        if name == "chromium":  # which is content with any end; it sees no interface but `lo`, and calls that offline
            self.assertRegex(outcome.err, "Page load failed: net::ERR_(NAME_NOT_RESOLVED|INTERNET_DISCONNECTED)")
            outcome.status = 1
        self.goes_nowhere(outcome, "other.test")
        self.assertNotIn("other.test", self.lab.looked_up())
    return test


def address(name):
    def test(self):
        self.lab.packets()
        outcome = self.fetch(name, f"https://{OTHER4}/")
        if name == "chromium":
            self.assertIn("Page load failed: net::ERR_CONNECTION_REFUSED", outcome.err)
            outcome.status = 1
        self.goes_nowhere(outcome, OTHER4, 443)
    return test


for each in ("curl", "wget", "urllib", "requests", "node", "chromium", "go", "java"):
    setattr(Clients, f"test_{each}_reaches_a_listed_host", listed_to_chromium if each == "chromium" else listed(each))
    setattr(Clients, f"test_{each}_does_not_reach_an_unlisted_host", unlisted(each))
    setattr(Clients, f"test_{each}_does_not_reach_an_address", address(each))


class SharedEndpoint(WebTest):
    """Two names at one address of one nginx; one of them is listed."""

    def curl(self, *words, allow=WWW):
        return sandbox(self.lab, allow, "curl", "-sS", "--cacert", "/ca.pem", *words)

    def test_the_other_name_of_a_listed_address_is_refused_by_its_server_name(self):
        before = len(self.lab.asked())
        outcome = self.curl("--connect-to", "shop.test:443:www.test:443", "https://shop.test/")
        found = self.is_refused(outcome, "www.test", 443)
        self.assertEqual({item["protocol"] for item in found}, {"tls"})
        self.assertIn("shop.test", found[0]["reason"])
        self.assertEqual(self.lab.asked()[before:], [])

    def test_the_other_name_of_a_listed_address_is_refused_by_its_host(self):
        before = len(self.lab.asked())
        outcome = self.curl("-H", "Host: shop.test", "http://www.test/")
        found = self.is_refused(outcome, "www.test", 80)
        self.assertEqual({item["protocol"] for item in found}, {"http"})
        self.assertEqual(self.lab.asked()[before:], [])

    def test_chromium_is_refused_by_the_server_name_that_it_sends(self):
        client = self.clients["chromium"]
        *words, url = client.command("https://shop.test/")
        before = len(self.lab.asked())
        outcome = sandbox(self.lab, WWW, *words, "--host-resolver-rules=MAP shop.test www.test", url)
        self.assertNotIn("this is shop.test", outcome.out, outcome)
        self.assertIn("shop.test", "".join(item["reason"] for item in outcome.refused), outcome)
        self.assertEqual([row for row in self.lab.asked()[before:] if "shop.test" in row], [])

    def test_within_a_listed_server_name_another_host_can_be_asked_for(self):
        """What a design without an end of TLS cannot see; `inspect` is for that."""
        self.reaches(self.curl("-H", "Host: shop.test", "https://www.test/"), "this is shop.test by https")

    def test_both_names_are_reached_when_both_are_listed(self):
        self.reaches(self.curl("https://www.test/", "https://shop.test/", allow=["www.test", "shop.test"]),
                     "this is www.test by https", "this is shop.test by https")


class Names(WebTest):
    """Look-ups through dnsmasq."""

    def test_a_host_with_ipv6_alone(self):
        for name in ("curl", "go", "node"):
            with self.subTest(name):
                self.lab.packets()
                self.reaches(self.fetch(name, "https://six.test/", allow=["six.test"]), "this is six.test by https")
                self.assertEqual({p[0] for p in self.lab.packets() if p[2] == 443}, {SIX6})

    def test_a_resolver_of_the_spec_is_asked_instead_of_the_hosts_own(self):
        options = [f"--resolver={NAME_SERVER}"]
        hosts = self.lab.folder / "resolv.conf"
        before = hosts.read_text()
        hosts.write_text("nameserver 203.0.113.53\n")
        self.addCleanup(hosts.write_text, before)
        self.lab.packets()
        self.reaches(self.fetch("curl", "https://www.test/", options=options), "this is www.test by https")
        self.assertEqual({p[0] for p in self.lab.packets() if p[2] == 53}, {NAME_SERVER})

    def test_a_pinned_name_is_reached_without_a_look_up(self):
        self.lab.packets()
        self.reaches(self.fetch("curl", "http://www.test/", options=[f"--add-host=www.test={WWW4}"]), "this is www.test by http")
        self.assertEqual([p for p in self.lab.packets() if p[2] == 53], [])

    def test_a_listed_name_that_does_not_exist_is_told_as_such_and_not_as_refused(self):
        outcome = self.fetch("curl", "https://missing.test/", allow=["missing.test"])
        self.assertEqual((outcome.status, outcome.refused), (6, []), outcome)
        self.assertIn("missing.test", self.lab.looked_up())


if __name__ == "__main__":
    unittest.main()
