"""Call objects whose members contradict each other get an error, and the node goes on."""

import sys
from collections.abc import Iterator
from subprocess import run
from typing import Any

import pytest

from fastevm.bench.node.launch import NodeProcess, fastevm_node
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
    """A node in a process of its own: a crash there fails the test and not the test runner."""
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
