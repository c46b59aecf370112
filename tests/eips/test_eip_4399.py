"""EIP-4399: Supplant DIFFICULTY with PREVRANDAO.

Opcode 0x44 returns the beacon chain's randomness, which replaces the mix hash in the header.
"""

from .support import CONTRACT, before_and_after, chain_across, cost, grow, payment, top

BEFORE, AFTER = before_and_after(4399)


def test_the_opcode_gives_another_value():
    block = {"difficulty": 0x20000, "prev_randao": 2**255 + 1}
    assert top(BEFORE, "PREVRANDAO", **block) == 0x20000
    assert top(AFTER, "PREVRANDAO", **block) == 2**255 + 1


def test_it_costs_the_same():
    assert cost(BEFORE, "", "PREVRANDAO") == cost(AFTER, "", "PREVRANDAO") == 2


def test_it_is_what_the_header_says():
    chain = chain_across(4399, {CONTRACT: {"code": "PREVRANDAO NUMBER SSTORE"}})
    for nonce in (0, 1):
        store = payment(nonce, to=CONTRACT, gas_limit=60_000, value=0)
        grow(chain, transactions=[store], mix_hash=b"\xab" * 32)
    layer = chain.layer_of(chain.head.hash)
    assert layer.storage(CONTRACT, 1) == chain.block_by_number(1).header.difficulty
    assert layer.storage(CONTRACT, 2) == int.from_bytes(b"\xab" * 32, "big")
