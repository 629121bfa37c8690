// SPDX-License-Identifier: Apache-2.0
// Drives an MCP server by the TypeScript SDK, of either generation, as drive_python.py does by the Python SDK; that file
// says what it is asked and what it answers.
// Usage: node drive_node.mjs ERA PACKAGES COMMAND...     ERA: sdk1, or of the second generation legacy, auto, modern;
//                                                        PACKAGES: the folder node_modules
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [era, packages, command, ...args] = process.argv.slice(2);
const from = (path) => import(pathToFileURL(`${packages}/@modelcontextprotocol/${path}`));
const say = (fields) => process.stdout.write(JSON.stringify(fields) + '\n');

async function connect() {
  const me = { name: 'interop', version: '1' };
  const server = { command, args };
  if (era === 'sdk1') {
    const { Client } = await from('sdk/dist/esm/client/index.js');
    const { StdioClientTransport } = await from('sdk/dist/esm/client/stdio.js');
    const client = new Client(me);
    const transport = new StdioClientTransport(server);
    // This SDK tells the version only to its transport.
    transport.setProtocolVersion = (version) => (client.version = version);
    await client.connect(transport);
    return client;
  }
  const { Client } = await from('client/dist/index.mjs');
  const { StdioClientTransport } = await from('client/dist/stdio.mjs');
  const mode = era === 'modern' ? { pin: '2026-07-28' } : era;
  const client = new Client(me, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport(server));
  client.version = client.getNegotiatedProtocolVersion();
  return client;
}

const client = await connect();
const calls = new Map(); // number: how to give it up

function call({ id, name, arguments: given, progress, timeout }) {
  const controller = new AbortController();
  calls.set(id, controller);
  const options = { signal: controller.signal, timeout: timeout ? timeout * 1000 : 300000 };
  if (progress) options.onprogress = (news) => say({ id, progress: news });
  const params = { name, arguments: given };
  return era === 'sdk1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

const actions = {
  list: () => client.listTools(),
  call,
  cancel: ({ call: number }) => calls.get(number).abort('given up') ?? {},
  resources: () => client.listResources(),
  read: ({ uri }) => client.readResource({ uri }),
};

say({
  event: 'connected',
  protocol: client.version,
  server: client.getServerVersion(),
  instructions: client.getInstructions(),
  capabilities: client.getServerCapabilities(),
});
const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const request = JSON.parse(line);
  try {
    say({ id: request.id, result: await actions[request.do](request) });
  } catch (error) {
    say({ id: request.id, error: `${error?.name}: ${error?.message ?? error}`, code: error?.code ?? null });
  }
});
lines.on('close', async () => {
  await client.close();
  say({ event: 'closed' });
});
