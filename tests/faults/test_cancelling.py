"""Tests that another thread, a cancelled task, a deadline or a signal can stop a run."""

import asyncio
import multiprocessing
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from fastevm import EVM, Layer
from fastevm.simulate import Deadline, SimulationError, simulate_async, simulate_many

LOOPS, ENDS = b"\x01" * 20, b"\x02" * 20
FOREVER = bytes.fromhex("5b5f56")  # JUMPDEST PUSH0 JUMP
STATE = Layer.of({LOOPS: {"code": FOREVER}})
MUCH_GAS = 2**50  # gas for a loop that takes longer than any test
LIMIT = 60.0  # seconds until a test fails


def machine() -> EVM:
    return EVM(state=STATE, gas_limit=MUCH_GAS, unchecked=("gas_cap", "balance"))


RUNS = {
    "call": lambda evm: evm.call(LOOPS, gas=MUCH_GAS),
    "traced": lambda evm: evm.call(LOOPS, gas=MUCH_GAS, trace="calls"),
    "listed": lambda evm: evm.call(LOOPS, gas=MUCH_GAS, access_list=[(ENDS, [])]),
    "create": lambda evm: evm.create(FOREVER, gas=MUCH_GAS),
    "transact": lambda evm: evm.transact(LOOPS, gas=MUCH_GAS),
    "deploy": lambda evm: evm.deploy(FOREVER, gas=MUCH_GAS),
}


def cancelled_when_it_runs(evm: EVM, stopped: threading.Event) -> threading.Thread:
    """Starts and returns a thread that repeatedly cancels the run until the run has ended."""

    def cancel() -> None:
        while not stopped.wait(0.01):
            evm.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("on_main_thread", [True, False])
def test_cancel_ends_a_run_without_a_time_limit(kind: str, on_main_thread: bool) -> None:
    evm, stopped = machine(), threading.Event()
    found: list[str] = []

    def run() -> None:
        try:
            RUNS[kind](evm)
        except SimulationError as error:
            found.append(str(error))
        finally:
            stopped.set()

    canceller = cancelled_when_it_runs(evm, stopped)
    if on_main_thread:
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    canceller.join()
    assert found == ["execution aborted"]
    assert evm.state is STATE
    assert evm.call(ENDS).success  # A cancellation does not affect the next run.


def test_cancel_without_a_run_has_no_effect() -> None:
    evm = machine()
    evm.cancel()
    assert evm.call(ENDS).success
    assert evm.call(ENDS, timeout=LIMIT).success


def test_cancel_in_a_hook_ends_the_run_that_called_it() -> None:
    evm = machine()
    code = bytes.fromhex("5f5f5f5f5f73") + ENDS + bytes.fromhex("5af1") + FOREVER
    evm.set_code(LOOPS, code)

    def cancels(data: bytes, gas: int) -> bytes:
        # Nor does it affect another machine of the same thread.
        assert machine().call(b"\x03" * 20).success
        evm.cancel()
        return b""

    evm.precompiles[ENDS] = cancels
    with pytest.raises(SimulationError, match="aborted"):
        evm.call(LOOPS, gas=MUCH_GAS)


@pytest.mark.parametrize("kind", RUNS)
def test_a_deadline_of_the_thread_ends_a_run_without_a_time_limit(kind: str) -> None:
    evm, deadline = machine(), Deadline()
    threading.Timer(0.1, deadline.cancel).start()
    with deadline.active(), pytest.raises(SimulationError, match=r"^execution aborted$"):
        RUNS[kind](evm)
    assert evm.call(ENDS).success


@pytest.mark.parametrize("gas", [30_000_000, MUCH_GAS])
def test_ctrl_c_ends_a_run(gas: int) -> None:
    """A run with little gas may also take long on a busy machine, so signals must stop it too."""
    program = f"""
import signal, threading, os
from fastevm import EVM, Layer
evm = EVM(state=Layer.of({{{LOOPS!r}: {{"code": {FOREVER!r}}}}}))
begun, ended = threading.Event(), threading.Event()
def interrupt():
    begun.wait()
    while not ended.wait(0.01):
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
def runs():
    begun.set()
    while True:
        evm.call({LOOPS!r}, gas={gas})
try:
    runs()
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended.set()
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.stdout == "interrupted\n", done.stderr
    assert done.returncode != -signal.SIGINT


async def test_cancelling_a_task_ends_its_simulation() -> None:
    payload = [{"to": LOOPS, "gas": MUCH_GAS}]
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(
        simulate_async(STATE, payload, gas_cap=MUCH_GAS, gas_limit=MUCH_GAS, timeout=LIMIT * 9)
    )
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # The executor's threads end only when they have nothing to run.
    await asyncio.wait_for(loop.shutdown_default_executor(), LIMIT)


def endless() -> Iterator[list[dict[str, object]]]:
    while True:
        yield [{"to": ENDS}]


@pytest.mark.parametrize("threads", [1, 2])
async def test_cancelling_a_batch_of_endless_payloads_ends_it(threads: int) -> None:
    loop = asyncio.get_running_loop()

    async def all_of() -> None:
        await simulate_many(STATE, endless(), threads=threads)

    task = asyncio.create_task(all_of())
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(loop.shutdown_default_executor(), LIMIT)


async def test_cancelling_a_batch_on_processes_ends_it() -> None:
    loop = asyncio.get_running_loop()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:

        async def all_of() -> None:
            await simulate_many(STATE, endless(), executor=pool)

        task = asyncio.create_task(all_of())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(loop.shutdown_default_executor(), LIMIT)
