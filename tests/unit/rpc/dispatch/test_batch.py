"""Tests batches: order, worker jobs, limits, and calls that take too long on the event loop."""

import asyncio
import json
import threading
import time
from functools import partial
from typing import Any

import pytest

from fastevm import Layer
from fastevm.rpc.dispatch.dispatcher import METHODS
from fastevm.rpc.dispatch.envelope import EAGER_SIZE
from fastevm.rpc.dispatch.registry import Method, RunOn
from fastevm.rpc.dispatch.workers import LOOP_OBJECTS, Workers, require_worker_above_limit
from fastevm.rpc.errors import RpcError
from fastevm.simulate import LoopBudget, SimulationError, simulate
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.conftest import Caller, MakeCaller

C = b"\xc0" * 20
LOOPING = Layer.of({C: {"code": bytes.fromhex("5b5f56")}})


def batch(*names: str) -> str:
    return json.dumps([{"jsonrpc": "2.0", "id": i, "method": name} for i, name in enumerate(names)])


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Provides a function that registers a handler for the duration of the test."""

    def register(name: str, place: RunOn, work: Any) -> None:
        monkeypatch.setitem(METHODS, name, Method(name, work, (), place))

    return register


@pytest.fixture
def places(register: Any) -> list[tuple[str, bool]]:
    """Registers a method for each `RunOn`.

    Provides a list that gets (method, whether it ran on the event loop's thread) for each call.
    """
    seen: list[tuple[str, bool]] = []
    here = threading.get_ident()

    def note(name: str) -> str:
        seen.append((name, threading.get_ident() == here))
        return name

    async def wait(context: Any) -> str:
        await asyncio.sleep(0.01)
        return note("waits")

    for place in (RunOn.LOOP, RunOn.WORKER, RunOn.LIGHT, RunOn.SMALL):
        name = f"test_{place.name.lower()}"
        register(name, place, lambda context, name=name: note(name))
    register("test_waits", RunOn.TASK, wait)
    return seen


async def test_calls_of_all_places_are_made_in_their_order(
    caller: Caller, places: list[tuple[str, bool]]
) -> None:
    names = ["test_loop", "test_worker", "test_light", "test_waits", "test_small", "test_worker",
             "test_loop", "eth_nothing", "test_waits", "test_light"]  # fmt: skip
    answers = await caller.send(batch(*names))
    assert [answer["id"] for answer in answers] == list(range(len(names)))
    assert answers[7]["error"]["code"] == -32601
    made = [name.replace("waits", "test_waits") for name, _ in places]
    assert made == [name for name in names if name != "eth_nothing"]


async def test_calls_for_workers_that_follow_each_other_are_one_job(
    caller: Caller, places: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = []
    run = caller.workers.run

    def counted(*args: Any, **options: Any) -> Any:
        jobs.append(args)
        return run(*args, **options)

    monkeypatch.setattr(caller.workers, "run", counted)
    assert len(await caller.send(batch(*["test_worker"] * 100))) == 100
    assert len(jobs) == 1
    assert not any(on_loop for _, on_loop in places)


async def test_one_that_fails_in_a_worker_does_not_stop_the_others(
    caller: Caller, register: Any
) -> None:
    def refuse(context: Any) -> None:
        raise RpcError("invalid_params", "no")

    register("test_worker", RunOn.WORKER, lambda context: 1)
    register("test_refuse", RunOn.WORKER, refuse)
    register("test_crash", RunOn.WORKER, lambda context: 1 // 0)
    answers = await caller.send(batch("test_worker", "test_refuse", "test_crash", "test_worker"))
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes == [None, -32602, -32603, None]


async def test_a_call_that_takes_too_long_is_the_only_one_to_time_out(
    make_caller: MakeCaller, register: Any
) -> None:
    hold = threading.Event()
    caller = make_caller(request_time=1.0)
    register("test_worker", RunOn.WORKER, lambda context: 1)
    register("test_stuck", RunOn.WORKER, lambda context: hold.wait(MAX_WAIT))
    answers = await caller.send(batch("test_worker", "test_stuck", "test_worker"))
    hold.set()
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32002, None]


async def test_the_size_of_answers_is_bounded_wherever_they_are_made(
    make_caller: MakeCaller, register: Any
) -> None:
    caller = make_caller(batch_response_size=1_000)
    for place in (RunOn.WORKER, RunOn.LOOP):
        register("test_large", place, lambda context: "x" * 600)
        answers = await caller.send(batch(*["test_large"] * 5))
        codes = [answer.get("error", {}).get("code") for answer in answers]
        assert codes == [None, None, -32003, -32003, -32003]


async def test_the_size_of_all_batches_under_way_is_bounded(
    make_caller: MakeCaller, register: Any
) -> None:
    register("test_text", RunOn.LOOP, lambda context: "x" * 1_000)
    waits = asyncio.Event()

    async def wait(context: Any) -> str:
        await waits.wait()
        return "done"

    register("test_waits", RunOn.TASK, wait)
    caller = make_caller(traffic_size=8_000)
    traffic = caller.context.traffic
    first = asyncio.create_task(caller.send(batch(*["test_text"] * 4, "test_waits")))
    async with asyncio.timeout(MAX_WAIT):
        while traffic.used < 4_000:
            await asyncio.sleep(0.01)
    assert 4_000 < traffic.used < 4_500
    second = await caller.send(batch(*["test_text"] * 4))
    assert [item["error"]["code"] for item in second] == [-32005] * 4
    third = asyncio.create_task(caller.send(batch("test_text", "test_waits")))
    await asyncio.sleep(0.01)
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    waits.set()
    assert [item["result"] for item in await first] == ["x" * 1_000] * 4 + ["done"]
    assert traffic.used == 0


async def test_large_answers_are_made_in_a_worker(caller: Caller, register: Any) -> None:
    threads = []

    def made(context: Any) -> str:
        threads.append(threading.get_ident())
        require_worker_above_limit(LOOP_OBJECTS + 1)
        return "large"

    register("test_large", RunOn.SMALL, made)
    assert await caller.result("test_large") == "large"
    (answer,) = await caller.send(batch("test_large"))
    assert answer["result"] == "large"
    assert [thread == threading.get_ident() for thread in threads] == [True, False] * 2


async def test_a_call_that_lasts_leaves_the_loop_and_then_begins_in_a_worker(
    caller: Caller, register: Any
) -> None:
    threads = []

    def spin(context: Any) -> str:
        threads.append(threading.get_ident() == here)
        try:
            simulate(LOOPING, [{"to": C}], gas_cap=0, gas_limit=2**62, timeout=1.0)
        except SimulationError as error:
            return error.reason
        return "ended"

    here = threading.get_ident()
    register("test_spin", RunOn.LIGHT, spin)
    started = time.thread_time()
    answer = caller.dispatcher.respond(batch("test_spin").encode())
    assert time.thread_time() - started < 0.5  # the loop is free long before the full second
    again = caller.dispatcher.respond(batch("test_spin").encode())
    assert threads == [True]  # the method is not tried on the loop for a while
    for later in (answer, again):
        assert not isinstance(later, bytes)
        assert json.loads(await later)[0]["result"] == "timeout"
    # in the workers, each call first runs as a short job, is stopped, and runs again as a long job
    assert threads == [True, False, False, False, False]


async def test_what_is_too_long_to_read_is_not_tried_on_the_loop(
    caller: Caller, places: list[tuple[str, bool]]
) -> None:
    await caller.send(batch("test_light") + " " * 5_000)
    await caller.send(batch("test_light"))
    assert places == [("test_light", False), ("test_light", True)]


async def test_params_that_are_too_long_for_the_loop_are_read_in_a_worker(
    caller: Caller, places: list[tuple[str, bool]], register: Any
) -> None:
    register("test_params", RunOn.LOOP, lambda context: threading.current_thread().name)
    large = '{"jsonrpc":"2.0","id":1,"method":"test_params","params":[%s]}' % (" " * EAGER_SIZE)
    async with asyncio.timeout(MAX_WAIT):
        answers = await caller.send(f"[{large},{batch('test_light')[1:-1]},{large}]")
    assert [answer["result"][:11] for answer in answers] == [
        "fastevm-rpc",
        "test_light",
        "fastevm-rpc",
    ]


def test_budget_ends_for_one_call_only() -> None:
    budget = LoopBudget()
    try:
        for _ in range(3):
            with pytest.raises(SimulationError):
                budget.run(partial(simulate, LOOPING, [{"to": C}], gas_cap=0, gas_limit=2**62))
            assert budget.is_spent
            assert budget.run(lambda: 5) == 5
            assert not budget.is_spent
    finally:
        budget.close()


def test_workers_that_are_closed_end_the_watcher_of_the_loop() -> None:
    workers = Workers(threads=2, queue_limit=1)
    others = set(threading.enumerate())
    workers.loop_budget.run(lambda: None)
    (watcher,) = set(threading.enumerate()) - others
    assert watcher.name == "fastevm-loop-budget"
    workers.close()
    watcher.join(MAX_WAIT)
    assert not watcher.is_alive()
