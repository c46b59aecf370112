"""Tests a method of each namespace on a node, so that `make check` notices a broken node."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from fastevm.integrations.local_node import LocalNode
from fastevm.rpc.dev.command import COMPATIBLE
from fastevm.rpc.dispatch.registry import METHODS, namespace_of
from fastevm.rpc.transport.server import client_version

PAYER: Final = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
CODE: Final = "0x" + "c0" * 20
CALL: Final = {"from": PAYER, "to": CODE}
SENT: Final = "hash of the transaction"
CLIENT: Final = f"{COMPATIBLE} ({client_version()})"

ANSWERS: Final[dict[str, tuple[list[Any], Any]]] = {
    "anvil_setBalance": ([CODE, "0x5"], None),
    "debug_traceTransaction": ([SENT, {"tracer": "callTracer", "config": {}}], {"type": "CALL"}),
    "eth_call": ([CALL, "latest"], "0x" + f"{42:064x}"),
    "erigon_getHeaderByNumber": (["0x0"], {"number": "0x0", "gasUsed": "0x0"}),
    "evm_snapshot": ([], "0x1"),
    "fastevm_explainTransaction": ([SENT], {"console": [], "source": []}),
    "hardhat_setNonce": ([CODE, "0x9"], True),
    "miner_start": ([], True),
    "net_version": ([], "31337"),
    "optimism_version": ([], CLIENT),
    "ots_getApiLevel": ([], 8),
    "personal_listAccounts": ([], [PAYER.lower()]),
    "rpc_modules": ([], {"eth": "1.0"}),
    "tenderly_addBalance": ([CODE, "0x5"], None),
    "testing_timeTravel": ([hex(2**40)], None),
    "trace_transaction": ([SENT], None),
    "txpool_status": ([], {"pending": "0x0", "queued": "0x0"}),
    "web3_sha3": (["0x"], "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
}
"""Method -> its parameters, and its result or some members of it."""


@pytest.fixture(scope="module")
def node() -> Iterator[LocalNode]:
    with LocalNode(accounts=1) as made:
        made.request("anvil_setCode", [CODE, "0x602a5f5260205ff3"])  # returns 42
        yield made


@pytest.mark.parametrize("method", ANSWERS)
def test_a_method_of_each_namespace_answers(node: LocalNode, method: str) -> None:
    params, expected = ANSWERS[method]
    sent = node.request("eth_sendTransaction", [CALL]) if SENT in params else None
    found = node.request(method, [sent if value == SENT else value for value in params])
    if isinstance(expected, dict):
        assert found.items() >= expected.items()
    elif method == "trace_transaction":
        assert [item["transactionHash"] for item in found] == [sent]
    else:
        assert found == expected


def test_every_namespace_is_called() -> None:
    called = {*map(namespace_of, ANSWERS), namespace_of("eth_sendTransaction")}
    assert called == set(map(namespace_of, METHODS))
