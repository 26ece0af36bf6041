// Arguments for every operation of an OpenAPI document, made from the raw document by openapi-sampler.
//
//   node generate.mjs DOCUMENT  →  JSON on standard output: {document, operations, withheld, exceptions}
//
// A Swagger 2.0 document is first rewritten as OpenAPI 3.0 by swagger2openapi. Nothing of Sandbridge takes part.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../tools/npm/package.json", import.meta.url));
const { sample } = require("openapi-sampler");
const { convertObj } = require("swagger2openapi");
const RandExp = require("randexp");
const { parse } = require("yaml");

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
// Header parameters of these names are ignored (OpenAPI 3.1 section 4.8.12.2).
const IGNORED_HEADERS = new Set(["accept", "content-type", "authorization"]);
// What no caller can give, whatever a document declares: the length is the transport's, a field needs a name.
const IMPOSSIBLE = new Map([["header content-length", "the transport states the length"], ["header ", "a header without a name"]]);
// What openapi-sampler writes where a schema says nothing but the type, so that any value of the type may stand there.
const FREE = "string";
const FREE_NUMBER = 0;
const FREE_NAME = /^property([12])$/;
// Texts of six characters, like the sample they replace, so that limits of length hold.
const EDGES = {
  unicode: { text: "éß日本€😀" },
  reserved: { text: "a&=+?#" },
  delimiters: { text: "%/:;,@" },
  marks: { text: "|~[]{}" },
  blanks: { text: 'a "b\' ' },
  dots: { text: "a.b.-_" },
  empty: { text: "" },
  large: { number: 2_000_000_003 },
  negative: { number: -7 },
  fraction: { number: 1.5e-7 },
  names: { name: "é&=+ %" },
};

const text = readFileSync(process.argv[2], "utf8");
const raw = text.trimStart().startsWith("{") ? JSON.parse(text) : parse(text, { maxAliasCount: 10_000 });
const spec = raw.swagger ? (await convertObj(raw, { patch: true, warnOnly: true })).openapi : raw;

function resolve(value, seen = 0) {
  if (value === null || typeof value !== "object" || typeof value.$ref !== "string" || seen > 30) return value ?? {};
  if (!value.$ref.startsWith("#/")) return {};
  const steps = value.$ref.slice(2).split("/").map((s) => decodeURIComponent(s).replaceAll("~1", "/").replaceAll("~0", "~"));
  return resolve(steps.reduce((at, step) => at?.[step], spec), seen + 1);
}

/** An example that RandExp makes of a pattern; none where the pattern is beyond it. */
function patterned({ pattern, minLength = 0, maxLength = Infinity }) {
  try {
    const maker = new RandExp(pattern);
    for (let round = 0; round < 60; round += 1) {
      maker.max = Math.max(round, minLength);
      maker.randInt = (from, to) => from + ((round * 7 + from) % (Math.min(to, from + round) - from + 1));
      const made = maker.gen();
      if (made.length >= minLength && made.length <= maxLength && new RegExp(pattern, "u").test(made)) return { example: made };
    }
  } catch {
    // openapi-sampler's own attempt stays.
  }
  return {};
}

const admitsNull = (schema) => schema.nullable === true || (Array.isArray(schema.type) && schema.type.includes("null"));

/**
 * A copy without the author's own examples, which need not be legal values. `way` changes it further: `branch` takes
 * another alternative than the first wherever there is one, `nulls` puts null wherever it may stand.
 */
function withoutExamples(schema, way = {}, depth = 0) {
  if (schema === null || typeof schema !== "object" || depth > 200) return schema;
  if (Array.isArray(schema)) return schema.map((one) => withoutExamples(one, way, depth + 1));
  if (way.nulls && admitsNull(schema)) return { ...schema, example: null };
  const kept = typeof schema.pattern === "string" && !schema.enum ? patterned(schema) : {};
  for (const [key, value] of Object.entries(schema)) {
    if (["properties", "patternProperties"].includes(key) && value && typeof value === "object") {
      kept[key] = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutExamples(one, way, depth + 1)]));
    } else if (!["example", "examples", "default"].includes(key)) {
      kept[key] = ["enum", "const"].includes(key) ? value : withoutExamples(value, way, depth + 1);
      if (way.branch && ["oneOf", "anyOf"].includes(key) && Array.isArray(value) && value.length > 1) {
        kept[key] = [kept[key][Math.min(way.branch, value.length - 1)]];
      }
    }
  }
  return kept;
}

const bare = withoutExamples(spec);
const WAYS = { "branch 2": { branch: 1 }, "branch 3": { branch: 2 }, "branch 4": { branch: 3 }, nulls: { nulls: true } };
const changed = Object.fromEntries(Object.entries(WAYS).map(([name, way]) => [name, withoutExamples(spec, way)]));

/** Candidates for one value, best first; where the first is no legal value the next one is taken. */
function candidates(schema, { requiredOnly, way }) {
  const options = { skipReadOnly: true, skipNonRequired: requiredOnly, quiet: true, enablePatterns: true };
  const made = [];
  const tries = [
    ...(way ? [[withoutExamples(schema, WAYS[way]), options, changed[way]]] : []),
    [schema, options, spec],
    [withoutExamples(schema), options, bare],
    [withoutExamples(schema), { ...options, maxSampleDepth: 4 }, bare],
    // Composition may require more than `required` says, or less than everything.
    [withoutExamples(schema), { ...options, skipNonRequired: !requiredOnly }, bare],
  ];
  for (const [one, chosen, root] of tries) {
    try {
      const value = sample(one, chosen, root);
      if (value !== undefined) made.push(value);
    } catch {
      // The next way may work; without any the operation counts as an exception.
    }
  }
  const seen = new Set();
  return made.filter((value) => {
    const key = JSON.stringify(value);
    return !seen.has(key) && seen.add(key);
  });
}

function credentials() {
  const schemes = Object.values(spec.components?.securitySchemes ?? {}).map((one) => resolve(one));
  return new Set(schemes.filter((s) => s.type === "apiKey").map((s) => `${s.in} ${s.in === "header" ? s.name?.toLowerCase() : s.name}`));
}
const closed = credentials();
const exceptions = [];
let withheld = 0;

function parametersOf(where, item, operation) {
  const found = new Map();
  for (const one of [...(item.parameters ?? []), ...(operation.parameters ?? [])]) {
    const parameter = resolve(one);
    if (typeof parameter.name === "string" && parameter.in) found.set(`${parameter.in} ${parameter.name}`, parameter);
  }
  return [...found.values()].filter((parameter) => {
    const header = parameter.in === "header";
    const name = header ? parameter.name.toLowerCase() : parameter.name;
    const impossible = IMPOSSIBLE.get(`${parameter.in} ${name}`);
    if (impossible) exceptions.push(`${where}: ${impossible}`);
    else if ((header && IGNORED_HEADERS.has(name)) || closed.has(`${parameter.in} ${name}`)) withheld += 1;
    else return true;
    return false;
  });
}

function properties(schema, depth = 0) {
  const one = resolve(schema);
  if (depth > 8 || typeof one !== "object") return {};
  const parts = [...(one.allOf ?? []), ...(one.oneOf ?? []).slice(0, 1), ...(one.anyOf ?? []).slice(0, 1)];
  return Object.assign({}, ...parts.map((part) => properties(part, depth + 1)), one.properties ?? {});
}

const isBinary = (schema) => {
  const one = resolve(schema);
  return one.type === "string" && (one.format === "binary" || one.contentMediaType === "application/octet-stream");
};

/** Mark the members of a multipart body that are files: {$binary: text}. */
function withFiles(schema, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const known = properties(schema);
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      const one = resolve(known[name] ?? {});
      if (isBinary(one)) return [name, { $binary: String(item) }];
      if (Array.isArray(item) && isBinary(one.items ?? {})) return [name, item.map((i) => ({ $binary: String(i) }))];
      return [name, item];
    }),
  );
}

const essence = (type) => type.split(";")[0].trim().toLowerCase();
const isJson = (type) => /[/+]json$/.test(essence(type)) || essence(type).includes("*");

function bodyCandidates(type, media, options) {
  if (isJson(type) && !(type.includes("*") && Object.keys(media.schema ?? {}).length === 0)) return candidates(media.schema ?? {}, options);
  if (essence(type) === "application/x-www-form-urlencoded") return candidates(media.schema ?? {}, options);
  if (essence(type).startsWith("multipart/")) {
    return candidates(media.schema ?? {}, options).map((value) => withFiles(media.schema ?? {}, value));
  }
  return /^text\/|[/+]xml$/.test(essence(type)) ? [FREE] : [{ $binary: "\u0000\u00ff bytes \r\n" }];
}

// swagger2openapi does not say that a body with a required form field is required.
const isNeeded = (body, type) => body.required || (raw.swagger && body.content[type].schema?.required?.length > 0);

function slots(parameters, body, type, { requiredOnly, way }) {
  const filled = parameters
    .filter((parameter) => !requiredOnly || parameter.required || parameter.in === "path")
    .map((parameter) => {
      const [content] = Object.values(parameter.content ?? {});
      const schema = content?.schema ?? parameter.schema ?? {};
      return { in: parameter.in, name: parameter.name, candidates: candidates(schema, { requiredOnly, way }) };
    });
  if (type !== undefined && (!requiredOnly || isNeeded(body, type))) {
    filled.push({ in: "body", name: type, candidates: bodyCandidates(type, body.content[type], { requiredOnly, way }) });
  }
  return filled;
}

function swapped(value, edge) {
  if (value === FREE) return edge.text ?? value;
  if (value === FREE_NUMBER) return edge.number ?? value;
  if (Array.isArray(value)) return value.map((one) => swapped(one, edge));
  if (value === null || typeof value !== "object" || "$binary" in value) return value;
  const renamed = (name) => (edge.name === undefined ? name : name.replace(FREE_NAME, `${edge.name}$1`));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [renamed(name), swapped(one, edge)]));
}

const takes = (place, edge) =>
  !((place === "path" && (edge === "empty" || edge === "blanks")) || (place === "header" && ["unicode", "blanks", "empty", "names"].includes(edge)));

function edgeCases(full) {
  const made = [];
  for (const [edge, change] of Object.entries(EDGES)) {
    let differs = false;
    const cases = full.map((slot) => {
      if (!takes(slot.in, edge)) return slot;
      // A slash in a path value is refused: it would reach another path.
      const put = slot.in === "path" ? { ...change, text: change.text?.replaceAll("/", ",") } : change;
      const values = slot.candidates.map((value) => swapped(value, put));
      if (JSON.stringify(values) === JSON.stringify(slot.candidates)) return slot;
      differs = true;
      return { ...slot, candidates: [...values, ...slot.candidates] };
    });
    if (differs) made.push({ name: edge, slots: cases });
  }
  return made;
}

/** The full case with other alternatives of its schemas, and with nulls: those that differ. */
function variants(parameters, body, type, full) {
  const seen = new Set([JSON.stringify(full.map((slot) => slot.candidates[0]))]);
  const made = Object.keys(WAYS).map((way) => ({ name: way, slots: slots(parameters, body, type, { requiredOnly: false, way }) }));
  return made.filter((one) => {
    const key = JSON.stringify(one.slots.map((slot) => slot.candidates[0]));
    return !seen.has(key) && seen.add(key);
  });
}

function casesOf(parameters, body) {
  const types = Object.keys(body.content ?? {});
  const full = slots(parameters, body, types[0], { requiredOnly: false });
  const others = types.slice(1);
  return [
    { name: "required", slots: slots(parameters, body, types[0], { requiredOnly: true }) },
    { name: "every", slots: full },
    ...others.map((type) => ({ name: `as ${type}`, slots: slots(parameters, body, type, { requiredOnly: false }) })),
    ...edgeCases(full),
    ...(types.length > 0 || parameters.length > 0 ? variants(parameters, body, types[0], full) : []),
  ];
}

const operations = [];
for (const [path, stated] of Object.entries(spec.paths ?? {})) {
  const item = resolve(stated);
  for (const method of METHODS.filter((name) => item[name] && typeof item[name] === "object")) {
    const parameters = parametersOf(`${method} ${path}`, item, item[method]);
    const body = resolve(item[method].requestBody ?? {});
    operations.push({ path, method, cases: casesOf(parameters, body) });
  }
}
process.stdout.write(JSON.stringify({ document: spec, operations, withheld, exceptions }));
