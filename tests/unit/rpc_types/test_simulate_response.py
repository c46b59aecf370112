"""Tests answers of eth_simulateV1: calls, failures, full transactions and extensions."""

import json
from typing import Any

import pytest
from eth_abi import encode

from fastevm.core.state.layer import Layer
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate import ErrorForm, Plan, SimulateOptions, simulate_text, view_of

A, B = b"\xaa" * 20, b"\xbb" * 20
VIEW = view_of(Layer.of({A: {"balance": 10**18}}), gas_limit=10**6)
OPTIONS = SimulateOptions(zero_state_root=True, block_spacing=2)
REASON = bytes.fromhex("08c379a0") + encode(["string"], ["user error"])
RETURN_INPUT, REVERT_INPUT = (bytes.fromhex("365f5f37365f" + end) for end in ("f3", "fd"))


def answered(code: bytes, data: bytes, *, as_text: bool = False, **members: Any) -> Any:
    """Simulates a block with one call to ``code``. Returns the block of the response."""
    entry = {
        "stateOverrides": {B: {"code": code}},
        "calls": [{"from": A, "to": B, "data": data, "value": 1, "gas": 100_000}],
    }
    payload = payload_from({"blockStateCalls": [entry], "traceTransfers": True} | members)
    form = ErrorForm(as_text=as_text)
    (block,) = json.loads(simulate_text(VIEW, Plan.of(payload), OPTIONS, form))
    return block


def test_a_call_tells_output_gas_and_logs() -> None:
    block = answered(RETURN_INPUT, b"\xaa")
    (call,) = block["calls"]
    (log,) = call.pop("logs")
    assert (log["logIndex"], log["blockHash"]) == ("0x0", block["hash"])
    assert int(call.pop("gasUsed"), 16) <= int(call.pop("maxUsedGas"), 16)
    assert call == {"returnData": "0xaa", "status": "0x1"}
    assert len(block["transactions"][0]) == 66


def test_full_transactions_name_their_callers() -> None:
    block = answered(RETURN_INPUT, b"", returnFullTransactions=True)
    (transaction,) = block["transactions"]
    assert transaction["from"] == "0x" + A.hex()
    assert transaction["blockHash"] == block["hash"]


@pytest.mark.parametrize("as_text", [False, True])
def test_a_failed_call_is_reported_in_the_form_that_is_asked_for(as_text: bool) -> None:
    (reverted,) = answered(REVERT_INPUT, REASON, as_text=as_text)["calls"]
    (halted,) = answered(b"\xfe", b"", as_text=as_text)["calls"]
    assert reverted["status"] == halted["status"] == "0x0"
    data, words = "0x" + REASON.hex(), "execution reverted: user error"
    if as_text:
        assert (reverted["error"], reverted["returnData"]) == (words, data)
        assert halted["error"] == "invalid opcode: INVALID"
    else:
        assert reverted["error"] == {"code": 3, "message": words, "data": data}
        assert reverted["returnData"] == halted["returnData"] == "0x"
        assert halted["error"] == {"code": -32015, "message": "invalid opcode: INVALID"}


def test_a_creation_that_enters_no_frame_is_a_failed_frame() -> None:
    entry = {
        "stateOverrides": {A: {"nonce": 2**64 - 1}},
        "calls": [{"from": A, "gas": 100_000}],
    }
    plan = Plan.of(payload_from({"blockStateCalls": [entry], "returnCallTree": True}))
    (block,) = json.loads(simulate_text(VIEW, plan, OPTIONS, ErrorForm(as_text=True)))
    (outcome,) = block["calls"]
    assert outcome["error"] == "nonce uint64 overflow"
    tree = outcome["callTree"]
    assert (tree["type"], tree["error"], "calls" in tree) == ("CREATE", outcome["error"], False)
