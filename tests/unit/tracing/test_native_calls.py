"""Tests traces of Base's native contracts: frames without steps, logs, accessed slots."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.simulation.values import CallRequest
from fastevm.simulate import view_of
from fastevm.testing.native_calls import POLICY_REGISTRY
from fastevm.tracing import StepOptions, TraceRequest, create_access_list, trace_call
from tests.unit.core.native.base.support import (
    ALICE,
    ALLOWLIST_7,
    BOB,
    MEMO,
    POLICIES,
    TOKEN,
    Tokens,
    call_data,
    slot,
)

CALLER = b"\xcc" * 20
# CALL of the token with the call data; stores the result.
PREFIX, SUFFIX = bytes.fromhex("365f5f375f5f365f5f73"), bytes.fromhex("5af15f5500")
PAY = call_data("transferWithMemo(address,uint256,bytes32)", BOB, 5, MEMO)


@pytest.fixture
def token() -> Tokens:
    """Provides a token with an allowlist of senders, and a contract that pays with the token."""
    made = Tokens("denim", timestamp=1)
    made.fund(ALICE, 100)
    made.fund(CALLER, 100)
    made.seed(TOKEN + 9, ALLOWLIST_7)
    exists = (1 << 255) | int.from_bytes(BOB, "big")
    made.evm.set_storage(POLICY_REGISTRY, slot(POLICIES, ALLOWLIST_7), exists)
    for account in (ALICE, CALLER):
        made.authorize(ALLOWLIST_7, account)
    made.evm.set_code(CALLER, PREFIX + made.token + SUFFIX)
    made.evm.set_balance(ALICE, 10**18)
    return made


def traced(token: Tokens, to: bytes, data: bytes, **request: Any) -> Any:
    call = CallRequest(sender=ALICE, to=to, data=data, gas=1_000_000)
    answer = trace_call(view_of(token.evm), call, TraceRequest(**request))
    return json.loads(msgspec.json.encode(answer))


def test_a_native_call_is_a_frame_without_children(token: Tokens) -> None:
    frame = traced(token, token.token, PAY, tracer="callTracer", config={"withLog": True})
    assert (frame["type"], frame["to"]) == ("CALL", hex_bytes(token.token))
    assert int(frame["output"], 16) == 1
    assert [log["address"] for log in frame["logs"]] == [hex_bytes(token.token)] * 2
    assert "calls" not in frame


def test_a_native_call_inside_another(token: Tokens) -> None:
    frame = traced(token, CALLER, PAY, tracer="callTracer", config={"withLog": True})
    [inner] = frame["calls"]
    assert (inner["from"], inner["to"]) == (hex_bytes(CALLER), hex_bytes(token.token))
    assert len(inner["logs"]) == 2
    assert "calls" not in inner
    assert int(inner["gasUsed"], 16) < int(frame["gasUsed"], 16)


def test_a_failure_has_its_revert_data(token: Tokens) -> None:
    data = call_data("transfer(address,uint256)", BOB, 10**6)
    frame = traced(token, CALLER, data, tracer="callTracer")
    [inner] = frame["calls"]
    assert inner["error"] == "execution reverted"
    error = keccak256(b"InsufficientBalance(address,uint256,uint256)")[:4]
    assert inner["output"].startswith(hex_bytes(error))
    assert "error" not in frame


def test_native_code_has_no_steps(token: Tokens) -> None:
    assert traced(token, token.token, PAY, steps=StepOptions())["structLogs"] == []
    steps = traced(token, CALLER, PAY, steps=StepOptions())["structLogs"]
    assert {step["depth"] for step in steps} == {1}
    assert [step["op"] for step in steps].count("CALL") == 1


def used_slots(token: Tokens) -> dict[bytes, set[int]]:
    """Returns the slots that a payment from Alice must access."""
    return {
        token.token: {slot(TOKEN + 4, ALICE), slot(TOKEN + 4, BOB), TOKEN + 9},
        POLICY_REGISTRY: {slot(POLICIES + 1, ALLOWLIST_7, ALICE)},
    }


def test_a_prestate_has_the_slots_of_native_code(token: Tokens) -> None:
    found = traced(token, token.token, PAY, tracer="prestateTracer")
    for address, slots in used_slots(token).items():
        shown = found[hex_bytes(address)]["storage"]
        assert {hex_word(key) for key in slots} <= shown.keys(), address
    balance = found[hex_bytes(token.token)]["storage"][hex_word(slot(TOKEN + 4, ALICE))]
    assert int(balance, 16) == 100


def test_a_difference_has_the_changed_slots_only(token: Tokens) -> None:
    config = {"diffMode": True}
    found = traced(token, token.token, PAY, tracer="prestateTracer", config=config)
    after = found["post"][hex_bytes(token.token)]["storage"]
    assert {int(key, 16): int(value, 16) for key, value in after.items()} == {
        slot(TOKEN + 4, ALICE): 95,
        slot(TOKEN + 4, BOB): 5,
    }
    assert hex_bytes(POLICY_REGISTRY) not in found["post"]


def test_an_access_list_names_the_slots_and_makes_the_call_cheaper(token: Tokens) -> None:
    call = CallRequest(sender=ALICE, to=CALLER, data=PAY, gas=1_000_000)
    found = create_access_list(view_of(token.evm), call)
    assert found.error is None
    listed = {entry.address: set(entry.storage_keys) for entry in found.access_list}
    assert {slot(TOKEN + 4, CALLER), slot(TOKEN + 4, BOB), TOKEN + 9} <= listed[token.token]
    assert slot(POLICIES + 1, ALLOWLIST_7, CALLER) in listed[POLICY_REGISTRY]
    cold = token.evm.call(CALLER, PAY, sender=ALICE)
    warm = token.evm.call(CALLER, PAY, sender=ALICE, access_list=found.access_list)
    assert warm.success
    assert warm.gas_used < cold.gas_used
