"""Tests the import of an upstream's blocks: new blocks, other branches, and foreign chains."""

from collections.abc import Callable
from threading import RLock
from typing import Any

import pytest

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.retention import ChainLimits
from fastevm.errors import InvalidBlock
from fastevm.node.following import block_import as importing
from fastevm.node.following.block_import import BlockImport, ForeignChain, SyncState
from fastevm.rpc_client.messages import METHOD_NOT_FOUND, RpcRefusal
from tests.unit.chain.blocks import grow, new_chain


class FakeUpstream:
    """Serves the blocks of a chain in this process."""

    url = "http://upstream"

    def __init__(self, chain: Chain, chain_id: int = 1) -> None:
        self.chain, self.chain_id = chain, chain_id
        self.asked: list[str] = []
        self.before: Callable[[str], None] = lambda method: None

    async def call(self, method: str, *params: Any) -> Any:
        self.asked.append(method)
        self.before(method)
        if method == "eth_chainId":
            return hex(self.chain_id)
        if method == "debug_getRawBlock":
            return "0x" + self.chain.block_by_number(int(params[0], 16)).rlp().hex()
        if method != "eth_getBlockByNumber":
            raise RpcRefusal(METHOD_NOT_FOUND, "no such method")
        named = params[0]
        found = self.chain.head if named == "latest" else None
        found = found or self.chain.block_by_number(int(named, 16))
        return found and {"number": hex(found.number), "hash": "0x" + found.hash.hex()}


class Pair:
    """An upstream's chain (``theirs``), and the chain that follows it (``ours``)."""

    def __init__(self, upstream: Chain | None = None, limits: ChainLimits | None = None) -> None:
        self.theirs = upstream or new_chain()
        self.ours = new_chain(limits=limits)
        self.upstream = FakeUpstream(self.theirs)
        self.metrics = MetricsRegistry()
        self.blocks = BlockImport(
            self.ours, self.upstream, add_block=self.ours.add, lock=RLock(), metrics=self.metrics
        )

    async def follow(self) -> None:
        await self.blocks.follow_head()
        assert self.ours.head == self.theirs.head


@pytest.fixture
def pair() -> Pair:
    return Pair()


def branch_off(chain: Chain, number: int, count: int) -> None:
    """Replaces the blocks after a number by a branch of ``count`` blocks."""
    chain.set_head(chain.canonical_hash(number))
    grow(chain, count, extra_data=b"another")


async def test_missing_blocks_are_fetched_in_their_order(pair: Pair) -> None:
    grow(pair.theirs, 40)
    await pair.follow()
    assert pair.metrics.get("upstream_blocks_total") == 40
    pair.upstream.asked.clear()
    await pair.follow()
    assert pair.upstream.asked == ["eth_getBlockByNumber"]


async def test_who_catches_up_says_how_far_it_is(pair: Pair) -> None:
    grow(pair.theirs, 2)
    await pair.follow()
    assert pair.blocks.sync_state is None
    grow(pair.theirs, 30)
    seen: list[SyncState | None] = []
    pair.upstream.before = lambda method: seen.append(pair.blocks.sync_state)
    await pair.follow()
    assert seen[1] == SyncState(2, 2, 32)
    assert SyncState(2, 18, 32) in seen
    assert pair.blocks.sync_state is None
    assert pair.metrics.get("upstream_behind_blocks") == 30


@pytest.mark.parametrize(("fork", "length"), [(9, 1), (5, 5), (5, 2), (0, 1), (3, 30)])
async def test_another_branch_is_taken_whatever_its_length(
    pair: Pair, fork: int, length: int
) -> None:
    grow(pair.theirs, 10)
    await pair.follow()
    changes = []
    pair.ours.on_head(changes.append)
    branch_off(pair.theirs, fork, length)
    await pair.follow()
    assert [block.number for block in changes[0].removed] == list(range(10, fork, -1))


async def test_a_branch_beyond_the_side_blocks_is_taken_step_by_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importing, "MAX_BRANCH", 4)
    pair = Pair(limits=ChainLimits(side_blocks=4))
    grow(pair.theirs, 12)
    await pair.follow()
    heads = []
    pair.ours.on_head(lambda change: heads.append(pair.ours.head.number))
    branch_off(pair.theirs, 2, 20)
    await pair.follow()
    assert heads == [2, *range(3, 23)]


async def test_an_upstream_that_went_back_is_followed_back(pair: Pair) -> None:
    grow(pair.theirs, 10)
    await pair.follow()
    pair.theirs.set_head(pair.theirs.canonical_hash(4))
    await pair.follow()


async def test_an_upstream_that_lags_for_a_moment_is_not_followed_back(pair: Pair) -> None:
    pair.blocks.lag_seconds = 60.0
    grow(pair.theirs, 10)
    await pair.follow()
    newest = pair.theirs.head.hash
    pair.theirs.set_head(pair.theirs.canonical_hash(8))
    assert not await pair.blocks.follow_head()
    assert pair.ours.head.hash == newest
    assert pair.metrics.get("upstream_stale_heads_total") == 1
    pair.theirs.set_head(newest)
    assert await pair.blocks.follow_head()
    pair.theirs.set_head(pair.theirs.canonical_hash(8))
    assert not await pair.blocks.follow_head()
    pair.blocks.lag_seconds = 0.0
    await pair.follow()


async def test_a_head_far_ahead_is_jumped_to_where_states_cannot_be_had(pair: Pair) -> None:
    jumps: list[int] = []
    pair.blocks.jump = lambda block: jumps.append(block.number)
    grow(pair.theirs, importing.JUMP_BLOCKS)
    await pair.blocks.follow_head()
    assert pair.ours.head == pair.theirs.head and not jumps
    grow(pair.theirs, importing.JUMP_BLOCKS + 1)
    await pair.blocks.follow_head()
    assert jumps == [pair.theirs.head.number]


async def test_an_upstream_that_moves_meanwhile_is_followed_in_the_next_round(pair: Pair) -> None:
    grow(pair.theirs, 20)

    def move(method: str) -> None:
        if method == "debug_getRawBlock" and pair.theirs.head.number == 20:
            branch_off(pair.theirs, 10, 12)

    pair.upstream.before = move
    await pair.blocks.follow_head()
    await pair.follow()


async def test_another_chain_is_named() -> None:
    pair = Pair(upstream=new_chain(timestamp="0x5"))
    genesis = pair.ours.genesis.hash.hex()
    with pytest.raises(ForeignChain, match=f"is on another chain: .* here it is 0x{genesis}"):
        await pair.blocks.check_identity()
    grow(pair.theirs, 1)
    with pytest.raises(ForeignChain):
        await pair.blocks.follow_head()
    assert pair.ours.head == pair.ours.genesis


async def test_another_chain_id_is_named(pair: Pair) -> None:
    pair.upstream.chain_id = 5
    with pytest.raises(ForeignChain, match="has the chain id 5, this node 1"):
        await pair.blocks.check_identity()


async def test_a_branch_older_than_all_kept_states_is_another_chain() -> None:
    pair = Pair(limits=ChainLimits(states=2))
    grow(pair.theirs, 10)
    await pair.follow()
    branch_off(pair.theirs, 2, 12)
    with pytest.raises(ForeignChain, match="left our branch too long ago"):
        await pair.blocks.follow_head()


async def test_a_block_that_breaks_a_rule_is_counted_and_not_taken(pair: Pair) -> None:
    head = pair.theirs.head
    pair.theirs.amend(head.hash, {"0x" + "01" * 20: {"balance": "0x1"}})
    grow(pair.theirs, 1)
    with pytest.raises(InvalidBlock, match="state_root"):
        await pair.blocks.follow_head()
    assert pair.metrics.get("upstream_invalid_blocks_total") == 1
    assert pair.ours.head == head
