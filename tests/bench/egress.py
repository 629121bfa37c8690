# SPDX-License-Identifier: Apache-2.0
"""What leaves through egress, measured in a network namespace of the benchmark's own.

In that namespace, which stands for the host, are the servers, on its loopback, and everything that is compared: atoll
and pasta with their clients inside, dnsmasq. Nothing goes over the machine's own interfaces.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import measure

LIMIT_S = 120
NAME, DNS_ZONE, DNS_NAMES = "bench.test", "zone.bench.test", 200
STREAM_PORT, BRIEF_PORT, KEPT_PORT, DNS_PORT = 5201, 5301, 5302, 5353
ADDRESS, GATEWAY = "10.77.0.1", "10.77.0.2"
INSIDE = "/bench"  # where a sandbox sees the account's folder

# A way out for pasta to copy: it leads to the other end of a pair, where nobody is. There are enough ports for all
# connections that have just ended.
SET_UP = f"""set -e
ip link set lo up
ip link add out type veth peer name far
ip address add {ADDRESS}/24 dev out
ip link set out up
ip link set far up
ip route add default via {GATEWAY}
echo 1024 65000 >/proc/sys/net/ipv4/ip_local_port_range
echo 4096 >/proc/sys/net/core/somaxconn
echo ready
exec cat
"""

SPLICE, TAP = f"{STREAM_PORT},{BRIEF_PORT},{KEPT_PORT}", "none"


def pasta(account, ports):
    """The words before a command that pasta is to run. With ports, connections to them on loopback are joined to others
    outside, without a packet; all else goes as packets through a device. Root's pasta would become nobody, and that of
    Debian 12 then waits for ever."""
    as_root = ["--runas", "0"] if account.uid == 0 else []
    return ["pasta", *as_root, "--quiet", "--config-net", "--ipv4-only", "-t", "none", "-u", "none", "-U", "none", "-T",
            ports, "--"]


def missing(*programs):
    """Which of these programs cannot be found, as a reason, or nothing."""
    absent = [name for name in programs if not shutil.which(name)]
    return f"not installed: {', '.join(absent)}" if absent else ""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else "it says nothing"


class Network:
    """The namespace, for programs of an account."""

    def __init__(self, account, holder):
        self.account = account
        if os.geteuid() == 0:
            self.prefix = ["nsenter", f"--net=/proc/{holder}/ns/net"]
            if account.other:
                self.prefix += ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--"]
        else:
            self.prefix = ["nsenter", f"--target={holder}", "--user", "--net", "--preserve-credentials"]

    def arguments(self, command):
        """The words and the arguments of Popen that start a program there."""
        popen = {name: value for name, value in self.account.popen_held().items() if name in ("env", "cwd")}
        return [*self.prefix, *map(str, command)], popen | {"start_new_session": True, "text": True}

    def run(self, command):
        """The output of a program that must succeed."""
        words, popen = self.arguments(command)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, errors="replace", timeout=LIMIT_S,
                              check=False, **popen)
        if done.returncode != 0:
            shown = " ".join(map(str, command[:3]))
            raise RuntimeError(f"{shown}... ends with {done.returncode}: {last_line(done.stderr or done.stdout)}")
        return done.stdout

    @contextmanager
    def running(self, command, ready=None):
        """A program that ends with its input, or by a signal; yields it when it has said that it is ready."""
        words, popen = self.arguments(command)
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, **popen)
            try:
                if ready and process.stdout.readline().strip() != ready:
                    process.wait(LIMIT_S)
                    errors.seek(0)
                    raise RuntimeError(f"{command[0]} did not start: {last_line(errors.read())}")
                yield process
            finally:
                process.stdin.close()
                if not ready:
                    process.terminate()
                process.stdout.close()
                process.wait(LIMIT_S)


@contextmanager
def network(account):
    """The namespace, as long as it is needed."""
    command = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-current-user", "--keep-caps",
                                                              "--net"]
    holder = subprocess.Popen([*command, "sh", "-c", SET_UP], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        if holder.stdout.readline() != "ready\n":
            holder.stdin.close()
            raise RuntimeError(f"no network namespace can be made: {last_line(holder.stderr.read())}")
        yield Network(account, holder.pid)
    finally:
        holder.stdin.close()
        holder.stdout.close()
        holder.stderr.close()
        holder.wait(LIMIT_S)


@contextmanager
def servers(net):
    """The servers that connections are made to, on loopback."""
    with ExitStack() as stack:
        stack.enter_context(net.running([net.account.net, "serve", BRIEF_PORT], ready="ready"))
        stack.enter_context(net.running(["iperf3", "-s", "-B", "127.0.0.1", "-p", STREAM_PORT]))
        await_port(net, STREAM_PORT)
        yield


def await_port(net, port):
    """Waits until somebody listens, by TCP or UDP."""
    deadline = time.monotonic() + 10
    while f":{port} " not in net.run(["ss", "-lntuH"]):
        if time.monotonic() > deadline:
            raise RuntimeError(f"nobody listens at port {port}")
        time.sleep(0.05)


def spec(account, names, ports):
    """A spec that lists names at ports, each pinned to the loopback of the namespace, so that nothing is looked up."""
    path = account.folder / f"egress-{len(names)}.json"
    path.write_text(json.dumps({
        "version": 1,
        "spec": {"allow_egress_to": [f"{name}:{port}" for name in names for port in ports]},
        "backend": {"add_hosts": [f"{name}=127.0.0.1" for name in names]},
    }))
    path.chmod(0o644)
    return path


def sandbox(account, spec_path):
    """The words before a command that is to run in a sandbox."""
    return [account.atoll, "run", "-i", "--spec", spec_path, "--volume", f"{account.folder}:{INSIDE}:ro", "--"]


def plain_sandbox(account):
    return sandbox(account, spec(account, [NAME], [STREAM_PORT, BRIEF_PORT, KEPT_PORT]))


def refusal(net, words):
    """Why a program cannot run `true` in the namespace, or nothing."""
    absent = missing(words[0])
    if absent:
        return absent
    try:
        net.run([*words, "true"])
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return str(error)
    return ""


def medians(rounds, *calls):
    """What each call returns, interleaved, every other round in reverse; the first round is not counted."""
    found = [[] for _ in calls]
    for number in range(1 + rounds):
        turns = list(zip(calls, found))
        for call, values in turns if number % 2 else reversed(turns):
            value = call()
            if number:
                values.append(value)
    return [statistics.median(values) for values in found]


def stream(net, words, host, seconds, down):
    """One TCP stream by iperf3, in Gbit/s, as the receiver counts."""
    command = ["iperf3", "-c", host, "-p", STREAM_PORT, "-t", seconds, "-J", *(["-R"] if down else [])]
    answer = json.loads(net.run([*words, *command]))
    return answer["end"]["sum_received"]["bits_per_second"] / 1e9


def driver_times(net, words, program, *arguments):
    """Runs tests/bench/net.c; returns its nanoseconds."""
    lines = net.run([*words, program, *arguments]).splitlines()
    return [int(line.split()[1]) for line in lines]


def rate(net, words, program, host, count, workers):
    """New connections per second, from connect to the end of each."""
    took, = driver_times(net, words, program, "rate", host, BRIEF_PORT, count, workers)
    return count * workers / took * 1e9


def greeting_ms(net, words, program, host, count):
    """The median of connect() to the first byte."""
    return statistics.median(driver_times(net, words, program, "greet", host, BRIEF_PORT, count)) / 1e6


def write_dns_names(account):
    """The names, the questions of dnsperf, and the answers of dnsmasq."""
    names = [f"n{number}.{DNS_ZONE}" for number in range(DNS_NAMES)]
    questions, hosts = account.folder / "dns-questions", account.folder / "dns-hosts"
    questions.write_text("".join(f"{name} A\n" for name in names))
    hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in names))
    for path in (questions, hosts):
        path.chmod(0o644)
    return names, questions, hosts


@contextmanager
def dnsmasq(net, hosts):
    """The peer that answers the same names from its memory."""
    command = ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
               f"--addn-hosts={hosts}", f"--port={DNS_PORT}", "--listen-address=127.0.0.1", "--bind-interfaces"]
    with net.running(command):
        await_port(net, DNS_PORT)
        yield


def dns_rate(net, words, questions, seconds, server, port):
    """Answers per second by dnsperf; every one must be there and be good. @server: shell words that print it."""
    script = f'exec dnsperf -s "$({server})" -p {port} -d {questions} -l {seconds} -c 8 -T 1'
    text = net.run([*words, "sh", "-c", script])
    found = {name: re.search(pattern, text) for name, pattern in (
        ("rate", r"Queries per second: +([0-9.]+)"), ("lost", r"Queries lost: +[0-9]+ \(([0-9.]+)%\)"),
        ("good", r"NOERROR [0-9]+ \(([0-9.]+)%\)"))}
    if not all(found.values()) or float(found["lost"][1]) > 0.1 or float(found["good"][1]) < 100:
        raise RuntimeError(f"dnsperf: not all questions were answered: {text[-400:]}")
    return float(found["rate"][1])


RESOLVER = r"sed -n 's/^nameserver //p' /etc/resolv.conf | head -n 1"


def open_flows_kib(net, words, program, host, count):
    """Proportional memory of the engine and of `resolve` while that many connections stand: KiB each."""
    with net.running([*words, program, "hold", host, KEPT_PORT, count], ready="held") as client:
        time.sleep(measure.REST_S)
        table = measure.children()
        keeper = next((pid for pid, name in table.get(client.pid, []) if name == "atoll-keeper"), 0)
        found = {name: pid for pid, name in table.get(keeper, [])}
        if "atoll-egress" not in found:
            raise RuntimeError(f"the process atoll-egress was not found among {sorted(found)}")
        return [measure.field_kib(f"/proc/{found[name]}/smaps_rollup", {"Pss"}) if name in found else 0
                for name in ("atoll-egress", "atoll-resolve")]


def lookup_us(account, entries, rounds):
    """Medians of one look-up in a policy of many names, by what is asked."""
    done = subprocess.run([account.lookup, str(entries), str(rounds)], capture_output=True, text=True, check=True,
                          timeout=LIMIT_S, **account.popen())
    times = {}
    for line in done.stdout.splitlines():
        name, nanoseconds = line.split()
        times.setdefault(name, []).append(int(nanoseconds))
    return {name: statistics.median(values) / 1000 for name, values in times.items()}
