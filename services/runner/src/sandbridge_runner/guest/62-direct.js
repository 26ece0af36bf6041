// What a script may reach without the bridge: nothing, unless this guest was started with a list of hosts, or with null
// for everything. Such a run cannot be repeated frame by frame, and its calls pass no policy.
const IS_DIRECT = REACH === null || REACH.length > 0;
const PORTS = bare({ "http:": "80", "https:": "443" });

/** True for an absolute URL whose host and port, both exactly, this guest may reach itself. */
const isReachable = (resource) => {
  if (!IS_DIRECT || !NativeURL.canParse(`${resource}`)) return false;
  const url = new NativeURL(`${resource}`);
  if (!(url.protocol in PORTS)) return false;
  return REACH === null || REACH.includes(`${url.hostname}:${url.port || PORTS[url.protocol]}`);
};

/** The chunks of a response's body, up to what a run may take in. */
const bodyGatherer = () => {
  const chunks = [];
  let size = 0;
  return {
    add: (chunk) => {
      size += chunk.length;
      if (size > limits.body_bytes) {
        const message = `the response is larger than ${limits.body_bytes} bytes`;
        throw refusal("script_error", message, "Ask for less at once.");
      }
      append(chunks, chunk);
    },
    join: () => joined(chunks, size),
  };
};

const fetchDirectly = async (resource, options) => {
  const { payload, body } = bodyPayload(options.body ?? undefined, true);
  if (payload?.kind === "form") {
    throw refusal("invalid_arguments", "a form cannot be sent to a host outside the API", "Send text or bytes.");
  }
  const headers = new VirtualHeaders(options.headers ?? {});
  if (payload?.mime !== undefined && !headers.has("content-type")) headers.set("content-type", payload.mime);
  const answer = await requestDirectly(`${resource}`, {
    method: `${options.method ?? "GET"}`,
    headers: headerPairs(headers),
    body: payload === undefined ? undefined : body,
  });
  return responseOf(answer, answer.body);
};
