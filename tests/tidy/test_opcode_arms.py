"""One row, one function, one arm: dispatch and rows of spec/ say the same about every opcode."""

import re
from functools import cache
from typing import NamedTuple

import pytest

from fastevm.core.spec.forks import FORKS
from fastevm.core.spec.opcodes import OPCODES, Kind, Op
from fastevm.core.spec.schedule import schedule_for

from .sources import ROOT

INTERPRETER = ROOT / "fastevm/core/interpreter"
ENTER = re.compile(
    r"status = (enter|enter_priced|enter_hosted)\((?:f, pc, sp, gas|&gas, sp), base, limit, "
    r"(.+?), (\d+), (\d+)\)"
)
MOVES = re.compile(r"^ {12}(?: {4})?(sp|pc) ([+-])= (\d+)$", re.M)
TABLE = re.compile(r"f\.schedule\.gas\[(0x[0-9a-f]{2})\]")

# Ops whose arm does all there is to do.
WITHOUT_FUNCTION = {"STOP", "INVALID", "POP", "JUMPDEST"}
FAMILY = {"JUMPI": "jump"}
# Arms that end the frame or move pc by their operand.
WITHOUT_MOVES = {"STOP", "INVALID", "RETURN", "REVERT", "SELFDESTRUCT", "JUMP", "JUMPI"}
# The two that pay for the JUMPDEST they land past, in the untraced loop.
LANDING = {"JUMP": "8 + landing"}


class Arm(NamedTuple):
    name: str
    text: str


@cache
def arms() -> dict[str, Arm]:
    """Each arm of the dispatch: its text from the comparison on."""
    source = (INTERPRETER / "loop.pyx").read_text()
    parts = re.split(r"^ {8}(?:el)?if op == (\w+):$", source, flags=re.M)
    return {name: Arm(name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def family_of(op: Op) -> str:
    """The name of its function: numbered families share one."""
    name = FAMILY.get(op.mnemonic, op.mnemonic.lower())
    if op.mnemonic in ("PUSH0", "PUSH1"):
        return name
    if name.startswith("push"):
        return f"push{-(-op.imm // 8) * 8}"
    return re.sub(r"^(dup|swap|log)\d+$", r"\1", name)


def prices_of(op: Op) -> set[int | None]:
    """Its static price in every fork; None where it is not defined."""
    return {schedule_for(fork).gas(op.mnemonic) for fork in FORKS}


def test_every_row_has_one_arm_and_every_arm_a_row() -> None:
    source = (INTERPRETER / "loop.pyx").read_text()
    compared = re.findall(r"if op == (\w+):", source)
    assert compared == [op.mnemonic for op in OPCODES]


@pytest.mark.parametrize("op", OPCODES, ids=lambda op: op.mnemonic)
def test_the_byte_is_the_same_everywhere(op: Op) -> None:
    constants = (INTERPRETER / "opcodes.pxd").read_text()
    header = (INTERPRETER / "dispatch.h").read_text()
    byte = f"0x{op.value:02x}"
    assert re.search(rf"^    {op.mnemonic} = {byte}$", constants, re.M)
    assert arms()[op.mnemonic].text.split()[0] == f"LABEL({byte})"
    assert f"[{byte}] = &&L_{byte}" in header


@pytest.mark.parametrize("op", OPCODES, ids=lambda op: op.mnemonic)
def test_the_arm_pays_and_checks_what_the_row_says(op: Op) -> None:
    found = ENTER.search(arms()[op.mnemonic].text)
    if op.mnemonic == "INVALID":
        assert found is None
        return
    assert found, "the arm does not begin with enter"
    kind, price, need, grow = found.groups()
    assert int(need) == op.pops
    assert int(grow) == max(op.grow, 0)
    prices = prices_of(op)
    if len(prices) == 1 and None not in prices:
        (constant,) = prices
        assert price == LANDING.get(op.mnemonic, str(constant))
    else:
        assert kind != "enter", "a price that forks change, or an opcode born later"
        table = TABLE.fullmatch(price)
        assert table and int(table[1], 16) == op.value


@pytest.mark.parametrize("op", OPCODES, ids=lambda op: op.mnemonic)
def test_the_arm_moves_the_stack_and_the_counter_as_the_row_says(op: Op) -> None:
    if op.mnemonic in WITHOUT_MOVES:
        return
    moves = MOVES.findall(_last_part(op))
    total = {"sp": 0, "pc": 0}
    for name, sign, count in moves:
        total[name] += int(count) if sign == "+" else -int(count)
    assert total == {"sp": -op.grow, "pc": 1 + op.imm}


def _last_part(op: Op) -> str:
    """Behind the look-ahead of the untraced loop, if there is one."""
    text = arms()[op.mnemonic].text.split("        else:\n            UNDEFINED_LABEL")[0]
    return text.rsplit("                continue\n", 1)[-1]


@pytest.mark.parametrize("op", OPCODES, ids=lambda op: op.mnemonic)
def test_there_is_one_function_in_the_file_of_its_kind(op: Op) -> None:
    if op.mnemonic in WITHOUT_FUNCTION:
        return
    name = f"op_{family_of(op)}"
    assert re.search(rf"\b{name}\(", arms()[op.mnemonic].text)
    defined = re.compile(rf"^cdef inline \w+ {name}\(", re.M)
    for kind in Kind:
        source = (INTERPRETER / f"ops/{kind.value}.pxd").read_text()
        assert len(defined.findall(source)) == (kind is op.kind), kind


def test_every_op_function_has_an_arm() -> None:
    loop = (INTERPRETER / "loop.pyx").read_text().split("while True:")[1]
    for kind in Kind:
        source = (INTERPRETER / f"ops/{kind.value}.pxd").read_text()
        for name in re.findall(r"^cdef inline \w+ (op_\w+)\(", source, re.M):
            assert f"{name}(" in loop, name
