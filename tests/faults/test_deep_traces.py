"""Tests traces as deep as the EVM allows, and traces that exceed the size limit."""

from typing import Any

import pytest
from web3 import Web3

from fastevm import EVM
from fastevm.errors import ResourceLimitError
from fastevm.integrations.local_node import LocalNode
from fastevm.integrations.web3 import FastevmProvider
from fastevm.tracing import evm_traces

DEEPEST = 1_024  # calls below the top frame
# Enough for 1,024 nested calls, of which each passes on at most 63/64 of its gas.
MUCH_GAS = 10**12
CONTRACT = "0x" + "aa" * 20
# increments slot 0, then calls itself
CODE = "0x5f54600101" + "5f55" + "5f5f5f5f5f305af150"


def machine() -> EVM:
    evm = EVM(gas_limit=10**13, unchecked=["gas_cap", "balance"])
    evm.set_code(CONTRACT, CODE)
    return evm


def depth_of(trace: Any) -> int:
    depth = 0
    while trace.get("calls"):
        (trace,) = trace["calls"]
        depth += 1
    return depth


@pytest.mark.parametrize("trace", [*evm_traces.NAMES, *evm_traces.OWN, "erc7562Tracer"])
@pytest.mark.parametrize("run", ["call", "transact", "commit"])
def test_the_deepest_calls_are_traced(trace: str, run: str) -> None:
    evm = machine()
    if run == "transact":
        result = evm.transact(CONTRACT, gas=MUCH_GAS, trace=trace)
    else:
        result = evm.call(CONTRACT, gas=MUCH_GAS, trace=trace, commit=run == "commit")
    assert result.success
    assert evm.storage(CONTRACT, 0) == (0 if run == "call" else DEEPEST + 1)
    if trace in ("calls", "erc7562Tracer"):
        # The deepest call fails, because the depth limit is 1,024.
        assert depth_of(result.trace) == DEEPEST + 1
    if trace == "flat":
        assert len(result.trace) == DEEPEST + 2


@pytest.mark.parametrize("run", ["call", "transact", "commit"])
@pytest.mark.parametrize("trace", ["calls", "diff"])
def test_a_trace_that_fails_keeps_no_change(
    monkeypatch: pytest.MonkeyPatch, run: str, trace: str
) -> None:
    def fails(self: Any, finished: Any) -> Any:
        raise RecursionError("too deep")

    monkeypatch.setattr(evm_traces.Wanted, "result", fails)
    evm = machine()
    evm.transient_storage = {}
    before = evm.state
    with pytest.raises(RecursionError):
        if run == "transact":
            evm.transact(CONTRACT, gas=MUCH_GAS, trace=trace)
        else:
            evm.call(CONTRACT, gas=MUCH_GAS, trace=trace, commit=run == "commit")
    assert evm.state is before
    assert evm.transient_storage == {}


def test_steps_that_are_too_many_name_the_options() -> None:
    evm = EVM(gas_limit=10**12)
    evm.set_code(CONTRACT, "0x5b5f56")  # loops
    before = evm.state
    with pytest.raises(ResourceLimitError, match=r"'limit': BYTES.*evm\.hooks") as found:
        evm.call(CONTRACT, gas=10**8, trace="steps", commit=True)
    assert found.value.limit == "trace"
    assert evm.state is before


def test_a_limit_of_steps_may_exceed_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evm_traces, "TRACE_BYTES_LIMIT", 1_000)
    monkeypatch.setattr(evm_traces, "STEP_BYTES", 1_000)
    evm = EVM()
    evm.set_code(CONTRACT, "0x5b5f56")
    with pytest.raises(ResourceLimitError):
        evm.call(CONTRACT, gas=10_000, trace="steps")
    steps = evm.call(CONTRACT, gas=100_000, trace={"steps": {"limit": 10_000}}).trace["steps"][
        "structLogs"
    ]
    assert len(steps) > 50


def test_deep_calls_over_a_node() -> None:
    """Asks the node directly and through web3.py's provider, whose own parser would fail."""
    parameters = [
        {"to": CONTRACT, "gas": hex(MUCH_GAS)},
        "latest",
        {"tracer": "callTracer", "stateOverrides": {CONTRACT: {"code": CODE}}},
    ]
    with LocalNode(rpc_gascap=MUCH_GAS) as node:
        assert depth_of(node.request("debug_traceCall", parameters)) == DEEPEST + 1
        w3 = Web3(FastevmProvider(node))
        answer = w3.provider.make_request("debug_traceCall", parameters)  # type: ignore[arg-type]
        assert depth_of(answer["result"]) == DEEPEST + 1
