"""The layout of an EROFS image, version 1, uncompressed (Linux: Documentation/filesystems/erofs.rst).

Only folders and plain files can be written down here, none with more rights than reading and running, all of root: an
image made from this can hold no device node, no set-user-ID file, no link.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

BLOCK = 4096
_BLOCK_BITS = 12
_MAGIC = 0xE0F5E1E2
_SUPER_OFFSET = 1024
_SUPER = struct.Struct("<IIIBBHQQIIII16s16sIHHH38x")
_INODE = struct.Struct("<HHHHQIIIIQII16x")
_ENTRY = struct.Struct("<IIHBx")
_EXTENDED_FLAT = 1
"""Format of an inode: extended, its data in blocks of their own."""
_SLOT = 32
_MAX_NAME = 255
_FILE_TYPE = {stat.S_IFREG: 1, stat.S_IFDIR: 2}


@dataclass(frozen=True, slots=True)
class File:
    """A plain file; `size` in bytes."""

    size: int
    is_executable: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """`metadata` stands at the image's start, the bytes of each file at its place, zeros elsewhere."""

    metadata: bytes
    places: Mapping[str, int]
    size: int


@dataclass(eq=False, slots=True)
class _Node:
    mode: int
    size: int
    number: int = 0
    block: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


def layout(files: Mapping[str, File], folders: tuple[str, ...] = ()) -> Layout:
    """Return where everything stands. Paths begin with a slash; folders above a file need not be named.

    Raises ValueError for a path that is not plain, for one that is both file and folder, and for a folder whose names
    fill more than one block.
    """
    root = _Node(stat.S_IFDIR | 0o555, 0)
    for path in folders:
        _folder(root, _parts(path))
    leaves = {}
    for path, file in sorted(files.items()):
        *above, name = _parts(path)
        leaf = _Node(stat.S_IFREG | (0o555 if file.is_executable else 0o444), file.size)
        if _folder(root, above).setdefault(name, leaf) is not leaf:
            raise ValueError(f"{path} is in the image twice")
        leaves[path] = leaf
    return _place(root, leaves)


def _parts(path: str) -> list[str]:
    first, *parts = path.split("/")
    if first or not parts or any(part in ("", ".", "..") or len(part.encode()) > _MAX_NAME for part in parts):
        raise ValueError(f"{path!r} is no plain absolute path")
    return parts


def _folder(root: _Node, parts: list[str]) -> dict[str, _Node]:
    node = root
    for part in parts:
        node = node.children.setdefault(part, _Node(stat.S_IFDIR | 0o555, 0))
        if not stat.S_ISDIR(node.mode):
            raise ValueError(f"{part} is a file and a folder")
    return node.children


def _place(root: _Node, leaves: Mapping[str, _Node]) -> Layout:
    nodes = _flat(root)
    for index, node in enumerate(nodes):
        node.number = 2 * (index + 1)  # an extended inode fills two slots; slot 0 is nobody's
    folders = [(node, _entries(node, parent)) for node, parent in _with_parents(root, root)]
    first_data = 1 + _blocks((len(nodes) + 1) * _INODE.size)
    for at, (node, entries) in enumerate(folders):
        node.size, node.block = len(entries), first_data + at
    free = first_data + len(folders)
    for leaf in leaves.values():
        leaf.block = free
        free += _blocks(leaf.size)
    metadata = bytearray((first_data + len(folders)) * BLOCK)
    _put(metadata, _SUPER_OFFSET, _super(root, len(nodes), free))
    for node in nodes:
        _put(metadata, BLOCK + node.number * _SLOT, _inode(node))
    for node, entries in folders:
        _put(metadata, node.block * BLOCK, entries)
    return Layout(bytes(metadata), {path: leaf.block * BLOCK for path, leaf in leaves.items()}, free * BLOCK)


def _flat(node: _Node) -> list[_Node]:
    return [node, *(below for name in sorted(node.children) for below in _flat(node.children[name]))]


def _with_parents(node: _Node, parent: _Node) -> list[tuple[_Node, _Node]]:
    below = [
        pair for child in node.children.values() if stat.S_ISDIR(child.mode) for pair in _with_parents(child, node)
    ]
    return [(node, parent), *below]


def _entries(node: _Node, parent: _Node) -> bytes:
    children = {**node.children, ".": node, "..": parent}
    named = sorted((name.encode(), child.number, stat.S_IFMT(child.mode)) for name, child in children.items())
    offset = len(named) * _ENTRY.size
    table, names = b"", b""
    for name, number, kind in named:
        table += _ENTRY.pack(number, 0, offset + len(names), _FILE_TYPE[kind])
        names += name
    if len(table) + len(names) > BLOCK:
        raise ValueError("a folder has too many names for one block")
    return table + names


def _inode(node: _Node) -> bytes:
    links = 2 + sum(stat.S_ISDIR(child.mode) for child in node.children.values()) if stat.S_ISDIR(node.mode) else 1
    return _INODE.pack(_EXTENDED_FLAT, 0, node.mode, 0, node.size, node.block, node.number, 0, 0, 0, 0, links)


def _super(root: _Node, inodes: int, blocks: int) -> bytes:
    empty = bytes(16)
    return _SUPER.pack(
        _MAGIC, 0, 0, _BLOCK_BITS, 0, root.number, inodes, 0, 0, blocks, 1, 0, empty, empty, 0, 0, 0, 0
    )  # fmt: skip


def _blocks(size: int) -> int:
    return -(-size // BLOCK)


def _put(target: bytearray, at: int, data: bytes) -> None:
    target[at : at + len(data)] = data
