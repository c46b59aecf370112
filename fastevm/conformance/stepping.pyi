"""Executes a transaction for somebody who reads its steps as they come."""

from collections.abc import Callable
from typing import Any

from fastevm.evm import EVM, ExecutionResult
from fastevm.execution.transaction import Transaction
from fastevm.interpreter.tracer import StepTrace

def execute_recorded(
    evm: EVM,
    transaction: Transaction,
    trace: StepTrace,
    read: Callable[[list[dict[str, Any]]], object],
) -> ExecutionResult: ...
