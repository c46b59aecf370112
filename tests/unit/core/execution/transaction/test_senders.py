"""Tests that parallel recovery finds the same senders as recovery one by one."""

import random
from collections.abc import Callable

import pytest
import rlp

from fastevm.core.crypto.secp256k1 import public_key, public_key_address
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.transaction import Transaction, sign_authorization

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
VALUES = "invalid transaction v, r, s values"


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def fresh(transaction: Transaction) -> Transaction:
    return Transaction.decode(transaction.raw)


def batch(size: int) -> list[Transaction]:
    return [
        fresh(
            Transaction.build(nonce=i, gas_limit=21_000, to=bytes(20)).sign(key(i + 1), chain_id=1)
        )
        for i in range(size)
    ]


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_every_sender_of_a_batch_is_found(threads: int | None) -> None:
    transactions = batch(50)
    recover_senders(transactions, threads=threads)
    assert [t.sender for t in transactions] == [public_key_address(key(i + 1)) for i in range(50)]


def test_a_batch_may_be_empty_or_an_iterator_or_known() -> None:
    recover_senders([])
    transactions = batch(3)
    recover_senders(iter(transactions))
    recover_senders(transactions)
    assert None not in [t.sender for t in transactions]


def test_only_transactions_are_taken() -> None:
    with pytest.raises(TypeError):
        recover_senders([b"\xc0"])


@pytest.mark.parametrize(
    ("v", "r", "s", "fault"),
    [
        (27, 0, 1, VALUES),
        (27, 1, 0, VALUES),
        (27, ORDER, 1, VALUES),
        (27, 1, ORDER, VALUES),
        (29, 1, 1, VALUES),
        (27, 5, 1, "invalid signature: no public key signed this transaction"),
        (27, 1, 1, None),
        (28, ORDER - 1, 1, "invalid signature: no public key signed this transaction"),
    ],
)
def test_an_invalid_signature_has_no_sender_but_a_reason(
    v: int, r: int, s: int, fault: str | None
) -> None:
    transaction = Transaction.build(v=v, r=r, s=s)
    recover_senders([transaction])
    assert (transaction.sender is None) == (fault is not None)
    assert transaction.signature_fault == fault


def test_a_high_s_recovers_the_same_sender() -> None:
    low = Transaction.build(type=2, gas_limit=1).sign(key(7))
    *fields, _, r, s = rlp.decode(low.raw[1:])
    high_s = ORDER - int.from_bytes(s, "big")
    twin = Transaction.decode(b"\2" + rlp.encode([*fields, 1 - low.v, r, high_s]))
    assert twin.sender == low.sender == public_key_address(key(7))


def test_authorities_are_recovered_and_void_signatures_are_not() -> None:
    good = sign_authorization(key(5), chain_id=0, address=b"\1" * 20, nonce=2**64 - 1)
    high = good._replace(s=ORDER - good.s, y_parity=1 - good.y_parity)
    transaction = Transaction.build(
        authorization_list=[
            good,
            high,
            good._replace(y_parity=27),
            good._replace(r=0),
            good._replace(r=2**256 - 1),
        ],
        to=bytes(20),
        max_fee_per_gas=1,
    ).sign(key(6))
    recover_senders([transaction])
    assert transaction.authorities == (public_key_address(key(5)), None, None, None, None)
    assert transaction.sender == public_key_address(key(6))


def test_a_given_sender_stays_and_its_authorities_are_still_recovered() -> None:
    good = sign_authorization(key(5), chain_id=1, address=b"\1" * 20, nonce=0)
    transaction = Transaction.build(sender=b"\xaa" * 20, authorization_list=[good], to=bytes(20))
    recover_senders([transaction])
    assert transaction.sender == b"\xaa" * 20
    assert transaction.authorities == (public_key_address(key(5)),)


def signed_by_chance(count: int) -> list[Transaction]:
    """Returns transactions with random signatures. About half of them have no signer."""
    source = random.Random(7)
    return [
        Transaction.build(
            nonce=i, gas_limit=21_000, to=bytes(20), v=27 + i % 2,
            r=source.choice([source.randrange(1, ORDER), source.randrange(1, 20), ORDER - 1 - i]),
            s=source.choice([source.randrange(1, ORDER), source.randrange(1, 20), ORDER - 1 - i]),
        )
        for i in range(count)
    ]  # fmt: skip


def over_the_generator(count: int) -> list[Transaction]:
    """Returns transactions whose R is a small multiple of G, so that additions get equal points."""
    made = []
    for i in range(count):
        unsigned = Transaction.build(nonce=i, gas_limit=21_000, to=bytes(20), v=27, r=1, s=1)
        digest = int.from_bytes(unsigned.signing_hash(), "big")
        r = int.from_bytes(public_key(key(i // 4 + 1))[:32], "big")
        s = (digest, digest * 2, ORDER - digest % ORDER, r)[i % 4] % ORDER
        for v in (27, 28):
            made.append(
                Transaction.build(nonce=i, gas_limit=21_000, to=bytes(20), v=v, r=r, s=s)
            )  # fmt: skip
    return made


@pytest.mark.parametrize("make", [signed_by_chance, over_the_generator])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 500])
def test_together_and_one_by_one_find_the_same(
    make: Callable[[int], list[Transaction]], count: int
) -> None:
    transactions = make(count)
    recover_senders(transactions, threads=1)
    assert [(t.sender, t.signature_fault) for t in transactions] == [
        (t.sender, t.signature_fault) for t in map(fresh, transactions)
    ]
