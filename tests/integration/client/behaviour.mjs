// What a client does with answers: `node behaviour.mjs CLIENT` prints one JSON object, a member for each case.
import { pathToFileURL } from "node:url";

const { createClient, paginate, SandbridgeError } = await import(pathToFileURL(process.argv[2]));
const json = (body, init = {}) =>
  new Response(JSON.stringify(body), { ...init, headers: { "content-type": "application/json", ...init.headers } });
/** A client whose requests are noted and answered in turn; the last answer stays. */
const served = (...answers) => {
  const seen = [];
  const fetch = async (url, { method, headers }) => {
    seen.push([method, url, Object.fromEntries(headers).Authorization ?? null]);
    return answers.length > 1 ? answers.shift()() : answers[0]();
  };
  const { api } = createClient({ baseUrl: "https://api.test", credential: "k", fetch, longestWaitMs: 50 });
  return { api, seen };
};
const outcome = async (call) => {
  try {
    const { data = null, error = null, response } = await call();
    return [data instanceof Uint8Array ? Array.from(data) : data, error, response.status];
  } catch (error) {
    return error instanceof SandbridgeError ? [error.code, error.retryable] : [String(error)];
  }
};
const busy = (wait) => () => json({}, { status: 429, headers: wait === undefined ? {} : { "retry-after": wait } });
const results = {};
const run = async (name, client, call) => {
  results[name] = { outcome: await outcome(() => call(client.api)), seen: client.seen };
};

await run("a safe call is repeated", served(busy("0"), () => json([1])), (api) => api.things.list());
await run("a write is not repeated", served(busy("0"), () => json([1])), (api) => api.things.create({ body: {} }));
await run("a long wait is not waited for", served(busy("60"), () => json([1])), (api) => api.things.list());
const to = (url) => () => new Response(null, { status: 302, headers: { location: url } });
await run("a redirect at home is followed", served(to("/other?x=1"), () => json([1])), (api) => api.things.list());
await run("a redirect elsewhere is not", served(to("https://evil.test/x"), () => json([1])), (api) => api.things.list());
await run("a redirect for ever ends", served(to("/things")), (api) => api.things.list());
await run("no answer", served(() => { throw new TypeError("refused"); }), (api) => api.things.list());
await run("empty", served(() => new Response(null, { status: 204 })), (api) => api.things.create({ body: {} }));
await run("empty error", served(() => new Response(null, { status: 500 })), (api) => api.things.create({ body: {} }));
await run("bytes", served(() => new Response(Uint8Array.of(137, 80), { headers: { "content-type": "image/png" } })), (api) =>
  api.things.list());
await run("text", served(() => new Response("é", { headers: { "content-type": "text/csv; charset=utf-8" } })), (api) =>
  api.things.list());
await run("not JSON", served(() => new Response("{oops", { headers: { "content-type": "application/json" } })), (api) =>
  api.things.list());
await run("hidden headers", served(() => json({}, { headers: { "set-cookie": "a=b", "x-a": "1" } })), async (api) => {
  const { response } = await api.things.list();
  return { data: response.headers, response };
});
await run("two arguments", served(() => json({})), (api) => api.things.list({}, {}));
await run("unknown part", served(() => json({})), (api) => api.things.list({ params: {} }));
const big = served(() => new Response('{"id":9007199254740993}', { headers: { "content-type": "application/json" } }));
await run("big integers", big, async (api) => {
  const { data, response } = await api.things.list();
  return { data: [typeof data.id, String(data.id)], response };
});
const pages = served(
  () => json([1, 2], { headers: { link: '<https://api.test/things?page=2>; rel="next"' } }),
  () => json([3], { headers: { link: '<https://api.test/things?page=1>; rel="first"' } }),
);
results.pages = { outcome: await Array.fromAsync(paginate(pages.api.things.list)), seen: pages.seen };
const failing = served(() => json({}, { status: 500 }));
await run("a page that fails", failing, async (api) => {
  for await (const _ of paginate(api.things.list)) continue;
});
console.log(JSON.stringify(results));
