// One script from `start` to `finished`.
let limits;

let lineCount = 1;
let lastLineLength = 0;
const describe = (error) => {
  const object = typeof error === "object" && error !== null;
  const known = object ? weakGet(issued, error) : undefined;
  const place = object ? positionIn(stackOf(error)) : undefined;
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
  while (!IS_DIRECT) readFrame();
};
const failWith = (code, message, place) =>
  finish(bare({ t: "finished", ok: false, error: bare({ code, message, ...place }) }));
let hasReturned = false;
/** A call that was refused after the script had returned, and that it did not wait for, leaves the result alone. */
const onUncaught = (error) => {
  if (!hasReturned || typeof error !== "object" || error === null || !weakHas(issued, error)) failRun(error);
};
const failRun = (error) => finish(bare({ t: "finished", ok: false, error: describe(error) }));

const succeed = (value) => {
  const body = utf8(resultText(value));
  if (body.length > limits.result_bytes) {
    return failWith("output_exceeded", `the result has ${body.length} bytes; at most ${limits.result_bytes} are kept`);
  }
  return finish(bare({ t: "finished", ok: true }), body);
};

const run = async ({ kind, namespace }) => {
  if (kind === MODULE && !hasOwn(namespace, "default")) {
    throw refusal(
      "script_error",
      "the module has no default export",
      "Add `export default` with a value or a function, or return the value from a function body.",
    );
  }
  const script = namespace.default;
  let value = kind === MODULE ? script : await script();
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
    hasReturned = true;
    // One turn shows whether a rejection was left without a handler; calls under way are waited for.
    await turn();
    if (draining > 0) {
      await drained();
      await turn();
    }
    succeed(value);
  } catch (error) {
    failRun(error);
  }
};

watch(onUncaught, () => {
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
  for (let i = 0; i < REHEARSED.length; i++) await load(REHEARSED[i]);
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
