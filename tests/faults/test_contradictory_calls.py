"""Tests that call objects whose members contradict each other get an error."""

import re
import sys
from collections.abc import Iterator
from itertools import combinations
from subprocess import run
from typing import Any

import pytest

from fastevm.bench.node.launch import NodeProcess, ServerThread, fastevm_node
from fastevm.node import dev_node
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal

TO = "0x" + "11" * 20
WRONG_CHAIN = {"to": TO, "chainId": "0x1"}
TWO_FEES = {"to": TO, "gasPrice": "0x1", "maxFeePerGas": "0x1"}
CALLS = {
    "wrong chain id": (WRONG_CHAIN, "chainId does not match"),
    "both kinds of fees": (TWO_FEES, "both gasPrice and"),
}


def parameters(method: str, call: dict[str, str]) -> list[Any]:
    if method == "eth_callMany":
        return [[{"transactions": [call]}], {"blockNumber": "latest"}]
    if method == "trace_call":
        return [call, ["trace"], "latest"]
    if method == "eth_simulateV1":
        return [{"blockStateCalls": [{"calls": [call]}]}, "latest"]
    if method == "trace_callMany":
        return [[[call, ["trace"]]], "latest"]
    return [call, "latest"]


METHODS = (
    "eth_call",
    "eth_estimateGas",
    "eth_createAccessList",
    "eth_callMany",
    "eth_simulateV1",
    "debug_traceCall",
    "trace_call",
    "trace_callMany",
)


@pytest.fixture(scope="module", params=["preconf", "geth"])
def node(request: pytest.FixtureRequest) -> Iterator[NodeProcess]:
    """Provides a node in a separate process, so that a crash fails only the test."""
    with fastevm_node("--dialect", request.param) as process:
        yield process


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("method", METHODS)
def test_the_node_answers_with_the_reason_and_goes_on(
    node: NodeProcess, method: str, name: str
) -> None:
    call, words = CALLS[name]
    with pytest.raises(RpcRefusal, match=words):
        node.ask(method, *parameters(method, call))
    assert node.ask("eth_chainId") == "0x7a69"


@pytest.mark.parametrize("name", CALLS)
def test_a_local_node_answers_likewise(name: str) -> None:
    call, words = CALLS[name]
    program = (
        "from fastevm.integrations.local_node import LocalNode\n"
        "with LocalNode('node') as node:\n"
        f"    print(node.request('eth_call', [{call!r}, 'latest']))\n"
    )
    ran = run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode >= 0, "the process was killed by a signal"
    assert words in ran.stdout + ran.stderr


# Members of a transfer. Some are invalid, and some are invalid together with another member.
TRANSFER_MEMBERS = [
    ("chainId", "0x1"),
    ("chainId", "0x7a69"),
    ("gasPrice", "0x1"),
    ("gasPrice", "0x77359400"),
    ("maxFeePerGas", "0x1"),
    ("maxFeePerGas", "0x77359400"),
    ("maxPriorityFeePerGas", "0x2"),
    ("maxPriorityFeePerGas", "0xb2d05e00"),
    ("value", "0x1"),
    ("nonce", "0x0"),
    ("nonce", "0xffffffffffffffff"),
    ("accessList", []),
    ("accessList", [{"address": TO, "storageKeys": []}]),
    ("blobVersionedHashes", ["0x01" + "00" * 31]),
    ("blobVersionedHashes", ["0x02" + "00" * 31]),
    ("maxFeePerBlobGas", "0x0"),
    ("authorizationList", []),
    ("to", "0x" + "00" * 19 + "04"),
]


def refusal(client: JsonRpcClient, method: str, *params: Any) -> tuple[int, str] | None:
    """Returns the request's error, without the supplied gas in its text, or None."""
    try:
        client.call(method, *params)
    except RpcRefusal as error:
        return error.code, re.sub(r" \(supplied gas \d+\)", "", error.message)
    return None


def test_an_estimate_of_a_transfer_on_a_development_node_makes_the_checks_of_a_call() -> None:
    """Unfunded senders are estimated, as anvil does. All other errors are those of eth_call."""
    poor, rich = "0x" + "ee" * 20, {"0x" + "ee" * 20: {"balance": hex(10**30)}}
    refused = 0
    with (
        ServerThread(dev_node(), development=True) as server,
        server.client("geth") as client,
    ):
        for pair in combinations(TRANSFER_MEMBERS, 2):
            call = {"from": poor, "to": TO} | dict(pair)
            has_lists = call.get("accessList") or call.get("blobVersionedHashes")
            state = rich if has_lists else {}
            found = refusal(client, "eth_estimateGas", call, "latest", state)
            assert found == refusal(client, "eth_call", call, "latest", rich), call
            refused += found is not None
        assert client.call("eth_estimateGas", {"from": poor, "to": TO, "value": "0x1"}) == "0x5208"
    assert refused > len(TRANSFER_MEMBERS)
