# SPDX-License-Identifier: Apache-2.0
"""Completion in shells: sandboxes where a command takes one."""
import os
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, HeldTest

BASH = """
source "$1"
compopt() { :; }
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_atoll
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(HeldTest):
    def setUp(self):
        super().setUp()
        self.sandbox = self.create("--name", "zz-box")
        self.env = os.environ | self.env | {
            "PATH": f"{Path(ATOLL).parent}:{os.environ['PATH']}", "HOME": str(self.folder())}

    def script(self, shell):
        path = self.folder() / shell
        path.write_bytes(self.good("reference", shell))
        return str(path)

    def offered(self, *command):
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=self.folder())
        self.assertEqual(done.stderr, "")
        return {line.partition("\t")[0] for line in done.stdout.splitlines() if line}

    def assert_offers(self, offers):
        """@offers: what a shell offers for words, the last of which is begun."""
        both = {self.sandbox, "zz-box"}
        for verb in ("hold", "exec", "inspect", "extend", "events", "stats", "rm", "write", "kill", "policy", "tool"):
            with self.subTest(verb):
                self.assertEqual(offers(verb, "zz"), {"zz-box"})
                self.assertLessEqual(both, offers(verb, ""))
        self.assertEqual(offers("rm", "one", "zz"), {"zz-box"})
        for words in (["extend", "one", "zz"], ["run", "zz-b"], ["create", "zz"], ["exec", "one", "zz-b"]):
            with self.subTest(words):
                self.assertNotIn("zz-box", offers(*words))

    def test_bash_and_fish(self):
        self.need("bash")
        self.bash()
        if shutil.which("fish"):
            self.fish()

    def bash(self):
        script = self.script("bash")
        self.assert_offers(lambda *words: self.offered("bash", "-c", BASH, "bash", script, "atoll", *words))

    def fish(self):
        script = self.script("fish")
        self.assert_offers(lambda *words: self.offered(
            "fish", "--no-config", "-c", f"source {script}; complete -C {shlex.quote(' '.join(['atoll', *words]))}"))


if __name__ == "__main__":
    unittest.main()
