"""Tests files of blocks in all formats, and the errors of broken files."""

import gzip
import re
from pathlib import Path
from struct import pack

import pytest

from fastevm.chain import block_files
from fastevm.chain.block_files import BadBlockFile, blocks_of
from fastevm.core.primitives import rlp
from fastevm.errors import FastevmError, install_command

BLOCKS = [rlp.encode([[b"head", bytes([n])], [b"x" * n * 40], []]) for n in range(4)]


def entry(kind: int, content: bytes = b"") -> bytes:
    return pack("<HIH", kind, len(content), 0) + content


def era1(blocks: list[bytes]) -> bytes:
    snappy = pytest.importorskip("cramjam").snappy
    written = entry(0x3265)
    for block in blocks:
        header, *body = rlp.decode(block)
        written += entry(0x03, bytes(snappy.compress(rlp.encode(header))))
        written += entry(0x04, bytes(snappy.compress(rlp.encode(body))))
        written += entry(0x05, b"receipts") + entry(0x06, bytes(32))
    return written + entry(0x07, bytes(32)) + entry(0x3266, bytes(24))


def put(folder: Path, content: bytes) -> Path:
    path = folder / "blocks"
    path.write_bytes(content)
    return path


def test_exports_are_read_with_and_without_gzip(tmp_path: Path) -> None:
    assert list(blocks_of(put(tmp_path, b"".join(BLOCKS)))) == BLOCKS
    assert list(blocks_of(put(tmp_path, gzip.compress(b"".join(BLOCKS))))) == BLOCKS
    assert list(blocks_of(put(tmp_path, b""))) == []


def test_era1_files_are_read(tmp_path: Path) -> None:
    assert list(blocks_of(put(tmp_path, era1(BLOCKS)))) == BLOCKS


@pytest.mark.parametrize(
    ("content", "fault"),
    (
        (BLOCKS[0] + BLOCKS[1][:-1], f"byte {len(BLOCKS[0])}: the file ends inside a block"),
        (b"not a block", "byte 0: expected the RLP list of a block"),
        (b"\xfb\xff\xff\xff\xff", "byte 0: an item of 4294967295 bytes is larger than any block"),
        (gzip.compress(b"".join(BLOCKS), mtime=0)[:-9], "ended before the end-of-stream marker"),
        (entry(0x3265) + b"\x03", "byte 8: the file ends inside an entry"),
        (entry(0x3265) + pack("<HIH", 3, 0, 1), "byte 8: the reserved bytes"),
    ),
)
def test_broken_files_name_the_byte(tmp_path: Path, content: bytes, fault: str) -> None:
    if content.startswith(block_files.ERA1_MAGIC):
        pytest.importorskip("cramjam")
    with pytest.raises(BadBlockFile, match="blocks: .*" + fault):
        list(blocks_of(put(tmp_path, content)))


def test_era1_entries_out_of_order_are_refused(tmp_path: Path) -> None:
    snappy = pytest.importorskip("cramjam").snappy
    lonely = entry(0x3265) + entry(0x04, bytes(snappy.compress(b"\xc0")))
    with pytest.raises(BadBlockFile, match="byte 8: a body without a header"):
        list(blocks_of(put(tmp_path, lonely)))
    with pytest.raises(BadBlockFile, match="invalid snappy data"):
        list(blocks_of(put(tmp_path, entry(0x3265) + entry(0x03, b"\x00\x01"))))


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cramjam", None)
    with pytest.raises(FastevmError, match=re.escape(install_command("era"))):
        list(blocks_of(put(tmp_path, entry(0x3265))))
