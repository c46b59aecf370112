"""Tests rules of eth_simulateV1 that no recorded request covers, in geth's dialect."""

from itertools import pairwise
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.execution.transaction.transaction import sign_authorization

from .simulating import RICH, A, B, C, blocks, header_hash, one_block, refusal

CHAIN_ID = 0xC72DD9D5E883E
A_MIXED = "0xA1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1a1A1a1a1"
IDENTITY, SHA256 = "0x" + "00" * 19 + "04", "0x" + "00" * 19 + "02"
SLOT_WORD = "0x" + "00" * 31 + "07"


@pytest.fixture(scope="module")
def geth(live: ServerThread) -> str:
    """Provides the URL of the listener with geth's dialect."""
    return live.url("geth")


def outcome(url: str, payload: Any) -> Any:
    """Simulates a payload with one call in one block. Returns the call's result."""
    return blocks(url, payload)[0]["calls"][0]


# --- payloads that are rejected as a whole ---


@pytest.mark.parametrize(
    ("nonce", "code", "words"),
    [
        ("0x5", -38010, f"err: nonce too low: address {A_MIXED}, tx: 5 state: 7 "),
        ("0x9", -38011, f"err: nonce too high: address {A_MIXED}, tx: 9 state: 7 "),
    ],
)
def test_a_wrong_nonce_is_refused_with_validation(
    geth: str, nonce: str, code: int, words: str
) -> None:
    state = {A: {"balance": hex(10**30), "nonce": "0x7"}}
    call = {"from": A, "to": B, "nonce": nonce, "maxFeePerGas": hex(10**9)}
    expected = words + "(supplied gas 50000000)"
    assert refusal(geth, one_block(call, state=state, validation=True)) == (code, expected)
    assert outcome(geth, one_block(call, state=state))["status"] == "0x1"


def test_more_gas_than_the_block_has_left_is_refused_before_the_budget_clamps_it(geth: str) -> None:
    calls = ({"from": A, "to": B}, {"from": A, "to": B, "gas": "0x9c40"})
    payload = one_block(*calls, block={"gasLimit": "0xafc8"})
    message = "block gas limit reached: remaining: 24000, required: 40000"
    assert refusal(geth, payload) == (-38015, message)


def test_init_code_beyond_the_limit_is_refused(geth: str) -> None:
    payload = one_block({"from": A, "input": "0x" + "00" * 49_153})
    message = "err: max initcode size exceeded: code size 49153 limit 49152 (supplied gas 50000000)"
    assert refusal(geth, payload) == (-38025, message)


def test_a_tip_above_the_fee_cap_is_a_fault_of_the_parameters(geth: str) -> None:
    call = {"from": A, "to": B, "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}
    code, message = refusal(geth, one_block(call, state=RICH))
    assert code == -32602
    assert message.startswith("err: max priority fee per gas higher than max fee per gas: address")
    assert message.endswith("maxPriorityFeePerGas: 2, maxFeePerGas: 1 (supplied gas 50000000)")


@pytest.mark.parametrize("payload", [{}, {"blockStateCalls": []}, {"blockStateCalls": None}])
def test_a_payload_without_blocks_is_refused(geth: str, payload: Any) -> None:
    assert refusal(geth, payload) == (-32602, "empty input")


@pytest.mark.parametrize(
    "payload",
    [7, "0x", {"blockStateCalls": 7}, {"blockStateCalls": [7]},
     {"blockStateCalls": [{"calls": {}}]}, {"blockStateCalls": [{"calls": [{"gas": 5}]}]},
     {"blockStateCalls": [{"blockOverrides": {"time": "0x1ffffffffffffffff"}}]},
     {"blockStateCalls": [{"stateOverrides": {"0x12": {}}}]},
     {"blockStateCalls": [{}], "validation": "yes"}],
)  # fmt: skip
def test_what_cannot_be_decoded_is_refused(geth: str, payload: Any) -> None:
    assert refusal(geth, payload)[0] == -32602


def test_prices_of_two_kinds_contradict_each_other(geth: str) -> None:
    call = {"from": A, "to": B, "gasPrice": "0x1", "maxPriorityFeePerGas": "0x1"}
    message = "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"
    assert refusal(geth, one_block(call, state=RICH)) == (-32000, message)


def test_another_chain_id_is_refused(geth: str) -> None:
    message = f"chainId does not match node's (have=2, want={CHAIN_ID})"
    assert refusal(geth, one_block({"from": A, "to": B, "chainId": "0x2"})) == (-32000, message)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ({A: {"state": {}, "stateDiff": {}}}, "has both 'state' and 'stateDiff'"),
        ({A: {"movePrecompileToAddress": B}}, "is not a precompile"),
        ({IDENTITY: {"movePrecompileToAddress": B}, B: {}}, "is already overridden"),
        ({IDENTITY: {"movePrecompileToAddress": IDENTITY}}, "is already overridden"),
    ],
)
def test_overrides_that_contradict_themselves_are_refused(
    geth: str, override: Any, words: str
) -> None:
    code, message = refusal(geth, one_block(state=override))
    assert code == -32000
    assert message.startswith("account 0x")
    assert message.endswith(words)


# --- limits ---


def test_the_number_of_calls_is_limited_in_a_block_and_in_all(geth: str) -> None:
    full = {"calls": [{}] * 5_000}
    over = {"calls": [{}] * 5_001}
    message = "too many calls in block: 5001 > 5000"
    assert refusal(geth, {"blockStateCalls": [over]}) == (-38026, message)
    message = "too many calls: 10001 > 10000"
    assert refusal(geth, {"blockStateCalls": [full, full, {"calls": [{}]}]}) == (-38026, message)


def test_the_span_of_blocks_is_limited_with_its_fillers(geth: str) -> None:
    base = 0x36
    entries = [{"blockOverrides": {"number": hex(base + 256)}}]
    assert len(blocks(geth, {"blockStateCalls": entries})) == 256
    entries.append({})
    assert refusal(geth, {"blockStateCalls": entries}) == (-38026, "too many blocks")


def test_a_clock_past_its_end_begins_again(geth: str) -> None:
    last = 2**64 - 1
    payload = {"blockStateCalls": [{"blockOverrides": {"time": hex(last)}}, {}]}
    message = f"block timestamps must be in order: 11 <= {last}"
    assert refusal(geth, payload) == (-38021, message)


# --- blocks ---


def test_gas_limit_and_fee_recipient_stick_and_the_rest_does_not(geth: str) -> None:
    overrides = {
        "gasLimit": "0xf4240",
        "feeRecipient": B,
        "prevRandao": SLOT_WORD,
        "baseFeePerGas": "0x9",
    }
    first, second, third = blocks(
        geth,
        {
            "blockStateCalls": [
                {"blockOverrides": overrides},
                {"blockOverrides": {"number": "0x39"}},
            ]
        },
    )
    assert first["number"] == "0x37"
    assert first["mixHash"] == SLOT_WORD
    assert first["baseFeePerGas"] == "0x9"
    for block in (second, third):
        assert block["gasLimit"] == "0xf4240"
        assert block["miner"] == B
        assert block["mixHash"] == "0x" + "00" * 32
        assert block["baseFeePerGas"] == "0x0"


def test_fillers_advance_number_and_time_and_run_the_system_calls(geth: str) -> None:
    found = blocks(geth, {"blockStateCalls": [{"blockOverrides": {"number": "0x3a"}}]})
    assert [int(b["number"], 16) for b in found] == [0x37, 0x38, 0x39, 0x3A]
    assert [int(b["timestamp"], 16) for b in found] == [552, 564, 576, 588]
    assert len({b["stateRoot"] for b in found}) == 4
    assert all(child["parentHash"] == b["hash"] for b, child in pairwise(found))


def test_withdrawals_and_beacon_root_become_part_of_the_block(geth: str) -> None:
    withdrawal = {"index": "0x0", "validatorIndex": "0x1", "address": C, "amount": "0x2"}
    root = "0x" + "11" * 32
    balance_of = {"from": A, "to": B, "input": "0x" + "00" * 12 + C[2:]}
    entries = [
        {"blockOverrides": {"withdrawals": [withdrawal], "beaconRoot": root}},
        {"calls": [balance_of], "stateOverrides": {B: {"code": "0x5f35315f5260205ff3"}}},
    ]
    first, second = blocks(geth, {"blockStateCalls": entries})
    assert first["withdrawals"] == [withdrawal]
    assert first["parentBeaconBlockRoot"] == root
    assert first["hash"] == header_hash(first)
    assert int(second["calls"][0]["returnData"], 16) == 2 * 10**9
    assert second["parentBeaconBlockRoot"] == "0x" + "00" * 32


def test_a_block_with_no_gas_limit_at_all_still_has_a_child(geth: str) -> None:
    entries = [{"blockOverrides": {"gasLimit": "0x0"}}, {}]
    assert len(blocks(geth, {"blockStateCalls": entries, "validation": True})) == 2


# --- calls ---


def test_an_access_list_warms_and_makes_a_typed_transaction(geth: str) -> None:
    listed = [{"address": C, "storageKeys": ["0x" + "00" * 32]}]
    call = {"from": A, "to": C, "accessList": listed}
    payload = one_block(call, state={C: {"code": "0x5f5400"}}, returnFullTransactions=True)
    block = blocks(geth, payload)[0]
    assert int(block["calls"][0]["gasUsed"], 16) == 21_000 + 2_400 + 1_900 + 2 + 100
    assert block["transactions"][0]["type"] == "0x2"
    assert block["transactions"][0]["accessList"] == listed


def test_a_gas_price_makes_a_legacy_transaction_whose_lists_still_count(geth: str) -> None:
    listed = [{"address": C, "storageKeys": []}]
    call = {"from": A, "to": B, "gasPrice": "0x10", "accessList": listed}
    block = blocks(geth, one_block(call, state=RICH, returnFullTransactions=True))[0]
    transaction = block["transactions"][0]
    assert transaction["type"] == "0x0"
    assert transaction["gasPrice"] == "0x10"
    assert "accessList" not in transaction
    assert int(block["calls"][0]["gasUsed"], 16) == 21_000 + 2_400


def test_an_authorization_makes_its_signer_run_the_code(geth: str) -> None:
    key = (7).to_bytes(32, "big")
    signed = sign_authorization(key, chain_id=CHAIN_ID, address=bytes.fromhex(C[2:]), nonce=0)
    listed = {
        "chainId": hex(signed.chain_id), "address": C, "nonce": hex(signed.nonce),
        "yParity": hex(signed.y_parity), "r": hex(signed.r), "s": hex(signed.s),
    }  # fmt: skip
    signer = "0xd41c057fd1c78805aac12b0a94a405c0461a6fbb"
    call = {"from": A, "to": signer, "authorizationList": [listed]}
    payload = one_block(
        call, state={C: {"code": "0x602a5f5260205ff3"}}, returnFullTransactions=True
    )
    block = blocks(geth, payload)[0]
    assert block["transactions"][0]["type"] == "0x4"
    assert int(block["calls"][0]["returnData"], 16) == 42


def test_an_authorization_list_needs_a_recipient(geth: str) -> None:
    code, message = refusal(geth, one_block({"from": A, "authorizationList": []}))
    assert code == -32603
    assert "cannot be used to create contract" in message


def test_the_default_gas_is_what_block_and_budget_leave(geth: str) -> None:
    entries = [{"calls": [{"from": A, "to": B}, {"from": A, "to": C}]}]
    state = {C: {"code": "0x5a5f5260205ff3"}}
    entries[0]["stateOverrides"] = state
    left = int(blocks(geth, {"blockStateCalls": entries})[0]["calls"][1]["returnData"], 16)
    assert left == 50_000_000 - 21_000 - 21_000 - 2


def test_a_halt_under_the_budget_says_that_the_budget_capped_it(geth: str) -> None:
    payload = one_block({"from": A, "to": C}, state={C: {"code": "0x5b5f56"}})
    found = outcome(geth, payload)
    assert found["error"] == {
        "code": -32015,
        "message": "out of gas (gas limit was capped by the RPC server's global gas cap)",
    }
    assert int(found["gasUsed"], 16) == 50_000_000


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("0x0c", "invalid opcode: opcode 0xc not defined"),
        ("0xfe", "invalid opcode: INVALID"),
        ("0x600101", "stack underflow (1 <=> 2)"),
        ("0x82", "stack underflow (0 <=> 3)"),
        ("0x5b80600056", "stack underflow (0 <=> 1)"),
        ("0x5f5b80600156", "stack limit reached 1024 (1023)"),
        ("0x60015f5f3e", "return data out of bounds"),
        ("0x600056", "invalid jump destination"),
        ("0x30ff", None),
    ],
)  # fmt: skip
def test_halts_are_worded_with_their_detail(geth: str, code: str, words: str | None) -> None:
    payload = one_block({"from": A, "to": C, "gas": "0x100000"}, state={C: {"code": code}})
    found = outcome(geth, payload)
    assert found.get("error", {}).get("message") == words


def test_logs_that_a_reverted_frame_dropped_still_count(geth: str) -> None:
    # B logs and reverts; C calls B, then logs
    state = {
        B: {"code": "0x5f5fa05f5ffd"},
        C: {"code": "0x5f5f5f5f5f73" + B[2:] + "5af15f5fa000"},
    }
    calls = [{"from": A, "to": C}, {"from": A, "to": C}]
    found = blocks(geth, one_block(*calls, state=state))[0]["calls"]
    assert [log["logIndex"] for call in found for log in call["logs"]] == ["0x1", "0x3"]


# --- precompiles and empty accounts ---


def test_a_moved_precompile_answers_for_one_block(geth: str) -> None:
    call = {"from": A, "to": B, "input": "0x1234"}
    at_home = {"from": A, "to": IDENTITY, "input": "0x1234"}
    entries = [
        {"stateOverrides": {IDENTITY: {"movePrecompileToAddress": B}}, "calls": [call, at_home]},
        {"calls": [call, at_home]},
    ]
    first, second = blocks(geth, {"blockStateCalls": entries})
    assert [c["returnData"] for c in first["calls"]] == ["0x1234", "0x"]
    assert [c["returnData"] for c in second["calls"]] == ["0x", "0x1234"]


def test_any_override_of_a_precompile_takes_it_away(geth: str) -> None:
    payload = one_block(
        {"from": A, "to": IDENTITY, "input": "0x1234"}, state={IDENTITY: {"balance": "0x1"}}
    )
    assert outcome(geth, payload)["returnData"] == "0x"


def test_of_two_precompiles_moved_to_one_place_the_higher_wins(geth: str) -> None:
    state = {a: {"movePrecompileToAddress": B} for a in (SHA256, IDENTITY)}
    payload = one_block({"from": A, "to": B, "input": "0x1234"}, state=state)
    assert outcome(geth, payload)["returnData"] == "0x1234"


def test_the_address_of_a_moved_precompile_stays_warm_and_the_new_one_is_cold(geth: str) -> None:
    # Returns the gas of BALANCE for the address in the calldata: 100 if warm, 2600 if cold.
    code = "0x5f355a90315a90035f5260205ff3"
    state = {IDENTITY: {"movePrecompileToAddress": B}, C: {"code": code}}
    calls = [{"from": A, "to": C, "input": "0x" + "00" * 12 + a[2:]} for a in (IDENTITY, B)]
    found = blocks(geth, one_block(*calls, state=state))[0]["calls"]
    old, new = (int(call["gasUsed"], 16) for call in found)
    assert new - old > 2_000


def test_an_empty_account_made_by_an_override_stays_until_it_is_touched(geth: str) -> None:
    empty = {C: {"code": "0x"}}
    untouched = blocks(geth, one_block(state=empty))[0]
    absent = blocks(geth, one_block())[0]
    touched = blocks(geth, one_block({"from": A, "to": C}, state=empty))[0]
    without = blocks(geth, one_block({"from": A, "to": C}))[0]
    assert untouched["stateRoot"] != absent["stateRoot"]
    assert touched["stateRoot"] == without["stateRoot"]


def test_overridden_slots_are_the_originals_that_gas_is_counted_from(geth: str) -> None:
    # SSTORE(0, 7) while slot 0 is 7: costs 100 for the no-op and 2100 for the cold slot.
    state = {C: {"code": "0x60075f5500", "stateDiff": {"0x" + "00" * 32: SLOT_WORD}}}
    found = outcome(geth, one_block({"from": A, "to": C}, state=state))
    assert int(found["gasUsed"], 16) == 21_000 + 3 + 2 + 2_200


def test_a_missing_system_contract_is_named(geth: str) -> None:
    contract = "0x00000961ef480eb55e80d19ad83579a64c007002"
    code, message = refusal(geth, one_block(state={contract: {"code": "0x"}}))
    assert code == -32000
    start = "failed to process withdrawal queue: empty system contract: no code at 0x"
    assert message.startswith(start)
    assert message.lower().endswith(contract)
