"""EIP-7516: BLOBBASEFEE instruction.

A contract can read the blob base fee of its block.
"""

from .support import (
    INVALID_OPCODE,
    before_and_after,
    cost,
    run,
    top,
)

BEFORE, AFTER = before_and_after(7516)


def test_the_opcode_gives_the_blob_base_fee():
    assert run(BEFORE, "BLOBBASEFEE").error == INVALID_OPCODE
    assert top(AFTER, "BLOBBASEFEE", blob_base_fee=7) == 7
    assert cost(AFTER, "", "BLOBBASEFEE") == 2
