// Connects one of the two TypeScript SDKs to a server, lists its tools, makes calls, and prints one JSON object.
// Usage: node connect.mjs legacy|modern '{"url": …} | {"command": …, "args": […], "env": {…}}' '[{"name": …, "arguments": {…}}]'
const [era, where, steps] = [process.argv[2], JSON.parse(process.argv[3]), JSON.parse(process.argv[4])];

const sdks = {
  async legacy() {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const client = new Client({ name: 'legacy-test', version: '1' }, { capabilities: {} });
    // In this SDK the options of callTool are the third argument.
    const call = (step, options) => client.callTool(step, undefined, options);
    return { client, call, StreamableHTTPClientTransport, StdioClientTransport };
  },
  async modern() {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
    const client = new Client(
      { name: 'modern-test', version: '1' },
      { capabilities: {}, versionNegotiation: { mode: 'auto' } },
    );
    return { client, call: (step, options) => client.callTool(step, options), StreamableHTTPClientTransport, StdioClientTransport };
  },
};

const { client, call, StreamableHTTPClientTransport, StdioClientTransport } = await sdks[era]();
const transport = where.url
  ? new StreamableHTTPClientTransport(new URL(where.url))
  : new StdioClientTransport({ command: where.command, args: where.args, env: where.env, stderr: 'ignore' });
await client.connect(transport);
const protocol = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
const { tools } = await client.listTools();
const progress = [];
const results = [];
for (const step of steps) {
  results.push(await call(step, { onprogress: (p) => progress.push(p), timeout: 60000 }));
}
const output = { protocol, server: client.getServerVersion(), instructions: client.getInstructions(), tools, results, progress };
await client.close();
process.stdout.write(JSON.stringify(output) + '\n', () => process.exit(0));
