"""Lets observers read the records of executions on an ``EVM``."""

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
    """Returns ``run(*args, **options)``, an execution of ``evm`` that ``make()`` and hooks observe.

    Raises RuntimeError if another call observes the machine.
    """
