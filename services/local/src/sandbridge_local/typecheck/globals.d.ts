// What is in scope of a script beside the clients of the APIs and the language itself.
interface Console {
  log(...data: unknown[]): void;
  info(...data: unknown[]): void;
  warn(...data: unknown[]): void;
  error(...data: unknown[]): void;
  debug(...data: unknown[]): void;
}
declare const console: Console;

declare function setTimeout(callback: (...args: any[]) => void, ms?: number, ...args: unknown[]): number;
declare function setInterval(callback: (...args: any[]) => void, ms?: number, ...args: unknown[]): number;
declare function clearTimeout(id?: number): void;
declare function clearInterval(id?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function structuredClone<T>(value: T): T;
declare function atob(text: string): string;
declare function btoa(text: string): string;

declare class AbortSignal {
  readonly aborted: boolean;
  readonly reason: any;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: (event: any) => void, options?: unknown): void;
  removeEventListener(type: "abort", listener: (event: any) => void): void;
  static abort(reason?: unknown): AbortSignal;
  static timeout(ms: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
type HeadersInit = Headers | Record<string, string> | Iterable<readonly [string, string]>;
declare class Headers implements Iterable<[string, string]> {
  constructor(init?: HeadersInit);
  get(name: string): string | null;
  has(name: string): boolean;
  set(name: string, value: string): void;
  append(name: string, value: string): void;
  delete(name: string): void;
  forEach(callback: (value: string, name: string, headers: Headers) => void): void;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  entries(): IterableIterator<[string, string]>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
type BlobPart = Blob | Uint8Array | ArrayBuffer | string;
declare class Blob {
  constructor(parts?: Iterable<BlobPart>, options?: { type?: string });
  readonly size: number;
  readonly type: string;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  slice(start?: number, end?: number, type?: string): Blob;
}
declare class File extends Blob {
  constructor(parts: Iterable<BlobPart>, name: string, options?: { type?: string; lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
}
declare class FormData implements Iterable<[string, string | File]> {
  append(name: string, value: string | Blob, filename?: string): void;
  set(name: string, value: string | Blob, filename?: string): void;
  get(name: string): string | File | null;
  getAll(name: string): (string | File)[];
  has(name: string): boolean;
  delete(name: string): void;
  entries(): IterableIterator<[string, string | File]>;
  [Symbol.iterator](): IterableIterator<[string, string | File]>;
}
declare class URLSearchParams implements Iterable<[string, string]> {
  constructor(init?: string | Record<string, string> | Iterable<readonly [string, string]> | URLSearchParams);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void): void;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  entries(): IterableIterator<[string, string]>;
  toString(): string;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  hash: string;
  host: string;
  hostname: string;
  href: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  username: string;
  readonly origin: string;
  readonly searchParams: URLSearchParams;
  toString(): string;
  toJSON(): string;
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
}
declare class TextEncoder {
  encode(text?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(data?: ArrayBuffer | ArrayBufferView): string;
}
interface Response {
  readonly status: number;
  readonly ok: boolean;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly headers: Headers;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
}
interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: string | Blob | Uint8Array | ArrayBuffer | FormData | URLSearchParams | null;
  signal?: AbortSignal | null;
}
/** Reaches operations of the configured APIs only. */
declare function fetch(url: string | URL, options?: RequestInit): Promise<Response>;

declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): string;
};
declare const performance: { now(): number };
declare const results: {
  /** What an earlier run kept under this handle. */
  get(handle: string): Promise<any>;
};
/** Hand over a file; the answer is its handle. */
declare function file(name: string, data: unknown, mime?: string): Promise<string>;
/** Ask the person for what is missing. */
declare function ask(message: string, schema?: object): Promise<any>;
