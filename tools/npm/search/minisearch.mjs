// MiniSearch behind JSON lines: the first line is {variant, documents}, each other one a question.
// Answers with {ms, mib} once the index stands, then with {ids, ms} for each question.
import { createInterface } from "node:readline";
import MiniSearch from "minisearch";

const FIELDS = ["name", "path", "summary", "tags", "description", "parameters"];
const BOOST = { name: 2, path: 2, summary: 3, tags: 1.5, description: 1, parameters: 0.5 };
const STOP = new Set(("a an and are as at be but by for from had has have if in into is it its of on or so such that the their then there " +
  "these they this to was were will with which you your i my me").split(" "));
const CHATTER = new Set("who what when where why how much many give tell show want need please help know let like see find out about some any".split(" "));

// "Tuned": identifiers split at their humps, plurals joined, stop words dropped, no guessing of beginnings and slips.
const split = (text) => text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[^\p{L}\p{N}]+/u).filter(Boolean);
const singular = (word) => word.replace(/ies$/, "y").replace(/([^su])s$/, "$1");
const term = (word) => (STOP.has(word.toLowerCase()) ? null : singular(word.toLowerCase()));
const asked = (word) => (CHATTER.has(word.toLowerCase()) ? null : term(word));
const tuned = { tokenize: split, processTerm: term, searchOptions: { processTerm: asked, bm25: { k: 1.5, b: 0.75, d: 0 } } };
const VARIANTS = {
  default: { fields: FIELDS, searchOptions: { boost: BOOST, prefix: true, fuzzy: (word) => (word.length > 6 ? 0.2 : false) } },
  tuned: { ...tuned, fields: FIELDS, searchOptions: { ...tuned.searchOptions, boost: BOOST } },
  "tuned, one field": { ...tuned, fields: ["text"], searchOptions: { bm25: { k: 1.5, b: 0.75, d: 0 } } },
};

const resident = () => {
  globalThis.gc?.();
  return process.memoryUsage().rss / 2 ** 20;
};

let index;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const message = JSON.parse(line);
  const before = index ? 0 : resident();
  const started = performance.now();
  if (index) {
    const ids = index.search(message).slice(0, 50).map((hit) => hit.id);
    console.log(JSON.stringify({ ids, ms: performance.now() - started }));
  } else {
    index = new MiniSearch(VARIANTS[message.variant]);
    index.addAll(message.documents);
    console.log(JSON.stringify({ ms: performance.now() - started, mib: resident() - before }));
  }
}
