"""Tests precompiles in Python that read and write the journaled state."""

import pickle
from typing import Any

import pytest

from fastevm import EVM, PrecompileFailed, Revert
from fastevm.bench.programs.assembler import assemble
from fastevm.evm import PrecompileCall, stateful

TARGET, OTHER, SENDER = b"\x77" * 20, b"\x88" * 20, b"\x11" * 20
CALLER = b"\xaa" * 20


def calling(op: str, ending: str = "5f5260205ff3") -> bytes:
    """Returns code that calls the precompile and returns the success flag, or runs ``ending``."""
    value = "6003" if op in ("f1", "f2") else ""
    return bytes.fromhex(f"5f5f5f5f{value}73{TARGET.hex()}5a{op}" + ending)


def machine(run: Any, op: str = "f1", ending: str = "5f5260205ff3") -> EVM:
    evm = EVM()
    evm.set_balance(CALLER, 10)
    evm.precompiles[TARGET] = stateful(run)
    evm.set_code(CALLER, calling(op, ending))
    return evm


def writes(call: PrecompileCall) -> tuple[bytes, int]:
    call.set_storage(OTHER, 5, 7)
    call.set_storage(OTHER, (6).to_bytes(32, "big"), b"\x00" * 31 + b"\x09")
    call.set_balance(OTHER, 123)
    call.set_nonce(OTHER, 4)
    call.set_code(OTHER, "0x6001")
    call.log(OTHER, [b"\x01" * 32], b"\x02")
    assert call.storage(OTHER, 5) == 7 and call.balance(OTHER) == 123
    assert call.nonce(OTHER) == 4 and call.code(OTHER) == b"\x60\x01"
    return b"", 100


def state_of(evm: EVM) -> tuple[Any, ...]:
    slots = evm.storage(OTHER, 5), evm.storage(OTHER, 6)
    return slots, evm.balance(OTHER), evm.nonce(OTHER), evm.code(OTHER)


WRITTEN = ((7, 9), 123, 4, b"\x60\x01")
NOTHING = ((0, 0), 0, 0, b"")


@pytest.mark.parametrize("way", ["call", "transact", "commit"])
def test_changes_are_those_of_the_run(way: str) -> None:
    evm = machine(writes)
    if way == "transact":
        result = evm.transact(CALLER, sender=SENDER)
    else:
        result = evm.call(CALLER, sender=SENDER, commit=way == "commit")
    assert result.success and result.output[-1] == 1
    assert [(log.address, log.topics, log.data) for log in result.logs] == [
        (OTHER, (b"\x01" * 32,), b"\x02")
    ]
    assert state_of(evm) == (NOTHING if way == "call" else WRITTEN)


@pytest.mark.parametrize("ending", ["5f5ffd", "fe"])
def test_a_caller_that_fails_undoes_them(ending: str) -> None:
    evm = machine(writes, ending=ending)
    result = evm.transact(CALLER, sender=SENDER)
    assert not result.success and result.logs == ()
    assert state_of(evm) == NOTHING


@pytest.mark.parametrize("error", [Revert(b"\x01"), PrecompileFailed("no")])
def test_a_precompile_that_fails_undoes_them(error: Exception) -> None:
    def fails(call: PrecompileCall) -> None:
        writes(call)
        raise error

    evm = machine(fails)
    result = evm.transact(CALLER, sender=SENDER)
    assert result.success and result.output[-1] == 0
    assert state_of(evm) == NOTHING


def test_another_exception_ends_the_run_without_changes() -> None:
    def fails(call: PrecompileCall) -> None:
        writes(call)
        raise RuntimeError("mistake")

    evm = machine(fails)
    before = evm.state
    with pytest.raises(RuntimeError, match="mistake"):
        evm.transact(CALLER, sender=SENDER)
    assert evm.state is before


def test_a_static_call_may_read_only() -> None:
    found: list[Any] = []

    def looks(call: PrecompileCall) -> bytes:
        found.append((call.is_static, call.storage(OTHER, 5)))
        return b""

    evm = machine(looks, "fa")
    evm.set_storage(OTHER, 5, 8)
    assert evm.call(CALLER).output[-1] == 1 and found == [(True, 8)]
    evm.precompiles[TARGET] = stateful(writes)
    assert evm.call(CALLER).output[-1] == 0
    assert not evm.call(TARGET, static=True).success


@pytest.mark.parametrize(("op", "value", "caller"), [
    ("f1", 3, CALLER), ("fa", 0, CALLER), ("f4", 0, SENDER), ("f2", 3, CALLER),
])  # fmt: skip
def test_the_message_is_known(op: str, value: int, caller: bytes) -> None:
    found: list[Any] = []

    def looks(call: PrecompileCall) -> None:
        found.append((call.caller, call.origin, call.value, call.data, call.depth))
        assert 0 < call.gas <= 30_000_000

    assert machine(looks, op).call(CALLER, sender=SENDER).success
    assert found == [(caller, SENDER, value, b"", 2)]


def test_charged_access_costs_what_opcodes_cost() -> None:
    """Compares with bytecode that makes equal reads, writes and logs in the same order."""

    def body(call: PrecompileCall) -> None:
        call.load(1)
        call.load(1)
        call.store(1, 5)
        call.store(2, 9)
        call.store(2, 0)
        call.emit([b"\x01" * 32, (2).to_bytes(32, "big")], b"abc")

    python, bytecode = EVM(), EVM()
    for evm in (python, bytecode):
        evm.set_storage(TARGET, 2, 7)
    python.set_code(TARGET, b"\0")  # an empty account would be deleted (EIP-161)
    python.precompiles[TARGET] = stateful(body)
    bytecode.set_code(TARGET, assemble(
        "1 SLOAD POP 1 SLOAD POP 5 1 SSTORE 9 2 SSTORE 0 2 SSTORE"
        f" {int.from_bytes(b'abc' + bytes(29))} 0 MSTORE 2 {int('01' * 32, 16)} 3 0 LOG2 STOP"
    ))  # fmt: skip
    found = python.call(TARGET, commit=True)
    wanted = bytecode.call(TARGET, commit=True, trace="steps")
    assert found.success and wanted.success
    assert found.gas_used == sum(
        step["gasCost"]
        for step in wanted.trace["structLogs"]
        if step["op"] in ("SLOAD", "SSTORE", "LOG2")
    )
    assert found.gas_refunded == wanted.gas_refunded
    assert found.logs == wanted.logs
    assert python.storage(TARGET, 1) == 5 and python.storage(TARGET, 2) == 0


@pytest.mark.parametrize("swallows", [False, True])
def test_a_charge_above_the_gas_ends_the_call(swallows: bool) -> None:
    def body(call: PrecompileCall) -> bytes:
        try:
            call.store(1, 5)
            call.charge(call.gas + 1)
        except PrecompileFailed:
            if not swallows:
                raise
        return b"\x01"

    evm = EVM()
    evm.precompiles[TARGET] = stateful(body)
    result = evm.call(TARGET, gas=100_000, commit=True)
    assert (result.success, result.error, result.gas_used) == (False, "out of gas", 100_000)
    assert evm.storage(TARGET, 1) == 0


def test_a_call_that_has_ended_cannot_be_used() -> None:
    kept: list[PrecompileCall] = []
    evm = machine(lambda call: kept.append(call))
    evm.call(CALLER)
    for use in (
        lambda: kept[0].caller,
        lambda: kept[0].storage(OTHER, 1),
        lambda: kept[0].load(1),
        lambda: kept[0].charge(1),
        lambda: kept[0].set_balance(OTHER, 1),
    ):
        with pytest.raises(RuntimeError, match="has ended"):
            use()
    with pytest.raises(TypeError):
        PrecompileCall()


def test_bad_values_change_nothing() -> None:
    def fails(call: PrecompileCall) -> None:
        for use, error in (
            (lambda: call.set_balance(OTHER, -1), OverflowError),
            (lambda: call.set_storage(OTHER, "x", 1), ValueError),
            (lambda: call.set_nonce(OTHER, 2**64), OverflowError),
            (lambda: call.log(OTHER, [b"\x01" * 32] * 5), ValueError),
            (lambda: call.balance("0x12"), ValueError),
        ):
            with pytest.raises(error):
                use()

    evm = machine(fails)
    assert evm.transact(CALLER, sender=SENDER).success and state_of(evm) == NOTHING


def test_code_that_runs_may_be_replaced() -> None:
    """The frame continues with the old code. The next call runs the new code."""

    def replaces(call: PrecompileCall) -> None:
        for size in range(1, 50):
            call.set_code(CALLER, b"\x60\x2a\x5f\x52\x60\x20\x5f\xf3" + bytes(size))

    evm = machine(replaces)
    assert evm.transact(CALLER, sender=SENDER).output[-1] == 1
    assert evm.call(CALLER).output[-1] == 0x2A


def test_machines_with_them_are_pickled() -> None:
    evm = EVM()
    evm.precompiles[TARGET] = stateful(writes)
    again = pickle.loads(pickle.dumps(evm))
    assert again.call(TARGET, commit=True).success and state_of(again) == WRITTEN
