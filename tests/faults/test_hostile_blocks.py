"""Tests that a follower gives up canonical blocks that run too long, and can be stopped."""

import asyncio
import threading
import time
from threading import RLock
from typing import Any, cast

import pytest

from fastevm.chain.metrics import MetricsRegistry
from fastevm.core.execution.block.validation import transactions_root
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.errors import ResourceLimitError
from fastevm.node.following import block_import, feed_follower
from fastevm.node.following.block_import import BlockImport
from fastevm.node.following.feed_sequence import Verdict
from tests.max_wait import MAX_WAIT
from tests.unit.node.following.op_feeding import OpSink, OpSource

from .test_hostile_feed import deposit, looping_genesis


def endless_block(source: OpSource) -> Block:
    """Returns a block with a deposit that loops for 2^49 gas."""
    source.begin()
    assert source.sliced is not None
    block, _ = source.sliced.seal()
    looping = Transaction.decode(deposit(2**49))
    longer = replace(block, transactions=(*block.transactions, looping))
    header = replace(block.header, transactions_root=transactions_root(longer))
    return replace(longer, header=header)


@pytest.fixture
def sink() -> OpSink:
    return OpSink(looping_genesis(2**50))


@pytest.fixture
def endless() -> Block:
    return endless_block(OpSource(looping_genesis(2**50)))


def importer(sink: OpSink, block: Block, begun: threading.Event | None = None) -> BlockImport:
    class Upstream:
        url = "http://127.0.0.1:1"

        async def call(self, method: str, *params: Any) -> Any:
            if method == "debug_getRawBlock":
                return "0x" + block.rlp().hex()
            return {"number": hex(block.number), "hash": "0x" + block.hash.hex()}

    def add(block: Block) -> None:
        if begun is not None:
            begun.set()
        chain.add(block)

    chain = sink.node.chain
    return BlockImport(
        chain, cast("Any", Upstream()), add_block=add, lock=RLock(), metrics=MetricsRegistry(),
    )  # fmt: skip


async def test_a_block_that_takes_too_long_is_given_up(
    sink: OpSink, endless: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_import, "BLOCK_SECONDS", 0.1)
    with pytest.raises(ResourceLimitError, match="block 1: its execution took too long"):
        await importer(sink, endless).follow_head()
    assert sink.node.chain.head.number == 0


async def test_stopping_cancels_the_block_that_runs(sink: OpSink, endless: Block) -> None:
    begun = threading.Event()
    blocks = importer(sink, endless, begun)
    following = asyncio.create_task(blocks.follow_head())
    await asyncio.to_thread(begun.wait, MAX_WAIT)
    blocks.stop()
    async with asyncio.timeout(MAX_WAIT):
        with pytest.raises(ResourceLimitError):
            await following
    with pytest.raises(ResourceLimitError):  # A further attempt gives up immediately.
        await blocks.follow_head()


def test_a_feed_rests_after_a_slice_that_took_too_long(
    sink: OpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_follower, "SLICE_SECONDS", 0.1)
    source = OpSource(looping_genesis(2**50))
    first = source.begin()
    sink.receive(first)
    sink.receive(replace(source.slice(), transactions=(deposit(2**49),)))
    assert sink.position() is None
    began = time.monotonic()
    assert sink.follower.receive(first) is Verdict.RESTING
    assert time.monotonic() - began < MAX_WAIT
    monkeypatch.setattr(sink.follower, "_rests_until", 0.0)
    assert sink.follower.receive(first) is not Verdict.RESTING
