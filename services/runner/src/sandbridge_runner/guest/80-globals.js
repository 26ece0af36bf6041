// What is in scope of a script: this list, and nothing else that the engine may bring.
const KEPT = [
  "Object",
  "Function",
  "Array",
  "Number",
  "parseFloat",
  "parseInt",
  "Infinity",
  "NaN",
  "undefined",
  "Boolean",
  "String",
  "Symbol",
  "Promise",
  "RegExp",
  "Error",
  "AggregateError",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
  "SuppressedError",
  "DisposableStack",
  "AsyncDisposableStack",
  "globalThis",
  "JSON",
  "Math",
  "Intl",
  "ArrayBuffer",
  "SharedArrayBuffer",
  "Atomics",
  "DataView",
  "Uint8Array",
  "Int8Array",
  "Uint16Array",
  "Int16Array",
  "Uint32Array",
  "Int32Array",
  "BigUint64Array",
  "BigInt64Array",
  "Uint8ClampedArray",
  "Float16Array",
  "Float32Array",
  "Float64Array",
  "Map",
  "Set",
  "WeakMap",
  "WeakSet",
  "BigInt",
  "Iterator",
  "Proxy",
  "Reflect",
  "decodeURI",
  "decodeURIComponent",
  "encodeURI",
  "encodeURIComponent",
  "escape",
  "unescape",
  "eval",
  "isFinite",
  "isNaN",
  "WebAssembly",
  "queueMicrotask",
  "structuredClone",
  "DOMException",
  "TextDecoder",
  "TextEncoder",
  "URL",
  "URLSearchParams",
  "atob",
  "btoa",
];

const define = (name, value) => {
  defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
};

/** References that never let go and registries that never call back: collection is not something a run can repeat. */
const patchCollection = () => {
  const held = new WeakMap();
  const Ref = class WeakRef {
    constructor(target) {
      weakSet(held, this, target);
    }
    deref() {
      return weakGet(held, this);
    }
  };
  const Registry = class FinalizationRegistry {
    constructor(_cleanup) {}
    register() {}
    unregister() {
      return false;
    }
  };
  define("WeakRef", Ref);
  define("FinalizationRegistry", Registry);
};

/** Compile in place: a compiler thread would finish whenever it likes. */
const patchWebAssembly = () => {
  const { Module, Instance } = WebAssembly;
  const hidden = { writable: true, enumerable: false, configurable: true };
  const compile = async (source) => new Module(source);
  const instantiate = async (source, imports) => {
    if (source instanceof Module) return new Instance(source, imports);
    const module = new Module(source);
    return { module, instance: new Instance(module, imports) };
  };
  defineProperty(WebAssembly, "compile", { ...hidden, value: compile });
  defineProperty(WebAssembly, "instantiate", { ...hidden, value: instantiate });
  delete WebAssembly.compileStreaming;
  delete WebAssembly.instantiateStreaming;
  delete Atomics.wait;
  delete Atomics.waitAsync;
};

const removeGlobals = () => {
  const kept = new NativeSet(KEPT);
  for (const key of Object.getOwnPropertyNames(globalThis)) if (!kept.has(key)) delete globalThis[key];
  // Not every engine has Temporal yet, and a script is the same on all of them.
  delete NativeDate.prototype.toTemporalInstant;
  delete NativeURL.createObjectURL;
  delete NativeURL.revokeObjectURL;
};

const prepareGlobals = () => {
  closeHost();
  patchIntl();
  patchWebAssembly();
  removeGlobals();
  patchCollection();
  define("Date", virtualDate());
  define("Blob", VirtualBlob);
  define("File", VirtualFile);
  define("FormData", VirtualFormData);
  define("Headers", VirtualHeaders);
  define("AbortController", VirtualAbortController);
  define("AbortSignal", VirtualAbortSignal);
  define("SandbridgeError", SandbridgeError);
  define("fetch", virtualFetch);
  define("paginate", paginate);
  define("results", results);
  define("file", saveFile);
  define("ask", askPerson);
  define("console", virtualConsole());
  for (const name of keys(virtualTimers)) define(name, virtualTimers[name]);
  defineProperty(Math, "random", { value: random, writable: true, enumerable: false, configurable: true });
  define("crypto", { getRandomValues, randomUUID: randomUuid });
  define("performance", {
    now: () => readClock() - origin,
    get timeOrigin() {
      return origin;
    },
    toJSON: () => ({ timeOrigin: origin }),
  });
  const prototypes = [
    typedArrayPrototype,
    NativeDataView.prototype,
    ArrayBuffer.prototype,
    SharedArrayBuffer.prototype,
    NativeDate.prototype,
    NativeError.prototype,
    NativeMap.prototype,
    NativeSet.prototype,
    VirtualBlob.prototype,
    NativeURL.prototype,
    NativeURLSearchParams.prototype,
    VirtualHeaders.prototype,
    RegExp.prototype,
    NativeDOMException.prototype,
  ];
  for (const prototype of prototypes) setAdd(familiar, prototype);
};
