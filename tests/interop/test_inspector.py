# SPDX-License-Identifier: Apache-2.0
"""`atoll mcp` by the command line of the MCP Inspector, which starts it as `atoll mcp config` says."""
import json
import subprocess
import unittest

import clients
from clients import ATOLL, SandboxTest


def setUpModule():
    clients.need_clients()


class Inspector(SandboxTest):
    def setUp(self):
        super().setUp()
        self.work = self.folder()
        self.config = self.work / "mcp.json"
        printed = subprocess.run([ATOLL, "mcp", "config", "--client", "claude-desktop"], stdin=subprocess.DEVNULL,
                                 capture_output=True, check=True, timeout=clients.LIMIT_S)
        self.config.write_bytes(printed.stdout)

    def add(self, *options):
        """Options by hand, as the page of the command says."""
        config = json.loads(self.config.read_text())
        config["mcpServers"]["atoll"]["args"] += options
        self.config.write_text(json.dumps(config))

    def inspect(self, method, *options):
        """Its status, what it printed, and what it said besides."""
        program = clients.PACKAGES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        command = [clients.node(), program, "--cli", "--config", self.config, "--server", "atoll", "--method", method,
                   "--format", "json", "--quiet", *options]
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              cwd=self.work, env=clients.environment(self.work), timeout=clients.LIMIT_S, check=False)
        self.assert_gone()
        return done.returncode, json.loads(done.stdout)["result"] if done.stdout else None, done.stderr

    def call(self, tool, arguments, *options):
        return self.inspect("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments), *options)

    def test_all_tools_are_listed_and_no_schema_of_them_is_at_fault(self):
        for name in ("edit_file", "search_files", "start_process", "process_output", "stop_process", "publish_exports"):
            self.add("--tool", name)
        self.add("--export", f"out=file://{self.work}/out")
        for era in ("legacy", "modern"):
            with self.subTest(era):
                status, result, said = self.inspect("tools/list", "--strict", "--protocol-era", era)
                self.assertEqual(status, 0, said)
                self.assertEqual(len(result["tools"]), 10)

    def test_a_tool_is_called(self):
        for era in ("legacy", "modern"):
            with self.subTest(era):
                status, result, said = self.call("run_command", {"command": "echo hi; exit 3"}, "--protocol-era", era)
                self.assertEqual(status, 0, said)
                self.assertEqual(result["content"], [{"type": "text", "text": "[stdout]\nhi\n[exit code: 3]"}])
                self.assertEqual(result["structuredContent"]["exit_code"], 3)

    def test_a_failed_call_is_told_apart(self):
        status, result, _ = self.call("run_command", {})
        self.assertEqual((status, result["isError"]), (5, True))

    def test_many_calls_at_once(self):
        status, _, said = self.inspect("tools/call", "--tool-name", "run_command", "--tool-arg", "command=echo hi",
                                       "--load", "--load-requests", "50", "--load-concurrency", "10")
        self.assertEqual(status, 0, said)


if __name__ == "__main__":
    unittest.main()
