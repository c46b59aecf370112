"""Tests that the first message determines the feed's format, with real messages."""

import json
from typing import Any

import brotli
import pytest

from fastevm.chain import named as chains
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.types import Header
from fastevm.node.following.feed_checks import announced_header, draft_of
from fastevm.rpc_types.feed import FeedError, FeedSlice
from fastevm.rpc_types.feed_reader import FeedForm, FeedHead, FeedReader
from tests.op_stack_data import OP_STACK

from .test_feed import MESSAGES

HEADER = {"parentHash": "0x" + "11" * 32, "number": "0x7", "hash": "0x" + "22" * 32}
ZERO = "0x" + "00" * 32
REAL = OP_STACK / "flashblocks-real.json"


def subblock(message: dict[str, Any]) -> dict[str, Any]:
    """Returns a message in the format of the OP stack's specification of subblocks."""
    diff = {**message["diff"], "state_root": ZERO, "block_hash": ZERO, "withdrawals_root": ZERO}
    return {**message, "diff": diff, "metadata": {"block_number": 48_000_000}}


def packed(message: dict[str, Any]) -> bytes:
    return bytes(brotli.compress(json.dumps(message).encode(), quality=5))


@pytest.mark.parametrize(
    ("frame", "form", "compressed"),
    [
        (json.dumps(MESSAGES[0]), FeedForm.FLASHBLOCKS, False),
        (json.dumps(MESSAGES[0]).encode(), FeedForm.FLASHBLOCKS, False),
        (packed(MESSAGES[0]), FeedForm.FLASHBLOCKS, True),
        (json.dumps(subblock(MESSAGES[0])), FeedForm.SUBBLOCKS, False),
        (packed(subblock(MESSAGES[0])), FeedForm.SUBBLOCKS, True),
        (json.dumps(HEADER), FeedForm.HEADERS, False),
    ],
)
def test_the_form_shows_in_the_first_message(frame: Any, form: FeedForm, compressed: bool) -> None:
    reader = FeedReader()
    assert reader.form is None
    reader.read(frame)
    assert (reader.form, reader.compressed) == (form, compressed)


def test_a_later_message_changes_no_form() -> None:
    reader = FeedReader()
    reader.read(json.dumps(MESSAGES[0]))
    reader.read(json.dumps(subblock(MESSAGES[1])))
    assert reader.form is FeedForm.FLASHBLOCKS


def test_a_header_comes_as_it_is_or_in_a_notification() -> None:
    reader = FeedReader()
    assert reader.read('{"jsonrpc":"2.0","id":1,"result":"0x1"}') is None
    assert reader.form is None
    note = {"jsonrpc": "2.0", "method": "eth_subscription", "params": {"result": HEADER}}
    assert reader.read(json.dumps(note)) == FeedHead(7, b"\x22" * 32)
    assert reader.read(json.dumps(HEADER)) == FeedHead(7, b"\x22" * 32)
    for wrong in ({"number": "seven"}, {"hash": "0x22"}, {"hash": None}):
        with pytest.raises(FeedError, match=next(iter(wrong))):
            reader.read(json.dumps({**HEADER, **wrong}))


def test_a_message_without_a_number_is_of_the_block_that_its_payload_began() -> None:
    reader = FeedReader()
    first, second = ({**item, "metadata": None} for item in MESSAGES[:2])
    with pytest.raises(FeedError, match=r"metadata\.block_number"):
        reader.read(json.dumps(second))
    reader.read(json.dumps(first))
    found = reader.read(json.dumps(second))
    assert isinstance(found, FeedSlice)
    assert (found.block_number, found.index) == (48_000_000, 1)
    with pytest.raises(FeedError, match=r"metadata\.block_number"):
        reader.read(json.dumps({**second, "payload_id": "0x" + "00" * 8}))


# --- messages of real chains (op-alloy, crates/rpc-types-engine/src/envelope.rs, tests) -----------

needs_data = pytest.mark.skipif(not REAL.exists(), reason="no folder of OP-stack data")


def real(name: str) -> list[FeedSlice]:
    reader = FeedReader()
    found = [reader.read(json.dumps(load)) for load in json.loads(REAL.read_text())[name]]
    assert reader.form is FeedForm.FLASHBLOCKS
    assert all(isinstance(item, FeedSlice) for item in found)
    return [item for item in found if isinstance(item, FeedSlice)]


@needs_data
def test_the_messages_of_a_unichain_block_give_its_hashes() -> None:
    messages = real("unichain-sepolia-35535698")
    base = messages[0].base
    assert base is not None
    config = chains.find("unichain-sepolia").config()
    schedule = config.activations.at(base.block_number, base.timestamp)
    draft = draft_of(base, Header(excess_blob_gas=0, blob_gas_used=0), schedule)
    raws: list[bytes] = []
    for message in messages:
        raws += message.transactions
        assert announced_header(draft, ordered_root(raws), message).hash == message.block_hash
    assert len(messages) == 5
    expected = "c463a3120c35268f610d969f5608b479332ef10953af77c7a6be806195831196"
    assert messages[-1].block_hash.hex() == expected
    assert (len(raws), messages[-1].gas_used) == (6, 205_112)


@needs_data
def test_the_messages_of_a_base_block_are_read() -> None:
    messages = real("base-sepolia-33439826")
    assert [message.index for message in messages] == list(range(11))
    assert {message.block_number for message in messages} == {33_439_826}
    assert {message.state_root for message in messages} == {bytes(32)}
