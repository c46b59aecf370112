"""The post-exec transaction, with which the sequencer refunds gas (OP Stack, Lagoon).

Source: OP Stack specification, Lagoon, post-exec transactions and sequencer-defined metering.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX, POST_EXEC_TX
from fastevm.core.primitives import rlp
from fastevm.errors import InvalidBlock

VERSION = 1


def post_exec_transaction(number: int, refunds: Sequence[tuple[int, int]]) -> Transaction:
    """Returns the post-exec transaction of block ``number``.

    ``refunds``: pairs of the index of a refunded transaction and the refunded gas.
    """
    payload = rlp.encode([VERSION, number, [list(entry) for entry in refunds]])
    return Transaction.decode(bytes([POST_EXEC_TX]) + payload)


def post_exec_refunds(transactions: Sequence[Transaction], number: int) -> dict[int, int] | None:
    """Returns the gas that the post-exec transaction refunds, by transaction index.

    Returns None if block ``number`` has no post-exec transaction. Raises InvalidBlock if the
    transaction breaks a rule.
    """
    indices = [index for index, item in enumerate(transactions) if item.type == POST_EXEC_TX]
    if not indices:
        return None
    last = len(transactions) - 1
    if indices != [last]:
        field = f"transactions[{indices[0]}]"
        raise InvalidBlock(number, field, expected="nothing after it", found="a transaction")
    fault = _Fault(number, f"transactions[{last}]")
    payload: Any = rlp.decode(transactions[last].data)
    version, block_number = (int.from_bytes(item, "big") for item in payload[:2])
    fault.unless(version == VERSION, f"version {VERSION}", version)
    fault.unless(block_number == number, f"block number {number}", block_number)
    fault.unless(bool(payload[2]), "a refund", "none")
    refunds: dict[int, int] = {}
    before = -1
    for index, gas in ((int.from_bytes(i, "big"), int.from_bytes(g, "big")) for i, g in payload[2]):
        fault.unless(index > before, f"an index above {before}", index)
        fault.unless(index < last, f"an index below {last}", index)
        fault.unless(transactions[index].type != DEPOSIT_TX, "no deposit", f"index {index}")
        fault.unless(gas > 0, "a refund above 0", gas)
        refunds[index] = gas
        before = index
    return refunds


class _Fault:
    """Raises InvalidBlock, which names the block and the transaction, if a condition is false."""

    def __init__(self, number: int, field: str) -> None:
        self.number, self.field = number, field

    def unless(self, holds: bool, expected: str, found: object) -> None:
        if not holds:
            raise InvalidBlock(self.number, self.field, expected=expected, found=found)
