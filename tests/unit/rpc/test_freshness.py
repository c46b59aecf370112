"""Tests the age limit of pre-confirmed state: blocks, /readyz and metrics."""

import time

import pytest

from fastevm.core.primitives.replace import replace
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.metrics import Metrics

from .conftest import MakeCaller
from .fakes import FakeNode, FakePending, chain_of, header


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode(chain_of(3), slice_cadence_ms=200)
    node.pending_block = pending_on(node)
    return node


def pending_on(node: FakeNode, *, age: float = 0.0) -> FakePending:
    head = node.chain.head
    made = header(head.number + 1, parent_hash=head.hash)
    return FakePending(header=made, published=time.monotonic() - age)


def freshness_of(node: FakeNode, limit: float = 5.0) -> Freshness:
    return Freshness(node, Metrics(), limit=limit)


def test_a_fresh_slice_is_served(node: FakeNode) -> None:
    freshness = freshness_of(node)
    assert freshness.pending() is node.pending_block
    assert freshness.ready()
    gauges = freshness.gauges()
    assert gauges["ready"] == gauges["pending_served"] == 1
    assert 0 <= gauges["pending_age_seconds"] < 1
    assert gauges["pending_number"] == 3


def test_an_old_slice_is_not_served_and_the_node_is_not_ready(node: FakeNode) -> None:
    node.pending_block = pending_on(node, age=6)
    freshness = freshness_of(node)
    assert freshness.pending() is None
    assert not freshness.ready()
    assert freshness.metrics.get("pending_stale_reads_total") == 1
    assert freshness.gauges()["pending_age_seconds"] >= 6
    assert freshness.gauges()["pending_served"] == 0


def test_a_node_whose_last_slice_failed_is_not_ready(node: FakeNode) -> None:
    node.building_fails = True
    assert not freshness_of(node).ready()


def test_no_slice_at_all_is_not_ready_where_there_should_be_some(node: FakeNode) -> None:
    node.pending_block = None
    assert freshness_of(node).pending() is None
    assert not freshness_of(node).ready()
    node.slice_cadence_ms = None
    assert freshness_of(node).ready()


def test_without_a_limit_or_a_cadence_no_slice_is_too_old(node: FakeNode) -> None:
    node.pending_block = pending_on(node, age=1e6)
    assert freshness_of(node, limit=0).pending() is not None
    node.slice_cadence_ms = None
    assert freshness_of(node).pending() is not None
    assert freshness_of(node).ready()


def test_a_slice_of_a_block_that_is_canonical_by_now_is_not_served(node: FakeNode) -> None:
    freshness = freshness_of(node)
    node.chain.blocks.append(chain_of(4).head)
    assert freshness.pending() is None
    assert freshness.ready()


def test_a_slice_on_a_block_that_left_the_chain_is_not_served(node: FakeNode) -> None:
    node.pending_block = FakePending(header=header(3, parent_hash=b"\x01" * 32))
    assert freshness_of(node).pending() is None


def test_a_slice_two_blocks_ahead_is_served_over_the_one_between(node: FakeNode) -> None:
    below = node.pending_block
    made = header(4, parent_hash=b"\x07" * 32)
    node.pending_block = FakePending(header=made, previous=below)
    assert freshness_of(node).pending() is node.pending_block


def test_gaps_between_slices_are_counted(node: FakeNode) -> None:
    freshness, slice_ = freshness_of(node), node.pending_block
    for at in (10.0, 10.2, 10.4, 11.0, 11.2):
        freshness.note(replace(slice_, published=at))
    assert freshness.metrics.get("slices_told_total") == 5
    assert freshness.metrics.get("slice_gaps_total") == 1
    assert freshness.longest_gap == pytest.approx(0.6)


async def test_a_stale_pending_means_latest_in_every_method(
    node: FakeNode, make_caller: MakeCaller
) -> None:
    node.pending_block = pending_on(node, age=6)
    caller = make_caller(node)
    latest = await caller.result("eth_getBlockByNumber", "latest", False)
    assert await caller.result("eth_getBlockByNumber", "pending", False) == latest
    wanted = {"fromBlock": "pending", "toBlock": "pending"}
    assert await caller.result("eth_getLogs", wanted) == []


def test_a_follower_that_does_not_hear_of_its_upstream_is_not_ready(node: FakeNode) -> None:
    node.slice_cadence_ms = None
    freshness = Freshness(node, Metrics(), limit=5, upstream_limit=10)
    assert freshness.ready()
    node.upstream_age = 9
    assert freshness.ready()
    node.upstream_age = 11
    assert not freshness.ready()
    assert Freshness(node, Metrics(), limit=5, upstream_limit=0).ready()


def test_where_blocks_replace_slices_the_head_must_be_as_fresh(node: FakeNode) -> None:
    node.slice_cadence_ms, node.blocks_replace_slices = None, True
    freshness = Freshness(node, Metrics(), limit=5, upstream_limit=10)
    node.upstream_age = 4
    assert freshness.ready()
    node.upstream_age = 6
    assert not freshness.ready()
    for limits in ({"limit": 0, "upstream_limit": 10}, {"limit": 5, "upstream_limit": 0}):
        assert Freshness(node, Metrics(), **limits).ready()


async def test_a_follower_that_catches_up_is_not_ready_and_says_how_far_it_is(
    node: FakeNode, make_caller: MakeCaller
) -> None:
    node.slice_cadence_ms = None
    caller = make_caller(node)
    assert await caller.result("eth_syncing") is False
    node.sync_state = (1, 2, 30)
    assert not Freshness(node, Metrics(), limit=5).ready()
    assert await caller.result("eth_syncing") == {
        "startingBlock": "0x1", "currentBlock": "0x2", "highestBlock": "0x1e"
    }  # fmt: skip
