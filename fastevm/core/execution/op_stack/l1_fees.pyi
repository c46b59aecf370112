"""Stubs of the fees of OP Stack chains."""

from fastevm.core.execution.op_stack.l1_attributes import L1Attributes
from fastevm.core.spec.schedule import ForkSchedule

def l1_data_fee_of(raw: bytes, attributes: L1Attributes, schedule: ForkSchedule) -> tuple[int, int]:
    """Returns the L1 data fee in wei and the L1 gas for a transaction's canonical bytes.

    Receipts show the L1 gas. Source: OP Stack specification, execution engine, "L1-Cost fees".
    """

def operator_fee_of(gas: int, attributes: L1Attributes, schedule: ForkSchedule) -> int:
    """Returns the operator fee in wei for ``gas`` gas (Isthmus and Jovian, execution engine)."""

def da_footprint_of(raw: bytes, attributes: L1Attributes) -> int:
    """Returns how much a transaction's canonical bytes add to the DA footprint, in gas (Jovian)."""

def compressed_size(raw: bytes) -> int:
    """Returns the length of ``raw`` after FastLZ compression, in bytes."""
