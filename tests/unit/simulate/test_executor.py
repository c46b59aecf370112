"""Tests the executor of simulated chains: blocks, rejections, and repeated runs."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastevm import keccak256
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.block.validation import withdrawals_root
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Withdrawal
from fastevm.core.primitives.replace import replace
from fastevm.core.state.layer import Layer
from fastevm.errors import FastevmError
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate import (
    ErrorForm,
    Plan,
    SimulateOptions,
    SimulationError,
    read_request,
    simulate,
    simulate_text,
)
from fastevm.simulate.views import view_of

A, B, C = ("0x" + byte * 20 for byte in ("a1", "b0", "c0"))
# Counts its calls in slot 0, returns the count, and logs it with the topics caller and count.
LOGGER = "5f5460010180" + "5f55" + "5f52" + "5f51" + "33" + "60205fa2" + "60205ff3"
STATE = Layer.of({bytes.fromhex(A[2:]): {"balance": 10**20}})
VIEW = view_of(STATE, chain_id=7, gas_limit=30_000_000)
OPTIONS = SimulateOptions(zero_state_root=False, block_spacing=12)
FORM = ErrorForm(as_text=True, revert_code=3, halt_code=-32015)
CALLS = 40
WITHDRAWAL = {"index": "0x1", "validatorIndex": "0x2", "address": B, "amount": "0x5"}


def plan_of(payload: Any) -> Plan:
    """Returns the plan that a request with this payload compiles to."""
    found = read_request(json.dumps([payload]).encode())
    assert found is not None
    return found[0]


def answered(payload: Any) -> Any:
    """Simulates a payload. Returns the blocks as JSON values."""
    return json.loads(simulate_text(VIEW, plan_of(payload), OPTIONS, FORM))


def payload() -> dict[str, Any]:
    """Returns two blocks with many calls and similar logs, and an empty block."""
    call = {"from": A, "to": B, "gas": "0x186a0"}
    block = {"calls": [call | {"value": hex(number % 3)} for number in range(CALLS)]}
    first = block | {"stateOverrides": {B: {"code": "0x" + LOGGER}}}
    return {"blockStateCalls": [first, {"blockOverrides": {"number": "0x4"}}, block]}


def test_the_text_may_be_the_last_member_of_an_object() -> None:
    plan = plan_of(payload())
    alone = simulate_text(VIEW, plan, OPTIONS, FORM)
    inside = simulate_text(VIEW, plan, OPTIONS, FORM, b'{"result":')
    assert inside == b'{"result":%b}' % alone


def test_headers_roots_and_sizes_are_those_of_the_blocks() -> None:
    shown, blocks = answered(payload()), simulate(VIEW, payload())
    assert len(shown) == len(blocks) == 5
    for block, value in zip(shown, blocks, strict=True):
        header = value.block.header
        assert block["hash"] == "0x" + header.hash.hex()
        assert block["stateRoot"] == "0x" + header.state_root.hex()
        assert block["receiptsRoot"] == "0x" + header.receipts_root.hex()
        assert block["logsBloom"] == "0x" + header.logs_bloom.hex()
        assert int(block["size"], 16) == value.block.size
        assert [call["returnData"] for call in block["calls"]] == [
            "0x" + call.output.hex() for call in value.calls
        ]


def test_transactions_are_hashed_as_they_would_be_signed() -> None:
    block = answered(payload())[0]
    transactions = [
        Transaction.build(
            chain_id=7,
            nonce=number,
            gas_limit=100_000,
            max_fee_per_gas=0,
            max_priority_fee_per_gas=0,
            to=bytes.fromhex(B[2:]),
            value=number % 3,
        )
        for number in range(CALLS)
    ]
    assert block["transactions"] == ["0x" + keccak256(t.raw).hex() for t in transactions]
    root = ordered_root([t.raw for t in transactions])
    assert block["transactionsRoot"] == "0x" + root.hex()


def test_a_thread_that_ran_a_chain_runs_the_next_one_from_the_start() -> None:
    assert answered(payload()) == answered(payload())
    assert answered({"blockStateCalls": [{}]})[0]["gasUsed"] == "0x0"


def test_a_plan_runs_twice_with_the_same_answer_on_any_state() -> None:
    # each run fills in gas, nonce and chain id; the plan must not keep the values of the first run
    plan = plan_of({"blockStateCalls": [{"calls": [{"from": A, "to": B, "value": "0x1"}]}] * 2})
    first = simulate_text(VIEW, plan, OPTIONS, FORM)
    richer = Layer.of({bytes.fromhex(A[2:]): {"balance": 10**20, "nonce": 9}})
    other = simulate_text(view_of(richer, chain_id=8, gas_limit=10**6), plan, OPTIONS, FORM)
    assert other != first
    assert simulate_text(VIEW, plan, OPTIONS, FORM) == first


def test_threads_run_one_plan_at_the_same_time() -> None:
    plan = plan_of(payload())
    wanted = simulate_text(VIEW, plan, OPTIONS, FORM)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(simulate_text, VIEW, plan, OPTIONS, FORM) for _ in range(64)]
        assert {run.result() for run in runs} == {wanted}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"from": B, "to": A, "value": "0x1"}, "have 0 want 1 (supplied gas 30000000)"),
    ({"from": A, "gas": "0xffffffff"}, "remaining: 30000000, required: 4294967295"),
    ({"from": A, "chainId": "0x8"}, "chainId does not match node's (have=8, want=7)"),
    ({"from": A, "gasPrice": "0x0", "maxFeePerGas": "0x0"}, "both gasPrice and"),
    ({"from": A, "to": B, "gas": "0x1"}, "intrinsic gas too low: have 1, want 21000"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_a_refusal_has_its_words_and_leaves_the_thread_ready(
    call: dict[str, Any], words: str
) -> None:
    plan = plan_of({"blockStateCalls": [{"calls": [{"from": A, "to": B}]}, {"calls": [call]}]})
    for _ in range(2):
        with pytest.raises(FastevmError, match=re.escape(words)):
            simulate_text(VIEW, plan, OPTIONS, FORM)
    assert answered({"blockStateCalls": [{}]})[0]["gasUsed"] == "0x0"


def test_the_time_of_a_request_with_rare_steps_counts_once() -> None:
    # the executor pauses for roots, withdrawals and extensions; the time limit must not restart
    endless = {"calls": [{"from": A, "to": B}], "stateOverrides": {B: {"code": "0x5b5f56"}}}
    block = {"blockOverrides": {"withdrawals": [WITHDRAWAL]}, "calls": [{"from": A}]}
    payload = {"blockStateCalls": [block] * 3 + [endless], "returnStateDiff": True}
    view = view_of(STATE, gas_limit=2**62)
    options = replace(OPTIONS, gas_cap=0, timeout=0.3)
    started = time.thread_time()
    with pytest.raises(SimulationError, match="execution aborted"):
        simulate_text(view, Plan.of(payload_from(payload)), options, FORM)
    assert time.thread_time() - started < 2 * options.timeout


def test_withdrawals_are_paid_after_the_calls_and_shown() -> None:
    payload = {"blockStateCalls": [{"blockOverrides": {"withdrawals": [WITHDRAWAL]}}, {}]}
    first, second = simulate(VIEW, payload)
    assert first.block.withdrawals == (Withdrawal(1, 2, bytes.fromhex(B[2:]), 5),)
    assert second.block.withdrawals == ()
    text = json.loads(simulate_text(VIEW, Plan.of(payload_from(payload)), OPTIONS, FORM))
    assert text[0]["withdrawals"] == [WITHDRAWAL]
    assert text[0]["withdrawalsRoot"] == "0x" + withdrawals_root(first.block).hex()
    assert int(text[0]["size"], 16) == first.block.size


def test_changes_are_reported_against_the_state_before_the_call() -> None:
    # with returnStateDiff, each block begins with an empty world on the previous block's layer
    entry = {"calls": [{"from": A, "to": B, "value": "0x1"}, {"from": A}]}
    first = entry | {"stateOverrides": {C: {"balance": "0x64"}}}
    read = {"calls": [{"from": A, "to": B}, {"from": A, "to": C}]}
    payload = {"blockStateCalls": [first, *[read] * 20], "returnStateDiff": True}
    for fork in ("frontier", "homestead", "osaka"):
        view = view_of(STATE, fork=fork)
        text = simulate_text(view, Plan.of(payload_from(payload)), OPTIONS, FORM)
        for block in json.loads(text)[1:]:
            assert [set(call["stateDiff"]) for call in block["calls"]] == [{A}, {A}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_hash": bytes(20)}, "block_hash: expected 32 bytes, found 20"),
        ({"block_hash": b""}, "block_hash: expected 32 bytes, found 0"),
        ({"block_hash": bytearray(32)}, "block_hash: expected 32 bytes, found bytearray"),
        ({"ancestors": (bytes(32), bytes(20))}, "ancestors: each must have 32 bytes"),
        ({"ancestors": (b"\x01",)}, "ancestors: each must have 32 bytes"),
    ],
)
def test_hashes_of_another_size_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        simulate(replace(VIEW, **changes), [{"to": B}])


@pytest.mark.parametrize("extra_data", [9, "a", bytearray(8), None])
def test_extra_data_that_is_no_bytes_is_refused(extra_data: Any) -> None:
    view = replace(VIEW, header=replace(VIEW.header, extra_data=extra_data))
    with pytest.raises(TypeError):
        simulate(view, [{"to": B}])
