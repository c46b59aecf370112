"""Tests ``fastevm fork cache``."""

import json
from pathlib import Path

import pytest

from fastevm.__main__ import main
from fastevm.core.state.source import Found
from fastevm.fork.disk_cache import DiskCache
from fastevm.fork.pinned_block import PinnedBlock

from .fake_endpoint import block


@pytest.fixture
def filled(own_cache: Path) -> Path:
    cache = DiskCache(own_cache)
    for chain in ("1", "31337:abcdef0123"):
        at = cache.block(chain, PinnedBlock.read(block(10)))
        assert at is not None
        cache.put(at, Found(slots={(b"\x01" * 20, slot): slot for slot in range(7)}))
    cache.close()
    return own_cache


def test_stats_count_values_and_name_chains(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fork", "cache", "stats"]) == 0
    reported = capsys.readouterr().out
    assert str(filled / "fork.sqlite") in reported
    assert [line.split() for line in reported.splitlines() if line.startswith("slot")] == [
        ["slot", "14"]
    ]
    assert "chain 1: 1 blocks, 10 to 10" in reported
    assert "chain 31337 from genesis 0xabcdef01" in reported


def test_an_export_is_imported_into_another_folder(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = str(tmp_path / "out"), str(tmp_path / "other")
    assert main(["fork", "cache", "export", out]) == 0
    assert main(["fork", "cache", "import", "--cache-path", other, out]) == 0
    assert "imported 2 new blocks" in capsys.readouterr().out
    assert main(["fork", "cache", "export", out]) == 1
    assert main(["fork", "cache", "import", str(tmp_path / "nothing")]) == 1
    assert "not an exported cache" in capsys.readouterr().err


def test_stats_are_one_json_value_on_request(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fork", "cache", "stats", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == str(filled / "fork.sqlite")
    assert found["counts"]["slot"] == 14
    assert found["bytes"] < found["maxBytes"]
    assert [(item["chain"], item["blocks"], item["last"]) for item in found["chains"]] == [
        ("1", 1, 10),
        ("31337:abcdef0123", 1, 10),
    ]


@pytest.mark.parametrize(("action", "code"), [("stats", 0), ("clear", 0), ("export", 1)])
def test_a_missing_cache_is_not_created(
    tmp_path: Path, action: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [str(tmp_path / "out")] if action == "export" else []
    words = ["fork", "cache", action, "--cache-path", str(tmp_path / "none"), *more]
    assert main(words) == code
    assert "does not exist" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_clearing_says_how_much(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fork", "cache", "clear", "--chain-id", "31337"]) == 0
    assert "deleted 1 blocks" in capsys.readouterr().out
    assert main(["fork", "cache", "clear", "--down-to", "0"]) == 0
    assert "deleted 1 blocks" in capsys.readouterr().out


def test_a_cache_that_cannot_be_read_is_a_failure(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_cache.mkdir()
    (own_cache / "fork.sqlite").write_bytes(b"garbage" * 1000)
    assert main(["fork", "cache", "stats"]) == 1
