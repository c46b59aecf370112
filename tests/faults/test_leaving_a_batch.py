"""Tests that leaving the loop over a batch early neither hangs nor leaves bundles running."""

import asyncio
import gc
import subprocess
import sys
import threading
import time

import pytest

from fastevm import Layer
from fastevm.simulate import simulate_many
from tests.max_wait import MAX_WAIT

A, LOOP = "0x" + "a1" * 20, "0x" + "10" * 20
STATE = {bytes.fromhex(LOOP[2:]): {"code": bytes.fromhex("5b5f56")}}  # JUMPDEST PUSH0 JUMP
GAS_CAP = 2**40  # gas for minutes of looping
ENDLESS = {
    "blockStateCalls": [
        {
            "blockOverrides": {"gasLimit": hex(GAS_CAP)},
            "calls": [{"from": A, "to": LOOP, "gas": hex(GAS_CAP)}],
        }
    ]
}

LEAVES_OFTEN = f"""
from fastevm import Layer
from fastevm.simulate import simulate_many

state = Layer.of({{bytes.fromhex("a1" * 20): {{"balance": 10**18}}}})
call = {{"from": "{A}", "to": "0x" + "b0" * 20, "value": "0x1"}}
bundles = [{{"blockStateCalls": [{{"calls": [call]}}]}}] * 64

def first():
    for result in simulate_many(state, bundles, threads=2):
        if result.success:
            return result

for _ in range(1000):
    first()
print("left")
"""


def test_leaving_a_loop_early_a_thousand_times_does_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES_OFTEN], capture_output=True, text=True, timeout=MAX_WAIT
    )
    assert done.stdout.split() == ["left"], done.stderr


def test_a_batch_is_freed_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        simulations = simulate_many(Layer.of(STATE), [ENDLESS] * 4, threads=1)
        del simulations
        assert not [each for each in gc.get_objects() if type(each).__name__ == "Simulations"]
    finally:
        gc.enable()


def workers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("fastevm-simulate")]


def wait_until_no_worker_runs() -> None:
    end = time.monotonic() + MAX_WAIT
    while workers():
        assert time.monotonic() < end, "a bundle runs on"
        time.sleep(0.01)


def endless_batch() -> "object":
    return simulate_many(
        Layer.of(STATE), [ENDLESS] * 4, threads=2, gas_cap=GAS_CAP, timeout=10 * MAX_WAIT
    )


async def test_cancelling_a_task_stops_its_bundles() -> None:
    async def all_of() -> None:
        await endless_batch()  # type: ignore[misc]

    task = asyncio.create_task(all_of())
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_until_no_worker_runs)


async def test_cancelling_an_async_for_stops_its_bundles() -> None:
    async def each_of() -> None:
        async for _ in endless_batch():  # type: ignore[attr-defined]
            pass

    task = asyncio.create_task(each_of())
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_until_no_worker_runs)
