"""Tests that random cases have equal results if paused, traced, reverted, exported or sliced."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.cases import FORKS, Case, make_case

from .relations import RELATIONS


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.__name__)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**48), fork=st.sampled_from(FORKS))
def test_the_circumstances_do_not_matter(
    relation: Callable[[Case], str | None], seed: int, fork: str
) -> None:
    broken = relation(make_case(seed, fork))
    assert broken is None, broken
