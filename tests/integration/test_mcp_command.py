# SPDX-License-Identifier: Apache-2.0
"""The command line of atoll mcp: what it refuses before it serves, and what clients are told of it."""
import json
import os
import pty
import re
import shutil
import subprocess
import tomllib
import unittest
from pathlib import Path

from mcp_support import LEGACY, McpTest
from support import ATOLL, LIMIT_S, Client, Result, is_root

JSON_CLIENTS = {  # and the key of their map of servers
    "claude-code": "mcpServers",
    "claude-desktop": "mcpServers",
    "cline": "mcpServers",
    "cursor": "mcpServers",
    "gemini-cli": "mcpServers",
    "junie": "mcpServers",
    "vscode": "servers",
    "windsurf": "mcpServers",
    "zed": "context_servers",
}
OTHERS = ("codex", "continue", "goose")
FOUR = ["run_command", "read_file", "write_file", "list_directory"]


def execute(arguments, **options):
    """A program to its end, with nothing to read."""
    done = subprocess.run(
        arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False, **options
    )
    return Result(done.returncode, done.stdout, done.stderr)


def run(*arguments, **options):
    return execute([ATOLL, *arguments], **options)


class CommandTest(McpTest):
    def write(self, text, name="sandboxes.yaml"):
        path = self.folder() / name
        path.write_text(text)
        return path

    def assert_mcp_refused(self, arguments, *words, **options):
        """It ends before a client could ask anything, in one line."""
        result = run("mcp", *arguments, **options)
        self.assert_refused(result, *words)
        self.assertEqual(result.err.count(b"\n"), 1, result.err)

    def config(self, client, *options):
        """What is printed for a client, and the sentence beside it."""
        result = run("mcp", "config", "--client", client, *options)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.err.count(b"\n"), 1, result.err)
        return result.out.decode(), result.err.decode()

    def assert_answers(self, command, arguments, **options):
        """Started so, it makes the handshake; the names of its tools."""
        self.assertEqual(command, os.path.realpath(ATOLL))
        self.assertEqual(arguments[0], "mcp")
        server = self.serve(*arguments[1:], **options)
        result = server.initialize()
        self.assertEqual(result["protocolVersion"], LEGACY)
        names = [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        self.assert_ended_well(server)
        return names


class Refusals(CommandTest):
    def test_wrong_options_and_operands_are_refused(self):
        self.assert_mcp_refused(["--memroy", "1G"], "unknown option --memroy", "--memory")
        self.assert_mcp_refused(["serve"], 'unexpected argument "serve"', "atoll mcp")
        self.assert_mcp_refused(["--tool", "edit_fil"], "--tool", "'edit_fil'", "edit_file")
        self.assert_mcp_refused(["--tool-prefix", "a-b"], "--tool-prefix", "not an identifier")

    def test_what_could_not_be_made_is_refused_before_anything_starts(self):
        self.assert_mcp_refused(["--backend", "modal"], "modal", "not built into this program")
        self.assert_mcp_refused(["--backend", "locl"], "locl", "local")
        self.assert_mcp_refused(["--max-cost", "1"], "backend.max_cost")
        self.assert_mcp_refused(["--volume", "/nowhere/at-all:/data"], "/nowhere/at-all")
        self.assert_mcp_refused(["--spec", "/nowhere/at-all"], "spec file '/nowhere/at-all'")
        spec = self.write("version: 1\nbackend:\n  memry: 1G\n")
        self.assert_mcp_refused(["--spec", spec], f"{spec}:3:3: backend.memry", "nearest one is memory")
        self.assert_mcp_refused(["--owner", "me"], "--owner", "nobody can attach to it later")

    def test_a_sandbox_that_is_not_there_cannot_be_attached_to(self):
        spec = self.write("version: 1\ntoolset: {attach_to: no-such-box}\n")
        environment = os.environ | {"ATOLL_STATE_DIR": str(self.folder() / "state")}
        self.assert_mcp_refused(["--spec", spec], "no sandbox is called 'no-such-box'", env=environment)

    def test_what_the_clients_messages_come_in_by_is_no_file(self):
        for options in (["--spec", "-"], ["--config", "-"], ["--env-file", "-"], ["--mask", "@-"]):
            with self.subTest(options):
                self.assert_mcp_refused(options, " ".join(options), "standard input")

    def test_exports_need_somebody_whose_end_can_be_seen(self):
        apart = [self.need("unshare"), "--pid", "--fork", "--mount-proc"]
        if not is_root():
            apart += ["--user", "--map-root-user"]
        alone = [*apart, ATOLL, "mcp"]
        target = self.folder() / "out"
        config = self.write(f"version: 1\ntoolsets:\n  - toolset: {{exports: {{o: 'file://{target}'}}}}\n")
        for options in (["--export", f"o=file://{target}"], ["--config", config]):
            with self.subTest(options):
                refused = execute([*alone, *options])
                self.assert_refused(refused, "who started this server cannot be seen", "--init")
        self.assertEqual(execute(alone), Result(0, b"", b""))
        beside = [*apart, "sh", "-c", '"$@"; exit $?', "sh", ATOLL, "mcp", "--export", f"o=file://{target}"]
        served = execute(beside)
        self.assertNotIn(b"cannot be seen", served.err)
        self.assertEqual(served.out, b"")


class Configurations(CommandTest):
    def test_mistakes_have_their_places(self):
        path = self.write("version: 1\ntoolsets:\n  - prefix: a\n    backend:\n      pids: x\n  - prefx: b\n")
        self.assert_mcp_refused(
            ["--config", path], f"{path}:5:13: toolsets[0].backend.pids", f"{path}:6:5: toolsets[1].prefx"
        )
        path = self.write('{"version": 1, "toolsets": [{"prefix": "a", "prefix": "b"}]}', "sandboxes.json")
        self.assert_mcp_refused(["--config", path], f"{path}:1:", "prefix")
        self.assert_mcp_refused(["--config", "/nowhere/at-all"], "config file '/nowhere/at-all'", "No such file")

    def test_tools_of_one_name_are_refused_and_both_toolsets_named(self):
        path = self.write("version: 1\ntoolsets:\n  - {}\n  - purpose: another\n")
        self.assert_mcp_refused(
            ["--config", path], "toolset 1 and toolset 2 both have a tool 'run_command'", "Give one of them a prefix"
        )
        path = self.write("version: 1\ntoolsets:\n  - {}\n  - prefix: a\n  - toolset: {tool_prefix: a}\n")
        self.assert_mcp_refused(["--config", path], "toolset 2 and toolset 3 both have a tool 'a_run_command'")

    def test_the_backend_of_each_is_asked(self):
        path = self.write("version: 1\ntoolsets:\n  - {}\n  - prefix: b\n    backend: {name: modal}\n")
        self.assert_mcp_refused(["--config", path], "modal")

    def test_other_options_are_refused_beside_it(self):
        path = self.write("version: 1\ntoolsets: [{}]\n")
        for option in (
            ["--spec", path], ["--tool", "edit_file"], ["--no-tool"], ["--tool-prefix", "a"], ["--memory", "1G"],
            ["--no-memory"], ["--export", "a=file:///tmp/a"], ["--open-network"], ["-e", "A=1"],
        ):
            with self.subTest(option):
                self.assert_mcp_refused(["--config", path, *option], "beside --config", "Write it into the file")

    def test_every_toolset_is_served_with_its_prefix_and_purpose(self):
        folder = self.folder()
        (folder / "data").mkdir()
        (folder / "data/words").write_text("from the data\n")
        page = run("reference", "spec").out.decode().partition("\n## The file of atoll mcp\n")[2]
        example = "".join(f"{line[4:]}\n" for line in page.splitlines() if line.startswith("    "))
        (folder / "sandboxes.yaml").write_text(example)
        server = self.serve("--config", str(folder / "sandboxes.yaml"))
        server.initialize()
        tools = {tool["name"]: tool for tool in server.request("tools/list")["result"]["tools"]}
        self.assertEqual(
            list(tools), [*FOUR, *(f"scratch_{name}" for name in (*FOUR, "edit_file", "search_files"))]
        )
        self.assertIn("Analyses the data in /data.", tools["run_command"]["description"])
        self.assertIn("It has none of the data.", tools["scratch_run_command"]["description"])
        script = {"command": "cat /data/words || echo none; echo here >mark; hostname >/dev/null"}
        self.assertIn("from the data", server.call("run_command", script)["content"][0]["text"])
        self.assertIn("none", server.call("scratch_run_command", script)["content"][0]["text"])
        server.end()


class Serving(CommandTest):
    def test_options_reach_the_tools(self):
        server = self.serve("--tool-prefix", "py", "--tool", "search_files", "--purpose", "Counts words.")
        server.initialize()
        tools = server.request("tools/list")["result"]["tools"]
        self.assertEqual([tool["name"] for tool in tools], [f"py_{name}" for name in (*FOUR, "search_files")])
        self.assertIn("Counts words.", tools[0]["description"])
        self.assert_ended_well(server)

    def test_a_variable_and_the_lines_of_a_file_are_masked(self):
        secrets = self.write("swordfish\n", "secrets")
        environment = os.environ | {"API_KEY": "hunter2"}
        server = self.serve("--mask", "API_KEY", "--mask", f"@{secrets}", env=environment)
        server.initialize()
        answer = server.call("run_command", {"command": "echo hunter2 and swordfish"})
        self.assertEqual(answer["content"][0]["text"], "[stdout]\n*** and ***")
        self.assertNotIn("hunter2", json.dumps(answer))
        server.end()

    def test_one_that_a_person_starts_says_what_it_waits_for(self):
        leader, follower = pty.openpty()
        client = Client([], verb="mcp", stdin=follower, stderr=subprocess.PIPE)
        self.addCleanup(self._end, client)
        os.close(follower)
        self.addCleanup(os.close, leader)
        os.write(leader, b"\x04")
        out, err = client.communicate(timeout=LIMIT_S)
        self.assertEqual((client.returncode, out), (0, b""), err)
        self.assertIn(b"waits for the messages of an MCP client", err)
        self.assertIn(b"atoll mcp config", err)

    def test_nothing_of_the_host_is_tried_before_the_first_call(self):
        server = self.serve()
        server.initialize()
        tasks = Path(f"/proc/{server.client.pid}/task/{server.client.pid}/children")
        server.request("tools/list")
        self.assertEqual(tasks.read_text(), "")
        self.assert_ended_well(server)


class Clients(CommandTest):
    def test_every_client_of_the_help_is_tested_here(self):
        refused = run("mcp", "config", "--client")
        self.assert_refused(refused, "--client needs an argument")
        names = refused.err.decode().partition("one of ")[2].strip().split(", ")
        self.assertEqual(sorted(names), sorted([*JSON_CLIENTS, *OTHERS]))

    def test_json_is_read_and_starts_a_server(self):
        folder = self.folder()
        (folder / "README").write_text("a project\n")
        for client, key in JSON_CLIENTS.items():
            with self.subTest(client):
                text, beside = self.config(client, "--prefix", "box", "--name", "sand-box")
                entry = json.loads(text)[key]["sand-box"]
                self.assertIn(entry.get("type"), (None, "stdio"))
                self.assertIn("This goes into ", beside)
                arguments = [self.expanded(argument, folder) for argument in entry["args"]]
                names = self.assert_answers(entry["command"], arguments)
                self.assertEqual(names, [f"box_{name}" for name in FOUR])

    def expanded(self, argument, folder):
        """As the clients replace their variables."""
        environment = {"workspaceFolder": str(folder)}
        return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", lambda m: environment.get(m[1], m[2]), argument)

    def test_the_folder_of_the_project_is_where_commands_start(self):
        folder = self.folder()
        (folder / "README").write_text("a project\n")
        for client, how in (("vscode", {}), ("claude-code", {"cwd": folder})):
            with self.subTest(client):
                text, _ = self.config(client)
                entry = json.loads(text)[JSON_CLIENTS[client]]["atoll"]
                arguments = [self.expanded(argument, folder) for argument in entry["args"]]
                server = self.serve(*arguments[1:], **how)
                server.initialize()
                answer = server.call("run_command", {"command": "cat README && echo done >made"})
                self.assertEqual(answer["content"][0]["text"], "[stdout]\na project")
                self.assertEqual((folder / "made").read_text(), "done\n")
                (folder / "made").unlink()
                self.assertEqual(server.end()[0], 0)

    def test_toml_is_read_and_starts_a_server(self):
        text, beside = self.config("codex")
        self.assertIn("~/.codex/config.toml", beside)
        entry = tomllib.loads(text)["mcp_servers"]["atoll"]
        self.assertEqual(self.assert_answers(entry["command"], entry["args"]), FOUR)
        self.assertGreater(entry["tool_timeout_sec"], 300)

    def test_yaml_starts_a_server(self):
        """That it is YAML is seen in tests/unit/cli_mcp_clients_test.c; Python itself reads none."""
        text, beside = self.config("goose")
        self.assertIn("~/.config/goose/config.yaml", beside)
        self.assertTrue(text.startswith('extensions:\n  "atoll":\n    enabled: true\n    type: stdio\n'), text)
        self.assertEqual(self.assert_answers(self.value(text, "cmd"), self.value(text, "args")), FOUR)
        text, beside = self.config("continue", "--prefix", "py")
        self.assertIn(".continue/mcpServers/", beside)
        self.assertTrue(text.startswith('name: "atoll"\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name:'), text)
        names = self.assert_answers(self.value(text, "command"), self.value(text, "args"))
        self.assertEqual(names, [f"py_{name}" for name in FOUR])

    def value(self, text, key):
        """What stands behind a key of YAML that has JSON for its values."""
        return json.loads(re.search(rf"^ +{key}: (.*)$", text, re.MULTILINE)[1])

    def test_the_program_is_named_by_its_own_path(self):
        folder = self.folder() / "with a blank"
        folder.mkdir()
        copy = folder / 'at"oll'
        shutil.copy(ATOLL, copy)
        done = subprocess.run(
            [copy.name, "mcp", "config", "--client", "zed"], executable=copy, env={}, capture_output=True,
            timeout=LIMIT_S, check=True,
        )
        self.assertEqual(json.loads(done.stdout)["context_servers"]["atoll"]["command"], str(copy))

    def test_mistakes_are_named(self):
        for arguments, words in (
            ([], ("--client", "claude-code", "zed")),
            (["--client", "cursr"], ('"cursr"', "nearest one is cursor")),
            (["--client", "zed", "--prefix", "a b"], ("--prefix", "not an identifier")),
            (["--client", "zed", "--name", 'a"b'], ("--name", "letters, digits")),
            (["--client", "zed", "more"], ('unexpected argument "more"', "atoll mcp config")),
        ):
            with self.subTest(arguments):
                self.assert_refused(run("mcp", "config", *arguments), *words)

    def test_help_and_completion_know_the_second_word(self):
        for arguments in (["help", "mcp", "config"], ["mcp", "config", "--help"]):
            self.assertTrue(run(*arguments).out.startswith(b"Usage: atoll mcp config "), arguments)
        self.assertTrue(run("help", "mcp").out.startswith(b"Usage: atoll mcp ["))
        self.assert_refused(run("help", "mcp", "confg"), 'unexpected argument "confg"')
        self.assertEqual(self.offered("mcp", ""), ["config"])
        self.assertIn("--tool", self.offered("mcp", "--t"))
        self.assertEqual(self.offered("mcp", "config", "--cl"), ["--client"])
        self.assertEqual(self.offered("mcp", "config", "--client", "cu"), ["cursor"])
        self.assertEqual(self.offered("run", "--vol"), ["--volume"])
        self.assertNotIn("config", self.offered(""))

    def offered(self, *words):
        """What bash would complete the last word to."""
        script = run("reference", "bash").out.decode() + (
            'compopt() { :; }\nCOMP_WORDS=(atoll "$@") COMP_CWORD=$#\n_atoll\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
        )
        done = subprocess.run(
            [self.need("bash"), "-s", "--", *words], input=script, capture_output=True, text=True, timeout=LIMIT_S,
            check=True,
        )
        return done.stdout.split()


if __name__ == "__main__":
    unittest.main()
