// Everything that a script gets from outside is an ask with a number, answered in frames.
const issued = new WeakMap();

/** What never reached the API: refused, held, or not answered. */
const SandbridgeError = class SandbridgeError extends NativeError {
  constructor(message, members = {}) {
    super(message);
    const hidden = { writable: true, enumerable: true, configurable: true };
    defineProperty(this, "code", { ...hidden, value: members.code });
    defineProperty(this, "hint", { ...hidden, value: members.hint ?? "" });
    defineProperty(this, "retryable", { ...hidden, value: members.retryable ?? false });
    defineProperty(this, "retryAfterMs", { ...hidden, value: members.retryAfterMs });
  }
};
defineProperty(SandbridgeError.prototype, "name", { value: "SandbridgeError", writable: true, configurable: true });

const errorFrom = (members, site) => {
  const error = new SandbridgeError(members.message, members);
  weakSet(
    issued,
    error,
    bare({
      code: members.code,
      message: members.message,
      hint: members.hint || undefined,
      retryAfterMs: members.retryAfterMs ?? undefined,
    }),
  );
  if (site !== undefined) {
    const trace = site.stack;
    defineProperty(error, "stack", {
      value: `SandbridgeError: ${members.message}\n${slice(trace, indexOf(trace, "\n") + 1)}`,
      writable: true,
      configurable: true,
    });
  }
  return error;
};
/** An error of this side: the call is wrong before anything is asked. */
const refusal = (code, message, hint) => errorFrom(bare({ code, message, hint, retryable: false }));
/** Where in the script a call stands; frames from `above` upwards are left out. */
const siteOf = (above) => {
  const site = create(null);
  captureStack(site, above);
  return site;
};

const pending = create(null);
let asked = 0;
let outstanding = 0;
let draining = 0;
const idlers = [];
let finished = false;
const DRAINED = bare({ api: true, fetch: true, page: true, file: true });

/** Send an ask; `onAnswer(head, body)` runs when its answer is delivered, `onError(members)` when it is refused. */
const send = (kind, members, body, onAnswer, onError) => {
  if (finished) return;
  const head = `{"t":"ask","seq":${asked + 1},"kind":"${kind}"${members}}`;
  if (utf8(head).length > MAX_HEAD) {
    throw refusal(
      "invalid_arguments",
      "the arguments beside the body are larger than 256 KiB",
      "Send large data in the body.",
    );
  }
  if (body.length > limits.body_bytes) {
    throw refusal("invalid_arguments", `the body is larger than ${limits.body_bytes} bytes`, "Send less at once.");
  }
  asked++;
  outstanding++;
  if (DRAINED[kind]) draining++;
  pending[asked] = { kind, onAnswer, onError };
  writeFrame(head, body);
  pump();
};

/** The same as a promise of `read(head, body)`. */
const ask = (kind, members, body, site, read) =>
  new NativePromise((resolve, reject) => {
    send(kind, members, body, settling(resolve, reject, read), (error) => reject(errorFrom(error, site)));
  });
/** Settle a promise by what `read` makes of an answer; an answer that cannot be read is the call's own failure. */
const settling = (resolve, reject, read) => (head, body) => {
  try {
    resolve(read(head, body));
  } catch (error) {
    reject(error);
  }
};

const deliver = ({ head, body }) => {
  const entry = pending[head.seq];
  delete pending[head.seq];
  outstanding--;
  if (DRAINED[entry.kind]) draining--;
  advanceClock(head.at_ms);
  try {
    if (head.error !== undefined) entry.onError(head.error);
    else entry.onAnswer(head, body);
  } catch (error) {
    failRun(error);
  }
  while (draining === 0 && idlers.length > 0) shift(idlers)();
};

// All that the script does on an answer is done before the next one is read, so the order of its frames never depends
// on how close together two answers came.
let pumping = false;
const pump = async () => {
  if (pumping) return;
  pumping = true;
  for (;;) {
    await turn();
    if (finished || outstanding === 0) break;
    deliver(readFrame(IS_DIRECT ? await begunFrame() : undefined));
  }
  pumping = false;
  endTurns();
};

/** Resolve when no call that reaches outside is without its answer. */
const drained = async () => {
  while (draining > 0) await new NativePromise((resolve) => append(idlers, resolve));
};
