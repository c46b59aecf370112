"""EIP-155: Simple replay attack protection.

A signature may contain the chain id. It is then valid on that chain only.
"""

from fastevm import Transaction

from .support import KEY, SENDER, before_and_after, refusal

BEFORE, AFTER = before_and_after(155)
PAYMENT = Transaction.build(gas_limit=21_000, gas_price=0, to=b"\x01" * 20, value=1)
UNBOUND = PAYMENT.sign(KEY)
BOUND = PAYMENT.sign(KEY, chain_id=1)


def test_a_signature_may_bind_the_chain_id():
    assert BOUND.v in (2 * 1 + 35, 2 * 1 + 36)
    assert refusal(BEFORE, BOUND) == "invalid_signature"
    assert refusal(AFTER, BOUND) is None


def test_it_is_of_no_use_on_another_chain():
    assert refusal(AFTER, BOUND, chain_id=61) == "wrong_chain_id"


def test_a_signature_without_chain_id_is_good_everywhere():
    assert UNBOUND.v in (27, 28)
    assert UNBOUND.sender == BOUND.sender == SENDER
    for fork in (BEFORE, AFTER):
        for chain_id in (1, 61):
            assert refusal(fork, UNBOUND, chain_id=chain_id) is None
