# SPDX-License-Identifier: Apache-2.0
"""An agent of pydantic-ai whose model follows a script, with the tools of an MCP server.

Usage: python drive_agent.py SCRIPT COMMAND...     SCRIPT: JSON, for each turn of the model a list of [tool, arguments]

It prints as one object what the model was given: "tools", "instructions", and "turns", for each of them the answers to
the calls of the turn before as [outcome, tool, content], outcome being "success" or "retried", which asks the model to
try again. Behind the last turn the model says "done".
"""
import asyncio
import json
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import BinaryContent, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

seen = {"turns": []}


def plain(content):
    """What a tool returned, as JSON can hold it."""
    if isinstance(content, BinaryContent):
        return {"type": content.media_type, "bytes": len(content.data)}
    if isinstance(content, (list, tuple)):
        return [plain(item) for item in content]
    return content if isinstance(content, (str, int, float, bool, dict, type(None))) else repr(content)


def answers(message):
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            yield [part.outcome, part.tool_name, plain(part.content)]


def model_of(script):
    turns = iter(script)

    def model(messages, info):
        seen.setdefault("tools", [tool.name for tool in info.function_tools])
        seen.setdefault("instructions", info.instructions)
        seen["turns"].append(list(answers(messages[-1])))
        calls = next(turns, None)
        if calls is None:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(tool, arguments) for tool, arguments in calls])

    return FunctionModel(model)


async def main():
    script, command = json.loads(sys.argv[1]), sys.argv[2:]
    transport = StdioTransport(command=command[0], args=command[1:], keep_alive=False)
    toolset = MCPToolset(transport, include_instructions=True)
    agent = Agent(model_of(script), toolsets=[toolset])
    async with agent:
        result = await agent.run("do what has to be done")
    seen["output"] = result.output
    print(json.dumps(seen))


asyncio.run(main())
