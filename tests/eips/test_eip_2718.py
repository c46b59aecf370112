"""EIP-2718: Typed transaction envelope.

A transaction may be a type byte and a payload, and so may its receipt. Blocks contain it as a byte
string.
"""

import pytest
import rlp

from fastevm import Transaction
from fastevm.errors import InvalidBlock, TransactionDecodeError

from .support import KEY, OTHER, before_and_after, build, chain_across, grow, payment, refusal

BEFORE, AFTER = before_and_after(2718)


def envelope(nonce):
    return Transaction.build(
        type=1, chain_id=1, nonce=nonce, to=OTHER, gas_limit=21_000, gas_price=10**9
    ).sign(KEY)


def test_an_envelope_is_refused_and_then_executed():
    typed = envelope(0)
    assert typed.raw[0] == 1
    assert rlp.decode(typed.raw[1:])[4] == OTHER
    assert refusal(BEFORE, typed) == "type_not_supported"
    assert refusal(AFTER, typed) is None


def test_blocks_and_receipts_hold_envelopes_beside_lists():
    chain = chain_across(2718)
    with pytest.raises(InvalidBlock, match="type not supported"):
        build(chain, transactions=[envelope(0)])
    before = grow(chain, transactions=[payment(0)])
    after = grow(chain, transactions=[payment(1), envelope(2)])
    assert [type(item) for item in rlp.decode(before.rlp())[1]] == [list]
    legacy, typed = rlp.decode(after.rlp())[1]
    assert isinstance(legacy, list)
    assert typed == envelope(2).raw
    first_bytes = [receipt.rlp()[0] for receipt in chain.receipts_of(after.hash)]
    assert first_bytes[0] >= 0xC0
    assert first_bytes[1] == 1


def test_a_type_that_nobody_defined_does_not_decode():
    with pytest.raises(TransactionDecodeError):
        Transaction.decode(b"\x7f" + envelope(0).raw[1:])
