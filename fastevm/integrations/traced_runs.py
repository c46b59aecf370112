"""Adds a trace to every run of a machine, hidden from the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastevm.evm.machine import ExecutionResult
from fastevm.evm.result import restore_result

Run = Callable[..., ExecutionResult]
RUNS: Final = ("call", "create", "transact", "deploy", "execute")  # methods that execute code
INSIDE: Final = "_is_traced"


def with_trace(method: Run, name: str, read: Callable[[Any, Any], object]) -> Run:
    """Wraps a method of `RUNS`, so that each run also makes the trace ``name``.

    ``read(machine, trace)`` is called once for the outermost method: ``deploy`` calls ``transact``,
    but this counts as one run.
    """

    def run(self: Any, *args: Any, trace: Any = None, **terms: Any) -> ExecutionResult:
        if getattr(self, INSIDE, False):
            return method(self, *args, trace=trace, **terms)
        wanted = wishes(trace)
        setattr(self, INSIDE, True)
        try:
            result = method(self, *args, trace=wanted | {name: wanted.get(name)}, **terms)
        finally:
            setattr(self, INSIDE, False)
        found = dict(result.trace)
        read(self, found[name])
        if name not in wanted:
            del found[name]
        given = found[trace] if isinstance(trace, str) else None if trace is None else found
        return restore_result(
            result.success, result.output, result.gas_used, result.gas_refunded, result.logs,
            result.error, result.created_address, given,
        )  # fmt: skip

    return run


def wishes(trace: Any) -> dict[str, Any]:
    """Returns the requested traces with their options."""
    if trace is None:
        return {}
    if isinstance(trace, str):
        return {trace: None}
    return dict(trace) if isinstance(trace, Mapping) else dict.fromkeys(trace)
