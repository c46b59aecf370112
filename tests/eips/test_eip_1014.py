"""EIP-1014: Skinny CREATE2.

A contract's address depends on creator, salt and init code, not on a nonce.
"""

from eth_utils import keccak

from .support import CONTRACT, INVALID_OPCODE, SENDER, before_and_after, cost, machine, run, top

BEFORE, AFTER = before_and_after(1014)
# Puts the init code 0x6001 (PUSH1 1), which deploys no code, at memory 0.
STORE = "0x6001 240 2 EXP MUL 0 MSTORE "
CREATE2 = STORE + "7 2 0 0 CREATE2"  # salt 7, two bytes at memory 0, no value
ADDRESS = keccak(b"\xff" + CONTRACT + (7).to_bytes(32, "big") + keccak(b"\x60\x01"))[12:]


def test_the_opcode_is_new():
    assert run(BEFORE, CREATE2).error == INVALID_OPCODE


def test_the_address_follows_from_creator_salt_and_init_code():
    assert top(AFTER, CREATE2) == int.from_bytes(ADDRESS, "big")
    evm = machine(AFTER, {CONTRACT: {"code": CREATE2, "nonce": 5}})
    evm.transact(CONTRACT, sender=SENDER)
    assert evm.nonce(ADDRESS) == 1


def test_the_address_is_taken_once():
    assert top(AFTER, f"{CREATE2} POP 7 2 0 0 CREATE2") == 0


def test_it_costs_what_create_costs_and_the_hash_of_the_init_code():
    assert cost(AFTER, STORE + "2 0 0", "CREATE") == 32_000 + 3
    assert cost(AFTER, STORE + "7 2 0 0", "CREATE2") == 32_000 + 3 + 6
