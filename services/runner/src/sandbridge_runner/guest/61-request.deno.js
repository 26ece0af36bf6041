// A request of the guest's own: deno's fetch, which asks deno's permissions again at every redirect.
const nativeFetch = globalThis.fetch;
const requestDirectly = async (resource, { method, headers, body }) => {
  const response = await nativeFetch(resource, { method, headers, body });
  const pairs = [];
  response.headers.forEach((value, name) => append(pairs, [name, value]));
  const gathered = bodyGatherer();
  const reader = response.body?.getReader();
  try {
    for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader.read()) {
      gathered.add(next.value);
    }
  } catch (error) {
    reader.cancel();
    throw error;
  }
  return { status: response.status, url: response.url, headers: pairs, body: gathered.join() };
};
