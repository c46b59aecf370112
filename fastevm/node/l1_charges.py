"""The fees that a sender must be able to pay besides gas and value (OP Stack)."""

from __future__ import annotations

from fastevm.chain.chain import Chain
from fastevm.core.execution.op_stack.l1_attributes import L1Attributes, attributes_of
from fastevm.core.execution.op_stack.l1_fees import l1_data_fee_of, operator_fee_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block


class L1Charges:
    """The L1 data fee and the operator fee, computed from the head block's attributes."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._known: tuple[Block, L1Attributes | None] | None = None

    def of(self, transaction: Transaction) -> int:
        """Returns the fees in wei of a transaction that uses all its gas, or 0 if there are
        none.
        """
        head, known = self._chain.head, self._known
        if known is None or known[0] is not head:
            known = self._known = head, attributes_of(head.transactions[:1])
        if known[1] is None:
            return 0
        schedule = self._chain.schedule_of(head.hash)
        fee, _ = l1_data_fee_of(transaction.raw, known[1], schedule)
        return fee + operator_fee_of(transaction.gas_limit, known[1], schedule)
