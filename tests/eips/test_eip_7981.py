"""EIP-7981: Increase access list cost.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(7981)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
