"""Precompiles in Python, by address, and what watches a run."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeAlias

# Input and gas -> output, or output and gas used.
Precompile: TypeAlias = Callable[[bytes, int], bytes | str | tuple[bytes | str | None, int] | None]

class Watch: ...

class Precompiles(MutableMapping[bytes | str, Precompile]):
    """The precompiles of a machine that Python runs, by address.

    A call to such an address runs ``callable(input, gas)``: bytes and the gas that it may use. It
    gives its output, or a pair of output and gas used; using more than it may is out of gas. It may
    raise ``fastevm.Revert(data)``, which reverts the call, and ``fastevm.PrecompileFailed``, which
    takes all its gas. Any other exception ends the run and reaches the caller, with nothing
    changed. It replaces a precompile of the fork. The address has no code unless ``set_code`` gives
    it some, which Solidity looks for before a call, and is cold as any other.

    The machine cannot be read or used inside: RuntimeError. Over a remote state a run is repeated
    until nothing is missing, and the callable with it. At most 1,024; ResourceLimitError.
    """

    def __getitem__(self, address: bytes | str) -> Precompile: ...
    def __setitem__(self, address: bytes | str, run: Precompile) -> None: ...
    def __delitem__(self, address: bytes | str) -> None: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
