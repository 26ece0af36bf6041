// The shapes that a script may have, and which language it is in. Plain JavaScript comes first: it loads sooner.
const EXPRESSION = "expression";
const BODY = "body";
const MODULE = "module";

const BLANK = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/)/y;
const STATEMENT = /(?:const|let|var|return|if|for|while|do|try|throw|switch|export)\b/y;
const MODULE_LINE = /^[ \t]*(?:import\b(?!\s*[(.])|export\b)/m;
const ONLY_COMMENT = /^\s*(?:\/\/[^\n]*|\/\*[^]*?\*\/)?\s*$/;

/** True where the first word, blanks and comments aside, can begin no expression. */
const isStatement = (code) => {
  let at = 0;
  while (at < code.length) {
    BLANK.lastIndex = at;
    if (exec(BLANK, code) === null) break;
    at = BLANK.lastIndex;
  }
  STATEMENT.lastIndex = at;
  return exec(STATEMENT, code) !== null;
};
const looksLikeModule = (code) => exec(MODULE_LINE, code) !== null;

/** The code without semicolons at its end, and without a comment after the last of them. */
const withoutEnd = (code) => {
  const last = lastIndexOf(code, ";");
  let end = last >= 0 && exec(ONLY_COMMENT, slice(code, last + 1)) !== null ? last : code.length;
  while (end > 0 && (code[end - 1] === ";" || trim(code[end - 1]) === "")) end--;
  return slice(code, 0, end);
};

/** The shapes to try, in order: expression, function body, module. */
const shapesOf = (code) => {
  const body = { kind: BODY, code };
  const module = { kind: MODULE, code };
  if (isStatement(code)) return looksLikeModule(code) ? [module, body] : [body, module];
  return [{ kind: EXPRESSION, code: withoutEnd(code) }, body, module];
};

const CLOSING = bare({ "(": ")", "[": "]", "{": "}" });
const MAX_TYPE_ARGUMENTS = 500;
/** True where what stands between `<` at `from` and a later `>` may be type arguments, as in f<number>(3). */
const mayBeTypeArguments = (code, from) => {
  const open = [];
  const end = min(code.length, from + MAX_TYPE_ARGUMENTS);
  for (let at = from + 1; at < end; at++) {
    const mark = code[at];
    if (mark in CLOSING) append(open, CLOSING[mark]);
    else if (mark === ")" || mark === "]" || mark === "}") {
      if (open.length === 0 || open[open.length - 1] !== mark) return false;
      open.length--;
    } else if (open.length > 0) continue;
    else if (mark === ";" || ((mark === "&" || mark === "|") && code[at + 1] === mark)) return false;
    else if (mark === ">" && code[at - 1] !== "=") {
      if (exec(AFTER_TYPE_ARGUMENTS, slice(code, at + 1, at + 65)) !== null) return true;
    }
  }
  return false;
};
const AFTER_TYPE_ARGUMENTS = /^[^\S\n]*(?:[(`\n\r\u2028\u2029]|$|\/[/*])/;

/** True where JavaScript and TypeScript could read the code differently: `f<number>(3)` is two comparisons in one. */
const isAmbiguous = (code) => {
  for (let at = indexOf(code, "<"); at >= 0; at = indexOf(code, "<", at + 1)) {
    if (mayBeTypeArguments(code, at)) return true;
  }
  return false;
};

/** A script that cannot be parsed: thrown by the loaders below, and told from what it throws itself by this class. */
const Unparsed = class {
  constructor(message, place) {
    this.message = startsWith(message, "SyntaxError: ") ? message : `SyntaxError: ${message}`;
    this.place = place;
  }
};
/** A place in the caller's code; what is missing at the end of the code is noticed after its last line. */
const placeAt = (line, column) =>
  line > lineCount ? { line: lineCount, column: lastLineLength + 1 } : { line: max(1, line), column };

const importRefused = (stack) => {
  const refused = refusal(
    "script_error",
    "imports are not available in a script",
    "Write plain JavaScript with the globals that are in scope; nothing can be imported.",
  );
  if (stack !== undefined) defineProperty(refused, "stack", { value: stack });
  return refused;
};

/**
 * Load the code in the first shape that parses: `{kind, namespace}`, whose `default` is the script; or `{problem}`.
 * `loadShape` is the runtime's own.
 */
const load = async (code) => {
  const problems = [];
  for (const shape of shapesOf(code)) {
    try {
      return { kind: shape.kind, namespace: await loadShape(shape) };
    } catch (error) {
      if (!(error instanceof Unparsed)) throw error;
      append(problems, { kind: shape.kind, error });
    }
  }
  const wanted = looksLikeModule(code) ? MODULE : BODY;
  return { problem: problems.find(({ kind }) => kind === wanted).error };
};
