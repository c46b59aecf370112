"""EIP-8038: State-access gas cost update.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(8038)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
