"""Tests unknown and pending blocks and transactions, and tags."""

from types import SimpleNamespace

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Receipt

from .conftest import Caller, MakeCaller
from .fakes import (
    FakeChain,
    FakeNode,
    FakePending,
    FakeSimulator,
    chain_of,
    header,
    recorded_blocks,
)

UNKNOWN = "0x" + "11" * 32
A = b"\xaa" * 20
TRANSACTION = Transaction.build(
    sender=A, max_fee_per_gas=50, max_priority_fee_per_gas=2, gas_limit=21_000, to=A
)
RECEIPT = Receipt(
    tx_type=2,
    status=1,
    post_state=None,
    cumulative_gas_used=21_000,
    logs=(),
    bloom=bytes(256),
    gas_used=21_000,
    effective_gas_price=12,
)


@pytest.fixture
def node() -> FakeNode:
    """Returns a node with three blocks, and a pending block with one transaction."""
    node = FakeNode(chain_of(3))
    node.pending_block = FakePending(
        header=header(3, parent_hash=node.chain.head.hash, base_fee_per_gas=10),
        transactions=(TRANSACTION,),
        receipts=(RECEIPT,),
    )
    return node


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_getBlockByNumber", ["0x3e8", True]),
        ("eth_getBlockByHash", [UNKNOWN, True]),
        ("eth_getBlockReceipts", ["0x3e8"]),
        ("eth_getBlockReceipts", [UNKNOWN]),
        ("eth_getBlockTransactionCountByNumber", ["0x3e8"]),
        ("eth_getBlockTransactionCountByHash", [UNKNOWN]),
        ("eth_getTransactionByHash", [UNKNOWN]),
        ("eth_getTransactionReceipt", [UNKNOWN]),
        ("eth_getTransactionByBlockNumberAndIndex", ["0x3e8", "0x0"]),
        ("eth_getTransactionByBlockNumberAndIndex", ["0x0", "0xffffffff"]),
        ("eth_getTransactionByBlockHashAndIndex", [UNKNOWN, "0x0"]),
        ("eth_getUncleByBlockNumberAndIndex", ["0x0", "0x0"]),
        ("eth_getUncleByBlockHashAndIndex", [UNKNOWN, "0x0"]),
        ("eth_getUncleCountByBlockNumber", ["0x3e8"]),
        ("eth_getUncleCountByBlockHash", [UNKNOWN]),
    ],
)
async def test_the_unknown_is_null(
    make_caller: MakeCaller, method: str, params: list[object]
) -> None:
    assert await make_caller().result(method, *params) is None


async def test_raw_encodings_of_unknown_blocks_are_errors(make_caller: MakeCaller) -> None:
    caller = make_caller()
    assert await caller.error("debug_getRawBlock", "0x3e8") == (-32000, "block #1000 not found")
    assert await caller.error("debug_getRawHeader", UNKNOWN) == (
        -32000,
        f"block {UNKNOWN} not found",
    )
    assert await caller.result("debug_getRawTransaction", UNKNOWN) == "0x"


async def test_safe_and_finalized_are_the_latest_block(make_caller: MakeCaller) -> None:
    caller = make_caller()
    latest = await caller.result("eth_getBlockByNumber", "latest", False)
    for tag in ("safe", "finalized", "pending"):
        assert await caller.result("eth_getBlockByNumber", tag, False) == latest
    assert (await caller.result("eth_getBlockByNumber", "earliest"))["number"] == "0x0"


async def test_the_pending_block_has_no_hash_yet(make_caller: MakeCaller, node: FakeNode) -> None:
    block = await make_caller(node).result("eth_getBlockByNumber", "pending", True)
    assert block["number"] == "0x3"
    assert block["hash"] == "0x" + "00" * 32
    assert block["parentHash"] == "0x" + node.chain.head.hash.hex()
    (transaction,) = block["transactions"]
    assert transaction["blockHash"] is None
    assert transaction["blockNumber"] == "0x3"
    assert transaction["transactionIndex"] == "0x0"
    assert transaction["gasPrice"] == hex(10 + 2)


@pytest.mark.parametrize("name", ["eth_getBlockByNumber", "eth_getHeaderByNumber"])
async def test_a_pending_block_is_not_sealed_in_the_geth_dialect(
    make_caller: MakeCaller, node: FakeNode, name: str
) -> None:
    caller = make_caller(node, dialect="geth")
    more = [False] if name == "eth_getBlockByNumber" else []
    block = await caller.result(name, "pending", *more)
    assert [block[member] for member in ("number", "hash", "nonce", "miner")] == [
        "0x3",
        *[None] * 3,
    ]
    assert None not in (await caller.result(name, "latest", *more)).values()


async def test_a_pre_confirmed_transaction_has_a_receipt(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    caller = make_caller(node, receipts="preconfirmed")
    tx_hash = "0x" + TRANSACTION.hash.hex()
    receipt = await caller.result("eth_getTransactionReceipt", tx_hash)
    assert receipt["blockHash"] == "0x" + "00" * 32
    assert receipt["blockNumber"] == "0x3"
    assert receipt["status"] == "0x1"
    assert receipt["preconfirmed"] is True
    assert await caller.result("eth_getBlockReceipts", "pending") == [receipt]
    assert await caller.result("eth_getBlockTransactionCountByNumber", "pending") == "0x1"
    found = await caller.result("eth_getTransactionByHash", tx_hash)
    assert (found["blockHash"], found["blockNumber"]) == (None, "0x3")


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
async def test_by_default_only_a_mined_transaction_has_a_receipt(
    make_caller: MakeCaller, node: FakeNode, dialect: str
) -> None:
    tx_hash = "0x" + TRANSACTION.hash.hex()
    caller = make_caller(node, dialect=dialect)
    assert await caller.result("eth_getTransactionReceipt", tx_hash) is None
    found = await caller.result("eth_getTransactionByHash", tx_hash)
    assert (found["blockHash"], found["blockNumber"], found["transactionIndex"]) == (None,) * 3
    (asked_for,) = await caller.result("eth_getBlockReceipts", "pending")
    assert asked_for["preconfirmed"] is True
    block = node.chain.blocks[-1]
    node.chain.blocks.append(type(block)(header(3, parent_hash=block.hash), (TRANSACTION,)))
    node.chain.receipts[node.chain.head.hash] = (RECEIPT,)
    receipt = await caller.result("eth_getTransactionReceipt", tx_hash)
    assert receipt["blockNumber"] == "0x3"
    assert "preconfirmed" not in receipt


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
async def test_a_listener_may_choose_which_receipts_it_gives(
    make_caller: MakeCaller, node: FakeNode, dialect: str
) -> None:
    tx_hash = "0x" + TRANSACTION.hash.hex()
    for receipts, given in (("canonical", False), ("preconfirmed", True)):
        caller = make_caller(node, dialect=dialect, receipts=receipts)
        found = await caller.result("eth_getTransactionReceipt", tx_hash)
        assert (found is not None) is given
        found = await caller.result("eth_getTransactionByHash", tx_hash)
        assert found["blockNumber"] == ("0x3" if given else None)


async def test_the_canonical_block_wins_over_the_pending_one(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    sealed = FakeChain([*node.chain.blocks])
    block = node.chain.blocks[-1]
    sealed.blocks.append(type(block)(header(3, parent_hash=block.hash), (TRANSACTION,)))
    sealed.receipts[sealed.head.hash] = (RECEIPT,)
    node.chain = sealed
    receipt = await make_caller(node).result(
        "eth_getTransactionReceipt", "0x" + TRANSACTION.hash.hex()
    )
    assert receipt["blockHash"] == "0x" + sealed.head.hash.hex()


async def test_uncles_are_blocks_without_transactions(make_caller: MakeCaller) -> None:
    caller = make_caller(FakeNode(FakeChain(recorded_blocks())))
    assert await caller.result("eth_getUncleCountByBlockNumber", "0x3") == "0x1"
    block = await caller.result("eth_getBlockByNumber", "0x3")
    assert await caller.result("eth_getUncleCountByBlockHash", block["hash"]) == "0x1"
    uncle = await caller.result("eth_getUncleByBlockNumberAndIndex", "0x3", "0x0")
    assert uncle["hash"] == block["uncles"][0]
    assert uncle["uncles"] == []
    assert "transactions" not in uncle
    by_hash = await caller.result("eth_getUncleByBlockHashAndIndex", block["hash"], "0x0")
    assert by_hash == uncle


async def test_node_facts(make_caller: MakeCaller) -> None:
    caller: Caller = make_caller(
        FakeNode(chain_of(3), accounts=(SimpleNamespace(address=A, private_key=bytes(32)),)),
        simulator=FakeSimulator(),
    )
    assert await caller.result("web3_clientVersion") == "fastevm/test"
    assert await caller.result("net_version") == "3503995874084926"
    assert await caller.result("net_listening") is True
    assert await caller.result("eth_accounts") == ["0x" + A.hex()]
    assert (await caller.result("web3_sha3", "0x")).startswith("0xc5d2460186f7233c")
    modules = await caller.result("rpc_modules")
    assert {"eth", "net", "web3", "txpool", "debug"} <= modules.keys()
    found = await caller.result("eth_capabilities")
    assert found["head"]["number"] == "0x2"
    assert found["state"] == found["stateproofs"] == {"disabled": False, "oldestBlock": "0x1"}
    assert found["blocks"] == found["logs"] == {"disabled": False, "oldestBlock": "0x0"}
