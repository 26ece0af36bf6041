// Bodies

const essence = (type) => type.split(";")[0].trim().toLowerCase();
const kindOf = (type) => {
  const name = essence(type);
  if (/(\/|\+)json$/.test(name)) return "json";
  if (name === URLENCODED) return "urlencoded";
  if (name.startsWith("multipart/")) return "multipart";
  if (["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"].includes(name)) return "lines";
  return /^(text\/.*|.*[/+](xml|yaml|x-yaml|csv|graphql|javascript|sql|x-sh)|application\/jwt)$/.test(name) ? "text" : "bytes";
};
const isWild = (type) => essence(type).includes("*");
const covers = (documented, wanted) => {
  const [have, want] = [essence(documented), essence(wanted)];
  return have === want || have === "*/*" || have === "*" || (have.endsWith("/*") && want.startsWith(have.slice(0, -1)));
};
const isRange = (one) => ["*/*", "*", "application/*"].includes(essence(one.type));
const isTextRange = (one) => essence(one.type) === "text/*";
const is = (...kinds) => (one) => kinds.includes(kindOf(one.type)) && !isWild(one.type);
const anyBytes = (value) =>
  value instanceof Bytes || (Array.isArray(value) ? value.some(anyBytes) : isMap(value) && Object.values(value).some(anyBytes));

class Form {
  constructor(parts) {
    this.parts = parts;
  }
}
/** Copy a body with its files read: a Blob gives its bytes only later. */
const settled = async (value) => {
  if (value instanceof Blob) return new Bytes(await value.bytes(), value.name, value.type || undefined);
  if (value instanceof ArrayBuffer) return new Bytes(new Uint8Array(value));
  if (ArrayBuffer.isView(value)) return new Bytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  if (value instanceof FormData) {
    return new Form(await Promise.all([...value].map(async ([name, one]) => [name, await settled(one)])));
  }
  if (Array.isArray(value)) return Promise.all(value.map((one) => (isNone(one) ? null : settled(one))));
  if (!isMap(value)) return value;
  const members = Object.entries(value).filter(([, one]) => one !== undefined && typeof one !== "function");
  return Object.fromEntries(await Promise.all(members.map(async ([name, one]) => [name, await settled(one)])));
};
const forBytes = (value) => {
  const own = value.type;
  return [
    (one) => own !== undefined && covers(one.type, own),
    (one) => isRange(one) || essence(one.type) === OCTETS,
    is("bytes"),
    is("text", "lines"),
    (one) => is("json")(one) && one.string === true,
  ].map((test) => (one) => !["multipart", "urlencoded"].includes(kindOf(one.type)) && test(one));
};
const preferences = (value) => {
  if (value instanceof Bytes) return forBytes(value);
  if (value instanceof Form) {
    return [value.parts.some(([, one]) => one instanceof Bytes) ? is("multipart") : is("multipart", "urlencoded")];
  }
  if (typeof value === "string") {
    const takesText = (one) => is("json")(one) && one.string === true;
    return [takesText, is("text", "lines"), isTextRange, is("bytes"), isRange, is("json"), is("urlencoded", "multipart")];
  }
  if (isMap(value)) {
    return anyBytes(value)
      ? [is("multipart"), is("json"), is("urlencoded")]
      : [is("json"), is("urlencoded"), is("multipart"), isRange];
  }
  return [is("json"), is("lines"), isRange, is("text"), isTextRange];
};
const chosen = (offered, value, wanted) => {
  const usual = value instanceof Bytes
    ? value.type ?? OCTETS
    : typeof value === "string" ? "text/plain; charset=utf-8" : "application/json";
  const concrete = (one, otherwise) => [one, isWild(one.type) ? otherwise : one.type];
  if (wanted !== undefined) {
    const found = offered.find((one) => covers(one.type, wanted));
    if (found) return concrete(found, wanted);
  } else {
    for (const accepts of preferences(value)) {
      const found = offered.find(accepts);
      if (found) return concrete(found, usual);
    }
  }
  throw refused("body", `it cannot be sent so; this operation takes ${offered.map((one) => one.type).join(", ")}`);
};

const partType = (encoding, own) => {
  const allowed = (encoding.type ?? "").split(",").map((text) => text.trim()).filter(Boolean);
  if (own !== undefined && (allowed.length === 0 || allowed.some((one) => covers(one, own)))) return own;
  return allowed.find((one) => !one.includes("*"));
};
const part = (name, value, encoding, binary) => {
  if (isNone(value)) return [];
  if (value instanceof Bytes) {
    return [{ name, data: value.data, filename: value.name || name, type: partType(encoding, value.type) ?? OCTETS }];
  }
  if (isMap(value) || Array.isArray(value)) {
    return [{ name, data: bytesOf.encode(jsonText(value)), type: partType(encoding) ?? "application/json" }];
  }
  const type = partType(encoding) ?? (binary ? OCTETS : undefined);
  return [{ name, data: bytesOf.encode(scalar(value)), filename: binary ? name : undefined, type }];
};
const partsOf = (media, name, value) => {
  const encoding = media.encodings?.[name] ?? {};
  const binary = media.binary?.includes(name) ?? false;
  const isList = Array.isArray(value) && !(encoding.type && kindOf(encoding.type) === "json");
  return (isList ? value : [value]).flatMap((one) => part(name, one, encoding, binary));
};
const quoted = (text) =>
  text.toWellFormed().replace(/\r\n|\r|\n/g, "%0D%0A").replaceAll('"', "%22").replace(/[\x00-\x1f\x7f]/g, "");
const joined = (pieces) => {
  const out = new Uint8Array(pieces.reduce((size, one) => size + one.length, 0));
  let at = 0;
  for (const one of pieces) {
    out.set(one, at);
    at += one.length;
  }
  return out;
};
/** RFC 7578. */
const multipart = (parts, subtype) => {
  const boundary = `sandbridge-${crypto.randomUUID().replaceAll("-", "")}`;
  const pieces = [];
  for (const { name, data, filename, type } of parts) {
    let head = `--${boundary}\r\n`;
    if (subtype === "form-data") {
      head += `Content-Disposition: form-data; name="${quoted(name)}"`;
      head += filename === undefined ? "\r\n" : `; filename="${quoted(filename)}"\r\n`;
    }
    head += type === undefined ? "\r\n" : `Content-Type: ${type}\r\n\r\n`;
    pieces.push(bytesOf.encode(head), data, bytesOf.encode("\r\n"));
  }
  pieces.push(bytesOf.encode(`--${boundary}--\r\n`));
  return { type: `multipart/${subtype}; boundary=${boundary}`, data: joined(pieces) };
};
const formPairs = (media, name, value) => {
  if (value instanceof Bytes) throw new Error(`bytes cannot be sent as ${URLENCODED}`);
  const encoding = media.encodings?.[name] ?? {};
  const nested = isMap(value) || (Array.isArray(value) && value.some((one) => isMap(one) || Array.isArray(one)));
  if (encoding.style === undefined && encoding.type !== undefined && nested) {
    return pairs(name, jsonText(value), { style: "form", explode: true });
  }
  const style = encoding.style ?? (nested ? "deepObject" : "form");
  const explode = encoding.explode ?? ["form", "deepObject"].includes(style);
  return pairs(name, value, { style, explode, reserved: encoding.reserved });
};
const ENCODERS = {
  json: (media, type, value) => {
    if (value instanceof Form) throw new Error("a FormData cannot be sent as JSON; give an object");
    return { type, data: bytesOf.encode(jsonText(value)) };
  },
  lines: (media, type, value) => Array.isArray(value)
    ? { type, data: bytesOf.encode(value.map((one) => `${jsonText(one)}\n`).join("")) }
    : ENCODERS.text(media, type, value),
  text: (media, type, value) => ({ type, data: value instanceof Bytes ? value.data : bytesOf.encode(scalar(value)) }),
  bytes: (media, type, value) => ({ type, data: value instanceof Bytes ? value.data : bytesOf.encode(scalar(value)) }),
  urlencoded: (media, type, value) => {
    if (typeof value === "string") return { type, data: bytesOf.encode(value) };
    const listed = value instanceof Form
      ? value.parts.flatMap(([name, one]) => formPairs({}, name, one))
      : Object.entries(value).flatMap(([name, one]) => formPairs(media, name, one));
    return { type, data: bytesOf.encode(listed.join("&")) };
  },
  multipart: (media, type, value) => {
    const entries = value instanceof Form ? value.parts : Object.entries(value);
    return multipart(entries.flatMap(([name, one]) => partsOf(media, name, one)), essence(type).slice("multipart/".length));
  },
};
const encodedBody = async (body, value, wanted) => {
  if (body === undefined) {
    if (isNone(value)) return {};
    throw refused("body", "this operation takes no body; leave it out");
  }
  if (value === undefined || (value === null && !body.media.some((one) => one.null && kindOf(one.type) === "json"))) {
    if (!body.required) return {};
    throw refused("body", `missing; it is sent as ${body.media[0].type}`);
  }
  const ready = await settled(value);
  const [media, type] = chosen(body.media, ready, wanted);
  try {
    return ENCODERS[kindOf(type)](media, type, ready);
  } catch (error) {
    throw error instanceof SandbridgeError ? error : refused("body", error.message);
  }
};
