"""The engine `deno`: one process a guest, every permission denied."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import Literal

from deno import find_deno_bin  # type: ignore[import-untyped]

from sandbridge_runner.engines import confinement
from sandbridge_runner.engines.base import Guest, Layer
from sandbridge_runner.engines.confinement import NOBODY
from sandbridge_runner.engines.process import ProcessGuest
from sandbridge_runner.engines.watchdog import Watchdog

DeathWatch = Literal["signal", "watchdog"]

FLAGS = (
    "run",
    "--quiet",
    "--no-remote",
    "--no-npm",
    "--cached-only",
    "--no-config",
    "--no-lock",
    "--no-prompt",
    "--no-check",
    "--no-code-cache",
    "--node-modules-dir=none",
    "--deny-read",
    "--deny-write",
    "--deny-net",
    "--deny-env",
    "--deny-sys",
    "--deny-run",
    "--deny-ffi",
    "--deny-import",
    "--v8-flags=--single-threaded",
)


class DenoEngine:
    """Implements `base.Engine`. `dies_by`: how guests die with the server, as far as it works here."""

    def __init__(
        self, *, binary: Path | None = None, parent: Path | None = None, dies_by: DeathWatch = "signal"
    ) -> None:
        """`binary`: deno itself, else the one of its wheel. `parent`: where the engine's own directory is made."""
        self._binary = binary or Path(find_deno_bin())
        self._parent = parent
        self._dies_by = dies_by
        self._home: Path | None = None
        self._argv: tuple[str, ...] = ()
        self._spawned = 0
        self._depth = 0
        self._watchdog: Watchdog | None = None

    @functools.cached_property
    def build(self) -> str:
        """deno's size and time would not do: the version of its wheel and the digest of the guest."""
        return f"deno-{_version()}+{hashlib.sha256(guest_source('').encode()).hexdigest()[:12]}"

    def prepare(self) -> None:
        """Copy the guest to a directory of its own and find the confinement. Raises OSError."""
        home = Path(tempfile.mkdtemp(prefix="sandbridge-", dir=self._parent))
        self._home = home
        home.chmod(0o755)
        (home / "guests").mkdir()
        script = home / "guest.mjs"
        script.write_text(guest_source(self.build), encoding="utf-8")
        script.chmod(0o444)
        binary = self._binary if confinement.is_reachable(self._binary) else _adopt(self._binary, home)
        command = (str(binary), *FLAGS, str(script))
        found = confinement.probe(allow_death_signal=self._dies_by == "signal")
        if os.geteuid() == 0 and not found.inner:
            raise PermissionError("guests never run as root: install setpriv (util-linux), or start as a user")
        self._argv = found.wrap(command)
        self._depth = found.depth
        if not found.dies_with_parent:
            self._watchdog = Watchdog()

    def spawn(self) -> Guest:
        """Start one guest. From the event loop's thread only."""
        assert self._home is not None, "prepare comes first"
        self._spawned += 1
        cache = Cache(self._home / "guests" / str(self._spawned), NOBODY if os.geteuid() == 0 else None)
        try:
            return ProcessGuest(
                self._argv, _environment(cache.path), depth=self._depth, watchdog=self._watchdog, scratch=cache
            )
        except BaseException:
            cache.remove()
            raise

    def dispose(self) -> None:
        """Remove the directory."""
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.close()
        home, self._home = self._home, None
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)


class Cache:
    """The DENO_DIR of one guest: closed but for the place of transpiled code, where a failed write costs 150 ms.

    It is made for one guest, closed once the script is loaded, and removed with the guest: nothing persists.
    """

    def __init__(self, path: Path, owner: int | None) -> None:
        """Make the folder; `owner` is the uid that the guest will have, None for this process's own."""
        self.path = path
        self._open = path / "gen" / "data"
        self._owner = owner
        self._open.mkdir(parents=True)
        if owner is not None:
            os.chown(self._open, owner, owner)
        (path / "gen").chmod(0o555)
        path.chmod(0o555)

    def close(self) -> None:
        """Let the guest write nothing more."""
        with contextlib.suppress(OSError):
            if self._owner is not None:
                os.chown(self._open, 0, 0)
            self._open.chmod(0o555)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        for folder in (self.path, self.path / "gen", self._open):
            with contextlib.suppress(OSError):
                folder.chmod(0o755)
        shutil.rmtree(self.path, ignore_errors=True)


def layers() -> tuple[Layer, ...]:
    """Return which protection layers a guest of this engine has on this machine. Blocks for some milliseconds."""
    permissions = Layer("permissions", True, "deno denies files, network, environment, processes, native code, imports")
    return (permissions, *confinement.probe().layers)


def guest_source(build: str) -> str:
    """Return the guest as one module that exports nothing."""
    folder = resources.files("sandbridge_runner") / "guest"
    parts = sorted((part for part in folder.iterdir() if part.name.endswith(".js")), key=lambda part: part.name)
    return f'const BUILD = "{build}";\n' + "\n".join(part.read_text(encoding="utf-8") for part in parts)


def _version() -> str:
    return metadata.version("deno")


def _environment(cache: Path) -> Mapping[str, str]:
    return {
        "HOME": "/nonexistent",
        "DENO_DIR": str(cache),
        "DENO_NO_PROMPT": "1",
        "DENO_NO_UPDATE_CHECK": "1",
        "NO_COLOR": "1",
        "TZ": "UTC",
        "LANG": "en_US.UTF-8",
        "LC_ALL": "en_US.UTF-8",
    }


def _adopt(binary: Path, home: Path) -> Path:
    """Bring `binary` to where every user can run it."""
    target = home / "deno"
    with contextlib.suppress(OSError):
        os.link(binary.resolve(), target)
        if confinement.is_reachable(target):
            return target
        target.unlink()
    shutil.copyfile(binary, target)
    target.chmod(0o555)
    return target
