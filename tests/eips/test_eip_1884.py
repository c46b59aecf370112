"""EIP-1884: Repricing for trie-size-dependent opcodes.

SLOAD, BALANCE and EXTCODEHASH cost more. SELFBALANCE reads the contract's own balance for 5 gas.
"""

import pytest

from .support import INVALID_OPCODE, OTHER, before_and_after, cost, run, top

BEFORE, AFTER = before_and_after(1884)


@pytest.mark.parametrize(
    ("argument", "mnemonic", "before", "after"),
    [
        ("0", "SLOAD", 200, 800),
        (f"0x{OTHER.hex()}", "BALANCE", 400, 700),
        (f"0x{OTHER.hex()}", "EXTCODEHASH", 400, 700),
    ],
)
def test_what_reads_the_trie_costs_more(argument, mnemonic, before, after):
    assert cost(BEFORE, argument, mnemonic) == before
    assert cost(AFTER, argument, mnemonic) == after


def test_selfbalance_gives_what_balance_of_the_own_address_gives():
    assert run(BEFORE, "SELFBALANCE", balance=7).error == INVALID_OPCODE
    assert top(AFTER, "SELFBALANCE", balance=7) == 7
    assert top(AFTER, "ADDRESS BALANCE", balance=7) == 7
    assert cost(AFTER, "", "SELFBALANCE") == 5
