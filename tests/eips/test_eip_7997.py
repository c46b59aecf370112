"""EIP-7997: Deterministic factory contract.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(7997)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
