"""EIP-150: Gas cost changes for IO-heavy operations.

Opcodes that read the state cost more, and a caller keeps one 64th of its gas.
"""

import pytest

from .support import CONTRACT, OTHER, before_and_after, calling, cost, machine, run, top

BEFORE, AFTER = before_and_after(150)
THERE = {"accounts": {OTHER: {"balance": 1}}}
NEW = "0x" + "99" * 20


@pytest.mark.parametrize(
    ("arguments", "mnemonic", "before", "after"),
    [
        (f"0x{OTHER.hex()}", "EXTCODESIZE", 20, 700),
        (f"0 0 0 0x{OTHER.hex()}", "EXTCODECOPY", 20, 700),
        (f"0x{OTHER.hex()}", "BALANCE", 20, 400),
        ("0", "SLOAD", 50, 200),
        (f"0 0 0 0 0 0x{OTHER.hex()} 0", "CALL", 40, 700),
        (f"0 0 0 0 0x{OTHER.hex()} 0", "DELEGATECALL", 40, 700),
        (f"0 0 0 0 0 0x{OTHER.hex()} 0", "CALLCODE", 40, 700),
        (f"0x{OTHER.hex()}", "SELFDESTRUCT", 0, 5_000),
    ],
)
def test_what_reads_the_state_costs_more(arguments, mnemonic, before, after):
    assert cost(BEFORE, arguments, mnemonic, **THERE) == before
    assert cost(AFTER, arguments, mnemonic, **THERE) == after


def test_selfdestruct_pays_for_a_new_beneficiary():
    assert cost(BEFORE, NEW, "SELFDESTRUCT") == 0
    assert cost(AFTER, NEW, "SELFDESTRUCT") == 5_000 + 25_000


def test_a_call_that_asks_for_too_much_gets_what_is_there_instead_of_failing():
    asks = calling("CALL", OTHER, gas=1_000_000)
    assert run(BEFORE, asks, gas=100_000, **THERE).error == "out of gas"
    assert run(AFTER, asks, gas=100_000, **THERE).success


def test_a_call_keeps_one_64th_of_what_is_left():
    """The callee uses all its gas, so the caller is left with 1/64 of what it had."""
    hungry = {OTHER: {"code": "INVALID"}}
    source = calling("CALL", OTHER, gas=10**9) + " POP GAS"
    left = top(AFTER, source, accounts=hungry, gas=6_400_000 + 7 * 3 + 700)
    assert left == 6_400_000 // 64 - 2 - 2  # minus the gas of POP and GAS


def test_recursion_ends_for_lack_of_gas_long_before_the_depth_limit():
    """The contract calls itself with all its gas, and counts the calls in slot 0."""
    recursing = f"0 SLOAD 1 ADD 0 SSTORE {calling('CALL', CONTRACT, gas='2000 GAS SUB')}"
    depths = {}
    for fork in (BEFORE, AFTER):
        evm = machine(fork, {CONTRACT: {"code": recursing, "storage": {0: 0}}})
        assert evm.transact(CONTRACT, gas=30_000_000).success
        depths[fork] = evm.storage(CONTRACT, 0)
    assert depths[BEFORE] == 1_025
    assert depths[AFTER] < 400
