// `api`, `apis`, `fetch`, `paginate`, `results`, `file`, `ask`.
const targets = new WeakMap();
const PARTS = freeze(["path", "query", "headers", "cookies"]);
const MEMBERS = bare({ path: 1, query: 1, headers: 1, cookies: 1, body: 1 });

const plainPart = (value, name) => {
  if (typeof value !== "object" || value === null || isArray(value)) {
    throw refusal(
      "invalid_arguments",
      `${name} must be an object, such as {${name}: {…}}`,
      `Pass ${name} as an object of names and values.`,
    );
  }
  if (isHeaders(value)) return headerMembers(value);
  if (answers(paramsText, value)) return repeatedMembers(value);
  return value;
};
const repeatedMembers = (params) => {
  const members = create(null);
  paramsEach(params, (value, name) => {
    members[name] = name in members
      ? (isArray(members[name]) ? [...members[name], value] : [members[name], value])
      : value;
  });
  return members;
};

/** Take the media type out of the headers: it says how the body is sent. */
const splitType = (headers) => {
  const rest = create(null);
  let type;
  const names = keys(headers);
  for (let i = 0; i < names.length; i++) {
    if (lower(names[i]) === "content-type") type = `${headers[names[i]]}`;
    else rest[names[i]] = headers[names[i]];
  }
  return { type, rest };
};

/** The members of an ask for one operation, as the text that follows its kind; and its body. */
const callMembers = ({ api, call }, args) => {
  const given = args[0];
  const isObject = typeof given === "object" && given !== null && !isArray(given);
  const surplus = args.length - (isObject || given === undefined || given === null ? min(args.length, 1) : 0);
  const argument = isObject ? given : create(null);
  let members = `,"api":${jsonText(api)},"call":${jsonText(call)}`;
  const { payload, body } = bodyPayload(argument.body, false);
  for (let i = 0; i < PARTS.length; i++) {
    let part = argument[PARTS[i]];
    if (part === undefined || part === null) continue;
    part = plainPart(part, PARTS[i]);
    if (PARTS[i] === "headers" && payload !== undefined) {
      const { type, rest } = splitType(part);
      if (type !== undefined) payload.type = type;
      part = rest;
    }
    if (keys(part).length > 0) members += `,"${PARTS[i]}":${requestText(part, refuseBinary)}`;
  }
  if (surplus > 0) members += `,"extra":${surplus}`;
  const unknown = unknownMembers(argument);
  if (unknown.length > 0) members += `,"unknown":[${join(unknown, ",")}]`;
  if (payload !== undefined) members += `,"payload":${jsonText(payload)}`;
  return { members, body };
};
const unknownMembers = (argument) => {
  const unknown = [];
  const names = keys(argument);
  for (let i = 0; i < names.length; i++) if (!(names[i] in MEMBERS)) append(unknown, jsonText(slice(names[i], 0, 200)));
  return unknown;
};

/** The status of a call that a dry run did not send. */
const NOT_SENT = 0;

const callResult = (head, body) => {
  const value = valueOf(head.payload, body);
  const ok = head.status >= 200 && head.status < 300;
  const response = { status: head.status, headers: head.headers ?? {} };
  return ok
    ? { data: value, error: undefined, response }
    : { data: undefined, error: value || (head.status === NOT_SENT ? 'not sent in a dry run' : `HTTP ${head.status}`), response };
};

/** A callable path: a member of it is a longer path, and calling it asks for the operation of that name. */
const operation = (api, call) => {
  const target = () => {};
  const members = create(null);
  const start = function (...args) {
    const site = siteOf(start);
    return new NativePromise((resolve, reject) => {
      try {
        const asked = callMembers({ api, call }, args);
        send(
          "api",
          asked.members,
          asked.body,
          settling(resolve, reject, callResult),
          (error) => reject(errorFrom(error, site)),
        );
      } catch (error) {
        reject(placed(error, site));
      }
    });
  };
  const name = call === "" ? api : `${api}.${call}`;
  const proxy = new Proxy(target, {
    __proto__: null,
    get: (_target, key) => {
      if (key === Symbol.toPrimitive) return () => name;
      if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
      return (members[key] ??= operation(api, call === "" ? key : `${call}.${key}`));
    },
    apply: (_target, _self, args) => apply(start, undefined, args),
    has: () => false,
    ownKeys: () => [],
    getOwnPropertyDescriptor: () => undefined,
    getPrototypeOf: () => null,
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
    setPrototypeOf: () => false,
    preventExtensions: () => false,
  });
  weakSet(targets, proxy, { api, call });
  return proxy;
};
const placed = (error, site) => (weakHas(issued, error) ? errorFrom(weakGet(issued, error), site) : error);

const targetOf = (call) => {
  const target = typeof call === "function" ? weakGet(targets, call) : undefined;
  if (target === undefined) {
    throw refusal(
      "invalid_arguments",
      "paginate needs an operation as its first argument",
      "Write paginate(api.group.operation, {query: {…}}).",
    );
  }
  return target;
};

/** Items of all pages, one by one; the next page's arguments come with each answer. */
async function* paginate(call, args, options) {
  const site = siteOf(paginate);
  const target = targetOf(call);
  let left = options?.limit ?? Infinity;
  let next = args ?? {};
  let used;
  while (next !== null && left > 0) {
    const now = requestText(next, () => null);
    if (now === used) return;
    used = now;
    const { members, body } = callMembers(target, [next]);
    const page = await ask(
      "page",
      members,
      body,
      site,
      (head, bytes) => ({ items: valueOf(head.payload, bytes) ?? [], next: head.next ?? null }),
    );
    for (let i = 0; i < page.items.length && left > 0; i++, left--) yield page.items[i];
    next = page.next;
  }
}

const responses = new WeakMap();
/** Fetch Standard section 5.5, over a body that is already here. */
const VirtualResponse = class Response {
  get status() {
    return weakGet(responses, this).status;
  }
  get ok() {
    return this.status >= 200 && this.status < 300;
  }
  get statusText() {
    return "";
  }
  get url() {
    return weakGet(responses, this).url;
  }
  get redirected() {
    return false;
  }
  get headers() {
    return weakGet(responses, this).headers;
  }
  async bytes() {
    return sliceBytes(weakGet(responses, this).body);
  }
  async arrayBuffer() {
    return viewBuffer(sliceBytes(weakGet(responses, this).body));
  }
  async text() {
    return text(weakGet(responses, this).body);
  }
  async json() {
    return fromJson(text(weakGet(responses, this).body));
  }
  async blob() {
    return new VirtualBlob([weakGet(responses, this).body], { type: this.headers.get("content-type") ?? "" });
  }
};
const responseOf = (head, body) => {
  const response = new VirtualResponse();
  weakSet(responses, response, {
    status: head.status,
    url: head.url ?? "",
    headers: new VirtualHeaders(head.headers ?? {}),
    body,
  });
  return response;
};

const fetchMembers = (resource, options) => {
  const url = `${resource}`;
  const { payload, body } = bodyPayload(options.body ?? undefined, true);
  const { type, rest } = splitType(headerMembers(new VirtualHeaders(options.headers ?? {})));
  if (payload !== undefined && type !== undefined) payload.type = type;
  let members = `,"url":${jsonText(url)},"method":${jsonText(`${options.method ?? "GET"}`.toUpperCase())}`;
  if (keys(rest).length > 0) members += `,"headers":${jsonText(rest)}`;
  if (payload !== undefined) members += `,"payload":${jsonText(payload)}`;
  return { members, body };
};
const virtualFetch = async function fetch(resource, options = {}) {
  const site = siteOf(virtualFetch);
  const signal = options.signal;
  signal?.throwIfAborted();
  const { members, body } = fetchMembers(resource, options);
  const answer = isReachable(resource)
    ? fetchDirectly(resource, options)
    : ask("fetch", members, body, site, responseOf);
  if (!signal) return answer;
  return new NativePromise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    then(answer, resolve, reject);
  });
};

const jsonOf = (head, body) => valueOf(head.payload, body);
const results = {
  get: function get(handle) {
    return ask("result", `,"handle":${jsonText(`${handle}`)}`, EMPTY, siteOf(get), jsonOf);
  },
};
const saveFile = function file(name, data, mime) {
  const binary = typeof data === "object" && data !== null && isBinary(data);
  const type = mime ?? (binary ? binaryMembers(data).mime : undefined) ??
    (typeof data === "string" ? "text/plain" : binary ? "application/octet-stream" : "application/json");
  const body = binary ? sliceBytes(binaryBytes(data)) : utf8(typeof data === "string" ? data : resultText(data));
  return ask(
    "file",
    `,"name":${jsonText(`${name}`)},"mime":${jsonText(`${type}`)}`,
    body,
    siteOf(saveFile),
    (head) => head.handle,
  );
};
const askPerson = function ask_(message, schema) {
  const question = schema === undefined ? "" : `,"schema":${requestText(schema, refuseBinary)}`;
  return ask("input", `,"message":${jsonText(`${message}`)}${question}`, EMPTY, siteOf(askPerson), jsonOf);
};
