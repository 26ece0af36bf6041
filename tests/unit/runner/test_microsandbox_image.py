"""The archive that a micro-VM's image is loaded from."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest

from sandbridge_runner.core.microvm import blob_path
from sandbridge_runner.engines.microvm_image import Content, write_archive


def content(program: Path) -> Content:
    return Content(
        programs={"/bin/engine": program},
        texts={"/srv/guest/guest.mjs": "text", "/etc/passwd": "root"},
        folders=("/tmp", "/proc"),
        writable=("/cache/gen/data",),
        uid=62_000,
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_bytes(b"\x7fELF" + bytes(5000))
    path.chmod(0o775)
    return path


def layer_of(archive: Path, folder: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(archive) as image:
        image.extractall(folder, filter="data")
    manifest_at = json.loads((folder / "index.json").read_text())["manifests"][0]["digest"].removeprefix("sha256:")
    layer_at = json.loads((folder / blob_path(manifest_at)).read_text())["layers"][0]["digest"].removeprefix("sha256:")
    assert hashlib.sha256((folder / blob_path(layer_at)).read_bytes()).hexdigest() == layer_at
    with tarfile.open(folder / blob_path(layer_at)) as layer:
        return layer.getmembers()


def test_all_in_an_image_is_of_root_and_read_only_but_for_the_folders_that_are_the_guests(
    tmp_path: Path, program: Path
) -> None:
    write_archive(tmp_path / "image.tar", content(program), "x86_64")
    members = layer_of(tmp_path / "image.tar", tmp_path / "out")

    assert [(m.name, m.type, oct(m.mode), m.uid, m.gid, m.size, m.mtime) for m in members] == [
        ("bin", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("cache", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("cache/gen", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("cache/gen/data", tarfile.DIRTYPE, "0o700", 62_000, 62_000, 0, 0),
        ("etc", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("proc", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("srv", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("srv/guest", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("tmp", tarfile.DIRTYPE, "0o755", 0, 0, 0, 0),
        ("etc/passwd", tarfile.REGTYPE, "0o444", 0, 0, 4, 0),
        ("srv/guest/guest.mjs", tarfile.REGTYPE, "0o444", 0, 0, 4, 0),
        ("bin/engine", tarfile.REGTYPE, "0o555", 0, 0, 5004, 0),
    ]


def test_equal_contents_give_equal_archives(tmp_path: Path, program: Path) -> None:
    write_archive(tmp_path / "one.tar", content(program), "x86_64")
    program.touch()
    write_archive(tmp_path / "two.tar", content(program), "x86_64")

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


@pytest.mark.parametrize("kind", ["set-user-ID", "pipe", "folder", "missing"])
def test_s16_nothing_special_gets_into_an_image(tmp_path: Path, program: Path, kind: str) -> None:
    special = tmp_path / "special"
    match kind:
        case "set-user-ID":
            special.write_bytes(b"x")
            special.chmod(0o4755)
        case "pipe":
            os.mkfifo(special)
        case "folder":
            special.mkdir()
    with pytest.raises((ValueError, FileNotFoundError)):
        write_archive(tmp_path / "image.tar", content(special), "x86_64")

    assert sorted(path.name for path in tmp_path.iterdir() if path not in (special, program)) == []
