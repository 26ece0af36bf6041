// Credentials: the first alternative of the operation that can be satisfied

const needsOf = (table, operation) => {
  if (Object.values(table.operations).some((one) => one.security)) return [operation.security ?? [], table.schemes];
  const names = Object.keys(table.schemes);
  return names.length === 1 ? [[names], table.schemes] : [[["key"]], { key: { kind: "http", scheme: "bearer" } }];
};
const withCredential = (request, table, operation, credential) => {
  if (credential === undefined) return request;
  const [needs, schemes] = needsOf(table, operation);
  const secretOf = (name, count) =>
    typeof credential === "string" ? (count === 1 ? credential : undefined) : credential[name];
  const need = needs.find((one) => one.length > 0 && one.every((name) => schemes[name] && secretOf(name, one.length)));
  if (need === undefined) return request;
  const placed = { ...request, headers: [...request.headers] };
  const put = (name, value) => {
    placed.headers = [...placed.headers.filter(([one]) => one.toLowerCase() !== name.toLowerCase()), [name, value]];
  };
  for (const name of need) {
    const [scheme, secret] = [schemes[name], secretOf(name, need.length)];
    if (scheme.kind !== "apiKey") {
      const pair = secret.includes(":") ? secret : `${secret}:`;
      put("Authorization", scheme.scheme === "basic" ? `Basic ${base64(bytesOf.encode(pair))}` : `Bearer ${secret}`);
    } else if (scheme.in === "query") {
      placed.url += `${placed.url.includes("?") ? "&" : "?"}${quote(scheme.name)}=${quote(secret)}`;
    } else if (scheme.in === "cookie") {
      const others = placed.headers.filter(([one]) => one.toLowerCase() === "cookie").map(([, value]) => value);
      put("Cookie", [...others, `${scheme.name}=${quote(secret)}`].join("; "));
    } else put(scheme.name, secret);
  }
  return placed;
};
