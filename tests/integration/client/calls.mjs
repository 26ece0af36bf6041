// Make calls with a client and print the requests that they would have sent: `node calls.mjs CLIENT < CALLS`.
import { pathToFileURL } from "node:url";

const { createClient } = await import(pathToFileURL(process.argv[2]));
const revived = (_key, value, { source }) => {
  if (typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source)) return BigInt(source);
  if (value === null || typeof value !== "object" || typeof value.$bytes !== "string") return value;
  return value.name ? new File([value.$bytes], value.name, { type: value.type }) : new TextEncoder().encode(value.$bytes);
};
const calls = JSON.parse(await new Response(process.stdin).text(), revived);
const sent = [];
let now;
const capture = async (url, { method, headers, body }) => {
  const names = headers.map(([name, value]) => [name.toLowerCase(), value]);
  now = { method, url, headers: names, body: body === undefined ? null : Buffer.from(body).toString("base64") };
  return new Response("{}", { headers: { "content-type": "application/json" } });
};
const { api } = createClient({ baseUrl: "https://api.test/v1?fixed=1", fetch: capture, credential: "s3cret" });
for (const { call, args } of calls) {
  now = undefined;
  try {
    await call.split(".").reduce((at, name) => at[name], api)(args);
    sent.push(now);
  } catch (error) {
    sent.push({ error: error.code ?? String(error), message: error.message });
  }
}
console.log(JSON.stringify(sent));
