"""Tests that the JSON text of a log has exactly the expected members."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.chain.logs import BlockLogs, LogQuery
from fastevm.core.execution.types import Log
from fastevm.rpc_types.logs import LogWriter
from fastevm.rpc_types.receipts import ReceiptWriter
from tests.unit.chain.logs.test_block_logs import ADDRESSES, HASH, TOPICS, packed, transactions
from tests.unit.chain.logs.test_index import receipt

EVERYTHING = LogQuery()
PLENTY = 10**9


def writer(query: LogQuery = EVERYTHING, max_count: int = PLENTY, max_size: int = PLENTY) -> Any:
    return LogWriter(query, max_count=max_count, max_size=max_size)


def expected(logs: list[list[Log]], number: int, timestamp: int) -> list[dict[str, Any]]:
    """Returns the expected members of all logs."""
    places = [(log, index) for index, own in enumerate(logs) for log in own]
    return [
        {
            "address": "0x" + log.address.hex(),
            "topics": ["0x" + topic.hex() for topic in log.topics],
            "data": "0x" + log.data.hex(),
            "blockNumber": hex(number),
            "transactionHash": "0x" + f"{index:02x}" * 32,
            "transactionIndex": hex(index),
            "blockHash": "0x" + HASH.hex(),
            "blockTimestamp": hex(timestamp),
            "logIndex": hex(position),
            "removed": False,
        }
        for position, (log, index) in enumerate(places)
    ]


def one_by_one(logs: list[list[Log]], number: int, timestamp: int) -> list[dict[str, Any]]:
    """Returns the members of all logs, each written by a separate call to the receipt writer."""
    writer = ReceiptWriter(HASH, number, timestamp)
    places = [(log, index) for index, own in enumerate(logs) for log in own]
    return [
        json.loads(writer.log(log, bytes([index]) * 32, index, position))
        for position, (log, index) in enumerate(places)
    ]


@given(transactions, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_members_are_those_of_a_log(logs: list[list[Log]], number: int, timestamp: int) -> None:
    hashes = [SimpleNamespace(hash=bytes([index]) * 32) for index in range(len(logs))]
    block = BlockLogs(number, timestamp, HASH, hashes, [receipt(own) for own in logs])
    text = writer()
    assert text.add([block]) == 1
    wanted = expected(logs, number, timestamp)
    assert one_by_one(logs, number, timestamp) == wanted
    assert text.count == len(wanted)
    written = text.take()
    assert json.loads(written) == wanted
    assert len(written) == len(json.dumps(wanted, separators=(",", ":")))


def test_no_logs_are_an_empty_array() -> None:
    assert writer().take() == b"[]"
    text = writer()
    text.add([packed([]), packed()])
    assert text.take() == b"[]"


def test_blocks_follow_each_other() -> None:
    text = writer(LogQuery([ADDRESSES[1]]))
    blocks = [
        packed([Log(ADDRESSES[n % 2], (), bytes([n, at])) for at in range(3)], number=n)
        for n in range(10)
    ]
    assert text.add(blocks[:5]) == 5
    assert text.add(blocks[5:]) == 5
    logs = json.loads(text.take())
    assert [(log["blockNumber"], log["logIndex"], log["data"]) for log in logs] == [
        (hex(n), hex(at), f"0x{n:02x}{at:02x}") for n in range(1, 10, 2) for at in range(3)
    ]


def test_removed_logs_come_backwards() -> None:
    logs = [[Log(ADDRESSES[n % 2], (TOPICS[0],), bytes([n])) for n in range(70)]]
    text = writer(LogQuery([ADDRESSES[0]]))
    text.add_removed(packed(*logs))
    wanted = [{**log, "removed": True} for log in expected(logs, 5, 10)[::2]]
    assert json.loads(text.take()) == wanted[::-1]


@pytest.mark.parametrize("limits", [{"max_count": 4}, {"max_size": 2_000}])
def test_it_stops_after_the_block_that_is_too_much(limits: dict[str, int]) -> None:
    blocks = [packed([Log(ADDRESSES[0], (), b"")] * 3, number=n) for n in range(5)]
    text = writer(**limits)
    assert text.add(blocks) == 2
    assert text.is_full and text.count == 6
    assert text.add(blocks, 2) == 3
    assert text.add(blocks, 5) == 5
    assert len(json.loads(text.take())) == 9


def test_much_data_is_written_whole() -> None:
    data = bytes(range(256)) * 4_000
    text = writer()
    text.add([packed([Log(ADDRESSES[0], (), data)] * 3)])
    assert [bytes.fromhex(log["data"][2:]) for log in json.loads(text.take())] == [data] * 3
