"""Times the search for ten seeded bugs: ``python -m tests.properties.seeded_bugs [ROUNDS]``.

For each bug, prints the median seconds until a property test finds it, the median seconds with
shrinking, and the number of steps in the smallest example. Exit status 1 if a round missed a bug.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from fastevm.integrations.reproduction import read, replay
from tests.properties.machines import MACHINES, Seeded

EXAMPLES = 5_000
SEARCH = (Phase.generate, Phase.target)


def options(phases: tuple[Phase, ...], *, derandomize: bool = False) -> settings:
    """Returns Hypothesis settings without a deadline or an example database."""
    return settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=derandomize,
        phases=phases, suppress_health_check=list(HealthCheck), print_blob=False,
    )  # fmt: skip


def find(machine: type[Seeded], chosen: settings, folder: Path | None) -> AssertionError | None:
    """Runs a property test. Returns the failure that Hypothesis finds, or None.

    Writes the steps that reproduce the failure to ``folder``.
    """

    class Search(machine):  # type: ignore[misc, valid-type]
        reproductions = folder

    Search.__name__ = Search.__qualname__ = machine.__name__
    try:
        run_state_machine_as_test(Search, settings=chosen)
    except AssertionError as error:
        return error
    return None


def main() -> int:
    """Measures and prints the table. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.properties.seeded_bugs")
    parser.add_argument("rounds", nargs="?", type=int, default=5, help="default: %(default)s")
    rounds = parser.parse_args().rounds
    print("| bug | found | s, median | s, most | s with shrinking | steps |")
    print("|---|---|---|---|---|---|")
    missed = False
    for name, machine in MACHINES.items():
        found, times, whole, steps = 0, [], [], []
        for _ in range(rounds):
            start = time.perf_counter()
            found += find(machine, options(SEARCH), None) is not None
            times.append(time.perf_counter() - start)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            find(machine, options((*SEARCH, Phase.shrink)), Path(folder))
            whole.append(time.perf_counter() - start)
            for path in Path(folder).iterdir():
                replay(path)
                changes = [step for step in read(path).steps if "static" not in step.options]
                steps.append(len(changes))
        missed |= found != rounds
        print(
            f"| {name} | {found} of {rounds} | {statistics.median(times):.2f} | {max(times):.2f} "
            f"| {whole[0]:.2f} | {steps[0] if steps else '-'} |",
            flush=True,
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
