"""The layout of an image, read back by a reader of its own that knows only the published format."""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbridge_runner.core.erofs import File, layout

NAMES = st.text("abcxyz-.09", min_size=1, max_size=8).filter(lambda name: name not in (".", ".."))


def walk(image: bytes) -> Iterator[tuple[str, int, int, bytes]]:
    """Yield path, mode, owner and content of everything in the image."""
    magic, _, _, bits, _, root = struct.unpack_from("<IIIBBH", image, 1024)
    (meta,) = struct.unpack_from("<I", image, 1024 + 40)
    assert (magic, bits) == (0xE0F5E1E2, 12)

    def node(path: str, number: int) -> Iterator[tuple[str, int, int, bytes]]:
        place = (meta << bits) + (number << 5)
        form, xattrs, mode, _, size, block, _, uid, gid = struct.unpack_from("<HHHHQIIII", image, place)
        assert (form, xattrs) == (1, 0)
        content = image[block << bits : (block << bits) + size]
        yield path, mode, uid | gid, b"" if stat.S_ISDIR(mode) else content
        if stat.S_ISDIR(mode):
            for name, child in entries(content):
                if name not in (".", ".."):
                    yield from node(f"{path.rstrip('/')}/{name}", child)

    yield from node("/", root)


def entries(block: bytes) -> list[tuple[str, int]]:
    """Return the names of a folder's one block and the inodes behind them, checking that they are sorted."""
    (first,) = struct.unpack_from("<H", block, 8)
    rows = [struct.unpack_from("<IIHBB", block, at) for at in range(0, first, 12)]
    ends = [row[2] for row in rows[1:]] + [len(block)]
    names = [block[row[2] : end].decode() for row, end in zip(rows, ends, strict=True)]
    assert names == sorted(names, key=str.encode)
    return [(name, row[0]) for name, row in zip(names, rows, strict=True)]


def image_of(contents: dict[str, bytes], folders: tuple[str, ...] = (), programs: tuple[str, ...] = ()) -> bytes:
    made = layout({path: File(len(text), path in programs) for path, text in contents.items()}, folders)
    image = bytearray(made.size)
    image[: len(made.metadata)] = made.metadata
    for path, text in contents.items():
        place = made.places[path]
        assert (place % 4096, place >= len(made.metadata)) == (0, True)
        image[place : place + len(text)] = text
    return bytes(image)


def test_what_is_in_an_image_is_root_s_and_can_only_be_read_or_run() -> None:
    image = image_of({"/bin/deno": b"x" * 5000, "/etc/passwd": b"nobody"}, ("/tmp",), ("/bin/deno",))

    assert list(walk(image)) == [
        ("/", 0o40555, 0, b""),
        ("/bin", 0o40555, 0, b""),
        ("/bin/deno", 0o100555, 0, b"x" * 5000),
        ("/etc", 0o40555, 0, b""),
        ("/etc/passwd", 0o100444, 0, b"nobody"),
        ("/tmp", 0o40555, 0, b""),
    ]


@given(st.dictionaries(st.tuples(NAMES, NAMES), st.binary(max_size=5000), max_size=6))
def test_every_image_gives_back_what_was_put_in(tree: dict[tuple[str, str], bytes]) -> None:
    contents = {f"/{folder}/{name}": text for (folder, name), text in tree.items()}

    found = {path: text for path, mode, _, text in walk(image_of(contents)) if not stat.S_ISDIR(mode)}

    assert found == contents


@pytest.mark.parametrize("path", ["relative", "/", "/a//b", "/a/../b", "/a/.", f"/{'n' * 256}"])
def test_a_path_that_is_not_plain_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="no plain absolute path"):
        layout({path: File(1)})


def test_a_file_that_is_also_a_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="file and a folder"):
        layout({"/a": File(1), "/a/b": File(1)})


def test_a_folder_with_more_names_than_a_block_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="too many names"):
        layout({f"/lib/{number:0200}": File(1) for number in range(30)})
