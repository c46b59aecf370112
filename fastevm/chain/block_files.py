"""Reads and writes files of blocks: concatenated RLP as geth exports it, gzipped or not, and era1.

Sources: the era1 format (go-ethereum, internal/era) and e2store (nimbus-eth2, docs/e2store.md).
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

from fastevm.errors import FastevmError, install_command

GZIP_MAGIC: Final = b"\x1f\x8b"
ERA1_MAGIC: Final = bytes.fromhex("6532000000000000")  # an empty entry of type VERSION
HEADER, BODY = 0x03, 0x04  # snappy frames of RLP; all other entries are skipped
ENTRY: Final = Struct("<HIH")  # type, size, reserved
MAX_BLOCK_BYTES: Final = 64 << 20  # ten times the largest block that a gas limit allows
LIST, LONG_LIST = 0xC0, 0xF7  # first bytes of RLP lists


class BadBlockFile(FastevmError):
    """A file that does not contain whole blocks. The message names the file and the byte."""


def blocks_of(path: Path) -> Iterator[bytes]:
    """Yields the RLP of each block in a file. The first bytes of the file determine its format.

    Raises OSError if the file cannot be read, and BadBlockFile if it is truncated or its format is
    unknown.
    """
    with path.open("rb") as file:
        magic = file.read(len(ERA1_MAGIC))
        file.seek(0)
        try:
            if magic == ERA1_MAGIC:
                yield from _era1_blocks(file)
            elif magic.startswith(GZIP_MAGIC):
                with gzip.open(file) as unpacked:
                    yield from _rlp_blocks(unpacked)  # type: ignore[arg-type]
            else:
                yield from _rlp_blocks(file)
        except (ValueError, EOFError, gzip.BadGzipFile) as error:
            raise BadBlockFile(f"{path}: {error}") from None


def _exactly(file: BinaryIO, size: int, at: int) -> bytes:
    if size > MAX_BLOCK_BYTES:
        raise ValueError(f"byte {at}: an item of {size} bytes is larger than any block")
    found = file.read(size)
    if len(found) != size:
        raise ValueError(f"byte {at}: the file ends inside a block")
    return found


def _rlp_blocks(file: BinaryIO) -> Iterator[bytes]:
    at = 0
    while first := file.read(1):
        if first[0] < LIST:
            raise ValueError(f"byte {at}: expected the RLP list of a block")
        head, size = first, first[0] - LIST
        if first[0] > LONG_LIST:
            head += _exactly(file, first[0] - LONG_LIST, at)
            size = int.from_bytes(head[1:], "big")
        block = head + _exactly(file, size, at)
        yield block
        at += len(block)


def _era1_blocks(file: BinaryIO) -> Iterator[bytes]:
    unpack = _snappy()
    header: bytes | None = None
    at = 0
    while head := file.read(ENTRY.size):
        if len(head) != ENTRY.size:
            raise ValueError(f"byte {at}: the file ends inside an entry")
        kind, size, reserved = ENTRY.unpack(head)
        if reserved:
            raise ValueError(f"byte {at}: the reserved bytes of an entry are not zero")
        content = _exactly(file, size, at)
        if kind == HEADER:
            header = unpack(content)
        elif kind == BODY:
            if header is None:
                raise ValueError(f"byte {at}: a body without a header")
            yield _list(header + _payload(unpack(content), at))
            header = None
        at += ENTRY.size + size


def _snappy() -> Callable[[bytes], bytes]:
    try:
        from cramjam import snappy  # only era1 files need it
    except ImportError:
        how = install_command("era")
        raise FastevmError(f"era1 files are packed with snappy: {how}") from None

    buffer = bytearray(MAX_BLOCK_BYTES)

    def unpack(content: bytes) -> bytes:
        try:
            size = snappy.decompress_into(content, buffer)
        except Exception as error:  # cramjam's own class is not a ValueError
            limit = f"or more than {MAX_BLOCK_BYTES} bytes"
            raise ValueError(f"invalid snappy data, {limit}: {error}") from None
        return bytes(memoryview(buffer)[:size])

    return unpack


def _payload(item: bytes, at: int) -> bytes:
    """Returns the items of an RLP list without its header."""
    if not item or item[0] < LIST:
        raise ValueError(f"byte {at}: the body of a block is not an RLP list")
    return item[1 + max(item[0] - LONG_LIST, 0) :]


def _list(items: bytes) -> bytes:
    """Returns the RLP list with these encoded items."""
    size = len(items)
    if size <= LONG_LIST - LIST:
        return bytes([LIST + size]) + items
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([LONG_LIST + len(digits)]) + digits + items
