# SPDX-License-Identifier: Apache-2.0
"""Output arrives byte for byte, and the status says how the command ended."""
import json
import os
import pty
import re
import subprocess
import time
import unittest
from pathlib import Path

import support

MIB = 1024 * 1024


class Output(support.SandboxTest):
    def test_bytes_arrive_as_they_are_written(self):
        for script, out in (
            (r"printf 'a\nb'", b"a\nb"),
            ("printf ''", b""),
            (r"printf '\n\n'", b"\n\n"),
            (r"printf '\r\n\t \033[0m'", b"\r\n\t \x1b[0m"),
            (r"printf 'x\n\n\n'", b"x\n\n\n"),
        ):
            with self.subTest(script=script):
                self.assertEqual(self.sh(script), support.Result(0, out, b""))

    def test_standard_error_is_apart(self):
        result = self.sh(r"printf 'a\nb'; printf x >&2")
        self.assertEqual(result, support.Result(0, b"a\nb", b"x"))

    def test_both_streams_may_go_to_one_pipe_in_order(self):
        result = self.sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done 2>&1")
        self.assertEqual(result.out, b"o1\ne1\no2\ne2\no3\ne3\n")

    def test_bytes_that_are_no_text_pass(self):
        data = bytes(range(256)) * 300
        self.assertEqual(self.run_atoll("-i", "--", "cat", stdin=data).out, data)

    def test_names_of_atoll_appear_nowhere_in_the_output_of_a_good_run(self):
        self.assertEqual(self.run_atoll("--", "true"), support.Result(0, b"", b""))

    def test_fifty_million_bytes_arrive(self):
        result = self.sh("head -c 50000000 /dev/zero | tr '\\0' x; echo end >&2")
        self.assertEqual((result.status, len(result.out), result.err), (0, 50000000, b"end\n"))
        self.assertEqual(result.out.count(b"x"), 50000000)

    def test_a_reader_that_sleeps_loses_nothing(self):
        client = self.start("--", "sh", "-c", "seq 1 1000000")
        time.sleep(2)  # the command is long done writing into full pipes by then
        self.assertIsNone(client.poll())
        result = client.result()
        self.assertEqual(result.status, 0)
        self.assertEqual(result.out.splitlines()[-1], b"1000000")
        self.assertEqual(result.out.count(b"\n"), 1000000)

    def test_a_line_of_a_gibibyte_costs_little_memory(self):
        client = self.start(
            "-i", "--", "sh", "-c", "head -c 1073741824 /dev/zero | tr '\\0' x; read line",
            stdin=subprocess.PIPE,
        )
        left = 1024 * MIB
        while left > 0:
            got = len(client.stdout.read(min(left, 4 * MIB)))
            self.assertGreater(got, 0, "the output ended early")
            left -= got
        for pid in (client.pid, client.keeper().pid):
            status = Path(f"/proc/{pid}/status").read_text()
            peak_kib = int(support.status_field(status, "VmHWM").split()[0])
            self.assertLess(peak_kib, 20 * 1024)
        self.assertEqual(client.result(b"\n").out, b"")

    def test_a_closed_output_ends_the_command(self):
        head = f"{support.ATOLL} run -- yes | head -n 1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", head], capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL
        )
        self.assertEqual((done.stdout, done.stderr), (b"y\n141\n", b""))

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "wb") as full:
            result = self.sh("echo lost", stdout=full)
        self.assertEqual(result.status, 125)
        self.assertTrue(result.err.startswith(b"atoll: "), result.err)
        self.assertIn(b"No space left on device", result.err)

    def test_output_goes_to_a_file(self):
        path = self.folder() / "out"
        with path.open("wb") as out:
            self.assertEqual(self.sh("seq 1 100000", stdout=out).status, 0)
        self.assertEqual(path.read_bytes().splitlines()[-1], b"100000")
        self.assertEqual(path.stat().st_size, 588895)

    def test_output_is_appended_to_a_file(self):
        path = self.folder() / "out"
        path.write_text("before\n")
        with path.open("ab") as out:
            self.assertEqual(self.sh("seq 1 100000", stdout=out).status, 0)
        data = path.read_bytes()
        self.assertTrue(data.startswith(b"before\n1\n2\n"))
        self.assertEqual(len(data), 588895 + len("before\n"))

    def test_output_and_error_share_one_file(self):
        path = self.folder() / "out"
        with path.open("wb") as out:
            self.sh("for i in 1 2 3; do echo o$i; echo e$i >&2; sleep 0.05; done", stdout=out, stderr=out)
        self.assertEqual(sorted(path.read_text().split()), ["e1", "e2", "e3", "o1", "o2", "o3"])

    def test_output_goes_to_a_terminal(self):
        master, slave = pty.openpty()
        client = self.start("--", "sh", "-c", "echo hello; test -t 1 || echo no terminal", stdout=slave)
        os.close(slave)
        self.assertEqual(client.wait(support.LIMIT_S), 0)
        self.assertEqual(os.read(master, 4096), b"hello\r\nno terminal\r\n")
        os.close(master)

    def test_a_socket_takes_output_too(self):
        import socket

        mine, its = socket.socketpair()
        with mine, its:
            client = self.start("--", "sh", "-c", "seq 1 50000", stdout=its)
            its.close()
            data = b"".join(iter(lambda: mine.recv(65536), b""))
            self.assertEqual(client.wait(support.LIMIT_S), 0)
        self.assertEqual(data.splitlines()[-1], b"50000")


class Status(support.SandboxTest):
    def test_the_status_is_the_commands_own(self):
        for status in (0, 1, 2, 42, 124, 125, 126, 127, 137, 255):
            with self.subTest(status=status):
                self.assertEqual(self.sh(f"exit {status}"), support.Result(status, b"", b""))

    def test_an_end_by_a_signal_is_128_and_its_number(self):
        for name, status in (("KILL", 137), ("TERM", 143), ("SEGV", 139), ("INT", 130), ("USR1", 138)):
            with self.subTest(name=name):
                result = self.run_atoll("--", "sh", "-c", f"kill -{name} $$; sleep 5")
                self.assertEqual((result.status, result.out), (status, b""))

    def test_abort_is_an_abort(self):
        self.assertEqual(self.python("import os; os.abort()").status, 134)

    def test_a_program_that_is_not_there_is_127_and_named(self):
        for name in ("nosuch", "/no/such", "./nosuch", ""):
            with self.subTest(name=name):
                result = self.run_atoll("--", name)
                self.assertEqual(result.status, 127)
                self.assertRegex(result.err.decode(), rf"^atoll: {re.escape(name)}: not found")

    def test_a_file_that_cannot_run_is_126_and_named(self):
        for name in ("/etc/passwd", "/usr", "/workspace"):
            with self.subTest(name=name):
                result = self.run_atoll("--", name)
                self.assertEqual(result.status, 126)
                self.assertRegex(result.err.decode(), rf"^atoll: {name}: ")

    def test_a_missing_interpreter_is_named(self):
        folder = self.folder()
        script = folder / "script"
        script.write_text("#!/no/such/interpreter -x\necho no\n")
        script.chmod(0o755)
        result = self.run_atoll("--volume", f"{folder}:/workspace/v", "--", "/workspace/v/script")
        self.assertIn(result.status, (126, 127))
        self.assertIn(b"/no/such/interpreter", result.err)
        self.assertIn(b"/workspace/v/script", result.err)

    def test_a_script_without_a_first_line_is_run_by_the_shell(self):
        folder = self.folder()
        script = folder / "script"
        script.write_text('echo "got $1 and $2"\nexit 7\n')
        script.chmod(0o755)
        result = self.run_atoll("--volume", f"{folder}:/workspace/v", "--", "/workspace/v/script", "a b", "c")
        self.assertEqual(result, support.Result(7, b"got a b and c\n", b""))

    def test_a_name_is_searched_in_the_path_of_the_sandbox(self):
        folder = self.folder()
        script = folder / "a tool"
        script.write_text("#!/bin/sh\necho found\n")
        script.chmod(0o755)
        volume = ("--volume", f"{folder}:/workspace/v")
        result = self.run_atoll(*volume, "--env", "PATH=/workspace/v:/usr/bin", "--", "a tool")
        self.assertEqual(result, support.Result(0, b"found\n", b""))
        self.assertEqual(self.run_atoll(*volume, "--", "a tool").status, 127)

    def test_arguments_arrive_byte_for_byte(self):
        arguments = [
            "", " ", "a b", "'", '"', "$HOME", "`id`", "$(id)", "\\", "\\n", "a\nb", "\t", "*", "-x", "--",
            b"\xff\xfe", "报告", ";", "&&", "#", "~",
        ]
        result = self.run_atoll("--", support.PYTHON, "-c",
                                "import os,sys; print([os.fsencode(a) for a in sys.argv[1:]])", *arguments)
        self.assertEqual(result.out.decode(), f"{[os.fsencode(a) for a in arguments]}\n")

    def test_a_here_document_arrives_as_it_stands(self):
        script = "cat > f.txt <<\"END\"\n  line 'one' $HOME\n\tEND not yet\nEND\ncat f.txt"
        self.assertEqual(self.sh(script).out, b"  line 'one' $HOME\n\tEND not yet\n")

    def test_an_unterminated_here_document_does_not_hang(self):
        result = self.sh("cat <<END\nnever ended", limit=20)
        self.assertTrue(result.out.startswith(b"never ended"))

    def test_no_command_is_a_mistake_of_the_caller(self):
        self.assert_refused(self.run_atoll("--"), "no command")
        self.assert_refused(self.run_atoll(), "no command")


class ResultFile(support.SandboxTest):
    def read(self, script, *options, status):
        path = self.folder() / "result"
        result = self.sh(script, "--result", str(path), *options)
        self.assertEqual(result.status, status, result.err)
        return json.loads(path.read_text())

    def test_it_tells_of_an_ordinary_end(self):
        before = time.time()
        told = self.read("exit 3", status=3)
        self.assertEqual((told["reason"], told["status"], told["exit_code"]), ("exited", 3, 3))
        self.assertNotIn("signal", told)
        self.assertIsNone(told["applied_timeout"])
        self.assertLessEqual(before - 1, told["started_at"])
        self.assertLessEqual(told["started_at"], told["ended_at"])
        self.assertLessEqual(told["ended_at"], time.time() + 1)
        self.assertGreaterEqual(told["duration"], 0)

    def test_it_tells_what_was_used(self):
        told = self.read(f"{support.PYTHON} -c 'x = bytearray(50_000_000); sum(range(3_000_000))'", status=0)
        self.assertGreater(told["usage"]["peak_memory_bytes"], 50_000_000)
        self.assertGreater(told["usage"]["user_time"], 0)
        self.assertGreaterEqual(told["usage"]["system_time"], 0)
        self.assertGreater(told["duration"], 0)

    def test_it_tells_of_a_signal(self):
        told = self.read("kill -KILL $$", status=137)
        self.assertEqual((told["status"], told["signal"]), (137, 9))
        self.assertNotIn("exit_code", told)

    def test_it_tells_of_a_timeout(self):
        told = self.read("sleep 100", "--timeout", "300ms", status=124)
        self.assertEqual((told["reason"], told["status"], told["applied_timeout"]), ("timeout", 124, 0.3))
        self.assertGreaterEqual(told["duration"], 0.3)

    def test_it_tells_of_a_lifetime(self):
        told = self.read("sleep 100", "--lifetime", "300ms", status=124)
        self.assertEqual((told["reason"], told["status"]), ("lifetime", 124))

    def test_it_tells_of_a_refusal(self):
        path = self.folder() / "result"
        result = self.run_atoll("--result", str(path), "--volume", "/etc:/usr/share/nosuch", "--", "true")
        self.assertEqual(result.status, 125)
        told = json.loads(path.read_text())
        self.assertEqual((told["reason"], told["status"]), ("error", 125))
        self.assertIn(told["error"]["message"], result.err.decode())
        self.assertTrue(told["error"]["remedy"])

    def test_it_may_be_an_open_descriptor(self):
        path = self.folder() / "result"
        with path.open("wb") as out:
            result = self.run_atoll("--result", str(out.fileno()), "--", "true", pass_fds=[out.fileno()])
        self.assertEqual(result, support.Result(0, b"", b""))
        self.assertEqual(json.loads(path.read_text())["exit_code"], 0)

    def test_a_place_that_cannot_be_written_is_refused(self):
        folder = self.folder()
        self.assert_refused(self.run_atoll("--result", str(folder / "no/such"), "--", "true"), "no/such")
        self.assert_refused(self.run_atoll("--result", "77", "--", "true"), "77")

    def test_the_command_cannot_reach_it(self):
        path = self.folder() / "result"
        with path.open("wb") as out:
            number = out.fileno()
            result = self.sh(f"echo forged >&{number}", "--result", str(number), pass_fds=[number])
        self.assertNotEqual(result.status, 0)
        self.assertNotIn("forged", path.read_text())


if __name__ == "__main__":
    unittest.main()
