"""Tests that a feed cannot block its follower or fill its memory: gas, time, size have limits."""

import time
from typing import Any

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.replace import replace
from fastevm.node.following import feed_follower, feed_sequence
from fastevm.node.following.feed_sequence import EARLY_SIZE, EarlySlices, size_of
from fastevm.rpc_types.feed import FeedSlice
from tests.max_wait import MAX_WAIT
from tests.unit.node.following.op_feeding import OpSink, OpSource, op_genesis

LOOPED = b"\xbb" * 20
LOOP_CODE = "0x5b5f56"


def looping_genesis(gas_limit: int) -> dict[str, Any]:
    genesis = op_genesis()
    alloc = {**genesis["alloc"], LOOPED.hex(): {"balance": "0x0", "code": LOOP_CODE}}
    start = int(genesis["timestamp"], 16)
    config = {**genesis["config"], "holoceneTime": start + 1, "isthmusTime": start + 1}
    return {**genesis, "alloc": alloc, "gasLimit": hex(gas_limit), "config": config}


def deposit(gas: int) -> bytes:
    """Returns a deposit that calls a contract with an endless loop."""
    made = Transaction.build(
        sender=b"\x11" * 20, to=LOOPED, gas_limit=gas, source_hash=b"\x22" * 32, data=b""
    )
    return made.raw


def divergences(sink: OpSink) -> float:
    return sink.node.metrics_registry.get("feed_divergence_total")


def test_a_deposit_above_the_gas_of_its_block_is_refused() -> None:
    genesis = looping_genesis(30_000_000)
    source, sink = OpSource(genesis), OpSink(genesis)
    sink.receive(source.begin())
    assert sink.position() is not None
    began = time.monotonic()
    sink.receive(replace(source.slice(), transactions=(deposit(2**62),)))
    assert time.monotonic() - began < MAX_WAIT
    assert divergences(sink) == 1
    assert sink.position() is None


def test_a_slice_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_follower, "SLICE_SECONDS", 0.1)
    genesis = looping_genesis(2**50)
    source, sink = OpSource(genesis), OpSink(genesis)
    sink.receive(source.begin())
    assert sink.position() is not None
    sink.receive(replace(source.slice(), transactions=(deposit(2**49),)))
    assert divergences(sink) == 1
    assert sink.position() is None


def early(number: int, index: int, size: int) -> FeedSlice:
    return FeedSlice(
        payload_id=bytes(8), index=index, block_number=number, base=None,
        transactions=(bytes(size),), gas_used=0, receipts_root=bytes(32), logs_bloom=bytes(256),
    )  # fmt: skip


def test_early_slices_have_a_limit_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_sequence, "EARLY_SIZE", 1_000_000)
    kept = EarlySlices()
    results = [kept.keep(early(number, 0, 300_000), 0) for number in range(1, 6)]
    assert results == [True, True, True, False, False]
    assert kept.size <= 1_000_000
    list(kept.take(1))
    assert kept.keep(early(5, 0, 300_000), 0)


def test_many_tiny_transactions_count_with_their_objects() -> None:
    message = replace(early(1, 0, 0), transactions=(b"",) * 100_000)
    assert size_of(message) > 5_000_000
    assert EARLY_SIZE < 2**27
