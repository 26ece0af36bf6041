"""The type checker of one process: scripts against the declarations of the APIs that it serves."""

from __future__ import annotations

import asyncio
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from sandbridge_kit.config import SettingsError
from sandbridge_kit.errors import Code, Failure, Position
from sandbridge_local.typecheck.shapes import Shaped, shapes_of
from sandbridge_openapi.model import Document
from sandbridge_openapi.names import nearest
from sandbridge_openapi.script_types import script_types
from sandbridge_openapi.typescript import signature
from sandbridge_runner.compiler import Compiler, CompilerFailed, Diagnostic

_CALL = re.compile(r"\bapi(?:s\.(?P<api>\w+))?\.(?P<call>[\w$]+(?:\.[\w$]+)*)")
_LIBRARY = re.compile(r" (?:Do you need to change your target library|Do you need to install type definitions).*")
_TOLD = 3
_TEXT = 400
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_INSTALL = "install it with `npm install -g typescript@7`, or name its directory with --typescript"


class TypeChecker:
    """Implements the orchestrator's port of that name. The compiler's cage is built at the first check."""

    def __init__(self, binary: Path, documents: Mapping[str, Document]) -> None:
        self._binary = binary
        self._documents = documents
        self._building = asyncio.Lock()
        self._compiler: Compiler | None = None

    async def check(self, code: str) -> Failure | None:
        """Return what is wrong with the script's types or syntax; None where it may run."""
        try:
            shaped, found = await self._diagnosed(await self._built(), code)
        except (CompilerFailed, OSError) as error:
            message = f"The types could not be checked: {error}."
            return Failure(Code.TYPE_ERROR, message, "Make the script simpler, or run it without the check.")
        return self._failure(code, shaped, found) if found else None

    def close(self) -> None:
        """End the compiler's cage and remove its files."""
        compiler, self._compiler = self._compiler, None
        if compiler is not None:
            compiler.__exit__()

    async def _built(self) -> Compiler:
        async with self._building:
            if self._compiler is None:
                declarations = await asyncio.to_thread(declarations_of, self._documents)
                self._compiler = Compiler(self._binary, declarations).__enter__()
            return self._compiler

    async def _diagnosed(self, compiler: Compiler, code: str) -> tuple[Shaped, Sequence[Diagnostic]]:
        """Check the shapes in turn until one can be read; else tell of the first."""
        answers: list[tuple[Shaped, Sequence[Diagnostic]]] = []
        for shaped in shapes_of(code):
            found = await compiler.check(shaped.text)
            if not any(one.is_syntax for one in found):
                return shaped, found
            answers.append((shaped, [one for one in found if one.is_syntax]))
        return answers[0]

    def _failure(self, code: str, shaped: Shaped, found: Sequence[Diagnostic]) -> Failure:
        first = found[0]
        lines = [f"line {one.line - shaped.lines_before}: {_said(one)}" for one in found[:_TOLD]]
        more = f" (and {len(found) - _TOLD} more)" if len(found) > _TOLD else ""
        position = Position(max(1, first.line - shaped.lines_before), first.column)
        kind = Code.SYNTAX_ERROR if first.is_syntax else Code.TYPE_ERROR
        return Failure(kind, "; ".join(lines) + more, self._hint(code, position), position=position)

    def _hint(self, code: str, position: Position) -> str:
        """Return the signature of the call that stands where the mistake is, or of the nearest one."""
        written = code.splitlines()[: position.line]
        calls = [found for line in reversed(written[-6:]) for found in reversed(list(_CALL.finditer(line)))]
        for found in calls:
            api = found["api"] or next(iter(self._documents))
            document = self._documents.get(api)
            if document is None:
                continue
            known = {operation.call: operation for operation in document.operations}
            call = found["call"] if found["call"] in known else next(iter(nearest(found["call"], known, 1)), None)
            if call is not None:
                root = f"apis.{api}" if found["api"] else "api"
                return f"The call is {signature(known[call], root)}. Nothing was sent."
        return ""


def _said(diagnostic: Diagnostic) -> str:
    return _LIBRARY.sub(" It is not in scope of a script.", diagnostic.text)[:_TEXT]


def declarations_of(documents: Mapping[str, Document]) -> dict[str, str]:
    """Return the declarations of all that is in scope of a script, by file name."""
    own = resources.files("sandbridge_local.typecheck") / "globals.d.ts"
    return {"globals.d.ts": own.read_text(encoding="utf-8"), "apis.d.ts": script_types(documents)}


def found_compiler(typescript: str | None) -> Path | None:
    """Return the compiler, None where none is named and none is found. Raises SettingsError for a wrong name."""
    try:
        return compiler_binary(typescript)
    except SettingsError:
        if typescript is not None:
            raise
        return None


def compiler_binary(typescript: str | None) -> Path:
    """Return TypeScript's native compiler: the one named, else that of a `tsc` beside this Python or on the path.

    `typescript` is the compiler itself, or a directory with TypeScript 7 in its node_modules. Raises SettingsError.
    """
    if typescript is not None:
        named = Path(typescript)
        found = named if named.is_file() else _in_modules(named)
        if found is None:
            raise SettingsError(f"There is no native TypeScript compiler in {typescript}: {_INSTALL}.")
        return found.resolve()
    beside = Path(sys.executable).parent / "tsc"
    for launcher in (str(beside) if beside.exists() else None, shutil.which("tsc")):
        for folder in Path(launcher).resolve().parents if launcher else ():
            if (found := _in_modules(folder)) is not None:
                return found.resolve()
    raise SettingsError(f"Checking types needs TypeScript 7: {_INSTALL}.")


def _in_modules(folder: Path) -> Path | None:
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
    package = f"typescript-{system}-{_MACHINES.get(platform.machine().lower(), platform.machine())}"
    found = folder / "node_modules" / "@typescript" / package / "lib" / "tsc"
    return found if found.is_file() else None
