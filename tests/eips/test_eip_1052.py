"""EIP-1052: EXTCODEHASH opcode.

EXTCODEHASH returns the hash of an account's code without reading the code.
"""

import pytest
from eth_utils import keccak

from .support import INVALID_OPCODE, OTHER, assemble, before_and_after, cost, run, top

BEFORE, AFTER = before_and_after(1052)
READ = f"0x{OTHER.hex()} EXTCODEHASH"


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        ({OTHER: {"code": "1 2 ADD"}}, keccak(assemble("1 2 ADD"))),
        ({OTHER: {"balance": 1}}, keccak(b"")),
        ({OTHER: {}}, bytes(32)),
        ({}, bytes(32)),
    ],
)
def test_the_hash_of_an_account_s_code(account, expected):
    assert run(BEFORE, READ, accounts=account).error == INVALID_OPCODE
    assert top(AFTER, READ, accounts=account) == int.from_bytes(expected, "big")


def test_it_costs_less_than_to_read_and_hash_the_code():
    address = f"0x{OTHER.hex()}"
    assert cost(AFTER, address, "EXTCODEHASH") == 400
    by_hand = f"0 0 0 {address} EXTCODECOPY {address} EXTCODESIZE 0 KECCAK256"
    assert cost(AFTER, "", by_hand) > 1_400
