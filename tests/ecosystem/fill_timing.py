"""A pytest plugin that writes how long ``fill`` spent in its transition tool.

The environment variable ``FILE`` names the file. It gets wall seconds and CPU seconds, including
the processes that the tool started.
"""

from __future__ import annotations

import os
import resource
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

FILE: Final = "FASTEVM_FILL_TIMES"


class Spent:
    """The sums of seconds over all blocks."""

    wall = cpu = 0.0


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of its finished children."""
    found = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def timed(run: Any) -> Any:
    """Returns a method that adds its time to `Spent`."""

    def method(*given: Any, **named: Any) -> Any:
        wall, cpu = time.perf_counter(), cpu_seconds()
        try:
            return run(*given, **named)
        finally:
            Spent.wall += time.perf_counter() - wall
            Spent.cpu += cpu_seconds() - cpu

    return method


def pytest_configure() -> None:
    """Times the calls of every tool."""
    tool = import_module("execution_testing.client_clis").TransitionTool
    tool.evaluate = timed(tool.evaluate)


def pytest_unconfigure() -> None:
    """Writes the sums."""
    Path(os.environ[FILE]).write_text(f"{Spent.wall} {Spent.cpu}")
