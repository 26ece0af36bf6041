// Node: a script is compiled in place, types blanked out before where there are any, so that every place stays its own.
const SCRIPT = "script.js";
const WRAPPERS = bare({
  expression: ['"use strict";(async () => (\n', "\n))"],
  body: ['"use strict";(async function () {\n', "\n})"],
});
/** What to load once before the first script: nothing with types, whose eraser would double the memory of a spare. */
const REHEARSED = [];
const { Script, SourceTextModule } = vm;
const { stripTypeScriptTypes } = nodeModule;

/** Line and column in the caller's code of the topmost frame there. */
const positionIn = (trace) => {
  const frames = split(trace, "\n");
  for (let i = 0; i < frames.length; i++) {
    const found = exec(/(?:^|[ (])script\.js:(\d+):(\d+)\)?$/, frames[i]);
    if (found !== null) return placeAt(+found[1], +found[2]);
  }
  return undefined;
};
/** The place that an error of a parser shows above its trace: `file:line`, the line itself, and a mark below it. */
const markedPlace = (error, linesBefore) => {
  const lines = split(stackOf(error), "\n");
  const found = exec(/:(-?\d+)$/, lines[0]);
  for (let i = 1; found !== null && i < lines.length; i++) {
    if (exec(/^\s*\^+$/, lines[i]) !== null) return placeAt(+found[1] - linesBefore, indexOf(lines[i], "^") + 1);
  }
  return undefined;
};
const unparsed = (error, linesBefore) =>
  new Unparsed(readText(error, "message", "the code cannot be parsed"), markedPlace(error, linesBefore));

const importModuleDynamically = () => {
  throw importRefused();
};
/** The script as a function. Throws what the parser throws. */
const compile = (kind, code) => {
  const [before, after] = WRAPPERS[kind];
  const script = new Script(before + code + after, { filename: SCRIPT, lineOffset: -1, importModuleDynamically });
  return () => ({ default: script.runInThisContext() });
};
/** The same for a module. */
const compileModule = (code) => {
  const module = new SourceTextModule(code, { identifier: SCRIPT, importModuleDynamically });
  return async () => {
    const wanted = module.moduleRequests[0];
    if (wanted !== undefined) throw importRefused(placeOfImport(code, wanted.specifier));
    await module.link(importModuleDynamically);
    await module.evaluate();
    return module.namespace;
  };
};
const placeOfImport = (code, specifier) => {
  const at = max(indexOf(code, `"${specifier}"`), indexOf(code, `'${specifier}'`));
  const before = split(slice(code, 0, max(0, at)), "\n");
  return `    at ${SCRIPT}:${before.length}:${before[before.length - 1].length + 1}`;
};
const compileShape = ({ kind, code }) => (kind === MODULE ? compileModule(code) : compile(kind, code));

/** The shape in plain JavaScript; undefined where it has to be read as TypeScript. */
const compilePlain = (shape) => {
  if (isAmbiguous(shape.code)) return undefined;
  try {
    return compileShape(shape);
  } catch {
    return undefined;
  }
};
/** The shape with its types blanked out. The first use in a process takes some 30 ms: the eraser is itself compiled. */
const compileTyped = (shape) => {
  const [before, after] = WRAPPERS[shape.kind] ?? ["", ""];
  let plain;
  try {
    plain = stripTypeScriptTypes(before + shape.code + after);
  } catch (error) {
    throw unparsed(error, shape.kind === MODULE ? 0 : 1);
  }
  try {
    return compileShape({ kind: shape.kind, code: slice(plain, before.length, plain.length - after.length) });
  } catch (error) {
    throw shape.kind === MODULE ? unparsedModule(plain, error) : unparsed(error, 0);
  }
};
const EXPORTS = /^([ \t]*)export(?: default\b|(?= (?:const|let|var|async|function|class)\b))/gm;
/** Node does not tell where a module cannot be parsed: as a body, with its exports made plain, it fails there too. */
const unparsedModule = (code, error) => {
  const plain = (found, indent) =>
    indent + padEnd(trim(found) === "export" ? "" : "void", found.length - indent.length);
  try {
    compile(BODY, replace(code, EXPORTS, plain));
  } catch (problem) {
    return new Unparsed(readText(error, "message", "the code cannot be parsed"), markedPlace(problem, 0));
  }
  return unparsed(error, 0);
};
const loadShape = async (shape) => (compilePlain(shape) ?? compileTyped(shape))();
