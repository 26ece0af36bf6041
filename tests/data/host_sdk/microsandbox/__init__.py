"""Stands in for the SDK of microsandbox where no micro-VM starts: the same calls, a process of this host inside.

Everything around a micro-VM can be tested with it: the bytes, the ends, the kills, the leftovers. Not the boundary.
"""

from __future__ import annotations

import asyncio
import os
import tarfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class ExecEventType(StrEnum):
    STARTED = "started"
    STDOUT = "stdout"
    STDERR = "stderr"
    EXITED = "exited"
    FAILED = "failed"


class PullPolicy(StrEnum):
    NEVER = "never"


class SecurityProfile(StrEnum):
    RESTRICTED = "restricted"


class LogLevel(StrEnum):
    ERROR = "error"


class RlimitResource(StrEnum):
    NPROC = "nproc"
    CORE = "core"
    NOFILE = "nofile"
    FSIZE = "fsize"


class MicrosandboxError(Exception):
    pass


@dataclass(frozen=True)
class Rlimit:
    resource: RlimitResource
    soft: int
    hard: int


class Network:
    @classmethod
    def none(cls) -> Network:
        return cls()


class RootDisk:
    @staticmethod
    def tmpfs(size_mib: int) -> int:
        return size_mib


class Stdin:
    @classmethod
    def pipe(cls) -> Stdin:
        return cls()


def _home() -> Path:
    return Path(os.environ["MSB_HOME"]).resolve()


class Image:
    @staticmethod
    async def load(archive: str, *, tag: str) -> list[str]:
        layers = _home() / "cache" / "layers"
        layers.mkdir(parents=True)
        (_home() / "db").mkdir()
        with tarfile.open(archive) as image:
            blob = max(image.getmembers(), key=lambda member: member.size)
            image.extract(blob, layers, filter="data")
            (layers / blob.name).rename(layers / "layer.tar")
        (layers / "layer.tar.lock").touch()
        (_home() / "db" / "tag").write_text(tag)
        return [tag]

    @staticmethod
    def oci(reference: str, *, root_disk: int) -> str:
        assert (_home() / "db" / "tag").read_text() == reference
        return reference


@dataclass(frozen=True)
class ExecEvent:
    event_type: ExecEventType
    data: bytes | None = None
    code: int | None = None


class Sandbox:
    """`fails` at its creation as often as the file `refusals` beside the SDK says."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.root = root

    @classmethod
    async def create(cls, name: str, **wanted: object) -> Sandbox:
        refusals = Path(__file__).parent / "refusals"
        left = int(refusals.read_text()) if refusals.exists() else 0
        if left:
            refusals.write_text(str(left - 1))
            raise MicrosandboxError("the relay was not available")
        home = _home() / "sandboxes" / name
        logs = home / "logs"
        logs.mkdir(parents=True, exist_ok=bool(wanted["replace"]))
        (logs / "exec.log").touch()
        (logs / "kernel.log").touch()
        root = home / "root"
        root.mkdir(exist_ok=True)
        with tarfile.open(_home() / "cache" / "layers" / "layer.tar") as layer:
            for member in layer:
                member.uid = member.gid = os.getuid()
                member.mode |= 0o200
                layer.extract(member, root, filter="fully_trusted", numeric_owner=True)
        return cls(name, root)

    async def exec_stream(self, program: str, arguments: list[str], **options: object) -> ExecHandle:
        inside = [word.replace("=/", f"={self.root}/") for word in (program, *arguments)]
        inside = [f"{self.root}{word}" if word.startswith("/") else word for word in inside]
        environment = options["env"]
        assert isinstance(environment, dict)
        process = await asyncio.create_subprocess_exec(
            *inside,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: value.replace("/cache", f"{self.root}/cache") for name, value in environment.items()},
            cwd="/",
        )
        return ExecHandle(process)


class ExecSink:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def write(self, data: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(data)
        await self._process.stdin.drain()


class ExecHandle:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._events: asyncio.Queue[ExecEvent] = asyncio.Queue(maxsize=1)
        self._task = asyncio.ensure_future(self._run())

    def take_stdin(self) -> ExecSink:
        return ExecSink(self._process)

    async def _run(self) -> None:
        await self._events.put(ExecEvent(ExecEventType.STARTED))
        await asyncio.gather(
            self._read(self._process.stdout, ExecEventType.STDOUT),
            self._read(self._process.stderr, ExecEventType.STDERR),
        )
        code = await self._process.wait()
        await self._events.put(ExecEvent(ExecEventType.EXITED, code=max(code, -1)))

    async def _read(self, stream: asyncio.StreamReader | None, kind: ExecEventType) -> None:
        assert stream
        while data := await stream.read(65536):
            await self._events.put(ExecEvent(kind, data))

    def __aiter__(self) -> ExecHandle:
        return self

    async def __anext__(self) -> ExecEvent:
        return await self._events.get()
