"""Tests worker threads: short and long jobs, bounded queue, and jobs of disconnected clients."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from fastevm import Layer
from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.workers import Workers
from fastevm.rpc.errors import RpcError
from fastevm.simulate import SimulationError, simulate
from tests.max_wait import MAX_WAIT

C = b"\xc0" * 20
LOOPING = Layer.of({C: {"code": bytes.fromhex("5b5f56")}})


@pytest.fixture
def workers() -> Any:
    made = Workers(threads=2, queue_limit=8)
    yield made
    made.close()


class Endless:
    """A simulation that only its caller stops. Its deadline is longer than a test waits."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        simulate(LOOPING, [{"to": C}], gas_cap=0, gas_limit=2**62, timeout=10 * MAX_WAIT)

    async def has_begun(self) -> None:
        while not self.begun.is_set():
            await asyncio.sleep(0.01)


async def test_long_jobs_leave_a_thread_for_short_ones(workers: Workers) -> None:
    hold = threading.Event()
    jobs = [asyncio.create_task(workers.run(hold.wait, 5, long=True)) for _ in range(5)]
    await asyncio.sleep(0.05)
    assert await workers.run(lambda: 7) == 7
    assert not any(job.done() for job in jobs)
    hold.set()
    assert await asyncio.gather(*jobs) == [True] * 5


async def test_long_jobs_of_one_client_leave_a_thread_for_another(workers: Workers) -> None:
    hold = threading.Event()
    CLIENT.set("greedy")
    jobs = [asyncio.create_task(workers.run(hold.wait, MAX_WAIT, long=True)) for _ in range(7)]
    await asyncio.sleep(0)
    CLIENT.set("other")
    async with asyncio.timeout(MAX_WAIT):
        assert await workers.run(lambda: 7, long=True) == 7
    assert not any(job.done() for job in jobs)
    hold.set()
    assert await asyncio.gather(*jobs) == [True] * 7


async def test_short_jobs_of_one_client_leave_a_thread_for_another(workers: Workers) -> None:
    hold = threading.Event()
    CLIENT.set("greedy")
    jobs = [asyncio.create_task(workers.run(hold.wait, MAX_WAIT)) for _ in range(7)]
    await asyncio.sleep(0)
    CLIENT.set("other")
    async with asyncio.timeout(MAX_WAIT):
        assert await workers.run(lambda: 7) == 7
    assert not any(job.done() for job in jobs)
    hold.set()
    assert await asyncio.gather(*jobs) == [True] * 7


async def test_short_jobs_of_two_clients_take_turns() -> None:
    workers = Workers(threads=2, queue_limit=32)
    hold, order, blocking = threading.Event(), list[str](), []
    for name in ("third", "greedy"):  # these jobs occupy all threads
        CLIENT.set(name)
        blocking += [asyncio.create_task(workers.run(hold.wait, MAX_WAIT)) for _ in range(2)]
        await asyncio.sleep(0)
    while workers.short.running < len(blocking):
        await asyncio.sleep(0.01)
    jobs = [asyncio.create_task(workers.run(order.append, "greedy")) for _ in range(20)]
    await asyncio.sleep(0)
    CLIENT.set("other")
    jobs.append(asyncio.create_task(workers.run(order.append, "other")))
    await asyncio.sleep(0)
    hold.set()
    await asyncio.gather(*blocking, *jobs)
    assert "other" in order[:10]  # only jobs that the threads had already started are first
    workers.close()


async def test_one_client_cannot_fill_the_queue() -> None:
    workers = Workers(threads=2, queue_limit=8, client_limit=3)
    hold = threading.Event()
    try:
        CLIENT.set("greedy")
        jobs = [asyncio.create_task(workers.run(hold.wait, MAX_WAIT)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(RpcError) as caught:
            await workers.run(lambda: 1)
        assert caught.value.reason == "overloaded_by_client"
        CLIENT.set("other")
        other = asyncio.create_task(workers.run(lambda: 2, long=True))
        assert await other == 2
        hold.set()
        await asyncio.gather(*jobs)
        CLIENT.set("greedy")
        assert await workers.run(lambda: 3) == 3
    finally:
        workers.close()


async def test_a_limited_job_is_stopped_and_made_again_as_a_long_one(workers: Workers) -> None:
    names: list[str] = []

    def work() -> int:
        names.append(threading.current_thread().name)
        if len(names) == 1:
            with contextlib.suppress(SimulationError):
                simulate(LOOPING, [{"to": C}], gas_cap=0, gas_limit=2**62, timeout=MAX_WAIT)
        return len(names)

    async with asyncio.timeout(MAX_WAIT):
        assert await workers.run(work, limited=True) == 2
    assert ["short" in name for name in names] == [True, False]


async def test_a_job_beyond_the_limit_is_refused(workers: Workers) -> None:
    hold = threading.Event()
    jobs = [asyncio.create_task(workers.run(hold.wait, 5, long=True)) for _ in range(8)]
    await asyncio.sleep(0)
    with pytest.raises(RpcError) as caught:
        await workers.run(lambda: 1)
    assert caught.value.reason == "overloaded"
    hold.set()
    await asyncio.gather(*jobs)
    assert workers.in_flight == 0


async def test_a_waiter_that_leaves_stops_its_simulation(workers: Workers) -> None:
    endless = Endless()
    job = asyncio.create_task(workers.run(endless, long=True))
    await endless.has_begun()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    async with asyncio.timeout(MAX_WAIT):  # the only thread for long jobs becomes free again
        assert await workers.run(lambda: 3, long=True) == 3


async def test_a_job_that_waits_for_nobody_is_never_run(workers: Workers) -> None:
    hold, ran = threading.Event(), threading.Event()
    first = asyncio.create_task(workers.run(hold.wait, 5, long=True))
    second = asyncio.create_task(workers.run(ran.set, long=True))
    await asyncio.sleep(0.05)
    second.cancel()
    await asyncio.sleep(0)
    hold.set()
    await first
    await workers.run(lambda: None, long=True)
    assert not ran.is_set()


async def test_an_error_reaches_the_waiter(workers: Workers) -> None:
    def fail() -> None:
        raise SimulationError("override", "no")

    with pytest.raises(SimulationError, match="no"):
        await workers.run(fail)
    assert workers.in_flight == 0


def test_closing_stops_what_runs() -> None:
    endless = Endless()

    async def main() -> None:
        workers = Workers(threads=2, queue_limit=8)
        job = asyncio.create_task(workers.run(endless, long=True))
        await endless.has_begun()
        workers.close()
        async with asyncio.timeout(MAX_WAIT):
            with pytest.raises(SimulationError):
                await job

    asyncio.run(main())
