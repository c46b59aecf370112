"""EIP-8024: Backward compatible SWAPN, DUPN, EXCHANGE.

A byte with the depth follows each of these opcodes. JUMPDEST and PUSH bytes are invalid there.
"""

import pytest

from .support import INVALID_OPCODE, assemble, before_and_after, run, word

BEFORE, AFTER = before_and_after(8024)
DUPN, SWAPN, EXCHANGE = b"\xe6", b"\xe7", b"\xe8"
RETURN_TOP = assemble("0 MSTORE 32 0 RETURN")


def stacked(count: int) -> bytes:
    """Returns code that leaves a stack on which item n, counted from the top, has the value n."""
    return b"".join(b"\x61" + n.to_bytes(2, "big") for n in range(count, 0, -1))


def after(code: bytes, count: int, position: int = 1) -> int:
    """Runs code on a stack of ``count`` items. Returns the item at ``position``, from the top."""
    dropped = b"\x50" * (position - 1)
    return word(run(AFTER, stacked(count) + code + dropped + RETURN_TOP))


@pytest.mark.parametrize(
    ("immediate", "n"),
    [(0x00, 145), (0x5A, 235), (0x80, 17), (0xDB, 108), (0xFF, 144)],
)
def test_dupn_and_swapn_read_their_depth_from_the_byte(immediate, n):
    byte = bytes([immediate])
    assert after(DUPN + byte, n) == n
    assert after(SWAPN + byte, n + 1) == n + 1
    assert after(SWAPN + byte, n + 1, n + 1) == 1
    assert not run(AFTER, stacked(n - 1) + DUPN + byte).success
    assert not run(AFTER, stacked(n) + SWAPN + byte).success


@pytest.mark.parametrize(
    ("immediate", "n", "m"),
    [
        (0x00, 9, 16),
        (0x2F, 1, 19),
        (0x50, 14, 16),
        (0x51, 14, 15),
        (0x80, 1, 16),
        (0x8E, 1, 2),
        (0x8F, 1, 29),
        (0x9D, 2, 3),
        (0xFF, 1, 22),
    ],
)
def test_exchange_reads_two_depths_from_the_byte(immediate, n, m):
    code = EXCHANGE + bytes([immediate])
    assert after(code, m + 1, n + 1) == m + 1
    assert after(code, m + 1, m + 1) == n + 1
    assert not run(AFTER, stacked(m) + code).success


@pytest.mark.parametrize(
    ("opcode", "first", "last"), [(DUPN, 91, 127), (SWAPN, 91, 127), (EXCHANGE, 82, 127)]
)
def test_bytes_that_could_be_jumpdest_or_push_halt(opcode, first, last):
    for immediate in (first, 0x5B, 0x60, last):
        assert run(AFTER, stacked(240) + opcode + bytes([immediate])).error == INVALID_OPCODE
    for immediate in (first - 1, last + 1):
        assert run(AFTER, stacked(240) + opcode + bytes([immediate])).success


def test_the_byte_past_the_end_of_the_code_is_zero():
    assert run(AFTER, stacked(145) + DUPN).success
    assert not run(AFTER, stacked(144) + DUPN).success


def test_a_jumpdest_behind_the_opcode_stays_a_jumpdest():
    code = bytes.fromhex("600456e65b") + assemble("7") + RETURN_TOP
    assert word(run(AFTER, code[:2] + b"\x56" + code[3:])) == 7


def test_each_costs_what_its_numbered_kin_costs():
    alone = run(AFTER, stacked(20)).gas_used
    for opcode in (DUPN, SWAPN, EXCHANGE):
        assert run(AFTER, stacked(20) + opcode + b"\x80").gas_used - alone == 3


@pytest.mark.parametrize("opcode", [DUPN, SWAPN, EXCHANGE])
def test_the_fork_before_has_none_of_them(opcode):
    assert run(BEFORE, stacked(20) + opcode + b"\x80").error == INVALID_OPCODE
