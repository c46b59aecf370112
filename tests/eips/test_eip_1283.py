"""EIP-1283: net metering of SSTORE, in force in Constantinople only."""

import pytest

from fastevm.spec.forks import FORKS
from fastevm.spec.schedule import schedule_for

from .support import sstore_totals


def test_in_force_in_one_fork_only():
    assert [f.name for f in FORKS if 1283 in {e.number for e in f.all_eips}] == ["Constantinople"]


def test_has_no_sentry():
    assert schedule_for("constantinople").parameters["sstore_sentry"] == 0


@pytest.mark.parametrize(
    ("writes", "gas", "refund"),
    [
        # The table of test cases of the EIP: writes to a slot (the first is the original value),
        # gas of the SSTORE opcodes alone, refund at the end.
        ((0, 0, 0), 400, 0),
        ((0, 0, 1), 20_200, 0),
        ((0, 1, 0), 20_200, 19_800),
        ((0, 1, 2), 20_200, 0),
        ((0, 1, 1), 20_200, 0),
        ((1, 0, 0), 5_200, 15_000),
        ((1, 0, 1), 5_200, 4_800),
        ((1, 0, 2), 5_200, 0),
        ((1, 2, 0), 5_200, 15_000),
        ((1, 2, 3), 5_200, 0),
        ((1, 2, 1), 5_200, 4_800),
        ((1, 2, 2), 5_200, 0),
        ((1, 1, 0), 5_200, 15_000),
        ((1, 1, 2), 5_200, 0),
        ((1, 1, 1), 400, 0),
        ((0, 1, 0, 1), 40_200, 19_800),
        ((1, 0, 1, 0), 10_200, 19_800),
    ],
)
def test_the_cases_of_the_eip(writes, gas, refund):
    assert sstore_totals("constantinople", writes) == (gas, refund)
