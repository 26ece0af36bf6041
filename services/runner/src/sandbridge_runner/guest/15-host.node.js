// What the guest takes of Node: two pipes, an end, the turns of its event loop, and word of what nobody caught.
const fs = require("node:fs");
const vm = require("node:vm");
const nodeModule = require("node:module");
const host = globalThis.process;
const { read, readSync, writeSync } = fs;
const exit = host.reallyExit.bind(host);
const nodeBuffer = globalThis.Buffer;
const bufferFrom = nodeBuffer.from;
const bufferText = unbound(nodeBuffer.prototype.toString);
const toBase64 = (bytes) => bufferText(bufferFrom(viewBuffer(bytes), viewOffset(bytes), viewLength(bytes)), "base64");

const { wait } = Atomics;
const pause = new Int32Array(new SharedArrayBuffer(4));
/** Repeat `move` while the pipe answers that it is not ready, as one does that is not in blocking mode. */
const patiently = (move) => {
  for (;;) {
    try {
      return move();
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      wait(pause, 0, 0, 1);
    }
  }
};
/** Read into `bytes`, waiting for the first; how many were read, or null at the end of input. */
const readInto = (bytes) => patiently(() => readSync(0, bytes, 0, bytes.length, null)) || null;
/** The same without waiting. */
const readLater = (bytes) =>
  new NativePromise((resolve, reject) => {
    read(0, bytes, 0, bytes.length, null, (error, count) => error ? reject(error) : resolve(count || null));
  });
const writeFrom = (bytes) => patiently(() => writeSync(1, bytes, 0, bytes.length));

const nextTurn = setImmediate;
/** Resolve in the next turn of the event loop. */
const turn = () => new NativePromise((resolve) => void nextTurn(resolve));
const endTurns = () => {};

/** Hear of errors that nothing caught, and of an event loop that has nothing left to wait for. */
const watch = (onUncaught, onIdle) => {
  host.setUncaughtExceptionCaptureCallback(onUncaught);
  host.on("unhandledRejection", onUncaught);
  host.on("beforeExit", onIdle);
};

const WELL_KNOWN = new NativeSet(
  Object.getOwnPropertyNames(Symbol).map((name) => Symbol[name]).filter((value) => typeof value === "symbol"),
);
/** What Node hangs on its classes under symbols of its own. */
const removeHooks = (type) => {
  for (const holder of [type, type.prototype]) {
    for (const symbol of Object.getOwnPropertySymbols(holder)) if (!WELL_KNOWN.has(symbol)) delete holder[symbol];
  }
};
/**
 * Nothing is imported any more, whoever asks: code that is evaluated in the guest's own name, such as that of a bound
 * `eval` in a timer, would else have the guest's imports. And a second lock: what would open Node again is gone from
 * `process`, should a script ever find that object.
 */
const closeHost = () => {
  nodeModule.registerHooks({
    resolve: () => {
      throw importRefused();
    },
  });
  const types = [NativeURL, NativeURLSearchParams, TextEncoder, TextDecoder, NativeDOMException];
  for (const type of types) removeHooks(type);
  const doors = ["getBuiltinModule", "binding", "_linkedBinding", "dlopen", "kill", "_kill", "mainModule", "stdin"];
  for (const door of [...doors, "stdout", "stderr", "hrtime", "permission", "_debugProcess", "_rawDebug"]) {
    Reflect.deleteProperty(host, door);
  }
};
