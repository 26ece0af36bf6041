// Frames on standard input and output: u32 head length, u32 body length (big endian), head (JSON), body.
const MAX_HEAD = 256 * 1024;
const MAX_CHUNK = 1024 * 1024;
const EMPTY = new NativeUint8Array(0);

/** Fill `bytes` from `filled` on. */
const fill = (bytes, filled) => {
  while (filled < bytes.length) {
    const count = readInto(subarray(bytes, filled));
    if (count === null) exit(0);
    filled += count;
  }
  return bytes;
};
/** The first bytes of a frame, once some have come; the event loop turns meanwhile. */
const begunFrame = async () => {
  const sizes = new NativeUint8Array(8);
  const filled = await readLater(sizes);
  if (filled === null) exit(0);
  return { sizes, filled };
};

const getUint32 = unbound(NativeDataView.prototype.getUint32);
const setUint32 = unbound(NativeDataView.prototype.setUint32);

const readOne = (begun) => {
  const sizes = begun === undefined ? fill(new NativeUint8Array(8), 0) : fill(begun.sizes, begun.filled);
  const view = new NativeDataView(viewBuffer(sizes));
  const headLength = getUint32(view, 0);
  const bytes = fill(new NativeUint8Array(headLength + getUint32(view, 4)), 0);
  return { head: parseJson(text(subarray(bytes, 0, headLength))), body: subarray(bytes, headLength) };
};

/** The next message, with the bodies of its frames joined. Blocks: nothing else can happen while the script waits. */
const readFrame = (begun = undefined) => {
  const { head, body } = readOne(begun);
  if (head.more !== true) return { head, body };
  const chunks = [body];
  let size = body.length;
  for (let more = true; more;) {
    const next = readOne();
    append(chunks, next.body);
    size += next.body.length;
    more = next.head.more === true;
  }
  return { head, body: joined(chunks, size) };
};

const joined = (chunks, size) => {
  const bytes = new NativeUint8Array(size);
  for (let i = 0, at = 0; i < chunks.length; at += chunks[i++].length) setBytes(bytes, chunks[i], at);
  return bytes;
};

const writeFully = (bytes) => {
  for (let written = 0; written < bytes.length;) written += writeFrom(subarray(bytes, written));
};

const writeOne = (head, body) => {
  const frame = new NativeUint8Array(8 + head.length + body.length);
  const view = new NativeDataView(viewBuffer(frame));
  setUint32(view, 0, head.length);
  setUint32(view, 4, body.length);
  setBytes(frame, head, 8);
  setBytes(frame, body, 8 + head.length);
  writeFully(frame);
};

/** Write a message as one frame, or as several where its body is longer than a frame holds. */
const writeFrame = (headText, body = EMPTY) => {
  const head = utf8(headText);
  if (body.length <= MAX_CHUNK) return writeOne(head, body);
  const members = parseJson(headText);
  const rest = bare({ t: members.t, seq: members.seq });
  for (let at = 0; at < body.length; at += MAX_CHUNK) {
    const chunk = subarray(body, at, at + MAX_CHUNK);
    const last = at + MAX_CHUNK >= body.length;
    if (at === 0) writeOne(utf8(`${slice(headText, 0, -1)},"more":true}`), chunk);
    else writeOne(utf8(last ? jsonText(rest) : `${slice(jsonText(rest), 0, -1)},"more":true}`), chunk);
  }
};
