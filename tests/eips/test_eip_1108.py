"""EIP-1108: Reduce alt_bn128 precompile gas costs.

Addition, multiplication and pairing on alt_bn128 cost less. Their results do not change.
"""

import pytest

from .support import before_and_after, call_precompile

BEFORE, AFTER = before_and_after(1108)
ADD, MUL, PAIRING = 6, 7, 8
GENERATOR = (1).to_bytes(32, "big") + (2).to_bytes(32, "big")


@pytest.mark.parametrize(
    ("address", "data", "before", "after"),
    [
        (ADD, GENERATOR * 2, 500, 150),
        (MUL, GENERATOR + (3).to_bytes(32, "big"), 40_000, 6_000),
        (PAIRING, b"", 100_000, 45_000),
        (PAIRING, bytes(192), 100_000 + 80_000, 45_000 + 34_000),
        (PAIRING, bytes(192 * 2), 100_000 + 2 * 80_000, 45_000 + 2 * 34_000),
    ],
)
def test_the_same_result_costs_less(address, data, before, after):
    results = [call_precompile(fork, address, data) for fork in (BEFORE, AFTER)]
    assert [result.gas_used for result in results] == [before, after]
    assert results[0].output == results[1].output != b""
