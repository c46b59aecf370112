"""Tests that lost, repeated and swapped messages never lead to a wrong state."""

from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.rpc_types.feed import FeedSlice

from .op_feeding import OpSink, OpSource, op_genesis, provisional, subblock

BLOCKS = 4
SLICES = 3  # slices of each block after its first slice
KEEP, DROP, TWICE, LATER = range(4)

Story = list[tuple[list[FeedSlice], Block]]


@cache
def genesis() -> dict[str, Any]:
    made = op_genesis()
    made["config"] |= dict.fromkeys(("holoceneTime", "isthmusTime", "jovianTime"), 0)
    made["extraData"] = "0x01" + "00000032" + "00000006" + "00" * 8
    return made


@cache
def reported() -> Story:
    """Returns the feed messages of some blocks, each with its block. Slices contain a payment."""
    source = OpSource(genesis())
    story: Story = []
    for _ in range(BLOCKS):
        messages = [source.begin()]
        messages += [source.slice(source.payment()) for _ in range(SLICES)]
        story.append((messages, source.seal()))
    return story


def delivered(story: Story, faults: list[int], delays: list[int]) -> list[FeedSlice | Block]:
    """Returns messages and blocks in the order in which a follower gets them.

    ``faults``: KEEP, DROP, TWICE or LATER for each message. ``delays``: by how many messages each
    block is late.
    """
    out: list[FeedSlice | Block] = []
    held: list[FeedSlice] = []
    waiting: list[tuple[int, Block]] = []
    position = 0
    for (messages, block), delay in zip(story, delays, strict=True):
        for message in messages:
            fault = faults[position]
            position += 1
            if fault == LATER:
                held.append(message)
                continue
            if fault != DROP:
                out += [message] * (2 if fault == TWICE else 1)
            out += held
            held = []
            out += [item for due, item in waiting if due <= position]
            waiting = [item for item in waiting if item[0] > position]
        waiting.append((max([position + delay, *(due for due, _ in waiting)]), block))
    return [*out, *held, *(block for _, block in waiting)]


@settings(max_examples=25, deadline=None)
@given(
    form=st.sampled_from([lambda message: message, provisional, subblock]),
    faults=st.lists(
        st.sampled_from([KEEP] * 12 + [DROP, TWICE, LATER]),
        min_size=BLOCKS * (SLICES + 1),
        max_size=BLOCKS * (SLICES + 1),
    ),
    delays=st.lists(st.integers(0, 6), min_size=BLOCKS, max_size=BLOCKS),
)
def test_what_is_shown_is_the_beginning_of_a_block(
    form: Any, faults: list[int], delays: list[int]
) -> None:
    sink, story = OpSink(genesis()), reported()
    sealed = {block.number: block for _, block in story}
    for item in delivered(story, faults, delays):
        if isinstance(item, Block):
            sink.node.add_block(item.rlp())
        else:
            sink.receive(form(item))
        pending = sink.node.pending()
        if pending is None:
            continue
        whole = sealed[pending.header.number].transactions
        assert pending.header.number > sink.node.chain.head.number
        shown = [transaction.hash for transaction in pending.transactions]
        assert shown == [transaction.hash for transaction in whole[: len(shown)]]
        assert len(shown) == pending.slice_index + 1
    assert sink.node.chain.head == story[-1][1]
    assert sink.node.pending() is None
    if set(faults) <= {KEEP, TWICE}:
        assert sink.node.metrics_registry.get("feed_divergence_total") == 0
        assert sink.node.metrics_registry.get("reconcile_mismatch_total") == 0


def test_a_block_on_another_end_than_the_last_slice_waits_for_its_parent() -> None:
    sink = OpSink(genesis())
    (first, block), (second, _) = reported()[:2]
    sink.receive(*first[:-1])
    sink.receive(*second)  # the last slice of the parent is missing
    assert sink.node.pending() is None
    sink.node.add_block(block.rlp())
    assert sink.position() == (2, SLICES)
    assert sink.node.metrics_registry.get("reconcile_mismatch_total") == 1
    assert replace(second[0].base, parent_hash=block.hash) == second[0].base
