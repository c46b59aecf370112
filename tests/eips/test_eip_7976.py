"""EIP-7976: Increase calldata floor cost.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(7976)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
