# SPDX-License-Identifier: Apache-2.0
"""Ceilings of memory, CPU and cost: kept by a control group, or refused; and nothing is left of it.

Whoever may make no control group sees the refusals; tests/vm shows cgroup v2, delegation included.
"""
import json
import os
import signal
import time
import unittest
from pathlib import Path

import support
from mcp_support import McpTest

CGROUPS = Path("/sys/fs/cgroup")


def groups():
    """The folders of control groups that sandboxes have on this host."""
    return sorted(path for path in CGROUPS.glob("**/atoll/sandbox-*") if path.is_dir())


class Ceilings(support.HeldTest, McpTest):
    """A host on which control groups can be made."""

    def result_of(self, *arguments, status):
        """The result file of a run that ends so."""
        path = self.folder() / "result"
        result = self.run_atoll("--result", str(path), *arguments)
        self.assertEqual(result.status, status, result)
        return json.loads(path.read_text())

    def test_memory_that_runs_out_is_said(self):
        eat = "x = bytearray(10**9)"
        found = self.result_of("--memory", "64M", "--", support.PYTHON, "-c", eat, status=137)
        self.assertEqual((found["reason"], found["signal"]), ("oom", 9))

    def test_a_shell_whose_child_ran_out_of_memory(self):
        script = f"{support.PYTHON} -c 'x = bytearray(10**9)'; s=$?; exit $s"
        found = self.result_of("--memory", "64M", "--", "sh", "-c", script, status=137)
        self.assertEqual(found["reason"], "oom")

    def test_other_ends_are_not_taken_for_it(self):
        ends = {"kill -9 $$": 137, "kill -TERM $$": 143, "kill -SEGV $$": 139, "exit 3": 3}
        for script, status in ends.items():
            found = self.result_of("--memory", "64M", "--", "sh", "-c", script, status=status)
            self.assertEqual(found["reason"], "exited", script)
        found = self.result_of("--memory", "64M", "--timeout", "0.2", "--", "sleep", "100", status=124)
        self.assertEqual(found["reason"], "timeout")

    def test_an_earlier_kill_is_not_told_again(self):
        sandbox = self.create("--memory", "64M")
        eat = self.atoll("exec", sandbox, "--", support.PYTHON, "-c", "x = bytearray(10**9)")
        self.assertEqual(eat.status, 137)
        path = self.folder() / "result"
        killed = self.atoll("exec", "--result", str(path), sandbox, "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(killed.status, 137)
        self.assertEqual(json.loads(path.read_text())["reason"], "exited")
        self.assertEqual(self.exec(sandbox, "echo lives"), b"lives\n")
        oom = [x for x in self.good("events", "--json", sandbox).decode().splitlines() if '"oom"' in x]
        self.assertTrue(oom)

    def test_files_count_and_are_refused_before_anything_is_killed(self):
        sandbox = self.create("--memory", "64M")
        full = self.atoll("exec", sandbox, "--", "sh", "-c", "head -c 64M /dev/zero >/tmp/big")
        self.assertNotEqual(full.status, 137)
        self.assertIn(b"No space left", full.err)
        self.assertEqual(self.exec(sandbox, "rm /tmp/big; echo lives"), b"lives\n")

    def test_a_process_of_many_that_eat_goes_and_init_does_not(self):
        sandbox = self.create("--memory", "32M")
        script = "for i in 1 2 3 4 5 6; do head -c 20M /dev/zero | tail -c 20M >/dev/null & done; wait; echo over"
        self.assertIn(b"over", self.atoll("exec", sandbox, "--", "sh", "-c", script).out)
        below = "until [ $(cat /proc/1/oom_score_adj) -lt $(cat /proc/self/oom_score_adj) ]; do sleep 0.01; done"
        self.exec(sandbox, below)  # init takes its own back when the command has begun
        self.assertEqual(self.exec(sandbox, "ls /proc/self/fd | wc -l").strip(), b"4")

    def test_a_quota_of_cpu_and_the_number_of_cpus(self):
        self.assertEqual(self.output_of("nproc", "--cpu", "1"), "1\n")
        self.assertEqual(self.output_of("nproc", "--cpu", "0.2"), "1\n")
        script = "import time; t = time.time()\nwhile time.process_time() < 0.3: pass\nprint(time.time() - t)"
        # A quarter of a CPU takes at least three times as long, whatever else the machine does.
        self.assertGreater(float(self.python_output_of(script, "--cpu", "0.25")), 0.9)

    def test_the_group_has_what_was_asked_and_goes_with_the_sandbox(self):
        before = groups()
        sandbox = self.create("--memory", "64M", "--cpu", "0.5")
        made = [path for path in groups() if path not in before]
        texts = {file.name: file.read_text().strip() for path in made for file in path.iterdir()
                 if file.name in ("memory.max", "memory.swap.max", "cpu.max", "memory.limit_in_bytes",
                                  "memory.memsw.limit_in_bytes", "cpu.cfs_quota_us", "cpu.cfs_period_us")}
        if "memory.max" in texts:
            self.assertEqual(texts["memory.max"], str(64 << 20))
            self.assertEqual(texts.get("memory.swap.max", "0"), "0")
            self.assertEqual(texts["cpu.max"], "50000 100000")
        else:
            self.assertEqual(texts["memory.limit_in_bytes"], str(64 << 20))
            self.assertEqual(texts.get("memory.memsw.limit_in_bytes", str(64 << 20)), str(64 << 20))
            self.assertEqual((texts["cpu.cfs_quota_us"], texts["cpu.cfs_period_us"]), ("50000", "100000"))
        self.good("rm", sandbox)
        self.assertEqual([path for path in made if path.exists()], [])

    def test_a_plain_sandbox_has_none(self):
        before = groups()
        self.create()
        self.assertEqual(groups(), before)

    def test_what_a_killed_keeper_leaves_is_swept(self):
        before = groups()
        sandbox, other = self.create("--memory", "64M"), self.create("--memory", "64M")
        os.kill(self.keeper_of(sandbox), signal.SIGKILL)
        made = [path for path in groups() if path not in before]
        support.wait_for(lambda: self.atoll("exec", sandbox, "--", "true").status != 0, "its end")
        self.good("gc")
        left = [path for path in made if path.exists()]
        self.assertEqual(2 * len(left), len(made))
        self.assertEqual(self.exec(other, "echo lives"), b"lives\n")

    def test_whoever_makes_the_next_sweeps_too(self):
        before = groups()
        os.kill(self.keeper_of(self.create("--memory", "64M")), signal.SIGKILL)
        made = [path for path in groups() if path not in before]
        self.assertTrue(made)
        support.wait_for(lambda: not any((path / "cgroup.procs").read_text() for path in made), "its end")
        self.run_atoll("--memory", "64M", "--", "true")
        self.assertEqual([path for path in made if path.exists()], [])

    def test_cost_has_a_ceiling(self):
        spec = self.folder() / "spec.yaml"
        spec.write_text("version: 1\nbackend:\n  prices: {cpu_hour: 3600, gib_hour: 1}\n  max_cost: 0.5\n")
        sandbox = self.create("--spec", str(spec))
        since = time.monotonic()
        path = self.folder() / "result"
        with open(self.state / sandbox / "events.jsonl", encoding="utf-8") as events:  # its folder goes with it
            busy = self.atoll("exec", "--result", str(path), sandbox, "--", "sh", "-c", "while :; do :; done")
            self.assertEqual(busy.status, 137, busy)
            self.assertGreater(time.monotonic() - since, 0.3)
            support.wait_for(lambda: sandbox not in self.listed(), "its end")
            told = [json.loads(line) for line in events]
        self.assertEqual(busy.err, b"atoll: sh: the sandbox has cost all that it may (backend.max_cost)\n")
        result = json.loads(path.read_text())
        support.json_schema.validate(result, support.json_schema.load("result"))
        self.assertEqual((result["reason"], result["status"]), ("cost", 137))
        self.assertEqual(told[-1]["by"], "cost")
        self.assertEqual([e["reason"] for e in told if e["kind"] == "command" and e["event"] == "exited"], ["cost"])
        for event in told:
            support.json_schema.validate(event, support.json_schema.load("events"))
        gone = self.atoll("exec", sandbox, "--", "true")
        self.assert_refused(gone, "is gone")


    def test_a_tool_is_not_given_another_sandbox_to_spend_on(self):
        spec = self.folder() / "spec.yaml"
        spec.write_text("version: 1\nbackend:\n  prices: {cpu_hour: 3600, gib_hour: 1}\n  max_cost: 0.3\n")
        server = self.serve("--spec", str(spec))
        server.initialize()
        for command in ("while :; do :; done", "true"):
            result = server.call("run_command", {"command": command})
            text = result["content"][0]["text"]
            self.assertTrue(result["isError"], text)
            self.assertIn("has cost all that it may. Raise backend.max_cost", text)
            self.assertNotIn("new, empty sandbox", text)
            self.assertEqual(support.inits(), [])


class NoGroups(support.SandboxTest):
    """A host on which this user can make none."""

    def test_what_cannot_be_enforced_is_refused_with_a_remedy(self):
        for option, field in (("--memory=64M", "backend.memory"), ("--cpu=1", "backend.cpu")):
            result = self.run_atoll(option, "--", "true")
            self.assert_refused(result, f"{field} cannot be enforced", f"or remove {field}")
            check = self.start(option, verb="check").result()
            self.assertEqual(check.status, 125)
            self.assertIn(field, " ".join(check.out.decode().split()))
            self.assertIn("cannot be enforced", " ".join(check.out.decode().split()))


class Refusals(support.SandboxTest):
    def test_a_host_whose_groups_cannot_be_seen(self):
        unshare = self.need("unshare")
        script = "mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" run --memory 64M -- true"
        flags = ["-m"] if support.is_root() else ["-Urm"]
        result = support.subprocess.run([unshare, *flags, "sh", "-c", script, support.ATOLL], capture_output=True,
                                        timeout=support.LIMIT_S, stdin=support.subprocess.DEVNULL, check=False)
        self.assertEqual(result.returncode, 125, result)
        self.assertIn(b"backend.memory cannot be enforced", result.stderr)
        self.assertIn(b"memory", result.stderr)

    def test_prices_of_what_is_not_measured(self):
        spec = self.folder() / "spec.yaml"
        spec.write_text("version: 1\nbackend:\n  prices: {run: 1}\n")
        self.assert_refused(self.run_atoll("--spec", str(spec), "--", "true"), "backend.prices", "cpu_hour")
        self.assert_refused(self.run_atoll("--max-cost", "1", "--", "true"), "backend.max_cost", "without prices")


def load_tests(loader, tests, pattern):
    """Those that this host and user have a use for."""
    doctor = support.Client(["--json"], verb="doctor").result()
    probes = {probe["name"]: probe["state"] for probe in json.loads(doctor.out)["probes"]}
    kinds = [Ceilings if probes["cgroup"] == "ok" else NoGroups, Refusals]
    return unittest.TestSuite(loader.loadTestsFromTestCase(kind) for kind in kinds)


if __name__ == "__main__":
    unittest.main()
