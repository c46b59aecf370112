"""Tests ``fastevm import``, which adds a file's blocks to a chain in memory or in a directory."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from fastevm.cli.command_line import main
from fastevm.node.dev_chain import DevChain
from fastevm.node.from_genesis import genesis_node
from fastevm.node.node import Mining


class Files(NamedTuple):
    """A genesis file, a file with three blocks, and the hash of the last block."""

    genesis: str
    blocks: Path
    head: str


@pytest.fixture
def files(tmp_path: Path) -> Files:
    genesis = DevChain(timestamp=1_000).genesis([])
    (tmp_path / "genesis.json").write_text(json.dumps(genesis))
    blocks = genesis_node(genesis, mining=Mining.MANUAL).mine(3)
    (tmp_path / "blocks.rlp").write_bytes(b"".join(block.rlp() for block in blocks))
    head = blocks[-1].hash.hex()
    return Files(str(tmp_path / "genesis.json"), tmp_path / "blocks.rlp", head)


def test_blocks_are_verified_in_memory(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "--genesis", files.genesis, str(files.blocks)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("imported 3 blocks in ")
    assert printed.endswith(f"the head is 3 0x{files.head}\n")


def test_a_directory_keeps_the_blocks(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", "--genesis", files.genesis, "--datadir", str(tmp_path / "data")]
    assert main([*command, str(files.blocks)]) == 0
    assert main([*command, str(files.blocks)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("imported 3 blocks")
    assert second.startswith("imported 0 blocks")
    assert second.endswith(f"the head is 3 0x{files.head}")


def test_an_invalid_block_is_named(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(files.blocks.read_bytes())
    content[60] ^= 1  # damages the first block's header
    files.blocks.write_bytes(content)
    assert main(["import", "--genesis", files.genesis, str(files.blocks)]) == 1
    printed = capsys.readouterr()
    assert "imported 0 blocks" in printed.out
    assert "block 1" in printed.err


def test_the_chain_is_required(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(files.blocks)]) == 2
    assert "pass --chain or --genesis" in capsys.readouterr().err
    assert main(["import", "--chain", "sepolai", str(files.blocks)]) == 1
    assert "sepolia" in capsys.readouterr().err
