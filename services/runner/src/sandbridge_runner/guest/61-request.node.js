// A request of the guest's own: Node's client of HTTP, since its fetch needs timers and globals that a script replaces.
const clients = REACH === null ? bare({ "http:": require("node:http"), "https:": require("node:https") }) : bare({});
const MAX_REDIRECTS = 20;
const REDIRECTS = new NativeSet([301, 302, 303, 307, 308]);

const requestOnce = (url, { method, headers, body }) =>
  new NativePromise((resolve, reject) => {
    const sending = { "accept-encoding": "identity", ...headerMembers(new VirtualHeaders(headers)) };
    const sent = clients[url.protocol].request(url, { method, headers: sending }, (response) => {
      const gathered = bodyGatherer();
      response.on("data", (chunk) => {
        try {
          gathered.add(new NativeUint8Array(chunk));
        } catch (error) {
          response.destroy();
          reject(error);
        }
      });
      response.on("error", reject);
      response.on("end", () => {
        const pairs = [];
        for (let i = 0; i < response.rawHeaders.length; i += 2) {
          append(pairs, [response.rawHeaders[i], response.rawHeaders[i + 1]]);
        }
        resolve({ status: response.statusCode, url: urlText(url), headers: pairs, body: gathered.join() });
      });
    });
    sent.on("error", (error) => reject(new NativeTypeError(`fetch failed: ${error.message}`)));
    sent.end(body);
  });
/** Fetch Standard section 4.4: follow redirects; a request that is not repeated as it was becomes a GET. */
const requestDirectly = async (resource, request) => {
  let url = new NativeURL(resource);
  for (let left = MAX_REDIRECTS; left > 0; left--) {
    const answer = await requestOnce(url, request);
    const location = new VirtualHeaders(answer.headers).get("location");
    if (!hasTag(REDIRECTS, answer.status) || location === null) return answer;
    const next = new NativeURL(location, url);
    if (!(next.protocol in clients)) throw new NativeTypeError("a redirect leads away from HTTP");
    const isRepeated = answer.status === 307 || answer.status === 308 || request.method === "GET";
    // Another origin is not told what was meant for the first.
    const headers = next.origin === url.origin ? request.headers : [];
    request = isRepeated ? { ...request, headers } : { method: "GET", headers };
    url = next;
  }
  throw new NativeTypeError("too many redirects");
};
