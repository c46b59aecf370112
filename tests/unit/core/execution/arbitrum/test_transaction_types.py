"""Tests Arbitrum's unsigned transactions: recorded hashes, JSON, and invalid envelopes."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi import encode as encode_abi

from fastevm.core.execution.arbitrum.transaction_types import (
    ARBOS,
    CLASSIC,
    CONTRACT,
    DEPOSIT,
    INTERNAL,
    LAYOUTS,
    RETRY,
    RETRYABLE_TX,
    SUBMIT_RETRYABLE,
    UNSIGNED,
    encode,
    fields_of,
)
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import TransactionDecodeError
from fastevm.rpc_types.transactions import transaction_from_json, transaction_json

DEVELOPMENT = 412_346
SENDER = bytes.fromhex("dd6bd74674c356345db88c354491c7d3173c6806")
RETRY_TO = bytes.fromhex("3fab184622dc19b6109349b94811493bf2a45362")
BENEFICIARY = bytes.fromhex("93b4c114b40ecf1fc34745400a1b9b9115c34e42")
TICKET = bytes.fromhex("cfb3f4f75e092c28579f5b536c8919d63b823bf487c2c946ae8ad539ed2a971d")


def start_block(*values: int) -> bytes:
    types = ["uint256", "uint64", "uint64", "uint64"]
    return bytes.fromhex("6bf6a42d") + encode_abi(types, values)


def request(number: int) -> bytes:
    return number.to_bytes(32, "big")


TRANSACTIONS: tuple[tuple[int, dict[str, Any], str], ...] = (
    (
        INTERNAL,
        {"chain_id": 42161, "data": start_block(0, 0x16DDB27, 0x185F29E6, 0)},
        "61d48ab94f7fccf48f4baa3903781053f932feb466474c037736e910d7ca2afe",
    ),
    (
        INTERNAL,
        {"chain_id": 42161, "data": start_block(0, 0x12C04C1, 0xC000000, 0)},
        "431a1c991fe68597f472ddd6e675570b5e1e0825ea90da5195709658e77bfede",
    ),
    (
        DEPOSIT,
        {
            "chain_id": DEVELOPMENT,
            "request_id": request(9),
            "sender": bytes.fromhex("502fae7d46d88F08Fc2F8ed27fCB2Ab183Eb3e1F"),
            "to": bytes.fromhex("3f1Eae7D46d88F08fc2F8ed27FCb2AB183EB2d0E"),
            "value": 10**23,
        },
        "38132c766a25034f7805a2f47c1bd4b23a97b979cf7b52bdcf29972c2e13f1e6",
    ),
    (
        SUBMIT_RETRYABLE,
        {
            "chain_id": DEVELOPMENT,
            "request_id": request(1),
            "sender": SENDER,
            "l1_base_fee": 39,
            "deposit_value": 10021000000054600,
            "max_fee_per_gas": 10**9,
            "gas_limit": 21000,
            "retry_to": RETRY_TO,
            "retry_value": 10**16,
            "beneficiary": BENEFICIARY,
            "max_submission_fee": 54600,
            "refund_to": BENEFICIARY,
            "retry_data": b"",
        },
        TICKET.hex(),
    ),
    (
        RETRY,
        {
            "chain_id": DEVELOPMENT,
            "nonce": 0,
            "sender": SENDER,
            "max_fee_per_gas": 10**8,
            "gas_limit": 21000,
            "to": RETRY_TO,
            "value": 10**16,
            "data": b"",
            "ticket_id": TICKET,
            "refund_to": BENEFICIARY,
            "max_refund": 2100000054600,
            "submission_fee_refund": 54600,
        },
        "f2df0912b3d8b8e41d4d88fae405def3a64ae0ef1a229d1b517ef2f5c07e2c15",
    ),
)
CALL = {
    "chain_id": DEVELOPMENT, "sender": SENDER, "max_fee_per_gas": 7, "gas_limit": 8, "to": None,
    "value": 9, "data": b"\x60\x00",
}  # fmt: skip
UNRECORDED: tuple[tuple[int, dict[str, Any]], ...] = (
    (UNSIGNED, {**CALL, "nonce": 3}),
    (CONTRACT, {**CALL, "request_id": request(4)}),
)
ALL = (*((kind, fields) for kind, fields, _ in TRANSACTIONS), *UNRECORDED)


@pytest.mark.parametrize(("kind", "fields", "expected"), TRANSACTIONS)
def test_the_hash_is_that_of_the_chain(kind: int, fields: dict[str, Any], expected: str) -> None:
    found = Transaction.decode(encode(kind, fields))
    assert found.hash.hex() == expected
    assert found.type == kind


@pytest.mark.parametrize(("kind", "fields"), ALL)
def test_fields_and_json_survive(kind: int, fields: dict[str, Any]) -> None:
    made = Transaction.decode(encode(kind, fields))
    assert fields_of(made.raw) == fields
    answer = transaction_json(made)
    assert answer["hash"] == "0x" + made.hash.hex()
    assert (answer["v"], answer["r"], answer["s"]) == ("0x0", "0x0", "0x0")
    assert transaction_from_json(answer) == made


def test_a_submission_calls_the_retryable_precompile() -> None:
    kind, fields, _ = TRANSACTIONS[3]
    data = b"\x01" * 33
    made = Transaction.decode(encode(kind, {**fields, "retry_data": data}))
    types = ["bytes32", *["uint256"] * 4, "uint64", "uint256", *["address"] * 3, "bytes"]
    values = [
        fields["request_id"], 39, fields["deposit_value"], 10**16, 10**9, 21000, 54600,
        BENEFICIARY, BENEFICIARY, RETRY_TO, data,
    ]  # fmt: skip
    assert made.to == RETRYABLE_TX
    assert made.data == bytes.fromhex("c9f95d32") + encode_abi(types, values)
    answer = transaction_json(made)
    assert answer["retryData"] == "0x" + data.hex()
    assert answer["value"] == "0x0"


def test_the_start_of_a_block_comes_from_arbos() -> None:
    made = Transaction.decode(encode(*TRANSACTIONS[0][:2]))
    assert (made.sender, made.to, made.gas_limit) == (ARBOS, ARBOS, 0)


@pytest.mark.parametrize(("kind", "fields"), ALL)
def test_nobody_signs_or_sends_them(kind: int, fields: dict[str, Any]) -> None:
    made = Transaction.decode(encode(kind, fields))
    assert not made.is_signed
    with pytest.raises(ValueError, match=f"type {kind:#x} is not signed"):
        made.sign(b"\x01" * 32)


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("length", [0, 1, 2, 5, 40])
def test_a_damaged_envelope_is_refused(kind: int, length: int) -> None:
    fields = next(fields for found, fields in ALL if found == kind)
    raw = encode(kind, fields)
    with pytest.raises(TransactionDecodeError):
        Transaction.decode(raw[:1] + raw[1 : 1 + min(length, len(raw) - 2)])
    with pytest.raises(TransactionDecodeError):
        Transaction.decode(raw + b"\x00")


def test_a_type_that_was_never_used_is_unknown() -> None:
    with pytest.raises(TransactionDecodeError, match="known transaction type"):
        Transaction.decode(b"\x67\xc0")


def test_a_classic_transaction_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="Arbitrum Classic"):
        transaction_from_json({"type": hex(CLASSIC), "hash": "0x" + "11" * 32})


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ValueError, match="0x64 needs request_id, sender"):
        encode(DEPOSIT, {"chain_id": 1, "to": b"", "value": 0})
