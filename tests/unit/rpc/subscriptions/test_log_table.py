"""Tests log selection by address and topic against a comparison of each log with each filter."""

from random import Random

import pytest

from fastevm.core.execution.types import Log
from fastevm.rpc.log_filter import LogFilter
from fastevm.rpc.subscriptions.log_table import LogTable

ADDRESSES = [bytes([number]) * 20 for number in range(4)]
TOPICS = [bytes([number]) * 32 for number in range(4)]


def some(random: Random, values: list[bytes]) -> frozenset[bytes]:
    unknown = bytes([99]) * len(values[0])
    return frozenset(random.sample([*values, unknown], random.randrange(4)))


@pytest.mark.parametrize("seed", range(20))
def test_the_logs_are_those_that_match(seed: int) -> None:
    random = Random(seed)
    logs = [
        Log(random.choice(ADDRESSES), tuple(random.choices(TOPICS, k=random.randrange(5))), b"")
        for _ in range(random.randrange(40))
    ]
    table = LogTable(logs)
    for _ in range(50):
        wanted = LogFilter(
            addresses=some(random, ADDRESSES),
            topics=tuple(some(random, TOPICS) for _ in range(random.randrange(5))),
        )
        expected = [index for index, log in enumerate(logs) if wanted.matches(log)]
        assert table.select(wanted) == expected


def test_a_filter_of_what_does_not_occur_looks_at_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    table = LogTable([Log(ADDRESSES[0], (TOPICS[0], TOPICS[1]), b"")] * 1_000)
    looked: list[Log] = []
    monkeypatch.setattr(LogFilter, "matches", lambda self, log: looked.append(log))
    never = frozenset([bytes([99]) * 32])
    for topics in ((never,), (frozenset(TOPICS[:1]), never), (frozenset(), frozenset(), never)):
        assert table.select(LogFilter(topics=topics)) == []
    assert table.select(LogFilter(addresses=frozenset([bytes(20)[:19] + b"\x09"]))) == []
    assert looked == []
