"""The runtime `deno`, from its wheel."""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from deno import find_deno_bin  # type: ignore[import-untyped]

from sandbridge_runner.runtimes.base import Reach, RuntimeName
from sandbridge_runner.runtimes.guest import digest, module
from sandbridge_runner.runtimes.imports import import_map

MODULE = "guest.mjs"
IMPORTS = "imports.json"
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
    "--deny-env",
    "--deny-sys",
    "--deny-run",
    "--deny-ffi",
    "--deny-import",
    "--v8-flags=--single-threaded",
)


@dataclass(frozen=True)
class Deno:
    """Implements `base.Runtime`; every permission is denied but what `reach` names."""

    binary: Path = field(default_factory=lambda: find_binary())
    name: RuntimeName = "deno"
    needs_cache: bool = True

    @functools.cached_property
    def build(self) -> str:
        """deno's size and time would not do: the version of its wheel and the digest of the guest."""
        return f"deno-{metadata.version('deno')}+{digest('deno')}"

    def files(self, *, reach: Reach = ()) -> Mapping[str, str]:
        """The guest, and the import map that closes the modules of Node."""
        return {MODULE: module("deno", self.build, reach), IMPORTS: import_map()}

    def command(
        self, *, binary: str, folder: str, imports_folder: str | None = None, reach: Reach = ()
    ) -> tuple[str, ...]:
        """`deno run` with every permission denied; the network too, but for `reach`."""
        network = "--allow-net" if reach is None else f"--allow-net={','.join(reach)}" if reach else "--deny-net"
        imports = f"--import-map={imports_folder or folder}/{IMPORTS}"
        return (binary, *FLAGS, network, imports, f"{folder}/{MODULE}")

    def environment(self, *, cache: str) -> Mapping[str, str]:
        """Nothing of the host's, and the same words and times everywhere."""
        return {
            "HOME": "/nonexistent",
            "DENO_DIR": cache,
            "DENO_NO_PROMPT": "1",
            "DENO_NO_UPDATE_CHECK": "1",
            "NO_COLOR": "1",
            "TZ": "UTC",
            "LANG": "en_US.UTF-8",
            "LC_ALL": "en_US.UTF-8",
        }


def find_binary() -> Path:
    """Return deno's own binary: that of its wheel, else the one on the path. Raises FileNotFoundError."""
    with contextlib.suppress(FileNotFoundError):
        return Path(find_deno_bin())
    found = shutil.which("deno")
    if found is None:
        raise FileNotFoundError("deno is not here: install the Python package `deno`")
    return Path(found)
