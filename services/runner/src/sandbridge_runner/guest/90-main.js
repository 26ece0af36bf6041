// One script from `start` to `finished`.
let limits;

/** Line and column in the caller's code of the topmost frame there, `shift` being the wrapper's own lines. */
const positionIn = (trace, shift) => {
  const frames = split(trace, "\n");
  for (let i = 0; i < frames.length; i++) {
    const found = exec(/data:application\/(?:java|type)script,.*:(\d+):(\d+)\)?$/, frames[i]);
    if (found === null) continue;
    const line = +found[1] - shift;
    // What is missing at the end of the code is noticed in the wrapper's line after it.
    return line > lineCount
      ? { line: lineCount, column: lastLineLength + 1 }
      : { line: max(1, line), column: +found[2] };
  }
  return undefined;
};

let linesBefore = 0;
let lineCount = 1;
let lastLineLength = 0;
const describe = (error) => {
  const object = typeof error === "object" && error !== null;
  const known = object ? weakGet(issued, error) : undefined;
  const place = object ? positionIn(stackOf(error), linesBefore) : undefined;
  if (known !== undefined) return bare({ ...known, ...place });
  const name = object ? readText(error, "name", "Error") : "";
  const message = object ? readText(error, "message", "") : shownThrown(error);
  const code = object && error instanceof NativeRangeError && isAllocationFailure(error)
    ? "memory_exceeded"
    : "script_error";
  return bare({
    code,
    message: object
      ? (isError(error) || message ? `${name}: ${message}` : `the script threw ${carefulText(error, 100)}`)
      : `the script threw ${message}`,
    ...place,
  });
};
const stackOf = (error) => {
  try {
    return typeof error.stack === "string" ? error.stack : "";
  } catch {
    return "";
  }
};
const shownThrown = (value) => slice(shown(value), 0, MAX_TEXT);

let verdict = false;
/** End the run with the first verdict that is reached, once the calls under way are answered. */
const finish = async (head, body) => {
  if (verdict) return;
  verdict = true;
  const headText = jsonText(head);
  if (draining > 0) await drained();
  finished = true;
  writeFrame(headText, body);
  // The runner reads what the process has used, then kills it; the end of input comes where the runner is gone.
  for (;;) readFrame();
};
const failWith = (code, message, place) =>
  finish(bare({ t: "finished", ok: false, error: bare({ code, message, ...place }) }));
const failRun = (error) => finish(bare({ t: "finished", ok: false, error: describe(error) }));

const succeed = (value) => {
  const body = utf8(resultText(value));
  if (body.length > limits.result_bytes) {
    return failWith("output_exceeded", `the result has ${body.length} bytes; at most ${limits.result_bytes} are kept`);
  }
  return finish(bare({ t: "finished", ok: true }), body);
};

const BLANK = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/)/y;
const STATEMENT = /(?:const|let|var|return|if|for|while|do|try|throw|switch|export)\b/y;
const MODULE = /^[ \t]*(?:import\b(?!\s*[(.])|export\b)/m;
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

/** The code without semicolons at its end, and without a comment after the last of them. */
const withoutEnd = (code) => {
  const last = lastIndexOf(code, ";");
  let end = last >= 0 && exec(ONLY_COMMENT, slice(code, last + 1)) !== null ? last : code.length;
  while (end > 0 && (code[end - 1] === ";" || trim(code[end - 1]) === "")) end--;
  return slice(code, 0, end);
};

/** The shapes that the code may have, in the order to try: expression, function body, module. */
const shapesOf = (code) => {
  const body = { before: "export default async function () {\n", code, after: "\n}", shift: 1, isModule: false };
  const module = { before: "", code, after: "", shift: 0, isModule: true };
  if (isStatement(code)) return exec(MODULE, code) === null ? [body, module] : [module, body];
  const expression = {
    before: "export default async () => (\n",
    code: withoutEnd(code),
    after: "\n)",
    shift: 1,
    isModule: false,
  };
  return [expression, body, module];
};

const isSyntaxError = (error) => {
  const message = readText(error, "message", "");
  return indexOf(message, " at data:") >= 0 && (error instanceof SyntaxError || startsWith(message, "SyntaxError: "));
};
const syntaxProblem = (error, shape) => {
  const message = readText(error, "message", "the code cannot be parsed");
  const first = split(split(message, "\n")[0], " at data:")[0];
  return {
    message: startsWith(first, "SyntaxError: ") ? first : `SyntaxError: ${first}`,
    place: positionIn(message, shape.shift),
    shape,
  };
};

/** True where JavaScript and TypeScript could read the code differently: `f<number>(3)` is two comparisons in one. */
const isAmbiguous = (code) => {
  const at = indexOf(code, "<");
  return at >= 0 && exec(/(?<!=)>/, slice(code, at)) !== null;
};
const importAs = (language, { before, code, after }) =>
  import(`data:application/${language},${encodeUri(before + code + after)}`);
/** The code as plain JavaScript, which loads sooner; undefined where it has to be read as TypeScript. */
const loadPlain = async (shape) => {
  // A module may throw as it loads, so that its failure would not tell that it cannot be parsed.
  if (shape.isModule || isAmbiguous(shape.code)) return undefined;
  try {
    return await importAs("javascript", shape);
  } catch {
    return undefined;
  }
};

/** Load the code in the first shape that parses; the module's namespace, or the problem to report. */
const load = async (code) => {
  const problems = [];
  for (const shape of shapesOf(code)) {
    linesBefore = shape.shift;
    try {
      return {
        loaded: await loadPlain(shape) ?? await importAs("typescript", shape),
        isModule: shape.isModule,
      };
    } catch (error) {
      if (!isSyntaxError(error)) throw importRefused(error);
      append(problems, syntaxProblem(error, shape));
    }
  }
  const wanted = exec(MODULE, code) !== null;
  return {
    problem: problems.find(({ shape }) =>
      shape.isModule === wanted && shape.before !== "export default async () => (\n"
    ),
  };
};
const importRefused = (error) => {
  const message = readText(error, "message", "");
  if (indexOf(message, "\n    at data:") < 0) return error;
  const refused = errorFrom(
    bare({
      code: "script_error",
      message: "imports are not available in a script",
      hint: "Write plain JavaScript with the globals that are in scope; nothing can be imported.",
    }),
  );
  defineProperty(refused, "stack", { value: message });
  return refused;
};

const run = async ({ loaded, isModule }) => {
  if (isModule && !hasOwn(loaded, "default")) {
    throw refusal(
      "script_error",
      "the module has no default export",
      "Add `export default` with a value or a function, or return the value from a function body.",
    );
  }
  let value = isModule ? loaded.default : await loaded.default();
  if (typeof value === "function" && !weakHas(targets, value)) value = await value();
  return await value;
};

const begin = ({ head, body }) => {
  limits = head.limits;
  consoleLeft = limits.console_bytes;
  startClock(head.now_ms);
  startChance(head.seed);
  const apis = create(null);
  for (const name of head.apis) apis[name] = operation(name, "");
  define("apis", freeze(apis));
  if (head.apis.length > 0) define("api", apis[head.apis[0]]);
  const code = text(body);
  lineCount = split(code, "\n").length;
  lastLineLength = code.length - lastIndexOf(code, "\n") - 1;
  return code;
};

const main = async (code) => {
  try {
    const outcome = await load(code);
    if (outcome.problem !== undefined) return failWith("syntax_error", outcome.problem.message, outcome.problem.place);
    const outcomeOfRun = run(outcome);
    pump();
    const value = await outcomeOfRun;
    // One turn shows whether a rejection was left without a handler; calls under way are waited for.
    await turn();
    await drained();
    await turn();
    succeed(value);
  } catch (error) {
    failRun(error);
  }
};

listen("error", (event) => {
  event.preventDefault();
  failRun(event.error);
});
listen("unhandledrejection", (event) => {
  event.preventDefault();
  failRun(event.reason);
});
listen("beforeunload", () => {
  failWith("script_error", "the script waits for a promise that nothing settles");
});
/** Everything once, with a script of ours: what is compiled and connected on first use is ready before the real one. */
const rehearse = async () => {
  const limits = bare({ result_bytes: 0, console_bytes: 0, body_bytes: 0 });
  const head = bare({
    limits,
    now_ms: 0,
    seed: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    apis: ["api"],
  });
  await load("const zero: number = 0; return zero");
  const outcome = await load(begin(bare({ head, body: utf8("return 0") })));
  resultText([await run(outcome), create(null), random()]);
  await turn();
  delete globalThis.api;
  delete globalThis.apis;
};
const perform = async () => {
  prepareGlobals();
  await rehearse();
  writeFrame(jsonText(bare({ t: "ready", build: BUILD })));
  await main(begin(readFrame()));
};
perform();
