"""Tests what stops an execution: a time limit, a cancelled deadline, the event loop's budget."""

import threading
import time

import pytest

from fastevm import EVM, Layer
from fastevm.core.simulation.deadline import Deadline
from fastevm.simulate import CallRequest, LoopBudget, SimulationError, StateView, call, view_of
from tests.max_wait import MAX_WAIT

LOOPS, STOPS = b"\x01" * 20, b"\x02" * 20
FOREVER = bytes.fromhex("5b5f56")  # JUMPDEST PUSH0 JUMP
MUCH_GAS = 10**13
LONG = 10 * MAX_WAIT


def view() -> StateView:
    return view_of(Layer.of({LOOPS: {"code": FOREVER}, STOPS: {"code": b"\x00"}}))


def run(to: bytes, timeout: float = LONG) -> bool:
    return call(view(), CallRequest(to=to), gas_cap=MUCH_GAS, timeout=timeout).success


def test_a_time_limit_stops_one_run_and_not_the_next() -> None:
    begun = time.monotonic()
    for _ in range(2):
        with pytest.raises(SimulationError, match=r"timeout = 0\.05s"):
            run(LOOPS, 0.05)
        assert run(STOPS)
    assert time.monotonic() - begun < MAX_WAIT


def test_a_cancelled_deadline_stops_what_runs_and_what_begins_later() -> None:
    deadline = Deadline()
    timer = threading.Timer(0.05, deadline.cancel)
    timer.start()
    begun = time.monotonic()
    with deadline.active():
        for _ in range(2):
            with pytest.raises(SimulationError, match="aborted"):
                run(LOOPS)
    assert time.monotonic() - begun < MAX_WAIT
    assert deadline.is_cancelled
    timer.join()
    assert run(STOPS)


def test_a_time_limit_within_a_deadline_leaves_the_deadline_as_it_was() -> None:
    deadline = Deadline()
    with deadline.active():
        with pytest.raises(SimulationError):
            run(LOOPS, 0.05)
        assert run(STOPS)
    assert not deadline.is_cancelled


def test_a_deadline_of_one_thread_does_not_stop_another() -> None:
    deadline = Deadline()
    deadline.cancel()
    found = []
    with deadline.active():
        other = threading.Thread(target=lambda: found.append(run(STOPS)))
        other.start()
        other.join()
    assert found == [True]


def test_the_loop_budget_stops_a_run_and_not_the_next() -> None:
    budget = LoopBudget()
    try:
        for _ in range(2):
            with pytest.raises(SimulationError):
                budget.run(run, LOOPS)
            assert budget.is_spent
            assert budget.run(run, STOPS)
            assert not budget.is_spent
    finally:
        budget.close()


def test_a_cancelled_deadline_stops_an_evm_with_a_time_limit() -> None:
    machine = EVM(state=Layer.of({LOOPS: {"code": FOREVER}}))
    deadline = Deadline()
    threading.Timer(0.05, deadline.cancel).start()
    begun = time.monotonic()
    with deadline.active(), pytest.raises(SimulationError):
        machine.call(LOOPS, gas=MUCH_GAS, timeout=LONG)
    assert time.monotonic() - begun < MAX_WAIT
    with pytest.raises(SimulationError, match=r"timeout = 0\.05s"):
        machine.call(LOOPS, gas=MUCH_GAS, timeout=0.05)
