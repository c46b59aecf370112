"""Tests that a stablecoin of Base and a token in Solidity have equal results."""

from collections import Counter

import pytest

from .solidity import build
from .solidity.compare import REGISTRY_CALLS, TOKEN_CALLS, difference

NO_COMPILER = 2  # exit code of `build` if the Solidity compiler is not installed
RARE = {"renounceLastAdmin()", "setRoleAdmin(bytes32,bytes32)", "finalizeUpdateAdmin(uint64)"}


def test_operations_have_equal_outcomes() -> None:
    successes: Counter[str] = Counter()
    for seed in range(4):
        assert difference(seed, 1_000, successes) is None
    never = {name for name in (*TOKEN_CALLS, *REGISTRY_CALLS) if not successes[name]}
    assert never <= RARE


def test_the_artifacts_are_those_of_the_sources() -> None:
    found = build.main(["--check"])
    if found == NO_COMPILER:
        pytest.skip("needs node and the npm package solc")
    assert found == 0
