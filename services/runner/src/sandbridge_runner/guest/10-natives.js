// Natives taken before any caller's code ran, so that a script that replaces built-ins can spoil only its own values.
// The parts of this folder are joined, in the order of their names, into one module that exports nothing.
const { apply, construct, getPrototypeOf, defineProperty } = Reflect;
const { create, freeze, keys, hasOwn, prototype: objectPrototype } = Object;
const { isArray, prototype: arrayPrototype } = Array;
const { parse: parseJson, stringify: jsonText, rawJSON } = JSON;
const { isSafeInteger, isFinite: isFiniteNumber } = Number;
const { floor, min, max, trunc } = Math;
const NativeDate = Date;
const NativeError = Error;
const NativePromise = Promise;
const NativeMap = Map;
const NativeSet = Set;
const NativeUint8Array = Uint8Array;
const NativeUint32Array = Uint32Array;
const NativeDataView = DataView;
const NativeString = String;
const NativeBigInt = BigInt;
const NativeRangeError = RangeError;
const NativeTypeError = TypeError;
const NativeURL = URL;
const NativeURLSearchParams = URLSearchParams;
const NativeDOMException = DOMException;
const captureStack = NativeError.captureStackTrace;

/** Turn a method into a function whose first argument is the receiver. */
const unbound = (method) => (self, ...args) => apply(method, self, args);
const getter = (prototype, name) => unbound(Object.getOwnPropertyDescriptor(prototype, name).get);

const typedArrayPrototype = getPrototypeOf(NativeUint8Array.prototype);
const typedArrayTag = getter(typedArrayPrototype, Symbol.toStringTag);
const viewBuffer = getter(typedArrayPrototype, "buffer");
const viewOffset = getter(typedArrayPrototype, "byteOffset");
const viewLength = getter(typedArrayPrototype, "byteLength");
const dataViewBuffer = getter(NativeDataView.prototype, "buffer");
const dataViewOffset = getter(NativeDataView.prototype, "byteOffset");
const dataViewLength = getter(NativeDataView.prototype, "byteLength");
const bufferLength = getter(ArrayBuffer.prototype, "byteLength");
const sharedLength = getter(SharedArrayBuffer.prototype, "byteLength");
const isView = ArrayBuffer.isView;
const setBytes = unbound(typedArrayPrototype.set);
const subarray = unbound(typedArrayPrototype.subarray);
const sliceBytes = unbound(typedArrayPrototype.slice);
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const utf8 = encoder.encode.bind(encoder);
const text = decoder.decode.bind(decoder);
const slice = unbound(NativeString.prototype.slice);
const indexOf = unbound(NativeString.prototype.indexOf);
const lastIndexOf = unbound(NativeString.prototype.lastIndexOf);
const startsWith = unbound(NativeString.prototype.startsWith);
const lower = unbound(NativeString.prototype.toLowerCase);
const padEnd = unbound(NativeString.prototype.padEnd);
const trim = unbound(NativeString.prototype.trim);
const split = unbound(NativeString.prototype.split);
const replace = unbound(NativeString.prototype.replace);
const exec = unbound(RegExp.prototype.exec);
const shift = unbound(arrayPrototype.shift);
const join = unbound(arrayPrototype.join);
const sort = unbound(arrayPrototype.sort);
const mapEach = unbound(NativeMap.prototype.forEach);
const setEach = unbound(NativeSet.prototype.forEach);
const mapSize = getter(NativeMap.prototype, "size");
const setAdd = unbound(NativeSet.prototype.add);
const hasTag = unbound(NativeSet.prototype.has);
const setSize = getter(NativeSet.prototype, "size");
const dateTime = unbound(NativeDate.prototype.getTime);
const dateIso = unbound(NativeDate.prototype.toISOString);
const regExpText = unbound(RegExp.prototype.toString);
const symbolText = unbound(Symbol.prototype.toString);
const paramsText = unbound(NativeURLSearchParams.prototype.toString);
const paramsEach = unbound(NativeURLSearchParams.prototype.forEach);
const urlText = getter(NativeURL.prototype, "href");
const then = unbound(NativePromise.prototype.then);
const weakGet = unbound(WeakMap.prototype.get);
const weakSet = unbound(WeakMap.prototype.set);
const weakHas = unbound(WeakMap.prototype.has);

/** An object without a prototype, so that nothing is inherited into it. */
const bare = (members) => {
  const object = create(null);
  for (const key of keys(members)) if (members[key] !== undefined) object[key] = members[key];
  return object;
};

/** Append without a lookup that a setter on a prototype could see. */
const append = (array, value) => {
  defineProperty(array, array.length, { value, writable: true, enumerable: true, configurable: true });
};

/** True for an object whose internal slots make `probe` succeed. */
const answers = (probe, value) => {
  try {
    probe(value);
    return true;
  } catch {
    return false;
  }
};
const isDate = (value) => answers(dateTime, value);
const isMap = (value) => answers(mapSize, value);
const isSet = (value) => answers(setSize, value);
const isBuffer = (value) => answers(bufferLength, value) || answers(sharedLength, value);
const isError = Error.isError ?? ((value) => value instanceof NativeError);

/** The bytes of a typed array, a DataView or a buffer, without a copy; undefined for anything else. */
const bytesOf = (value) => {
  if (isView(value)) {
    return typedArrayTag(value) === undefined
      ? new NativeUint8Array(dataViewBuffer(value), dataViewOffset(value), dataViewLength(value))
      : new NativeUint8Array(viewBuffer(value), viewOffset(value), viewLength(value));
  }
  return isBuffer(value) ? new NativeUint8Array(value) : undefined;
};
