"""Precompiles implemented in Python, and observers of executions."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeAlias

from fastevm.core.primitives.bytes_like import BytesLike
from fastevm.evm.stateful import StatefulPrecompile

# A function from (input, gas) to output, or to (output, gas used).
Precompile: TypeAlias = Callable[[bytes, int], BytesLike | tuple[BytesLike | None, int] | None]

class Watch: ...

class Precompiles(MutableMapping[BytesLike, Precompile | StatefulPrecompile]):
    """The precompiles of a machine that are implemented in Python, by address.

    A call to such an address runs ``callable(input, gas)`` with the input (bytes) and the available
    gas. The callable returns the output, or a pair of output and gas used; if it used more than the
    available gas, the call is out of gas. It may raise ``fastevm.Revert(data)``, which reverts the
    call, or ``fastevm.PrecompileFailed``, which consumes all gas. Any other exception ends the
    execution without changes and propagates to the caller. The callable replaces a precompile of
    the fork. The address has no code unless ``set_code`` sets some (Solidity checks for code before
    a call), and it is cold like other addresses.

    To access the state, set ``fastevm.evm.stateful(run)``: ``run`` gets a ``PrecompileCall``.
    Inside a callable, using the machine raises RuntimeError. Over a remote state, an execution and
    its callables are repeated until no value is missing. More than 1,024 precompiles raise
    ResourceLimitError.
    """

    def __getitem__(self, address: BytesLike) -> Precompile | StatefulPrecompile: ...
    def __setitem__(self, address: BytesLike, run: Precompile | StatefulPrecompile) -> None: ...
    def __delitem__(self, address: BytesLike) -> None: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __len__(self) -> int: ...
