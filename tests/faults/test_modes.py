"""Tests that the library gives the same results in threads, in tasks and in other processes.

Free-threaded CPython is not tested: coincurve has no package for 3.13t or 3.14t, and msgspec and
cryptography have none for 3.13t. `setup.py` refuses such a build.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec

import pytest

from .mode_probes import LIMIT, PROBES, Probe


def here(probe: Callable[[], str]) -> str:
    return probe()


def in_threads(probe: Callable[[], str]) -> str:
    """Runs the probe in two threads at the same time."""
    with ThreadPoolExecutor(2) as pool:
        (answer,) = {work.result(LIMIT) for work in [pool.submit(probe) for _ in range(2)]}
    return answer


def in_a_task(probe: Callable[[], str]) -> str:
    """Runs the probe on the event loop and in a thread at the same time."""

    async def main() -> str:
        other = asyncio.create_task(asyncio.to_thread(probe))
        await asyncio.sleep(0)
        own = probe()
        assert await other == own
        return own

    return asyncio.run(main())


def in_a_process(method: str) -> Callable[[Callable[[], str]], str]:
    def run(probe: Callable[[], str]) -> str:
        probe()  # Creates threads and locks in this process, which the forked child then inherits.
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(probe).result(LIMIT)

    return run


MODES: dict[str, Callable[[Callable[[], str]], str]] = {
    "here": here,
    "threads": in_threads,
    "asyncio": in_a_task,
    "fork": in_a_process("fork"),
    "spawn": in_a_process("spawn"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("probe", PROBES, ids=[probe.run.__name__ for probe in PROBES])
def test_a_program_gets_the_same_answer_in_every_mode(probe: Probe, mode: str) -> None:
    if mode == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    if probe.package and find_spec(probe.package) is None:
        pytest.skip(f"needs {probe.package}")
    assert MODES[mode](probe.run) == probe.expected
