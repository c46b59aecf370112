"""EIP-8024: Backward compatible SWAPN, DUPN, EXCHANGE.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(8024)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
