"""Tests that long struct logs are written to a file, with a limit for all requests."""

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.core.simulation.values import CallRequest
from fastevm.tracing import (
    Spool,
    SpooledText,
    SpoolQuota,
    StepOptions,
    TraceRequest,
    TracingError,
    spool,
    trace_block,
    trace_call,
)

from .support import MAIN, SENDER, view_of

LOOP = bytes.fromhex("5b5f56")  # JUMPDEST PUSH0 JUMP
GAS = 400_000
MEGABYTE = 1 << 20


def steps_of(given: Spool | None, gas: int = GAS, **options: Any) -> Any:
    """Returns the struct logs of a loop."""
    request = TraceRequest(steps=StepOptions(**options))
    call = CallRequest(sender=SENDER, to=MAIN, gas=gas)
    return trace_call(view_of({MAIN: {"code": LOOP}}), call, request, spool=given)["structLogs"]


@pytest.mark.parametrize("options", [{}, {"limit": 3 * MEGABYTE}, {"stack": False}])
def test_a_spooled_trace_is_the_same_text(options: dict[str, Any]) -> None:
    spooled, whole = steps_of(Spool(SpoolQuota(10**9)), **options), bytes(steps_of(None, **options))
    assert isinstance(spooled, SpooledText)
    assert len(whole) > MEGABYTE
    assert spooled.read(0, spooled.size) == whole
    assert spooled.read(10, 20) == whole[10:30]


def test_a_short_trace_needs_no_file() -> None:
    quota = SpoolQuota(0)
    text = bytes(steps_of(Spool(quota), gas=30_000))
    assert json.loads(text)
    assert quota.used == 0


def test_traces_of_one_request_stay_in_memory_only_as_long_as_they_are_short_together() -> None:
    quota = SpoolQuota(10**9)
    given = Spool(quota)
    found = [steps_of(given, gas=45_000) for _ in range(8)]
    in_file = [isinstance(item, SpooledText) for item in found]
    assert in_file[0] is False and in_file[-1] is True
    texts = [
        item.read(0, item.size) if isinstance(item, SpooledText) else bytes(item) for item in found
    ]
    assert texts == [bytes(steps_of(None, gas=45_000))] * 8


def test_the_room_of_all_traces_is_bounded_and_free_again() -> None:
    quota = SpoolQuota(4 * MEGABYTE)
    with pytest.raises(TracingError, match="fill the 4194304 bytes"):
        steps_of(Spool(quota))
    gc.collect()
    assert quota.used == 0
    held = steps_of(Spool(quota), gas=120_000)
    assert quota.used == held.size
    del held
    assert quota.used == 0


def test_a_full_disk_is_an_error_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool.os, "pwrite", full)
    quota = SpoolQuota(10**9)
    with pytest.raises(TracingError, match=r"could not be written to a file: .*No space left"):
        steps_of(Spool(quota))
    gc.collect()
    assert quota.used == 0


def test_files_are_closed_with_their_requests() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    held = [steps_of(Spool(SpoolQuota(10**9))) for _ in range(3)]
    assert count() == before + 3
    held.clear()
    assert count() == before


def test_a_block_without_transactions_has_no_traces() -> None:
    given = Spool(SpoolQuota(0))
    assert trace_block(view_of({}), [], TraceRequest(), spool=given) == []
