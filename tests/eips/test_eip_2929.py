"""EIP-2929: Gas cost increases for state access opcodes.

In a transaction, the first access to an account costs 2,600 gas and to a slot 2,100. Later accesses
cost 100.
"""

import pytest

from .support import OTHER, before_and_after, calling, cost, gas

BEFORE, AFTER = before_and_after(2929)
ADDRESS = f"0x{OTHER.hex()}"
COLD_ACCOUNT, COLD_SLOT, WARM = 2_600, 2_100, 100
THERE = {"accounts": {OTHER: {"balance": 1}}}


@pytest.mark.parametrize(
    ("arguments", "mnemonic", "before"),
    [
        (ADDRESS, "BALANCE", 700),
        (ADDRESS, "EXTCODESIZE", 700),
        (ADDRESS, "EXTCODEHASH", 700),
        (f"0 0 0 {ADDRESS}", "EXTCODECOPY", 700),
        (f"0 0 0 0 0 {ADDRESS} 0", "CALL", 700),
        (f"0 0 0 0 0 {ADDRESS} 0", "CALLCODE", 700),
        (f"0 0 0 0 {ADDRESS} 0", "DELEGATECALL", 700),
        (f"0 0 0 0 {ADDRESS} 0", "STATICCALL", 700),
    ],
)
def test_an_account_is_cold_once(arguments, mnemonic, before):
    first = {fork: cost(fork, arguments, mnemonic, **THERE) for fork in (BEFORE, AFTER)}
    again = f"{arguments} {mnemonic} {arguments}"
    second = {fork: cost(fork, again, mnemonic, **THERE) for fork in (BEFORE, AFTER)}
    assert first == {BEFORE: before, AFTER: COLD_ACCOUNT}
    assert second == {BEFORE: before, AFTER: WARM}


def test_a_slot_is_cold_once():
    first = [cost(fork, "5", "SLOAD") for fork in (BEFORE, AFTER)]
    second = [cost(fork, "5 SLOAD 5", "SLOAD") for fork in (BEFORE, AFTER)]
    other = [cost(fork, "5 SLOAD 6", "SLOAD") for fork in (BEFORE, AFTER)]
    assert (first, second, other) == ([800, COLD_SLOT], [800, WARM], [800, COLD_SLOT])


@pytest.mark.parametrize(
    ("original", "value", "before", "cold", "warm"),
    [
        (0, 1, 20_000, 22_100, 20_000),
        (1, 2, 5_000, 5_000, 2_900),
        (1, 0, 5_000, 5_000, 2_900),
        (1, 1, 800, 2_200, 100),
    ],
)
def test_a_write_pays_for_a_cold_slot_on_top(original, value, before, cold, warm):
    storage = {0: original}
    write = f"{value} 0"
    assert cost(BEFORE, write, "SSTORE", storage=storage) == before
    assert cost(AFTER, write, "SSTORE", storage=storage) == cold
    assert cost(AFTER, f"0 SLOAD {write}", "SSTORE", storage=storage) == warm


def test_selfdestruct_pays_for_a_cold_beneficiary_on_top():
    assert cost(BEFORE, ADDRESS, "SELFDESTRUCT", **THERE) == 5_000
    assert cost(AFTER, ADDRESS, "SELFDESTRUCT", **THERE) == 5_000 + COLD_ACCOUNT
    assert cost(AFTER, f"{ADDRESS} BALANCE {ADDRESS}", "SELFDESTRUCT", **THERE) == 5_000


def test_sender_contract_and_precompiles_are_warm_from_the_start():
    for source in ("CALLER BALANCE", "ADDRESS BALANCE"):
        assert [gas(fork, source) for fork in (BEFORE, AFTER)] == [702, 102]
    assert [cost(fork, "2", "BALANCE") for fork in (BEFORE, AFTER)] == [700, WARM]


def test_what_a_reverted_callee_accessed_is_cold_again():
    reverting = {"accounts": {OTHER: {"code": "0xdd BALANCE 0 0 REVERT"}}}
    keeping = {"accounts": {OTHER: {"code": "0xdd BALANCE 0 0 RETURN"}}}
    setup = f"{calling('CALL', OTHER)} 0xdd"
    assert cost(AFTER, setup, "BALANCE", **reverting) == COLD_ACCOUNT
    assert cost(AFTER, setup, "BALANCE", **keeping) == WARM
    assert cost(BEFORE, setup, "BALANCE", **reverting) == 700
