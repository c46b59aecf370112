"""Tests reading call objects, overrides and payloads of eth_simulateV1."""

from typing import Any

import pytest

from fastevm.core.execution.types import Withdrawal
from fastevm.rpc_types.call_object import decode_call
from fastevm.rpc_types.overrides import decode_block_overrides, decode_state_overrides
from fastevm.rpc_types.quantity import DecodeError
from fastevm.rpc_types.simulate_request import decode_payload
from fastevm.simulate import (
    AccessListEntry,
    AccountOverride,
    Authorization,
    BlockOverrides,
    BlockStateCalls,
    CallRequest,
    SimulatePayload,
)

A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
ADDRESS_A, ADDRESS_B = b"\xaa" * 20, b"\xbb" * 20
WORD = "0x" + "00" * 31 + "07"


def test_an_empty_call_has_only_defaults() -> None:
    assert decode_call({}) == CallRequest()


def test_every_member_of_a_call_is_read() -> None:
    call = decode_call(
        {
            "from": A,
            "to": B,
            "gas": "0x1",
            "gasPrice": "0x2",
            "maxFeePerGas": "0x3",
            "maxPriorityFeePerGas": "0x4",
            "value": "0x5",
            "nonce": "0x6",
            "data": "0x0102",
            "accessList": [{"address": A, "storageKeys": [WORD]}],
            "chainId": "0x7",
            "maxFeePerBlobGas": "0x8",
            "blobVersionedHashes": [WORD],
            "authorizationList": [
                {
                    "chainId": "0x1",
                    "address": B,
                    "nonce": "0x2",
                    "yParity": "0x1",
                    "r": "0x3",
                    "s": WORD,
                }
            ],
            "type": "0x4",
            "unknown": {"ignored": True},
        }
    )
    assert call == CallRequest(
        sender=ADDRESS_A,
        to=ADDRESS_B,
        gas=1,
        gas_price=2,
        max_fee_per_gas=3,
        max_priority_fee_per_gas=4,
        value=5,
        nonce=6,
        data=b"\x01\x02",
        access_list=(AccessListEntry(ADDRESS_A, (7,)),),
        chain_id=7,
        max_fee_per_blob_gas=8,
        blob_versioned_hashes=(bytes(31) + b"\x07",),
        authorization_list=(Authorization(1, ADDRESS_B, 2, 1, 3, 7),),
    )


def test_null_is_the_same_as_absent() -> None:
    names = ["from", "to", "gas", "value", "data", "input", "accessList", "authorizationList"]
    assert decode_call(dict.fromkeys(names)) == CallRequest()


def test_input_wins_over_data() -> None:
    assert decode_call({"input": "0x01", "data": "0x02"}).data == b"\x01"
    assert decode_call({"data": "0x02"}).data == b"\x02"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (5, "json: cannot unmarshal number into Go value of type TransactionArgs"),
        (
            {"to": "0x12"},
            "hex string has length 2, want 40 for common.Address",
        ),
        (
            {"gas": 5},
            "json: cannot unmarshal non-string into Go struct field TransactionArgs.gas"
            " of type hexutil.Uint64",
        ),
        (
            {"accessList": {}},
            "json: cannot unmarshal object into Go struct field AccessList of type array",
        ),
    ],
)
def test_a_bad_call_names_the_place(value: Any, why: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_call(value)
    assert str(caught.value) == why


def test_state_overrides_are_read() -> None:
    overrides = decode_state_overrides(
        {
            A: {"nonce": "0x1", "code": "0x60", "balance": "0x2", "stateDiff": {WORD: WORD}},
            B: {"state": {}, "movePrecompileToAddress": A},
        }
    )
    assert overrides == {
        ADDRESS_A: AccountOverride(nonce=1, code=b"\x60", balance=2, state_diff={7: 7}),
        ADDRESS_B: AccountOverride(state={}, move_precompile_to=ADDRESS_A),
    }
    assert decode_state_overrides(None) == {}


def test_block_overrides_are_read() -> None:
    overrides = decode_block_overrides(
        {
            "number": "0x1",
            "time": "0x2",
            "gasLimit": "0x3",
            "feeRecipient": A,
            "prevRandao": WORD,
            "baseFeePerGas": "0x4",
            "blobBaseFee": "0x5",
            "difficulty": "0x6",
            "beaconRoot": WORD,
            "withdrawals": [
                {"index": "0x1", "validatorIndex": "0x2", "address": A, "amount": "0x3"}
            ],
        }
    )
    word = bytes(31) + b"\x07"
    assert overrides == BlockOverrides(
        number=1,
        time=2,
        gas_limit=3,
        fee_recipient=ADDRESS_A,
        prev_randao=word,
        base_fee_per_gas=4,
        blob_base_fee=5,
        difficulty=6,
        beacon_root=word,
        withdrawals=(Withdrawal(1, 2, ADDRESS_A, 3),),
    )
    assert decode_block_overrides(None) == BlockOverrides()


def test_a_payload_is_read_with_empty_entries() -> None:
    payload = decode_payload(
        {
            "blockStateCalls": [{}, None, {"calls": [{}, None, {"to": A}]}, {"calls": None}],
            "traceTransfers": True,
            "validation": True,
            "returnFullTransactions": True,
        }
    )
    calls = (CallRequest(), CallRequest(), CallRequest(to=ADDRESS_A))
    assert payload == SimulatePayload(
        blocks=(
            BlockStateCalls(),
            BlockStateCalls(),
            BlockStateCalls(calls=calls),
            BlockStateCalls(),
        ),
        trace_transfers=True,
        validation=True,
        full_transactions=True,
    )


def test_a_payload_without_blocks_is_empty() -> None:
    assert (
        decode_payload({})
        == decode_payload({"blockStateCalls": None})
        == SimulatePayload(blocks=())
    )


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"blockStateCalls": {}},
        {"blockStateCalls": [5]},
        {"blockStateCalls": [{"calls": {}}]},
        {"blockStateCalls": [{"stateOverrides": []}]},
        {"blockStateCalls": [{"stateOverrides": {"0x12": {}}}]},
        {"blockStateCalls": [{"blockOverrides": []}]},
        {"validation": "true"},
    ],
)
def test_a_bad_payload_is_refused(value: Any) -> None:
    with pytest.raises(DecodeError):
        decode_payload(value)
