"""EIP-7778: Block gas accounting without refunds.

A block counts the gas of a transaction before the refund, the receipt counts it after the refund.
"""

from .support import CONTRACT, before_and_after, build, chain_across, grow, payment

BEFORE, AFTER = before_and_after(7778)
CLEARING = {CONTRACT: {"code": "0 0 SSTORE", "storage": {"0x0": "0x1"}}}


def used(blocks: int) -> tuple[int, int]:
    """Returns the gas used in the header and in the receipt of a transaction that clears a slot.

    ``blocks``: number of blocks before.
    """
    chain = chain_across(7778, CLEARING)
    for _ in range(blocks):
        grow(chain)
    call = payment(0, value=0, to=CONTRACT, gas_limit=100_000)
    block, result = build(chain, transactions=[call])
    return block.header.gas_used, result.receipts[0].gas_used


def test_the_header_counts_before_the_refund_from_then_on():
    header, receipt = used(0)
    assert header == receipt
    header, receipt = used(1)
    assert receipt == header - header // 5
