// Fetch Standard section 5.1: one `Headers` on every engine, with the same order and the same refusals.
const headerLists = new WeakMap();
const isHeaders = (value) => weakHas(headerLists, value);
/** Lower-case name → list of values. */
const headerList = (headers) => weakGet(headerLists, headers);

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const HEADER_VALUE = /^[^\0\r\n\u0100-\uffff]*$/;
const OUTER_BLANKS = /^[\t\n\r ]+|[\t\n\r ]+$/g;
const headerName = (name) => {
  const text = `${name}`;
  if (exec(HEADER_NAME, text) === null) throw new NativeTypeError(`${jsonText(text)} is not the name of a header`);
  return lower(text);
};
const headerValue = (value) => {
  const text = replace(`${value}`, OUTER_BLANKS, "");
  if (exec(HEADER_VALUE, text) === null) throw new NativeTypeError(`${jsonText(text)} is not the value of a header`);
  return text;
};
const sortedNames = (list) => sort(keys(list));
/** Name and value of every header, by name; only Set-Cookie is never joined. */
const headerPairs = (headers) => {
  const list = headerList(headers);
  const names = sortedNames(list);
  const pairs = [];
  for (let i = 0; i < names.length; i++) {
    const values = list[names[i]];
    if (names[i] !== "set-cookie") append(pairs, [names[i], join(values, ", ")]);
    else for (let j = 0; j < values.length; j++) append(pairs, [names[i], values[j]]);
  }
  return pairs;
};
const fillHeaders = (headers, init) => {
  if (typeof init !== "object" || init === null) throw new NativeTypeError("headers are an object or a list of pairs");
  if (isHeaders(init)) {
    for (const [name, value] of headerPairs(init)) headers.append(name, value);
  } else if (typeof init[Symbol.iterator] === "function") {
    for (const pair of init) {
      const [name, value, ...more] = pair;
      if (value === undefined || more.length > 0) throw new NativeTypeError("a header is a pair of name and value");
      headers.append(name, value);
    }
  } else for (const name of keys(init)) headers.append(name, init[name]);
};

const VirtualHeaders = class Headers {
  constructor(init = undefined) {
    weakSet(headerLists, this, create(null));
    if (init !== undefined) fillHeaders(this, init);
  }
  append(name, value) {
    const list = headerList(this);
    append(list[headerName(name)] ??= [], headerValue(value));
  }
  set(name, value) {
    headerList(this)[headerName(name)] = [headerValue(value)];
  }
  get(name) {
    const values = headerList(this)[headerName(name)];
    return values === undefined ? null : join(values, ", ");
  }
  getSetCookie() {
    return [...headerList(this)["set-cookie"] ?? []];
  }
  has(name) {
    return headerList(this)[headerName(name)] !== undefined;
  }
  delete(name) {
    delete headerList(this)[headerName(name)];
  }
  forEach(visit, self) {
    for (const [name, value] of headerPairs(this)) apply(visit, self, [value, name, this]);
  }
  *entries() {
    yield* headerPairs(this);
  }
  *keys() {
    for (const [name] of headerPairs(this)) yield name;
  }
  *values() {
    for (const [, value] of headerPairs(this)) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  get [Symbol.toStringTag]() {
    return "Headers";
  }
};
/** Name → value, as a frame carries them. */
const headerMembers = (headers) => {
  const members = create(null);
  const pairs = headerPairs(headers);
  for (let i = 0; i < pairs.length; i++) members[pairs[i][0]] = pairs[i][1];
  return members;
};
