"""Stubs of the fees of OP-stack chains."""

from fastevm.core.execution.op_stack.l1_attributes import L1Attributes
from fastevm.core.spec.schedule import ForkSchedule

def l1_data_fee_of(raw: bytes, attributes: L1Attributes, schedule: ForkSchedule) -> tuple[int, int]:
    """(fee in wei, L1 gas as receipts show it) of the canonical bytes of a transaction.

    Source: OP Stack specification, execution engine, "L1-Cost fees".
    """

def operator_fee_of(gas: int, attributes: L1Attributes, schedule: ForkSchedule) -> int:
    """The operator fee in wei for so much gas (Isthmus and Jovian, execution engine)."""

def da_footprint_of(raw: bytes, attributes: L1Attributes) -> int:
    """The share of the canonical bytes in the block's DA footprint, in gas (Jovian)."""

def compressed_size(raw: bytes) -> int:
    """The length of ``raw`` after FastLZ compression, in bytes."""
