"""EIP-8282: Builder execution requests.

Amsterdam brings it.
"""

from .support import before_and_after

BEFORE, AFTER = before_and_after(8282)


def test_amsterdam_brings_it():
    assert (BEFORE, AFTER) == ("BPO2", "Amsterdam")
