"""Tests the checks of the order of feed messages: every verdict, and messages that come early."""

import pytest

from fastevm.node.following.feed_sequence import EARLY_BLOCKS, EarlySlices, Verdict, classify
from fastevm.rpc_types.feed import FeedSlice


def message(
    number: int, index: int, payload: int | None = None, previous: str | None = None
) -> FeedSlice:
    return FeedSlice(
        payload_id=(number if payload is None else payload).to_bytes(8, "big"),
        index=index,
        block_number=number,
        base=None,
        transactions=(),
        gas_used=0,
        receipts_root=bytes(32),
        logs_bloom=bytes(256),
        previous_id=previous,
    )


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        (message(100, 6), Verdict.NEXT),
        (message(101, 0), Verdict.FIRST),
        (message(100, 5), Verdict.DUPLICATE),
        (message(100, 7), Verdict.GAP),
        (message(100, 4), Verdict.GAP),
        (message(101, 3), Verdict.INVALID_BLOCK),
        (message(105, 0), Verdict.INVALID_BLOCK),
        (message(99, 0), Verdict.INVALID_BLOCK),
        (message(101, 0, previous="100-4"), Verdict.PREDECESSOR),
        (message(101, 0, previous="100-5"), Verdict.FIRST),
        (message(100, 6, previous="100-4"), Verdict.PREDECESSOR),
        (message(100, 5, previous="100-3"), Verdict.DUPLICATE),
        (message(100, 0, payload=7), Verdict.RESTART),
        (message(100, 6, payload=7), Verdict.GAP),
        (message(100, 0), Verdict.GAP),
    ],
)
def test_a_message_after_slice_five_of_block_100(new: FeedSlice, verdict: Verdict) -> None:
    assert classify(message(100, 5), new) is verdict


def test_without_pending_state_only_a_first_slice_begins() -> None:
    assert classify(None, message(100, 0)) is Verdict.START
    assert classify(None, message(100, 1)) is Verdict.MISSING_FIRST


def test_early_messages_come_out_in_order() -> None:
    early = EarlySlices()
    for index in range(3):
        assert early.keep(message(102, index), head=100)
    assert [item.index for item in early.take(102)] == [0, 1, 2]
    assert len(early) == 0


def test_early_messages_without_their_predecessor_are_not_kept() -> None:
    early = EarlySlices()
    assert not early.keep(message(102, 1), head=100)
    assert early.keep(message(102, 0), head=100)
    assert not early.keep(message(102, 2), head=100)


def test_only_a_few_blocks_ahead_are_kept() -> None:
    early = EarlySlices()
    assert early.keep(message(100 + EARLY_BLOCKS, 0), head=100)
    assert not early.keep(message(101 + EARLY_BLOCKS, 0), head=100)
    assert not early.keep(message(100, 0), head=100)


def test_a_repeated_early_message_replaces_what_followed_it() -> None:
    early = EarlySlices()
    for index in (0, 1, 1):
        assert early.keep(message(102, index), head=100)
    assert early.keep(message(102, 0, payload=9), head=100)
    assert [item.payload_id[-1] for item in early.take(102)] == [9]


def test_taking_a_block_forgets_those_before_it() -> None:
    early = EarlySlices()
    early.keep(message(101, 0), head=100)
    early.keep(message(102, 0), head=100)
    assert len(list(early.take(102))) == 1
    assert len(early) == 0
