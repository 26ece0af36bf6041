// Blob, File and FormData that hold their bytes at hand: reading one is never a race with the frames.
const contents = new WeakMap();
const blobBytes = (blob) => weakGet(contents, blob).bytes;
const isBlob = (value) => weakHas(contents, value);
const isFile = (value) => weakGet(contents, value)?.name !== undefined;

const blobPart = (part) => {
  if (typeof part === "object" && part !== null) {
    if (isBlob(part)) return blobBytes(part);
    const bytes = bytesOf(part);
    if (bytes !== undefined) return sliceBytes(bytes);
  }
  return utf8(`${part}`);
};
const blobParts = (parts) => {
  const chunks = [];
  let size = 0;
  for (const part of parts) {
    const bytes = blobPart(part);
    size += bytes.length;
    append(chunks, bytes);
  }
  return joined(chunks, size);
};
const mimeText = (type) => (exec(/^[\x20-\x7e]*$/, `${type}`) === null ? "" : lower(`${type}`));

/** W3C File API section 3. */
const VirtualBlob = class Blob {
  constructor(parts = [], options = {}) {
    weakSet(contents, this, { bytes: blobParts(parts), type: mimeText(options.type ?? "") });
  }
  get size() {
    return blobBytes(this).length;
  }
  get type() {
    return weakGet(contents, this).type;
  }
  slice(start = 0, end = this.size, type = "") {
    const part = new VirtualBlob([], { type });
    weakGet(contents, part).bytes = sliceBytes(blobBytes(this), start, end);
    return part;
  }
  async bytes() {
    return sliceBytes(blobBytes(this));
  }
  async arrayBuffer() {
    return viewBuffer(sliceBytes(blobBytes(this)));
  }
  async text() {
    return text(blobBytes(this));
  }
  get [Symbol.toStringTag]() {
    return "Blob";
  }
};

/** W3C File API section 4. */
const VirtualFile = class File extends VirtualBlob {
  constructor(parts, name, options = {}) {
    super(parts, options);
    const content = weakGet(contents, this);
    content.name = `${name}`;
    content.lastModified = trunc(+(options.lastModified ?? readMs()));
  }
  get name() {
    return weakGet(contents, this).name;
  }
  get lastModified() {
    return weakGet(contents, this).lastModified;
  }
  get [Symbol.toStringTag]() {
    return "File";
  }
};

const forms = new WeakMap();
const isForm = (value) => weakHas(forms, value);
const formEntries = (form) => weakGet(forms, form);
const formValue = (value, name) => {
  if (typeof value !== "object" || value === null || !isBlob(value)) return `${value}`;
  if (isFile(value) && name === undefined) return value;
  const file = new VirtualFile([], name ?? "blob", { type: value.type });
  weakGet(contents, file).bytes = blobBytes(value);
  return file;
};

/** XMLHttpRequest Standard section 5: the entries, in the order they were added. */
const VirtualFormData = class FormData {
  constructor() {
    weakSet(forms, this, []);
  }
  append(field, value, name) {
    append(formEntries(this), [`${field}`, formValue(value, name)]);
  }
  set(field, value, name) {
    const entries = formEntries(this);
    const at = entries.findIndex(([known]) => known === `${field}`);
    if (at < 0) return this.append(field, value, name);
    weakSet(forms, this, entries.filter(([known], i) => i <= at || known !== `${field}`));
    formEntries(this)[at] = [`${field}`, formValue(value, name)];
  }
  get(field) {
    return formEntries(this).find(([known]) => known === `${field}`)?.[1] ?? null;
  }
  getAll(field) {
    return formEntries(this).filter(([known]) => known === `${field}`).map(([, value]) => value);
  }
  has(field) {
    return formEntries(this).some(([known]) => known === `${field}`);
  }
  delete(field) {
    weakSet(forms, this, formEntries(this).filter(([known]) => known !== `${field}`));
  }
  forEach(visit, self) {
    for (const [field, value] of [...formEntries(this)]) apply(visit, self, [value, field, this]);
  }
  *entries() {
    yield* formEntries(this).map(([field, value]) => [field, value]);
  }
  *keys() {
    for (const [field] of formEntries(this)) yield field;
  }
  *values() {
    for (const [, value] of formEntries(this)) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  get [Symbol.toStringTag]() {
    return "FormData";
  }
};
