"""Tests signatures: parsing, recovery, and that their repr shows only their length."""

import pickle
from typing import Any

import pytest

from fastevm.payments import Authorization, InvalidTerms, Kind, Reason, Signature, sign
from fastevm.payments.signatures import LONGEST, SECP256K1_ORDER, fault_of, recover

from .test_authorization import KEY, PAYER, SEPOLIA, TERMS

RECEIVE = Authorization(SEPOLIA, TERMS)
SIGNED = sign(RECEIVE, KEY)
OTHER = "0x" + "77" * 32


def with_v(v: int) -> bytes:
    return SIGNED.secret_bytes[:64] + bytes([v])


def test_every_shape_of_a_signature_is_the_same_signature() -> None:
    raw = SIGNED.secret_bytes
    v, r, s = SIGNED.vrs
    shapes: list[Any] = [
        SIGNED, raw, bytearray(raw), "0x" + raw.hex(), raw.hex(),
        (v, int.from_bytes(r, "big"), int.from_bytes(s, "big")),
    ]  # fmt: skip
    assert {Signature.parse(shape) for shape in shapes} == {SIGNED}


def test_a_recovery_id_of_0_or_1_is_put_right_for_keys_and_left_alone_for_wallets() -> None:
    v = SIGNED.vrs[0]
    parsed = Signature.parse(with_v(v - 27))
    assert parsed.secret_bytes[64] == v - 27, "a wallet's last byte may mean anything"
    assert parsed.of_key == SIGNED
    assert SIGNED.of_key is SIGNED
    assert Signature(b"\x01" * 66).of_key.secret_bytes == b"\x01" * 66


@pytest.mark.parametrize("value", ["", "0x", "0xzz", (27, 1), (27, -1, 1), (300, 1, 1), b""])
def test_what_is_no_signature_is_refused(value: Any) -> None:
    with pytest.raises(InvalidTerms):
        Signature.parse(value)


def test_a_signature_of_a_wallet_has_a_limit() -> None:
    assert not Signature(bytes(LONGEST)).is_ecdsa
    with pytest.raises(InvalidTerms):
        Signature(bytes(LONGEST + 1))


def test_the_payer_is_recovered() -> None:
    assert recover(RECEIVE, SIGNED) == PAYER
    assert fault_of(RECEIVE, SIGNED) is None


def test_faults_are_named_in_the_order_of_the_tokens_checks() -> None:
    v, r, s = SIGNED.vrs
    high = (SECP256K1_ORDER - int.from_bytes(s, "big")).to_bytes(32, "big")
    cases = [
        (Signature(SIGNED.secret_bytes[:64]), Reason.SIGNATURE_LENGTH),
        (Signature(r + high + bytes([v ^ 7])), Reason.SIGNATURE_S),
        (Signature(with_v(29)), Reason.SIGNATURE_V),
        (Signature(bytes(32) + s + bytes([v])), Reason.SIGNATURE_SIGNER),
        (sign(RECEIVE, OTHER), Reason.SIGNATURE_SIGNER),
        (sign(Authorization(SEPOLIA, TERMS, Kind.TRANSFER), KEY), Reason.WRONG_TYPE),
    ]
    for signature, reason in cases:
        fault = fault_of(RECEIVE, signature)
        assert fault is not None
        assert fault[0] is reason


def test_s_of_exactly_half_the_order_is_allowed() -> None:
    half = SECP256K1_ORDER // 2
    low = Signature(SIGNED.vrs[1] + half.to_bytes(32, "big") + b"\x1b")
    high = Signature(SIGNED.vrs[1] + (half + 1).to_bytes(32, "big") + b"\x1b")
    assert (fault_of(RECEIVE, low) or [None])[0] is not Reason.SIGNATURE_S
    assert (fault_of(RECEIVE, high) or [None])[0] is Reason.SIGNATURE_S


def test_a_signature_shows_its_length_only() -> None:
    assert repr(SIGNED) == str(SIGNED) == f"{SIGNED}" == "<Signature of 65 bytes>"
    with pytest.raises(TypeError):
        pickle.dumps(SIGNED)
