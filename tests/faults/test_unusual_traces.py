"""Tests that traces of calls with extreme numbers return a result or an error."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fastevm import EVM, Layer
from fastevm.bench.node.launch import server_of
from fastevm.bench.programs.loops import LOOP_CODE, LOOPED
from fastevm.node import dev_node
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Server
from tests.faults.test_greedy_clients import ask, client

LAST_NONCE = 2**64 - 1  # An account with this nonce cannot create contracts (EIP-2681).
SENDER = "0x" + "5e" * 20
CREATOR = "0x" + "c0" * 20
CREATE = "0x5f5f5ff000"  # creates an empty contract
HEAVY_CALLS = 800
TRACERS: list[dict[str, Any]] = [
    {},
    {"tracer": "callTracer", "tracerConfig": {"withLog": True}},
    {"tracer": "flatCallTracer"},
    {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}},
    {"tracer": "4byteTracer"},
    {"tracer": "erc7562Tracer"},
    {"tracer": "muxTracer", "tracerConfig": {"callTracer": {}, "prestateTracer": {}}},
]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = server_of(dev_node(), limits=Limits(call_time=1.0), threads=2)
    await made.start()
    yield made
    await made.stop()


async def test_hundreds_of_heavy_calls_end_with_the_limit_that_they_share(server: Server) -> None:
    """The gas limits add up to more than 64 bits, the time limits to more than a second."""
    heavy = {"to": LOOPED, "gas": hex(2**63)}
    async with client() as session:
        code = await ask(session, server, "anvil_setCode", LOOPED, LOOP_CODE)
        assert "error" not in code
        calls = [[heavy, ["trace"]]] * HEAVY_CALLS
        answer = await ask(session, server, "trace_callMany", calls, "latest")
        assert answer["error"]["code"] == -32000
        assert "handler" not in answer["error"]["message"]
        assert (await ask(session, server, "eth_blockNumber"))["result"]


@pytest.mark.parametrize("config", TRACERS, ids=lambda config: config.get("tracer", "steps"))
async def test_a_creation_that_never_starts_is_traced(
    server: Server, config: dict[str, Any]
) -> None:
    state = {
        SENDER: {"nonce": hex(LAST_NONCE), "balance": "0xde0b6b3a7640000"},
        CREATOR: {"nonce": hex(LAST_NONCE), "code": CREATE},
    }
    async with client() as session:
        for call in ({"from": SENDER, "data": CREATE}, {"from": SENDER, "to": CREATOR}):
            options = [call, "latest", {**config, "stateOverrides": state}]
            answer = await ask(session, server, "debug_traceCall", *options)
            code = answer.get("error", {}).get("code")
            assert code in (None, -32000), answer


@pytest.mark.parametrize("trace", ["calls", "steps", "prestate", "diff", "access_list"])
def test_a_machine_traces_a_creation_that_never_starts(trace: str) -> None:
    evm = EVM(state=Layer.of({CREATOR: {"nonce": LAST_NONCE, "code": CREATE}}))
    assert evm.call(CREATOR, trace=trace).success


@pytest.mark.parametrize("trace", ["prestate", "access_list", "erc7562Tracer", "steps", "calls"])
def test_a_transaction_without_a_frame_follows_a_call_that_an_exception_ended(trace: str) -> None:
    def fail(data: bytes, gas: int) -> bytes:
        raise ZeroDivisionError

    evm = EVM("osaka", unchecked=("nonce",))
    evm.set_account(SENDER, balance=10**20, nonce=LAST_NONCE)
    evm.precompiles[CREATOR] = fail
    with pytest.raises(ZeroDivisionError):
        evm.call(CREATOR)
    result = evm.transact(None, b"\0", sender=SENDER, gas=100_000, trace=trace)
    assert result.error == "nonce uint64 overflow"
    assert CREATOR not in str(result.trace)
