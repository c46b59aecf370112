"""Tests block access lists over JSON-RPC: available, pruned, and of blocks before the fork."""

import pytest

from fastevm.core.execution.block.block_access_list import (
    EMPTY_LIST,
    AccountAccess,
    access_list_hash,
    encode_access_list,
)
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace

from .conftest import Caller, MakeCaller
from .fakes import FakeNode, FakePending, chain_of, header

ENCODED = encode_access_list([AccountAccess(b"\xaa" * 20)])
DRAFTED = ("eth_getBlockAccessListByBlockNumber", "eth_getBlockAccessListByBlockHash")
METHODS = ("eth_getBlockAccessList", "debug_getRawBlockAccessList", *DRAFTED)


def listed(number: int, encoded: bytes, *, kept: bool = True) -> Block:
    """Returns a block whose header commits to an access list.

    ``kept``: whether the block also contains the list.
    """
    fields = {"block_access_list_hash": access_list_hash(encoded), "slot_number": number}
    later = {"requests_hash": bytes(32), "parent_beacon_block_root": bytes(32)}
    blobs = {"blob_gas_used": 0, "excess_blob_gas": 0, "withdrawals_root": bytes(32)}
    made = Block(replace(header(number, base_fee_per_gas=1), **fields, **later, **blobs))
    return made.with_access_list(encoded if kept else None)


@pytest.fixture
def caller(make_caller: MakeCaller) -> Caller:
    """Provides a caller on a chain of two blocks before the fork and three blocks after it."""
    node = FakeNode(chain_of(2))
    node.chain.blocks += [
        listed(2, EMPTY_LIST, kept=False),
        listed(3, ENCODED),
        listed(4, ENCODED, kept=False),
    ]
    parent = node.chain.head.hash
    pending = header(5, parent_hash=parent, base_fee_per_gas=1)
    node.pending_block = FakePending(header=pending)
    return make_caller(node)


async def test_a_list_is_json_or_its_rlp(caller: Caller) -> None:
    found = await caller.ask("eth_getBlockAccessList", "0x3")
    assert [item["address"] for item in found["result"]] == ["0x" + "aa" * 20]
    block_hash = "0x" + caller.node.chain.blocks[3].hash.hex()
    assert (await caller.ask("eth_getBlockAccessList", block_hash))["result"] == found["result"]
    for name, block in zip(DRAFTED, ("0x3", block_hash), strict=True):
        assert (await caller.ask(name, block))["result"] == found["result"]
    raw = await caller.ask("debug_getRawBlockAccessList", "0x3")
    assert raw["result"] == "0x" + ENCODED.hex()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block", ["0x3e8", "pending", "0x" + "11" * 32])
async def test_an_unknown_block_and_the_pending_one_are_null(
    caller: Caller, method: str, block: str
) -> None:
    answer = await caller.ask(method, block)
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": None}


@pytest.mark.parametrize("method", METHODS)
async def test_a_block_before_the_fork_has_no_list(caller: Caller, method: str) -> None:
    error = (await caller.ask(method, "0x1"))["error"]
    assert (error["code"], "before Amsterdam" in error["message"]) == (-32001, True)


@pytest.mark.parametrize("method", METHODS)
async def test_a_list_that_is_not_kept_is_pruned(caller: Caller, method: str) -> None:
    error = (await caller.ask(method, "0x4"))["error"]
    assert error == {"code": 4444, "message": "pruned history unavailable"}


async def test_the_first_block_of_a_chain_has_an_empty_list(caller: Caller) -> None:
    assert (await caller.ask("eth_getBlockAccessList", "0x2"))["result"] == []
    assert (await caller.ask("debug_getRawBlockAccessList", "0x2"))["result"] == "0xc0"
