"""Opcodes and precompiles that programs register with titanoboa.

A Python precompile works. A function for an opcode may only observe it: it receives the stack
before the original opcode and must call the original opcode; it cannot replace it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from boa.vm import py_evm
from boa.vm.py_evm import CONSOLE_ADDRESS
from eth.exceptions import VMError

from fastevm.core.spec.opcodes import OPCODES
from fastevm.errors import PrecompileFailed
from fastevm.evm.machine import EVM

KNOWN: Final = frozenset(op.value for op in OPCODES)


class OwnOpcode:
    """The original opcode under py-evm's name. The opcode has already been executed."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __call__(self, computation: Any) -> None:
        computation.ran = self.value


class OwnOpcodes:
    """The original opcodes by byte."""

    def __getitem__(self, value: int) -> OwnOpcode:
        return OwnOpcode(value)


class Watched:
    """The argument of a function for an opcode: the stack before the opcode, top last."""

    def __init__(self, step: dict[str, Any]) -> None:
        self._stack = SimpleNamespace(values=[int(word, 16) for word in step["stack"]])
        self.pc: int = step["pc"]
        self.depth: int = step["depth"] - 1  # py-evm counts from 0
        self.ran: int | None = None


class Asked:
    """The argument of a Python precompile: the precompile's input, gas and output."""

    def __init__(self, data: bytes, gas: int) -> None:
        self.msg = SimpleNamespace(data=data, data_as_bytes=data, gas=gas)
        self.output = b""
        self.gas_used = 0

    def consume_gas(self, amount: int, reason: str = "") -> None:
        """Charges gas to the precompile."""
        self.gas_used += amount


def on_machine(run: Callable[[Any], Any]) -> Callable[[bytes, int], tuple[bytes, int]]:
    """Adapts a precompile of titanoboa for `EVM.precompiles`."""

    def answer(data: bytes, gas: int) -> tuple[bytes, int]:
        asked = Asked(data, gas)
        try:
            run(asked)
        except VMError as error:
            raise PrecompileFailed from error
        return asked.output, asked.gas_used

    return answer


def registered(installed: dict[bytes, Any], machine: EVM) -> dict[bytes, Any]:
    """Replaces the machine's precompiles with those that are registered with titanoboa now.

    Returns the registered precompiles.
    """
    wanted = {at: run for at, run in py_evm._precompiles.items() if at != CONSOLE_ADDRESS}
    if wanted != installed:
        for address in installed.keys() - wanted.keys():
            del machine.precompiles[address]
        for address, run in wanted.items():
            machine.precompiles[address] = on_machine(run)
    return wanted


def tell(steps: Callable[[], list[dict[str, Any]]]) -> None:
    """Calls the functions for opcodes with the steps of a message, after the message has ended."""
    patched = {at: run for at, run in py_evm._opcode_overrides.items() if at in KNOWN}
    for step in steps() if patched else ():
        watch = patched.get(step["op"])
        if watch is not None:
            watched = Watched(step)
            before = list(watched._stack.values)
            watch(watched)
            if watched.ran != step["op"] or watched._stack.values != before:
                raise NotImplementedError("a function may observe an opcode, but not replace it")
