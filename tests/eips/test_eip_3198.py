"""EIP-3198: BASEFEE opcode.

A contract can read the base fee of its block.
"""

from .support import (
    CONTRACT,
    INVALID_OPCODE,
    before_and_after,
    chain_across,
    cost,
    grow,
    payment,
    run,
    top,
)

BEFORE, AFTER = before_and_after(3198)


def test_the_opcode_gives_the_base_fee():
    assert run(BEFORE, "BASEFEE").error == INVALID_OPCODE
    assert top(AFTER, "BASEFEE", base_fee=7) == 7
    assert cost(AFTER, "", "BASEFEE") == 2


def test_it_is_the_base_fee_of_the_header():
    chain = chain_across(3198, {CONTRACT: {"code": "BASEFEE 0 SSTORE"}})
    found = []
    for nonce in range(3):
        block = grow(chain, transactions=[payment(nonce, to=CONTRACT, gas_limit=60_000, value=0)])
        found.append(chain.layer_of(block.hash).storage(CONTRACT, 0))
    assert found == [0, 10**9, chain.head.header.base_fee_per_gas]
    assert found[2] < 10**9
