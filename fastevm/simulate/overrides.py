"""State overrides: in which order they apply, and which of them contradict each other."""

from collections.abc import Mapping
from typing import Protocol

from fastevm.simulate.values import AccountOverride, SimulationError
from fastevm.wire.text.hex import checksum_address


class Overridable(Protocol):
    """A state that takes overrides: a runner's now, or a job's later."""

    def is_precompile(self, address: bytes) -> bool: ...
    def move_precompile(self, source: bytes | None, address: bytes) -> None: ...
    def override_account(self, address: bytes, override: AccountOverride) -> None: ...


def apply_overrides(runner: Overridable, overrides: Mapping[bytes, AccountOverride]) -> None:
    """Change the runner's state as asked, addresses in ascending order.

    An override of a precompile's address removes the precompile there; ``move_precompile_to`` lets
    it answer elsewhere. SimulationError (reason ``override``) for what contradicts itself, in
    go-ethereum's words.
    """
    moved: set[bytes] = set()
    for address in sorted(overrides):
        override = overrides[address]
        if address in moved:
            name = checksum_address(address)
            _refuse(f"account {name} has already been overridden by a precompile")
        if override.move_precompile_to is not None:
            _move(runner, address, override.move_precompile_to, overrides)
            moved.add(override.move_precompile_to)
        if runner.is_precompile(address):
            runner.move_precompile(None, address)
        if override.state is not None and override.state_diff is not None:
            _refuse(f"account {checksum_address(address)} has both 'state' and 'stateDiff'")
        runner.override_account(address, override)


def _move(
    runner: Overridable, source: bytes, target: bytes, overrides: Mapping[bytes, AccountOverride]
) -> None:
    if not runner.is_precompile(source):
        _refuse(f"account {checksum_address(source)} is not a precompile")
    if target in overrides:
        _refuse(f"account {checksum_address(target)} is already overridden")
    runner.move_precompile(source, target)


def _refuse(message: str) -> None:
    raise SimulationError("override", message)
