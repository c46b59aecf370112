"""Tests traced messages: calls and creations."""

import io
import json

import pytest

from fastevm import EVM
from fastevm.tracing.runner import halt_opcode, message_traced
from fastevm.tracing.step_loggers import Eip3155Logger

C = "0x" + "c0" * 20


def lines(evm: EVM, run: object, *args: object, **terms: object) -> list[str]:
    stream = io.StringIO()
    observer = Eip3155Logger(stream, standard=True)
    message_traced(evm, observer, run, *args, **terms)  # type: ignore[arg-type]
    observer.flush()
    return [json.loads(line).get("opName") for line in stream.getvalue().splitlines()]


def test_a_call_and_a_creation_are_traced() -> None:
    evm = EVM()
    evm.set_account(C, code="0x60015f55")
    assert lines(evm, evm.call, C, commit=True) == ["PUSH1", "PUSH0", "SSTORE", "STOP"]
    assert evm.storage(C, 0) == 1
    assert lines(evm, evm.create, "0x5f5ff3") == ["PUSH0", "PUSH0", "RETURN"]


def test_a_long_trace_is_read_while_it_grows() -> None:
    evm = EVM()
    evm.set_account(C, code="0x5b5a61012c105f57" + "00")  # loops until less than 300 gas is left
    assert len(lines(evm, evm.call, C, gas=200_000)) > 40_000


def test_a_trace_ends_with_its_message() -> None:
    evm = EVM()
    evm.set_account(C, code="0x60015f55")
    with pytest.raises(TypeError):
        message_traced(evm, Eip3155Logger(io.StringIO()), evm.call, C, gas="much")
    assert evm.call(C).success
    with pytest.raises(ValueError):
        message_traced(evm, Eip3155Logger(io.StringIO()), evm.call, "0x12")


def test_the_byte_that_halted_is_known() -> None:
    evm = EVM()
    for byte in (0xFE, 0x0C):
        evm.set_account(C, code=bytes([byte]))
        assert evm.call(C).error == "invalid opcode" and halt_opcode(evm) == byte
