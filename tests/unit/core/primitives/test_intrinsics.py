"""Tests 128-bit division, atomics and the seed. No other test calls them directly."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from fastevm.testing import primitives as c_functions

limbs = st.integers(0, 2**64 - 1)


@given(limbs, limbs, st.integers(1, 2**64 - 1))
def test_128_by_64_division(high: int, low: int, divisor: int) -> None:
    high %= divisor
    assert c_functions.div128(high, low, divisor) == divmod(high << 64 | low, divisor)


def test_atomic_counters_count() -> None:
    assert c_functions.count_atomically(-3, 10, 4) == 3


def test_the_seed_is_one_in_a_process_and_another_in_the_next() -> None:
    program = "from fastevm.testing import primitives as c_functions; print(c_functions.seed())"
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert c_functions.seed() == c_functions.seed()
    assert int(other.stdout) != c_functions.seed()
