"""Tests that the judge of memory growth tells a leak from the normal growth of a process."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults.memory_growth import (
    LEAST_SAMPLES,
    MEGABYTE,
    PEAK_BYTES,
    Use,
    main,
    report,
)

HOURS = 7_200  # seconds of a run
STEP = 7  # seconds between two samples
# seconds of the run at which a process is killed and the next begins
KILLED = (0, 600, 1_800, 3_000, 4_200, HOURS)
# Returns an amount for the time since the start of the run, and since the start of the process.
Amount = Callable[[float, float], float]


def warm_up(time: float, age: float) -> float:
    """Returns the memory in MiB of a process that fills its caches after its start."""
    return 90 + 60 * (1 - math.exp(-age / 400)) + 6 * math.sin(time)


def uses(
    memory: Amount, descriptors: Amount = lambda *_: 30, starts: tuple[int, ...] = KILLED
) -> list[Use]:
    found = []
    for process, (start, end) in enumerate(pairwise(starts), 100):
        for time in range(start, end, STEP):
            age = time - start
            size = int(memory(time, age) * MEGABYTE)
            found.append(Use(process, age, size, size, int(descriptors(time, age))))
    return found


def kinds(words: list[str]) -> list[str]:
    """Returns the sentences up to their first figure."""
    return [text.partition(" from ")[0] for text in words]


@pytest.mark.parametrize("starts", [KILLED, (0, 1_200, 2_400, 3_600, HOURS), (0, HOURS)])
def test_lives_of_other_ages_are_no_growth(starts: tuple[int, ...]) -> None:
    assert report(uses(warm_up, starts=starts))["wrong"] == []


def test_memory_that_clients_make_a_node_use_for_minutes_is_no_growth() -> None:
    def attacked(time: float, age: float) -> float:
        return warm_up(time, age) + 150 * (time > HOURS / 2 and time % 200 > 60)

    assert report(uses(attacked))["wrong"] == []


def test_a_leak_that_outlives_processes_is_found() -> None:
    found = report(uses(lambda time, age: warm_up(time, age) + time / 60))
    assert "memory grew between lives" in kinds(found["wrong"])


def test_a_leak_that_ends_with_the_process_is_found_in_a_long_life() -> None:
    found = report(uses(lambda time, age: warm_up(time, age) + age / 60))
    assert kinds(found["wrong"]) == ["memory grew in life 5"]


def test_a_leak_of_a_process_that_is_never_killed_is_found() -> None:
    found = report(uses(lambda time, age: warm_up(time, age) + age / 60, starts=(0, HOURS)))
    assert kinds(found["wrong"]) == ["memory grew in life 1"]


def test_descriptors_that_stay_open_are_found() -> None:
    found = report(uses(warm_up, lambda _, age: 30 + age / 30))
    assert kinds(found["wrong"]) == ["open descriptors grew in life 5"]
    found = report(uses(warm_up, lambda time, _: 30 + time / 50))
    assert kinds(found["wrong"])[0] == "open descriptors grew between lives"


def test_a_peak_is_found_in_a_short_run_and_growth_is_not() -> None:
    samples = [Use(1, n, n * MEGABYTE, 0, n) for n in range(LEAST_SAMPLES - 1)]
    assert report(samples)["wrong"] == []
    peak = Use(1, LEAST_SAMPLES, 2 * PEAK_BYTES, 0, 0)
    assert report([*samples, peak])["wrong"] == ["memory reached 4096.0 MiB"]


def test_a_file_of_samples_is_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    amounts: dict[str, Amount] = {
        "builder": warm_up,
        "follower": lambda time, age: warm_up(time, age) + time / 60,
    }
    lines = [{"node": node} | use._asdict() for node in amounts for use in uses(amounts[node])]
    (tmp_path / "samples").write_text("\n".join(map(json.dumps, lines)))
    assert main(str(tmp_path / "samples")) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["builder"]["wrong"]
    assert found["follower"]["wrong"]
