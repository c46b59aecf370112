"""Tests that a client which uses much of the event loop waits for other clients."""

import asyncio
import time

import pytest

from fastevm.rpc.transport import turns as module
from fastevm.rpc.transport.turns import BURST, LoopShare, Turns
from tests.max_wait import MAX_WAIT


def use_much(share: LoopShare) -> None:
    """Lets a client use the loop for longer than a burst."""
    share.charge(share.began, share.began + 2 * BURST)
    assert share.is_over


async def test_a_client_over_its_share_waits_and_another_does_not() -> None:
    turns = Turns()
    greedy, other = turns.share_of("greedy"), turns.share_of("other")
    use_much(greedy)
    assert not other.is_over
    done: list[str] = []
    greedy.defer(lambda: done.append("greedy"))
    await other.result(lambda: done.append("other"))
    assert done == ["other"]
    async with asyncio.timeout(MAX_WAIT):
        while greedy.is_over:
            await asyncio.sleep(0)
    assert done == ["other", "greedy"]


async def test_a_client_that_uses_little_is_never_over() -> None:
    share = Turns().share_of("a")
    began = time.perf_counter()
    share.began = began - 100 * BURST  # a long time with little use
    share.charge(began - 2 * BURST, began)
    assert not share.is_over


async def test_clients_that_wait_go_in_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_TIME", MAX_WAIT)
    turns, done = Turns(), []
    shares = {name: turns.share_of(name) for name in ("a", "b")}
    for share in shares.values():
        use_much(share)
    for name, share in shares.items():
        for number in range(3):
            share.defer(lambda entry=(name, number): done.append(entry))  # type: ignore[misc]
    async with asyncio.timeout(MAX_WAIT):
        while len(done) < 6:
            await asyncio.sleep(0)
    assert done == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]


async def test_the_loop_serves_others_between_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_TIME", 0.0)
    turns = Turns()
    share = turns.share_of("greedy")
    use_much(share)
    done: list[int] = []
    for number in range(10):
        share.defer(lambda entry=number: done.append(entry))  # type: ignore[misc]
    served = 0
    async with asyncio.timeout(MAX_WAIT):
        while len(done) < 10:
            await asyncio.sleep(0)
            served += 1
    assert done == list(range(10))
    assert served >= 5


async def test_work_that_fails_ends_with_its_error_and_the_next_is_done() -> None:
    turns = Turns()
    share = turns.share_of("a")
    use_much(share)

    def fail() -> None:
        raise ValueError("no")

    async with asyncio.timeout(MAX_WAIT):
        results = await asyncio.gather(
            share.result(fail), share.result(lambda: 7), return_exceptions=True
        )
    assert isinstance(results[0], ValueError)
    assert results[1] == 7


async def test_shares_end_with_the_connections_that_hold_them() -> None:
    turns = Turns()
    share = turns.share_of("a")
    assert turns.share_of("a") is share
    del share
    assert len(turns._shares) == 0
    assert isinstance(turns.share_of("a"), LoopShare)
