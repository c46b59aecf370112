"""EIP-7708: ETH transfers emit a log.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(7708)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
