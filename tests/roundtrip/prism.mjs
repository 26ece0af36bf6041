/**
 * Prism, a validating mock server, judges requests by the raw document: one line of JSON in, one out, for each.
 * It sees what its own HTTP server would hand on: a parsed URL, lower-case headers, and a body parsed where it is JSON.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parse as parseQuery } from "node:querystring";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../tools/npm/", import.meta.url));
const { getHttpOperationsFromSpec } = require("@stoplight/prism-http");
const { validateInput } = require("@stoplight/prism-http/dist/validator");
const { parse } = require("yaml");

const ERROR = 0;
const FORM = "application/x-www-form-urlencoded";

/** Nothing is fetched, from a disk or a network: what a reference outside the document stands for is not judged. */
function closed(node) {
  if (node === null || typeof node !== "object") return node;
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node.$ref === "string" && !node.$ref.startsWith("#")) return {};
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, closed(value)]));
}

/**
 * Only what requests are made of: Prism unfolds the cycles of all schemas before it judges anything, and in some documents
 * those of the answers have no end.
 */
function requestsOnly(raw) {
  const { components, definitions, responses, paths, ...rest } = raw;
  const asked = mapped(paths ?? {}, (item) => mapped(item, withoutAnswers));
  const kept = { ...rest, paths: asked };
  const schemes = components?.securitySchemes;
  if (components !== undefined) kept.components = schemes === undefined ? {} : { securitySchemes: schemes };
  const found = new Set();
  const follow = (node) => {
    if (node === null || typeof node !== "object") return;
    if (typeof node.$ref === "string" && !found.has(node.$ref)) {
      found.add(node.$ref);
      follow(at(raw, steps(node.$ref)));
    }
    Object.values(node).forEach(follow);
  };
  follow(kept);
  for (const pointer of found) keep(kept, raw, steps(pointer));
  return kept;
}
const mapped = (node, change) =>
  node === null || typeof node !== "object" || Array.isArray(node)
    ? node
    : Object.fromEntries(Object.entries(node).map(([name, value]) => [name, change(value)]));
const withoutAnswers = (operation) => {
  if (operation?.responses === undefined) return operation;
  const { callbacks, ...asked } = operation;
  return { ...asked, responses: { default: { description: "not judged" } } };
};
const steps = (pointer) =>
  pointer.slice(2).split("/").map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));
const at = (node, names) => names.reduce((inner, name) => inner?.[name], node);
/** A component is kept whole; whatever else is referred to is put back to its place. */
function keep(target, source, names) {
  const whole = names[0] === "components" ? names.slice(0, 3) : names[0] === "paths" ? names : names.slice(0, 2);
  const value = at(source, whole);
  if (value === undefined || at(target, whole) !== undefined) return;
  const last = whole.at(-1);
  const place = whole.slice(0, -1).reduce((inner, name) => (inner[name] ??= {}), target);
  place[last] = value;
}

/**
 * Prism fails on lists and objects in a path, which its template library has already taken apart when it splits them, on
 * labels and matrices, and on a header's list that is absent. Those are left to the decoders.
 */
const isFlat = ({ schema }) => !["array", "object"].includes(schema?.type);
const isReadable = (parameter) => isFlat(parameter) && (parameter.style ?? "simple") === "simple";

/** Prism takes an `explode` that is not stated for false; beside `form` it means true (OpenAPI 3.1 section 4.8.12.2). */
const withDefault = (parameter) => ({ ...parameter, explode: parameter.explode ?? (parameter.style ?? "form") === "form" });

function judgeable(operation) {
  const { path = [], headers = [], query = [], ...request } = operation.request ?? {};
  const parameters = { path: path.filter(isReadable), headers: headers.filter(isFlat), query: query.map(withDefault) };
  return { ...operation, request: { ...request, ...parameters } };
}

async function operationsOf(file) {
  const text = readFileSync(file, "utf8");
  const raw = text.trimStart().startsWith("{") ? JSON.parse(text) : parse(text, { maxAliasCount: 10_000 });
  const found = await getHttpOperationsFromSpec(requestsOnly(closed(raw)));
  return new Map(found.map((one) => [`${one.method.toLowerCase()} ${one.path}`, judgeable(one)]));
}

function element({ method, target, headers, body }) {
  const [path, query = ""] = target.split(/\?(.*)/s);
  const bytes = body === null ? null : Buffer.from(body, "base64");
  const type = (headers["content-type"] ?? "").split(";")[0].trim();
  const text = bytes?.toString("utf8");
  return {
    method,
    url: { path, query: { ...parseQuery(query) } },
    headers: bytes === null ? headers : { ...headers, "content-length": String(bytes.length) },
    // A form without fields is an empty body, which Prism reads as one field without a name.
    body: /[/+]json$/.test(type) ? JSON.parse(text) : text === "" && type === FORM ? undefined : text,
  };
}

function judged(operation, request) {
  if (operation === undefined) return ["Prism: it knows no such operation"];
  try {
    const found = validateInput({ resource: operation, element: element(request) });
    const all = found._tag === "Left" ? found.left : [];
    const type = request.headers["content-type"]?.split(";")[0] ?? "no body";
    // The first says enough: the others often follow from it.
    return all.filter((one) => one.severity === ERROR).slice(0, 1).map((one) => `Prism (${type}): ${one.code ?? "none"}: ${one.message}`);
  } catch (error) {
    return [`Prism fails: ${error.message}`];
  }
}

const operations = await operationsOf(process.argv[2]);
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(judged(operations.get(`${request.method} ${request.operation}`), request))}\n`);
}
