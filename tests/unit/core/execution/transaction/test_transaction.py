"""Tests that bytes, hashes and senders equal those of eth-account and the package rlp."""

import pickle

import pytest
import rlp
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from eth_keys import keys
from eth_utils import keccak
from hexbytes import HexBytes
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.execution.transaction.transaction import Transaction, sign_authorization
from fastevm.core.execution.transaction.transaction_fields import Authorization
from fastevm.errors import TransactionDecodeError

KEY = bytes.fromhex("45a915e4d060149eb4365960e6a7a45f334393093061116b197e3240065ff2d8")
SIGNER = keys.PrivateKey(KEY).public_key.to_canonical_address()
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

small = st.integers(0, 2**64 - 1)
words = st.one_of(st.integers(0, 2**40), st.integers(0, 2**256 - 1))
addresses = st.binary(min_size=20, max_size=20)
hashes = st.binary(min_size=32, max_size=32)
access_lists = st.lists(st.tuples(addresses, st.lists(hashes, max_size=3)), max_size=3)
authorizations = st.lists(
    st.tuples(words, addresses, small, st.integers(0, 255), words, words), max_size=3
)
common = {
    "nonce": small,
    "gas_limit": small,
    "to": st.one_of(st.none(), addresses),
    "value": words,
    "data": st.binary(max_size=80),
    "r": words,
    "s": words,
}
typed = {**common, "chain_id": small, "access_list": access_lists, "v": st.integers(0, 1)}
two_caps = {**typed, "max_priority_fee_per_gas": words, "max_fee_per_gas": words}
kinds = st.one_of(
    st.fixed_dictionaries(
        {**common, "type": st.just(0), "gas_price": words, "v": st.integers(0, 2**60)}
    ),
    st.fixed_dictionaries({**typed, "type": st.just(1), "gas_price": words}),
    st.fixed_dictionaries({**two_caps, "type": st.just(2)}),
    st.fixed_dictionaries(
        {
            **two_caps,
            "type": st.just(3),
            "max_fee_per_blob_gas": words,
            "blob_versioned_hashes": st.lists(hashes, max_size=3),
        }
    ),
    st.fixed_dictionaries({**two_caps, "type": st.just(4), "authorization_list": authorizations}),
)


def envelope(f: dict) -> bytes:
    """Returns the canonical bytes that the EIPs define, encoded with the package rlp."""
    to = f["to"] or b""
    access = [[address, list(slots)] for address, slots in f.get("access_list", [])]
    signature = [f["v"], f["r"], f["s"]]
    if f["type"] == 0:
        return rlp.encode(
            [f["nonce"], f["gas_price"], f["gas_limit"], to, f["value"], f["data"], *signature]
        )
    if f["type"] == 1:
        fees = [f["gas_price"]]
    else:
        fees = [f["max_priority_fee_per_gas"], f["max_fee_per_gas"]]
    extra: list = []
    if f["type"] == 3:
        extra = [f["max_fee_per_blob_gas"], f["blob_versioned_hashes"]]
    elif f["type"] == 4:
        extra = [[list(a) for a in f["authorization_list"]]]
    body = [f["chain_id"], f["nonce"], *fees, f["gas_limit"], to, f["value"], f["data"], access]
    return bytes([f["type"]]) + rlp.encode([*body, *extra, *signature])


@settings(max_examples=200)
@given(kinds)
def test_building_gives_the_canonical_bytes_and_decoding_gives_the_fields_back(
    fields: dict,
) -> None:
    raw = envelope(fields)
    built = Transaction.build(**fields)
    assert built.raw == raw
    decoded = Transaction.decode(raw)
    assert decoded == built
    assert decoded.hash == keccak(raw)
    for name, value in fields.items():
        if name == "access_list":
            value = tuple((a, tuple(int.from_bytes(s, "big") for s in slots)) for a, slots in value)
        elif name == "authorization_list":
            value = tuple(Authorization(*a) for a in value)
        elif name == "blob_versioned_hashes":
            value = tuple(value)
        assert getattr(decoded, name) == value, name


@settings(max_examples=60)
@given(kinds, st.integers(1, ORDER - 1), st.integers(1, 2**63))
def test_what_is_signed_is_recovered(fields: dict, key: int, chain_id: int) -> None:
    secret = key.to_bytes(32, "big")
    unsigned = Transaction.build(**{**fields, "v": 0, "r": 0, "s": 0})
    signed = unsigned.sign(secret, chain_id=chain_id if fields["type"] == 0 else None)
    digest = signing_digest(fields, chain_id)
    assert unsigned.signing_hash(chain_id=chain_id if fields["type"] == 0 else None) == digest
    assert signed.signing_hash() == digest
    assert signed.sender == keys.PrivateKey(secret).public_key.to_canonical_address()
    signature = keys.Signature(vrs=(signed.y_parity, signed.r, signed.s))
    assert (
        signature.recover_public_key_from_msg_hash(digest).to_canonical_address() == signed.sender
    )


def signing_digest(fields: dict, chain_id: int) -> bytes:
    raw = envelope(fields)
    if fields["type"] == 0:
        return keccak(rlp.encode([*rlp.decode(raw)[:-3], chain_id, 0, 0]))
    return keccak(raw[:1] + rlp.encode(rlp.decode(raw[1:])[:-3]))


ETH_ACCOUNT_FORMS = [
    {"gasPrice": 10**9, "chainId": 1},
    {"gasPrice": 10**9, "chainId": 31337},
    {"gasPrice": 10**9},
    {
        "type": 1,
        "gasPrice": 7,
        "chainId": 5,
        "accessList": [{"address": "0x" + "22" * 20, "storageKeys": ["0x" + "33" * 32]}],
    },
    {"type": 2, "maxFeePerGas": 9, "maxPriorityFeePerGas": 4, "chainId": 1},
]


@pytest.mark.parametrize("form", ETH_ACCOUNT_FORMS)
def test_eth_account_signs_the_same(form: dict) -> None:
    fields = {
        "nonce": 5,
        "gas": 30_000,
        "to": "0x" + "11" * 20,
        "value": 12,
        "data": "0xc0ffee",
        **form,
    }
    theirs = Account.sign_transaction(fields, KEY)
    ours = Transaction.decode(bytes(theirs.raw_transaction))
    assert ours.sender == SIGNER
    assert ours.hash == bytes(theirs.hash)
    assert (ours.r, ours.s, ours.v) == (theirs.r, theirs.s, theirs.v)
    access = [
        (bytes.fromhex(e["address"][2:]), [bytes.fromhex(k[2:]) for k in e["storageKeys"]])
        for e in form.get("accessList", [])
    ]
    built = Transaction.build(
        type=form.get("type", 0),
        chain_id=form.get("chainId"),
        nonce=5,
        gas_limit=30_000,
        gas_price=form.get("gasPrice"),
        max_fee_per_gas=form.get("maxFeePerGas"),
        max_priority_fee_per_gas=form.get("maxPriorityFeePerGas"),
        to=b"\x11" * 20,
        value=12,
        data=b"\xc0\xff\xee",
        access_list=access if "accessList" in form else None,
    )
    assert built.sign(KEY, chain_id=form.get("chainId")).raw == ours.raw


def test_eth_account_signs_the_same_set_code_transaction() -> None:
    account = Account.from_key(KEY)
    tuple_ = account.sign_authorization({"chainId": 1, "address": "0x" + "44" * 20, "nonce": 7})
    ours = sign_authorization(KEY, chain_id=1, address=b"\x44" * 20, nonce=7)
    assert (ours.y_parity, ours.r, ours.s) == (tuple_.y_parity, tuple_.r, tuple_.s)
    theirs = account.sign_transaction(
        {
            "type": 4,
            "chainId": 1,
            "nonce": 6,
            "gas": 100_000,
            "to": "0x" + "11" * 20,
            "value": 0,
            "maxFeePerGas": 9,
            "maxPriorityFeePerGas": 4,
            "authorizationList": [tuple_],
            "data": "0x",
        }
    )
    decoded = Transaction.decode(bytes(theirs.raw_transaction))
    assert decoded.sender == SIGNER
    assert decoded.authorities == (SIGNER,)
    assert decoded.authorization_list == (ours,)
    assert decoded == Transaction.build(
        chain_id=1,
        nonce=6,
        gas_limit=100_000,
        to=b"\x11" * 20,
        max_fee_per_gas=9,
        max_priority_fee_per_gas=4,
        authorization_list=[ours],
    ).sign(KEY)


def test_eth_account_reads_our_blob_transaction() -> None:
    ours = Transaction.build(
        chain_id=1,
        nonce=1,
        gas_limit=21_000,
        to=b"\x11" * 20,
        max_fee_per_gas=9,
        max_fee_per_blob_gas=3,
        blob_versioned_hashes=[b"\x01" + bytes(31)],
    ).sign(KEY)
    theirs = TypedTransaction.from_bytes(HexBytes(ours.raw))
    assert theirs.as_dict()["maxFeePerBlobGas"] == 3
    assert bytes.fromhex(Account.recover_transaction(ours.raw)[2:]) == SIGNER


def test_an_unsigned_call_has_the_sender_it_was_given() -> None:
    call = Transaction.build(sender=b"\xaa" * 20, type=2, max_fee_per_gas=0, gas_limit=1)
    assert (call.v, call.r, call.s) == (0, 0, 0)
    assert not call.is_signed
    assert call.sender == b"\xaa" * 20
    assert call.signature_fault is None
    unsigned = Transaction.build(type=2)
    assert unsigned.sender is None
    assert unsigned.signature_fault == "invalid transaction v, r, s values"


def test_types_follow_from_the_fields() -> None:
    assert Transaction.build().type == 0
    assert Transaction.build(access_list=[]).type == 1
    assert Transaction.build(max_fee_per_gas=1).type == 2
    assert Transaction.build(blob_versioned_hashes=[], max_fee_per_gas=1).type == 3
    assert Transaction.build(authorization_list=[]).type == 4


@pytest.mark.parametrize(
    ("v", "chain_id", "parity"),
    [
        (0, None, None),
        (26, None, None),
        (27, None, 0),
        (28, None, 1),
        (29, None, None),
        (34, None, None),
        (35, 0, 0),
        (37, 1, 0),
        (38, 1, 1),
        (2 * (2**64 - 1) + 36, 2**64 - 1, 1),
        (2**64, 2**63 - 18, 1),
    ],
)
def test_the_v_of_a_legacy_transaction(v: int, chain_id: int | None, parity: int | None) -> None:
    tx = Transaction.build(v=v, r=1, s=1)
    assert (tx.chain_id, tx.y_parity, tx.v) == (chain_id, parity, v)


@pytest.mark.parametrize("v", [2 * 2**64 + 35, 2**128, 2**256 - 1])
def test_chain_ids_over_64_bits_do_not_decode(v: int) -> None:
    with pytest.raises(TransactionDecodeError, match="chain id"):
        Transaction.build(v=v, r=1, s=1)


def typed_body(**changes: object) -> bytes:
    fields: dict = {
        "chain": b"\1",
        "nonce": b"\1",
        "tip": b"\1",
        "cap": b"\2",
        "gas": b"\x52\x08",
        "to": b"\1" * 20,
        "value": b"",
        "data": b"",
        "access": [],
        "v": b"",
        "r": b"\1",
        "s": b"\1",
    }
    fields.update(changes)
    return b"\2" + rlp.encode([value for value in fields.values() if value is not None])


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"chain": b"\1" * 9}, "chain_id"),
        ({"chain": b"\0"}, "chain_id"),
        ({"nonce": b"\0\1"}, "nonce"),
        ({"nonce": b"\1" * 9}, "nonce"),
        ({"nonce": []}, "nonce"),
        ({"tip": b"\1" * 33}, "max_priority_fee_per_gas"),
        ({"cap": b"\0\1"}, "max_fee_per_gas"),
        ({"gas": b"\1" * 9}, "gas_limit"),
        ({"to": b"\1" * 19}, "to"),
        ({"to": b"\1" * 21}, "to"),
        ({"to": []}, "to"),
        ({"value": b"\1" * 33}, "value"),
        ({"data": []}, "data"),
        ({"access": b""}, "access_list"),
        ({"access": [[b"\1" * 20]]}, "access_list"),
        ({"access": [[b"\1" * 19, []]]}, "access_list"),
        ({"access": [[b"\1" * 20, [b"\1" * 31]]]}, "access_list"),
        ({"access": [[b"\1" * 20, [], b""]]}, "access_list"),
        ({"access": [[b"\1" * 20, b"\1" * 32]]}, "access_list"),
        ({"v": b"\2"}, "y_parity"),
        ({"v": b"\0"}, "v"),
        ({"r": b"\1" * 33}, "r"),
        ({"s": b"\0\1"}, "s"),
        ({"s": None}, "s"),
        ({"more": b""}, "envelope"),
    ],
)
def test_a_wrong_field_is_named(change: dict, part: str) -> None:
    Transaction.decode(typed_body())
    with pytest.raises(TransactionDecodeError, match=f"^{part}: expected"):
        Transaction.decode(typed_body(**change))


@pytest.mark.parametrize(
    "raw", [b"", b"\0\xc0", b"\5\xc0", b"\x7f", b"\x80", b"\xc0", b"\2", b"\2\xc0"]
)
def test_what_is_no_transaction_does_not_decode(raw: bytes) -> None:
    with pytest.raises(TransactionDecodeError):
        Transaction.decode(raw)


@settings(max_examples=100)
@given(kinds, st.data())
def test_damaged_bytes_decode_to_their_own_encoding_or_not_at_all(
    fields: dict, data: st.DataObject
) -> None:
    raw = bytearray(envelope(fields))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        tx = Transaction.decode(bytes(raw))
    except TransactionDecodeError:
        return
    body = bytes(raw) if tx.type == 0 else bytes(raw[1:])
    assert rlp.encode(rlp.decode(body)) == body


def test_fields_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TransactionDecodeError, match="nonce"):
        Transaction.build(nonce=2**64)
    with pytest.raises(TransactionDecodeError, match="value"):
        Transaction.build(value=2**256)
    with pytest.raises(TransactionDecodeError, match="value"):
        Transaction.build(value=-1)
    with pytest.raises(TypeError, match="colour"):
        Transaction.build(colour=1)
    with pytest.raises(TypeError, match="gas_price"):
        Transaction.build(type=2, gas_price=1)
    with pytest.raises(TypeError):
        Transaction.build(data=5)
    with pytest.raises(ValueError, match="sender"):
        Transaction.build(sender=b"\1")
    with pytest.raises(TypeError, match=r"Transaction\.decode"):
        Transaction()


def test_a_typed_transaction_is_not_signed_for_another_chain() -> None:
    with pytest.raises(ValueError, match="chain_id"):
        Transaction.build(type=2, chain_id=1).sign(KEY, chain_id=2)


def test_the_effective_price_is_capped() -> None:
    tx = Transaction.build(max_fee_per_gas=100, max_priority_fee_per_gas=10)
    assert [tx.effective_gas_price(fee) for fee in (0, 50, 90, 95)] == [10, 60, 100, 100]
    assert Transaction.build(gas_price=7).effective_gas_price(3) == 7


def test_a_pickled_transaction_keeps_its_sender() -> None:
    call = Transaction.build(sender=b"\xaa" * 20, gas_limit=1)
    again = pickle.loads(pickle.dumps(call))
    assert again == call
    assert again.sender == call.sender
    assert hash(again) == hash(call)


def test_a_sender_may_be_hex_text_as_addresses_may() -> None:
    sender = "0x" + "a1" * 20
    assert Transaction.build(to="0x" + "b2" * 20, sender=sender).sender == bytes.fromhex(sender[2:])
    for wrong, error in ((5, TypeError), ("a1" * 20, ValueError), ("0xa1", ValueError)):
        with pytest.raises(error, match="sender"):
            Transaction.build(to=None, sender=wrong)  # type: ignore[arg-type]
