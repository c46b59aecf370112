"""Executes traced transactions."""

from collections.abc import Callable, Iterable
from typing import Any

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.simulation.runner import Runner
from fastevm.core.simulation.values import CallOutcome
from fastevm.evm.machine import EVM, ExecutionResult
from fastevm.tracing.observer import Observer

class TracedRunner(Runner):
    """A block whose transactions may be traced. Not thread-safe."""

    @property
    def coinbase(self) -> bytes: ...
    @property
    def number(self) -> int: ...
    def block_hash_range(self) -> range: ...
    def replay(self, transactions: Iterable[Transaction]) -> None: ...
    def trace(
        self, transaction: Transaction, observer: Observer, *, as_call: bool = False
    ) -> CallOutcome: ...
    def add_traced(self, transaction: Transaction, observer: Observer) -> Any: ...

def execute_traced(evm: EVM, transaction: Transaction, observer: Observer) -> ExecutionResult: ...
def message_traced(
    evm: EVM,
    observer: Observer,
    run: Callable[..., ExecutionResult],
    *args: object,
    **terms: object,
) -> ExecutionResult:
    """Returns ``run(...)`` (``evm.call`` or ``evm.create``), traced by ``observer``."""

def halt_opcode(evm: EVM) -> int:
    """Returns the opcode byte at which the last execution of ``evm`` halted, if it did."""
