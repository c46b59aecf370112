"""EIP-7954: Increase maximum contract size.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(7954)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
