# SPDX-License-Identifier: Apache-2.0
"""What a command can see and do: what is meant for it, and nothing of the host."""
import fnmatch
import os
import socket
import subprocess
import unittest
from pathlib import Path

import support

ROOT_ENTRIES = {"bin", "dev", "etc", "home", "lib", "lib64", "proc", "root", "run", "sbin", "tmp", "usr", "var",
                "workspace"}
ETC_OF_THE_HOST = (
    "alternatives", "ld.so.cache", "ld.so.conf*", "ssl", "ca-certificates", "pki", "localtime", "mime.types",
    "services", "protocols", "python3*", "java-*", "perl", "fonts", "chromium.d",
)
ETC_MADE = {"group", "hostname", "hosts", "machine-id", "nsswitch.conf", "passwd", "resolv.conf"}
DEVICES = {"fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom",
           "zero"}

# Tries each statement of the list, and tells the name of the error that it ends with.
TRY = """
import ctypes, errno, fcntl, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
for line in {lines!r}:
    try:
        exec(line)
    except OSError as error:
        print(errno.errorcode.get(error.errno, error.errno))
    else:
        print("ok")
"""


class ViewTest(support.SandboxTest):
    def outcomes(self, lines, *options, **how):
        """What came of each Python statement inside: "ok", or the name of an error."""
        return self.python_output_of(TRY.replace("{lines!r}", repr(lines)), *options, **how).split()

    def assert_refused_inside(self, lines, *options, allowed=("EPERM", "EACCES", "EROFS")):
        found = dict(zip(lines, self.outcomes(lines, *options)))
        self.assertEqual({line: word for line, word in found.items() if word not in allowed}, {})


class Files(ViewTest):
    def test_the_root_holds_exactly_what_is_meant_for_it(self):
        self.assertLessEqual(set(self.output_of("ls -A /").split()), ROOT_ENTRIES)
        missing = ROOT_ENTRIES - set(self.output_of("ls -A /").split())
        self.assertEqual([name for name in missing if name not in ("lib64",) or Path("/lib64").exists()], [])

    def test_etc_holds_exactly_what_is_meant_for_it(self):
        wanted = {
            name for name in os.listdir("/etc")
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in ETC_OF_THE_HOST) and Path("/etc", name).exists()
        }
        self.assertEqual(set(self.output_of("ls -A /etc").split()), wanted | ETC_MADE)

    def test_private_keys_are_not_in_it(self):
        if not os.path.isdir("/etc/ssl/private"):
            self.skipTest("this host has no /etc/ssl/private")
        result = self.sh("ls -A /etc/ssl/private; echo x > /etc/ssl/private/x")
        self.assertEqual(result.out, b"")
        self.assertIn(b"Read-only file system", result.err)

    def test_what_etc_tells_is_made_up(self):
        self.assertEqual(self.output_of("cut -d: -f1 /etc/passwd").split(), ["root", "nobody"])
        self.assertEqual(self.output_of("cat /etc/hostname; hostname"), "sandbox\nsandbox\n")
        self.assertEqual(self.output_of("cat /etc/hostname; hostname", "--hostname", "box-1"), "box-1\nbox-1\n")
        self.assertIn("127.0.0.1 localhost", self.output_of("cat /etc/hosts"))

    def test_machine_ids_differ(self):
        found = {self.output_of("cat /etc/machine-id") for _ in range(3)}
        self.assertEqual(len(found), 3)
        for text in found:
            self.assertRegex(text, "^[0-9a-f]{32}\n$")
        host = Path("/etc/machine-id")
        if host.exists():
            self.assertNotIn(host.read_text(), found)

    def test_folders_of_the_hosts_people_are_empty(self):
        self.assertEqual(self.output_of("ls -A /home /root /run /tmp /var/tmp /workspace /dev/shm | grep -v :"
                                        " | grep . || true"), "")
        self.assertEqual(self.output_of("ls -A /var"), "tmp\n")

    def test_a_file_of_the_host_cannot_be_reached(self):
        canary = self.folder() / "canary"
        canary.write_text("seen")
        paths = [str(canary), f"/proc/1/root{canary}", f"/proc/self/root{canary}", f"/../../..{canary}",
                 f"/proc/1/cwd{canary}"]
        self.assert_refused_inside([f"open({p!r})" for p in paths], allowed=("ENOENT", "EACCES"))

    def test_only_the_folders_meant_for_it_can_be_written(self):
        script = 'for d in /workspace /tmp /root /var/tmp /dev/shm /home /run; do echo $d > "$d/x" && cat "$d/x"; done'
        self.assertEqual(self.output_of(script).split(),
                         ["/workspace", "/tmp", "/root", "/var/tmp", "/dev/shm", "/home", "/run"])
        lines = [f"open('{folder}/new', 'w')" for folder in ("", "/usr", "/usr/bin", "/etc", "/etc/ssl", "/bin", "/lib")]
        lines += ["os.unlink('/usr/bin/env')", "os.rename('/etc', '/workspace/etc')", "os.rmdir('/workspace')",
                  "open('/etc/passwd', 'a')", "os.chmod('/usr', 0o777)", "os.chmod('/', 0o777)",
                  "os.utime('/usr/bin/env')", "os.mkdir('/sys')", "os.symlink('a', '/etc/b')",
                  "os.link('/usr/bin/env', '/usr/bin/x')"]
        self.assert_refused_inside(lines, allowed=("EROFS", "EBUSY", "EACCES", "EPERM", "EXDEV"))

    def test_shared_folders_have_the_usual_modes(self):
        script = "stat -c '%n %a %u:%g' /tmp /var/tmp /dev/shm /workspace /root"
        self.assertEqual(
            self.output_of(script),
            "/tmp 1777 0:0\n/var/tmp 1777 0:0\n/dev/shm 1777 0:0\n/workspace 755 0:0\n/root 700 0:0\n",
        )

    def test_nothing_written_is_kept(self):
        self.output_of("touch /workspace/kept /tmp/kept /root/kept /var/tmp/kept /dev/shm/kept")
        self.assertEqual(self.sh("ls /workspace /tmp /root /var/tmp /dev/shm | grep kept").out, b"")

    def test_set_user_id_bits_and_device_nodes_are_without_effect(self):
        mounts = self.output_of("cat /proc/self/mounts").splitlines()
        for line in mounts:
            if not line.split()[1].startswith(("/dev/", "/proc/")):
                self.assertIn("nosuid", line)
                self.assertIn("nodev", line)

    def test_devices_are_those_meant_for_it(self):
        self.assertEqual(set(self.output_of("ls -A /dev").split()), DEVICES)
        self.assertEqual(self.output_of("echo x > /dev/null && head -c 3 /dev/zero | od -An -tx1"), " 00 00 00\n")
        self.assertEqual(self.output_of("head -c 16 /dev/urandom | wc -c"), "16\n")
        self.assertNotEqual(self.sh("echo x > /dev/full").status, 0)
        self.assert_refused_inside(["os.mknod('/tmp/n', 0o020666, os.makedev(1, 8))",
                                    "os.mknod('/tmp/b', 0o060666, os.makedev(8, 0))"])


class Start(ViewTest):
    def test_it_starts_in_the_workspace(self):
        self.assertEqual(self.output_of("pwd; umask"), "/workspace\n0022\n")

    def test_it_starts_where_it_is_told_to(self):
        for path in ("/tmp", "/workspace/a/b c", "/root/new", "/usr/bin"):
            self.assertEqual(self.output_of("pwd -P", "--workdir", path), f"{path}\n")
        self.assertEqual(self.output_of("touch x; ls", "-w", "/workspace/new"), "x\n")

    def test_a_folder_that_cannot_be_is_refused(self):
        self.assert_refused(self.run_atoll("--workdir", "/usr/nosuch", "--", "true"), "/usr/nosuch")
        self.assert_refused(self.run_atoll("--workdir", "relative", "--", "true"), "relative")
        self.assert_refused(self.run_atoll("--workdir", "/tmp/../etc", "--", "true"), "/tmp/../etc")

    def test_the_callers_mask_does_not_matter(self):
        self.assertEqual(self.output_of("umask", umask=0o077), "0022\n")
        self.assertEqual(
            self.output_of("stat -c %a / /etc /tmp /workspace /etc/passwd", umask=0o077), "755\n755\n1777\n755\n644\n"
        )

    def test_the_callers_folder_does_not_matter(self):
        folder = self.folder()
        self.assertEqual(self.output_of("pwd", cwd=folder), "/workspace\n")

    def test_only_three_descriptors_are_open(self):
        canary = self.folder() / "canary"
        canary.write_text("seen")

        def leak():
            for fd in range(3, 10):
                os.dup2(os.open(canary, os.O_RDWR), fd)

        script = "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1], [os.readlink(f'/proc/self/fd/{n}') for n in range(3)])"
        text = self.python_output_of(script, preexec_fn=leak, close_fds=False)
        self.assertTrue(text.startswith("['0', '1', '2'] "), text)
        self.assertNotIn("canary", text)
        self.assertIn("'/dev/null', 'pipe:", text)

    def test_limits_hold_from_the_start(self):
        self.assertEqual(self.output_of("ulimit -c; ulimit -Hc"), "0\n0\n")
        self.assertEqual(self.output_of("ulimit -p"), "4096\n")
        self.assertEqual(self.output_of("ulimit -p", "--pids", "77"), "77\n")
        self.assertLessEqual(int(self.output_of("ulimit -Hn")), 65536)


class Identity(ViewTest):
    def test_it_is_root_inside(self):
        self.assertEqual(self.output_of("id"), "uid=0(root) gid=0(root) groups=0(root)\n")

    def test_it_is_another_user_if_asked(self):
        script = "id -u; id -g; id -G; touch /workspace/x ~/x /tmp/x && stat -c %u:%g /workspace/x; echo $HOME"
        self.assertEqual(self.output_of(script, "--user", "1000").split(),
                         ["1000", "1000", "1000", "1000:1000", "/home/user"])
        self.assertEqual(self.output_of(script, "--user", "1234:99").split()[:4], ["1234", "99", "99", "1234:99"])

    def test_users_that_are_none_are_refused(self):
        for user in ("nosuch", "-1", "70000", "1:", ":1", "1:x", ""):
            with self.subTest(user=user):
                self.assert_refused(self.run_atoll(f"--user={user}", "--", "true"), "user")

    def test_it_is_never_the_hosts_root(self):
        client = self.start("--", "sleep", "1000")
        status = Path(f"/proc/{client.inside('sleep', '1000').pid}/status").read_text()
        init = Path(f"/proc/{client.init().pid}/status").read_text()
        for text in (status, init):
            ids = {int(n) for n in (support.status_field(text, "Uid") + " " + support.status_field(text, "Gid")).split()}
            if support.is_root():
                self.assertTrue(all(n in support.SANDBOX_UIDS for n in ids), ids)
            else:
                self.assertEqual(ids, {os.getuid(), os.getgid()})
        client.kill()

    def test_two_sandboxes_of_the_hosts_root_have_ids_of_their_own(self):
        if not support.is_root():
            text = self.output_of("cat /proc/self/uid_map")
            self.assertEqual(text.split(), ["0", str(os.getuid()), "1"])
            return
        first, second = (self.output_of("cat /proc/self/uid_map").split() for _ in range(2))
        self.assertEqual((first[0], len(first)), ("0", 3))
        self.assertNotEqual(first[1], second[1])

    def test_it_has_no_privilege(self):
        for options in ((), ("--user", "1000"), ("-t",)):
            with self.subTest(options=options):
                text = self.output_of("cat /proc/self/status", *options).replace("\r", "")
                for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                    self.assertEqual(int(support.status_field(text, name), 16), 0, name)
                self.assertEqual(support.status_field(text, "NoNewPrivs"), "1")
                self.assertEqual(support.status_field(text, "Seccomp"), "2")


class KernelFiles(ViewTest):
    def test_kernel_settings_cannot_be_written(self):
        paths = ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/drop_caches", "net/ipv4/ip_forward",
                 "user/max_user_namespaces", "net/ipv4/ip_unprivileged_port_start", "kernel/domainname")
        lines = [f"open('/proc/sys/{p}', 'w').write('1')" for p in paths if Path("/proc/sys", p).exists()]
        lines += ["open('/proc/sysrq-trigger', 'w').write('h')", "os.chmod('/proc/sys/kernel/core_pattern', 0o777)"]
        for options in ((), ("--user", "1000")):
            self.assert_refused_inside(lines, *options, allowed=("EPERM", "EACCES", "EROFS", "ENOENT"))

    def test_the_hosts_settings_stay(self):
        pattern = Path("/proc/sys/kernel/core_pattern").read_text()
        self.sh("echo '|/tmp/evil' > /proc/sys/kernel/core_pattern; mount -t proc proc /tmp; "
                "echo '|/tmp/evil' > /proc/1/root/proc/sys/kernel/core_pattern")
        self.assertEqual(Path("/proc/sys/kernel/core_pattern").read_text(), pattern)

    def test_what_tells_of_the_host_is_masked(self):
        script = """
import os
for name in ("kcore", "keys", "latency_stats", "timer_list", "kmsg", "kallsyms", "kpagecount", "vmallocinfo"):
    try:
        data = open("/proc/" + name, "rb").read(4096)
    except OSError:
        data = b""
    if name == "kallsyms":
        data = b"".join(line.split()[0].strip(b"0") for line in data.splitlines()[:20])
    if data:
        print(name, data[:50])
for name in ("acpi", "scsi"):
    if os.path.isdir("/proc/" + name) and os.listdir("/proc/" + name):
        print(name, os.listdir("/proc/" + name))
"""
        self.assertEqual(self.python_output_of(script), "")

    def test_the_first_process_cannot_be_looked_into(self):
        lines = ["os.readlink('/proc/1/exe')", "open('/proc/1/exe', 'rb')", "open('/proc/1/fd/3')",
                 "open('/proc/1/environ', 'rb')", "open('/proc/1/mem', 'rb')",
                 "open('/proc/1/maps').read()", "os.listdir('/proc/1/root')", "os.listdir('/proc/1/cwd')",
                 "os.listdir('/proc/1/map_files')", "os.readlink('/proc/1/ns/mnt')", "open('/proc/1/syscall').read()",
                 "open('/proc/1/stack').read()"]
        lines += [f"os.readlink('/proc/1/fd/{n}')" for n in range(10)]
        for options in ((), ("--user", "1000")):
            self.assert_refused_inside(lines, *options, allowed=("EACCES", "EPERM", "ENOENT"))

    def test_atolls_own_program_cannot_be_found(self):
        script = """
import os
for pid in [n for n in os.listdir("/proc") if n.isdigit()]:
    for path in ["exe", "cwd", "root"] + [f"fd/{n}" for n in range(64)]:
        try:
            print(os.readlink(f"/proc/{pid}/{path}"))
        except OSError:
            pass
print(open("/proc/self/maps").read())
print(open("/proc/self/mountinfo").read())
"""
        text = self.python_output_of(script)
        for word in (support.ATOLL, "memfd:", "atoll"):
            self.assertNotIn(word, text)

    def test_mounts_of_the_host_are_not_told(self):
        folder = self.folder()
        text = self.output_of("cat /proc/self/mountinfo", "--volume", f"{folder}:/workspace/v")
        points = {line.split()[4] for line in text.splitlines()}
        self.assertNotIn("/sys", points)
        self.assertTrue(all(p == "/" or p[1:].split("/")[0] in ROOT_ENTRIES for p in points), points)


class Powers(ViewTest):
    def test_namespaces_cannot_be_made_or_entered(self):
        flags = {"NEWUSER": 0x10000000, "NEWNS": 0x20000, "NEWPID": 0x20000000, "NEWNET": 0x40000000,
                 "NEWIPC": 0x8000000, "NEWUTS": 0x4000000, "NEWCGROUP": 0x2000000}
        lines = [f"call('unshare', {flag})" for flag in flags.values()]
        lines += ["call('setns', os.open('/proc/self/ns/net', 0), 0)"]
        self.assert_refused_inside(lines, allowed=("EPERM", "ENOSYS", "ENOSPC"))
        self.assertNotEqual(self.sh("unshare -Ur id").status, 0)

    def test_mounts_cannot_be_made_or_changed(self):
        lines = ["call('mount', b'none', b'/tmp', b'tmpfs', 0, None)", "call('mount', b'/usr', b'/tmp', None, 4096, None)",
                 "call('mount', None, b'/', None, 32, None)", "call('umount2', b'/etc/ssl', 2)", "call('umount2', b'/proc/sys', 2)",
                 "call('chroot', b'/tmp')", "call('pivot_root', b'/', b'/tmp')", "call('syscall', 428, -100, b'/', 1)",
                 "call('syscall', 430, b'tmpfs', 0)", "call('syscall', 442, -100, b'/usr', 0, b'x', 32)"]
        self.assert_refused_inside(lines, allowed=("EPERM", "ENOSYS"))

    def test_the_first_process_cannot_be_harmed(self):
        script = """
import os, signal
for number in range(1, 65):
    if number in (32, 33):
        continue
    try:
        os.kill(1, number)
    except OSError:
        pass
print("still here")
"""
        for options in ((), ("--user", "1000")):
            self.assertEqual(self.python_output_of(script, *options), "still here\n")
        self.assert_refused_inside(["call('ptrace', 16, 1, 0, 0)", "call('ptrace', 0x4206, 1, 0, 0)",
                                    "open('/proc/1/mem', 'r+b')",
                                    "os.setpriority(0, 1, -5)"], allowed=("EPERM", "ENOSYS", "EACCES", "ESRCH"))

    def test_killing_everything_ends_only_the_command(self):
        script = """
import os, signal, subprocess
other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
os.kill(-1, signal.SIGTERM)
print(other.wait())
"""
        self.assertEqual(self.python_output_of(script), "-15\n")

    def test_a_debugger_works_on_ones_own_processes(self):
        script = "import os, time; p = os.fork() or time.sleep(5); call('ptrace', 16, p, 0, 0); os.kill(p, 9)"
        self.assertIn(self.outcomes([script])[0], ("ok", "EPERM", "ENOSYS"))

    def test_keys_modules_and_the_clock_are_out_of_reach(self):
        lines = ["call('syscall', 250, 0, -3, 1)", "call('syscall', 248, b'user', b'x', b'y', 1, -3)", "call('syscall', 321, 0, 0, 0)",
                 "call('syscall', 298, 0, 0, -1, -1, 0)", "call('syscall', 323, 0)", "call('syscall', 175, 0, 0, b'')",
                 "call('syscall', 246, 0, 0, 0, 0)", "call('syscall', 169, 0, 0, 0, 0)", "call('sethostname', b'x', 1)",
                 "call('syscall', 227, 0, b'\\0' * 16)", "call('syscall', 425, 8, 0)", "call('swapon', b'/tmp/x', 0)",
                 "call('syscall', 304, 0, b'', 0)", "call('acct', 0)", "call('syscall', 159, b'\\x01' + b'\\0' * 300)"]
        if os.uname().machine != "x86_64":
            self.skipTest("the numbers of the system calls are those of x86_64")
        self.assert_refused_inside(lines, allowed=("EPERM", "ENOSYS"))

    def test_typing_into_a_terminal_is_refused(self):
        lines = ["fcntl.ioctl(0, 0x5412, b'x')", "libc.syscall(16, ctypes.c_long(0), ctypes.c_long(0x100005412), b'x') == 0 or call('dup', -1)",
                 "fcntl.ioctl(0, 0x541C, b'\\x03')"]
        if os.uname().machine != "x86_64":
            lines.pop(1)
        result = self.python(TRY.replace("{lines!r}", repr(lines)), "-t")
        self.assertEqual(result.out.split()[0], b"EPERM")
        self.assertNotIn(b"ok", result.out.split())

    def test_addresses_of_other_families_are_refused(self):
        lines = [f"socket.socket({family}, {kind})" for family, kind in
                 ((38, 5), (40, 1), (17, 3), (31, 3), (29, 3), (9, 5), (44, 3), (15, 3))]
        lines += ["socket.socket(16, 3, 9)", "socket.socket(16, 3, 12)", "socket.socket(2, 3, 1)"]
        self.assert_refused_inside(lines, allowed=("EPERM", "EACCES", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT", "ENOSYS"))


class Network(ViewTest):
    def test_only_the_loopback_is_there(self):
        self.assertEqual(self.python_output_of("import socket; print(socket.if_nameindex())"), "[(1, 'lo')]\n")
        self.assertEqual(len(self.output_of("cat /proc/net/dev").splitlines()), 3)

    def test_the_loopback_works(self):
        script = """
import socket, threading
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.9.9.9"), (socket.AF_INET6, "::1")):
    for port in (0, 80, 443):
        server = socket.socket(family)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, port))
        server.listen()
        client = socket.create_connection(server.getsockname()[:2], 5)
        peer = server.accept()[0]
        client.sendall(b"ping")
        assert peer.recv(4) == b"ping"
        for s in (client, peer, server):
            s.close()
    one = socket.socket(family, socket.SOCK_DGRAM)
    one.bind((address, 0))
    one.sendto(b"x", one.getsockname())
    assert one.recv(1) == b"x"
print([socket.getaddrinfo("localhost", 80, family)[0][4][0] for family in (socket.AF_INET, socket.AF_INET6)])
"""
        self.assertEqual(self.python_output_of(script), "['127.0.0.1', '::1']\n")

    def test_a_listener_of_the_host_is_out_of_reach(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            port = server.getsockname()[1]
            lines = [f"socket.create_connection(('{a}', {port}), 3)" for a in ("127.0.0.1", "::1", "localhost")]
            self.assertEqual(self.outcomes(lines), ["ECONNREFUSED"] * 3)

    def test_an_abstract_socket_of_the_host_is_out_of_reach(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("\0atoll-test-%d" % os.getpid())
            server.listen()
            line = f"s = socket.socket(socket.AF_UNIX); s.connect('\\0atoll-test-{os.getpid()}')"
            self.assertEqual(self.outcomes([line]), ["ECONNREFUSED"])

    def test_no_way_leads_out_and_that_is_told_at_once(self):
        lines = [f"socket.create_connection(('{a}', {p}), 5)" for a, p in
                 (("1.1.1.1", 443), ("10.0.0.1", 80), ("169.254.169.254", 80), ("192.168.0.1", 22), ("2606:4700::1111", 443), ("fe80::1", 1))]
        lines += ["socket.socket(2, 2).sendto(b'x', ('8.8.8.8', 53))", "socket.socket(10, 2).sendto(b'x', ('2001:db8::1', 53))",
                  "socket.socket(2, 2).sendto(b'x', ('224.0.0.251', 5353))", "socket.socket(2, 2).sendto(b'x', ('255.255.255.255', 67))"]
        self.assert_refused_inside(lines, allowed=("ENETUNREACH", "EHOSTUNREACH", "EACCES", "EINVAL", "EADDRNOTAVAIL", "EPERM"))

    def test_names_are_not_resolved(self):
        script = """
import socket, time
start = time.monotonic()
try:
    print(socket.getaddrinfo("example.com", 80))
except socket.gaierror:
    print(time.monotonic() - start < 10)
"""
        self.assertEqual(self.python_output_of(script), "True\n")


class Neighbours(ViewTest):
    """Means by which processes inside work together."""

    def test_event_loops_and_socket_pairs_work(self):
        script = """
import array, asyncio, os, socket
print(asyncio.run(asyncio.wait_for(asyncio.to_thread(lambda: 42), 5)))
a, b = socket.socketpair()
b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
a.sendall(b"one")
print(b.recvmsg(16, 256)[0])
b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
read, write = os.pipe()
socket.send_fds(a, [b"fd"], [write])
data, fds, flags, address = socket.recv_fds(b, 16, 1)
os.write(fds[0], b"through")
print(os.read(read, 16))
"""
        self.assertEqual(self.python_output_of(script), "42\nb'one'\nb'through'\n")

    def test_pools_of_processes_work(self):
        script = """
import multiprocessing, multiprocessing.shared_memory, os
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(abs, range(-5, 5))))
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=1000)
    block.buf[0] = 7
    print(block.buf[0])
    block.close(); block.unlink()
    lock = multiprocessing.Semaphore(1)
    print(lock.acquire(timeout=1))
    fd = os.memfd_create("x")
    print(os.write(fd, b"y"))
"""
        self.assertEqual(self.python_output_of(script), "25\n7\nTrue\n1\n")

    def test_two_hundred_mebibytes_of_shared_memory_are_there(self):
        script = "stat -fc %T /dev/shm; head -c 200M /dev/zero > /dev/shm/x && stat -c %s /dev/shm/x"
        self.assertEqual(self.output_of(script), f"tmpfs\n{200 * 1024 * 1024}\n")

    def test_shared_memory_of_the_host_is_not_visible(self):
        with open(f"/dev/shm/atoll-test-{os.getpid()}", "w", encoding="ascii"):
            try:
                self.assertEqual(self.output_of("ls -A /dev/shm; tail -n +2 /proc/sysvipc/shm"), "")
            finally:
                os.unlink(f"/dev/shm/atoll-test-{os.getpid()}")

    def test_ordinary_tools_work(self):
        script = (
            "mkfifo /tmp/p && (echo through > /tmp/p &) && cat /tmp/p && ln -s a /tmp/l && readlink /tmp/l && "
            "date +%Y | grep -c 20 && sort /etc/passwd | wc -l && find /usr/bin -name env && tar -C /etc -cf - passwd | tar -tf -"
        )
        self.assertEqual(self.output_of(script), "through\na\n1\n2\n/usr/bin/env\npasswd\n")

    def test_the_clock_is_the_hosts(self):
        import time

        self.assertLess(abs(int(self.output_of("date +%s")) - time.time()), 5)


class Refusals(ViewTest):
    def run_under(self, script, *command):
        """Runs atoll as root of a user namespace of an ordinary user, after a shell script there."""
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if support.is_root() else []
        self.need("setpriv")
        done = subprocess.run(
            [*drop, self.need("unshare"), "-Urm", "sh", "-c", f'{script} && exec "$@"', "sh", support.ATOLL, "run",
             *command],
            capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]},
        )
        return support.Result(done.returncode, done.stdout, done.stderr)

    def assert_not_started(self, script, *words):
        folder = self.folder()
        folder.chmod(0o777)
        result = self.run_under(script, "--volume", f"{folder}:/workspace", "--", "touch", "/workspace/ran")
        self.assert_refused(result, *words)
        self.assertEqual(os.listdir(folder), [])

    def test_root_without_the_power_to_mount_makes_a_user_namespace(self):
        if not support.is_root():
            self.assertEqual(self.output_of("id -u"), "0\n")  # an ordinary user always is without it
            return
        done = subprocess.run(
            [self.need("capsh"), "--drop=cap_sys_admin", "--", "-c", f"exec {support.ATOLL} run -- id -u"],
            capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL,
        )
        self.assertEqual((done.returncode, done.stdout), (0, b"0\n"), done.stderr)

    def test_root_without_the_power_to_give_ids_is_refused(self):
        if not support.is_root():
            self.assertEqual(self.output_of("id -u"), "0\n")
            return
        for drop in ("cap_setuid", "cap_setgid"):
            done = subprocess.run(
                [self.need("capsh"), f"--drop={drop}", "--", "-c", f"exec {support.ATOLL} run -- id -u"],
                capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL,
            )
            self.assert_refused(support.Result(done.returncode, done.stdout, done.stderr), "CAP_SETUID")

    def test_the_hosts_root_in_a_user_namespace_without_other_ids_is_refused(self):
        done = subprocess.run(
            [self.need("unshare"), "-Ur", support.ATOLL, "run", "--", "id", "-u"],
            capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL,
        )
        if support.is_root():
            self.assert_refused(support.Result(done.returncode, done.stdout, done.stderr), "root")
        else:
            self.assertEqual((done.returncode, done.stdout), (0, b"0\n"), done.stderr)

    def test_a_caller_without_new_privileges_works(self):
        done = subprocess.run(
            [self.need("setpriv"), "--no-new-privs", support.ATOLL, "run", "--", "id", "-u"],
            capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL,
        )
        self.assertEqual((done.returncode, done.stdout), (0, b"0\n"), done.stderr)

    def test_a_host_without_user_namespaces_is_named(self):
        self.assert_not_started("echo 0 > /proc/sys/user/max_user_namespaces", "user namespaces", "max_user_namespaces")

    def test_a_masked_proc_outside_is_named(self):
        self.assert_not_started("mount --bind /dev/null /proc/cmdline", "/proc")

    def test_a_mount_that_repeats_the_root_does_not_matter(self):
        folder = self.folder()
        folder.chmod(0o777)
        result = self.run_under(f"mount --rbind / {folder}", "--", "echo", "fine")
        self.assertEqual(result, support.Result(0, b"fine\n", b""))

    def test_a_host_without_control_groups_works(self):
        result = self.run_under("mount -t tmpfs none /sys/fs/cgroup", "--pids", "50", "--", "echo", "fine")
        self.assertEqual(result, support.Result(0, b"fine\n", b""))

    def test_a_caller_without_a_home_or_any_writable_folder_works(self):
        self.assertEqual(self.output_of("echo fine", env={"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}), "fine\n")


if __name__ == "__main__":
    unittest.main()
