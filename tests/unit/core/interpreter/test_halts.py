"""Tests every way a frame can end: consumed gas, returned gas and error text."""

import pytest

from fastevm.testing.interpreter import BareMachine, Outcome

from .programs import MAIN, OTHER, asm, returning, store_initcode

GAS = 100_000


def run(code: bytes, fork: str = "osaka", **options: object) -> tuple[BareMachine, Outcome]:
    machine = BareMachine(fork, {MAIN: {"code": code, "balance": 100}})
    return machine, machine.call(MAIN, gas=GAS, **options)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (asm(1, "ADD"), "stack underflow"),
        (asm(*[1] * 1024, 1), "stack limit reached"),
        (asm(*[1] * 1024, "DUP1"), "stack limit reached"),
        (asm(3, "JUMP"), "invalid jump destination"),
        (asm(1, 1 << 64, "JUMPI"), "invalid jump destination"),
        (asm(b"\x5b\x00", "POP", 1, "JUMP"), "invalid jump destination"),
        (bytes([0x0C]), "invalid opcode"),
        (bytes([0xEF]), "invalid opcode"),
        (asm("INVALID"), "invalid opcode"),
        (asm((1 << 64) - 1, 0, 0, "RETURNDATACOPY"), "out of gas"),
        (asm(1, 0, 0, "RETURNDATACOPY"), "return data out of bounds"),
        (asm(0, 1, 0, "RETURNDATACOPY"), "return data out of bounds"),
        (asm(1 << 255, "MLOAD"), "out of gas"),
        (asm(1 << 40, 0, "RETURN"), "out of gas"),
        (asm(1, (1 << 256) - 1, "KECCAK256"), "out of gas"),
        (asm("JUMPDEST", 0, "JUMP"), "out of gas"),
        (asm(0xC001, 0, 0, "CREATE"), "max initcode size exceeded"),
    ],
)
def test_a_halt_consumes_all_gas_and_gives_no_output(code: bytes, error: str) -> None:
    _, outcome = run(code)
    assert (outcome.error, outcome.gas_left, outcome.output) == (error, 0, b"")


@pytest.mark.parametrize(
    "code",
    [
        asm(1, 1, "SSTORE"),
        asm(1, 1, "TSTORE"),
        asm(0, 0, "LOG0"),
        asm(0, 0, 0, "CREATE"),
        asm(0, 0, 0, 0, "CREATE2"),
        asm(0, 0, 0, 0, 1, OTHER, 0, "CALL"),
        asm(OTHER, "SELFDESTRUCT"),
    ],
)
def test_a_static_frame_must_not_write(code: bytes) -> None:
    _, outcome = run(code, static=True)
    assert (outcome.error, outcome.gas_left) == ("write protection", 0)
    caller = returning(0, 0, 0, 0, OTHER, 50_000, "STATICCALL")
    machine = BareMachine("osaka", {MAIN: {"code": caller}, OTHER: {"code": code, "balance": 10}})
    assert machine.call(MAIN, gas=GAS).output == bytes(32)


def test_a_static_frame_may_call_without_value() -> None:
    _, outcome = run(asm(0, 0, 0, 0, 0, OTHER, 0, "CALL"), static=True)
    assert outcome.status == 1


def test_revert_keeps_gas_and_output_and_undoes_the_state() -> None:
    machine, outcome = run(asm(7, 0, "SSTORE", 0xAB, 0, "MSTORE8", 1, 0, "REVERT"))
    assert outcome.error == "execution reverted"
    assert outcome.output == b"\xab"
    assert outcome.gas_left > 0
    assert machine.storage(MAIN, 0) == 0
    assert outcome.refund == 0


def test_a_halt_undoes_storage_logs_refund_and_transfers() -> None:
    changes = asm(1, 0, "SSTORE", 0, 5, "SSTORE", 0, 0, "LOG0")
    code = changes + asm(0, 0, 0, 0, 3, OTHER, 0, "CALL INVALID")
    accounts = {MAIN: {"code": code, "balance": 10, "storage": {5: 1}}}
    machine = BareMachine("osaka", accounts)
    outcome = machine.call(MAIN)
    assert (outcome.logs, outcome.refund) == ((), 0)
    assert (machine.storage(MAIN, 0), machine.storage(MAIN, 5)) == (0, 1)
    assert machine.account(MAIN)["balance"] == 10
    assert machine.account(OTHER) is None


def test_the_place_of_a_halt_is_kept_for_error_texts() -> None:
    machine, _ = run(asm(1, 2, "POP ADD"))
    assert machine.halt() == (0x01, 1, 5)
    machine, _ = run(asm(1) + b"\x0c")
    assert machine.halt() == (0x0C, 1, 2)


def test_code_ends_with_a_stop() -> None:
    _, outcome = run(asm(1, 2, "ADD"))
    assert (outcome.status, outcome.output, GAS - outcome.gas_left) == (1, b"", 9)


def test_an_op_of_a_later_fork_is_undefined() -> None:
    for fork, code in (
        ("homestead", asm(0, 0, "REVERT")),
        ("frontier", asm(*[0] * 5, OTHER, "DELEGATECALL")),
        ("byzantium", asm(1, 1, "SHL")),
        ("london", bytes([0x5F])),
        ("shanghai", asm(0, "TLOAD")),
        ("prague", asm(0, "CLZ")),
    ):
        assert run(code, fork)[1].error == "invalid opcode"


def test_a_creation_that_fails_gives_its_words() -> None:
    for initcode, error in (
        (asm(0xEF, 0, "MSTORE8", 1, 0, "RETURN"), "invalid code: must not begin with 0xef"),
        (asm(0x6001, 0, "RETURN"), "max code size exceeded"),
        (asm(0x500, 0, "RETURN"), "contract creation code storage out of gas"),
    ):
        outcome = BareMachine("osaka").create(OTHER, initcode, gas=200_000)
        assert (outcome.error, outcome.gas_left) == (error, 0)


def test_a_message_without_the_balance_for_it_changes_nothing() -> None:
    machine = BareMachine("osaka", {MAIN: {"code": asm(1, 0, "SSTORE")}})
    outcome = machine.call(MAIN, value=1, gas=GAS)
    assert outcome.error == "insufficient balance for transfer"
    assert outcome.gas_left == GAS
    assert machine.storage(MAIN, 0) == 0


def test_a_raised_cancel_flag_ends_loops_and_calls() -> None:
    machine = BareMachine("osaka", {MAIN: {"code": asm("JUMPDEST", 0, "JUMP")}})
    machine.cancel_now()
    outcome = machine.call(MAIN)
    assert (outcome.error, outcome.gas_left) == ("execution aborted", 0)
    machine.cancel_now(False)
    assert machine.call(MAIN).error == "out of gas"


def test_memory_beyond_the_limit_of_the_machine_is_out_of_memory() -> None:
    machine = BareMachine("osaka", {MAIN: {"code": asm(1, 1 << 31, "MSTORE8")}})
    assert machine.call(MAIN, gas=1 << 50).error == "out of memory"
    initcode = store_initcode(asm(1 << 31, "MLOAD"))
    nested = initcode + asm(len(asm(1 << 31, "MLOAD")), 0, 0, "CREATE", 1, 0, "SSTORE")
    machine = BareMachine("osaka", {MAIN: {"code": nested}})
    assert machine.call(MAIN, gas=1 << 50).error == "out of memory"
    assert machine.account(MAIN)["nonce"] == 0
