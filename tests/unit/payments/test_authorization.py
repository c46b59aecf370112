"""Tests authorizations: computed vectors, type hashes, domains, and invalid terms."""

import json
from typing import Any

import pytest
from eth_account import Account

from fastevm.payments import (
    Authorization,
    Cancellation,
    Domain,
    InvalidTerms,
    Kind,
    Permit,
    Terms,
    sign,
)

KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
PAYER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
SHOP = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
SEPOLIA = Domain("USDC", "2", 84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e")
MAINNET = Domain("USD Coin", "2", 8453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")
TERMS = Terms(
    payer=PAYER,
    recipient=SHOP,
    value=10_000_000,
    valid_after=1_700_000_000,
    valid_before=1_700_000_900,
    nonce=b"\x11" * 32,
)

VECTORS = {
    Kind.TRANSFER: (
        "8de14dd63a89217815cfd584d59e0661fb4122140d382385048ff870bba7d387",
        "d789b20605ecf36c1977e23d74eccad89a23726ac190938c4a6d9e4227b75b65",
        28,
        "79e5b571dc8bd170ba4603e18e79beb2b5ba496895e5d087cd127bd713ada591",
        "7a48aebdedca90f578ebbaad71eedc453d39167e173de9e9d7ed6e8c7e22e84e",
    ),
    Kind.RECEIVE: (
        "ad7d464a02cc104c9060b8829bacf12bfff27e598479eb3c9b0b56fa799c989f",
        "441a5292666d09ed408e61fa71a89a279f678b27aeb1dd6f904180b4446dc831",
        27,
        "30231d6246d4aa42f6705ed27387a67f449bb82b42014c0d5d14beb8c10238cd",
        "60ccf3de0a2ca3703d8e9e303998bd19ae207ccffc799489855829da635c3f87",
    ),
    Kind.CANCEL: (
        "2b754a3aa7ffa3ddf5dcb15512c357e8695cb928f37bc988d03bc644a4f4af78",
        "b9d621496112dbdfd2603479b3aa0d56eeb038f398022339698af7339b1d607f",
        28,
        "b0cb90574bb10b861eec3bb31b293d266a3ad5825f183d5a14a4947953d756e1",
        "66359185a9776ce0196eca65bf684f3cd3b11bc745641039777e555f6bbe34c5",
    ),
}


def message(kind: Kind) -> Authorization | Cancellation:
    if kind is Kind.CANCEL:
        return Authorization(SEPOLIA, TERMS).cancellation
    return Authorization(SEPOLIA, TERMS, kind, Permit(SHOP, 3) if kind is Kind.PERMIT else None)


@pytest.mark.parametrize("kind", VECTORS)
def test_hashes_and_signatures_are_the_computed_ones(kind: Kind) -> None:
    struct_hash, digest, *expected = VECTORS[kind]
    signed = message(kind)
    assert signed.struct_hash.hex() == struct_hash
    assert signed.digest.hex() == digest
    v, r, s = sign(signed, KEY).vrs
    assert [v, r.hex(), s.hex()] == expected


@pytest.mark.parametrize(
    ("domain", "separator"),
    [
        (MAINNET, "02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"),
        (SEPOLIA, "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"),
    ],
)
def test_separators_are_those_that_the_tokens_publish(domain: Domain, separator: str) -> None:
    assert domain.separator.hex() == separator


@pytest.mark.parametrize(
    ("kind", "typehash"),
    [
        (Kind.TRANSFER, "7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267"),
        (Kind.RECEIVE, "d099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8"),
        (Kind.CANCEL, "158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429"),
        (Kind.PERMIT, "6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c9"),
    ],
)
def test_type_hashes_are_the_standards(kind: Kind, typehash: str) -> None:
    assert kind.typehash.hex() == typehash


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.MEMO])
def test_typed_data_survives_json_and_signs_alike(kind: Kind) -> None:
    sent = json.loads(json.dumps(message(kind).typed_data()))
    signed = Account.sign_typed_data(KEY, full_message=sent)
    assert bytes(signed.signature) == sign(message(kind), KEY).secret_bytes


def test_a_value_beyond_javascripts_numbers_keeps_its_digits() -> None:
    terms = Terms(
        payer=PAYER, recipient=SHOP, value=2**255 + 1, valid_after=0, valid_before=2**256 - 1
    )
    message = Authorization(SEPOLIA, terms).typed_data()["message"]
    assert message["value"] == str(2**255 + 1)
    assert message["validBefore"] == str(2**256 - 1)


def test_terms_from_now_on_have_a_window_and_a_nonce_of_their_own() -> None:
    terms = Terms.now(PAYER.lower(), SHOP, 5, at=1_000_000)
    other = Terms.now(PAYER, SHOP, 5, at=1_000_000)
    assert (terms.valid_after, terms.valid_before) == (1_000_000 - 60, 1_000_000 + 900)
    assert terms.payer == PAYER
    assert len(terms.nonce) == 32
    assert terms.nonce != other.nonce


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"payer": PAYER[:-1]}, "payer"),
        ({"payer": PAYER[2:]}, "payer"),
        ({"recipient": SHOP.replace("C8", "c8")}, "recipient"),
        ({"value": -1}, "value"),
        ({"value": 2**256}, "value"),
        ({"valid_before": 2**256}, "valid_before"),
        ({"valid_after": 99, "valid_before": 100}, "valid_before"),
        ({"nonce": b"\x11" * 31}, "nonce"),
    ],
)
def test_terms_that_no_token_accepts_are_refused_by_name(
    changes: dict[str, Any], field: str
) -> None:
    usual = {
        "payer": PAYER, "recipient": SHOP, "value": 1, "valid_after": 0, "valid_before": 10,
    }  # fmt: skip
    with pytest.raises(InvalidTerms, match=f"^{field}: "):
        Terms(**{**usual, **changes})


def test_an_address_with_one_wrong_digit_is_refused() -> None:
    with pytest.raises(InvalidTerms, match="checksum"):
        Domain("USDC", "2", 84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7c")


def test_a_permit_names_its_spender_and_is_valid_up_to_its_deadline() -> None:
    signed = message(Kind.PERMIT)
    assert isinstance(signed, Authorization)
    assert signed.message() == {
        "owner": TERMS.payer, "spender": SHOP, "value": str(TERMS.value), "nonce": "3",
        "deadline": str(TERMS.valid_before - 1),
    }  # fmt: skip
    assert signed.memo == "0x" + TERMS.nonce.hex()
    assert Authorization(SEPOLIA, TERMS).memo is None


def test_a_permit_belongs_to_permits_only_and_memos_are_not_signed() -> None:
    for kind, permit in ((Kind.PERMIT, None), (Kind.RECEIVE, Permit(SHOP, 0))):
        with pytest.raises(InvalidTerms, match="permit"):
            Authorization(SEPOLIA, TERMS, kind, permit)
    with pytest.raises(InvalidTerms, match="signs nothing"):
        message(Kind.MEMO).typed_data()
    for kind in (Kind.PERMIT, Kind.MEMO):
        signed = message(kind)
        assert isinstance(signed, Authorization)
        with pytest.raises(InvalidTerms, match="void the order"):
            assert signed.cancellation


def test_a_cancellation_is_no_payment() -> None:
    with pytest.raises(InvalidTerms):
        Authorization(SEPOLIA, TERMS, Kind.CANCEL)
