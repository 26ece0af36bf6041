// Reads nested names (a[b][0]=c) with qs: a line of JSON text in, a line of JSON out.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../tools/npm/package.json", import.meta.url));
const { parse } = require("qs");
const options = { depth: 50, arrayLimit: 10_000, parameterLimit: 50_000, allowPrototypes: true };

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(parse(JSON.parse(line), options)) + "\n");
}
