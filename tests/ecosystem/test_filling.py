"""Tests that execution-specs fills the same fixtures with fastevm as with its own tool."""

import os
from pathlib import Path
from typing import Final

import pytest

from .filling import FILL, fill

CLONE: Final = Path(os.environ.get("FASTEVM_EXECUTION_SPECS", ""))
TESTS: Final = ["tests/shanghai/eip3855_push0", "tests/cancun/eip1153_tstore/test_tstorage.py"]
IS_THERE: Final = (CLONE / FILL).is_file()
REASON: Final = f"set FASTEVM_EXECUTION_SPECS to a clone of execution-specs with {FILL}"
FORKS: Final = ("--from", "Prague", "--until", "Osaka")


@pytest.mark.skipif(not IS_THERE, reason=REASON)
@pytest.mark.slow
def test_fixtures_are_those_of_the_specification() -> None:
    ours, theirs = (fill(CLONE, TESTS, tool, *FORKS) for tool in ("plugin", "specification"))
    assert ours.hashes == theirs.hashes
    assert len(ours.hashes) > 100


@pytest.mark.skipif(not IS_THERE, reason=REASON)
@pytest.mark.slow
def test_traces_and_dumps_are_written(tmp_path: Path) -> None:
    given = ("--fork", "Prague", "-m", "state_test", "--traces", f"--evm-dump-dir={tmp_path}")
    filled = fill(CLONE, TESTS[:1], "plugin", *given)
    assert filled.hashes
    found = {path.name.partition("-")[0] for path in tmp_path.rglob("*.json*")}
    assert found >= {"trace", "alloc.json", "env.json", "txs.json", "result.json"}
