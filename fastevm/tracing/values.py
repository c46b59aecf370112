"""Trace requests, and limits of time and memory."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from fastevm.errors import FastevmError

TRACE_BYTES_LIMIT: Final = 128 * 1024 * 1024  # bytes per request of stored records or rendered JSON
# The same limit for call trees, whose records stay in memory until the execution ends.
CALLS_BYTES_LIMIT: Final = 32 * 1024 * 1024
DEFAULT_TIMEOUT: Final = 5.0  # seconds per transaction
MAX_TIMEOUT: Final = 60.0  # longest timeout in seconds that a request may set

_DURATION: Final = r"([+-])?((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)"
_PART: Final = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_SECONDS: Final[Mapping[str, float]] = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip


class TracingError(FastevmError):
    """Tracing failed because of an unknown tracer or option, a limit, or an invalid transaction."""


class StepOptions(Struct, frozen=True, kw_only=True):
    """The optional members of a step in struct logs, besides pc, op, gas, cost and depth.

    ``limit``: maximum size of the rendered steps in bytes. Later steps are omitted. 0: no limit.
    """

    memory: bool = False
    stack: bool = True
    storage: bool = True
    return_data: bool = False
    limit: int = 0


class TraceRequest(Struct, frozen=True, kw_only=True):
    """The tracer (None: struct logs), its configuration, and a time limit.

    ``make(budget, spool)`` creates the tracer, for callers that need Python values. ``budget`` is
    the number of bytes that the tracer may store, ``spool`` the file for long text.
    """

    tracer: str | None = None
    make: Callable[..., Any] | None = None
    config: Mapping[str, Any] | None = None
    steps: StepOptions = StepOptions()
    timeout: float = DEFAULT_TIMEOUT


def seconds_of(text: str) -> float:
    """Returns the seconds of a Go duration such as ``10s`` or ``1m30s``, at most ``MAX_TIMEOUT``.

    Raises TracingError, with Go's message, for any other text.
    """
    found = re.fullmatch(_DURATION, text)
    if not found:
        raise TracingError(f'time: invalid duration "{text[:64]}"')
    total = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, found[2]))
    return 0.0 if found[1] == "-" else min(total, MAX_TIMEOUT)


def is_program(tracer: str) -> bool:
    """Returns whether a tracer's name is a JavaScript program."""
    return any(mark in tracer for mark in "{(;=")
