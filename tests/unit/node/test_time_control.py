"""Tests time on a development chain: offsets, intervals, set times, timestamps."""

import time

import pytest

from fastevm.node import Mining, Node, dev_node
from fastevm.node.production.block_clock import MAX_TIMESTAMP


@pytest.fixture
def node() -> Node:
    return dev_node(accounts=1, mining=Mining.INSTANT, shares_seconds=True)


def stamp(node: Node, **options: int) -> int:
    """Mines a block. Returns how many seconds its timestamp is after the system's clock."""
    return node.development.mine(**options)[-1].header.timestamp - int(time.time())


def test_an_interval_of_a_request_is_added_to_the_offset(node: Node) -> None:
    assert node.development.time.increase(100) == 100
    assert stamp(node, count=3, interval=10) in range(129, 132)
    assert stamp(node) in range(129, 132)
    assert node.development.time.increase(5) == 135


def test_an_interval_of_blocks_comes_before_offsets_and_after_a_timestamp(node: Node) -> None:
    control, now = node.development.time, int(time.time())
    assert control.set_interval(7) is False
    control.increase(1_000)
    first = node.chain.head.header.timestamp
    node.mine(2)
    assert node.chain.head.header.timestamp == first + 14
    control.set_next(now + 5_000)
    node.mine(2)
    assert node.chain.head.header.timestamp == now + 5_007
    assert control.set_interval(None) is True
    node.mine()
    assert node.chain.head.header.timestamp >= now + 5_008, "time went on from the timestamp"


def test_a_timestamp_outlives_a_change_of_the_offset(node: Node) -> None:
    control, moment = node.development.time, int(time.time()) + 900
    control.set_next(moment)
    control.increase(10)
    node.mine()
    assert node.chain.head.header.timestamp == moment


def test_time_is_set_in_seconds_and_milliseconds(node: Node) -> None:
    control, now = node.development.time, int(time.time())
    assert control.set(now + 600) in range(598, 601)
    assert stamp(node) in range(599, 603)
    assert control.set((now + 4_000) * 1_000) in range(3_396, 3_401)
    assert stamp(node) in range(3_999, 4_003)
    assert control.set(now) == 0
    head = node.chain.head.header.timestamp
    node.mine()
    assert node.chain.head.header.timestamp - head in range(2), "no block is before its parent"


def test_blocks_may_share_a_second_only_where_the_chain_says_so() -> None:
    for shares, step in ((True, 0), (False, 1)):
        node = dev_node(accounts=1, mining=Mining.MANUAL, shares_seconds=shares)
        moment = int(time.time()) + 100
        node.development.mine(3, timestamp=moment)
        assert node.chain.head.header.timestamp == moment + 2 * step


@pytest.mark.parametrize("change", ["set", "set_next", "increase", "set_interval"])
def test_a_time_beyond_the_limit_is_refused(node: Node, change: str) -> None:
    with pytest.raises(ValueError, match="limit"):
        getattr(node.development.time, change)((MAX_TIMESTAMP + 1) * 1_000)


def test_a_long_interval_stops_at_the_limit_and_blocks_go_on(node: Node) -> None:
    node.development.time.set_interval(MAX_TIMESTAMP)
    sealed = [block.header.timestamp for block in node.development.mine(6)]
    assert sealed == sorted(sealed)
    assert sealed[-1] <= MAX_TIMESTAMP + len(sealed)


def test_after_going_back_time_goes_on_from_the_block(node: Node) -> None:
    number = node.development.snapshot()
    before = node.chain.head.header.timestamp
    node.development.time.increase(10_000)
    node.mine()
    assert node.development.revert(number)
    node.mine()
    assert node.chain.head.header.timestamp - before in range(3)
