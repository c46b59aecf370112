"""EIP-2: Homestead hard-fork changes.

A creation costs 53,000 gas and fails if it cannot pay for its code. A signature with a high s is
invalid. The difficulty changes in steps of ten seconds of block time.
"""

import rlp

from fastevm import Transaction

from .support import (
    KEY,
    SENDER,
    before_and_after,
    chain_across,
    grow,
    machine,
    refusal,
)

BEFORE, AFTER = before_and_after(2)
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
# Deploys 100 zero bytes. Its 4 nonzero bytes cost 68 gas each, its zero byte 4.
INITCODE = bytes.fromhex("60646000f3")
INTRINSIC = 4 * 68 + 4


def test_a_creating_transaction_pays_32000_gas_more():
    assert machine(BEFORE).deploy(b"", sender=SENDER).gas_used == 21_000
    assert machine(AFTER).deploy(b"", sender=SENDER).gas_used == 53_000


def test_a_creation_that_cannot_pay_for_its_code_fails_instead_of_staying_empty():
    evm = machine(BEFORE)
    made = evm.deploy(INITCODE, sender=SENDER, gas=21_000 + INTRINSIC + 100)
    assert made.success
    assert evm.code(made.created_address) == b""
    failed = machine(AFTER).deploy(INITCODE, sender=SENDER, gas=53_000 + INTRINSIC + 100)
    assert failed.error == "contract creation code storage out of gas"
    assert failed.gas_used == 53_000 + INTRINSIC + 100


def test_the_mirrored_signature_is_refused():
    low = Transaction.build(gas_limit=21_000, gas_price=0, to=bytes(20)).sign(KEY)
    *fields, v, r, s = rlp.decode(low.raw)
    mirrored = [55 - v[0], r, CURVE_ORDER - int.from_bytes(s, "big")]
    high = Transaction.decode(rlp.encode([*fields, *mirrored]))
    assert high.sender == SENDER
    assert refusal(BEFORE, low) is refusal(BEFORE, high) is refusal(AFTER, low) is None
    assert refusal(AFTER, high) == "invalid_signature"


def test_twelve_seconds_no_longer_raise_the_difficulty():
    chain = chain_across(2)
    before, after = grow(chain).header, grow(chain).header
    assert before.timestamp == 12
    assert before.difficulty == chain.genesis.header.difficulty * 2049 // 2048
    assert after.timestamp == 24
    assert after.difficulty == before.difficulty
