"""The root file system of a sandbox: a runtime's binary, the libraries that it names, and the guest. Nothing else.

It is put together from files of this host without running any of them, and written as one image that is read only and
the same for every sandbox.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from sandbridge_runner.core import elf, erofs

COPY_BYTES = 1024 * 1024 * 1024
MAX_LIBRARIES = 64
PASSWD = "nobody:x:65534:65534:nobody:/nonexistent:/nonexistent\n"  # noqa: S105 - the file of that name
GROUP = "nogroup:x:65534:\n"
ETC: Mapping[str, str] = {"/etc/passwd": PASSWD, "/etc/group": GROUP}


def closure(binary: Path) -> dict[str, Path]:
    """Return path in the image → file of this host, for what `binary` needs to be loaded.

    Raises FileNotFoundError for a library that is not installed, ValueError for what is no plain ELF file.
    """
    first = read_needs(binary)
    found: dict[str, Path] = {}
    if first.interpreter is not None:
        found[first.interpreter] = plain(Path(first.interpreter))
    waiting = list(first.libraries)
    names = set(waiting)
    while waiting:
        name = waiting.pop()
        place, library = _find(name, first)
        found[place] = library
        more = [other for other in read_needs(library).libraries if other not in names]
        names.update(more)
        waiting.extend(more)
        if len(names) > MAX_LIBRARIES:
            raise ValueError(f"{binary} needs more than {MAX_LIBRARIES} libraries")
    return found


def _find(name: str, needs: elf.Needs) -> tuple[str, Path]:
    loader = Path(needs.interpreter).name if needs.interpreter else None
    if name == loader and needs.interpreter is not None:
        return needs.interpreter, plain(Path(needs.interpreter))
    for folder in needs.folders:
        candidate = Path(folder, name)
        if candidate.is_file() and read_needs(candidate).machine == needs.machine:
            return str(candidate), plain(candidate)
    raise FileNotFoundError(f"the library {name} is not installed; looked in {', '.join(needs.folders)}")


def read_needs(path: Path) -> elf.Needs:
    """Return what the ELF file at `path` needs. Raises ValueError for anything else."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise ValueError(f"{path} is empty")
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image:
            try:
                return elf.needs(image)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None


def plain(path: Path) -> Path:
    """Return the file behind `path`. Raises ValueError for a device node and for a set-user-ID or set-group-ID file."""
    resolved = path.resolve(strict=True)
    mode = resolved.stat().st_mode
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is no plain file, so it cannot be part of a sandbox")
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise ValueError(f"{path} is set-user-ID or set-group-ID, so it cannot be part of a sandbox")
    return resolved


def write_image(
    target: Path, *, programs: Mapping[str, Path], texts: Mapping[str, str], folders: tuple[str, ...]
) -> None:
    """Write the image: `programs` are path in the image → file of this host, `texts` path → content. Raises OSError."""
    sources = {path: plain(source) for path, source in programs.items()}
    contents = {path: text.encode() for path, text in texts.items()}
    files = {path: erofs.File(source.stat().st_size, is_executable=True) for path, source in sources.items()}
    files |= {path: erofs.File(len(content)) for path, content in contents.items()}
    layout = erofs.layout(files, folders)
    with target.open("xb") as image:
        image.write(layout.metadata)
        for path, content in contents.items():
            image.seek(layout.places[path])
            image.write(content)
        image.flush()
        for path, source in sources.items():
            _copy(source, image.fileno(), layout.places[path], files[path].size)
        image.truncate(layout.size)
    target.chmod(0o444)


def _copy(source: Path, target: int, place: int, size: int) -> None:
    with source.open("rb") as file:
        done = 0
        while done < size:
            # In the kernel, and without copying where the file system can share blocks.
            count = _copy_range(file.fileno(), target, min(size - done, COPY_BYTES), done, place + done)
            if count == 0:
                raise OSError(f"{source} became shorter while it was copied")
            done += count


def _copy_range(source: int, target: int, count: int, source_at: int, target_at: int) -> int:
    try:
        return os.copy_file_range(source, target, count, source_at, target_at)
    except OSError:
        data = os.pread(source, min(count, 8 * 1024 * 1024), source_at)
        return os.pwrite(target, data, target_at)
