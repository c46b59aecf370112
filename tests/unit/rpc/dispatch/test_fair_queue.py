"""Tests that clients get equal processor time, whatever jobs they queue."""

from collections import Counter

import pytest

from fastevm.rpc.dispatch.fair_queue import IDLE_SHARES, FairQueue


def test_the_client_that_used_less_goes_first() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.push("greedy", 0)
    assert queue.pop() == ("greedy", 0)
    queue.done("greedy", 5.0)
    for number in range(3):
        queue.push("greedy", number)
    queue.push("other", 7)
    assert queue.pop() == ("other", 7)


@pytest.mark.parametrize("costs", [(0.02, 0.02), (0.02, 0.001), (0.1, 0.03)])
def test_time_is_shared_in_equal_parts(costs: tuple[float, float]) -> None:
    queue: FairQueue[str] = FairQueue()
    cost = dict(zip("ab", costs, strict=True))
    used: Counter[str] = Counter()
    for client in "ab":
        for _ in range(3000):
            queue.push(client, client)
    while min(used.values(), default=0.0) < 1.0:
        taken = queue.pop()
        assert taken is not None
        used[taken[0]] += cost[taken[0]]  # type: ignore[assignment]
        queue.done(taken[0], cost[taken[0]])
    assert abs(used["a"] - used["b"]) <= 2 * max(costs)


def test_a_client_pays_nothing_for_its_time_alone() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(1000):
        queue.push("a", number)
        queue.pop()
        queue.done("a", 1.0)
    queue.push("b", 0)
    queue.pop()
    queue.done("b", 0.5)
    queue.push("a", 1)
    for number in range(5):
        queue.push("b", number)
    clients = []
    while (taken := queue.pop()) is not None:
        clients.append(taken[0])
        queue.done(taken[0], 0.5)
    assert "a" in clients[:4]


def test_one_client_runs_no_more_than_its_limit() -> None:
    queue: FairQueue[int] = FairQueue(running_limit=2)
    for number in range(5):
        queue.push("a", number)
    assert [queue.pop(), queue.pop(), queue.pop()] == [("a", 0), ("a", 1), None]
    queue.push("b", 9)
    assert queue.pop() == ("b", 9)
    queue.done("a", 0.1)
    assert queue.pop() == ("a", 2)
    assert queue.pop() is None


def test_jobs_of_one_client_keep_their_order_and_clear_drops_them() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(10):
        queue.push("a", number)
    assert [queue.pop() for _ in range(3)] == [("a", number) for number in range(3)]
    assert len(queue) == 7
    queue.clear()
    assert queue.pop() is None
    assert len(queue) == 0


def test_idle_clients_are_forgotten() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(3 * IDLE_SHARES):
        queue.push(str(number), number)
        assert queue.pop() == (str(number), number)
        queue.done(str(number), 0.001)
    assert len(queue._shares) <= IDLE_SHARES
