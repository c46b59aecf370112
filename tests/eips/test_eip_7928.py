"""EIP-7928: Block-level access lists.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(7928)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
