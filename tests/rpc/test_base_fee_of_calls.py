"""Tests what BASEFEE returns in calls without a gas price, in both dialects."""

from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.keccak import keccak256
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.max_wait import MAX_WAIT

# returns BASEFEE; used as code of an account and as a program of its own
PROGRAM = "0x485f5260205ff3"
AT = "0x" + "c0" * 20
ORACLE = "0x420000000000000000000000000000000000000f"
OVERRIDES = {AT: {"code": PROGRAM}}


def asked(live: ServerThread, dialect: str, method: str, *params: Any) -> Any:
    with JsonRpcClient(live.url(dialect), timeout=MAX_WAIT) as client:
        return client.call(method, *params)


def base_fee(live: ServerThread) -> int:
    fee = int(asked(live, "geth", "eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
    assert fee > 0
    return fee


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
def test_a_call_without_a_price(live: ServerThread, dialect: str) -> None:
    wanted = base_fee(live) if dialect == "preconf" else 0
    creation = asked(live, dialect, "eth_call", {"input": PROGRAM}, "latest")
    assert int(creation, 16) == wanted
    overridden = asked(live, dialect, "eth_call", {"to": AT}, "latest", OVERRIDES)
    assert int(overridden, 16) == wanted
    config = {"tracer": "callTracer", "stateOverrides": OVERRIDES}
    trace = asked(live, dialect, "debug_traceCall", {"to": AT}, "latest", config)
    assert int(trace["output"], 16) == wanted
    bundle = {"transactions": [{"input": PROGRAM}]}
    ((many,),) = asked(live, dialect, "eth_callMany", [bundle])
    assert int(many["value"], 16) == wanted
    replayed = asked(live, dialect, "trace_call", {"input": PROGRAM}, ["trace"], "latest")
    assert int(replayed["output"], 16) == wanted


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
def test_a_call_with_a_price(live: ServerThread, dialect: str) -> None:
    fee = base_fee(live)
    rich = {"0x" + "00" * 20: {"balance": hex(10**24)}}
    call = {"input": PROGRAM, "gas": "0x186a0", "maxFeePerGas": hex(2 * fee)}
    assert int(asked(live, dialect, "eth_call", call, "latest", rich), 16) == fee


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
def test_the_overridden_base_fee(live: ServerThread, dialect: str) -> None:
    wanted = 5 if dialect == "preconf" else 0
    found = asked(live, dialect, "eth_call", {"input": PROGRAM}, "latest", {}, {"baseFee": "0x5"})
    assert int(found, 16) == wanted


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
def test_estimates_and_access_lists(live: ServerThread, dialect: str) -> None:
    """The code reads a slot only if BASEFEE is not zero."""
    reads_slot = {AT: {"code": "0x4815600957600154505b00"}}
    listed = asked(live, dialect, "eth_createAccessList", {"to": AT}, "latest", reads_slot)
    assert len(listed["accessList"]) == (1 if dialect == "preconf" else 0)
    estimate = int(asked(live, dialect, "eth_estimateGas", {"to": AT}, "latest", reads_slot), 16)
    assert (estimate > 23_000) == (dialect == "preconf")


@pytest.mark.parametrize("getter", ["baseFee()", "gasPrice()"])
@pytest.mark.parametrize("development", [False, True])
def test_the_oracle_of_an_op_stack_chain(getter: str, development: bool) -> None:
    """Wallets call the gas price oracle without a gas price, and it returns BASEFEE."""
    node = dev_node(op_fork="jovian", mining=Mining.MANUAL)
    node.mine(1)
    data = hex_bytes(keccak256(getter.encode())[:4])
    dialects = ("preconf", "geth") if development else ("preconf",)
    with ServerThread(node, development=development) as server:
        for dialect in dialects:
            found = asked(server, dialect, "eth_call", {"to": ORACLE, "data": data}, "latest")
            assert int(found, 16) == node.chain.head.header.base_fee_per_gas
