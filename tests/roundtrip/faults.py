"""Thirty faults put into good requests, to show that the harness would see each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cases import generate
from decoding import Decoder
from judging import violations
from trip import Report, Trip, build

from sandbridge_openapi.arguments import Request
from sandbridge_openapi.document import load

DOCUMENT = Path(__file__).with_name("documents") / "faults-3.0.yaml"
FORM = "as application/x-www-form-urlencoded"
MULTIPART = "as multipart/form-data"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what it is, the case whose request it spoils, and how."""

    name: str
    case: str
    spoil: Callable[[Request], Request]


def url(old: str, new: str) -> Callable[[Request], Request]:
    """Replace text of the URL."""
    return lambda request: replace(request, url=request.url.replace(old, new, 1))


def body(old: bytes, new: bytes) -> Callable[[Request], Request]:
    """Replace bytes of the body."""
    return lambda request: replace(request, body=(request.body or b"").replace(old, new, 1))


def header(name: str, *, rename: str | None = None, value: str | None = None) -> Callable[[Request], Request]:
    """Rename a header, or give it another value; without either, drop it."""

    def changed(request: Request) -> Request:
        kept = [(n, v) for n, v in request.headers if n.lower() != name.lower()]
        old = next((v for n, v in request.headers if n.lower() == name.lower()), "")
        if rename is not None or value is not None:
            kept.append((rename or name, value if value is not None else old))
        return replace(request, headers=tuple(kept))

    return changed


FAULTS = (
    Fault("a query parameter dropped", "every", url("text=string&", "")),
    Fault("a query parameter renamed", "every", url("text=", "txt=")),
    Fault("a query parameter nobody gave", "every", url("&count=", "&extra=1&count=")),
    Fault("another number", "every", url("count=7", "count=8")),
    Fault("another truth", "every", url("flag=true", "flag=false")),
    Fault("a list joined that should repeat", "every", url("many=string&many=string", "many=string,string")),
    Fault("a list repeated that should be joined", "every", url("joined=string,string", "joined=string&joined=string")),
    Fault("a delimiter encoded like data", "every", url("joined=string,string", "joined=string%2Cstring")),
    Fault("pipes instead of spaces", "every", url("spaced=0%200", "spaced=0%7C0")),
    Fault("dots instead of brackets", "every", url("deep[from]", "deep.from")),
    Fault("a member of a deep object dropped", "every", url("&deep[to]=string", "")),
    Fault("a JSON parameter sent as text", "every", url("filter=%7B%22a%22%3A%22string%22%7D", "filter=string")),
    Fault("encoded twice", "reserved", url("text=a%26", "text=a%2526")),
    Fault("not encoded", "reserved", url("text=a%26", "text=a&")),
    Fault("a plus left as it is", "reserved", url("text=a%26%3D%2B", "text=a%26%3D+")),
    Fault("a path value cut", "every", url("/simple/string/", "/simple/strin/")),
    Fault("a label without its dot", "every", url("/.0,0/", "/0,0/")),
    Fault("a matrix parameter renamed", "every", url(";matrix=", ";matrx=")),
    Fault("another method", "every", lambda request: replace(request, method="PUT")),
    Fault("a header dropped", "every", header("X-Trace")),
    Fault("a header nobody gave", "every", lambda r: replace(r, headers=(*r.headers, ("X-Extra", "1")))),
    Fault("a header's list separated by blanks", "every", header("X-List", value="0 0")),
    Fault("a cookie renamed", "every", header("Cookie", value="sess=string")),
    Fault("the wrong media type", "every", header("Content-Type", value="text/plain")),
    Fault("a number of the body as text", "every", body(b'"count":1', b'"count":"1"')),
    Fault("a member of the body nobody gave", "every", body(b"{", b'{"extra":1,')),
    Fault(
        "a form's list repeated that should be joined", FORM, body(b"tags=string,string", b"tags=string&tags=string")
    ),
    Fault("the wrong type of a part", MULTIPART, body(b"image/png", b"text/html")),
    Fault("a file without its name", MULTIPART, body(b'; filename="file"', b"")),
    Fault("a part renamed", MULTIPART, body(b'name="title"', b'name="titel"')),
)


def escaped() -> list[str]:
    """Return the faults that the harness does not see. Raises ValueError where a good request is no longer good."""
    made = generate(DOCUMENT)
    document = load(DOCUMENT.read_bytes())
    trip = Trip(document, Decoder(made.document), Report(DOCUMENT.name))
    raw = made.operations[0]
    decoder = trip.decoder.operation(raw.path, raw.method)
    missed = []
    for fault in FAULTS:
        case = next(one for one in raw.cases if one.name == fault.case)
        chosen = {slot: slot.candidates[0] for slot in case.slots}
        intended = {(slot.place, slot.name): value for slot, value in chosen.items()}
        request = build(trip, document.operations[0], chosen)
        if isinstance(request, str):
            raise ValueError(f"{fault.case}: {request}")
        if problems := violations(decoder, raw.method, request, intended):
            raise ValueError(f"{fault.case}: {problems[0]}")
        spoilt = fault.spoil(request)
        if spoilt == request:
            raise ValueError(f"the fault {fault.name!r} changes nothing in {request.url} {request.body!r}")
        if not violations(decoder, raw.method, spoilt, intended):
            missed.append(fault.name)
    return missed
