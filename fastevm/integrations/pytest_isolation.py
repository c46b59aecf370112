"""Isolates tests: undoes changes to chains and machines after each test, module and example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

SCOPES: Final = ("session", "package", "module", "class", "function", "example")


class Resettable(Protocol):
    """An object that can be reset to an earlier state.

    ``mark()`` changes whenever the object has changed. ``take()`` takes a snapshot.
    ``back(snapshot)`` reverts to a snapshot, unless a test has already reverted to an earlier
    state.
    """

    def mark(self) -> object: ...
    def take(self) -> object: ...
    def back(self, snapshot: Any) -> None: ...


class ResettableChain:
    """The chain of a node. The reports read blocks before a revert removes them."""

    def __init__(self, chain: Any, reports: Sequence[Any]) -> None:
        self.chain, self.reports = chain, reports

    def mark(self) -> object:
        """Returns the head and the number of direct state changes."""
        return self.chain.node.state_mark()

    def take(self) -> object:
        """Takes a snapshot. Returns it with the number of the newest block."""
        return self.chain.snapshot(), self.chain.height

    def back(self, snapshot: Any) -> None:
        """Reverts to the snapshot."""
        name, height = snapshot
        for report in self.reports:
            report.read(self.chain, height + 1)
        self.chain.node.request("evm_revert", [name])


class ResettableMachine:
    """An `EVM`, which has no blocks."""

    def __init__(self, evm: Any) -> None:
        self.evm = evm

    def mark(self) -> object:
        """Returns the state, which is immutable."""
        return self.evm.state

    def take(self) -> object:
        """Takes a snapshot."""
        return self.evm.snapshot()

    def back(self, snapshot: Any) -> None:
        """Reverts to the snapshot."""
        if snapshot in self.evm.snapshot_numbers:
            self.evm.revert(snapshot)


class Isolation:
    """The open scopes, widest first, with the snapshots taken at their start.

    An object that is created inside a scope is reset to its state at creation.
    """

    def __init__(self) -> None:
        self._made: dict[Resettable, object] = {}
        self._open: list[tuple[str, dict[Resettable, object]]] = []

    def add(self, resettable: Resettable) -> None:
        """Isolates a further object from now on."""
        self._made[resettable] = resettable.take()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Returns a context that undoes changes when it ends."""
        begun = name, {resettable: resettable.take() for resettable in self._made}
        self._open.append(begun)
        try:
            yield
        finally:
            self._open.remove(begun)
            for resettable, made in self._made.items():
                resettable.back(begun[1].get(resettable, made))
                if resettable not in begun[1]:
                    self._made[resettable] = resettable.take()

    @contextmanager
    def fixture(self, scope: str) -> Iterator[None]:
        """Returns a context for a fixture of this scope.

        The changes of the fixture stay when narrower scopes end.
        """
        before = {resettable: resettable.mark() for resettable in self._made}
        yield
        width = SCOPES.index(scope)
        for resettable, mark in before.items():
            if resettable.mark() == mark:
                continue
            if scope == "session":
                self._made[resettable] = resettable.take()
            for name, snapshots in self._open:
                if SCOPES.index(name) > width:
                    snapshots[resettable] = resettable.take()
