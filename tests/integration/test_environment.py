# SPDX-License-Identifier: Apache-2.0
"""The environment and the arguments of a command: exactly what was asked for, byte for byte."""
import hashlib
import os
import resource
import unittest
from pathlib import Path

import support

BUILT_IN = {
    b"PATH": b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    b"HOME": b"/root",
    b"USER": b"root",
    b"LOGNAME": b"root",
    b"SHELL": b"/bin/sh",
    b"LANG": b"C.UTF-8",
}
CANARY = "canary-7c1f0e"


class EnvironmentTest(support.SandboxTest):
    def environment(self, *options, **how):
        """The environment that a command gets, as bytes."""
        result = self.run_atoll(*options, "--", "env", "-0", **how)
        self.assertEqual((result.status, result.err), (0, b""))
        pairs = [entry.partition(b"=") for entry in result.out.split(b"\0")[:-1]]
        self.assertEqual(len(pairs), len({name for name, _, _ in pairs}), "a name twice")
        return {name: value for name, _, value in pairs}

    def added(self, *options, **how):
        """What is there beside the built-in variables."""
        return {name: value for name, value in self.environment(*options, **how).items()
                if BUILT_IN.get(name) != value}


class Variables(EnvironmentTest):
    def test_exactly_the_built_in_ones_are_set(self):
        self.assertEqual(self.environment(), BUILT_IN)

    def test_nothing_of_the_callers_is(self):
        env = dict(os.environ, SECRET=CANARY, HOME=f"/{CANARY}", LC_ALL="C", TERM="vt100", LD_PRELOAD="",
                   USER=CANARY, PS1=CANARY)
        self.assertEqual(self.environment(env=env), BUILT_IN)

    def test_a_caller_without_any_variable_is_fine(self):
        self.assertEqual(self.environment(env={}), BUILT_IN)

    def test_another_user_has_another_home(self):
        found = self.environment("--user", "1000")
        self.assertEqual((found[b"HOME"], found[b"USER"], found[b"LOGNAME"]), (b"/home/user", b"user", b"user"))

    def test_values_are_bytes(self):
        values = {
            b"A": b"hello world", b"B": b"x=y==", b"C": b"", b"D": b"q'\"`$(id)`", b"M": b"a\nB=2\n\nx\n",
            b"S": b"  pad  ", b"V": b"$HOME ${PATH} %s \\n", b"N": b"\xff\xfe\x80", b"T": b"\t\r\x01\x7f",
            b"U": "報告".encode(), b"_x9": b"--env", b"lower": b"#;&|",
        }
        options = [part for name, value in values.items() for part in (b"--env", name + b"=" + value)]
        self.assertEqual(self.added(*options), values)

    def test_a_variable_may_replace_a_built_in_one(self):
        found = self.environment("-e", "HOME=/tmp", "--env=LANG=C", "-e", "PATH=/bin")
        self.assertEqual((found[b"HOME"], found[b"LANG"], found[b"PATH"]), (b"/tmp", b"C", b"/bin"))
        self.assertEqual(len(found), len(BUILT_IN))

    def test_the_last_value_of_a_name_counts(self):
        self.assertEqual(self.added("-e", "A=1", "-e", "B=2", "-e", "A=3"), {b"A": b"3", b"B": b"2"})

    def test_a_name_alone_takes_the_callers_value(self):
        value = b" two\nlines \xff $HOME "
        env = {b"PATH": os.environb[b"PATH"], b"GIVEN": value, b"KEPT": b"no", b"EMPTY": b""}
        self.assertEqual(self.added("-e", "GIVEN", "--env", "EMPTY", env=env), {b"GIVEN": value, b"EMPTY": b""})

    def test_a_name_that_is_not_set_is_refused(self):
        self.assert_refused(self.run_atoll("--env", "NOT_SET", "--", "true"), "NOT_SET", "not set")

    def test_names_that_are_none_are_refused_without_their_value(self):
        for name in ("", "9A", "A-B", "A B", "A.B", "É", "A\n", " A"):
            with self.subTest(name=name):
                result = self.run_atoll("--env", f"{name}={CANARY}", "--", "true")
                self.assert_refused(result, "env")
                self.assertNotIn(CANARY, result.err.decode())

    def test_a_hundred_kibibytes_arrive(self):
        value = b"v" * (100 * 1024)
        self.assertEqual(self.added(b"--env", b"BIG=" + value), {b"BIG": value})

    def test_the_largest_value_that_the_kernel_takes_arrives(self):
        value = b"v" * (128 * 1024 - len("BIG=") - 1)
        self.assertEqual(self.added(b"--env", b"BIG=" + value), {b"BIG": value})

    def test_many_variables_arrive(self):
        options = [part for n in range(1000) for part in ("--env", f"NAME_{n}={n}")]
        self.assertEqual(self.added(*options), {f"NAME_{n}".encode(): b"%d" % n for n in range(1000)})

    def test_more_than_the_limit_are_refused(self):
        options = [f"-eN{n}=" for n in range(5000)]
        self.assert_refused(self.run_atoll(*options, "--", "true"), "4096")


class Secrets(EnvironmentTest):
    def test_values_of_the_caller_are_nowhere_inside(self):
        script = """
import os
for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
    for file in ("environ", "cmdline", "auxv", "maps", "stat"):
        try:
            data = open(f"/proc/{pid}/{file}", "rb").read()
        except OSError as error:
            continue
        if b"canary" in data:
            print(pid, file)
print("looked")
"""
        program = script.replace('b"canary"', 'b"can" + b"ary"')
        env = {"PATH": os.environ["PATH"], "SECRET": CANARY}
        self.assertEqual(self.python_output_of(program, env=env), "looked\n")

    def test_the_first_processs_environment_cannot_be_read(self):
        result = self.sh("cat /proc/1/environ | tr '\\0' '\\n'")
        self.assertEqual(result.out, b"")

    def test_values_for_the_command_are_in_no_other_process_of_the_host(self):
        env = {"PATH": os.environ["PATH"], "SECRET": CANARY}
        client = self.start("--env", "SECRET", "--", "sleep", "1000", env=env)
        command = client.inside("sleep", "1000").pid
        found = []
        for process in support.descendants():
            for file in ("environ", "cmdline", "comm"):
                try:
                    data = Path(f"/proc/{process.pid}/{file}").read_bytes()
                except OSError:
                    continue
                if CANARY.encode() in data:
                    found.append((process.pid, file))
        holders = {pid for pid, _ in found}
        self.assertLessEqual(holders, {command, client.pid, client.keeper().pid})
        self.assertEqual({file for _, file in found}, {"environ"})
        client.kill()

    def test_values_are_in_no_message(self):
        for options in (("--verbose",), ("--verbose", "--volume", "/nosuch:/workspace/v")):
            result = self.run_atoll(*options, "--env", f"SECRET={CANARY}", "--", "nosuch")
            self.assertNotIn(CANARY, (result.out + result.err).decode())

    def test_a_command_that_fails_to_start_leaves_them_in_no_result(self):
        path = self.folder() / "result"
        self.run_atoll("--result", str(path), "--env", f"SECRET={CANARY}", "--", "nosuch")
        self.assertNotIn(CANARY, path.read_text())


class Arguments(EnvironmentTest):
    def assert_arrive(self, arguments, **how):
        script = "import sys, hashlib; print(hashlib.sha256('\\0'.join(sys.argv[1:]).encode()).hexdigest())"
        digest = hashlib.sha256("\0".join(arguments).encode()).hexdigest()
        result = self.run_atoll("--", support.PYTHON, "-c", script, *arguments, limit=20, **how)
        self.assertEqual((result.status, result.out.decode(), result.err), (0, f"{digest}\n", b""))

    def test_a_hundred_thousand_arrive(self):
        self.assert_arrive([str(n) for n in range(100_000)])

    def test_one_and_a_half_mebibytes_arrive(self):
        self.assert_arrive([f"{n:075}" for n in range(20_000)])

    def test_a_large_one_arrives(self):
        argument = "x" * (128 * 1024 - 1)
        result = self.run_atoll("--", support.PYTHON, "-c", "import sys; print(len(sys.argv[1]))", argument)
        self.assertEqual(result.out, b"131071\n")

    def test_variables_of_a_mebibyte_arrive(self):
        env = {f"V{n}": "v" * 100_000 for n in range(9)} | {"PATH": os.environ["PATH"]}
        found = self.added(*[f"-eV{n}" for n in range(9)], env=env)
        self.assertEqual(found, {f"V{n}".encode(): b"v" * 100_000 for n in range(9)})

    def test_more_than_the_kernel_takes_inside_is_told(self):
        """A caller with a large stack may give atoll more than a command may get."""

        def large_stack():
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            resource.setrlimit(resource.RLIMIT_STACK, (64 * 1024 * 1024, hard))

        if resource.getrlimit(resource.RLIMIT_STACK)[1] not in (resource.RLIM_INFINITY,):
            self.skipTest("the stack's limit cannot be raised")
        for size in (2_500_000, 5_000_000):
            with self.subTest(size=size):
                arguments = ["x" * 100_000] * (size // 100_000)
                result = self.run_atoll("--", "true", *arguments, preexec_fn=large_stack, limit=20)
                if result.status != 0:
                    self.assertIn(result.status, (125, 126))
                    self.assertRegex(result.err.decode(), "^atoll: .*(larger|too large|more than)")


if __name__ == "__main__":
    unittest.main()
