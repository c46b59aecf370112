"""Snapshots of an ``EVM``, and their data."""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Protocol, Self

from fastevm.core.state.layer import Layer


class Machine(Protocol):
    """A machine that can return to a snapshot."""

    @property
    def snapshot_numbers(self) -> tuple[int, ...]: ...
    def revert(self, snapshot: int, /) -> None: ...


class Snapshot(int):
    """The number of a snapshot. As a context manager, it reverts to the snapshot on exit.

    Numbers are unique within a machine.
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
        if self in self.evm.snapshot_numbers:  # unless the caller has already reverted to it
            self.evm.revert(self)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class Remembered(NamedTuple):
    """The data of a snapshot: number, state, block and preceding block hashes."""

    number: int
    state: Layer
    block: object
    block_hashes: tuple[bytes, ...]
