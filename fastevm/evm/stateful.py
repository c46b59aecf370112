"""Marks a Python callable as a stateful precompile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from fastevm.core.primitives.bytes_like import BytesLike
from fastevm.evm.precompile_call import PrecompileCall

# The output, or a pair of output and gas used.
Answer: TypeAlias = BytesLike | tuple[BytesLike | None, int] | None


class StatefulPrecompile(Struct, frozen=True):
    """A precompile that gets a ``PrecompileCall``: ``evm.precompiles[address] = stateful(run)``.

    ``run`` has the same results and exceptions as other Python precompiles.
    """

    run: Callable[[PrecompileCall], Answer]

    def __call__(self, call: PrecompileCall) -> Answer:
        return self.run(call)


def stateful(run: Callable[[PrecompileCall], Answer]) -> StatefulPrecompile:
    """Returns a stateful precompile that runs ``run``. May be used as a decorator."""
    return StatefulPrecompile(run)
