"""Cheat codes for tests: change a machine from Python, or from contracts as in Foundry.

``Cheats(evm)`` changes the machine between calls. ``Cheats.install`` also puts a stateful
precompile at Foundry's address, so that a contract can call ``vm.deal(...)`` during a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastevm.core.primitives.bytes_like import BytesLike
from fastevm.errors import Revert
from fastevm.evm.contracts import Contract, ContractReverted
from fastevm.evm.contracts.codec import decode_values
from fastevm.evm.contracts.human_readable import json_abi
from fastevm.evm.contracts.interface import Function
from fastevm.evm.machine import EVM
from fastevm.evm.precompile_call import PrecompileCall
from fastevm.evm.stateful import stateful

VM_ADDRESS: Final = "0x7109709ECfa91a80626fF3989D68f67F5b1DD12D"
SELECTOR: Final = 4
# The functions of Foundry's `vm` that change state; tests use Python for the others.
FUNCTIONS: Final = {
    function.selector: function
    for function in map(Function, json_abi([
        "function deal(address account, uint256 balance)",
        "function etch(address account, bytes code)",
        "function store(address account, bytes32 slot, bytes32 value)",
        "function load(address account, bytes32 slot) view returns (bytes32)",
        "function setNonce(address account, uint64 nonce)",
    ]))
}  # fmt: skip


def run_cheat(call: PrecompileCall) -> bytes:
    """Implements the precompile at `VM_ADDRESS`. Reverts for an unknown function."""
    function = FUNCTIONS.get(call.data[:SELECTOR])
    if function is None:
        raise Revert(b"", 0)
    values = decode_values(function.input_type, call.data, SELECTOR)
    if function.name == "deal":
        call.set_balance(*values)
    elif function.name == "etch":
        call.set_code(*values)
    elif function.name == "store":
        call.set_storage(*values)
    elif function.name == "setNonce":
        call.set_nonce(*values)
    else:
        return call.storage(*values).to_bytes(32, "big")
    return b""


class Cheats:
    """Cheat codes on one machine."""

    def __init__(self, evm: EVM) -> None:
        self.evm = evm

    def install(self) -> Cheats:
        """Lets contracts call deal, etch, store, load and setNonce at `VM_ADDRESS`."""
        self.evm.precompiles[VM_ADDRESS] = stateful(run_cheat)
        self.evm.set_code(VM_ADDRESS, b"\x00")  # Solidity checks for code before a call
        return self

    def deal(self, account: BytesLike, balance: int) -> None:
        """Sets a balance in wei."""
        self.evm.set_balance(account, balance)

    def etch(self, account: BytesLike, code: BytesLike) -> None:
        """Sets the code of an account."""
        self.evm.set_code(account, code)

    def store(self, account: BytesLike, slot: int | BytesLike, value: int) -> None:
        """Sets a storage slot."""
        self.evm.set_storage(account, slot, value)

    def load(self, account: BytesLike, slot: int | BytesLike) -> int:
        """Returns a storage slot."""
        return self.evm.storage(account, slot)

    def warp(self, timestamp: int) -> None:
        """Sets the timestamp of the block in seconds."""
        self.evm.set_block(timestamp=timestamp)

    def roll(self, number: int) -> None:
        """Sets the number of the block."""
        self.evm.set_block(number=number)

    @contextmanager
    def prank(self, contract: Contract, sender: BytesLike) -> Iterator[Contract]:
        """Returns a context in which calls to ``contract`` come from ``sender``."""
        before, contract.default_sender = contract.default_sender, sender
        try:
            yield contract
        finally:
            contract.default_sender = before

    @contextmanager
    def expect_revert(self, reason: str = "") -> Iterator[None]:
        """Returns a context in which a call must fail with a text that contains ``reason``."""
        try:
            yield
        except ContractReverted as error:
            if reason not in str(error):
                raise AssertionError(f"expected a revert with {reason!r}, found {error}") from error
            return
        raise AssertionError("expected a revert, but every call succeeded")
