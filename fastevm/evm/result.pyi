"""``ExecutionResult``: what an execution on an ``EVM`` gave."""

from typing import Any, final

from fastevm.core.execution.types import Log

@final
class ExecutionResult:
    """What a call or a transaction gave; immutable. ``error`` is None exactly on success.

    Results with the same values are equal, whatever their traces. ``trace``: what ``trace`` of the
    call asked for, else None.
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
