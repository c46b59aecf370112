"""What ``EVM.snapshot`` gives, and what a machine keeps for it."""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Protocol, Self

from fastevm.core.state.layer import Layer


class Machine(Protocol):
    """What can go back to a snapshot."""

    @property
    def snapshot_numbers(self) -> tuple[int, ...]: ...
    def revert(self, snapshot: int, /) -> None: ...


class Snapshot(int):
    """The number of a snapshot, and a context manager that goes back to it at the end.

    No other snapshot of the machine ever has that number.
    """

    evm: Machine

    def __new__(cls, number: int, evm: Machine) -> Self:
        snapshot = super().__new__(cls, number)
        snapshot.evm = evm
        return snapshot

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self in self.evm.snapshot_numbers:  # not yet gone back to by hand
            self.evm.revert(self)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class Remembered(NamedTuple):
    """What a snapshot holds: its number, the state, the block and the hashes before that."""

    number: int
    state: Layer
    block: object
    block_hashes: tuple[bytes, ...]
