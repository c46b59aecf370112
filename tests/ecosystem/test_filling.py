"""execution-specs fills the same fixtures with fastevm as with its own code."""

import os
from pathlib import Path
from typing import Final

import pytest

from .filling import FILL, fill

CLONE: Final = Path(os.environ.get("FASTEVM_EXECUTION_SPECS", ""))
TESTS: Final = ["tests/shanghai/eip3855_push0", "tests/cancun/eip1153_tstore/test_tstorage.py"]
# Rejected transactions and a schedule of blobs that differs from the fork's.
FEW: Final = ("--from", "Prague", "--until", "Osaka")


@pytest.mark.skipif(
    not (CLONE / FILL).is_file(),
    reason=f"set FASTEVM_EXECUTION_SPECS to a clone of execution-specs with {FILL}",
)
@pytest.mark.slow
def test_fixtures_are_those_of_the_specification() -> None:
    ours, theirs = (fill(CLONE, TESTS, tool, *FEW) for tool in ("plugin", "specification"))
    assert ours.hashes == theirs.hashes
    assert len(ours.hashes) > 100
