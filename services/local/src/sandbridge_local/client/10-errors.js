// A client that stands alone: no dependency, no build step. Node 22 or newer, or any runtime with `fetch`.
// It makes the calls that scripts make in a sandbox, with the same arguments and the same answers.
const bytesOf = new TextEncoder();
const UNRESERVED = /[A-Za-z0-9_.~-]/;
const GROUPS = { path: "path", query: "query", header: "headers", cookie: "cookies" };
const URLENCODED = "application/x-www-form-urlencoded";
const OCTETS = "application/octet-stream";

/** What never reached the API, or got no answer from it. */
export class SandbridgeError extends Error {
  constructor(code, message, hint = "", retryable = false) {
    super(message);
    this.name = "SandbridgeError";
    this.code = code;
    this.hint = hint;
    this.retryable = retryable;
  }
}
const refused = (where, what) =>
  new SandbridgeError("invalid_arguments", `${where}: ${what}`, "Correct the named argument; nothing was sent.");
