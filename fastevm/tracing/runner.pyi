"""Runs transactions traced."""

from collections.abc import Callable, Iterable
from typing import Any

from fastevm.evm import EVM, ExecutionResult
from fastevm.execution.transaction import Transaction
from fastevm.simulate.engine.runner import Runner
from fastevm.simulate.values import CallOutcome
from fastevm.tracing.observer import Observer

class TracedRunner(Runner):
    """A block whose transactions may be traced; one thread at a time."""

    @property
    def coinbase(self) -> bytes: ...
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
    """``run(...)``, ``evm.call`` or ``evm.create``, traced by ``observer``."""

def halt_opcode(evm: EVM) -> int:
    """The byte at which the last run of ``evm`` halted, if it did."""
