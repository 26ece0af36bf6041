// What the guest takes of deno: two pipes, an end, the turns of its event loop, and word of what nobody caught.
const stdin = Deno.stdin;
const stdout = Deno.stdout;
/** Read into `bytes`, waiting for the first; how many were read, or null at the end of input. */
const readInto = stdin.readSync.bind(stdin);
/** The same without waiting. */
const readLater = stdin.read.bind(stdin);
const writeFrom = stdout.writeSync.bind(stdout);
const exit = Deno.exit;
const toBase64 = unbound(NativeUint8Array.prototype.toBase64);

const NativeMessageChannel = MessageChannel;
let channel;
const waiting = [];
/** Resolve in the next turn of the event loop. */
const turn = () =>
  new NativePromise((resolve) => {
    if (channel === undefined) {
      channel = new NativeMessageChannel();
      channel.port1.onmessage = () => shift(waiting)();
    }
    append(waiting, resolve);
    channel.port2.postMessage(0);
  });
/** No turn is waited for: an open port would keep the process alive where the script waits for nothing. */
const endTurns = () => {
  if (waiting.length === 0 && channel !== undefined) {
    channel.port1.close();
    channel = undefined;
  }
};

const listen = globalThis.addEventListener.bind(globalThis);
/** Hear of errors that nothing caught, and of an event loop that has nothing left to wait for. */
const watch = (onUncaught, onIdle) => {
  listen("error", (event) => {
    event.preventDefault();
    onUncaught(event.error);
  });
  listen("unhandledrejection", (event) => {
    event.preventDefault();
    onUncaught(event.reason);
  });
  listen("beforeunload", onIdle);
};

const closeHost = () => {};
