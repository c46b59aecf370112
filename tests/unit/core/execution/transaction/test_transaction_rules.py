"""Tests rules that need no state: types, chain ids, signatures, lists and intrinsic gas."""

import pytest
import rlp
from eth_utils import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_rules import (
    check_transaction,
    intrinsic_gas_of,
    validate_transaction,
)
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidTransaction, TransactionDecodeError

KEY = b"\x07" * 32
SIGNER = public_key_address(KEY)
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
HASH = b"\1" + bytes(31)
AUTHORIZATION = (1, b"\1" * 20, 0, 0, 1, 1)


def checked(fork: str, **fields: object) -> tuple[int, int]:
    given = {"gas_limit": 1_000_000, "to": b"\1" * 20, "chain_id": 1, **fields}
    return check_transaction(Transaction.build(**given).sign(KEY), schedule_for(fork))


def refused(fork: str, **fields: object) -> InvalidTransaction:
    with pytest.raises(InvalidTransaction) as caught:
        checked(fork, **fields)
    return caught.value


@pytest.mark.parametrize(
    ("fields", "before", "since"),
    [
        ({"type": 1}, "Istanbul", "Berlin"),
        ({"type": 2}, "Berlin", "London"),
        ({"type": 3, "blob_versioned_hashes": [HASH]}, "Shanghai", "Cancun"),
        ({"type": 4, "authorization_list": [AUTHORIZATION]}, "Cancun", "Prague"),
    ],
)
def test_each_type_has_its_first_fork(fields: dict, before: str, since: str) -> None:
    assert refused(before, **fields).code == "type_not_supported"
    checked(since, **fields)


@pytest.mark.parametrize(
    ("fork", "fields", "code"),
    [
        ("Osaka", {"type": 2, "chain_id": 2}, "wrong_chain_id"),
        ("Osaka", {"nonce": 2**64 - 1}, "nonce_max"),
        ("Osaka", {"gas_limit": 2**24 + 1}, "gas_limit_too_high"),
        (
            "Osaka",
            {"type": 2, "max_fee_per_gas": 1, "max_priority_fee_per_gas": 2},
            "tip_above_fee_cap",
        ),
        ("Osaka", {"type": 3}, "no_blobs"),
        ("Osaka", {"type": 3, "to": None, "blob_versioned_hashes": [HASH]}, "blob_create"),
        ("Osaka", {"type": 3, "blob_versioned_hashes": [HASH] * 7}, "too_many_blobs"),
        ("Prague", {"type": 3, "blob_versioned_hashes": [HASH] * 10}, "too_many_blobs"),
        ("Cancun", {"type": 3, "blob_versioned_hashes": [HASH, bytes(32)]}, "blob_hash_version"),
        ("Osaka", {"type": 4}, "no_authorizations"),
        (
            "Osaka",
            {"type": 4, "to": None, "authorization_list": [AUTHORIZATION]},
            "set_code_create",
        ),
        ("Shanghai", {"to": None, "data": bytes(49153)}, "initcode_too_large"),
        ("Osaka", {"gas_limit": 2**24, "gas_price": 2**240}, "insufficient_funds"),
        ("Osaka", {"gas_limit": 20_999}, "intrinsic_gas"),
        ("Osaka", {"gas_limit": 21_039, "data": b"\1"}, "floor_gas"),
    ],
)
def test_a_broken_rule_is_named(fork: str, fields: dict, code: str) -> None:
    assert refused(fork, **fields).code == code


def test_limits_belong_to_their_forks() -> None:
    checked("Prague", gas_limit=2**24 + 1)
    checked("Prague", type=3, blob_versioned_hashes=[HASH] * 9)
    checked("Osaka", type=3, blob_versioned_hashes=[HASH] * 6)
    checked("Paris", to=None, data=bytes(49153))
    checked("Cancun", gas_limit=21_016, data=b"\1")


def test_refusals_say_what_disagrees() -> None:
    error = refused("Osaka", gas_limit=20_999)
    assert (error.have, error.want) == (20_999, 21_000)
    assert str(error) == "intrinsic gas too low: have 20999, want 21000"
    error = refused("Osaka", type=2, max_fee_per_gas=1, max_priority_fee_per_gas=2)
    assert str(error) == (
        "max priority fee per gas higher than max fee per gas: "
        f"address {to_checksum_address(SIGNER)}, maxPriorityFeePerGas: 2, maxFeePerGas: 1"
    )


def test_a_high_s_is_refused_from_homestead_on() -> None:
    low = Transaction.build(gas_limit=21_000, to=bytes(20)).sign(KEY)
    *fields, _, r, s = rlp.decode(low.raw)
    high = rlp.encode([*fields, 55 - low.v, r, ORDER - int.from_bytes(s, "big")])
    assert validate_transaction(high, schedule_for("Frontier"))[1] == low.sender
    with pytest.raises(InvalidTransaction) as caught:
        validate_transaction(high, schedule_for("Homestead"))
    assert caught.value.code == "invalid_signature"


def test_chain_ids_in_legacy_signatures_count_from_spurious_dragon_on() -> None:
    protected = Transaction.build(gas_limit=21_000, to=bytes(20)).sign(KEY, chain_id=1).raw
    with pytest.raises(InvalidTransaction) as caught:
        validate_transaction(protected, schedule_for("Homestead"))
    assert caught.value.code == "invalid_signature"
    assert validate_transaction(protected, schedule_for("SpuriousDragon"))[2] == 21_000
    with pytest.raises(InvalidTransaction) as caught:
        validate_transaction(protected, schedule_for("SpuriousDragon"), chain_id=2)
    assert (caught.value.code, caught.value.have, caught.value.want) == ("wrong_chain_id", 1, 2)


def test_bytes_that_do_not_decode_are_refused_as_such() -> None:
    with pytest.raises(TransactionDecodeError):
        validate_transaction(b"\xc0", schedule_for("Osaka"))


@given(
    st.binary(max_size=70), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.booleans()
)
def test_intrinsic_gas_is_the_sum_of_its_parts(
    data: bytes, entries: int, slots: int, tuples: int, creates: bool
) -> None:
    zeros = data.count(0)
    others = len(data) - zeros
    access = [(bytes(20), list(range(slots)))] * entries
    legacy = Transaction.build(data=data, to=None if creates else bytes(20))
    words = (len(data) + 31) // 32
    creation = 32_000 if creates else 0
    expected = {
        "Frontier": 21_000 + 4 * zeros + 68 * others,
        "Homestead": 21_000 + 4 * zeros + 68 * others + creation,
        "Istanbul": 21_000 + 4 * zeros + 16 * others + creation,
        "Shanghai": 21_000 + 4 * zeros + 16 * others + creation + 2 * words * creates,
    }
    for fork, gas in expected.items():
        assert intrinsic_gas_of(legacy, schedule_for(fork)) == (gas, 0)
    full = Transaction.build(
        data=data, to=bytes(20), access_list=access, authorization_list=[AUTHORIZATION] * tuples
    )
    gas = 21_000 + 4 * zeros + 16 * others + entries * (2_400 + 1_900 * slots) + 25_000 * tuples
    floor = 21_000 + 10 * (zeros + 4 * others)
    assert intrinsic_gas_of(full, schedule_for("Osaka")) == (gas, floor)
