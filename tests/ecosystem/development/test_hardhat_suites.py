"""Tests that Hardhat suites pass on `fastevm dev` as they do on Hardhat's own network.

`python -m tests.ecosystem.development.hardhat_suites` also runs them on anvil, and times them.
"""

import shutil

import pytest

from tests.ecosystem.development.hardhat_suites import (
    HARDHAT,
    LIST,
    Absent,
    behind,
    compiled,
    outcomes,
)
from tests.ecosystem.development.nodes import OURS

FEWEST = 300  # minimum number of passed tests in a suite

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm, for Hardhat")


@pytest.mark.parametrize("name", LIST)
def test_what_passes_on_hardhats_network_passes_here(name: str) -> None:
    try:
        compiled(name)
    except Absent as reason:
        pytest.skip(f"{name}: {reason}")
    expected, _ = outcomes(name, HARDHAT)
    found, _ = outcomes(name, OURS)
    assert len(expected) >= FEWEST
    assert behind(expected, found).keys() <= LIST[name].hardhat_only.keys()
