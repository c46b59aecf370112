"""Tests that time limits work, and that nothing blocks, in a child process after os.fork."""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

from fastevm import EVM, Layer
from fastevm.core.simulation.deadline import WATCHDOG, Deadline
from fastevm.fork import progress
from fastevm.rpc.methods import accounts
from fastevm.simulate import SimulationError, simulate, simulate_many
from fastevm.simulate.batch import shipping

LOOPS = b"\x01" * 20
STATE = Layer.of({LOOPS: {"code": bytes.fromhex("5b5f56")}})  # JUMPDEST PUSH0 JUMP
MUCH_GAS = 2**50  # gas for a loop that takes longer than any test
SHORT = 0.05  # time limit in seconds
LIMIT = 120  # seconds after which a child counts as hanging

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def text_of_a_stopped_call() -> str:
    try:
        EVM(state=STATE).call(LOOPS, gas=MUCH_GAS, timeout=SHORT)
    except SimulationError as error:
        return str(error)
    return "ended"


def text_of_a_stopped_simulation() -> str:
    calls = [{"to": LOOPS, "gas": MUCH_GAS}]
    try:
        simulate(STATE, calls, gas_cap=MUCH_GAS, timeout=SHORT, gas_limit=MUCH_GAS)
    except SimulationError as error:
        return str(error)
    return "ended"


def text_of_a_stopped_bundle() -> str:
    calls = [{"to": LOOPS, "gas": MUCH_GAS}]
    options = {"gas_cap": MUCH_GAS, "timeout": SHORT, "gas_limit": MUCH_GAS}
    return str([each.error for each in simulate_many(STATE, [calls], threads=1, **options)])


STOPPED = [text_of_a_stopped_call, text_of_a_stopped_simulation, text_of_a_stopped_bundle]


def answer_of_child(work: Callable[[], str]) -> str:
    """Returns the result of ``work`` in a forked child process."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(work()))
    child.start()
    try:
        assert ours.poll(LIMIT), "the child hangs"
        answer: str = ours.recv()
        return answer
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("work", STOPPED)
def test_time_limits_work_after_a_fork(work: Callable[[], str]) -> None:
    expected = work()
    assert "timeout" in expected
    assert answer_of_child(work) == expected


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_time_limits_work_in_a_process_pool(method: str) -> None:
    expected = text_of_a_stopped_call()
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(text_of_a_stopped_call).result(timeout=LIMIT) == expected


def test_a_limit_that_runs_during_the_fork_holds_in_the_child() -> None:
    """A precompile forks the process during a run.

    The child continues the run with the same limit.
    """
    child = f"""
import os
from fastevm import EVM, Layer
from fastevm.simulate import SimulationError

evm = EVM(state=Layer.of({{{LOOPS!r}: {{"code": bytes.fromhex(
    "5f5f5f5f5f73" + "02" * 20 + "5af1" "5b601c56")}}}}))  # calls the precompile, then loops
forked = []

def forks(data, gas):
    forked.append(os.fork())
    return b""

evm.precompiles[b"\\2" * 20] = forks
try:
    evm.call({LOOPS!r}, gas={MUCH_GAS}, timeout=0.5)
except SimulationError as error:
    if forked != [0]:
        assert os.waitpid(forked[0], 0)[1] == 0
        print(error)
    os._exit(0) if forked == [0] else None
"""
    done = subprocess.run(
        [sys.executable, "-c", child], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.stdout == "execution aborted (timeout = 0.5s)\n", done.stderr


def test_locks_that_other_threads_hold_are_free_in_the_child() -> None:
    locks = [(shipping, "_lock"), (progress, "_terminal"), (accounts, "_counting")]
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        for module, name in locks:
            getattr(module, name).acquire()
        held.set()
        done.wait()
        for module, name in locks:
            getattr(module, name).release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        free = answer_of_child(
            lambda: str([getattr(module, name).acquire(timeout=1) for module, name in locks])
        )
    finally:
        done.set()
        thread.join()
    assert free == "[True, True, True]"


def test_a_child_forgets_the_deadlines_of_other_threads() -> None:
    calls: list[int] = []

    class Counted(Deadline):
        def expire(self) -> None:
            calls.append(os.getpid())

    deadline = Counted()
    thread = threading.Thread(target=WATCHDOG.begin, args=(deadline, 0.0))
    thread.start()
    thread.join()

    def work() -> str:
        # returns after the child's watchdog thread has checked all deadlines
        text_of_a_stopped_call()
        return str(os.getpid() in calls)

    try:
        assert answer_of_child(work) == "False"
    finally:
        WATCHDOG.end(deadline)


def test_a_child_cannot_read_the_batch_of_its_parent() -> None:
    payloads = [[{"to": b"\x09" * 20}]] * 64
    batch = simulate_many(STATE, payloads, threads=2, chunk_size=1)
    next(batch)

    def work() -> str:
        try:
            return str(len(list(batch)))
        except RuntimeError as error:
            return str(error)

    assert answer_of_child(work) == "only the process that began a batch can read its results"
    assert len(list(batch)) == len(payloads) - 1
