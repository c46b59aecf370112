"""Tests account reads by block: canonical, historical, pending, unknown."""

from types import SimpleNamespace
from typing import Any

import pytest

from fastevm.core.execution.types import Block
from fastevm.core.state.layer import Layer

from .conftest import Caller, MakeCaller
from .fakes import FakeNode, FakePending, chain_of, header

A = b"\xaa" * 20
TEXT = "0x" + "aa" * 20
ACCOUNT = {"balance": 1000, "nonce": 5, "code": b"\x60\x00", "storage": {1: 7, 2**255: 1}}


@pytest.fixture
def node() -> FakeNode:
    """Returns a node with an account in its head. Older blocks are empty."""
    return FakeNode(chain_of(3, {A: ACCOUNT}))


@pytest.fixture
def caller(node: FakeNode, make_caller: MakeCaller) -> Caller:
    return make_caller(node)


def hash_of(node: FakeNode, number: int) -> str:
    return "0x" + node.chain.blocks[number].hash.hex()


def pre_confirm(node: FakeNode, **account: Any) -> None:
    node.pending_block = FakePending(
        header=header(3, parent_hash=node.chain.head.hash),
        layer=Layer.of({A: {**ACCOUNT, **account}}),
        transactions=(),
        receipts=(),
    )


async def test_an_account_of_the_latest_state(caller: Caller) -> None:
    assert await caller.result("eth_getBalance", TEXT, "latest") == "0x3e8"
    assert await caller.result("eth_getTransactionCount", TEXT, "latest") == "0x5"
    assert await caller.result("eth_getCode", TEXT, "latest") == "0x6000"
    assert await caller.result("eth_getStorageAt", TEXT, "0x1", "latest") == f"0x{7:064x}"


async def test_every_form_of_selector_reaches_its_block(caller: Caller, node: FakeNode) -> None:
    for selector, balance in [
        ("latest", "0x3e8"),
        ("safe", "0x3e8"),
        ("finalized", "0x3e8"),
        ("pending", "0x3e8"),
        ("earliest", "0x0"),
        ("0x2", "0x3e8"),
        ("0x1", "0x0"),
        (hash_of(node, 2), "0x3e8"),
        ({"blockNumber": "0x2"}, "0x3e8"),
        ({"blockHash": hash_of(node, 1)}, "0x0"),
        ({"blockHash": hash_of(node, 2), "requireCanonical": True}, "0x3e8"),
    ]:
        assert await caller.result("eth_getBalance", TEXT, selector) == balance, selector


async def test_pending_sees_the_pre_confirmed_state(caller: Caller, node: FakeNode) -> None:
    pre_confirm(node, balance=1, nonce=9, code=b"\x00", storage={1: 8})
    assert await caller.result("eth_getBalance", TEXT, "pending") == "0x1"
    assert await caller.result("eth_getTransactionCount", TEXT, "pending") == "0x9"
    assert await caller.result("eth_getCode", TEXT, "pending") == "0x00"
    assert await caller.result("eth_getStorageAt", TEXT, "0x1", "pending") == f"0x{8:064x}"
    assert await caller.result("eth_getBalance", TEXT, "latest") == "0x3e8"


async def test_the_pending_nonce_counts_what_waits_and_can_be_executed(
    caller: Caller, node: FakeNode
) -> None:
    waiting = SimpleNamespace(hash=bytes(32))
    node.pool.waiting[A] = {9: waiting}  # waits behind a nonce gap
    assert await caller.result("eth_getTransactionCount", TEXT, "pending") == "0x5"
    node.pool.ready[A] = {5: waiting, 6: waiting}
    assert await caller.result("eth_getTransactionCount", TEXT, "pending") == "0x7"
    assert await caller.result("eth_getTransactionCount", TEXT, "latest") == "0x5"
    pre_confirm(node, nonce=8)
    assert await caller.result("eth_getTransactionCount", TEXT, "pending") == "0x8"


@pytest.mark.parametrize(("receipts", "latest"), [("canonical", "0x5"), ("preconfirmed", "0x8")])
async def test_the_latest_nonce_counts_every_transaction_that_has_a_receipt(
    node: FakeNode, make_caller: MakeCaller, receipts: str, latest: str
) -> None:
    caller = make_caller(node, receipts=receipts)
    pre_confirm(node, nonce=8)
    node.pool.ready[A] = {8: SimpleNamespace(hash=bytes(32))}  # has no receipt yet
    assert await caller.result("eth_getTransactionCount", TEXT, "latest") == latest
    assert await caller.result("eth_getTransactionCount", TEXT, "0x2") == "0x5"
    assert await caller.result("eth_getTransactionCount", TEXT, "pending") == "0x9"


async def test_unknown_blocks_are_errors(caller: Caller) -> None:
    assert await caller.error("eth_getBalance", TEXT, "0x3") == (-32000, "header not found")
    assert await caller.error("eth_getBalance", TEXT, "0x" + "11" * 32) == (
        -32000,
        "header for hash not found",
    )


async def test_a_side_block_is_served_unless_canonical_is_required(
    caller: Caller, node: FakeNode
) -> None:
    side = Block(header(2, extra_data=b"side"))
    node.chain.side_blocks.append(side)
    selector = {"blockHash": "0x" + side.hash.hex()}
    assert await caller.result("eth_getBalance", TEXT, selector) == "0x0"
    assert await caller.error("eth_getBalance", TEXT, selector | {"requireCanonical": True}) == (
        -32000,
        "hash is not currently canonical",
    )


@pytest.mark.parametrize(
    ("method", "params", "position"),
    [
        ("eth_call", [{"to": TEXT}], 1),
        ("eth_simulateV1", [{"blockStateCalls": [{}]}], 1),
        ("eth_getStorageAt", [TEXT, "0x0"], 2),
        ("eth_getTransactionCount", [TEXT], 1),
    ],
)
async def test_the_block_is_required_in_the_default_dialect_only(
    make_caller: MakeCaller, node: FakeNode, method: str, params: list[Any], position: int
) -> None:
    for given in (params, [*params, None]):
        assert await make_caller(node).error(method, *given) == (
            -32602,
            f"missing value for required argument {position}",
        )
        answer = await make_caller(node, dialect="geth").ask(method, *given)
        assert answer.get("error", {}).get("code") != -32602


@pytest.mark.parametrize(
    ("position", "value"),
    [("0x1", 7), ("0x01", 7), ("1", 7), (f"0x{1:064x}", 7), (f"0x{2**255:x}", 1), ("0x2", 0)],
)
async def test_a_position_may_have_any_length(caller: Caller, position: str, value: int) -> None:
    answer = await caller.result("eth_getStorageAt", TEXT, position, "latest")
    assert answer == f"0x{value:064x}"


async def test_a_bad_position_is_named(caller: Caller) -> None:
    assert await caller.error("eth_getStorageAt", TEXT, "0xasdf", "latest") == (
        -32602,
        'invalid hex in storage key: "0xasdf"',
    )


async def test_slots_of_several_accounts(caller: Caller) -> None:
    other = "0x" + "00" * 20
    answer = await caller.result("eth_getStorageValues", {TEXT: ["0x1", "0x2"], other: ["0x1"]})
    assert answer == {TEXT: [f"0x{7:064x}", f"0x{0:064x}"], other: [f"0x{0:064x}"]}
    assert await caller.error("eth_getStorageValues", {}) == (-32602, "empty request")
    assert await caller.error("eth_getStorageValues", {TEXT: ["0x1"] * 1025}) == (
        -38026,
        "too many slots (max 1024)",
    )


async def test_a_proof_names_keys_as_they_were_given(caller: Caller) -> None:
    full = f"0x{1:064x}"
    proof = await caller.result("eth_getProof", TEXT, ["0x01", full, "0x5"], "latest")
    assert [entry["key"] for entry in proof["storageProof"]] == ["0x1", full, "0x5"]
    assert [entry["value"] for entry in proof["storageProof"]] == ["0x7", "0x7", "0x0"]
    assert proof["balance"] == "0x3e8"
    assert proof["nonce"] == "0x5"
    assert proof["accountProof"]
    assert await caller.error("eth_getProof", TEXT, ["0x1"] * 1025) == (
        -32602,
        "too many storage keys requested (max 1024, got 1025)",
    )


async def test_the_proof_of_a_missing_account_has_zero_values(caller: Caller) -> None:
    proof = await caller.result("eth_getProof", "0x" + "00" * 20, ["0x1"], "latest")
    assert (proof["balance"], proof["nonce"]) == ("0x0", "0x0")
    assert proof["storageProof"] == [{"key": "0x1", "value": "0x0", "proof": []}]
