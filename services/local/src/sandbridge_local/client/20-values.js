// Values as text (OpenAPI 3.1 section 4.8.12.3 on RFC 6570 section 3.2)

const quote = (text, safe = "") => {
  let out = "";
  for (const byte of bytesOf.encode(text.toWellFormed())) {
    const character = String.fromCharCode(byte);
    out += byte < 128 && (UNRESERVED.test(character) || safe.includes(character))
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
};
const NAME_SAFE = "[]$:@/,";
const RESERVED = ":/?@!$'()*,;=[]";
const SEGMENTS_SAFE = "/:@!$&'()*+,;=";
const COOKIE_SAFE = "!#$&'()*+/:<=>?@[]^`{|}";
const DELIMITERS = { spaceDelimited: [" ", "%20"], pipeDelimited: ["|", "%7C"], tabDelimited: ["\t", "%09"] };

class Bytes {
  constructor(data, name, type) {
    this.data = data;
    this.name = name;
    this.type = type;
  }
}
const isMap = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date) && !(value instanceof Bytes);
const isNone = (value) => value === undefined || value === null;

const decimal = (number) => {
  if (!Number.isFinite(number)) throw new Error("not a finite number");
  if (Number.isInteger(number)) return BigInt(number).toString();
  const [digits, exponent] = String(number).split("e-");
  if (exponent === undefined) return digits;
  const plain = digits.replace("-", "").replace(".", "");
  return `${number < 0 ? "-" : ""}0.${"0".repeat(exponent - 1)}${plain}`;
};
const scalar = (value) => {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") return decimal(value);
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (value instanceof Date) return value.toISOString();
  throw new Error(`a value of type ${typeof value} cannot be sent here`);
};
const base64 = (data) => btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(""));
const jsonText = (value) =>
  JSON.stringify(value, (_key, item) =>
    typeof item === "bigint" ? JSON.rawJSON(String(item)) : item instanceof Bytes ? base64(item.data) : item);
const textOf = (value) => (isMap(value) || Array.isArray(value) ? jsonText(value) : scalar(value));
const item = (value, safe = "") => quote(textOf(value), safe);
const given = (value) => Object.entries(value).filter(([, one]) => !isNone(one));
const flat = (value) => (isMap(value) ? given(value).flat() : value.filter((one) => !isNone(one)));

const isJsonType = (type) => /(\/|\+)json$/.test(essence(type));
const content = (parameter, value) =>
  typeof value === "string" && !isJsonType(parameter.content) ? value.toWellFormed() : jsonText(value);

const simple = (value, explode, safe, separator) => {
  if (isMap(value) && explode) return given(value).map(([name, one]) => `${quote(name)}=${item(one, safe)}`).join(separator);
  if (isMap(value) || Array.isArray(value)) {
    return flat(value).map((one) => item(one, safe.replace(",", ""))).join(separator);
  }
  return quote(scalar(value), safe);
};
const matrix = (parameter, value, safe) => {
  const name = quote(parameter.name, NAME_SAFE);
  if (isMap(value) && parameter.explode) return given(value).map(([key, one]) => [quote(key, NAME_SAFE), item(one, safe)]);
  if (Array.isArray(value) && parameter.explode) return flat(value).map((one) => [name, item(one, safe)]);
  return [[name, simple(value, false, safe, ",")]];
};
const pathValue = (parameter, value) => {
  if (parameter.content) return quote(content(parameter, value));
  if ((isMap(value) || Array.isArray(value)) && flat(value).length === 0) return "";
  const safe = parameter.multi ? SEGMENTS_SAFE : "";
  if (parameter.style === "matrix") {
    return matrix(parameter, value, safe).map(([key, text]) => (text ? `;${key}=${text}` : `;${key}`)).join("");
  }
  const text = simple(value, parameter.explode, safe, parameter.style === "label" && parameter.explode ? "." : ",");
  return parameter.style === "label" ? `.${text}` : text;
};
const deep = (key, value, safe) => {
  if (isMap(value)) return Object.entries(value).flatMap(([name, one]) => deep(`${key}[${quote(name)}]`, one, safe));
  if (Array.isArray(value)) {
    const nested = value.some((one) => isMap(one) || Array.isArray(one));
    return value.flatMap((one, index) => deep(nested ? `${key}[${index}]` : `${key}[]`, one, safe));
  }
  return isNone(value) ? [] : [`${key}=${quote(scalar(value), safe)}`];
};
const pairs = (name, value, { style, explode, reserved }) => {
  const safe = reserved ? RESERVED : "";
  const key = quote(name, NAME_SAFE);
  if (style === "deepObject") return deep(key, value, safe);
  if (isMap(value) && explode) {
    return given(value).flatMap(([member, one]) => {
      const inner = quote(member, NAME_SAFE);
      return (Array.isArray(one) ? flat(one) : [one]).map((each) => `${inner}=${item(each, safe)}`);
    });
  }
  if (Array.isArray(value) && explode) return flat(value).map((one) => `${key}=${item(one, safe)}`);
  if (isMap(value) || Array.isArray(value)) {
    const items = flat(value).map(textOf);
    if (items.length === 0) return [];
    const [character, delimiter] = DELIMITERS[style] ?? [",", ","];
    if (style in DELIMITERS && items.some((one) => one.includes(character))) {
      throw new Error(`an item contains '${character}', which separates the items of this parameter`);
    }
    return [`${key}=${items.map((one) => quote(one, safe.replace(character, ""))).join(delimiter)}`];
  }
  return isNone(value) ? [] : [`${key}=${quote(scalar(value), safe)}`];
};
const headerText = (text) => {
  if (!/^[\t\x20-\x7e]*$/.test(text)) {
    throw new Error("a header carries visible ASCII characters only; no line breaks or control characters");
  }
  return text.trim();
};
const headerValue = (parameter, value) => {
  if (parameter.content) return headerText(content(parameter, value));
  const whole = (text) => {
    if (text.includes(",")) throw new Error("an item contains ',', which separates the items of this header");
    return text;
  };
  if (isMap(value) && parameter.explode) {
    return headerText(given(value).map(([name, one]) => `${whole(name)}=${whole(textOf(one))}`).join(","));
  }
  if (isMap(value) || Array.isArray(value)) return headerText(flat(value).map((one) => whole(textOf(one))).join(","));
  return headerText(scalar(value));
};
const cookieValue = (parameter, value) => {
  const key = quote(parameter.name, "!#$&'*+^`|");
  if (parameter.content) return [`${key}=${quote(content(parameter, value), COOKIE_SAFE)}`];
  if (Array.isArray(value) && parameter.explode) return flat(value).map((one) => `${key}=${item(one, COOKIE_SAFE)}`);
  if (isMap(value) && parameter.explode) return given(value).map(([name, one]) => `${quote(name)}=${item(one, COOKIE_SAFE)}`);
  if (isMap(value) || Array.isArray(value)) {
    const text = flat(value).map((one) => item(one, COOKIE_SAFE)).join(",");
    return text ? [`${key}=${text}`] : [];
  }
  return [`${key}=${quote(scalar(value), COOKIE_SAFE)}`];
};
