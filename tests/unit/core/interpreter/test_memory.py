"""Tests memory: gas, initial zeros, and isolation between frames."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.testing.interpreter import BareMachine

from .programs import MAIN, OTHER, asm, returning


def memory_cost(size: int) -> int:
    words = -(-size // 32)
    return 3 * words + words * words // 512


def used(code: bytes, gas: int = 10_000_000, **accounts: bytes) -> int:
    return gas - BareMachine("osaka", {MAIN: {"code": code}}).call(MAIN, gas=gas).gas_left


def out(code: bytes, others: dict[bytes, bytes] | None = None, data: bytes = b"") -> bytes:
    accounts = {address: {"code": c} for address, c in ({MAIN: code} | (others or {})).items()}
    return BareMachine("osaka", accounts).call(MAIN, data).output


@pytest.mark.parametrize("offset", [0, 1, 31, 32, 33, 1000, 1023, 1024, 40_000])
def test_growth_costs_linear_and_quadratic_gas(offset: int) -> None:
    assert used(asm(offset, "MLOAD")) == 6 + memory_cost(offset + 32)
    assert used(asm(1, offset, "MSTORE8")) == 9 + memory_cost(offset + 1)
    assert used(asm(offset, "MLOAD", offset, "MLOAD")) == 12 + memory_cost(offset + 32)


def test_msize_counts_whole_words() -> None:
    assert int.from_bytes(out(returning(33, "MLOAD POP MSIZE")), "big") == 96


@pytest.mark.parametrize("op", ["CALLDATACOPY", "CODECOPY", "MCOPY", "RETURN", "KECCAK256", "LOG0"])
def test_a_size_of_zero_needs_no_memory_wherever_it_is(op: str) -> None:
    far = (1 << 256) - 1
    operands = [0, far] if op in ("RETURN", "KECCAK256", "LOG0") else [0, far, far]
    outcome = BareMachine("osaka", {MAIN: {"code": asm(*operands, op)}}).call(MAIN)
    assert outcome.status == 1


def test_new_memory_is_zero_after_another_run_has_written_there() -> None:
    dirty = asm(*[part for at in range(0, 4096, 32) for part in ((1 << 256) - 1, at, "MSTORE")])
    machine = BareMachine("osaka", {MAIN: {"code": dirty}, OTHER: {"code": asm(4096, 0, "RETURN")}})
    machine.call(MAIN)
    assert machine.call(OTHER).output == bytes(4096)


def test_memory_grown_after_a_call_is_zero_where_the_callee_had_written() -> None:
    callee = asm(*[part for at in range(0, 2048, 32) for part in ((1 << 256) - 1, at, "MSTORE")])
    caller = asm(1, 0, "MSTORE8", 0, 0, 0, 0, 0, OTHER, "GAS CALL POP", 2048, 0, "RETURN")
    assert out(caller, {OTHER: callee}) == b"\x01" + bytes(2047)


def test_call_data_in_the_callers_memory_survives_its_move() -> None:
    # The callee's memory grows so much that the buffer, which all frames share, is reallocated.
    callee = asm(1, 1 << 20, "MSTORE8", 32, 0, 0, "CALLDATACOPY", 32, 0, "RETURN")
    caller = asm(0xABCD, 0, "MSTORE", 32, 32, 32, 0, 0, OTHER, "GAS CALL", 64, 0, "RETURN")
    assert out(caller, {OTHER: callee})[32:] == (0xABCD).to_bytes(32, "big")


@settings(max_examples=150)
@given(st.lists(st.tuples(*[st.integers(0, 200)] * 3), min_size=1, max_size=6))
def test_mcopy_moves_like_a_slice(moves: list[tuple[int, int, int]]) -> None:
    model = bytearray(bytes(range(1, 161)) + bytes(400))
    code = asm(160, 0, 0, "CALLDATACOPY")
    for to, source, size in moves:
        code += asm(size, source, to, "MCOPY")
        model[to : to + size] = model[source : source + size]
    assert out(code + asm(416, 0, "RETURN"), data=bytes(range(1, 161))) == bytes(model[:416])


@settings(max_examples=100)
@given(st.binary(max_size=80), st.integers(0, 100), st.integers(0, 100))
def test_data_is_read_with_zeros_behind_its_end(data: bytes, offset: int, size: int) -> None:
    padded = (data + bytes(300))[offset:]
    assert out(asm(size, offset, 0, "CALLDATACOPY", size, 0, "RETURN"), data=data) == padded[:size]
    assert out(returning(offset, "CALLDATALOAD"), data=data) == padded[:32]
    far = out(returning((1 << 64) + offset, "CALLDATALOAD"), data=data)
    assert far == bytes(32)


def test_code_and_code_of_others_are_read_with_zeros_behind_their_end() -> None:
    code = asm(64, 0, 0, "CODECOPY", 64, 0, "RETURN")
    assert out(code) == code.ljust(64, b"\0")
    other = b"\x01\x02\x03"
    reader = asm(8, 1, 0, OTHER, "EXTCODECOPY", 8, 0, "RETURN")
    assert out(reader, {OTHER: other}) == b"\x02\x03" + bytes(6)


def test_copies_pay_for_each_word() -> None:
    for op in ("CALLDATACOPY", "CODECOPY"):
        assert used(asm(100, 0, 0, op)) == 9 + 3 + 3 * 4 + memory_cost(100)
    assert used(asm(65, 0, "KECCAK256")) == 6 + 30 + 6 * 3 + memory_cost(65)
    assert used(asm(65, 0, "LOG0")) == 6 + 375 + 8 * 65 + memory_cost(65)
