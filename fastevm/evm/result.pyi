"""``ExecutionResult``: the result of an execution on an ``EVM``."""

from typing import Any, final

from fastevm.core.execution.types import Log

@final
class ExecutionResult:
    """The immutable result of a call or a transaction. ``error`` is None if it succeeded.

    The truth value of a result is ``success``. ``check()`` raises
    ``fastevm.errors.ExecutionFailed`` if the execution failed. Results with equal values are equal;
    traces are not compared. ``trace`` is the requested trace, or None.
    """

    success: bool
    output: bytes
    gas_used: int
    gas_refunded: int
    logs: tuple[Log, ...]
    error: str | None
    created_address: bytes | None
    trace: Any

    def __bool__(self) -> bool: ...
    def check(self) -> ExecutionResult: ...
    def _repr_html_(self) -> str: ...

def restore_result(
    success: bool,
    output: bytes | None,
    gas_used: int,
    gas_refunded: int,
    logs: tuple[Log, ...],
    error: str | None,
    created_address: bytes | None,
    trace: Any = None,
) -> ExecutionResult: ...
