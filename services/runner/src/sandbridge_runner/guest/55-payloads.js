// Bodies on their way out and in: the payload table of docs/reference/guest-protocol.md.

/** JSON text of a request's value: BigInt as a raw number, Map and Set as arrays; `onBinary` is told of every binary leaf. */
const requestText = (value, onBinary) =>
  jsonText(value, (_key, member) => {
    if (typeof member === "bigint") return rawJSON(NativeString(member));
    if (
      typeof member !== "object" || member === null || isArray(member) || getPrototypeOf(member) === objectPrototype
    ) return member;
    if (isBinary(member)) return onBinary(member);
    if (isMap(member)) return mapEntries(member);
    if (isSet(member)) return setValues(member);
    return member;
  });
const isBinary = (value) => isBlob(value) || isView(value) || isBuffer(value);
const binaryBytes = (value) => (isBlob(value) ? blobBytes(value) : bytesOf(value));
const binaryMembers = (value) =>
  isBlob(value) ? bare({ name: isFile(value) ? value.name : undefined, mime: value.type || undefined }) : create(null);

const refuseBinary = () => {
  throw refusal("invalid_arguments", "binary values can stand only in the body", "Put the bytes into body.");
};

/** Several runs of bytes, and where each lies. */
const layout = () => {
  const chunks = [];
  let size = 0;
  return {
    add: (bytes) => {
      append(chunks, bytes);
      const at = [size, size + bytes.length];
      size += bytes.length;
      return at;
    },
    join: () => joined(chunks, size),
  };
};

const formPayload = (entries) => {
  const bytes = layout();
  const parts = [];
  for (let i = 0; i < entries.length; i++) {
    const value = entries[i][1];
    const file = typeof value !== "string";
    const at = bytes.add(file ? blobBytes(value) : utf8(value));
    append(
      parts,
      bare({
        field: entries[i][0],
        at,
        file,
        name: file ? value.name : undefined,
        mime: file ? value.type || undefined : undefined,
      }),
    );
  }
  return { payload: bare({ kind: "form", parts }), body: bytes.join() };
};

const paramsPayload = (params) => {
  const entries = [];
  paramsEach(params, (value, field) => append(entries, [field, value]));
  return formPayload(entries);
};

/** A copy of a JSON-like value in which binary leaves are null, and where they were. */
const withoutBinary = (root) => {
  const found = [];
  const copy = (value, path) => {
    if (typeof value !== "object" || value === null) return value;
    if (isBinary(value)) {
      append(found, { value, path });
      return null;
    }
    if (isMap(value)) value = mapEntries(value);
    if (isSet(value)) value = setValues(value);
    const isList = isArray(value);
    if (!isList && typeof value.toJSON === "function") return value;
    const out = isList ? [] : create(null);
    const names = keys(value);
    for (let i = 0; i < names.length; i++) {
      const key = isList ? +names[i] : names[i];
      defineProperty(out, key, {
        value: copy(value[key], [...path, key]),
        writable: true,
        enumerable: true,
        configurable: true,
      });
    }
    return out;
  };
  return { value: copy(root, []), found };
};

const jsonPayload = (value) => {
  let hasBinary = false;
  const json = requestText(value, () => ((hasBinary = true), null));
  if (json === undefined) {
    throw refusal(
      "invalid_arguments",
      "body is not a value that JSON can hold",
      "Give an object, an array, text, bytes or a form.",
    );
  }
  if (!hasBinary) return { payload: bare({ kind: "json" }), body: utf8(json) };
  const stripped = withoutBinary(value);
  const bytes = layout();
  const at = bytes.add(utf8(requestText(stripped.value, () => null)));
  const binary = [];
  for (let i = 0; i < stripped.found.length; i++) {
    const { value: leaf, path } = stripped.found[i];
    const members = binaryMembers(leaf);
    members.at = bytes.add(binaryBytes(leaf));
    members.path = path;
    append(binary, members);
  }
  return { payload: bare({ kind: "json", at, binary }), body: bytes.join() };
};

/** How a body crosses; `plain` sends text as it is (fetch), otherwise text is a JSON string (api). */
const bodyPayload = (value, plain) => {
  if (value === undefined) return { payload: undefined, body: EMPTY };
  if (typeof value === "object" && value !== null) {
    if (isForm(value)) return formPayload(formEntries(value));
    if (isBinary(value)) {
      return { payload: bare({ kind: "bytes", ...binaryMembers(value) }), body: sliceBytes(binaryBytes(value)) };
    }
    if (answers(paramsText, value)) {
      return plain
        ? textPayload(paramsText(value), "application/x-www-form-urlencoded;charset=UTF-8")
        : paramsPayload(value);
    }
  }
  return plain ? textPayload(`${value}`, "text/plain;charset=UTF-8") : jsonPayload(value);
};
const textPayload = (value, mime) => ({ payload: bare({ kind: "text", mime }), body: utf8(value) });

/** The value of a body that came in. */
const valueOf = (payload, body) => {
  switch (payload?.kind) {
    case undefined:
      return undefined;
    case "json":
      return payload.at === undefined
        ? fromJson(text(body))
        : withBinary(fromJson(text(subarray(body, ...payload.at))), payload.binary, body);
    case "text":
      return text(body);
    case "form":
      return formOf(payload.parts, body);
    default:
      return sliceBytes(body);
  }
};
const withBinary = (root, leaves, body) => {
  for (const { at, path } of leaves) {
    let holder = root;
    for (let i = 0; i < path.length - 1; i++) holder = holder[path[i]];
    holder[path[path.length - 1]] = sliceBytes(body, at[0], at[1]);
  }
  return root;
};
const formOf = (parts, body) => {
  const form = new VirtualFormData();
  for (const { field, at, file, name, mime } of parts) {
    const bytes = sliceBytes(body, at[0], at[1]);
    form.append(field, file ? new VirtualFile([bytes], name ?? "blob", { type: mime ?? "" }) : text(bytes));
  }
  return form;
};
