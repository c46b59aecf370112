"""Validity rules of transactions."""

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.spec.schedule import ForkSchedule

def check_transaction(
    transaction: Transaction, schedule: ForkSchedule, *, chain_id: int = 1
) -> tuple[int, int]: ...
def validate_transaction(
    raw: bytes, schedule: ForkSchedule, chain_id: int = 1
) -> tuple[bytes, bytes, int]: ...
def intrinsic_gas_of(transaction: Transaction, schedule: ForkSchedule) -> tuple[int, int]: ...
