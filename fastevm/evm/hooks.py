"""Hooks of a machine: Python functions that a run calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct

from fastevm.core.spec.opcodes import op_named


class CallStart(NamedTuple):
    """A call, creation or SELFDESTRUCT begins. ``depth`` is 1 for the message itself."""

    depth: int
    kind: str  # CALL, CALLCODE, DELEGATECALL, STATICCALL, CREATE, CREATE2 or SELFDESTRUCT
    sender: bytes
    to: bytes  # whose code runs, or what is created
    value: int
    gas: int
    data: bytes  # input, or init code


class CallEnd(NamedTuple):
    """It ended; ``error`` is None exactly on success."""

    depth: int
    error: str | None
    gas_used: int
    output: bytes

    @property
    def success(self) -> bool:
        """Whether what it changed stays, so far."""
        return self.error is None


class Step(NamedTuple):
    """An opcode that has run. ``stack``: before it, the top last; ``gas`` before it."""

    address: bytes  # whose code it is
    depth: int
    pc: int
    op: str
    gas: int
    gas_cost: int  # of a call, with the gas that it hands on
    stack: tuple[int, ...]
    error: str | None


class Hooks(Struct, frozen=True, kw_only=True):
    """What a run calls: ``evm.hooks = Hooks(...)``.

    ``enter`` and ``leave``: with a ``CallStart`` or ``CallEnd``, in order. ``step``: with a
    ``Step`` after every opcode of ``opcodes`` (mnemonics; empty: all). ``console``: with every line
    that a contract writes to Solidity's or Vyper's console. What they raise ends the run and
    reaches the caller, with nothing changed; the machine cannot be read or used inside. Steps need
    the traced loop, which is slower; a machine without hooks pays nothing.
    """

    enter: Callable[[CallStart], Any] | None = None
    leave: Callable[[CallEnd], Any] | None = None
    step: Callable[[Step], Any] | None = None
    opcodes: tuple[str, ...] = ()
    console: Callable[[str], Any] | None = None

    def __post_init__(self) -> None:
        for name in ("enter", "leave", "step", "console"):
            hook = getattr(self, name)
            if hook is not None and not callable(hook):
                raise TypeError(f"{name} is called, and {type(hook).__name__} cannot be")
        if isinstance(self.opcodes, str):
            raise TypeError("opcodes are a sequence of mnemonics, not one text")
        for name in self.opcodes:
            op_named(name)  # KeyError for one that does not exist
