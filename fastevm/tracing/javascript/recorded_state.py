"""The state at a step of a recorded execution: the state before the execution, plus later
changes.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from fastevm.core.state.layer import Layer


class _Changes(Struct):
    """The changes of one frame. ``balances`` are differences."""

    slots: dict[tuple[bytes, int], int] = field(default_factory=dict)
    balances: dict[bytes, int] = field(default_factory=dict)
    nonces: dict[bytes, int] = field(default_factory=dict)
    codes: dict[bytes, bytes] = field(default_factory=dict)

    def merge(self, inner: _Changes) -> None:
        self.slots |= inner.slots
        self.nonces |= inner.nonces
        self.codes |= inner.codes
        for address, more in inner.balances.items():
            self.balances[address] = self.balances.get(address, 0) + more


class RecordedState:
    """A state with recorded changes: SSTORE, calls with value, creations, self-destructions.

    The gas fee is not subtracted from the sender, because it is known only after the transaction.
    """

    def __init__(self, before: Layer) -> None:
        self.before = before
        self._frames = [_Changes()]

    def store(self, address: bytes, slot: int, value: int) -> None:
        """Sets a slot."""
        self._frames[-1].slots[address, slot] = value

    def set_nonce(self, address: bytes, nonce: int) -> None:
        """Sets a nonce."""
        self._frames[-1].nonces[address] = nonce

    def move(self, sender: bytes, target: bytes, value: int) -> None:
        """Transfers wei."""
        balances = self._frames[-1].balances
        balances[sender] = balances.get(sender, 0) - value
        balances[target] = balances.get(target, 0) + value

    def set_code(self, address: bytes, code: bytes) -> None:
        """Sets the code of a new contract."""
        self._frames[-1].codes[address] = code

    def enter(self) -> None:
        """Starts a frame."""
        self._frames.append(_Changes())

    def leave(self, *, success: bool) -> None:
        """Ends the newest frame. Keeps its changes if it succeeded."""
        ended = self._frames.pop()
        if success:
            self._frames[-1].merge(ended)

    def balance(self, address: bytes) -> int:
        """Returns the balance in wei."""
        more = sum(frame.balances.get(address, 0) for frame in self._frames)
        return self.before.balance(address) + more

    def nonce(self, address: bytes) -> int:
        """Returns the nonce."""
        found = self._newest("nonces", address)
        return self.before.nonce(address) if found is None else found

    def code(self, address: bytes) -> bytes:
        """Returns the code."""
        found = self._newest("codes", address)
        return self.before.code(address) if found is None else found

    def slot(self, address: bytes, slot: int) -> int:
        """Returns the value of a slot."""
        found = self._newest("slots", (address, slot))
        return self.before.storage(address, slot) if found is None else found

    def exists(self, address: bytes) -> bool:
        """Returns whether the account exists."""
        if any(address in frame.nonces or address in frame.balances for frame in self._frames):
            return True
        return self.before.account(address) is not None

    def _newest(self, name: str, key: Any) -> Any:
        for frame in reversed(self._frames):
            changes = getattr(frame, name)
            if key in changes:
                return changes[key]
        return None
