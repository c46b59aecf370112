"""What tests do to chains and machines is undone: after each test, module and example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

SCOPES: Final = ("session", "package", "module", "class", "function", "example")


class Resettable(Protocol):
    """What can go back to how it was.

    ``mark`` differs once it has changed; ``take`` remembers it as it is; ``back`` goes back to
    that, unless a test has gone further back.
    """

    def mark(self) -> object: ...
    def take(self) -> object: ...
    def back(self, snapshot: Any) -> None: ...


class ResettableChain:
    """The chain of a node; what is undone is counted for the reports first."""

    def __init__(self, chain: Any, reports: Sequence[Any]) -> None:
        self.chain, self.reports = chain, reports

    def mark(self) -> object:
        """Its head, and how often states were changed by hand."""
        return self.chain.node.state_mark()

    def take(self) -> object:
        """A snapshot, and the height at which it was taken."""
        return self.chain.snapshot(), self.chain.height

    def back(self, snapshot: Any) -> None:
        """Go back."""
        name, height = snapshot
        for report in self.reports:
            report.read(self.chain, height + 1)
        self.chain.node.request("evm_revert", [name])


class ResettableMachine:
    """A machine without blocks, an `EVM`."""

    def __init__(self, evm: Any) -> None:
        self.evm = evm

    def mark(self) -> object:
        """Its state, which is immutable."""
        return self.evm.state

    def take(self) -> object:
        """A snapshot."""
        return self.evm.snapshot()

    def back(self, snapshot: Any) -> None:
        """Go back."""
        if snapshot in self.evm.snapshot_numbers:
            self.evm.revert(snapshot)


class Isolation:
    """Open scopes, the widest first, and how everything was when each began.

    What is made inside a scope was not there when it began: it goes back to how it was made.
    """

    def __init__(self) -> None:
        self._made: dict[Resettable, object] = {}
        self._open: list[tuple[str, dict[Resettable, object]]] = []

    def add(self, thing: Resettable) -> None:
        """Isolate one more thing from now on."""
        self._made[thing] = thing.take()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Undo at the end what happened within."""
        begun = name, {thing: thing.take() for thing in self._made}
        self._open.append(begun)
        try:
            yield
        finally:
            self._open.remove(begun)
            for thing, made in self._made.items():
                thing.back(begun[1].get(thing, made))
                if thing not in begun[1]:
                    self._made[thing] = thing.take()

    @contextmanager
    def fixture(self, scope: str) -> Iterator[None]:
        """Keep what a fixture of this scope does, although narrower scopes are open."""
        before = {thing: thing.mark() for thing in self._made}
        yield
        width = SCOPES.index(scope)
        for thing, mark in before.items():
            if thing.mark() == mark:
                continue
            if scope == "session":
                self._made[thing] = thing.take()
            for name, snapshots in self._open:
                if SCOPES.index(name) > width:
                    snapshots[thing] = thing.take()
