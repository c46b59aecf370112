"""Tests that filters on packed logs select the same logs as a comparison log by log."""

import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.bench.node.launch import wait_for
from fastevm.chain.logs import BlockLogs, LogQuery
from fastevm.core.execution.types import Log
from tests.max_wait import MAX_WAIT

from .test_index import receipt

ADDRESSES = [bytes([n]) * 20 for n in range(6)]
# in real logs, topics often contain the address of an emitter
TOPICS = [bytes(12) + address for address in ADDRESSES[:3]] + [b"\xff" * 32]
HASH = b"\x33" * 32
SWITCH_SECONDS = 0.0001


def packed(*logs_of_transactions: list[Log], number: int = 5) -> BlockLogs:
    transactions = [
        SimpleNamespace(hash=bytes([index]) * 32) for index in range(len(logs_of_transactions))
    ]
    receipts = [receipt(logs) for logs in logs_of_transactions]
    return BlockLogs(number, 10, HASH, transactions, receipts)


def naive(
    logs: list[Log], addresses: frozenset[bytes], topics: list[frozenset[bytes]]
) -> list[tuple[int, Log]]:
    return [
        (index, log)
        for index, log in enumerate(logs)
        if (not addresses or log.address in addresses)
        and len(log.topics) >= len(topics)
        and all(not any_of or log.topics[at] in any_of for at, any_of in enumerate(topics))
    ]


log_values = st.builds(
    Log,
    st.sampled_from(ADDRESSES),
    st.lists(st.sampled_from(TOPICS), max_size=4).map(tuple),
    st.binary(max_size=70),
)
transactions = st.lists(st.lists(log_values, max_size=40), max_size=6)
choices = st.frozensets(st.sampled_from(TOPICS))


@given(transactions, st.frozensets(st.sampled_from(ADDRESSES)), st.lists(choices, max_size=4))
def test_a_filter_selects_as_if_every_log_were_looked_at(
    logs: list[list[Log]], addresses: frozenset[bytes], topics: list[frozenset[bytes]]
) -> None:
    block = packed(*logs)
    flat = [log for own in logs for log in own]
    assert len(block) == len(flat)
    assert block.select(LogQuery(addresses, topics)) == naive(flat, addresses, topics)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_more_alternatives_than_logs_are_as_good(count: int) -> None:
    logs = [Log(n.to_bytes(20, "big"), (), b"") for n in range(count)]
    wanted = [n.to_bytes(20, "big") for n in range(0, 1000, 3)]
    found = packed(logs).select(LogQuery(wanted))
    assert [index for index, _ in found] == list(range(0, count, 3))
    assert packed(logs).select(LogQuery()) == list(enumerate(logs))


def test_a_value_counts_only_in_its_position() -> None:
    word = TOPICS[0]
    logs = [Log(ADDRESSES[0], (TOPICS[3], word), b""), Log(ADDRESSES[0], (word,), b"")]
    assert [at for at, _ in packed(logs).select(LogQuery((), [[word]]))] == [1]
    assert [at for at, _ in packed(logs).select(LogQuery((), [[], [word]]))] == [0]


def test_a_block_without_logs_takes_little_room() -> None:
    assert packed([], []).size < 200
    assert packed().select(LogQuery()) == []


def test_a_log_takes_about_two_hundred_bytes() -> None:
    """Address, three topics and a word of data are 148 bytes.

    The index adds 8 bytes for the address and for each topic.
    """
    logs = [
        Log(ADDRESSES[0], (TOPICS[3], n.to_bytes(32, "big"), bytes(32)), bytes(32))
        for n in range(1_000)
    ]
    assert packed(logs).size / len(logs) < 148 + 16 + 4 * 8 + 16


@pytest.mark.parametrize(
    "log",
    [
        Log(b"\x01" * 19, (), b""),
        Log(b"\x01" * 20, (b"\x01" * 33,), b""),
        Log(b"\x01" * 20, (b"\x01" * 32,) * 5, b""),
    ],
)
def test_a_log_of_another_shape_is_refused(log: Log) -> None:
    transaction = SimpleNamespace(hash=HASH)
    outcome = SimpleNamespace(logs=(log,))
    with pytest.raises(ValueError):
        BlockLogs(1, 1, HASH, [transaction], [outcome])  # type: ignore[list-item]
    with pytest.raises(ValueError):
        BlockLogs(1, 1, HASH[1:], [], [])


def test_a_filter_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError):
        LogQuery([b"\x01" * 21])
    with pytest.raises(ValueError):
        LogQuery([], [[b"\x01" * 31]])
    with pytest.raises(ValueError):
        LogQuery([], [[]] * 5)


def turns_beside(call: Callable[[], object]) -> int:
    """Runs ``call`` in another thread. Returns how often this thread waited for the GIL."""
    done = threading.Event()

    def work() -> None:
        call()
        done.set()

    worker, turns = threading.Thread(target=work), 0
    worker.start()
    last = time.perf_counter()
    while not done.is_set():
        now = time.perf_counter()
        turns += now - last > SWITCH_SECONDS / 5
        last = now
    worker.join()
    return turns


def test_packing_many_logs_lets_other_threads_run() -> None:
    receipts = [receipt([Log(ADDRESSES[0], (TOPICS[0],), bytes(32))] * 100_000)]
    transactions = [SimpleNamespace(hash=bytes(32))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        # This thread waits about 8 times if packing never releases the GIL, and 70 to 90 times if
        # packing releases it regularly. On a busy machine it waits less often.
        wait_for(
            lambda: turns_beside(lambda: BlockLogs(5, 10, HASH, transactions, receipts)) > 16,
            MAX_WAIT, "no other thread runs",
        )  # fmt: skip
    finally:
        sys.setswitchinterval(interval)
