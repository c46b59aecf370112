"""Tests that a number which does not fit into its field causes an error."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.messages import request_body

CALL = {"to": "0x" + "00" * 20}
TOO_LARGE = [
    ("debug_traceCall", [CALL, "latest", {"limit": 2**64}]),
    ("debug_traceCall", [CALL, "latest", {"limit": 2**63}]),
    ("debug_traceCall", [CALL, "latest", {"blockOverrides": {"number": hex(2**64)}}]),
    ("debug_traceCall", [CALL, "latest", {"txIndex": hex(2**64)}]),
    ("eth_call", [CALL, "latest", {}, {"number": hex(2**64)}]),
    ("eth_call", [CALL, "latest", {}, {"time": hex(2**64)}]),
    ("eth_call", [CALL, "latest", {}, {"gasLimit": hex(2**64)}]),
    ("eth_estimateGas", [CALL, "latest", {}, {"number": hex(2**64)}]),
    ("eth_createAccessList", [CALL, "latest", {}, {"number": hex(2**64)}]),
    ("eth_feeHistory", ["9" * 4_301, "latest", []]),
    ("eth_feeHistory", [2**64, "latest", []]),
    ("eth_feeHistory", ["0x1", "latest", [10**309]]),
    ("eth_feeHistory", ["0x1", "latest", [-(10**309)]]),
    ("anvil_mine", [1, 2**63]),
    ("anvil_mine", [2**63, 1]),
    ("evm_mine", [2**64 - 1]),
    ("evm_mine", [{"timestamp": 2**63}]),
    ("evm_increaseTime", [2**63]),
    ("evm_increaseTime", [2**64 - 1]),
    ("evm_setNextBlockTimestamp", [2**64 - 1]),
    ("evm_setNextBlockTimestamp", [2**63]),
    ("anvil_setNonce", ["0x" + "01" * 20, 2**64 - 1]),
    ("eth_sendRawTransactionSync", ["0x01", 10**400]),
    ("eth_getBlockByNumber", [hex(2**63), False]),
    ("eth_getLogs", [{"fromBlock": hex(2**63)}]),
    ("eth_getTransactionByBlockNumberAndIndex", ["latest", hex(2**64)]),
]


@pytest.fixture(scope="module")
def still() -> Iterator[ServerThread]:
    """Provides a development chain that builds only on demand."""
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server:
        yield server


def ask(server: ServerThread, method: str, params: list[Any]) -> dict[str, Any]:
    with server.client("geth") as client:
        answer: dict[str, Any] = json.loads(client.send(request_body(method, params)))
    return answer


@pytest.mark.parametrize(("method", "params"), TOO_LARGE)
def test_a_number_that_nothing_holds_is_refused_with_words(
    still: ServerThread, method: str, params: list[Any]
) -> None:
    error = ask(still, method, params)["error"]
    assert error["code"] == -32602 and len(error["message"]) > 10
    assert "crashed" not in error["message"]


def test_a_chain_that_was_asked_for_the_impossible_goes_on(still: ServerThread) -> None:
    for method, params in TOO_LARGE:
        ask(still, method, params)
    before = int(ask(still, "eth_blockNumber", [])["result"], 16)
    assert ask(still, "evm_mine", [])["result"] == "0x0"
    assert int(ask(still, "eth_blockNumber", [])["result"], 16) == before + 1
