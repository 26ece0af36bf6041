// Requests

const unsafe = (segment) => {
  let text = segment;
  for (let turn = 0; turn < 3; turn++) {
    if (text.split(/[/\\]/).some((one) => [".", ".."].includes(one.split(";")[0]))) return "a '.' or '..' segment";
    try {
      text = decodeURIComponent(text);
    } catch {
      break;
    }
  }
  if (/[/\\]/.test(segment)) return "a slash";
  return /[\x00-\x1f\x7f-\x9f\u2028\u2029]/.test(segment) ? "a control character" : undefined;
};
const pathText = (parameter, value) => {
  const text = pathValue(parameter, value);
  const plain = decodeURIComponent(text);
  for (const segment of parameter.multi ? plain.split("/") : [plain]) {
    if (segment === "") throw new Error("would leave a path segment empty");
    const reason = unsafe(segment);
    if (reason) throw new Error(`contains ${reason}, which would reach another path; give the plain value of one segment`);
  }
  return text;
};
const FREE_HEADERS = /^(accept|accept-language|idempotency-key|prefer|content-type|if-[a-z-]+)$/;
const knownGroups = (operation, args) => {
  for (const name of Object.keys(args)) {
    if (!["path", "query", "headers", "cookies", "body"].includes(name)) {
      throw refused(name, "is no part of a call; give path, query, headers, cookies or body");
    }
  }
  for (const [location, group] of Object.entries(GROUPS)) {
    const known = operation.parameters.filter((one) => one.in === location).map((one) => one.name);
    for (const name of Object.keys(args[group] ?? {})) {
      const isKnown = location === "header"
        ? FREE_HEADERS.test(name.toLowerCase()) || known.some((one) => one.toLowerCase() === name.toLowerCase())
        : known.includes(name);
      if (!isKnown) throw refused(`${group}.${name}`, `is unknown; there is ${known.join(", ") || "none"}`);
    }
  }
};
const valueFor = (parameter, group) => {
  if (parameter.in !== "header") return group[parameter.name] ?? parameter.default;
  const name = Object.keys(group).find((one) => one.toLowerCase() === parameter.name.toLowerCase());
  return (name === undefined ? undefined : group[name]) ?? parameter.default;
};
const buildRequest = async (operation, args, baseUrl) => {
  knownGroups(operation, args);
  const path = {};
  const query = [];
  const headers = [];
  const cookies = [];
  for (const parameter of operation.parameters) {
    const group = GROUPS[parameter.in];
    const where = `${group}.${parameter.name}`;
    const value = valueFor(parameter, args[group] ?? {});
    if (isNone(value)) {
      if (parameter.required || parameter.in === "path") throw refused(where, "missing");
      continue;
    }
    try {
      if (parameter.in === "path") path[parameter.name] = pathText(parameter, value);
      else if (parameter.in === "header") headers.push([parameter.name, headerValue(parameter, value)]);
      else if (parameter.in === "cookie") cookies.push(...cookieValue(parameter, value));
      else if (parameter.content) query.push(`${quote(parameter.name, NAME_SAFE)}=${quote(content(parameter, value))}`);
      else query.push(...pairs(parameter.name, value, parameter));
    } catch (error) {
      throw refused(where, error.message);
    }
  }
  const declared = operation.parameters.filter((one) => one.in === "header").map((one) => one.name.toLowerCase());
  let wanted;
  for (const [name, value] of Object.entries(args.headers ?? {})) {
    const low = name.toLowerCase();
    if (low === "content-type") wanted = String(value);
    else if (!declared.includes(low) && !isNone(value)) headers.push([name, headerText(scalar(value))]);
  }
  const { type, data } = await encodedBody(operation.body, args.body, wanted);
  if (cookies.length > 0) headers.push(["Cookie", cookies.join("; ")]);
  if (type !== undefined) headers.push(["Content-Type", type]);
  const base = new URL(baseUrl);
  const all = [...base.search.slice(1).split("&"), ...(operation.query ?? []), ...query].filter(Boolean).join("&");
  const filled = operation.path.map((segment) =>
    `/${segment.map((piece) => (typeof piece === "string" ? piece : path[piece.name])).join("")}`).join("");
  const url = base.origin + base.pathname.replace(/\/+$/, "") + filled + (all ? `?${all}` : "");
  return { method: operation.method, url, headers, body: data };
};
