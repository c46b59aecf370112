"""A pytest plugin that measures how long ``fill`` spends in its transition tool.

Writes wall seconds and CPU seconds, including those of processes that the tool started, to the file
that the environment variable ``FILE`` names.
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
    """Wall and CPU seconds in the tool so far."""

    wall = cpu = 0.0


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of its finished children."""
    found = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def timed(run: Any) -> Any:
    """Returns the method, wrapped so that it adds its time to `Spent`."""

    def method(*given: Any, **named: Any) -> Any:
        wall, cpu = time.perf_counter(), cpu_seconds()
        try:
            return run(*given, **named)
        finally:
            Spent.wall += time.perf_counter() - wall
            Spent.cpu += cpu_seconds() - cpu

    return method


def pytest_configure() -> None:
    """Wraps the methods by which ``fill`` calls any tool."""
    tool = import_module("execution_testing.client_clis").TransitionTool
    tool.evaluate = timed(tool.evaluate)


def pytest_unconfigure() -> None:
    """Writes the seconds to the file."""
    Path(os.environ[FILE]).write_text(f"{Spent.wall} {Spent.cpu}")
