// DOM Standard section 3: the signals of scripts. They know one event, stamped by the virtual clock.
const signals = new WeakMap();
const signalState = (signal) => weakGet(signals, signal);
const newSignal = () => {
  const signal = create(VirtualAbortSignal.prototype);
  weakSet(signals, signal, { aborted: false, reason: undefined, listeners: [], followers: [] });
  return signal;
};
const tell = (signal, listener, event) => {
  try {
    if (typeof listener === "function") apply(listener, signal, [event]);
    else listener.handleEvent(event);
  } catch (error) {
    failRun(error);
  }
};
const abort = (signal, reason) => {
  const state = signalState(signal);
  if (state.aborted) return;
  state.aborted = true;
  state.reason = reason === undefined ? new NativeDOMException("The work was given up", "AbortError") : reason;
  const event = bare({ type: "abort", target: signal, currentTarget: signal, timeStamp: readClock() - origin });
  const { listeners, followers } = state;
  state.listeners = [];
  state.followers = [];
  if (typeof signal.onabort === "function") tell(signal, signal.onabort, event);
  for (let i = 0; i < listeners.length; i++) tell(signal, listeners[i], event);
  for (let i = 0; i < followers.length; i++) abort(followers[i], state.reason);
};

const VirtualAbortSignal = class AbortSignal {
  constructor() {
    throw new NativeTypeError("signals come from an AbortController");
  }
  static abort(reason) {
    const signal = newSignal();
    abort(signal, reason);
    return signal;
  }
  static any(sources) {
    const signal = newSignal();
    for (const source of [...sources]) {
      const { aborted, reason, followers } = signalState(source);
      if (aborted) abort(signal, reason);
      else append(followers, signal);
    }
    return signal;
  }
  static timeout(ms) {
    const signal = newSignal();
    virtualTimers.setTimeout(() => abort(signal, new NativeDOMException("The time is over", "TimeoutError")), ms);
    return signal;
  }
  get aborted() {
    return signalState(this).aborted;
  }
  get reason() {
    return signalState(this).reason;
  }
  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }
  addEventListener(type, listener) {
    const { aborted, listeners } = signalState(this);
    if (type !== "abort" || aborted || listener === null || listener === undefined) return;
    if (!listeners.includes(listener)) append(listeners, listener);
  }
  removeEventListener(type, listener) {
    const state = signalState(this);
    if (type === "abort") state.listeners = state.listeners.filter((known) => known !== listener);
  }
  get [Symbol.toStringTag]() {
    return "AbortSignal";
  }
};
const VirtualAbortController = class AbortController {
  #signal = newSignal();
  get signal() {
    return this.#signal;
  }
  abort(reason) {
    abort(this.#signal, reason);
  }
  get [Symbol.toStringTag]() {
    return "AbortController";
  }
};
