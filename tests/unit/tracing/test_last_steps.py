"""Tests the observer of the last steps of each frame."""

from typing import Any

from fastevm import EVM
from fastevm.core.simulation.values import CallRequest
from fastevm.simulate import view_of
from fastevm.tracing import LastSteps, LastStepsTracer, TraceRequest, trace_call

OUTER, INNER, SENDER = (bytes([byte]) * 20 for byte in (0xC1, 0xC2, 0xAA))
PUSH1, SUB, JUMPI, CALL, REVERT = 0x60, 0x03, 0x57, 0xF1, 0xFD
KEPT = 128
LARGE = 2**64 - 1


def last_steps(outer: str, inner: str = "00") -> LastSteps:
    evm = EVM()
    evm.set_code(OUTER, bytes.fromhex(outer))
    evm.set_code(INNER, bytes.fromhex(inner))
    request = CallRequest(sender=SENDER, to=OUTER, gas=1_000_000)
    found: Any = trace_call(view_of(evm), request, TraceRequest(make=LastStepsTracer))
    assert isinstance(found, LastSteps)
    return found


CALL_INNER = "5f5f5f5f5f73" + INNER.hex() + "5af1"  # the CALL is at pc 27


def test_steps_have_opcodes_and_the_top_words() -> None:
    found = last_steps("6002600303" + "7f" + "ff" * 32 + "5f5ffd")
    assert [(step.pc, step.op) for step in found.steps(1)] == [
        (0, PUSH1), (2, PUSH1), (4, SUB), (5, 0x7F), (38, 0x5F), (39, 0x5F), (40, REVERT),
    ]  # fmt: skip
    assert [(step.top, step.second) for step in found.steps(1)][:5] == [
        (LARGE, LARGE), (2, LARGE), (3, 2), (1, LARGE), (LARGE, 1),
    ]  # fmt: skip
    assert (found.called_at(1), found.steps(2), found.called_at(2)) == (None, [], None)
    assert found.steps(0) == found.steps(5_000) == []
    assert found.called_at(5_000) is None


def test_only_the_last_steps_of_a_long_frame_are_kept() -> None:
    loop = "610fff" + "5b" + "6001900380600357" + "5f5ffd"  # counts down from 4095
    steps = last_steps(loop).steps(1)
    assert len(steps) == KEPT
    assert [step.op for step in steps[-4:]] == [JUMPI, 0x5F, 0x5F, REVERT]
    assert steps[-4].second == 0


def test_each_depth_keeps_its_newest_frame() -> None:
    found = last_steps(CALL_INNER + CALL_INNER + "5f5ffd", "3d5ffd")
    assert [step.pc for step in found.steps(2)] == [0, 1, 2]
    assert found.called_at(1) == 55  # the second CALL
    assert found.steps(1)[-1].op == REVERT
    assert found.called_at(2) is None
