# SPDX-License-Identifier: Apache-2.0
"""An agent of a framework that knows nothing of atoll, with the tools of `atoll mcp` and a model that follows a script.

Names in brackets are rows of the scenario list that a test stands for.
"""
import base64
import json
import subprocess
import unittest

import clients
from clients import ATOLL, SandboxTest

SCRIPT = [
    [["write_file", {"path": "a.py", "content": "print(6 * 7)\n"}],
     ["run_command", {"command": "python3 a.py | tee out"}],
     ["read_file", {"path": "out"}]],
    [["run_command", {"command": "sleep 0.7; echo late >file"}],
     ["run_command", {"command": "cat file"}]],
    [["run_command", {}]],
    [["read_file", {"path": "missing"}]],
    [["run_command", {"command": "exit 3"}]],
    [["run_command", {"command": f"echo {base64.b64encode(clients.PNG).decode()} | base64 -d >pixel.png"}],
     ["read_file", {"path": "pixel.png"}]],
]


def setUpModule():
    clients.need_clients()


class Agent(unittest.TestCase):
    """One run of an agent; each test looks at a part of what its model was given."""

    @classmethod
    def setUpClass(cls):
        host = SandboxTest()
        cls.addClassCleanup(host.doCleanups)
        SandboxTest.setUp(host)
        folder = host.folder()
        cls.out = folder / "answer"
        command = [clients.AGENT_PYTHON, "-B", clients.HERE / "drive_agent.py", json.dumps(SCRIPT),
                   ATOLL, "mcp", "--export", f"out=file://{cls.out}"]
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              cwd=folder, env=clients.environment(folder), timeout=clients.LIMIT_S, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr[-3000:])
        host._check_nothing_is_left()
        cls.seen = json.loads(done.stdout)
        cls.nothing, *cls.turns = cls.seen["turns"]

    def test_it_goes_through_to_its_end(self):
        self.assertEqual((self.seen["output"], self.nothing, len(self.turns)), ("done", [], len(SCRIPT)))
        self.assertEqual(self.seen["tools"], ["run_command", "read_file", "write_file", "list_directory"])
        self.assertIn("sandbox", self.seen["instructions"])

    def test_three_calls_of_one_step_are_done_in_order(self):  # O4
        rows = self.turns[0]
        self.assertEqual([row[:2] for row in rows],
                         [["success", name] for name in ("write_file", "run_command", "read_file")])
        wrote, ran, read = (row[2] for row in rows)
        self.assertEqual((wrote["bytes"], ran["stdout"], ran["exit_code"], read["text"]), (13, "42", 0, "42"))

    def test_a_slow_command_holds_up_the_other_of_its_step(self):  # O5
        self.assertEqual(self.turns[1][1][2]["stdout"], "late")

    def test_a_mistake_of_the_model_is_its_to_mend(self):
        for turn, tool, word in ((2, "run_command", "command"), (3, "read_file", "missing")):
            (outcome, name, text), = self.turns[turn]
            self.assertEqual((outcome, name), ("retried", tool))
            self.assertIn(word, text)

    def test_a_command_that_fails_is_no_mistake_of_the_model(self):
        (outcome, _, facts), = self.turns[4]
        self.assertEqual((outcome, facts["exit_code"]), ("success", 3))

    def test_an_image_reaches_the_model_as_one(self):
        self.assertIn("image/png", json.dumps(self.turns[5][1]))

    def test_its_exports_are_published_when_it_is_done(self):
        self.assertEqual(self.out.read_text(), "42\n")


if __name__ == "__main__":
    unittest.main()
