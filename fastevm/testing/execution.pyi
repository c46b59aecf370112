"""``TransactionRunner``, which runs transactions on a layer, in one call or in steps."""

from typing import Any

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.interpreter.tracer import StepTrace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer

class TransactionRunner:
    layer: Layer
    fetched: int
    records: list[dict[str, Any]]
    def __init__(
        self,
        layer: Layer,
        schedule: ForkSchedule,
        *,
        block: dict[str, Any] | None = None,
        remote: bool = False,
        stepped: bool = False,
        suspend: bool = False,
        trace: StepTrace | None = None,
    ) -> None: ...
    def run(
        self, transaction: Transaction, *, block_gas_left: int | None = None, **options: bool
    ) -> dict[str, Any]: ...
    def begin_and_abandon(self, transaction: Transaction) -> Layer: ...
