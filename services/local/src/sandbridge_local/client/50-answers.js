// Answers

const HIDDEN = ["set-cookie", "set-cookie2", "authorization", "www-authenticate", "authentication-info", "connection",
  "keep-alive", "transfer-encoding", "trailer", "upgrade"];
const TEXT_TYPES = ["application/xml", "application/csv", "application/javascript", "application/ecmascript",
  "application/graphql", URLENCODED, "application/x-ndjson", "application/jsonl", "application/json-seq",
  "application/yaml", "application/x-yaml", "application/sql", "application/toml", "application/rtf"];
const parsedJson = (text) =>
  JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context.source)
      : value);
const decodedText = (data, charset) => {
  try {
    return new TextDecoder(charset ?? "utf-8").decode(data);
  } catch {
    return new TextDecoder().decode(data);
  }
};
const bodyValue = (data, stated) => {
  if (data.length === 0) return null;
  const type = essence(stated ?? "");
  const charset = /;\s*charset\s*=\s*"?([\w.:+-]{1,40})/i.exec(stated ?? "")?.[1];
  if (isJsonType(type)) {
    const text = decodedText(data, charset);
    try {
      return parsedJson(text);
    } catch {
      return text;
    }
  }
  return type.startsWith("text/") || type.endsWith("+xml") || TEXT_TYPES.includes(type) ? decodedText(data, charset) : data;
};
const answerOf = async (response) => {
  const headers = {};
  const compressed = response.headers.has("content-encoding");
  for (const [name, value] of response.headers) {
    const hidden = HIDDEN.includes(name) || name.startsWith("proxy-") ||
      (compressed && ["content-encoding", "content-length"].includes(name));
    if (!hidden) headers[name] = value;
  }
  const value = bodyValue(new Uint8Array(await response.arrayBuffer()), response.headers.get("content-type"));
  const meta = { status: response.status, headers };
  return response.ok
    ? { data: value, error: undefined, response: meta }
    : { data: undefined, error: value || `HTTP ${response.status}`, response: meta };
};

// --- Sending

const ATTEMPTS = 4;
const HOPS = 5;
const waitFor = (response, attempt) => {
  const stated = response.headers.get("retry-after");
  const seconds = stated === null ? NaN : Number(stated);
  if (Number.isFinite(seconds)) return seconds * 1000;
  const date = stated === null ? NaN : Date.parse(stated);
  return Number.isFinite(date) ? Math.max(0, date - Date.now()) : 250 * 2 ** (attempt - 1);
};
const sent = async (request, options) => {
  try {
    const { method, url, headers, body } = request;
    return await (options.fetch ?? fetch)(url, { method, headers, body, redirect: "manual", signal: options.signal });
  } catch (error) {
    options.signal?.throwIfAborted();
    const hint = "The API did not answer; try again later.";
    throw new SandbridgeError("upstream_unreachable", `no answer from ${new URL(request.url).origin}`, hint, true);
  }
};
/** Safe calls are sent again when the API is busy, and follow redirects on the API's own origin. */
const exchanged = async (request, safe, options) => {
  for (let attempt = 1, hops = 0; ; attempt++) {
    const response = await sent(request, options);
    const location = response.headers.get("location");
    if (safe && response.status >= 300 && response.status < 400 && location !== null && hops < HOPS) {
      const target = new URL(location, request.url);
      if (target.origin !== new URL(request.url).origin) return response;
      request = { ...request, url: target.href };
      hops++;
      continue;
    }
    const busy = safe && (response.status === 429 || response.status === 503);
    const wait = busy && attempt < ATTEMPTS ? waitFor(response, attempt) : Infinity;
    if (wait > (options.longestWaitMs ?? 30_000)) return response;
    await response.body?.cancel();
    await new Promise((done) => setTimeout(done, wait));
  }
};
