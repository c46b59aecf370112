"""Tests which transactions of a development node are mined on the event loop."""

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

import fastevm.simulate as simulate
from fastevm import Transaction
from fastevm import node as nodes
from fastevm.core.execution.transaction.sidecar import BlobSidecar, encode_pooled
from fastevm.core.primitives.keccak import keccak256
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.pool.kzg import TrustedSetup, find_trusted_setup
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport.server import Server

ALICE, BOB = dev_accounts(2)
TO = "0x" + BOB.address.hex()
LOOP = bytes.fromhex("5b600056")  # JUMPDEST PUSH1 0 JUMP
SPINNER = "0x" + "5e" * 20
POINT_AT_INFINITY = b"\xc0" + bytes(47)  # commitment to a blob of zeros, and its proof


class SpentBudget:
    """A `LoopBudget` that is spent as soon as it is read."""

    is_spent = True

    def run(self, call: Callable[..., Any], *args: Any) -> Any:
        deadline = simulate.Deadline()
        deadline.cancel()
        with deadline.active():
            return call(*args)

    def close(self) -> None:
        pass


def answered(
    *requests: tuple[str, Any, bool], setup: TrustedSetup | None = None, is_spent: bool = False
) -> list[Any]:
    """Sends requests and returns the answers.

    The last member of a request says whether it must run on the event loop. ``is_spent``: the
    loop's budget is spent when an estimate begins.
    """

    async def ask() -> list[Any]:
        node = nodes.dev_node(
            mining=nodes.Mining.INSTANT, allows_unprotected=True, trusted_setup=setup
        )
        server = Server(node, simulate, [])
        if is_spent:
            server.workers.loop_budget.close()
            server.workers.loop_budget = SpentBudget()  # type: ignore[assignment]
        dispatcher = server.dispatcher(DIALECTS["geth"])
        found = []
        try:
            for method, params, is_at_once in requests:
                request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                answer = dispatcher.respond(json.dumps(request).encode())
                assert isinstance(answer, bytes) == is_at_once, (method, params)
                text = answer if isinstance(answer, bytes) else await answer
                assert isinstance(text, bytes)
                said = json.loads(text)
                found.append(said.get("result", said.get("error", {}).get("message")))
        finally:
            await server.stop()
        return found

    return asyncio.run(ask())


def raw(nonce: int, gas: int) -> str:
    fields = {"nonce": nonce, "to": BOB.address, "value": 1, "gas_limit": gas, "gas_price": 10**10}
    return "0x" + Transaction.build(**fields).sign(ALICE.private_key, chain_id=31_337).raw.hex()


def receipt_of(sent: str) -> list[str]:
    return ["0x" + keccak256(bytes.fromhex(sent[2:])).hex()]


def payment(**more: str) -> list[dict[str, str]]:
    return [{"from": "0x" + ALICE.address.hex(), "to": TO, "value": "0x1", **more}]


def test_a_payment_is_mined_before_its_answer_without_a_thread() -> None:
    sent = raw(1, 21_000)
    first, reported, number, receipt = answered(
        ("eth_sendTransaction", payment(gas="0x5208"), True),
        ("eth_sendRawTransaction", [sent], True),
        ("eth_blockNumber", [], True),
        ("eth_getTransactionReceipt", receipt_of(sent), True),
    )
    assert (len(first), reported, number) == (66, *receipt_of(sent), "0x2")
    assert receipt["status"] == "0x1"


def test_much_gas_goes_to_a_worker() -> None:
    found = answered(
        ("eth_sendTransaction", payment(gas="0x7a121"), False),
        ("eth_sendRawTransaction", [raw(1, 500_001)], False),
        ("eth_blockNumber", [], True),
    )
    assert found[-1] == "0x2"


def test_an_estimate_that_lasts_goes_to_a_worker() -> None:
    code = "0x" + LOOP.hex()
    found = answered(
        ("anvil_setCode", [SPINNER, code], True),
        ("eth_sendTransaction", payment(to=SPINNER), False),
        ("eth_blockNumber", [], True),
        is_spent=True,
    )
    assert "gas" in found[1]  # no amount of gas is enough
    assert found[2] == "0x0"


def test_what_frees_waiting_transactions_goes_to_a_worker() -> None:
    found = answered(
        # waits, because the previous nonce is missing
        ("eth_sendRawTransaction", [raw(1, 21_000)], True),
        ("eth_sendTransaction", payment(nonce="0x0"), False),
        ("eth_blockNumber", [], True),
    )
    assert found[-1] == "0x2"


def test_blobs_and_other_chains_are_refused_before_anything_runs() -> None:
    found = answered(
        ("eth_sendTransaction", payment(chainId="0x2"), True),
        ("eth_sendTransaction", [{"from": "0x" + "77" * 20, "to": TO}], True),
        ("eth_blockNumber", [], True),
    )
    assert "chain" in found[0]
    assert "account" in found[1]
    assert found[2] == "0x0"


def blob() -> tuple[Transaction, str]:
    """Returns a transaction with a blob of zeros, and its encoding with the sidecar."""
    transaction = Transaction.build(
        to=BOB.address, gas_limit=21_000, max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
        max_fee_per_blob_gas=10**9, chain_id=31_337,
        blob_versioned_hashes=[b"\x01" + sha256(POINT_AT_INFINITY).digest()[1:]],
    ).sign(ALICE.private_key)  # fmt: skip
    proofs = (POINT_AT_INFINITY,) * 128
    sidecar = BlobSidecar(1, (bytes(131_072),), (POINT_AT_INFINITY,), proofs)
    return transaction, "0x" + encode_pooled(transaction, sidecar).hex()


def test_a_blob_comes_with_its_sidecar_and_goes_to_a_worker() -> None:
    setup = find_trusted_setup()
    if setup is None:
        pytest.skip("no trusted setup is installed")
    transaction, sent = blob()
    reported, number = answered(
        ("eth_sendRawTransaction", [sent], False), ("eth_blockNumber", [], True), setup=setup
    )
    assert (reported, number) == ("0x" + transaction.hash.hex(), "0x1")


def test_a_node_without_a_trusted_setup_names_the_remedy() -> None:
    _, sent = blob()
    (refusal,) = answered(("eth_sendRawTransaction", [sent], False))
    assert "install fastevm[blobs]" in refusal
    assert "--trusted-setup" in refusal and "FASTEVM_TRUSTED_SETUP" in refusal
