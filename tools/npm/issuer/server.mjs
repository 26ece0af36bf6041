// An authorization server for tests: oidc-provider, the certified one, with users who always agree.
// Usage: node server.mjs '{"resources": {"URL": {"scope": "…", "seconds": 600}}, "exchange": {"clientId": …, "secret": …}}'
// Prints {"url": …} once it listens. Everything below /test is the tests' own hand on it.
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose';
import Provider, { errors } from 'oidc-provider';

const { resources, exchange } = JSON.parse(process.argv[2]);
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

const keys = ['first', 'second'].map((kid) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES256' };
});
const published = new Set(['first']);
let signing = 'first';
const asked = { exchanges: 0, refreshes: 0, registrations: 0 };

const server = createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${server.address().port}`;
const publicKeys = () => ({ keys: keys.filter((key) => published.has(key.kid)).map(({ d, ...key }) => key) });

const resourceServer = (indicator) => {
  if (!(indicator in resources)) throw new errors.InvalidTarget();
  return {
    scope: resources[indicator].scope,
    audience: indicator,
    accessTokenTTL: resources[indicator].seconds,
    accessTokenFormat: 'jwt',
    jwt: { sign: { alg: 'ES256', kid: signing } },
  };
};

const provider = new Provider(url, {
  jwks: { keys },
  cookies: { keys: ['only for tests'] },
  clients: [
    {
      client_id: exchange.clientId,
      client_secret: exchange.secret,
      grant_types: [TOKEN_EXCHANGE],
      response_types: [],
      redirect_uris: [],
      token_endpoint_auth_method: 'client_secret_basic',
    },
    {
      client_id: 'known-host',
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: ['http://127.0.0.1:3999/callback'],
      token_endpoint_auth_method: 'none',
    },
  ],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  scopes: ['openid', 'offline_access', ...new Set(Object.values(resources).flatMap(({ scope }) => scope.split(' ')))],
  pkce: { required: () => true },
  ttl: { AccessToken: (ctx, token) => token.resourceServer?.accessTokenTTL ?? 600, Grant: 86_400, Session: 86_400, Interaction: 600, RefreshToken: 86_400 },
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  // The grant is the session that an administrator blocks, and that an exchange looks for.
  extraTokenClaims: (ctx, token) => (token.grantId ? { sid: token.grantId } : undefined),
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (ctx, interaction) => `/test/agree/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, indicator) => resourceServer(indicator),
    },
  },
});

// EXTENSION OF OURS: oidc-provider has no token exchange (RFC 8693). As little of it as a real server would do.
provider.registerGrantType(
  TOKEN_EXCHANGE,
  async (ctx) => {
    asked.exchanges += 1;
    const { params, client } = ctx.oidc;
    if (params.subject_token_type !== ACCESS_TOKEN) throw new errors.InvalidRequest('subject_token_type');
    const { payload } = await jwtVerify(params.subject_token, createLocalJWKSet(publicKeys()), { issuer: url }).catch(
      () => {
        throw new errors.InvalidGrant('subject_token');
      },
    );
    const grant = await provider.Grant.find(payload.sid);
    if (!grant) throw new errors.InvalidGrant('the grant was withdrawn');
    const target = params.audience ?? params.resource;
    const info = resourceServer(target);
    const token = new provider.AccessToken({ client, accountId: payload.sub, grantId: payload.sid, gty: TOKEN_EXCHANGE });
    token.resourceServer = new provider.ResourceServer(target, info);
    token.scope = params.scope ?? info.scope;
    ctx.oidc.entity('AccessToken', token);
    ctx.body = {
      access_token: await token.save(),
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: token.expiration,
      scope: token.scope,
    };
  },
  ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'],
);
provider.on('grant.success', (ctx) => {
  if (ctx.oidc.params.grant_type === 'refresh_token') asked.refreshes += 1;
});
provider.on('registration_create.success', () => (asked.registrations += 1));

// Whoever is named in login_hint signs in, and agrees to everything that is asked for.
async function agree(request, response) {
  const { params, prompt, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    await provider.interactionFinished(request, response, { login: { accountId: params.login_hint ?? 'nobody' } });
    return;
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(['openid', 'offline_access', ...(prompt.details.missingOIDCScope ?? [])].join(' '));
  for (const [indicator, scope] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(indicator, scope.join(' '));
  }
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

const tests = {
  '/test/announce': () => published.add('second'),
  '/test/rotate': () => (published.add('second'), (signing = 'second')),
  '/test/withdraw': () => published.delete('first'),
  '/test/asked': () => asked,
  '/test/revoke': async (query) => (await provider.Grant.find(query.get('grant')))?.destroy(),
};

const callback = provider.callback();
server.on('request', async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, url);
  try {
    if (pathname.startsWith('/test/agree/')) return await agree(request, response);
    if (pathname in tests) {
      const answer = await tests[pathname](searchParams);
      return response.end(JSON.stringify(answer ?? {}, (key, value) => (value instanceof Set ? [...value] : value)));
    }
    if (pathname === '/jwks') {
      response.setHeader('content-type', 'application/json');
      return response.end(JSON.stringify(publicKeys()));
    }
    return callback(request, response);
  } catch (error) {
    console.error(error);
    response.statusCode = 500;
    return response.end();
  }
});
process.stdout.write(`${JSON.stringify({ url })}\n`);
