"""Tests the benchmarks' assembler and the programs that it assembles."""

import pytest

import fastevm
from fastevm.bench.programs.assembler import assemble
from fastevm.bench.programs.loops import (
    CALLER,
    GUARDED,
    HELPER,
    PROGRAM,
    TOKEN,
    balance_slot,
    transfer,
)


def test_words_become_bytes():
    assert assemble("PUSH0 5 0x0102 ADD") == bytes.fromhex("5f600561010201")


def test_a_label_is_a_destination_and_its_offset():
    assert assemble("@end JUMP INVALID end: STOP ; rest") == bytes.fromhex("61000556fe5b00")


@pytest.mark.parametrize("program", GUARDED, ids=[program.name for program in GUARDED])
def test_a_guarded_program_succeeds_with_the_same_gas_each_time(program):
    call = program.call()
    first, second = call(), call()
    assert first.success
    assert first.gas_used == second.gas_used


def test_the_token_moves_balances():
    machine = fastevm.EVM()
    machine.set_account(CALLER, 10**18)
    machine.set_account(PROGRAM, code=TOKEN, storage={balance_slot(CALLER): 100})
    moved = machine.transact(PROGRAM, transfer(HELPER, 30), sender=CALLER)
    assert moved.success and len(moved.logs) == 1
    assert machine.storage(PROGRAM, balance_slot(CALLER)) == 70
    assert machine.storage(PROGRAM, balance_slot(HELPER)) == 30
    assert not machine.transact(PROGRAM, transfer(HELPER, 71), sender=CALLER).success
