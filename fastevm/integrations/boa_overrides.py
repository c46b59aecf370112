"""Opcodes and precompiles that programs register with titanoboa, on fastevm.

A precompile in Python runs in its place. A function for an opcode may watch: it gets the stack in
front of the machine's own opcode and must call that; it cannot take its place.
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
    """The machine's own opcode, by the name of py-evm's; it has run already."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __call__(self, computation: Any) -> None:
        computation.ran = self.value


class OwnOpcodes:
    """The machine's opcodes by their bytes."""

    def __getitem__(self, value: int) -> OwnOpcode:
        return OwnOpcode(value)


class Watched:
    """What a function for an opcode gets: the stack in front of it, the top last."""

    def __init__(self, step: dict[str, Any]) -> None:
        self._stack = SimpleNamespace(values=[int(word, 16) for word in step["stack"]])
        self.pc: int = step["pc"]
        self.depth: int = step["depth"] - 1  # the outermost frame has 0, as py-evm counts
        self.ran: int | None = None


class Asked:
    """What a precompile in Python gets of its call, and where it leaves its output."""

    def __init__(self, data: bytes, gas: int) -> None:
        self.msg = SimpleNamespace(data=data, data_as_bytes=data, gas=gas)
        self.output = b""
        self.gas_used = 0

    def consume_gas(self, amount: int, reason: str = "") -> None:
        """Charge for what it does."""
        self.gas_used += amount


def on_machine(run: Callable[[Any], Any]) -> Callable[[bytes, int], tuple[bytes, int]]:
    """A precompile of titanoboa's as `EVM.precompiles` takes it."""

    def answer(data: bytes, gas: int) -> tuple[bytes, int]:
        asked = Asked(data, gas)
        try:
            run(asked)
        except VMError as error:
            raise PrecompileFailed from error
        return asked.output, asked.gas_used

    return answer


def registered(installed: dict[bytes, Any], machine: EVM) -> dict[bytes, Any]:
    """Give the machine the precompiles that are registered now in place of those of before."""
    wanted = {at: run for at, run in py_evm._precompiles.items() if at != CONSOLE_ADDRESS}
    if wanted != installed:
        for address in installed.keys() - wanted.keys():
            del machine.precompiles[address]
        for address, run in wanted.items():
            machine.precompiles[address] = on_machine(run)
    return wanted


def tell(steps: Callable[[], list[dict[str, Any]]]) -> None:
    """Call what stands in place of opcodes, for the steps of a run that has ended."""
    patched = {at: run for at, run in py_evm._opcode_overrides.items() if at in KNOWN}
    for step in steps() if patched else ():
        watch = patched.get(step["op"])
        if watch is not None:
            watched = Watched(step)
            before = list(watched._stack.values)
            watch(watched)
            if watched.ran != step["op"] or watched._stack.values != before:
                raise NotImplementedError("a function may watch an opcode, not take its place")
