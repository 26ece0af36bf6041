// Values to JSON text. What JSON cannot say is said as the reference of execute states: see docs/reference.
const MAX_NODES = 50000;
const MAX_DEPTH = 100;

const familiar = new NativeSet();
/** True where the value descends from a built-in that `special` knows; spares a class of the script eight refusals. */
const isFamiliar = (value) => {
  for (
    let prototype = getPrototypeOf(value), i = 0;
    prototype !== null && i < MAX_DEPTH;
    prototype = getPrototypeOf(prototype), i++
  ) {
    if (prototype === objectPrototype) return false;
    if (hasTag(familiar, prototype)) return true;
  }
  return false;
};

/** A value that JSON has no form for, as text or as a plain value; undefined where JSON's own form will do. */
const special = (value) => {
  if (!isFamiliar(value)) return undefined;
  if (isDate(value)) return isFiniteNumber(dateTime(value)) ? dateIso(value) : null;
  const bytes = bytesOf(value);
  if (bytes !== undefined) {
    return bare({ $base64: toBase64(bytes), type: isView(value) ? typedArrayTag(value) ?? "DataView" : "ArrayBuffer" });
  }
  if (isError(value)) return errorMembers(value);
  if (isMap(value)) return mapEntries(value);
  if (isSet(value)) return setValues(value);
  if (isBlob(value)) {
    return bare({
      $base64: toBase64(blobBytes(value)),
      type: value.type,
      name: isFile(value) ? value.name : undefined,
    });
  }
  if (answers(urlText, value)) return urlText(value);
  if (answers(paramsText, value)) return paramsText(value);
  if (isHeaders(value)) return headerMembers(value);
  if (answers(regExpText, value) && getPrototypeOf(value) === RegExp.prototype) return regExpText(value);
  return undefined;
};

const errorMembers = (error) =>
  bare({ name: readText(error, "name", "Error"), message: readText(error, "message", "") });
const mapEntries = (map) => {
  const entries = [];
  mapEach(map, (value, key) => append(entries, [key, value]));
  return entries;
};
const setValues = (set) => {
  const values = [];
  setEach(set, (value) => append(values, value));
  return values;
};
const MAX_TEXT = 4000;
/** A member of a value that the script made, read without trusting it. */
const readText = (value, key, otherwise) => {
  try {
    const found = value[key];
    return typeof found === "string" ? slice(found, 0, MAX_TEXT) : otherwise;
  } catch {
    return otherwise;
  }
};

const UNREADY = Symbol("needs the careful way");
/** Native stringify with a replacer: fast, and right for everything that needs no path. */
const replaceSpecial = (_key, value) => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return isFiniteNumber(value) ? value : `${value}`;
    case "undefined":
      return null;
    case "bigint":
      return NativeString(value);
    case "object":
      if (value === null || isArray(value)) return value;
      if (getPrototypeOf(value) === objectPrototype) return value;
      return special(value) ?? (isOpaque(value) ? fallBack() : value);
    default:
      return fallBack();
  }
};
const fallBack = () => {
  throw UNREADY;
};
const opaqueTags = new NativeSet([
  "[object Promise]",
  "[object WeakMap]",
  "[object WeakSet]",
  "[object WeakRef]",
  "[object Generator]",
  "[object AsyncGenerator]",
]);
const tagOf = unbound(objectPrototype.toString);
const isOpaque = (value) => hasTag(opaqueTags, tagOf(value));

const builtins = [
  objectPrototype,
  arrayPrototype,
  NativeString.prototype,
  Number.prototype,
  Boolean.prototype,
  NativeBigInt.prototype,
];
const ownDateToJson = NativeDate.prototype.toJSON;
const isTampered = () => {
  for (let i = 0; i < builtins.length; i++) if (hasOwn(builtins[i], "toJSON")) return true;
  return NativeDate.prototype.toJSON !== ownDateToJson;
};

/** The result of a script as JSON text. */
const resultText = (value) => {
  if (!isTampered()) {
    try {
      return jsonText(value, replaceSpecial) ?? "null";
    } catch (error) {
      if (error instanceof NativeRangeError && isAllocationFailure(error)) throw error;
    }
  }
  return carefulText(value, MAX_NODES);
};

/** JSON text built node by node: bounded, with markers that name the path of what cannot be shown. */
const carefulText = (root, nodes) => {
  const seen = new WeakMap();
  let left = nodes;
  const write = (value, path, depth) => {
    if (--left < 0) return jsonText(`[cut: more than ${nodes} values]`);
    switch (typeof value) {
      case "string":
        return jsonText(value);
      case "boolean":
        return value ? "true" : "false";
      case "number":
        return isFiniteNumber(value) ? (value === 0 ? "0" : `${value}`) : `"${value}"`;
      case "undefined":
        return "null";
      case "bigint":
        return `"${NativeString(value)}"`;
      case "function":
        return jsonText(`[function at ${path}]`);
      case "symbol":
        return jsonText(`[${symbolText(value)} at ${path}]`);
    }
    if (value === null) return "null";
    if (weakHas(seen, value)) return jsonText(`[circular at ${path}: same as ${weakGet(seen, value)}]`);
    if (depth > MAX_DEPTH) return jsonText(`[cut: nested deeper than ${MAX_DEPTH} at ${path}]`);
    weakSet(seen, value, path);
    try {
      return container(value, path, depth);
    } catch (error) {
      if (isError(error) && isAllocationFailure(error)) throw error;
      return jsonText(`[unreadable at ${path}]`);
    } finally {
      weakDelete(seen, value);
    }
  };
  const container = (value, path, depth) => {
    if (isArray(value)) return list(value, path, depth);
    const plain = special(value);
    if (plain !== undefined) {
      return plain === null || typeof plain === "string"
        ? jsonText(plain)
        : isArray(plain)
        ? list(plain, path, depth)
        : members(plain, path, depth);
    }
    if (isOpaque(value)) return jsonText(`[${slice(tagOf(value), 8, -1)} at ${path}]`);
    const toJson = value.toJSON;
    if (typeof toJson === "function" && toJson !== objectPrototype.toJSON) {
      return write(apply(toJson, value, []), path, depth + 1);
    }
    return members(value, path, depth);
  };
  const list = (array, path, depth) => {
    let out = "[";
    for (let i = 0; i < array.length && left >= 0; i++) {
      out += (i ? "," : "") + write(array[i], `${path}[${i}]`, depth + 1);
    }
    return `${out}]`;
  };
  const members = (object, path, depth) => {
    let out = "{";
    const names = keys(object);
    for (let i = 0; i < names.length && left >= 0; i++) {
      const below = answers((n) => exec(/^[A-Za-z_$][\w$]*$/, n)[0], names[i])
        ? `${path}.${names[i]}`
        : `${path}[${jsonText(names[i])}]`;
      out += `${i ? "," : ""}${jsonText(names[i])}:${write(object[names[i]], below, depth + 1)}`;
    }
    return `${out}}`;
  };
  return write(root, "result", 0);
};
const weakDelete = unbound(WeakMap.prototype.delete);

/** True for the error that a refused allocation throws, whatever asked for the memory. */
const isAllocationFailure = (error) => {
  const message = readText(error, "message", "");
  return exec(
    /allocation failed|Invalid string length|could not allocate memory|Unable to grow|Maximum memory size exceeded|Out of memory|Invalid typed array length: \d{9}|Array buffer length exceeds/i,
    message,
  ) !== null;
};

const WIDE_INTEGER = /\d{16}/;
const INTEGER = /^-?\d+$/;
/** Parse JSON; integers that a double cannot hold become BigInt. */
const fromJson = (source) => {
  if (exec(WIDE_INTEGER, source) === null) return parseJson(source);
  return parseJson(
    source,
    (_key, value, context) =>
      typeof value === "number" && !isSafeInteger(value) && exec(INTEGER, context.source ?? "") !== null
        ? NativeBigInt(context.source)
        : value,
  );
};
