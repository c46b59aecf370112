"""A view: a call of a contract's function, with its decoded value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fastevm.core.simulation.values import CallRequest
from fastevm.evm.contracts.human_readable import json_abi
from fastevm.evm.contracts.interface import Function
from fastevm.rpc_types.native_values import address_of

ZERO_ADDRESS = bytes(20)
FUNCTIONS = 256  # functions that are kept because several views have the same declaration


class View:
    """A call of a contract's function, for `fastevm.simulate.Watch`.

    ``to``: the contract, 20 bytes or hex text. ``declaration``: the function in Solidity syntax,
    such as ``balanceOf(address) returns (uint256)``; the word ``function`` and modifiers are
    optional. ``args``: the arguments of the function. Raises ValueError or TypeError for values
    that cannot be encoded.

    >>> View("0x" + "a0" * 20, "balanceOf(address) returns (uint256)", ["0x" + "11" * 20])
    """

    def __init__(
        self,
        to: bytes | str,
        declaration: str,
        args: Sequence[Any] = (),
        *,
        sender: bytes | str | None = None,
    ) -> None:
        text = declaration.strip()
        if not text.startswith("function"):
            text = f"function {text}"
        self.to = address_of(to, "to")
        self.sender = ZERO_ADDRESS if sender is None else address_of(sender, "sender")
        self.declaration, self.args = text, tuple(args)
        self._function = _function(text)
        self.data = self._function.encode(self.args)

    @property
    def request(self) -> CallRequest:
        """Returns the call."""
        return CallRequest(sender=self.sender, to=self.to, data=self.data)

    def decode(self, output: bytes) -> Any:
        """Returns the value of an output. Raises AbiDecodingError if it cannot be decoded."""
        return self._function.decode(output)

    def __reduce__(self) -> tuple[Any, ...]:
        return _view, (self.to, self.declaration, self.args, self.sender)

    def __repr__(self) -> str:
        return f"View(0x{self.to.hex()}, {self.declaration.removeprefix('function ')!r})"


@lru_cache(maxsize=FUNCTIONS)
def _function(declaration: str) -> Function:
    items = json_abi([declaration])
    if len(items) != 1:
        raise ValueError(f"not a function: {declaration[:80]!r}")
    found = Function(items[0])
    _ = found.output_type  # raises AbiTypeError now and not when a value is decoded
    return found


def _view(to: bytes, declaration: str, args: tuple[Any, ...], sender: bytes) -> View:
    return View(to, declaration, args, sender=sender)
