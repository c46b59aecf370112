"""EIP-2780: Resource-based intrinsic transaction gas.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(2780)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
