"""Lets observers read what the runs of an ``EVM`` do."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastevm.evm.hook_calls import Watch
from fastevm.evm.machine import EVM
from fastevm.tracing.observer import Observer

class ObserverWatch(Watch):
    def __init__(self, make: Callable[[], Observer]) -> None: ...

def watched(
    evm: EVM,
    make: Callable[[], Observer],
    run: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """``run(*args, **options)`` of ``evm``, read by what ``make`` gives, and by its own hooks."""
