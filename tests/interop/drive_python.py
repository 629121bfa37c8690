# SPDX-License-Identifier: Apache-2.0
"""Drives an MCP server by the Python SDK, of either generation, as lines of JSON on standard input ask for it.

Usage: python drive_python.py ERA COMMAND...     ERA: legacy, modern, or auto, which leaves it to the SDK

It first says {"event": "connected", …}, and then does each request as it comes, without waiting for the ones before:

  {"id": N, "do": "list"}                               the tools
  {"id": N, "do": "call", "name": …, "arguments": …}    "progress": true asks for it; "timeout": seconds gives up
  {"id": N, "do": "cancel", "call": M}                  gives the call M up
  {"id": N, "do": "resources"}, {"id": N, "do": "read", "uri": …}

It answers {"id": N, "result": …} or {"id": N, "error": …}, and {"id": N, "progress": …} before that. At the end of
its input it closes the client as the SDK does, and says {"event": "closed"}.
"""
import asyncio
import contextlib
import datetime
import json
import sys

import mcp
from mcp import StdioServerParameters, stdio_client

TWO = hasattr(mcp, "Client")  # the second generation
LINE_MAX = 64 << 20


def say(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def wire(model):
    """A model of the SDK as it is on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class First:
    """The first generation: a session upon a transport."""

    @contextlib.asynccontextmanager
    async def connected(self, parameters, _era):
        async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as self.session:
            hello = await self.session.initialize()
            say(event="connected", protocol=hello.protocolVersion, server=wire(hello.serverInfo),
                instructions=hello.instructions, capabilities=wire(hello.capabilities))
            yield self.session

    def call(self, request, on_progress):
        seconds = request.get("timeout")
        limit = None if seconds is None else datetime.timedelta(seconds=seconds)
        return self.session.call_tool(request["name"], request.get("arguments"), limit, progress_callback=on_progress)

    async def read(self, uri):
        from pydantic import AnyUrl

        return await self.session.read_resource(AnyUrl(uri))

    def next_request(self):
        return self.session._request_id  # to be named when it is given up, which this SDK leaves to its user

    async def given_up(self, number):
        from mcp import types

        params = types.CancelledNotificationParams(requestId=number, reason="given up")
        await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))


class Second:
    """The second generation: a client of its own, which tells the server itself when a call is given up."""

    @contextlib.asynccontextmanager
    async def connected(self, parameters, era):
        mode = {"modern": "2026-07-28"}.get(era, era)
        async with mcp.Client(parameters, mode=mode, cache=None) as self.session:
            server = self.session.server_info
            say(event="connected", protocol=self.session.protocol_version, server=wire(server) if server else None,
                instructions=self.session.instructions, capabilities=wire(self.session.server_capabilities))
            yield self.session

    def call(self, request, on_progress):
        return self.session.call_tool(request["name"], request.get("arguments"), request.get("timeout"), on_progress)

    async def read(self, uri):
        return await self.session.read_resource(uri)

    def next_request(self):
        return None

    async def given_up(self, number):
        pass


class Driver:
    def __init__(self):
        self.sdk = Second() if TWO else First()
        self.calls = {}  # number of the driver's: task

    async def call(self, request):
        async def on_progress(progress, total, message):
            say(id=request["id"], progress={"progress": progress, "total": total, "message": message})

        number = self.sdk.next_request()
        try:
            return await self.sdk.call(request, on_progress if request.get("progress") else None)
        except asyncio.CancelledError:
            await asyncio.shield(self.sdk.given_up(number))
            raise
        except Exception as error:
            if "timed out" in str(error).lower():
                await self.sdk.given_up(number)
            raise

    async def act(self, request):
        what = request["do"]
        if what == "call":
            return wire(await self.call(request))
        if what == "cancel":
            self.calls[request["call"]].cancel()
            return {}
        if what == "read":
            return wire(await self.sdk.read(request["uri"]))
        return wire(await {"list": self.session.list_tools, "resources": self.session.list_resources}[what]())

    async def answer(self, request):
        try:
            say(id=request["id"], result=await self.act(request))
        except asyncio.CancelledError:
            say(id=request["id"], error="cancelled")
        except Exception as error:
            say(id=request["id"], error=f"{type(error).__name__}: {error}", code=getattr(getattr(error, "error", None), "code", None))

    async def serve(self, lines):
        while line := await lines.readline():
            request = json.loads(line)
            self.calls[request["id"]] = asyncio.create_task(self.answer(request))

    async def run(self, era, command):
        lines = asyncio.StreamReader(LINE_MAX)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        async with self.sdk.connected(parameters, era) as self.session:
            await self.serve(lines)
            for task in self.calls.values():
                task.cancel()
        say(event="closed")


asyncio.run(Driver().run(sys.argv[1], sys.argv[2:]))
