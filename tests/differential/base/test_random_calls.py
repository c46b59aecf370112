"""Compares random calls to native contracts, direct and from programs, with `specification`."""

from __future__ import annotations

import pytest

from . import compare, transactions


@pytest.mark.parametrize("seed", range(30))
def test_calls_give_what_the_specification_gives(seed: int) -> None:
    assert compare.difference(seed, 60) is None


@pytest.mark.parametrize("seed", range(30))
def test_programs_that_call_native_contracts_give_what_the_specification_gives(seed: int) -> None:
    assert transactions.difference(seed, 10) is None
