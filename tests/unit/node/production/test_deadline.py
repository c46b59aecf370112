"""Tests that the deadline timer calls one action at one deadline and then ends its thread."""

import threading
import time
from collections.abc import Callable

import pytest

from fastevm.node.production import deadline
from fastevm.node.production.deadline import DeadlineTimer
from tests.max_wait import MAX_WAIT


def soon(holds: Callable[[], bool]) -> bool:
    """Returns whether the condition becomes true in time."""
    until = time.monotonic() + MAX_WAIT
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


def test_the_action_is_called_once_at_its_deadline() -> None:
    timer, called = DeadlineTimer(), list[float]()
    at = time.monotonic() + 0.05
    timer.arm(at, lambda: called.append(time.monotonic()))
    assert soon(lambda: bool(called))
    time.sleep(0.02)
    assert len(called) == 1
    assert called[0] >= at


def test_an_action_that_was_cancelled_or_replaced_is_not_called() -> None:
    timer, called = DeadlineTimer(), list[str]()
    in_time = False
    while not in_time:  # repeats if this thread was suspended for too long
        called.clear()
        at = time.monotonic() + 0.05
        timer.arm(at, lambda: called.append("cancelled"))
        timer.disarm()
        timer.arm(at, lambda: called.append("replaced"))
        timer.arm(at + 0.01, lambda: called.append("last"))
        in_time = time.monotonic() < at
    assert soon(lambda: bool(called))
    time.sleep(0.05)
    assert called == ["last"]


def test_a_thread_without_deadlines_ends_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "IDLE_SECONDS", 0.02)
    timer, called = DeadlineTimer(), list[int]()
    for round in range(3):
        timer.arm(time.monotonic(), lambda: called.append(threading.get_ident()))
        assert soon(lambda: len(called) == round + 1)  # noqa: B023 (called at once)
        thread = called[-1]
        assert soon(lambda: all(item.ident != thread for item in threading.enumerate()))  # noqa: B023
