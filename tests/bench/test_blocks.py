"""Tests the benchmark of real blocks: its table and its exit codes."""

import json
from pathlib import Path

import pytest

from fastevm.bench import blocks
from fastevm.bench.engines.evms import PEER_KINDS
from fastevm.core.primitives.replace import replace
from tests.shared_data import REAL_BLOCKS

TRANSACTIONS = {46147: 1, 116525: 83}


def test_blocks_are_timed_with_and_without_their_senders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(REAL_BLOCKS.required)
    assert blocks.main([folder, "--rounds", "1", "--report", str(tmp_path)]) == 0
    figures = json.loads((tmp_path / "blocks.json").read_text())
    found = {figure["number"]: figure for figure in figures["blocks"]}
    assert all(item["execution"] > 0 and item["senders"] > 0 for item in found.values())
    assert TRANSACTIONS.items() <= {(n, item["transactions"]) for n, item in found.items()}
    assert blocks.PUBLISHED_MS.keys() <= found.keys()
    assert capsys.readouterr().out.splitlines()[-1].split()[0] == "all"
    drawn = (tmp_path / "index.html").read_text()
    assert drawn.count("<svg") == 2
    assert all(f">{number}<" in drawn for number in found)


def test_blocks_with_witnesses_are_timed_on_what_they_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = str(REAL_BLOCKS.required)
    assert blocks.main([folder, "--rounds", "1", "--witnesses", "--most", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {int(line.split()[0]) for line in lines[1:4]} == {1265656, 3990967, 20612842}
    assert lines[-1].split()[0] == "all"


def test_blocks_are_timed_beside_revm_where_their_messages_end_alike(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if next(kind for kind in PEER_KINDS if kind.name == "pyrevm").python() is None:
        pytest.skip("no environment of pyrevm: make peers")
    folder = str(REAL_BLOCKS.required)
    assert blocks.main([folder, "--rounds", "1", "--revm", "--most", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("3 blocks on revm: ")
    assert all("revm" in line for line in lines[1:4])


def test_blocks_are_timed_on_two_threads(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(REAL_BLOCKS.required)
    assert blocks.main([folder, "--rounds", "2", "--threads", "2", "--most", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[-2:]] == ["unknown senders", "whole imports"]
    assert all("Mgas/s (rounds " in line for line in lines[-2:])


def test_a_folder_without_blocks_has_nothing_to_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert blocks.main([str(tmp_path)]) == 2
    assert "has no readers for its data" in capsys.readouterr().err


def test_a_block_that_uses_other_gas_than_its_header_says_is_wrong() -> None:
    item = next(blocks.prepared(REAL_BLOCKS.required, None))
    header = item.real.block.header
    claimed = replace(header, gas_used=header.gas_used + 1)
    with pytest.raises(blocks.WrongGas, match=f"block {header.number} used"):
        item.execute(replace(item.real.block, header=claimed))
