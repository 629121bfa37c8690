# SPDX-License-Identifier: Apache-2.0
"""Ways around names: addresses, protocols, socket options, namespaces. Each is refused, and no packet of it leaves."""
import json
import unittest

from egress_boxes import (BOTH, LISTED4, LISTED6, NAMES, OK4, OK6, OTHER4, OTHER6, PYTHON, RANGES, BoxTest)
from egress_lab import GREETING_PORT, HOST4, HOST6, SERVERS4, UDP_PORT

EGRESS_PORT = 64999  # of egress's listeners inside
HELLO4, HELLO6 = f"hello from ::ffff:{LISTED4}", f"hello from {LISTED6}"
REFUSED = "ECONNREFUSED"
METADATA = ("169.254.169.254", "::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::1", "fd00:ec2::254", "100.100.100.200",
            "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518")


class Protocols(BoxTest):
    """Sockets of other kinds than TCP and UDP."""

    def test_quic_is_refused_at_once(self):
        box = self.box(*BOTH)
        with self.nothing_leaves(SERVERS4):
            out = self.inside(box, """
names = [info[4][0] for info in socket.getaddrinfo("ok.test", 443, type=socket.SOCK_DGRAM)]
show([udp(where, 443) for where in names + sys.argv[1:]] + [len(names)])
""", OTHER4, OTHER6, OK4, OK6)
        self.assertEqual(out, ["EPERM"] * 6 + [2])
        self.assertIn(("udp", OTHER4, 443), self.told(box))

    def test_raw_and_packet_sockets(self):
        for user in ("0", "1000"):
            with self.subTest(user), self.nothing_leaves():
                out = self.inside(self.box(*BOTH, "--user", user), """
kinds = [(family, socket.SOCK_RAW, protocol) for family in (2, 10) for protocol in (0, 1, 2, 6, 17, 58, 255)]
kinds += [(17, kind, proto) for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, 10) for proto in (0, 0x0300, 0x0008)]
kinds += [(2, 10, 0x0300)]  # SOCK_PACKET
show([outcome(lambda: socket.socket(*kind)) for kind in kinds])
""")
                self.assertLessEqual(set(out), {"EPERM", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"})
                self.assertIn("EPERM", out)

    def test_icmp_echo(self):
        with self.nothing_leaves():
            out = self.inside(self.box(*BOTH), """
def ping(family, protocol, where):
    def call():
        with socket.socket(family, socket.SOCK_DGRAM, protocol) as s:
            s.settimeout(5)
            s.sendto(bytes([8 if protocol == 1 else 128]) + bytes(7), (where, 0))
            return len(s.recv(100))
    return outcome(call)
show([ping(2, 1, sys.argv[1]), ping(2, 1, sys.argv[2]), ping(10, 58, sys.argv[3]), ping(10, 58, sys.argv[4])])
""", OTHER4, LISTED4, OTHER6, LISTED6)
        self.assertLessEqual(set(out), {"EACCES", "EPERM"})

    def test_other_transports(self):
        """SCTP, UDP-Lite, DCCP, IGMP: to listed addresses neither, since a range lists TCP and UDP."""
        with self.nothing_leaves():
            out = self.inside(self.box(*BOTH), """
def attempt(where, kind, protocol):
    def call():
        with socket.socket(family_of(where), kind, protocol) as s:
            s.settimeout(3)
            s.connect((where, 443))
            s.send(b"x")
            s.recv(10)
            return "answered"
    return outcome(call)
kinds = {"sctp": (1, 132), "sctp packets": (5, 132), "udplite": (2, 136), "dccp": (6, 33), "igmp": (3, 2),
         "l2tp": (2, 115), "ip in ip": (3, 4), "gre": (3, 47), "smc": (1, 256)}
show({name: [attempt(where, *kind) for where in sys.argv[1:]] for name, kind in kinds.items()})
""", OTHER4, OTHER6, LISTED4, LISTED6)
        for name, answers in out.items():
            with self.subTest(name):
                for answer in answers:
                    self.assertIn(answer, ("EPERM", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EACCES", REFUSED, "EHOSTUNREACH"))

    def test_multipath_tcp_is_tcp(self):
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*BOTH), """
def attempt(where, port):
    def call():
        with socket.socket(family_of(where), socket.SOCK_STREAM, 262) as s:
            s.settimeout(10)
            s.connect((where, port))
            return s.recv(100).decode().strip()
    return outcome(call)
show([attempt(sys.argv[1], 80), attempt(sys.argv[2], 80), attempt(sys.argv[3], int(sys.argv[4]))])
""", OTHER4, OTHER6, LISTED4, GREETING_PORT)
        if out[0] not in ("EPROTONOSUPPORT", "EINVAL", "ENOPROTOOPT"):
            self.assertEqual(out, [REFUSED, REFUSED, HELLO4])

    def test_multicast_groups(self):
        """Joining sends a report; that goes nowhere either. Nothing connects to a group."""
        with self.nothing_leaves():
            out = self.inside(self.box(*BOTH), """
four, six = socket.socket(2, socket.SOCK_DGRAM), socket.socket(10, socket.SOCK_DGRAM)
lo = socket.if_nametoindex("lo")
join4 = socket.inet_aton("224.0.0.251") + socket.inet_aton("127.0.0.1")
join6 = socket.inet_pton(10, "ff02::fb") + struct.pack("@I", lo)
outcome(four.setsockopt, socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, join4)
outcome(six.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, join6)
four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 32)
four.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
show([outcome(four.sendto, b"x", (where, port)) for where in ("224.0.0.251", "239.255.255.250", "255.255.255.255")
      for port in (5353, 53)] +
     [outcome(six.sendto, b"x", (where, port, 0, lo)) for where in ("ff02::fb", "ff05::2", "ff0e::1")
      for port in (5353, 53)] +
     [tcp("224.0.0.251", 80), tcp("255.255.255.255", 80), tcp("ff02::fb%lo", 80)])
""")
        for answer in out:
            self.assertIn(answer, ("EPERM", "ENETUNREACH", "EACCES", REFUSED, "EINVAL", "EADDRNOTAVAIL"))

    def test_other_socket_families(self):
        """Those that reach past the network namespace (vsock), and those that load modules."""
        with self.nothing_leaves():
            out = self.inside(self.box(*BOTH), """
families = [3, 4, 5, 6, 8, 9, 15, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38,
            39, 40, 41, 42, 43, 44, 45]
show(sorted({outcome(socket.socket, family, kind) for family in families for kind in (1, 2, 3, 5)}))
""")
        self.assertEqual(out, ["EPERM"])

    def test_abstract_sockets_of_the_host(self):
        name = "atoll-lab-abstract"
        self.server(f"s = socket.socket(1); s.bind('\\0{name}'); s.listen(); show('up'); time.sleep(60)", "pid")
        seen = self.lab.run(PYTHON, "-c", f"import socket; socket.socket(1).connect('\\0{name}'); print('there')").stdout
        self.assertEqual(seen, "there\n")
        out = self.inside(self.box(*BOTH), f"show(outcome(socket.socket(1).connect, '\\0{name}'))")
        self.assertEqual(out, REFUSED)

    def test_io_uring_is_not_there(self):
        self.assertEqual(self.inside(self.box(*BOTH), """
show([syscall(number, 1, ctypes.create_string_buffer(256), 0, 0, 0, 0) for number in (425, 426, 427)])
"""), ["ENOSYS"] * 3)


class Configuration(BoxTest):
    """Changing the network from inside, as root there and as another user."""

    def test_netlink_changes_nothing(self):
        for user in ("0", "1000"):
            with self.subTest(user):
                out = self.inside(self.box(*BOTH, "--user", user), """
def request(kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.settimeout(5)
    s.send(struct.pack("=IHHII", 16 + len(body), kind, 5 | flags, 1, 0) + body)
    answer = s.recv(65536)
    return errno.errorcode.get(-struct.unpack("=i", answer[16:20])[0], "done")
lo = socket.if_nametoindex("lo")
address = lambda family, data: struct.pack("=HH", 4 + len(data), 1) + data
route = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack("=HHI", 8, 4, lo)
calls = {"new route": (24, 0x400, route), "delete route": (25, 0, route),
         "new address": (20, 0x400, struct.pack("=BBBBI", 2, 24, 0, 0, lo) + address(2, bytes([10, 1, 1, 1]))),
         "link down": (16, 0, struct.pack("=BBHiII", 0, 0, 0, lo, 0, 1)),
         "new link": (16, 0x600, struct.pack("=BBHiII", 0, 0, 0, 0, 0, 0) + struct.pack("=HH6s2x", 10, 3, b"dummy0")),
         "new rule": (32, 0x400, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 0, 0, 1, 0)),
         "delete rule": (33, 0, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 255, 0, 0, 1, 0)),
         "new neighbour": (28, 0x400, struct.pack("=BBHiHBB", 2, 0, 0, lo, 128, 0, 0) + address(2, bytes([10, 1, 1, 1]))),
         "namespace id": (88, 0, struct.pack("=B3x", 0)), "queue": (36, 0x400, struct.pack("=BBHiIII", 0, 0, 0, lo, 0, 0, 0))}
others = [outcome(socket.socket, socket.AF_NETLINK, 3, protocol) for protocol in range(1, 23)]
show([{name: outcome(request, *call) for name, call in calls.items()}, sorted(set(others))])
""")
                self.assertEqual(set(out[0].values()), {"EPERM"}, out[0])
                self.assertEqual(out[1], ["EPROTONOSUPPORT"])

    def test_interfaces_and_routes_by_ioctl(self):
        out = self.inside(self.box(*BOTH), """
s = socket.socket(2, socket.SOCK_DGRAM)
name = b"lo".ljust(16, bytes(1))
calls = {"SIOCSIFADDR": 0x8916, "SIOCSIFFLAGS": 0x8914, "SIOCSIFNETMASK": 0x891C, "SIOCSIFMTU": 0x8922,
         "SIOCSIFHWADDR": 0x8924, "SIOCSIFNAME": 0x8923, "SIOCADDRT": 0x890B, "SIOCDELRT": 0x890C,
         "SIOCSARP": 0x8955, "SIOCDARP": 0x8953, "SIOCBRADDBR": 0x89A0, "SIOCADDMULTI": 0x8931, "SIOCADDTUNNEL": 0x89F1}
def ioctl(number):
    fcntl.ioctl(s, number, name + struct.pack("=HH4s", 2, 0, bytes([10, 9, 9, 9])) + bytes(200))
show({n: outcome(ioctl, number) for n, number in calls.items()} |
     {"tun": outcome(os.open, "/dev/net/tun", os.O_RDWR), "ppp": outcome(os.open, "/dev/ppp", os.O_RDWR)})
""")
        for name, answer in out.items():
            with self.subTest(name):
                self.assertIn(answer, ("EPERM", "ENOENT", "EACCES", "ENOTTY", "ENOTSUP", "EINVAL"))
        for name in ("SIOCSIFADDR", "SIOCSIFFLAGS", "SIOCADDRT", "SIOCDELRT", "SIOCSARP"):
            self.assertEqual(out[name], "EPERM", name)

    def test_settings_in_proc_are_read_only(self):
        for user in ("0", "1000"):
            with self.subTest(user):
                out = self.inside(self.box(*BOTH, "--user", user), """
names = ["ipv4/ip_forward", "ipv4/ping_group_range", "ipv4/conf/all/route_localnet", "ipv4/conf/all/accept_source_route",
         "ipv4/ip_nonlocal_bind", "ipv4/ip_unprivileged_port_start", "ipv4/tcp_fastopen", "ipv6/conf/all/seg6_enabled",
         "ipv6/conf/all/forwarding", "ipv6/conf/all/disable_ipv6", "ipv4/conf/lo/rp_filter", "netfilter/nf_log_all_netns"]
def write(name):
    fd = os.open("/proc/sys/net/" + name, os.O_WRONLY)
    os.write(fd, b"1")
show({name: outcome(write, name) for name in names} | {"arp": outcome(os.open, "/proc/net/arp", os.O_WRONLY)})
""")
                self.assertLessEqual(set(out.values()), {"EROFS", "EACCES", "EPERM", "ENOENT"}, out)

    def test_a_second_namespace(self):
        """There is none, by any call; nor does process 1 or another descriptor lead to one."""
        for user in ("0", "1000"):
            with self.subTest(user):
                out = self.inside(self.box(*BOTH, "--user", user), """
NEWNET, NEWUSER, NEWNS, NEWPID = 0x40000000, 0x10000000, 0x20000, 0x20000000
def clone(flags):
    r = syscall("clone", flags | 17, 0, 0, 0, 0)
    if r == 0:
        os._exit(0)
    return r
fd = syscall("pidfd_open", 1, 0)
own = os.open("/proc/self/ns/net", os.O_RDONLY)
show({"unshare": [syscall("unshare", flags) for flags in (NEWNET, NEWUSER, NEWUSER | NEWNET, NEWNS, NEWPID)],
      "clone": [clone(flags) for flags in (NEWNET, NEWUSER, NEWUSER | NEWNET)],
      "clone3": syscall("clone3", ctypes.create_string_buffer(88), 88),
      "setns": [syscall("setns", f, flags) for f, flags in ((fd, NEWNET), (fd, NEWUSER), (own, 0), (own, NEWNET))],
      "process 1": outcome(os.open, "/proc/1/ns/net", os.O_RDONLY),
      "its descriptors": syscall("pidfd_getfd", fd, 3, 0)})
""")
                self.assertEqual(out["unshare"], ["EPERM"] * 5)
                self.assertEqual(out["clone"], ["EPERM"] * 3)
                self.assertEqual(out["clone3"], "ENOSYS")
                self.assertLessEqual(set(out["setns"]), {"EPERM", "ENOSYS"})
                self.assertIn(out["process 1"], ("EACCES", "EPERM"))
                self.assertEqual(out["its descriptors"], "EPERM")


class Options(BoxTest):
    """Options of sockets, and of IP."""

    def test_options_that_need_authority(self):
        out = self.inside(self.box(*BOTH), """
def option(family, level, name, value):
    return outcome(socket.socket(family, socket.SOCK_DGRAM).setsockopt, level, name, value)
show({"IP_TRANSPARENT": option(2, 0, 19, 1), "IPV6_TRANSPARENT": option(10, 41, 75, 1), "SO_MARK": option(2, 1, 36, 1),
      "SO_RCVMARK": option(2, 1, 75, 1), "SO_PRIORITY": option(2, 1, 12, 7), "SO_RCVBUFFORCE": option(2, 1, 33, 1 << 20),
      "IPV6_HOPOPTS": option(10, 41, 54, bytes(8)), "IPV6_DSTOPTS": option(10, 41, 59, bytes(8)),
      "IP_HDRINCL": option(2, 0, 3, 1), "IPT_SO_SET_REPLACE": option(2, 0, 64, bytes(100)),
      "TCP_REPAIR": outcome(socket.socket(2, 1).setsockopt, 6, 19, 1),
      "TCP_ULP": outcome(socket.socket(2, 1).setsockopt, 6, 31, b"espintcp")})
""")
        for name in ("IP_TRANSPARENT", "IPV6_TRANSPARENT", "SO_MARK", "SO_RCVBUFFORCE", "TCP_REPAIR", "IPV6_HOPOPTS",
                     "IPV6_DSTOPTS"):
            self.assertEqual(out[name], "EPERM", name)
        self.assertNotIn(out["IP_HDRINCL"], ("done", 0))
        self.assertNotIn(out["IPT_SO_SET_REPLACE"], ("done", 0))

    def test_choosing_interface_or_source_chooses_no_other_destination(self):
        with self.nothing_leaves(LISTED4, LISTED6):
            out = self.inside(self.box(*BOTH), """
other4, other6, listed4, port = sys.argv[1:5]
lo = socket.if_nametoindex("lo")
def bind(s, where, port):
    if s.family == 10:
        s.setsockopt(41, 78, 1)  # IPV6_FREEBIND
    s.bind((where, port))
prepare = {"SO_BINDTODEVICE": lambda s: s.setsockopt(1, 25, b"lo"), "SO_BINDTOIFINDEX": lambda s: s.setsockopt(1, 62, lo),
           "SO_DONTROUTE": lambda s: s.setsockopt(1, 5, 1),
           "IP_FREEBIND": lambda s: (s.setsockopt(0, 15, 1), s.bind(("10.9.8.7", 0))) if s.family == 2 else None,
           "a foreign source": lambda s: bind(s, "10.9.8.7" if s.family == 2 else "2a09::7", 0),
           "the destination as source": lambda s: bind(s, other4 if s.family == 2 else other6, 0),
           "a listed source": lambda s: s.bind((listed4, 0)) if s.family == 2 else None,
           "another loopback source": lambda s: s.bind(("127.6.5.4", 0)) if s.family == 2 else None,
           "a low port": lambda s: s.bind(("", 53)), "port 443": lambda s: s.bind(("", 443))}
show({name: [tcp(other4, 80, prepare=p), tcp(other6, 80, prepare=p), udp(other4, 443, prepare=p), udp(other6, 443, prepare=p)]
      for name, p in prepare.items()} |
     {"no interface": outcome(socket.socket(2, 1).setsockopt, 1, 25, b"eth0")})
""", OTHER4, OTHER6, LISTED4, GREETING_PORT)
        self.assertEqual(out.pop("no interface"), "ENODEV")
        for name, answers in out.items():
            with self.subTest(name):
                self.assertLessEqual(set(answers[:2]), {REFUSED, "EACCES"}, name)
                self.assertLessEqual(set(answers[2:]), {"EPERM", "EACCES"}, name)

    def test_listed_addresses_from_chosen_sources(self):
        """From loopback, whatever its address, they are reached; from a source that is not loopback nothing is."""
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*BOTH), """
where, port, echo = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
source = lambda address, port=0: lambda s: s.bind((address, port))
show([tcp(where, port, prepare=source("127.0.0.1")), tcp(where, port, prepare=source("127.6.5.4")),
      tcp(where, port, prepare=source("", 1023)), udp(where, echo, prepare=source("127.6.5.4")),
      udp(where, echo, prepare=source("", 1022)), udp(where, echo, prepare=source("10.9.8.7"), wait=0.5)])
""", LISTED4, GREETING_PORT, UDP_PORT)
        self.assertEqual(out[:5], [HELLO4, HELLO4, HELLO4, 4, 4])
        self.assertIn(out[5], ("TimeoutError", "EPERM", REFUSED))

    def test_source_routes(self):
        """Neither the first hop nor the last may be an address that is not listed."""
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*BOTH), """
other, listed = socket.inet_aton(sys.argv[1]), socket.inet_aton(sys.argv[2])
def attempt(kind, via, to, stream):
    def call():
        s = socket.socket(2, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
        s.settimeout(1)
        s.setsockopt(0, 4, bytes([kind, 7, 4]) + via + bytes([0]))  # IP_OPTIONS
        s.connect((socket.inet_ntoa(to), 80 if stream else 443))
        if not stream:
            s.send(b"x")
        return len(s.recv(100))
    return outcome(call)
show([attempt(kind, via, to, stream) for kind in (131, 137) for stream in (True, False)
      for via, to in ((listed, other), (other, listed))])
""", OTHER4, LISTED4)
        for answer in out:
            self.assertIn(answer, (REFUSED, "EPERM", "TimeoutError", "EINVAL", "EHOSTUNREACH", "ENETUNREACH"))

    def test_other_ip_options(self):
        with self.nothing_leaves():
            out = self.inside(self.box(*BOTH), """
options = {"record route": bytes([7, 7, 4]) + bytes(5), "timestamp": bytes([68, 8, 5, 0]) + bytes(4),
           "router alert": bytes([148, 4, 0, 0]), "security": bytes([134, 4, 0, 0]), "unknown": bytes([94, 4, 0, 0])}
def attempt(option, stream):
    p = lambda s: s.setsockopt(0, 4, option)
    return tcp(sys.argv[1], 80, prepare=p) if stream else udp(sys.argv[1], 443, prepare=p)
show({name: [attempt(option, True), attempt(option, False)] for name, option in options.items()})
""", OTHER4)
        for name, answers in out.items():
            with self.subTest(name):
                self.assertIn(answers[0], (REFUSED, "EPERM", "EINVAL"))
                self.assertIn(answers[1], ("EPERM", "EINVAL"))

    def test_routing_headers_of_ipv6(self):
        with self.nothing_leaves(LISTED6):
            out = self.inside(self.box(*BOTH), """
other, listed = (socket.inet_pton(10, a) for a in sys.argv[1:3])
def header(kind, via):
    if kind == 4:  # RFC 8754
        return bytes([0, 4, 4, 1, 1, 0, 0, 0]) + bytes(16) + via
    return bytes([0, 2, kind, 1, 0, 0, 0, 0]) + via
def attempt(kind, via, to, stream):
    def call():
        s = socket.socket(10, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
        s.settimeout(1)
        s.setsockopt(41, 57, header(kind, via))  # IPV6_RTHDR
        s.connect((socket.inet_ntop(10, to), 80 if stream else 443))
        if not stream:
            s.send(b"x")
        return len(s.recv(100))
    return outcome(call)
show([attempt(kind, via, to, stream) for kind in (0, 2, 4) for stream in (True, False)
      for via, to in ((listed, other), (other, listed))])
""", OTHER6, LISTED6)
        for answer in out:
            self.assertIn(answer, (REFUSED, "EPERM", "TimeoutError", "EINVAL", "EHOSTUNREACH", "ENETUNREACH", "EACCES"))

    def test_fast_open(self):
        """Data in the SYN: refused before it, and good where the address is listed."""
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*BOTH), """
def fast(where, port):
    def call():
        s = socket.socket(family_of(where), socket.SOCK_STREAM)  # one with a timeout does not wait for the SYN
        s.sendto(b"early", 0x20000000, (where, port))  # MSG_FASTOPEN
        got = b""
        while not got.endswith(b"early"):
            more = s.recv(100)
            if not more:
                break
            got += more
        return got.decode()
    return outcome(call)
def later(where, port):
    return tcp(where, port, b"early", lambda s: s.setsockopt(6, 30, 1))  # TCP_FASTOPEN_CONNECT
other4, other6, listed4, port = sys.argv[1:4] + [int(sys.argv[4])]
show([fast(other4, 80), fast(other6, 80), later(other4, 80), fast(listed4, port), later(listed4, port)])
""", OTHER4, OTHER6, LISTED4, GREETING_PORT)
        self.assertEqual(out[:3], [REFUSED] * 3)
        self.assertEqual(out[3], HELLO4 + "\nearly")
        self.assertTrue(out[4].startswith(HELLO4), out[4])

    def test_simultaneous_open_and_connecting_to_oneself(self):
        with self.nothing_leaves():
            out = self.inside(self.box(*BOTH), """
def anywhere(family):
    s = socket.socket(family)
    if family == 10:
        s.setsockopt(41, 78, 1)  # IPV6_FREEBIND
    return s
def meet(a, b):
    def call():
        one, two = (anywhere(family_of(a[0])) for _ in "12")
        one.bind(a), two.bind(b)
        one.setblocking(False), two.setblocking(False)
        first = errno.errorcode.get(one.connect_ex(b), "done")
        second = errno.errorcode.get(two.connect_ex(a), "done")
        time.sleep(0.2)
        return [first, second, one.getsockopt(1, 4), two.getsockopt(1, 4)]
    return outcome(call)
other4, other6 = sys.argv[1:3]
show([meet((other4, 4001), (other4, 4002)), meet((other6, 4001), (other6, 4002)),
      tcp(other4, 4003, prepare=lambda s: s.bind((other4, 4003))), 
      tcp(other6, 4003, prepare=lambda s: (s.setsockopt(41, 78, 1), s.bind((other6, 4003))))])
""", OTHER4, OTHER6)
        self.assertEqual(out[2:], [REFUSED] * 2)
        for pair in out[:2]:
            self.assertNotIn("done", pair)


class Datagrams(BoxTest):
    def test_a_socket_that_was_connected_goes_no_further(self):
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*BOTH), """
other, listed, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.socket(2, socket.SOCK_DGRAM)
s.settimeout(10)
results = []
s.connect((listed, port))
s.send(b"1")
results.append(len(s.recv(10)))
results.append(outcome(s.sendto, b"2", (other, port)))
unspecified = struct.pack("=H14x", 0)
results.append(libc.connect(s.fileno(), unspecified, 16))
results.append(outcome(s.sendto, b"3", (other, port)))
results.append(outcome(s.connect, (other, port)))
results.append(outcome(s.send, b"4"))
s.connect((listed, port))
results.append(outcome(s.sendmsg, [b"5"], [], 0, (other, port)))
s.send(b"6", socket.MSG_MORE)
results.append(outcome(s.sendto, b"7", (other, port)))  # what is begun goes where it was begun to
results.append(len(s.recv(10)))
show(results)
""", OTHER4, LISTED4, UDP_PORT)
        self.assertEqual(out[:6], [1, "EPERM", 0, "EPERM", "done", "EPERM"])
        self.assertIn(out[6], ("EPERM", "EHOSTUNREACH"))  # or what became of the one before
        self.assertIn(out[7:], ([1, 2], ["EPERM", 1]))

    def test_sizes(self):
        """From nothing to the largest; cut by GSO, and into fragments."""
        with self.nothing_leaves(LISTED4, LISTED6):
            out = self.inside(self.box(*BOTH), """
other6, listed4, listed6, port = sys.argv[1:4] + [int(sys.argv[4])]
results = [udp(where, port, bytes(n)) for where in (listed4, listed6) for n in (0, 1, 1472, 9000, 65000)]
small = lambda s: s.setsockopt(41, 24, 1280)  # IPV6_MTU: what is larger goes in fragments
results += [udp(listed6, port, bytes(20000), small), udp(other6, port, bytes(20000), small)]
s = socket.socket(2, socket.SOCK_DGRAM)
s.settimeout(10)
s.setsockopt(17, 103, 1000)  # UDP_SEGMENT
s.connect((listed4, port))
s.send(bytes(4500))
results.append(sorted(len(s.recv(65536)) for _ in range(5)))
s.connect((sys.argv[5], port))
results.append(outcome(s.send, bytes(4500)))
show(results)
""", OTHER6, LISTED4, LISTED6, UDP_PORT, OTHER4)
        self.assertEqual(out[:10], [0, 1, 1472, 9000, 65000] * 2)
        self.assertEqual(out[10], 20000)
        self.assertIn(out[11], ("EPERM", "EMSGSIZE"))
        self.assertEqual(out[12:], [[500, 1000, 1000, 1000, 1000], "EPERM"])

    def test_port_53_leads_to_the_resolver_or_nowhere(self):
        """With names the resolver answers for every address but those of a range, which are asked themselves."""
        ask = """
query = struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\\2no\\4test\\0" + struct.pack("!HH", 1, 1)
def code(where):
    def call():
        s = socket.socket(family_of(where), socket.SOCK_DGRAM)
        s.settimeout(10)
        s.connect((where, 53))
        s.send(query)
        return s.recv(512)[3] & 15
    return outcome(call)
show([code(where) for where in sys.argv[1:]])
"""
        self.server(f"""
s = socket.socket(2, socket.SOCK_DGRAM)
s.bind(("{LISTED4}", 53))
show("up")
while True:
    query, peer = s.recvfrom(512)
    s.sendto(query[:2] + bytes([0x81, 0x85]) + query[4:], peer)
""")
        self.lab.questions()
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*BOTH), ask, OTHER4, OTHER6, HOST4, "10.0.0.1", "169.254.169.253", LISTED4)
            self.assertEqual(out, [3] * 5 + [5])
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*RANGES), ask, OTHER4, OTHER6, HOST4, LISTED4)
            self.assertEqual(out, ["EPERM"] * 3 + [5])
        self.assertEqual(self.lab.questions(), [])


class Addresses(BoxTest):
    names = NAMES | {"pool.test": [OK4]}

    def listener(self, port):
        """On the lab host, at every address; prints whatever comes to it."""
        return self.server(f"""
s = socket.create_server(("::", {port}), family=10, dualstack_ipv6=True)
u = socket.socket(10, socket.SOCK_DGRAM)
u.bind(("::", {port}))
show("up")
def datagrams():
    while True:
        show(["udp", u.recvfrom(100)[1][0]])
threading.Thread(target=datagrams, daemon=True).start()
while True:
    conn, peer = s.accept()
    show(["tcp", peer[0]])
    conn.sendall(b"host")
    conn.close()
""", "pid")

    def came(self, process):
        """What a listener has printed since."""
        process.kill()
        return process.stdout.read()

    def test_mapped_and_embedded_addresses(self):
        """A mapped address is the IPv4 one. Other forms that carry it are IPv6 addresses, which a range must list."""
        with self.nothing_leaves(LISTED4):
            out = self.inside(self.box(*BOTH), """
other, listed, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
hexed = lambda a: "%02x%02x:%02x%02x" % tuple(socket.inet_aton(a))
show([tcp("::ffff:" + listed, port), tcp("::ffff:" + other, port), udp("::ffff:" + other, 443),
      tcp("::" + listed, port), tcp("64:ff9b::" + hexed(listed), port), tcp("2002:" + hexed(listed) + "::1", port),
      tcp("2001:0:" + hexed(listed) + "::1", port), tcp("::ffff:0:" + hexed(listed), port)])
""", OTHER4, LISTED4, GREETING_PORT)
        self.assertEqual(out, [HELLO4, REFUSED, "EPERM"] + [REFUSED] * 5)

    def test_ranges_of_transition_addresses_carry_only_what_may_be_reached(self):
        blocks = ("64:ff9b::5db8:0/112", "64:ff9b::a00:0/104", "64:ff9b::a9fe:0/112", "64:ff9b::7f00:0/104",
                  "64:ff9b::ac1f:0/112", "2002:5db8::/32", "2002:a00::/24", "2002:7f00::/24", "2002:a9fe::/32")
        options = [word for block in blocks for word in ("--allow-cidr", block)]
        good = ("64:ff9b::5db8:d70e", "2002:5db8:d70e::1")
        bad = ("64:ff9b::a00:5", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::ac1f:1", "2002:a00:5::1",
               "2002:7f00:1::1", "2002:a9fe:a9fe::1")
        with self.nothing_leaves(*good):
            out = self.inside(self.box(*options), "show([tcp(a, int(sys.argv[1])) for a in sys.argv[2:]])",
                              GREETING_PORT, *bad, *good)
        self.assertLessEqual(set(out[: len(bad)]), {REFUSED, "ECONNRESET"}, out)
        self.assertEqual(out[len(bad) :], [f"hello from {a}" for a in good])

    def test_the_hosts_own_addresses_are_reached_in_no_form(self):
        listener = self.listener(2301)
        for options in (BOTH, ("--open-network",), ("--open-network", "--allow-private", "10.0.0.0/8")):
            with self.subTest(options), self.nothing_leaves():
                out = self.inside(self.box(*options), """
show([[tcp(a, 2301), udp(a, 2301, wait=1)] for a in sys.argv[1:]])
""", HOST4, HOST6, f"::ffff:{HOST4}", f"::{HOST4}", "127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::",
                                  "64:ff9b::ac1f:1", "64:ff9b::7f00:1", "2002:ac1f:1::1")
                for stream, datagram in out:
                    self.assertIn(stream, (REFUSED, "ECONNRESET"))
                    self.assertIn(datagram, ("EPERM", REFUSED))
        self.assertEqual(self.came(listener), b"")

    def test_an_address_that_the_host_has_for_itself_only(self):
        """It looks public, and no range lists it."""
        self.lab.run("ip", "address", "add", "203.0.114.9/32", "dev", "lo")
        self.addCleanup(self.lab.run, "ip", "address", "del", "203.0.114.9/32", "dev", "lo")
        listener = self.listener(2302)
        box = self.box("--open-network")
        out = self.inside(box, "show([tcp(sys.argv[1], 2302), udp(sys.argv[1], 2302, wait=1)])", "203.0.114.9")
        self.assertEqual(out, ["ECONNRESET", REFUSED])
        self.assertEqual(self.came(listener), b"")
        self.assertIn(("tcp", "203.0.114.9", 2302), self.told(box))

    def test_the_listeners_of_egress_inside(self):
        """They answer nobody who comes to them straight."""
        with self.nothing_leaves():
            out = self.inside(self.box(*BOTH), """
port = int(sys.argv[1])
show([tcp(a, port, b"GET / HTTP/1.1\\r\\nHost: ok.test\\r\\n\\r\\n") for a in ("127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1")] +
     [udp(a, port, wait=0.5) for a in ("127.0.0.1", "127.1.2.3", "::1")] +
     [outcome(lambda: socket.create_server(("127.0.0.1", port))), outcome(lambda: socket.socket(2, 2).bind(("127.0.0.1", port)))])
""", EGRESS_PORT)
        self.assertLessEqual(set(out[:4]), {REFUSED, "ECONNRESET"}, out)
        self.assertLessEqual(set(out[4:7]), {REFUSED, "TimeoutError"}, out)
        self.assertEqual(out[7:], ["EADDRINUSE"] * 2)

    def test_servers_inside_cannot_stand_in_for_real_ones(self):
        """Bound to the very address and port, or to all of them: who connects to a listed address reaches it."""
        box = self.box(*BOTH, "--allow", "ok.test:80")
        for places in ("one", "all"):
            with self.subTest(places), self.nothing_leaves(LISTED4, LISTED6, OK4, OK6, SERVERS4):
                out = self.inside(box, """
listed4, listed6, port, echo = sys.argv[1:3] + [int(n) for n in sys.argv[3:5]]
name = [info[4][0] for info in socket.getaddrinfo("ok.test", port, type=1)]
came = []
def serve(s):
    while True:
        if s.type == socket.SOCK_STREAM:
            conn, _ = s.accept()
            conn.sendall(b"a guest")
            conn.close()
        else:
            came.append(s.recvfrom(100)[1][0])
def bind(where, p, kind):
    s = socket.socket(family_of(where), kind)
    s.setsockopt(1, 2, 1)  # SO_REUSEADDR
    if s.family == 10:
        s.setsockopt(41, 26, 1)  # IPV6_V6ONLY
        s.setsockopt(41, 78, 1)  # IPV6_FREEBIND
    s.bind((where, p))
    if kind == socket.SOCK_STREAM:
        s.listen()
    threading.Thread(target=serve, args=(s,), daemon=True).start()
places = ("127.0.0.1", listed4, listed6, *name) if sys.argv[5] == "one" else ("0.0.0.0", "::")
bound = {(where, p, kind): outcome(bind, where, p, kind) for where in places for p in (port, 80, 443, 53, echo)
         for kind in (1, 2)}
show([[str(k) for k, v in bound.items() if v != "done"], tcp(listed4, port), tcp(listed6, port), tcp("ok.test", port),
      tcp(name[-1], port), udp(listed4, echo), udp(listed6, echo), tcp("127.0.0.1", port), came,
      outcome(socket.getaddrinfo, "no.test", 80), tcp("ok.test", 80, b"GET / HTTP/1.0\\r\\nHost: ok.test\\r\\n\\r\\n")[:12]])
""", LISTED4, LISTED6, GREETING_PORT, UDP_PORT, places)
                self.assertEqual(out[0], [])
                self.assertEqual(out[1:3], [HELLO4, HELLO6])
                for answer in out[3:5]:
                    self.assertIn(answer, (f"hello from ::ffff:{OK4}", f"hello from {OK6}"))
                self.assertEqual(out[5:9], [4, 4, "a guest", []])
                self.assertIn(out[9], ("EAI_NONAME", "gaierror"))
                self.assertEqual(out[10], "HTTP/1.1 200")

    def test_metadata_addresses_in_every_form(self):
        for options in (BOTH, ("--open-network",), ("--open-network", "--allow-private", "10.0.0.0/8")):
            with self.subTest(options), self.nothing_leaves():
                out = self.inside(self.box(*options), """
def attempt(text):
    def call():
        return [tcp(info[4][0], 80, b"GET / HTTP/1.0\\r\\n\\r\\n")
                for info in socket.getaddrinfo(text, 80, type=1, flags=socket.AI_NUMERICHOST)]
    return outcome(call)
show([attempt(text) for text in sys.argv[1:]])
""", *METADATA)
                for form, answers in zip(METADATA, out):
                    self.assertIn(answers, ([REFUSED], ["ECONNRESET"]), form)

    def test_ranges_are_exact_to_the_address(self):
        box = self.box("--allow-cidr", "45.33.32.0/24", "--allow-cidr", "45.33.32.128/25", "--allow-cidr", "45.33.33.7/32",
                       "--allow-cidr", "2a01:7e00::5/128", "--allow-cidr", "10.1.0.0/30")
        good = ("45.33.32.0", "45.33.32.127", "45.33.32.128", "45.33.32.255", "45.33.33.7", "2a01:7e00::5", "10.1.0.3")
        bad = ("45.33.31.255", "45.33.33.0", "45.33.33.6", "45.33.33.8", "2a01:7e00::4", "2a01:7e00::6", "10.1.0.4",
               "10.0.255.255")
        with self.nothing_leaves(*good):
            out = self.inside(box, "show([tcp(a, int(sys.argv[1])) for a in sys.argv[2:]])", GREETING_PORT, *good, *bad)
        self.assertEqual(out[: len(good)], [f"hello from {a if ':' in a else '::ffff:' + a}" for a in good])
        self.assertEqual(out[len(good) :], [REFUSED] * len(bad))

    def test_a_range_that_holds_the_usual_pool(self):
        """The names' addresses come from elsewhere, so that both stay what they are."""
        box = self.box("--allow", f"pool.test:{GREETING_PORT}", "--allow-cidr", "198.18.0.0/15")
        out = self.inside(box, """
port = int(sys.argv[1])
show([sorted({info[4][0] for info in socket.getaddrinfo("pool.test", port, socket.AF_INET)}),
      tcp("pool.test", port), tcp("198.18.0.9", port), tcp("198.19.255.255", port), tcp(sys.argv[2], port)])
""", GREETING_PORT, OTHER4)
        self.assertFalse(out[0][0].startswith(("198.18.", "198.19.")), out[0])
        self.assertEqual(out[1:], [f"hello from ::ffff:{OK4}", "hello from ::ffff:198.18.0.9",
                                   "hello from ::ffff:198.19.255.255", REFUSED])

    def test_hosts_and_ranges_do_not_lend_each_other_ports_or_addresses(self):
        with self.nothing_leaves(SERVERS4):
            out = self.inside(self.box(*BOTH), """
name, port = [i[4][0] for i in socket.getaddrinfo("ok.test", 443, type=1)], int(sys.argv[1])
show([tcp(a, 8080) for a in name] + [udp(a, port) for a in name] + [tcp(a, port) for a in sys.argv[2:]])
""", GREETING_PORT, OK4, OK6, OTHER4, OTHER6)
        self.assertEqual(out, [REFUSED] * 2 + ["EPERM"] * 2 + [REFUSED] * 4)


class Rebinding(BoxTest):
    names = NAMES | {"rebind.test": [OK4]}

    def tearDown(self):
        self.lab.set_names({"rebind.test": [OK4]})

    def changed(self, options, addresses, port):
        """A connection to what rebind.test was, when it has become something else since."""
        self.lab.set_names({"rebind.test": [OK4]})
        process = self.begin(self.create(*options), """
where = socket.getaddrinfo("rebind.test", int(sys.argv[1]), type=1)[0][4][0]
show(where)
sys.stdin.readline()
show([tcp(where, int(sys.argv[1])), tcp("rebind.test", int(sys.argv[1]))])
""", port)
        process.stdout.readline()
        self.lab.set_names({"rebind.test": addresses})
        out, err = process.communicate(b"go\n", 60)
        self.assertEqual(process.returncode, 0, err)
        return json.loads(out)

    def test_a_name_that_becomes_the_hosts(self):
        listener = self.server("""
s = socket.create_server(("::", 2303), family=10, dualstack_ipv6=True)
show("up")
while True:
    conn, _ = s.accept()
    show("came")
    conn.close()
""", "pid")
        for options in (("--open-network",), ("--allow", "rebind.test:2303")):
            for addresses in ([HOST4], ["127.0.0.1"], [HOST6], [f"::ffff:{HOST4}"], ["0.0.0.0"]):
                with self.subTest((options, addresses)):
                    for answer in self.changed(options, addresses, 2303):
                        self.assertIn(answer, ("ECONNRESET", REFUSED, "gaierror", "EAI_NONAME", "EAI_NODATA", "EAI_AGAIN"))
        listener.kill()
        self.assertEqual(listener.stdout.read(), b"")

    def test_a_name_that_becomes_metadata(self):
        for options in (("--open-network",), ("--allow", f"rebind.test:{GREETING_PORT}")):
            with self.subTest(options), self.nothing_leaves(OK4, SERVERS4):
                for answer in self.changed(options, ["169.254.169.254"], GREETING_PORT):
                    self.assertIn(answer, (f"hello from ::ffff:{OK4}", "ECONNRESET", REFUSED, "gaierror", "EAI_NONAME",
                                           "EAI_NODATA"))


class Processes(BoxTest):
    def test_an_allowed_connection_is_handed_to_another_process(self):
        out = self.inside(self.box(*BOTH), """
ours, theirs = socket.socketpair()
if os.fork() == 0:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    socket.send_fds(ours, [b"x"], [s.fileno()])
    os._exit(0)
fd = socket.recv_fds(theirs, 1, 1)[1][0]
s = socket.socket(fileno=fd)
show([s.recv(100).decode().strip(), outcome(s.connect, (sys.argv[3], 80))])
""", LISTED4, GREETING_PORT, OTHER4)
        self.assertEqual(out, [HELLO4, "EISCONN"])

    def test_what_stays_behind_is_held_to_the_same(self):
        """A child of vfork in a session of its own, whose parents are gone."""
        box = self.box(*BOTH)
        script = PYTHON + " -c 'import socket, time\n" + f"""
time.sleep(0.5)
s = socket.socket()
r = s.connect_ex(("{OTHER4}", 4444))
open("/tmp/outcome", "w").write(str(r))
'"""
        with self.nothing_leaves():
            self.atoll("exec", "--detach", box, "--", "setsid", "sh", "-c", f"({script} &) ; exit 0")
            out = self.inside(box, """
for _ in range(300):
    if os.path.exists("/tmp/outcome") and open("/tmp/outcome").read():
        break
    time.sleep(0.1)
show(errno.errorcode[int(open("/tmp/outcome").read())])
""")
        self.assertEqual(out, REFUSED)
        self.assertIn(("tcp", OTHER4, 4444), self.told(box))


if __name__ == "__main__":
    unittest.main()
