"""Tests gas estimates of native tokens: SSTORE needs more than 2300 gas left (EIP-2200)."""

from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, forked_node
from fastevm.node.remote.options import ForkOptions
from tests.max_wait import MAX_WAIT
from tests.rpc.base.chain import STABLECOIN, Base, call_data


@pytest.fixture
def transfer(base: Base) -> dict[str, Any]:
    """Provides a transfer of 0 tokens.

    Its last SSTORE changes nothing, so it costs less than the gas that must be left for it.
    """
    data = call_data("transfer(address,uint256)", base.user, 0)
    return {"from": base.owner, "to": base.token(STABLECOIN), "input": hex_bytes(data)}


def estimate_of(base: Base, call: dict[str, Any]) -> int:
    return int(base.client.call("eth_estimateGas", call, "pending"), 16)


def test_an_estimate_covers_the_reserve_of_the_last_write(
    base: Base, transfer: dict[str, Any]
) -> None:
    data = bytes.fromhex(transfer["input"][2:])
    estimate = estimate_of(base, transfer)
    enough = base.submit(base.owner, transfer["to"], data, gas=estimate).fields
    used = int(enough["gasUsed"], 16)
    assert (enough["status"], used < estimate) == ("0x1", True)
    short = base.submit(base.owner, transfer["to"], data, gas=used).fields
    assert (short["status"], short["logs"]) == ("0x0", [])


def test_a_fork_of_the_chain_estimates_the_same(base: Base, transfer: dict[str, Any]) -> None:
    expected = estimate_of(base, transfer)
    code = ("eth_getCode", transfer["to"], "latest")
    wait_for(lambda: base.client.call(*code) == "0xef", MAX_WAIT, "the token is in no block")
    url = base.client.url
    node = forked_node(ForkOptions(urls=(url,), cache=False), accounts=0, mining=Mining.MANUAL)
    with ServerThread(node) as server, server.client() as here:
        assert int(here.call("eth_estimateGas", transfer, "latest"), 16) == expected
