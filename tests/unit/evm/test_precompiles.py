"""Tests precompiles in Python: results of calls, and access to the state."""

import copy

import pytest

from fastevm import EVM, PrecompileFailed, Revert
from fastevm.errors import ResourceLimitError

CALLER = "0x" + "aa" * 20
TARGET = bytes.fromhex("bb" * 20)
SENDER = "0x" + "11" * 20


def forwarder(op: str) -> bytes:
    """Returns code that calls the precompile and returns success flag and 32 bytes of output."""
    value = "5f" if op == "f1" else ""
    return bytes.fromhex(f"365f5f3760205f365f{value}73{TARGET.hex()}5a{op}" + "60205260405ff3")


def machine(run: object, op: str = "f1") -> EVM:
    evm = EVM()
    evm.precompiles[TARGET] = run  # type: ignore[assignment]
    evm.set_code(CALLER, forwarder(op))
    return evm


def test_a_call_gives_the_output_and_takes_the_gas() -> None:
    evm = machine(lambda data, gas: (data[::-1], 100))
    result = evm.call(TARGET, "0x010203", gas=1_000)
    assert result.success and result.output == b"\3\2\1" and result.gas_used == 100


def test_an_output_alone_costs_nothing() -> None:
    for answer, output in ((b"\1", b"\1"), ("0x02", b"\2"), (None, b""), ((None, 0), b"")):
        result = machine(lambda data, gas, answer=answer: answer).call(TARGET)
        assert result.output == output and result.gas_used == 0


def test_a_transaction_pays_for_it() -> None:
    usual = EVM().transact(TARGET, sender=SENDER, gas=100_000).gas_used
    evm = machine(lambda data, gas: (b"", 500))
    assert evm.transact(TARGET, sender=SENDER, gas=100_000).gas_used == usual + 500


@pytest.mark.parametrize("op", ["f1", "fa", "f4"])
def test_contracts_call_it(op: str) -> None:
    seen = []

    def run(data: bytes, gas: int) -> tuple[bytes, int]:
        seen.append((data, gas))
        return b"\7" * 32, 10

    result = machine(run, op).call(CALLER, "0xabcd", gas=100_000)
    assert seen[0][0] == b"\xab\xcd" and 90_000 < seen[0][1] < 100_000
    assert result.output == b"\7" * 32 + (1).to_bytes(32, "big")


def test_init_code_calls_it() -> None:
    evm = machine(lambda data, gas: b"\x2a" * 32)
    assert evm.create(forwarder("fa"), gas=100_000).output[:32] == b"\x2a" * 32
    assert evm.deploy(forwarder("fa")).output[:32] == b"\x2a" * 32


def test_a_revert_gives_its_data_and_keeps_the_gas() -> None:
    def run(data: bytes, gas: int) -> bytes:
        raise Revert(b"no", 30)

    evm = machine(run)
    result = evm.call(TARGET, gas=1_000)
    assert not result.success and result.output == b"no" and result.gas_used == 30
    nested = evm.call(CALLER, gas=100_000)
    assert nested.success and nested.output[:2] == b"no" and not any(nested.output[32:])


def test_a_failure_and_too_much_gas_take_all_of_it() -> None:
    def fail(data: bytes, gas: int) -> bytes:
        raise PrecompileFailed("bad input")

    for run, error in (
        (fail, "invalid input to a precompiled contract"),
        (lambda data, gas: (b"", gas + 1), "out of gas"),
    ):
        result = machine(run).call(TARGET, gas=1_000)
        assert result.error == error and result.gas_used == 1_000 and result.output == b""


@pytest.mark.parametrize("target", [TARGET, CALLER])
def test_another_exception_ends_the_run_and_nothing_has_changed(target: bytes | str) -> None:
    def run(data: bytes, gas: int) -> bytes:
        raise ZeroDivisionError

    evm = machine(run)
    evm.set_balance(SENDER, 10)
    root = evm.state.state_root()
    with pytest.raises(ZeroDivisionError):
        evm.transact(target, sender=SENDER, value=1)
    with pytest.raises(ZeroDivisionError):
        evm.call(target, sender=SENDER, value=1, commit=True)
    assert evm.state.state_root() == root
    del evm.precompiles[TARGET]
    assert evm.transact(target, sender=SENDER, value=1).success


def test_an_answer_of_another_type_is_an_error() -> None:
    for answer in (5, (b"", 1, 2), (b"", -1), (5, 5), "01"):
        with pytest.raises((TypeError, ValueError)):
            machine(lambda data, gas, answer=answer: answer).call(TARGET)


def test_the_machine_cannot_be_read_or_used_inside() -> None:
    found = []

    def run(data: bytes, gas: int) -> bytes:
        for act in (
            lambda: evm.balance(SENDER), lambda: evm.nonce(SENDER), lambda: evm.code(SENDER),
            lambda: evm.storage(SENDER, 0), lambda: evm.state, lambda: evm.call(TARGET),
            lambda: evm.set_balance(SENDER, 1), lambda: evm.precompiles.clear(),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="the EVM is running"):
                act()
            found.append(act)
        return b""

    evm = machine(run)
    assert evm.call(CALLER).success and len(found) == 8
    assert evm.balance(SENDER) == 0


def test_it_stands_in_front_of_a_precompile_of_the_fork() -> None:
    evm = EVM()
    evm.precompiles[(4).to_bytes(20, "big")] = lambda data, gas: b"mine"
    assert evm.call((4).to_bytes(20, "big"), "0x01").output == b"mine"
    evm.precompiles.clear()
    assert evm.call((4).to_bytes(20, "big"), "0x01").output == b"\1"


def test_a_static_call_moves_nothing_and_a_trace_shows_it() -> None:
    evm = machine(lambda data, gas: (b"\1", 40))
    trace = evm.call(CALLER, "0xff", trace="calls").trace
    (call,) = trace["calls"]
    assert call["to"] == "0x" + TARGET.hex()
    assert call["input"] == "0xff" and call["output"] == "0x01" and call["gasUsed"] == "0x28"
    for name in ("steps", "prestate", "diff", "access_list", "gas", "coverage"):
        assert evm.transact(CALLER, "0xff", trace=name).success


def test_the_mapping_takes_addresses_and_callables_only() -> None:
    evm = EVM()
    evm.precompiles["0x" + "cc" * 20] = print  # type: ignore[assignment]
    assert list(evm.precompiles) == [b"\xcc" * 20] and "0x" + "cc" * 20 in evm.precompiles
    with pytest.raises(TypeError, match="cannot be"):
        evm.precompiles[TARGET] = 5  # type: ignore[assignment]
    with pytest.raises(ValueError):
        evm.precompiles["0x12"] = print  # type: ignore[assignment]
    with pytest.raises(KeyError):
        del evm.precompiles[TARGET]
    assert copy.copy(evm).precompiles["0x" + "cc" * 20] is print
    for number in range(1_023):
        evm.precompiles[number.to_bytes(20, "big")] = print  # type: ignore[assignment]
    with pytest.raises(ResourceLimitError):
        evm.precompiles[b"\xff" * 20] = print  # type: ignore[assignment]
