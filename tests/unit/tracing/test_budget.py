"""Tests the byte limit of all traces of a request."""

from functools import partial

import pytest

from fastevm.core.simulation.values import CallRequest
from fastevm.tracing import (
    TYPES,
    ReplayTracer,
    TracedCall,
    TraceRequest,
    TracingError,
    blocks,
    trace_calls,
)
from tests.unit.core.interpreter.programs import asm

from .support import MAIN, SENDER, view_of


@pytest.mark.parametrize("types", [["trace"], ["vmTrace"], TYPES])
@pytest.mark.parametrize("limit", [500, 2_000, 5_000])
def test_many_calls_end_at_the_limit(
    monkeypatch: pytest.MonkeyPatch, types: list[str], limit: int
) -> None:
    monkeypatch.setattr(blocks, "CALLS_BYTES_LIMIT", limit)
    view = view_of({MAIN: {"code": asm(1, 2, "SSTORE") * 20}})
    request = TraceRequest(make=partial(ReplayTracer, frozenset(types)))
    call = TracedCall(CallRequest(sender=SENDER, to=MAIN, gas=300_000), request)
    with pytest.raises(TracingError, match=f"trace exceeds {limit} bytes"):
        trace_calls(view, [call] * 500)
