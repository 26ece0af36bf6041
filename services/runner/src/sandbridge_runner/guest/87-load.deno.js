// deno: a script is the module of a `data:` import, which erases types and keeps the caller's lines.
const encodeUri = encodeURIComponent;
const WRAPPERS = bare({
  expression: ["export default async () => (\n", "\n)"],
  body: ["export default async function () {\n", "\n}"],
  module: ["", ""],
});
let linesBefore = 0;
/** What to load once before the first script. */
const REHEARSED = ["const zero: number = 0; return zero"];

/** Line and column in the caller's code of the topmost frame there. */
const positionIn = (trace) => {
  const frames = split(trace, "\n");
  for (let i = 0; i < frames.length; i++) {
    const found = exec(/data:application\/(?:java|type)script,.*:(\d+):(\d+)\)?$/, frames[i]);
    if (found !== null) return placeAt(+found[1] - linesBefore, +found[2]);
  }
  return undefined;
};

const importAs = (language, { kind, code }) =>
  import(`data:application/${language},${encodeUri(WRAPPERS[kind][0] + code + WRAPPERS[kind][1])}`);
/** The code as plain JavaScript; undefined where it has to be read as TypeScript. */
const loadPlain = async (shape) => {
  // A module may throw as it loads, so that its failure would not tell that it cannot be parsed.
  if (shape.kind === MODULE || isAmbiguous(shape.code)) return undefined;
  try {
    return await importAs("javascript", shape);
  } catch {
    return undefined;
  }
};
const isSyntaxError = (error) => {
  const message = readText(error, "message", "");
  return indexOf(message, " at data:") >= 0 && (error instanceof SyntaxError || startsWith(message, "SyntaxError: "));
};
const loadShape = async (shape) => {
  linesBefore = shape.kind === MODULE ? 0 : 1;
  try {
    return await loadPlain(shape) ?? await importAs("typescript", shape);
  } catch (error) {
    const message = readText(error, "message", "the code cannot be parsed");
    if (isSyntaxError(error)) throw new Unparsed(split(split(message, "\n")[0], " at data:")[0], positionIn(message));
    throw indexOf(message, "\n    at data:") < 0 ? error : importRefused(message);
  }
};
