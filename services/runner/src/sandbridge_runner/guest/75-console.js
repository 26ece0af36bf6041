// Output of the console: one frame a line, cut once and for all when the run's share is used up.
const LINE_CHUNK = 32768;
let consoleLeft = 0;
const emitConsole = (level, line) => {
  for (let at = 0; at === 0 || at < line.length; at += LINE_CHUNK) {
    writeFrame(jsonText(bare({ t: "console", level, text: slice(line, at, at + LINE_CHUNK) })));
  }
};
const logLine = (level, line) => {
  if (finished || consoleLeft <= 0) return;
  const size = utf8(line).length + 1;
  if (size <= consoleLeft) emitConsole(level, line);
  else {
    emitConsole(level, text(subarray(utf8(line), 0, consoleLeft)));
    emitConsole("warn", `[console output was cut at ${limits.console_bytes} bytes]`);
  }
  consoleLeft -= size;
};
const CONSOLE_NODES = 2000;
const shown = (value) => {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) {
    return typeof value === "function" ? "[function]" : `${typeof value === "symbol" ? symbolText(value) : value}`;
  }
  return isError(value)
    ? `${readText(value, "name", "Error")}: ${readText(value, "message", "")}`
    : carefulText(value, CONSOLE_NODES);
};
const logAll = (level, values) => {
  let line = "";
  for (let i = 0; i < values.length && line.length < limits.console_bytes + 1; i++) {
    line += (i ? " " : "") + shown(values[i]);
  }
  logLine(level, line);
};
const virtualConsole = () => {
  const counts = create(null);
  const started = create(null);
  const console = {
    assert: (condition, ...values) => condition || logAll("error", ["Assertion failed", ...values]),
    count: (label = "default") => logAll("log", [`${label}: ${(counts[label] = (counts[label] ?? 0) + 1)}`]),
    countReset: (label = "default") => void delete counts[label],
    time: (label = "default") => void (started[label] = readClock()),
    timeEnd: (label = "default") => logAll("log", [`${label}: ${readClock() - (started[label] ?? clock)} ms`]),
    groupEnd: () => {},
    clear: () => {},
  };
  const levels = {
    log: "log",
    info: "info",
    warn: "warn",
    error: "error",
    debug: "debug",
    trace: "debug",
    table: "log",
    dir: "log",
    group: "log",
  };
  for (const name of keys(levels)) console[name] = (...values) => logAll(levels[name], values);
  return console;
};
