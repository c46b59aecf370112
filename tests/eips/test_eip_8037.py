"""EIP-8037: State creation gas cost increase.

New accounts, slots and code pay state gas, a second dimension with a separate reservoir. Figures
of whole transactions are in `tests/unit/core/execution/test_state_gas.py`.
"""

import pytest

from .support import CONTRACT, OTHER, before_and_after, calling, cost, gas, run, top

BEFORE, AFTER = before_and_after(8037)
FRESH = b"\xf0" * 20
ACCOUNT, SLOT, BYTE = 183_600, 97_920, 1_530


def test_a_new_slot_pays_for_its_bytes():
    assert cost(AFTER, "", "1 0 SSTORE") == 6 + 2_100 + 10_000 + SLOT
    assert cost(AFTER, "", "1 0 SSTORE", storage={0: 2}) == 6 + 2_100 + 10_000


def test_a_new_account_pays_for_its_bytes():
    exists = {OTHER: {"balance": 1}}
    call = calling("CALL", OTHER, value=1)
    fresh = calling("CALL", FRESH, value=1)
    world = {"balance": 9, "accounts": exists}
    assert gas(AFTER, fresh, **world) - gas(AFTER, call, **world) == ACCOUNT
    assert gas(AFTER, calling("CALL", FRESH), **world) == gas(
        AFTER, calling("CALL", OTHER), **world
    )


def test_code_pays_for_each_byte_and_its_hash():
    def creating(size):
        return f"0x60{size:02x}5ff3 0 MSTORE 4 28 0 CREATE"

    assert gas(AFTER, creating(33)) - gas(AFTER, creating(32)) == BYTE + 6 + 3
    assert gas(AFTER, creating(2)) - gas(AFTER, creating(1)) == BYTE


def test_a_creation_that_fails_gives_the_account_back():
    failing = "0x5f5ffd 0 MSTORE 3 29 0 CREATE"
    assert gas(AFTER, failing) < 20_000
    assert gas(AFTER, "0 0 0 CREATE") > ACCOUNT


def test_gas_that_comes_back_can_be_used_again():
    # Every round charges and refunds the state gas of a slot. The gas suffices for one charge.
    rounds = "1 0 SSTORE 0 0 SSTORE " * 20
    assert run(AFTER, rounds, gas=SLOT + 20_000 + 20 * 11_000).success


def test_a_frame_without_the_state_gas_halts():
    assert not run(AFTER, "1 0 SSTORE", gas=SLOT + 12_105).success
    assert run(AFTER, "1 0 SSTORE", gas=SLOT + 12_106).success


def test_state_gas_of_a_failed_call_comes_back_to_the_caller():
    accounts = {OTHER: {"code": "1 0 SSTORE 0 0 REVERT"}}
    world = {"accounts": accounts}
    assert gas(AFTER, calling("CALL", OTHER), **world) < 20_000
    burning = {OTHER: {"code": "1 0 SSTORE INVALID"}}
    used = gas(AFTER, calling("CALL", OTHER, gas=200_000), accounts=burning)
    assert used > 200_000


def test_the_gas_opcode_shows_regular_gas_alone():
    before = top(AFTER, "GAS", gas=200_000)
    assert before == 200_000 - 2


def test_storage_alone_keeps_no_contract_from_being_created():
    code = "0 0 0 CREATE"
    created = run(AFTER, code + " 0 MSTORE 32 0 RETURN").output[12:]
    for fork, works in ((AFTER, True), ("amsterdam-2026-04", False), (BEFORE, False)):
        accounts = {created: {"storage": {1: 1}}}
        assert bool(top(fork, code, accounts=accounts)) is works


@pytest.mark.parametrize("fork", [AFTER, "amsterdam-2026-04"])
def test_a_contract_pays_no_regular_gas_for_its_bytes(fork):
    assert run(fork, "0 0 0 CREATE").success
    assert CONTRACT
