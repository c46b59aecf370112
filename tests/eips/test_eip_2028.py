"""EIP-2028: Transaction data gas cost reduction.

A nonzero byte of a transaction's data costs 16 gas instead of 68.
"""

import pytest

from .support import OTHER, SENDER, before_and_after, machine

BEFORE, AFTER = before_and_after(2028)


@pytest.mark.parametrize(
    ("data", "before", "after"),
    [
        (b"", 0, 0),
        (b"\x01", 68, 16),
        (b"\xff" * 1_000, 68_000, 16_000),
        (bytes(1_000), 4_000, 4_000),
        (b"\x01\x00" * 10, 720, 200),
    ],
)
def test_data_costs_by_its_bytes(data, before, after):
    for fork, gas in ((BEFORE, before), (AFTER, after)):
        result = machine(fork).transact(OTHER, data, sender=SENDER)
        assert result.gas_used == 21_000 + gas
