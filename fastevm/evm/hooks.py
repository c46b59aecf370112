"""Hooks: Python functions that an execution calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from fastevm.core.primitives.suggestion import nearest
from fastevm.core.spec.opcodes import OPCODES, op_named


class CallStart(NamedTuple):
    """The start of a call, creation or SELFDESTRUCT. ``depth`` is 1 for the top-level message."""

    depth: int
    kind: str  # CALL, CALLCODE, DELEGATECALL, STATICCALL, CREATE, CREATE2 or SELFDESTRUCT
    sender: bytes
    to: bytes  # the account called or created
    value: int
    gas: int
    data: bytes  # input, or init code


class CallEnd(NamedTuple):
    """The end of a call. ``error`` is None if and only if the call succeeded."""

    depth: int
    error: str | None
    gas_used: int
    output: bytes

    @property
    def success(self) -> bool:
        """Whether the call succeeded, so that its changes are kept unless a caller reverts."""
        return self.error is None


class Step(NamedTuple):
    """An executed opcode. ``stack`` (top last) and ``gas`` have the values before the opcode."""

    address: bytes  # the account whose code is executing
    depth: int
    pc: int
    op: str
    gas: int
    gas_cost: int  # for a call, includes the callee's gas
    stack: tuple[int, ...]
    error: str | None


class Hooks(Struct, frozen=True, kw_only=True):
    """Functions that an execution calls: ``evm.hooks = Hooks(...)``.

    - ``enter`` and ``leave`` receive a ``CallStart`` or ``CallEnd``, in order.
    - ``step`` receives a ``Step`` after every opcode in ``opcodes`` (mnemonics; empty: all). Steps
      use the traced loop, which is slower.
    - ``console`` receives every line that a contract writes to Solidity's or Vyper's console.

    An exception in a hook ends the execution and propagates to the caller; then nothing changes.
    Hooks must not use the machine. A machine without hooks runs at full speed.
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
                raise TypeError(f"{name} must be callable, not {type(hook).__name__}")
        if isinstance(self.opcodes, str) or not isinstance(self.opcodes, Iterable):
            kind = type(self.opcodes).__name__
            raise TypeError(f"opcodes must be a sequence of mnemonics, not a {kind}")
        force_setattr(self, "opcodes", tuple(self.opcodes))  # an iterator is read only once
        for name in self.opcodes:
            if not isinstance(name, str):
                raise TypeError(f"opcodes: expected mnemonics, found {type(name).__name__}")
            try:
                op_named(name)
            except KeyError:
                near = nearest(name.upper(), [op.mnemonic for op in OPCODES])
                hint = f": did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"unknown opcode {name!r}{hint}") from None
