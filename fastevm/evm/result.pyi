"""``ExecutionResult``: the result of an execution on an ``EVM``."""

from typing import Any, final

from fastevm.core.execution.types import Log

@final
class ExecutionResult:
    """The immutable result of a call or a transaction. ``error`` is None exactly on success.

    Results with equal values are equal, whatever their traces. ``trace`` is the requested trace, or
    None.
    """

    success: bool
    output: bytes
    gas_used: int
    gas_refunded: int
    logs: tuple[Log, ...]
    error: str | None
    created_address: bytes | None
    trace: Any

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
