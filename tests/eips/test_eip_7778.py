"""EIP-7778: Block gas accounting without refunds.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(7778)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
