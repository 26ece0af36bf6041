// Timers are asked of the outside, so that their order is the order of the frames.
const timers = create(null);
let lastTimer = 0;
const delayOf = (ms) => max(0, min(trunc(+ms || 0), 2147483647));

const askTimer = (id) => {
  const timer = timers[id];
  send(
    "timer",
    `,"ms":${timer.ms}`,
    EMPTY,
    () => fire(id),
    (error) => timers[id] !== undefined && failRun(errorFrom(error)),
  );
};
const fire = (id) => {
  const timer = timers[id];
  if (timer === undefined) return;
  if (timer.repeat) askTimer(id);
  else delete timers[id];
  apply(timer.callback, undefined, timer.args);
};
const addTimer = (callback, ms, args, repeat) => {
  if (typeof callback !== "function") throw new NativeTypeError("a timer needs a function");
  const id = ++lastTimer;
  timers[id] = { callback, ms: delayOf(ms), args, repeat };
  askTimer(id);
  return id;
};
const virtualTimers = {
  setTimeout: (callback, ms, ...args) => addTimer(callback, ms, args, false),
  setInterval: (callback, ms, ...args) => addTimer(callback, ms, args, true),
  clearTimeout: (id) => void delete timers[id],
  clearInterval: (id) => void delete timers[id],
};
