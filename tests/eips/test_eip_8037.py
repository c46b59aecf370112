"""EIP-8037: State creation gas cost increase.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(8037)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
