"""Tests log filters: decoding, blooms, ranges, limits and pre-confirmed logs."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from eth_bloom import BloomFilter
from hypothesis import given
from hypothesis import strategies as st

from fastevm.chain.logs import BlockLogs, LogIndex
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Log, Receipt
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.block_id import PENDING_BLOCK, BlockId
from fastevm.rpc.dispatch.workers import LOOP_OBJECTS
from fastevm.rpc.errors import RpcError
from fastevm.rpc.log_filter import LogFilter, decode_filter
from fastevm.rpc.log_queries import objects_of_logs, query_logs
from fastevm.rpc_types.quantity import DecodeError

from .conftest import Caller, MakeCaller
from .fakes import FakeChain, FakeNode, FakePending, header

A, B = b"\xaa" * 20, b"\xbb" * 20
T1, T2 = b"\x01" * 32, b"\x02" * 32
TRANSACTION = Transaction.build(sender=A, gas_price=1, gas_limit=21_000, to=B)


def bloom_of(logs: tuple[Log, ...]) -> bytes:
    bloom = BloomFilter()
    for entry in logs:
        bloom.add(entry.address)
        for topic in entry.topics:
            bloom.add(topic)
    return int(bloom).to_bytes(256, "big")


def receipt(*logs: Log) -> Receipt:
    return Receipt(
        tx_type=0,
        status=1,
        post_state=None,
        cumulative_gas_used=21_000,
        logs=logs,
        bloom=bloom_of(logs),
        gas_used=21_000,
        effective_gas_price=1,
    )


def node_with_logs(*logs_of_blocks: tuple[Log, ...]) -> FakeNode:
    """Returns a node whose block n has one transaction, with the logs in the n-th tuple."""
    chain = FakeChain([])
    for number, logs in enumerate(logs_of_blocks):
        block = Block(header(number, logs_bloom=bloom_of(logs)), (TRANSACTION,))
        chain.blocks.append(block)
        chain.receipts[block.hash] = (receipt(*logs),)
    return FakeNode(chain)


def pending_with(node: FakeNode, *logs: Log) -> None:
    number = node.chain.head.number + 1
    node.pending_block = FakePending(
        header=header(number, parent_hash=node.chain.head.hash),
        transactions=(TRANSACTION,),
        receipts=(receipt(*logs),),
    )


LOGS = (
    (Log(A, (T1,), b"one"), Log(B, (T1, T2), b"two")),
    (),
    (Log(A, (T2,), b"three"),),
)


@pytest.fixture
def logged(make_caller: MakeCaller) -> Caller:
    return make_caller(node_with_logs(*LOGS))


async def found(caller: Caller, **wanted: Any) -> list[str]:
    """Returns the data of the logs that the filter finds."""
    logs = await caller.result("eth_getLogs", wanted)
    return [bytes.fromhex(entry["data"][2:]).decode() for entry in logs]


async def test_both_ends_default_to_the_latest_block(logged: Caller) -> None:
    assert await found(logged) == ["three"]


async def test_logs_come_by_block_and_index(logged: Caller) -> None:
    logs = await logged.result("eth_getLogs", {"fromBlock": "earliest"})
    places = [(entry["blockNumber"], entry["logIndex"]) for entry in logs]
    assert places == [("0x0", "0x0"), ("0x0", "0x1"), ("0x2", "0x0")]
    assert logs[2] == {
        "address": hex_bytes(A),
        "topics": [hex_bytes(T2)],
        "data": hex_bytes(b"three"),
        "blockNumber": "0x2",
        "transactionHash": hex_bytes(TRANSACTION.hash),
        "transactionIndex": "0x0",
        "blockHash": hex_bytes(logged.node.chain.head.hash),
        "blockTimestamp": "0x14",
        "logIndex": "0x0",
        "removed": False,
    }


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"address": hex_bytes(A)}, ["one", "three"]),
        ({"address": [hex_bytes(B)]}, ["two"]),
        ({"address": [hex_bytes(A), hex_bytes(B)]}, ["one", "two", "three"]),
        ({"address": []}, ["one", "two", "three"]),
        ({"address": None}, ["one", "two", "three"]),
        ({"address": "0x" + "00" * 20}, []),
        ({"topics": [hex_bytes(T1)]}, ["one", "two"]),
        ({"topics": [None, hex_bytes(T2)]}, ["two"]),
        ({"topics": [[], hex_bytes(T2)]}, ["two"]),
        ({"topics": [[hex_bytes(T1), hex_bytes(T2)]]}, ["one", "two", "three"]),
        ({"topics": [[None, hex_bytes(T1)]]}, ["one", "two", "three"]),
        ({"topics": [None, None]}, ["two"]),
        ({"topics": [None, None, None, None]}, []),
        ({"topics": []}, ["one", "two", "three"]),
        ({"topics": None}, ["one", "two", "three"]),
        ({"address": hex_bytes(A), "topics": [hex_bytes(T2)]}, ["three"]),
    ],
)
async def test_addresses_and_topics_select(
    logged: Caller, wanted: dict[str, Any], names: list[str]
) -> None:
    assert await found(logged, fromBlock="0x0", **wanted) == names


async def test_one_block_by_hash(make_caller: MakeCaller) -> None:
    node = node_with_logs(*LOGS)
    block_hash = hex_bytes(node.chain.blocks[0].hash)
    for dialect in ("preconf", "geth"):
        assert await found(make_caller(node, dialect=dialect), blockHash=block_hash) == [
            "one",
            "two",
        ]
    unknown = {"blockHash": hex_bytes(T1)}
    assert await make_caller(node).error("eth_getLogs", unknown) == (-32000, "unknown block")


async def test_logs_of_a_block_that_left_the_chain_are_removed(logged: Caller) -> None:
    node = logged.node
    gone = {"blockHash": hex_bytes(node.chain.head.hash)}
    canonical = await logged.result("eth_getLogs", gone)
    assert [log["removed"] for log in canonical] == [False]
    other = Block(header(2, logs_bloom=bloom_of(LOGS[0])), (TRANSACTION,))
    node.chain.receipts[other.hash] = (receipt(*LOGS[0]),)
    node.chain.move(other, remove=1)
    removed = await logged.result("eth_getLogs", gone)
    assert removed == [{**canonical[0], "removed": True}]
    logs = await logged.result("eth_getLogs", {"blockHash": hex_bytes(other.hash)})
    assert [log["removed"] for log in logs] == [False, False]


async def test_a_range_beside_a_hash_is_ignored_or_refused(make_caller: MakeCaller) -> None:
    node = node_with_logs(*LOGS)
    wanted = {"blockHash": hex_bytes(node.chain.blocks[0].hash), "fromBlock": "0x2"}
    assert await found(make_caller(node), **wanted) == ["one", "two"]
    assert await make_caller(node, dialect="geth").error("eth_getLogs", wanted) == (
        -32602,
        "invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock,"
        " choose one or the other",
    )


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"fromBlock": "0x2", "toBlock": "0x1"}, "invalid block range params"),
        ({"fromBlock": "0x0", "toBlock": "0x3"}, "block range extends beyond current head block"),
        ({"fromBlock": "0x3"}, "invalid block range params"),
        ({"fromBlock": "pending", "toBlock": "0x1"}, "invalid block range params"),
    ],
)
async def test_impossible_ranges_are_refused(
    logged: Caller, wanted: dict[str, Any], message: str
) -> None:
    assert await logged.error("eth_getLogs", wanted) == (-32602, message)


async def test_too_wide_a_range_is_refused_with_one_to_try(make_caller: MakeCaller) -> None:
    caller = make_caller(node_with_logs(*LOGS), log_blocks=2)
    assert await caller.error("eth_getLogs", {"fromBlock": "0x0"}) == (
        -32602,
        "query exceeds max block range 2, retry with the range 0-1",
    )
    assert await found(caller, fromBlock="0x1") == ["three"]


async def test_too_many_logs_are_refused_with_a_range_to_try(make_caller: MakeCaller) -> None:
    caller = make_caller(node_with_logs(*LOGS), logs=2)
    assert await caller.error("eth_getLogs", {"fromBlock": "0x0"}) == (
        -32602,
        "query exceeds max results 2, retry with the range 0-1",
    )
    assert await found(caller, fromBlock="0x0", toBlock="0x1") == ["one", "two"]


async def test_too_long_an_answer_is_refused_with_a_range_to_try(make_caller: MakeCaller) -> None:
    caller = make_caller(node_with_logs(*LOGS), log_size=1_200)
    assert await caller.error("eth_getLogs", {"fromBlock": "0x0"}) == (
        -32602,
        "query exceeds max response size 1200, retry with the range 0-1",
    )
    assert await found(caller, fromBlock="0x0", toBlock="0x1") == ["one", "two"]


@pytest.mark.parametrize("limits", [{"logs": 1}, {"log_size": 100}])
async def test_one_block_is_never_refused_for_its_logs(
    make_caller: MakeCaller, limits: dict[str, int]
) -> None:
    caller = make_caller(node_with_logs(*LOGS), **limits)
    assert await found(caller, fromBlock="0x0", toBlock="0x0") == ["one", "two"]


async def test_pending_alone_gives_only_pre_confirmed_logs(make_caller: MakeCaller) -> None:
    node = node_with_logs(*LOGS)
    pending_with(node, Log(A, (T1,), b"soon"))
    caller = make_caller(node)
    logs = await caller.result("eth_getLogs", {"fromBlock": "pending", "toBlock": "pending"})
    assert [entry["blockNumber"] for entry in logs] == ["0x3"]
    assert logs[0]["blockHash"] == "0x" + "00" * 32
    assert logs[0]["blockTimestamp"] == "0x1e"
    assert await caller.result("eth_getLogs", {"fromBlock": "pending"}) == logs
    assert await found(caller, fromBlock="pending", toBlock="pending", address=hex_bytes(B)) == []


async def test_a_range_up_to_pending_ends_with_pre_confirmed_logs(make_caller: MakeCaller) -> None:
    node = node_with_logs(*LOGS)
    pending_with(node, Log(A, (T1,), b"soon"))
    caller = make_caller(node)
    assert await found(caller, toBlock="pending") == ["three", "soon"]
    assert await found(caller, fromBlock="0x0", toBlock="pending", address=hex_bytes(A)) == [
        "one",
        "three",
        "soon",
    ]


async def test_a_pending_block_that_is_canonical_by_now_is_not_reported_twice(
    make_caller: MakeCaller,
) -> None:
    node = node_with_logs(*LOGS)
    pending_with(node, Log(A, (T1,), b"three"))
    node.pending_block.header = node.chain.head.header
    assert await found(make_caller(node), fromBlock="0x0", toBlock="pending") == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.parametrize(
    ("first", "names"),
    [("0x2", ["three", "below", "soon"]), ("0x3", ["below", "soon"]), ("0x4", ["soon"]),
     ("pending", ["below", "soon"]), ("latest", ["three", "below", "soon"])],
)  # fmt: skip
async def test_a_range_may_begin_in_pre_confirmed_blocks(
    make_caller: MakeCaller, first: str, names: list[str]
) -> None:
    node = node_with_logs(*LOGS)
    pending_with(node, Log(A, (T1,), b"below"))
    below = node.pending_block
    node.pending_block = FakePending(
        header=header(4, parent_hash=b"\x05" * 32),
        transactions=(TRANSACTION,),
        receipts=(receipt(Log(A, (T1,), b"soon")),),
        previous=below,
    )
    caller = make_caller(node)
    assert await found(caller, fromBlock=first, toBlock="pending") == names
    error = await caller.error("eth_getLogs", {"fromBlock": "0x5", "toBlock": "pending"})
    assert error == (-32602, "invalid block range params")


async def test_who_asks_from_behind_the_head_up_to_pending_asks_in_vain(logged: Caller) -> None:
    assert await found(logged, fromBlock="0x3", toBlock="pending") == []
    error = await logged.error("eth_getLogs", {"fromBlock": "0x4", "toBlock": "pending"})
    assert error == (-32602, "invalid block range params")


async def test_a_query_begins_again_when_its_blocks_leave_the_chain(
    make_caller: MakeCaller,
) -> None:
    node = node_with_logs(*LOGS)
    caller = make_caller(node)
    blocks = caller.context.log_index.blocks
    asked = []

    def disturbed(*args: Any) -> Iterator[list[BlockLogs]]:
        asked.append(args)
        yield from blocks(*args)
        if len(asked) == 1:
            other = Block(header(2, logs_bloom=bloom_of(LOGS[0])), (TRANSACTION,))
            node.chain.receipts[other.hash] = (receipt(*LOGS[0]),)
            node.chain.move(other, remove=1)

    caller.context.log_index.blocks = disturbed  # type: ignore[method-assign]
    assert await found(caller, fromBlock="0x1") == ["one", "two"]
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("wanted", "is_small"),
    [
        (LogFilter(first=BlockId(number=0)), True),
        (LogFilter(first=BlockId(number=0), addresses=frozenset((A,))), True),
        (LogFilter(first=PENDING_BLOCK, last=PENDING_BLOCK), True),
        (LogFilter(block_hash=T1), True),
        (LogFilter(addresses=frozenset(n.to_bytes(20, "big") for n in range(1000))), True),
        (LogFilter(topics=(frozenset(n.to_bytes(32, "big") for n in range(1000)),) * 2), False),
    ],
)
async def test_what_is_quickly_found_is_found_on_the_loop(
    logged: Caller, wanted: LogFilter, is_small: bool
) -> None:
    query_logs(logged.context, LogFilter(first=BlockId(number=0)))  # packs the logs of all blocks
    assert (objects_of_logs(logged.context, wanted) <= LOOP_OBJECTS) is is_small


async def test_what_takes_long_is_left_to_a_worker(make_caller: MakeCaller) -> None:
    logs = tuple(Log(A, (T1,), bytes(1024)) for _ in range(1_000))
    context = make_caller(node_with_logs((), logs, logs, logs, ())).context
    everything = LogFilter(first=BlockId(number=0))
    for _ in range(2):  # first the logs are not packed yet, then the answer is too long
        assert objects_of_logs(context, everything) > LOOP_OBJECTS
        query_logs(context, everything)
    assert objects_of_logs(context, LogFilter()) <= LOOP_OBJECTS
    wanted = LogFilter(first=BlockId(number=0), topics=(frozenset((T2,)),))
    assert objects_of_logs(context, wanted) == 0
    with pytest.raises(RpcError):
        objects_of_logs(context, LogFilter(first=BlockId(number=9)))


async def test_no_log_is_missing_or_reported_twice_while_blocks_are_sealed(
    make_caller: MakeCaller,
) -> None:
    """A thread seals blocks. Block n has the logs n.0, n.1, ...; its slices add one log each."""
    node = node_with_logs((), ())
    caller = make_caller(node)
    node.chain.on_head(caller.context.log_index.update)
    done = threading.Event()

    def seal() -> None:
        while not done.is_set() and len(node.chain.blocks) < 2_000:
            parent = node.chain.head
            number = parent.number + 1
            logs = tuple(Log(A, (T1,), f"{number}.{at}".encode()) for at in range(1 + number % 5))
            for count in range(len(logs) + 1):  # a slice for each number of logs
                node.publish(
                    FakePending(
                        header=header(number, parent_hash=parent.hash),
                        transactions=(TRANSACTION,),
                        receipts=(receipt(*logs[:count]),),
                    )
                )
                time.sleep(0.0002)  # lets readers see unfinished blocks, also on a busy machine
            sealed = header(number, parent_hash=parent.hash, logs_bloom=bloom_of(logs))
            block = Block(sealed, (TRANSACTION,))
            node.chain.receipts[block.hash] = (receipt(*logs),)
            node.chain.move(block)

    builder = threading.Thread(target=seal)
    builder.start()
    try:
        pre_confirmed = 0
        for _ in range(10_000):
            if pre_confirmed >= 50 and node.chain.head.number >= 50:
                break
            await asyncio.sleep(0.0001)  # lets the other thread run
            first = max(node.chain.head.number - 20, 2)
            names = await found(caller, fromBlock=hex(first), toBlock="pending")
            numbers = sorted({int(name.split(".")[0]) for name in names})
            assert numbers == list(range(first, first + len(numbers)))
            whole = [f"{n}.{at}" for n in numbers for at in range(1 + n % 5)]
            assert names == whole[: len(names)]  # only the newest block may be unfinished
            assert not numbers or len(whole) - len(names) < 1 + numbers[-1] % 5
            pre_confirmed += names != whole
        assert pre_confirmed >= 50
    finally:
        done.set()
        builder.join()


async def test_without_pre_confirmed_state_pending_adds_nothing(logged: Caller) -> None:
    assert await found(logged, fromBlock="pending", toBlock="pending") == []
    assert await found(logged, toBlock="pending") == ["three"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"address": 5}, "invalid addresses in query"),
        ({"address": [5]}, "non-string address at index 0"),
        ({"address": "11"}, "invalid address: hex string without 0x prefix"),
        (
            {"address": "0x11"},
            "invalid address: hex has invalid length 1 after decoding; expected 20 for address",
        ),
        (
            {"address": [hex_bytes(A), "0x1"]},
            "invalid address at index 1: hex string of odd length",
        ),
        ({"topics": [5]}, "invalid topic(s)"),
        ({"topics": [[5]]}, "invalid topic(s)"),
        (
            {"topics": ["0x11"]},
            "hex has invalid length 1 after decoding; expected 32 for topic",
        ),
        ({"topics": [None] * 5}, "exceed max topics"),
        ({"fromBlock": 5}, "hex string without 0x prefix"),
        ({"topics": ["0x" + "zz" * 32]}, "invalid hex string"),
        ({"topics": ["0x" + "11" * 32 + "  "]}, "invalid hex string"),
        ({"topics": [""]}, "empty hex string"),
    ],
)
def test_a_bad_filter_has_its_reason(value: Any, why: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_filter(value)
    assert str(caught.value) == why


async def test_too_many_choices_are_refused(logged: Caller) -> None:
    many = [hex_bytes(n.to_bytes(20, "big")) for n in range(1001)]
    message = "exceed max addresses or topics per search position"
    assert await logged.error("eth_getLogs", {"address": many}) == (-32000, message)
    assert await found(logged, address=many[:1000]) == []


logs_strategy = st.lists(
    st.builds(
        Log,
        st.sampled_from([A, B]),
        st.lists(st.sampled_from([T1, T2]), max_size=4).map(tuple),
        st.just(b""),
    ),
    max_size=4,
).map(tuple)
filters = st.builds(
    LogFilter,
    addresses=st.frozensets(st.sampled_from([A, B])),
    topics=st.lists(st.frozensets(st.sampled_from([T1, T2])), max_size=4).map(tuple),
)


@given(logs_strategy, filters)
def test_the_index_finds_just_what_the_filter_matches(
    logs: tuple[Log, ...], wanted: LogFilter
) -> None:
    index = LogIndex(node_with_logs((), logs, ()).chain)
    expected = [(at, entry) for at, entry in enumerate(logs) if wanted.matches(entry)]
    query = wanted.query()
    blocks = [block for part in index.blocks(0, 2, query) for block in part if block.number == 1]
    assert [hit for block in blocks for hit in block.select(query)] == expected


@given(filters)
def test_an_empty_bloom_excludes_every_constraint(wanted: LogFilter) -> None:
    constrained = bool(wanted.addresses or any(wanted.topics))
    index = LogIndex(node_with_logs(()).chain)
    found = [block.number for part in index.blocks(0, 0, wanted.query()) for block in part]
    assert found == ([] if constrained else [0])
