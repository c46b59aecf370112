"""Judges whether resident memory and open descriptors of a node grow over hours.

A young process uses less memory than an old process. So if the node is killed at intervals, earlier
and later processes are compared at equal ages. A process that runs long is compared with itself
after the warm-up. Hostile clients raise the memory for minutes, so the minimum over some minutes
counts. The command ``python -m tests.faults.memory_growth FILE`` judges the samples of an earlier
soak again.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

MEGABYTE: Final = 1 << 20
# Less growth is noise: after a restart, the node's blocks occupy other pieces of memory.
NOISE_BYTES: Final = 24 * MEGABYTE
NOISE_SHARE: Final = 0.1  # growth below this share of the first measurement is noise, too
NOISE_DESCRIPTORS: Final = 32  # clients connect and disconnect
PEAK_BYTES: Final = 2048 * MEGABYTE  # more than all budgets of a listener and the state together
AGE_SECONDS: Final = 240.0  # seconds; ages within the same interval of this length count as equal
LEAST_AGES: Final = 4  # number of equal ages that a comparison needs
LONG_SECONDS: Final = 2_400.0  # seconds; a process that lives longer is also judged alone
# Shares of a long life that are compared with each other. The warm-up precedes the first.
FIRST, LAST = (0.25, 0.45), (0.8, 1.0)
LEAST_SAMPLES: Final = 300  # with fewer samples, growth is not judged
TICKS: Final = os.sysconf("SC_CLK_TCK")  # processor clock ticks per second


class Use(NamedTuple):
    """The resources of a process at one time.

    ``memory``: resident bytes. ``anonymous``: the anonymous bytes among them. ``descriptors``: open
    descriptors. ``process``: the process id. ``age``: seconds since the process started.
    """

    process: int
    age: float
    memory: int
    anonymous: int
    descriptors: int


def use_of(pid: int) -> Use:
    """Returns the current resources of a process. Raises OSError if the process has ended."""
    process = Path(f"/proc/{pid}")
    lines = (line.partition(":") for line in (process / "status").read_text().splitlines())
    sizes = {name: value for name, _, value in lines if name in ("VmRSS", "RssAnon")}
    if len(sizes) < 2:  # the process is ending
        raise ProcessLookupError(pid)
    memory, anonymous = (int(sizes[name].split()[0]) * 1024 for name in ("VmRSS", "RssAnon"))
    started = int((process / "stat").read_text().rpartition(")")[2].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    age = max(0.0, up - started / TICKS)
    return Use(pid, age, memory, anonymous, len(list((process / "fd").iterdir())))


def report(samples: Sequence[Use], *, long_seconds: float = LONG_SECONDS) -> dict[str, Any]:
    """Compares the earlier with the later processes of a node.

    Returns the largest figures, and in ``wrong`` a sentence for everything that grew. ``samples``:
    the samples of one node in order of time. A process that lived ``long_seconds`` is also judged
    alone.
    """
    found: dict[str, Any] = {"samples": len(samples), "wrong": []}
    if not samples:
        return found
    found["peak_mib"] = _mib(max(sample.memory for sample in samples))
    found["most_descriptors"] = max(sample.descriptors for sample in samples)
    if found["peak_mib"] * MEGABYTE > PEAK_BYTES:
        found["wrong"].append(f"memory reached {found['peak_mib']} MiB")
    if len(samples) < LEAST_SAMPLES:
        return found
    lives = [list(life) for _, life in itertools.groupby(samples, key=lambda item: item.process)]
    found["lives"] = len(lives)
    half = len(lives) // 2
    compared = _at_equal_ages(lives[:half], lives[half:])
    if compared:
        found["between_lives"] = _compare(found["wrong"], "between lives", *compared)
    for number, life in enumerate(lives, 1):
        if life[-1].age - life[0].age >= long_seconds:
            where = f"in life {number}"
            parts = (_kept(_part(life, *share)) for share in (FIRST, LAST))
            found[where.replace(" ", "_")] = _compare(found["wrong"], where, *parts)
    return found


def _compare(wrong: list[str], where: str, first: Use, last: Use) -> dict[str, Any]:
    """Returns the figures of both measurements. Adds a sentence to ``wrong`` for what grew."""
    memory = [_mib(item.memory) for item in (first, last)]
    descriptors = [item.descriptors for item in (first, last)]
    if last.memory - first.memory > max(NOISE_BYTES, NOISE_SHARE * first.memory):
        wrong.append("memory grew {} from {} to {} MiB".format(where, *memory))
    if last.descriptors - first.descriptors > NOISE_DESCRIPTORS:
        wrong.append("open descriptors grew {} from {} to {}".format(where, *descriptors))
    return {
        "memory_mib": memory,
        "anonymous_mib": [_mib(item.anonymous) for item in (first, last)],
        "descriptors": descriptors,
    }


def _at_equal_ages(earlier: Sequence[list[Use]], later: Sequence[list[Use]]) -> list[Use]:
    """Returns the medians of earlier and of later lives, over the ages at which both were measured.

    Returns nothing if there are fewer than `LEAST_AGES` such ages.
    """
    by_age = [_by_age(lives) for lives in (earlier, later)]
    ages = by_age[0].keys() & by_age[1].keys()
    if len(ages) < LEAST_AGES:
        return []
    return [_medians(found[age] for age in sorted(ages)) for found in by_age]


def _by_age(lives: Iterable[list[Use]]) -> dict[int, Use]:
    """Returns the median of all lives at each age, in steps of `AGE_SECONDS`."""
    found: dict[int, list[Use]] = {}
    for life in lives:
        for age, part in itertools.groupby(life, key=lambda item: int(item.age // AGE_SECONDS)):
            found.setdefault(age, []).append(_kept(part))
    return {age: _medians(each) for age, each in found.items()}


def _part(life: Sequence[Use], start: float, end: float) -> Sequence[Use]:
    return life[int(start * len(life)) : int(end * len(life))]


def _kept(uses: Iterable[Use]) -> Use:
    """Returns the samples' minimum of memory and median of descriptors."""
    found = list(uses)
    least = min(found, key=lambda item: item.memory)
    return _medians(found)._replace(memory=least.memory, anonymous=least.anonymous)


def _medians(uses: Iterable[Use]) -> Use:
    columns = list(zip(*uses, strict=True))
    memory, anonymous, descriptors = (int(statistics.median(column)) for column in columns[2:])
    return Use(columns[0][0], statistics.median(columns[1]), memory, anonymous, descriptors)


def _mib(size: int) -> float:
    return round(size / MEGABYTE, 1)


def main(path: str) -> int:
    """Judges a file of samples and prints a report. Returns 1 if something grew."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    uses: dict[str, list[Use]] = {line["node"]: [] for line in lines}
    for line in lines:
        uses[line["node"]].append(Use(*(line[name] for name in Use._fields)))
    found = {node: report(samples) for node, samples in uses.items()}
    print(json.dumps(found, indent=1))
    return int(any(item["wrong"] for item in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
