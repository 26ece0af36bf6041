"""TypeScript declarations of a stand-alone client: every operation with its arguments and answers, every named type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbridge_openapi import media_types
from sandbridge_openapi.headers import forbidden
from sandbridge_openapi.model import Document, Location, MediaType, Operation, Parameter, Response, Schema
from sandbridge_openapi.settable import as_called
from sandbridge_openapi.type_names import Direction, TypeNames, plain_text, property_name
from sandbridge_openapi.typescript import Limits, declaration, written

_EVERYTHING = Limits(depth=1_000, members=1_000_000, values=1_000_000, text=200, for_compiler=True)
_GROUPS: tuple[tuple[str, Location], ...] = (
    ("path", "path"),
    ("query", "query"),
    ("headers", "header"),
    ("cookies", "cookie"),
)
_COMMENT = 300
_BYTES = "Blob | Uint8Array | ArrayBuffer"

_OPENING = """\
// Made from OpenAPI documents; make it again rather than changing it.

/** Status and headers of an answer; header names are in lower case. */
export interface Meta {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
}

/** What a call gives: `data` of a success, else `error`. */
export type Answer<Data, Failure> =
  | { readonly data: Data; readonly error: undefined; readonly response: Meta }
  | { readonly data: undefined; readonly error: Failure; readonly response: Meta };

/** Headers that any call may set. */
export type FreeHeaders = {
  Accept?: string;
  "Accept-Language"?: string;
  "Content-Type"?: string;
  "Idempotency-Key"?: string;
  Prefer?: string;
  [conditional: `If-${string}`]: string;
};

/** What never reached the API, or got no answer from it. */
export class SandbridgeError extends Error {
  readonly code: string;
  readonly hint: string;
  readonly retryable: boolean;
}

/** Where an API is and how to call it. */
export interface Options {
  /** Base URL; that of the document where it is left out. */
  baseUrl?: string;
  /** The API's key, or one secret for each security scheme by its name. */
  credential?: string | { [scheme: string]: string };
  /** Headers of every call. */
  headers?: { [name: string]: string };
  /** Used instead of the global `fetch`. */
  fetch?: typeof fetch;
  signal?: AbortSignal;
  /** Longest pause that a busy API may ask for, in milliseconds. */
  longestWaitMs?: number;
}

type ItemIn<Data> = Data extends readonly (infer Item)[]
  ? Item
  : { [Name in keyof Data]-?: NonNullable<Data[Name]> extends readonly (infer Item)[] ? Item : never }[keyof Data];
/** What `paginate` yields for a call. */
export type ItemOf<Data> = [ItemIn<Data>] extends [never] ? unknown : ItemIn<Data>;

/** Items of all pages, one by one. */
export function paginate<Args, Data, Failure>(
  call: (args: Args) => Promise<Answer<Data, Failure>>,
  args?: NonNullable<Args>,
  options?: { limit?: number },
): AsyncGenerator<ItemOf<Data>, void, undefined>;
"""
_OWN = ("Meta", "Answer", "FreeHeaders", "SandbridgeError", "Options", "ItemIn", "ItemOf", "Client", "Error", "Api")
_GLOBAL = (
    *(
        "AbortSignal",
        "ArrayBuffer",
        "AsyncGenerator",
        "Blob",
        "FormData",
        "NonNullable",
        "Promise",
        "Record",
        "Uint8Array",
    ),
)


def client_types(documents: Mapping[str, Document]) -> str:
    """Return the text of `client.d.ts` for these APIs by name."""
    taken = {*_OWN, *_GLOBAL, *(interface_name(name) for name in documents)}
    blocks = [_OPENING]
    for name, document in documents.items():
        names = TypeNames.of(document.schemas, taken, name[:1].upper() + name[1:])
        taken.update(names.identifiers.values(), (f"{one}Input" for one in names.identifiers.values()))
        writer = _Writer(names)
        blocks.append(writer.interface(name, document))
        blocks += writer.named_types()
    return "\n".join([*blocks, _closing(list(documents))])


def interface_name(api: str) -> str:
    """Return the name of the interface of an API's client."""
    return f"{api[:1].upper()}{api[1:]}Client"


def _closing(apis: list[str]) -> str:
    several = "; ".join(f"{name}?: Options" for name in apis)
    options = "Options" if len(apis) == 1 else f"{{ {several} }}"
    listed = "\n".join(f"    readonly {name}: {interface_name(name)};" for name in apis)
    return (
        "/** Every API, by name, and the first of them. */\nexport interface Client {\n"
        f"  readonly api: {interface_name(apis[0])};\n  readonly apis: {{\n{listed}\n  }};\n"
        "  readonly paginate: typeof paginate;\n}\n\n"
        f"/** Make the client. */\nexport function createClient(options?: {options}): Client;\n"
    )


@dataclass(slots=True)
class _Node:
    """One step of a call: an operation, further steps, or both."""

    operation: Operation | None = None
    steps: dict[str, _Node] = field(default_factory=dict)


@dataclass(slots=True)
class _Writer:
    """Writes the types of one API, and remembers which named types they use."""

    names: TypeNames
    used: dict[tuple[str, Direction], None] = field(default_factory=dict)

    def interface(self, api: str, document: Document) -> str:
        """Return the interface of an API's client."""
        places = forbidden(document.security_schemes.values())
        root = _Node()
        for operation in document.operations:
            node = root
            for step in operation.call.split("."):
                node = node.steps.setdefault(step, _Node())
            node.operation = as_called(operation, places)
        body = "\n".join(self._steps(root, "  "))
        title = _comment(document.title, "")
        return f"{title}export interface {interface_name(api)} {{\n{body}\n}}\n"

    def named_types(self) -> Iterator[str]:
        """Yield the declaration of every named type in use, and of those that they use."""
        done: set[tuple[str, Direction]] = set()
        written_as: set[str] = set()
        while waiting := [one for one in self.used if one not in done]:
            for name, direction in waiting:
                done.add((name, direction))
                made = declaration(name, self.names, direction=direction, limits=_EVERYTHING)
                self.used.update(dict.fromkeys(made.uses))
                if made.identifier not in written_as:
                    written_as.add(made.identifier)
                    start = made.text.index(f"type {made.identifier} = ")
                    yield f"{made.text[:start]}export {made.text[start:]}\n"

    def _steps(self, node: _Node, indent: str) -> Iterator[str]:
        for step, below in node.steps.items():
            if below.operation is not None:
                yield _comment(below.operation.summary or below.operation.description, indent).rstrip("\n") or indent
            yield f"{indent}readonly {property_name(step)}: {{"
            if below.operation is not None:
                yield f"{indent}  {self._call(below.operation)};"
            yield from self._steps(below, indent + "  ")
            yield f"{indent}}};"

    def _call(self, operation: Operation) -> str:
        groups = [text for group, location in _GROUPS if (text := self._group(operation, group, location))]
        if operation.body is not None and operation.body.media:
            taken = " | ".join(dict.fromkeys(self._body(one) for one in operation.body.media))
            groups.append(f"body{'' if operation.body.required else '?'}: {taken}")
        needed = any(not group.partition(":")[0].endswith("?") for group in groups)
        argument = f"args{'' if needed else '?'}: {{ {'; '.join(groups)} }}"
        data = self._answers([one for one in operation.responses if one.status[:1] == "2"] or _defaults(operation))
        failure = self._answers([one for one in operation.responses if one.status[:1] != "2"], "string")
        return f"({argument}): Promise<Answer<{data}, {failure}>>"

    def _group(self, operation: Operation, group: str, location: Location) -> str:
        members = [one for one in operation.parameters if one.location == location]
        if not members:
            return "headers?: FreeHeaders" if group == "headers" else ""
        inner = "; ".join(self._parameter(one) for one in members)
        mark = "" if any(one.required for one in members) else "?"
        return f"{group}{mark}: {{ {inner} }}{' & FreeHeaders' if group == 'headers' else ''}"

    def _parameter(self, parameter: Parameter) -> str:
        mark = "" if parameter.required else "?"
        return f"{property_name(parameter.name)}{mark}: {self._type(parameter.schema, 'input')}"

    def _body(self, one: MediaType) -> str:
        match media_types.kind(one.content_type):
            case "json":
                return self._type(one.schema, "input")
            case "urlencoded" | "multipart":
                return f"{self._type(one.schema, 'input')} | FormData"
            case "lines":
                return f"unknown[] | string | {_BYTES}"
            case _:
                return f"string | {_BYTES}"

    def _answers(self, responses: Iterable[Response], *others: str) -> str:
        found = [self._answer(one) for one in responses]
        return " | ".join(dict.fromkeys([*found, *others])) or "unknown"

    def _answer(self, response: Response) -> str:
        if not response.media:
            return "null"
        return " | ".join(dict.fromkeys(self._media(one) for one in response.media))

    def _media(self, one: MediaType) -> str:
        match media_types.kind(one.content_type):
            case "json":
                return self._type(one.schema, "output")
            case "text" | "lines" | "urlencoded":
                return "string"
            case _:
                return "unknown" if "*" in one.content_type else "Uint8Array"

    def _type(self, schema: Schema, direction: Direction) -> str:
        made = written(schema, self.names, direction=direction, limits=_EVERYTHING)
        self.used.update(dict.fromkeys(made.uses))
        return f"({made.text})" if " | " in made.text or " & " in made.text else made.text


def _defaults(operation: Operation) -> list[Response]:
    return [one for one in operation.responses if one.status == "default"]


def _comment(text: Any, indent: str) -> str:
    said = plain_text(str(text), _COMMENT).replace("*/", "* /") if text else ""
    return f"{indent}/** {said} */\n" if said else ""
