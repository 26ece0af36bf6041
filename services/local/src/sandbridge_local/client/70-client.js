// The client

const callers = new WeakMap();
const clientOf = (name, table, options) => {
  const baseUrl = options.baseUrl ?? table.baseUrl;
  const perform = async (operation, args) => {
    if (!baseUrl) throw new SandbridgeError("invalid_arguments", `${name}: give a baseUrl to createClient`);
    const built = await buildRequest(operation, args ?? {}, baseUrl);
    const own = Object.entries(options.headers ?? {});
    const request = withCredential({ ...built, headers: [...built.headers, ...own] }, table, operation, options.credential);
    return { url: built.url, answer: await answerOf(await exchanged(request, operation.safe === true, options)) };
  };
  const node = (call) => {
    const operation = Object.hasOwn(table.operations, call) ? table.operations[call] : undefined;
    const run = async (...args) => {
      if (operation === undefined) {
        const near = Object.keys(table.operations).filter((one) => one.split(".")[0] === call.split(".")[0]).slice(0, 5);
        throw new SandbridgeError("unknown_operation", `There is no operation ${name}.${call}.`, near.join(", "));
      }
      if (args.length > 1) throw refused(call, "a call takes one argument, an object with path, query, headers, cookies or body");
      return (await perform(operation, args[0])).answer;
    };
    const inner = new Map();
    const proxy = new Proxy(run, {
      get: (_target, key) => {
        if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
        if (!inner.has(key)) inner.set(key, node(call === "" ? key : `${call}.${key}`));
        return inner.get(key);
      },
    });
    callers.set(proxy, { operation, perform, call });
    return proxy;
  };
  return node("");
};

/** Items of all pages, one by one. */
export async function* paginate(call, args, options) {
  const caller = callers.get(call);
  if (caller?.operation === undefined) throw refused("paginate", "needs an operation as its first argument");
  let left = options?.limit ?? Infinity;
  let next = args ?? {};
  let used;
  while (next !== undefined && left > 0) {
    const now = jsonText(next);
    if (now === used) return;
    used = now;
    const { url, answer } = await caller.perform(caller.operation, next);
    if (answer.error !== undefined) {
      throw new SandbridgeError("script_error", `${caller.call}: HTTP ${answer.response.status} while paging`);
    }
    const items = itemsOf(answer.data);
    for (const one of items) {
      if (left-- <= 0) return;
      yield one;
    }
    next = nextPage(caller.operation, next, url, answer, items);
  }
}

/** Make the client: `createClient({baseUrl, credential})`; with several APIs one such object under each API's name. */
export function createClient(options = {}) {
  const names = Object.keys(APIS);
  const apis = Object.fromEntries(
    names.map((name) => [name, clientOf(name, APIS[name], names.length === 1 ? options : options[name] ?? {})]),
  );
  return { api: apis[names[0]], apis, paginate };
}
