"""Tests hooks (functions that an execution calls), and console.log calls of contracts."""

from typing import Any

import pytest

from fastevm import EVM, Hooks, keccak256
from fastevm.evm.hooks import CallEnd, CallStart, Step

OUTER, INNER = "0x" + "aa" * 20, "0x" + "bb" * 20
CONSOLE = "000000000000000000636f6e736f6c652e6c6f67"
# Stores 1 in slot 0 and calls INNER, which reverts.
CALLS = bytes.fromhex("60015f555f5f5f5f5f73" + "bb" * 20 + "5af100")


def machine() -> EVM:
    evm = EVM()
    evm.set_code(OUTER, CALLS)
    evm.set_code(INNER, "0x5f5ffd")
    return evm


def test_calls_are_reported_in_order() -> None:
    evm, heard = machine(), list[Any]()
    evm.hooks = Hooks(enter=heard.append, leave=heard.append)
    result = evm.call(OUTER, "0x0102", gas=100_000)
    first, second, third, fourth = heard
    assert isinstance(first, CallStart) and isinstance(third, CallEnd)
    assert (first.depth, first.kind, first.data, first.gas) == (1, "CALL", b"\1\2", 100_000)
    assert (second.depth, second.to) == (2, b"\xbb" * 20)
    assert (third.depth, third.error, third.success) == (2, "execution reverted", False)
    assert (fourth.depth, fourth.success, fourth.gas_used) == (1, True, result.gas_used)


def test_chosen_opcodes_are_reported_after_they_ran() -> None:
    evm, heard = machine(), list[Step]()
    evm.hooks = Hooks(step=heard.append, opcodes=("sstore", "REVERT"))
    for run in (evm.call, evm.transact):
        heard.clear()
        run(OUTER)
        stored, reverted = heard
        assert (stored.op, stored.pc, stored.stack, stored.gas_cost) == ("SSTORE", 3, (1, 0), 22100)
        assert stored.address == b"\xaa" * 20
        assert (reverted.op, reverted.depth, reverted.address) == ("REVERT", 2, b"\xbb" * 20)
        evm.set_storage(OUTER, 0, 0)


def test_all_opcodes_are_reported_without_a_choice() -> None:
    evm, heard = machine(), list[str]()
    evm.hooks = Hooks(step=lambda step: heard.append(step.op))
    evm.call(OUTER)
    assert heard[:3] == ["PUSH1", "PUSH0", "SSTORE"] and heard[-1] == "STOP"


def test_results_are_those_without_hooks() -> None:
    usual, heard = machine().transact(OUTER), list[Any]()
    evm = machine()
    evm.hooks = Hooks(enter=heard.append, step=heard.append)
    assert evm.transact(OUTER) == usual
    evm.hooks = None
    heard.clear()
    evm.call(OUTER)
    assert not heard and evm.hooks is None


def test_an_exception_ends_the_run_and_nothing_has_changed() -> None:
    evm = machine()

    def refuse(step: Step) -> None:
        raise PermissionError("no SSTORE")

    evm.hooks = Hooks(step=refuse, opcodes=("SSTORE",))
    root = evm.state.state_root()
    for run in (evm.call, evm.transact):
        with pytest.raises(PermissionError, match="no SSTORE"):
            run(OUTER)
    assert evm.state.state_root() == root and evm.nonce(bytes(20)) == 0


def test_the_machine_cannot_be_used_inside() -> None:
    evm = machine()
    evm.hooks = Hooks(enter=lambda start: evm.storage(OUTER, 0))
    with pytest.raises(RuntimeError, match="the EVM is running"):
        evm.call(OUTER)


def test_console_lines_are_collected() -> None:
    text = b"\0" * 31 + b"\x20" + b"\0" * 31 + b"\x02" + b"hi".ljust(32, b"\0")
    data = keccak256(b"log(string)")[:4] + text
    code = bytes.fromhex("365f5f375f5f365f73" + CONSOLE + "5afa00")
    evm, lines, heard = EVM(), list[str](), list[Any]()
    evm.set_code(OUTER, code)
    evm.hooks = Hooks(console=lines.append)
    assert evm.call(OUTER, data).success and evm.transact(OUTER, data).success
    assert lines == ["hi", "hi"]
    evm.call(OUTER, b"\xff" * 4)
    assert lines == ["hi", "hi"]
    evm.hooks = Hooks(console=lines.append, enter=heard.append)
    evm.call(OUTER, data, trace="calls")
    assert lines == ["hi"] * 3 and len(heard) == 2


def test_hooks_are_checked_when_they_are_made() -> None:
    with pytest.raises(TypeError, match="must be callable"):
        Hooks(enter=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        Hooks(opcodes=("SSTOR",))
    with pytest.raises(TypeError, match="sequence"):
        Hooks(opcodes="SSTORE")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"fastevm\.Hooks"):
        EVM().hooks = print  # type: ignore[assignment]
