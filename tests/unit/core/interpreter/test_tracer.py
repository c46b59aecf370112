"""Tests step records, also for opcodes that the untraced loop fuses."""

from typing import Any

from fastevm.core.interpreter.tracer import StepTrace
from fastevm.testing.interpreter import BareMachine

from .programs import MAIN, OTHER, asm, returning


def traced(
    code: bytes, others: dict[bytes, bytes] | None = None, **options: Any
) -> list[dict[str, Any]]:
    gas = options.pop("gas", 100_000)
    accounts = {address: {"code": c} for address, c in ({MAIN: code} | (others or {})).items()}
    records: list[dict[str, Any]] = []
    BareMachine("osaka", accounts).call(MAIN, gas=gas, trace=StepTrace(**options), records=records)
    return records


def test_a_step_tells_what_was_before_it_and_what_it_cost() -> None:
    steps = traced(asm(2, 3, "ADD", 0, "SSTORE"), gas=50_000)
    assert [step["name"] for step in steps] == ["PUSH1", "PUSH1", "ADD", "PUSH1", "SSTORE", "STOP"]
    assert [step["pc"] for step in steps] == [0, 2, 4, 5, 7, 8]
    assert [step["stack"] for step in steps] == [[], [2], [2, 3], [5], [5, 0], []]
    assert [step["gas_cost"] for step in steps] == [3, 3, 3, 3, 22_100, 0]
    assert steps[0]["gas"] == 50_000
    assert steps[-1]["gas"] == 50_000 - 12 - 22_100
    assert all(step["depth"] == 1 and step["error"] is None for step in steps)


def test_jumps_are_seen_step_by_step() -> None:
    # Two sequences that the untraced loop fuses: ISZERO PUSH2 JUMPI, and PUSH2 JUMP.
    code = asm(0, "ISZERO") + b"\x61\x00\x08\x57" + asm("INVALID", "JUMPDEST") + b"\x61\x00\x0e\x56"
    code += asm("INVALID", "JUMPDEST", "STOP")
    names = [step["name"] for step in traced(code)]
    assert names == [
        "PUSH1",
        "ISZERO",
        "PUSH2",
        "JUMPI",
        "JUMPDEST",
        "PUSH2",
        "JUMP",
        "JUMPDEST",
        "STOP",
    ]


def test_a_call_costs_what_it_hands_on_too() -> None:
    steps = traced(asm(0, 0, 0, 0, 0, OTHER, 1_000, "CALL"), {OTHER: asm(1)})
    call = next(step for step in steps if step["name"] == "CALL")
    assert call["gas_cost"] == 2_600 + 1_000
    assert [step["depth"] for step in steps] == [1] * 8 + [2, 2, 1]
    assert steps[-1]["gas"] == call["gas"] - 2_600 - 3


def test_the_failing_step_has_the_error() -> None:
    steps = traced(asm(1) + b"\x0c")
    assert steps[-1]["error"] == "invalid opcode"
    assert steps[-1]["name"] == "opcode 0xc not defined"
    steps = traced(asm(1, "ADD"))
    assert steps[-1]["error"] == "stack underflow"
    steps = traced(asm(1, 2, "ADD"), gas=8)
    assert (steps[-1]["error"], steps[-1]["gas_cost"], steps[-1]["gas"]) == ("out of gas", 3, 2)


def test_options_say_how_much_is_recorded() -> None:
    code = asm(1, 2, 3, 0xAB, 0, "MSTORE8")
    last = traced(code, stack_words=2, memory=True)[-2]
    assert (last["stack"], last["stack_height"]) == ([0xAB, 0], 5)
    assert (last["memory"], last["memory_size"]) == (b"", 0)
    stop = traced(code, memory=True)[-1]
    assert stop["memory"] == b"\xab" + bytes(31)
    calling = asm(0, 0, 0, 0, 0, OTHER, 1_000, "CALL")
    stop = traced(calling, {OTHER: returning(7)}, return_data=True)[-1]
    assert (stop["return_data"], stop["return_data_size"]) == ((7).to_bytes(32, "big"), 32)
    assert "memory" not in stop


def test_calls_alone_are_recorded_without_steps() -> None:
    code = asm(
        0, 0, 3, 0, 0, OTHER, 5_000, "CALL", 0, 0, 0, "CREATE", 1, 0, "MSTORE8", 1, 0, "RETURN"
    )
    records = traced(code, {OTHER: asm(0, 0, "REVERT")}, steps=False, calls=True)
    assert [(record["kind"], record["depth"]) for record in records] == [
        ("enter", 1), ("enter", 2), ("leave", 2), ("enter", 2), ("leave", 2), ("leave", 1),
    ]  # fmt: skip
    assert [record["type"] for record in records if record["kind"] == "enter"] == [
        "CALL", "CALL", "CREATE",
    ]  # fmt: skip
    assert (records[1]["from"], records[1]["to"], records[1]["input"]) == (MAIN, OTHER, bytes(3))
    assert (records[2]["reverted"], records[2]["error"], records[2]["gas_used"]) == (
        True, "execution reverted", 6,
    )  # fmt: skip
    assert records[-1]["output"] == b"\x01"


def test_a_call_that_never_began_is_recorded_with_its_reason() -> None:
    records = traced(asm(0, 0, 0, 0, 9, OTHER, 0, "CALL"), steps=False, calls=True)
    assert records[2]["error"] == "insufficient balance for transfer"
    assert records[2]["gas_used"] == 0


def test_selfdestruct_is_a_frame_that_moves_the_balance() -> None:
    code = asm(OTHER, "SELFDESTRUCT")
    machine = BareMachine("osaka", {MAIN: {"code": code, "balance": 9}})
    records: list[dict[str, Any]] = []
    machine.call(MAIN, trace=StepTrace(steps=False, calls=True), records=records)
    entered, left = records[1:3]
    assert (entered["type"], entered["depth"], entered["value"]) == ("SELFDESTRUCT", 2, 9)
    assert (entered["from"], entered["to"]) == (MAIN, OTHER)
    assert (left["kind"], left["depth"], left["error"]) == ("leave", 2, None)


def test_a_full_buffer_stops_the_run_until_it_is_read() -> None:
    loop = asm(50, "JUMPDEST", 1, "SWAP1 SUB DUP1", 2, "JUMPI")
    whole = traced(loop)
    assert traced(loop, limit=1) == whole
    assert traced(loop, limit=1_000) == whole
    assert len(whole) == 1 + 50 * 7 + 1
