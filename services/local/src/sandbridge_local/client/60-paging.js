// Lists in pages: the places are those of the document, the names those that APIs use

const plain = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, "");
const integer = (value) => {
  if (typeof value === "bigint" || Number.isInteger(value)) return Number(value);
  return typeof value === "string" && /^[0-9]{1,18}$/.test(value) ? Number(value) : undefined;
};
const members = (data, depth = 4) => {
  if (!isMap(data) || depth === 0) return [];
  const found = [];
  const inner = [];
  for (const [name, value] of Object.entries(data)) {
    const key = plain(name);
    if (!isMap(value)) found.push([key, value]);
    else if (PAGING.CONTAINERS.includes(key)) inner.push([key, value]);
  }
  for (const [key, value] of inner) {
    if (key !== "next" && key !== "nextpage") found.push(...members(value, depth - 1));
    else found.push(...PAGING.TARGETS.filter((target) => target in value).map((target) => [key, value[target]]));
  }
  return found;
};
const BY_HAND = "loop by hand: call it again with the arguments of the next page until there are no more items";
const itemsOf = (data) => {
  if (Array.isArray(data)) return data;
  if (!isMap(data)) return [];
  const lists = Object.entries(data).filter(([name, value]) => Array.isArray(value) && !PAGING.NOT_ITEMS.includes(plain(name)));
  if (lists.length === 1) return lists[0][1];
  const usual = PAGING.ITEM_MEMBERS.map((name) => lists.find(([one]) => plain(one) === name)).find(Boolean);
  if (usual) return usual[1];
  if (lists.length > 0) throw refused("paginate", `the answer has several lists; ${BY_HAND}`);
  const wrapped = Object.entries(data).find(([name, value]) => PAGING.WRAPPERS.includes(plain(name)) && isMap(value));
  return wrapped ? itemsOf(wrapped[1]) : [];
};
const isLink = (value) =>
  typeof value === "string" && (/^(https?:\/\/|\?)/.test(value) || (value.startsWith("/") && value.includes("?")));
const linkHeader = (text) => {
  if (text === undefined) return undefined;
  const relations = new Set();
  for (const [, target, rest] of text.slice(0, 16_384).matchAll(/<([^<>]*)>((?:\s*;\s*[\w*-]+(?:\s*=\s*(?:"[^"]*"|[^\s",;]+))?)*)/g)) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i.exec(rest);
    const names = (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/);
    if (names.includes("next")) return target;
    for (const name of names) relations.add(name);
  }
  return ["first", "last", "prev", "previous"].some((one) => relations.has(one)) ? null : undefined;
};
const valueAt = (args, place) => {
  const value = args[place.group]?.[place.name];
  return place.member === undefined ? value : value?.[place.member];
};
const withValue = (args, place, value) => {
  const group = isMap(args[place.group]) ? args[place.group] : {};
  const set = place.member === undefined
    ? value
    : { ...(isMap(group[place.name]) ? group[place.name] : {}), [place.member]: value };
  return { ...args, [place.group]: { ...group, [place.name]: set } };
};
const writtenPlace = (place) => (place.member === undefined ? place.name : `${place.name}[${place.member}]`);
const grouped = (url) => {
  const values = {};
  for (const [name, value] of new URLSearchParams(url.search)) (values[name] ??= []).push(value);
  return values;
};
const followedLink = (operation, args, url, link) => {
  const here = new URL(url);
  if (!URL.canParse(link, url)) return undefined;
  const there = new URL(link, url);
  if (here.origin !== there.origin) return undefined;
  const [now, then] = [grouped(here), grouped(there)];
  let changed = Object.entries(then).filter(([name, values]) => jsonText(now[name] ?? null) !== jsonText(values));
  if (here.pathname !== there.pathname) {
    const known = Object.values(operation.paging ?? {}).map(writtenPlace);
    changed = changed.filter(([name]) => known.includes(name) || PAGING.CURSOR_PARAMETERS.includes(plain(name)));
  }
  let next = args;
  for (const [name, values] of changed) {
    const place = (operation.places ?? []).find((one) => writtenPlace(one) === name);
    if (place === undefined) return undefined;
    const isList = place.types.includes("array") && !place.types.includes("string");
    const last = values.at(-1);
    const number = place.types.includes("string") ? undefined : integer(last);
    next = withValue(next, place, isList ? values : number ?? last);
  }
  return changed.length > 0 ? next : undefined;
};
const counted = (operation, args, { found, items, tokens, nextPage, hasMore }) => {
  const { page, offset, size } = operation.paging ?? {};
  const number = (names) => {
    const one = found.find(([name, value]) => names.includes(name) && integer(value) !== undefined);
    return one && integer(one[1]);
  };
  const stated = number(PAGING.SIZE_MEMBERS);
  const asked = size && integer(valueAt(args, size));
  const full = stated ?? (size === undefined ? undefined : asked === undefined ? integer(size.default) : size.maximum === undefined ? undefined : asked);
  const all = number(PAGING.TOTAL_MEMBERS);
  const total = all !== undefined && all > items.length ? all : undefined;
  const short = full !== undefined && items.length < full && total === undefined;
  const numbers = tokens.map(integer).filter((one) => one !== undefined);
  if (page) {
    if (nextPage === "") return undefined;
    const told = integer(nextPage) ?? numbers[0];
    if (told !== undefined) return withValue(args, page, told);
    const current = integer(valueAt(args, page)) ?? number(PAGING.PAGE_MEMBERS) ?? integer(page.default) ?? 1;
    const zero = (isNone(valueAt(args, page)) && number(PAGING.PAGE_MEMBERS) === 0) || page.default === 0 || page.minimum === 0;
    const after = current + 1 - (zero ? 0 : 1);
    const pages = number(PAGING.PAGES_MEMBERS);
    if (items.length === 0 || (pages !== undefined && after >= pages)) return undefined;
    if (pages === undefined && ((total !== undefined && full && after * full >= total) || short)) return undefined;
    return withValue(args, page, current + 1);
  }
  if (offset) {
    if (numbers.length > 0) return withValue(args, offset, numbers[0]);
    const start = integer(valueAt(args, offset)) ?? number([plain(offset.name)]) ?? integer(offset.default) ?? 0;
    const end = start + items.length;
    return items.length === 0 || (total !== undefined && end >= total) || short ? undefined : withValue(args, offset, end);
  }
  if (hasMore) throw refused("paginate", `the answer has a next page that there is no parameter for; ${BY_HAND}`);
  return undefined;
};
const nextPage = (operation, args, url, answer, items) => {
  const { headers } = answer.response;
  const found = members(answer.data);
  const link = linkHeader(headers.link);
  const nexts = found
    .filter(([name]) => PAGING.NEXT_MEMBERS.includes(name))
    .sort(([one], [other]) => PAGING.NEXT_MEMBERS.indexOf(one) - PAGING.NEXT_MEMBERS.indexOf(other));
  if (operation.paging === undefined && link === undefined && !nexts.some(([, value]) => isLink(value))) {
    throw refused("paginate", `this operation has no known paging; ${BY_HAND}`);
  }
  const has = (names, value) => found.some(([name, one]) => names.includes(name) && one === value);
  if (link === null || has(PAGING.MORE_MEMBERS, false) || has(PAGING.LAST_MEMBERS, true)) return undefined;
  const more = has(PAGING.MORE_MEMBERS, true);
  const stated = nexts.map(([, value]) => value).filter((value) => !isNone(value) && value !== "" && value !== false);
  for (const target of [...(link === undefined ? [] : [link]), ...stated.filter(isLink)]) {
    const followed = followedLink(operation, args, url, target);
    if (followed) return followed;
  }
  const tokens = stated.filter((value) => !isLink(value) && ["string", "number", "bigint"].includes(typeof value));
  const cursor = operation.paging?.cursor;
  if (cursor) {
    const as = (token) =>
      cursor.types.includes("string") && typeof token !== "string" && !cursor.types.includes("integer") ? String(token) : token;
    const usable = tokens.find((one) => typeof one !== "string" || one.length <= 8_192);
    if (usable !== undefined) return withValue(args, cursor, as(usable));
    if (PAGING.AFTER_PARAMETERS.includes(plain(cursor.member ?? cursor.name)) && more && items.length > 0) {
      const token = found.find(([name]) => name === "lastid")?.[1] ?? items.at(-1)?.id;
      return isNone(token) ? undefined : withValue(args, cursor, as(token));
    }
  }
  if (nexts.length > 0 && stated.length === 0 && link === undefined && !more) return undefined;
  const hasMore = link !== undefined || stated.length > 0 || more;
  return counted(operation, args, { found, items, tokens, nextPage: headers["x-next-page"], hasMore });
};
