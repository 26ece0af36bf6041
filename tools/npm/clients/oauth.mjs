// Signs in to a protected endpoint with one of the two TypeScript SDKs, as a host does, with a browser of its own.
// Usage: node oauth.mjs legacy|modern URL USER [CLIENT_ID]. Without an id the client registers itself. Reads steps, one JSON object a line; answers each with one line:
// {"tool": NAME, "arguments": {…}} calls a tool, {"forget": "access"|"refresh"} spoils or drops a token, {"state": true} tells.
import { createInterface } from 'node:readline';

const [era, endpoint, user, clientId] = process.argv.slice(2);
const legacy = era === 'legacy';
const { Client } = await import(legacy ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const { StreamableHTTPClientTransport } = await import(
  legacy ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client'
);
const REDIRECT = 'http://127.0.0.1:3999/callback';
const asked = [];

async function browse(start) {
  const jar = new Map();
  let url = new URL(start);
  url.searchParams.set('login_hint', user);
  for (let hops = 0; hops < 12; hops += 1) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [pair] = set.split(';');
      jar.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
    }
    const location = response.headers.get('location');
    if (!location) throw new Error(`the browser stands at ${url}: ${response.status} ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(REDIRECT)) return url.searchParams;
  }
  throw new Error('the browser goes round in circles');
}

const provider = {
  information: clientId ? { client_id: clientId } : undefined,
  redirectUrl: REDIRECT,
  clientMetadata: {
    client_name: 'oauth-test',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  },
  clientInformation: () => provider.information,
  saveClientInformation: (information) => (provider.information = information),
  tokens: () => provider.kept,
  saveTokens: (tokens) => (provider.kept = tokens),
  saveCodeVerifier: (verifier) => (provider.verifier = verifier),
  codeVerifier: () => provider.verifier,
  async redirectToAuthorization(url) {
    asked.push({ scope: url.searchParams.get('scope'), resource: url.searchParams.get('resource'), pkce: url.searchParams.get('code_challenge_method') });
    provider.came = await browse(url);
  },
};

const transport = () => new StreamableHTTPClientTransport(new URL(endpoint), { authProvider: provider });
const finish = (on) => (legacy ? on.finishAuth(provider.came.get('code')) : on.finishAuth(provider.came));
const options = legacy ? { capabilities: {} } : { capabilities: {}, versionNegotiation: { mode: 'auto' } };
const wants = (error) => error.name === 'UnauthorizedError' || error.constructor.name === 'UnauthorizedError' || /Unauthorized/i.test(error.message);

let client, current;
async function connect() {
  for (let tries = 0; ; tries += 1) {
    client = new Client({ name: 'oauth-test', version: '1' }, options);
    current = transport();
    try {
      return await client.connect(current);
    } catch (error) {
      if (tries > 1 || !wants(error)) throw error;
      await finish(current);
    }
  }
}

async function call(step) {
  const request = { name: step.tool, arguments: step.arguments };
  const send = () => (legacy ? client.callTool(request, undefined, { timeout: 60000 }) : client.callTool(request, { timeout: 60000 }));
  try {
    return await send();
  } catch (error) {
    if (provider.kept.refresh_token && /after trying upscoping/.test(error.message)) {
      // This SDK renews its token before it asks the user, and the new one allows no more than the old.
      delete provider.kept.refresh_token;
      await connect();
      return await call(step);
    }
    if (!wants(error)) throw error;
    // A step-up: the SDK has sent the user to agree to more; then the host repeats the call.
    await finish(current);
    return await send();
  }
}

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
await connect();
say({ connected: client.getNegotiatedProtocolVersion?.() ?? current.protocolVersion, asked, tokens: provider.kept });
for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  try {
    if (step.forget === 'access') provider.kept = { ...provider.kept, access_token: 'gone' };
    if (step.forget === 'refresh') delete provider.kept.refresh_token;
    say(step.tool ? { result: await call(step) } : { asked, tokens: provider.kept });
  } catch (error) {
    say({ error: `${error.name}: ${error.message}` });
  }
}
process.exit(0);
