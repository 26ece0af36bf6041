"""Type checking of scripts: the native TypeScript compiler, caged like a guest, in a fresh process for each check.

The compiler reads three files and no other: it resolves no import and no reference, whatever the script names, and the
walls around it leave it nothing else to open. It has no network, and is killed at its limits.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sandbridge_runner.engines import confinement, landlock, walls
from sandbridge_runner.engines.launcher import Launcher, Start, Started, Walls
from sandbridge_runner.engines.soft import has_walls

SECONDS = 10.0
"""Longest check."""
MEMORY_BYTES = 1024 * 1024 * 1024
LIMITS = {"RLIMIT_DATA": MEMORY_BYTES, "RLIMIT_CPU": 30}
_OUTPUT_BYTES = 256 * 1024
_AT_ONCE = 2
_SCRIPT = "script.ts"
OPTIONS = (
    *("--noEmit", "--noResolve", "--pretty", "false", "--types", ""),
    *("--target", "esnext", "--lib", "esnext", "--module", "esnext"),
    # A script is JavaScript first: what it leaves untyped is no mistake, and `data` is looked into without ceremony.
    *("--strict", "--noImplicitAny", "false", "--strictNullChecks", "false", "--useUnknownInCatchVariables", "false"),
)
_DIAGNOSTIC = re.compile(r"^(?P<file>[^(\n]+)\((?P<line>\d+),(?P<column>\d+)\): error TS(?P<code>\d+): (?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint of the compiler about the script; both numbers start at 1."""

    line: int
    column: int
    code: int
    text: str

    @property
    def is_syntax(self) -> bool:
        """True where the script cannot even be read."""
        return self.code < 2_000


class CompilerFailed(Exception):
    """The compiler gave no answer: it ran into a limit or does not start."""


class Compiler:
    """Checks scripts against declarations. Enter to make its files and its cage, leave to remove them."""

    def __init__(self, binary: Path, declarations: Mapping[str, str], *, seconds: float = SECONDS) -> None:
        """`binary`: the native compiler, with its own library beside it. `declarations`: file name → text."""
        self._binary = binary
        self._declarations = declarations
        self._seconds = seconds
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._checks = 0
        self._folder = Path()
        self._launcher: Launcher | None = None
        self._found = walls.Found(Walls(), range(0), ())

    def __enter__(self) -> Compiler:
        """Raises OSError where there is no cage to put it in."""
        if not has_walls():
            raise OSError("types are checked behind walls of the kernel, which only Linux has")
        self._folder = Path(tempfile.mkdtemp(prefix="sandbridge-compiler-"))
        try:
            self._folder.chmod(0o755)
            for name, text in self._declarations.items():
                (self._folder / name).write_text(text, encoding="utf-8")
                (self._folder / name).chmod(0o444)
            if not confinement.is_reachable(self._binary):
                shutil.copytree(self._binary.parent, self._folder / "lib")
                self._binary = self._folder / "lib" / self._binary.name
            self._launcher = Launcher()
            self._found = self._cage(self._launcher)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._launcher is not None:
            self._launcher.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _cage(self, launcher: Launcher) -> walls.Found:
        grants = (
            landlock.runnable(str(self._binary)),
            landlock.readable(str(self._binary.parent)),
            landlock.readable(str(self._folder)),
            landlock.Grant("/dev/null", landlock.READ_FILE | landlock.WRITE_FILE),
        )
        found = walls.find(launcher, self._start(self._folder), grants, has_network=False)
        if os.geteuid() == 0 and not found.uids:
            raise PermissionError("scripts are never read as root: start as an ordinary user, or with CAP_SETUID")
        return replace(found, walls=replace(found.walls, limits={**found.walls.limits, **LIMITS}))

    def _start(self, place: Path) -> Start:
        files = (*(str(self._folder / name) for name in self._declarations), _SCRIPT)
        environment = {"GOMEMLIMIT": str(MEMORY_BYTES // 2), "LANG": "C.UTF-8", "HOME": "/nonexistent"}
        return Start((str(self._binary), *OPTIONS, *files), environment, place, place)

    async def check(self, script: str) -> list[Diagnostic]:
        """Return what is wrong with the script, in its order. Raises CompilerFailed."""
        async with self._turn:
            assert self._launcher is not None, "enter it first"
            self._checks += 1
            place = self._folder / str(self._checks)
            try:
                place.mkdir(mode=0o755)
                (place / _SCRIPT).write_text(script, encoding="utf-8", errors="replace")
                uids = self._found.uids
                uid = uids[self._checks % len(uids)] if uids else None
                started = self._launcher.start(replace(self._found.walls, uid=uid), self._start(place))
            except OSError as error:
                shutil.rmtree(place, ignore_errors=True)
                raise CompilerFailed(f"it does not start: {error}") from None
            reading = asyncio.ensure_future(asyncio.to_thread(_read, started, self._seconds))
            try:
                output = await asyncio.shield(reading)
            finally:
                started.kill()
                code = await _ended(started)
                # Its output is closed now, so the thread is done with the descriptor.
                await asyncio.wait({reading})
                started.close()
                shutil.rmtree(place, ignore_errors=True)
        if output is None:
            raise CompilerFailed(f"no answer within {self._seconds:g} s")
        found = diagnostics(output.decode("utf-8", "replace"))
        if code != 0 and not found:
            raise CompilerFailed("it ran into a limit")
        return found


def _read(started: Started, seconds: float) -> bytes | None:
    """Return what it writes until it closes its output; None at the deadline. What is beyond the cap is left."""
    output = started.descriptors[1]
    deadline = time.monotonic() + seconds
    found = b""
    while len(found) < _OUTPUT_BYTES:
        readable, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return None
        if not (piece := os.read(output, _OUTPUT_BYTES)):
            break
        found += piece
    return found


async def _ended(started: Started) -> int:
    while (code := started.poll()) is None:  # noqa: ASYNC110 -- nobody else tells of another process's end
        await asyncio.sleep(0.001)
    return code


def diagnostics(output: str) -> list[Diagnostic]:
    """Read the compiler's output. What it says of other files than the script is left out."""
    found: list[Diagnostic] = []
    is_ours = False
    for line in output.splitlines():
        matched = _DIAGNOSTIC.match(line)
        if matched is None:
            # Lines that are set in explain the complaint above them.
            if is_ours and line.startswith("  "):
                found[-1] = replace(found[-1], text=f"{found[-1].text} {line.strip()}")
            continue
        is_ours = matched["file"] == _SCRIPT
        if is_ours:
            place = int(matched["line"]), int(matched["column"])
            found.append(Diagnostic(*place, int(matched["code"]), matched["text"]))
    return found
