// One virtual clock and one seeded stream: nothing that a script can read differs between two runs of the same frames.
const TICK_MS = 0.01;
let clock = 0;
let origin = 0;

const startClock = (nowMs) => {
  clock = nowMs;
  origin = nowMs;
};
/** Jump to the stamp of a delivered frame; the clock never goes back. */
const advanceClock = (atMs) => {
  clock = max(clock, atMs);
};
const readClock = () => (clock += TICK_MS);
const readMs = () => floor(readClock());

// RFC 8439 section 2.3: the ChaCha20 block function, with the stream's number as its nonce.
const rotate = (state, a, b, c, d) => {
  let x;
  state[a] += state[b];
  x = state[d] ^ state[a];
  state[d] = (x << 16) | (x >>> 16);
  state[c] += state[d];
  x = state[b] ^ state[c];
  state[b] = (x << 12) | (x >>> 20);
  state[a] += state[b];
  x = state[d] ^ state[a];
  state[d] = (x << 8) | (x >>> 24);
  state[c] += state[d];
  x = state[b] ^ state[c];
  state[b] = (x << 7) | (x >>> 25);
};
const chachaBlock = (input) => {
  const state = new NativeUint32Array(16);
  setBytes(state, input);
  for (let round = 0; round < 10; round++) {
    rotate(state, 0, 4, 8, 12);
    rotate(state, 1, 5, 9, 13);
    rotate(state, 2, 6, 10, 14);
    rotate(state, 3, 7, 11, 15);
    rotate(state, 0, 5, 10, 15);
    rotate(state, 1, 6, 11, 12);
    rotate(state, 2, 7, 8, 13);
    rotate(state, 3, 4, 9, 14);
  }
  for (let i = 0; i < 16; i++) state[i] += input[i];
  return state;
};

/** An endless stream of bytes from `seed` (64 hex digits); streams with different numbers share nothing. */
const randomStream = (seed, number) => {
  const input = new NativeUint32Array(16);
  const constants = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];
  for (let i = 0; i < 4; i++) input[i] = constants[i];
  for (let i = 0; i < 8; i++) {
    let word = 0;
    for (let byte = 3; byte >= 0; byte--) {
      word = word * 256 + +`0x${slice(seed, i * 8 + byte * 2, i * 8 + byte * 2 + 2)}`;
    }
    input[4 + i] = word;
  }
  input[13] = number;
  let block;
  let used = 64;
  const word = () => {
    if (used >= 64) {
      block = chachaBlock(input);
      used = 0;
      if (++input[12] === 0) input[14]++;
    }
    const value = block[used >> 2];
    used += 4;
    return value;
  };
  const fill = (bytes) => {
    for (let i = 0; i < bytes.length; i += 4) {
      const value = word();
      for (let byte = 0; byte < 4 && i + byte < bytes.length; byte++) bytes[i + byte] = value >>> (8 * byte);
    }
  };
  return { word, fill };
};

let chance;
let secrets;
const startChance = (seed) => {
  chance = randomStream(seed, 1);
  secrets = randomStream(seed, 2);
};
/** A number in [0, 1) with 53 random bits. */
const random = () => ((chance.word() >>> 5) * 67108864 + (chance.word() >>> 6)) / 9007199254740992;

const getRandomValues = (array) => {
  const tag = isView(array) ? typedArrayTag(array) : undefined;
  if (tag === undefined || startsWith(tag, "Float")) {
    throw new NativeDOMException("an integer typed array is needed", "TypeMismatchError");
  }
  if (viewLength(array) > 65536) throw new NativeDOMException("at most 65536 bytes at once", "QuotaExceededError");
  secrets.fill(bytesOf(array));
  return array;
};
/** RFC 9562 section 5.4. */
const randomUuid = () => {
  const bytes = new NativeUint8Array(16);
  secrets.fill(bytes);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  let uuid = "";
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) uuid += "-";
    uuid += "0123456789abcdef"[bytes[i] >> 4] + "0123456789abcdef"[bytes[i] & 15];
  }
  return uuid;
};

/** The `Date` of scripts: the native one, with the virtual clock wherever it would ask for the time. */
const virtualDate = () => {
  const VirtualDate = function Date(...args) {
    if (new.target === undefined) return new NativeDate(readMs()).toString();
    if (args.length === 0) args[0] = readMs();
    return construct(NativeDate, args, new.target === VirtualDate ? NativeDate : new.target);
  };
  VirtualDate.prototype = NativeDate.prototype;
  const hidden = { writable: true, enumerable: false, configurable: true };
  defineProperty(VirtualDate, "length", { value: 7, configurable: true });
  defineProperty(VirtualDate, "prototype", { writable: false });
  defineProperty(VirtualDate, "now", {
    ...hidden,
    value: function now() {
      return readMs();
    },
  });
  defineProperty(VirtualDate, "parse", { ...hidden, value: NativeDate.parse });
  defineProperty(VirtualDate, "UTC", { ...hidden, value: NativeDate.UTC });
  defineProperty(NativeDate.prototype, "constructor", { ...hidden, value: VirtualDate });
  return VirtualDate;
};

/** Formatters read the clock when they are given no date. */
const patchIntl = () => {
  const prototype = Intl.DateTimeFormat.prototype;
  const format = Object.getOwnPropertyDescriptor(prototype, "format").get;
  const parts = prototype.formatToParts;
  defineProperty(prototype, "format", {
    configurable: true,
    get() {
      const bound = apply(format, this, []);
      return (date) => bound(date === undefined ? readMs() : date);
    },
  });
  defineProperty(prototype, "formatToParts", {
    configurable: true,
    writable: true,
    value: function formatToParts(date) {
      return apply(parts, this, [date === undefined ? readMs() : date]);
    },
  });
};
