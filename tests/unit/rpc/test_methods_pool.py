"""Tests the methods that submit transactions, and those that show the pool's content."""

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction, TransactionDecodeError
from fastevm.rpc.dispatch.long_answer import PIECE, LongAnswer
from fastevm.rpc.methods.pool import pool_content

from .conftest import MakeCaller
from .fakes import FakeNode, chain_of

A = bytes.fromhex("5aaeb6053f3e94c9b9a09f33669435e7ef1beaed")
LEGACY = Transaction.build(sender=A, gas_price=7, gas_limit=21_000, to=A, nonce=3)
DYNAMIC = Transaction.build(
    sender=A, max_fee_per_gas=9, max_priority_fee_per_gas=1, gas_limit=21_000, to=None, nonce=12
)


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode(chain_of(2))
    node.pool.ready[A] = {3: LEGACY}
    node.pool.waiting[A] = {12: DYNAMIC}
    return node


async def test_a_submission_returns_the_hash(make_caller: MakeCaller) -> None:
    node = FakeNode(chain_of(1), submission=b"\x11" * 32)
    assert await make_caller(node).result("eth_sendRawTransaction", "0x0102") == "0x" + "11" * 32
    assert node.submitted == [b"\x01\x02"]


@pytest.mark.parametrize(
    ("raised", "bare", "detailed"),
    [
        (
            InvalidTransaction("nonce_too_low", "nonce too low: next nonce 5, tx nonce 1"),
            "nonce too low",
            "nonce too low: next nonce 5, tx nonce 1",
        ),
        (
            InvalidTransaction("pool_full", "txpool is full"),
            "txpool is full",
            "txpool is full",
        ),
        (TransactionDecodeError("rlp: bad"), "rlp: bad", "rlp: bad"),
    ],
)
async def test_a_rejection_is_32000_with_the_wording_of_the_dialect(
    make_caller: MakeCaller, raised: Exception, bare: str, detailed: str
) -> None:
    node = FakeNode(chain_of(1), submission=raised)
    for dialect, message in (("preconf", bare), ("geth", detailed)):
        caller = make_caller(node, dialect=dialect)
        assert await caller.error("eth_sendRawTransaction", "0x01") == (-32000, message)


async def test_undecodable_hex_never_reaches_the_pool(make_caller: MakeCaller) -> None:
    caller = make_caller()
    code, message = await caller.error("eth_sendRawTransaction", "0x1")
    assert code == -32602
    assert message.startswith("invalid argument 0: json: cannot unmarshal hex string of odd")
    assert caller.node.submitted == []


async def test_the_status_counts_both_kinds(make_caller: MakeCaller, node: FakeNode) -> None:
    answer = await make_caller(node).result("txpool_status")
    assert answer == {"pending": "0x1", "queued": "0x1"}


async def test_the_content_is_keyed_by_checksummed_sender_and_nonce(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    content = await make_caller(node).result("txpool_content")
    sender = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # an address from EIP-55's examples
    assert list(content["pending"]) == list(content["queued"]) == [sender]
    pooled = content["pending"][sender]["3"]
    places = ("blockHash", "blockNumber", "blockTimestamp", "transactionIndex")
    assert [pooled[name] for name in places] == [None] * 4
    assert pooled["gasPrice"] == "0x7"
    assert content["queued"][sender]["12"]["gasPrice"] == "0x9"


async def test_a_large_pool_is_reported_in_parts(make_caller: MakeCaller, node: FakeNode) -> None:
    waiting = {
        nonce: Transaction.build(
            sender=A, gas_price=7, gas_limit=9**9, to=A, nonce=nonce, data=bytes(16_384)
        )
        for nonce in range(100)
    }
    node.pool.waiting[A] = waiting
    caller = make_caller(node)
    content = await caller.result("txpool_content")
    assert next(iter(content["pending"].values()))["3"]["gasPrice"] == "0x7"
    queued = content["queued"]["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"]
    assert {name: item["input"] for name, item in queued.items()} == {
        str(nonce): "0x" + "00" * 16_384 for nonce in waiting
    }
    answer = pool_content(caller.context)
    assert isinstance(answer, LongAnswer)
    assert max(len(piece) for piece in answer.parts) < 2 * PIECE


async def test_the_content_of_one_sender(make_caller: MakeCaller, node: FakeNode) -> None:
    caller = make_caller(node)
    content = await caller.result("txpool_contentFrom", "0x" + A.hex())
    assert list(content["pending"]) == ["3"]
    assert list(content["queued"]) == ["12"]
    nobody = await caller.result("txpool_contentFrom", "0x" + "00" * 20)
    assert nobody == {"pending": {}, "queued": {}}


async def test_an_overview_has_a_line_for_each(make_caller: MakeCaller, node: FakeNode) -> None:
    shown = await make_caller(node).result("txpool_inspect")
    content = await make_caller(node).result("txpool_content")
    for part in ("pending", "queued"):
        assert shown[part].keys() == content[part].keys()
        for sender, by_nonce in content[part].items():
            for nonce, item in by_nonce.items():
                amount, gas, price = (int(item[key], 16) for key in ("value", "gas", "gasPrice"))
                line = f"{amount} wei + {gas} gas \u00d7 {price} wei"
                target, _, rest = shown[part][sender][nonce].partition(": ")
                assert rest == line
                assert target.lower() == (item["to"] or "contract creation")


async def test_pending_transactions_are_those_that_can_be_executed(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    (found,) = await make_caller(node).result("eth_pendingTransactions")
    assert found["nonce"] == "0x3"


async def test_a_pooled_transaction_is_found_by_sender_and_nonce(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    caller = make_caller(node)
    node.chain.layers[node.chain.head.hash] = Layer.empty()
    found = await caller.result("eth_getTransactionBySenderAndNonce", "0x" + A.hex(), "0x3")
    assert (found["hash"], found["blockHash"]) == ("0x" + LEGACY.hash.hex(), None)
    assert await caller.result("eth_getTransactionBySenderAndNonce", "0x" + A.hex(), "0x4") is None


async def test_a_pooled_transaction_is_found_by_hash(
    make_caller: MakeCaller, node: FakeNode
) -> None:
    caller = make_caller(node)
    found = await caller.result("eth_getTransactionByHash", "0x" + LEGACY.hash.hex())
    assert (found["blockHash"], found["nonce"]) == (None, "0x3")
    assert await caller.result("eth_getTransactionReceipt", "0x" + LEGACY.hash.hex()) is None
    raw = await caller.result("eth_getRawTransactionByHash", "0x" + LEGACY.hash.hex())
    assert raw == "0x" + LEGACY.raw.hex()
