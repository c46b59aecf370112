"""EIP-8246: Remove SELFDESTRUCT burn.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(8246)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
