"""The fee members of receipts on OP Stack chains: the L1 data fee and the operator fee.

Names and formats are those of op-reth. Values come from the block's L1 attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from fastevm.core.execution.op_stack.l1_attributes import (
    BEDROCK_SELECTOR,
    L1Attributes,
    attributes_of,
)
from fastevm.core.execution.op_stack.l1_fees import l1_data_fee_of, operator_fee_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.core.primitives.hex import quantity
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.simulation.values import CallRequest
from fastevm.core.spec.schedule import ForkSchedule

MILLION = 10**6

# Typical values that an estimate assumes for missing members of a transaction.
USUAL_CHAIN_ID = 10
USUAL_NONCE = 1_000
USUAL_FEE_CAP = 10**9
USUAL_TIP_CAP = 10**6


def block_attributes(block: Block) -> L1Attributes | None:
    """Returns the L1 attributes at the start of a block, or None if the block has none."""
    return attributes_of(block.transactions[:1])


class L1FeeMembers:
    """Writes the fee members of a block's receipts."""

    def __init__(self, transactions: Sequence[Transaction], schedule: ForkSchedule) -> None:
        """Prepares the members of a block.

        ``transactions``: the block's transactions, with the L1 attributes first. ``schedule``: the
        block's rules.
        """
        self.schedule = schedule
        self.attributes = attributes_of(tuple(transactions[:1]))
        self._common = self._of_the_block(transactions)

    def _of_the_block(self, transactions: Sequence[Transaction]) -> dict[str, Any]:
        known = self.attributes
        if known is None:
            return {}
        common: dict[str, Any] = {"l1GasPrice": quantity(known.base_fee)}
        if transactions[0].data[:4] == BEDROCK_SELECTOR:
            common["l1FeeScalar"] = str(Decimal(known.fee_scalar) / MILLION)
        else:
            common["l1BaseFeeScalar"] = quantity(known.base_fee_scalar)
            common["l1BlobBaseFee"] = quantity(known.blob_base_fee)
            common["l1BlobBaseFeeScalar"] = quantity(known.blob_base_fee_scalar)
        rules = self.schedule.parameters
        if rules["operator_fee_version"] and (
            known.operator_fee_scalar or known.operator_fee_constant
        ):
            common["operatorFeeScalar"] = quantity(known.operator_fee_scalar)
            common["operatorFeeConstant"] = quantity(known.operator_fee_constant)
        if rules["has_da_footprint"]:
            common["daFootprintGasScalar"] = quantity(known.da_footprint_gas_scalar)
        return common

    def of(self, transaction: Transaction) -> dict[str, Any]:
        """Returns the members for a transaction. There are none if the attributes are unknown."""
        if self.attributes is None:
            return {}
        fee, gas = l1_data_fee_of(transaction.raw, self.attributes, self.schedule)
        return {**self._common, "l1Fee": quantity(fee), "l1GasUsed": quantity(gas)}

    def estimate(self, request: CallRequest, gas: int) -> dict[str, Any]:
        """Estimates the L1 data fee and the operator fee of a transaction in this block.

        ``request``: the call object of the transaction. ``gas``: its gas limit. The signature is
        not known yet, so the estimate uses 64 incompressible bytes.
        """
        if self.attributes is None:
            return {"l1Fee": "0x0", "l1GasUsed": "0x0", "operatorFee": "0x0"}
        envelope = _envelope_like(request, gas)
        fee, l1_gas = l1_data_fee_of(envelope.raw, self.attributes, self.schedule)
        return {
            "l1Fee": quantity(fee),
            "l1GasUsed": quantity(l1_gas),
            "operatorFee": quantity(operator_fee_of(gas, self.attributes, self.schedule)),
        }

    def text(self, transaction: Transaction) -> bytes:
        """Returns the members as JSON text without braces."""
        return msgspec.json.encode(self.of(transaction))[1:-1]


def _envelope_like(request: CallRequest, gas: int) -> Transaction:
    """Returns a transaction of about the size that the signed transaction will have."""
    halves = (keccak256(request.data + bytes([half])) for half in (0, 1))
    r, s = (int.from_bytes(half, "big") for half in halves)
    return Transaction.build(
        type=2,
        chain_id=request.chain_id or USUAL_CHAIN_ID,
        nonce=USUAL_NONCE if request.nonce is None else request.nonce,
        gas_limit=gas,
        max_fee_per_gas=request.max_fee_per_gas or USUAL_FEE_CAP,
        max_priority_fee_per_gas=request.max_priority_fee_per_gas or USUAL_TIP_CAP,
        to=request.to,
        value=request.value,
        data=request.data,
        access_list=request.access_list,
        r=r,
        s=s,
    )
