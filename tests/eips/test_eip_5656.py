"""EIP-5656: MCOPY - Memory copying instruction.

MCOPY copies memory, also between overlapping ranges.
"""

import pytest

from .support import INVALID_OPCODE, before_and_after, cost, run, top

BEFORE, AFTER = before_and_after(5656)
WORD = 0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F


@pytest.mark.parametrize(
    ("to", "start", "size", "read", "expected"),
    [
        # From the test cases of the EIP: without overlap, onto itself, and both kinds of overlap.
        (0, 32, 32, 0, WORD),
        (32, 32, 32, 32, WORD),
        (32, 33, 8, 32, 0x0102030405060708_08_090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F),
        (33, 32, 8, 32, 0x00_0001020304050607_090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F),
    ],
)
def test_memory_is_copied(to, start, size, read, expected):
    source = f"{WORD} 32 MSTORE {size} {start} {to} MCOPY {read} MLOAD"
    assert run(BEFORE, source).error == INVALID_OPCODE
    assert top(AFTER, source) == expected


@pytest.mark.parametrize(("size", "words"), [(0, 0), (1, 1), (32, 1), (33, 2), (256, 8)])
def test_it_costs_what_the_other_copies_cost(size, words):
    arguments = f"0 1000 MSTORE {size} 0 0"  # expands the memory beforehand
    assert (
        cost(AFTER, arguments, "MCOPY") == cost(AFTER, arguments, "CALLDATACOPY") == 3 + 3 * words
    )


def test_it_is_cheaper_than_a_copy_by_the_identity_precompile():
    memory = "0 1000 MSTORE"
    by_call = cost(AFTER, memory, "256 0 256 0 4 GAS STATICCALL")
    assert cost(AFTER, memory, "256 0 0 MCOPY") < by_call < 200
