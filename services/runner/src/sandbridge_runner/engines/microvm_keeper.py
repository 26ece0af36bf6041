"""The process beside one micro-VM: starts it through microsandbox's SDK and carries the bytes of its guest.

It is started as a script, not imported, with the SDK's folder in its arguments: it sees nothing else of the server.
Its standard streams are the guest's; its end is the guest's end. It leaves at once when the other end of its standard
input is closed, and the micro-VM leaves with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import select
import shutil
import sqlite3
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

CHUNK_BYTES = 64 * 1024
MAX_CHUNKS = 4
"""Chunks of input held here while the guest does not read."""
CREATE_ATTEMPTS = 2
"""A start is tried once more: only then, before any script has run, is that without consequences."""
LOST = 137
TURN_POLL_S = 0.02
NOT_STARTED = 70
TAIL_BYTES = 16 * 1024
KILLED_BY_KERNEL = "Out of memory: Killed process"


def main(verb: str, _name: str, text: str) -> None:
    """Do what the arguments say; never returns."""
    plan = json.loads(text)
    sys.path.append(plan["sdk"])
    work, failure = (load, NOT_STARTED) if verb == "load" else (serve, LOST)
    if verb != "load":
        threading.Thread(target=leave_with_the_server, daemon=True).start()
        make_home(Path(plan["home"]), Path(plan["template"]))
    try:
        code = asyncio.run(work(plan))
    except Exception as error:
        report(f"{type(error).__name__}: {error}")
        code = failure
    # Not sys.exit: threads of the SDK would be waited for.
    os._exit(code)


def leave_with_the_server() -> None:
    """Wait for the other end of standard input to close; what is still unread in it does not matter then."""
    watch = select.poll()
    watch.register(0, 0)
    watch.poll()
    os._exit(LOST)


def report(message: str) -> None:
    """Tell the runner, which judges it and shows it to nobody."""
    with contextlib.suppress(OSError):
        os.write(2, f"{message}\n".encode()[:CHUNK_BYTES])


async def load(plan: dict[str, Any]) -> int:
    """Bring an image archive into the SDK's home, and leave its database without a journal: it will be copied."""
    from microsandbox import Image

    await Image.load(plan["archive"], tag=plan["image"])
    with contextlib.closing(sqlite3.connect(Path(plan["home"]) / "db" / "msb.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return 0


def make_home(home: Path, template: Path) -> None:
    """Give this micro-VM a home of its own: a copy of what it writes to, links to what nobody may change."""
    for source in sorted(template.rglob("*")):
        target = home / source.relative_to(template)
        if source.is_dir():
            target.mkdir()
        elif source.stat().st_size > 0 and "cache" in source.relative_to(template).parts:
            target.symlink_to(source)
        else:
            shutil.copyfile(source, target)


async def serve(plan: dict[str, Any]) -> int:
    """Run the guest to its end. Returns its exit code, 137 where it was killed or the micro-VM is gone."""
    import microsandbox as sdk

    # One start for each processor at a time: the SDK gives up a machine that boots too slowly.
    turn = await asyncio.to_thread(take_turn, plan["turns"])
    sandbox = await create(sdk, plan)
    os.close(turn)
    logs = Path(plan["home"]) / "sandboxes" / plan["name"] / "logs"
    close_log(logs)
    limits = [sdk.Rlimit(sdk.RlimitResource(name), value, value) for name, value in plan["limits"].items()]
    program, *arguments = plan["command"]
    guest = await sandbox.exec_stream(
        program,
        arguments,
        cwd="/",
        env=plan["environment"],
        user=plan["user"],
        stdin=sdk.Stdin.pipe(),
        rlimits=limits,
    )
    feeding = asyncio.create_task(feed(guest.take_stdin()))
    try:
        code = await carry(guest, sdk)
    finally:
        feeding.cancel()
    if code == LOST and KILLED_BY_KERNEL in tail(logs / "kernel.log"):
        report("out of memory: the guest's kernel killed it")
    return code


def take_turn(files: list[str]) -> int:
    """Wait until one of the lock files is free; return the descriptor that holds it until it is closed."""
    descriptors = [os.open(file, os.O_RDONLY | os.O_CLOEXEC) for file in files]
    while True:
        for descriptor in descriptors:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
        time.sleep(TURN_POLL_S)


async def create(sdk: Any, plan: dict[str, Any]) -> Any:
    """Start the micro-VM: no network, an image that nothing can change, all that is written in its own memory."""
    for attempt in range(1, CREATE_ATTEMPTS + 1):
        try:
            return await sdk.Sandbox.create(
                plan["name"],
                image=sdk.Image.oci(plan["image"], root_disk=sdk.RootDisk.tmpfs(plan["disk_mib"])),
                pull_policy=sdk.PullPolicy.NEVER,
                memory=plan["memory_mib"],
                cpus=plan["cpus"],
                network=sdk.Network.none(),
                security=sdk.SecurityProfile.RESTRICTED,
                hostname="sandbox",
                max_duration=plan["max_duration_s"],
                log_level=sdk.LogLevel.ERROR,
                ephemeral=True,
                replace=attempt > 1,
            )
        except sdk.MicrosandboxError as error:
            report(f"the micro-VM did not start (attempt {attempt}): {error}")
    os._exit(NOT_STARTED)


def close_log(logs: Path) -> None:
    """Take the name from the file in which the SDK records all output, and let no other be made.

    What is recorded until then fills at most one file's share, which is freed with the micro-VM's process.
    """
    with contextlib.suppress(OSError):
        (logs / "exec.log").unlink()
    with contextlib.suppress(OSError):
        logs.chmod(0o555)


async def feed(sink: Any) -> None:
    """Carry standard input to the guest, as fast as it reads."""
    loop = asyncio.get_running_loop()
    chunks: deque[bytes] = deque()
    has_chunk = asyncio.Event()
    os.set_blocking(0, False)

    def read() -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(0, CHUNK_BYTES)
            if not data:
                os._exit(LOST)
            chunks.append(data)
            has_chunk.set()
            if len(chunks) >= MAX_CHUNKS:
                loop.remove_reader(0)

    loop.add_reader(0, read)
    while True:
        await has_chunk.wait()
        while chunks:
            await sink.write(chunks.popleft())
            loop.add_reader(0, read)
        has_chunk.clear()


async def carry(guest: Any, sdk: Any) -> int:
    """Carry what the guest says outside; returns how it ended."""
    kinds = sdk.ExecEventType
    for descriptor in (1, 2):
        os.set_blocking(descriptor, False)
    async for event in guest:
        if event.event_type == kinds.STDOUT:
            await write(1, event.data)
        elif event.event_type == kinds.STDERR:
            await write(2, event.data)
        elif event.event_type == kinds.EXITED:
            return event.code if 0 <= event.code < 128 else LOST
        elif event.event_type == kinds.FAILED:
            report(f"the guest did not start: {(event.data or b'').decode(errors='replace')}")
            return NOT_STARTED
    return LOST


async def write(descriptor: int, data: bytes) -> None:
    """Write all of `data`, waiting for the reader."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            await writable(descriptor)


async def writable(descriptor: int) -> None:
    """Wait until `descriptor` takes data."""
    loop = asyncio.get_running_loop()
    is_ready = asyncio.Event()
    loop.add_writer(descriptor, is_ready.set)
    try:
        await is_ready.wait()
    finally:
        loop.remove_writer(descriptor)


def tail(path: Path) -> str:
    """The end of a log; nothing where there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return log.read(TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    main(*sys.argv[1:4])
