"""Groups cases, and computes geometric means of ratios and the aims."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fastevm.bench.engines.timing import Figures
from fastevm.bench.programs.cases import Case

MICROSECONDS = 1e6

# Groups besides those of the case file, by prefixes of case names.
WIDE_GROUPS = {
    "computation": ("op/", "arith/", "mem/", "keccak/", "ipsilon.", "evmbench/snailtracer"),
    "contracts": ("evmbench/", "ipsilon.main/", "swap/", "erc20/"),
    "ops": ("op/", "arith/", "ipsilon.micro/"),
    "state-and-calls": ("mem/", "keccak/", "storage/", "call/", "create/", "log/"),
    "precompiles": ("precompile/",),
}

# For each group, the largest accepted geometric mean of our time divided by pyrevm's.
GROUP_AIMS = {
    "all": 0.36,
    "computation": 0.42,
    "contracts": 0.7,
    "ops": 0.7,
    "state-and-calls": 0.7,
    "precompiles": 0.9,
}
CASE_AIM = 1.05  # the largest accepted ratio of our time to pyrevm's, for any case


def groups_of(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Returns group -> case names. A case is in its own group, in "all", and in the wide groups."""
    found: dict[str, list[str]] = {"all": []}
    for case in cases:
        found["all"].append(case.name)
        found.setdefault(case.group, []).append(case.name)
        for group, beginnings in WIDE_GROUPS.items():
            if case.name.startswith(beginnings):
                found.setdefault(group, []).append(case.name)
    return found


def geomean(values: Iterable[float]) -> float | None:
    """Returns the geometric mean, or None without values."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def ratios(figures: Figures, names: Iterable[str], peer: str) -> dict[str, float]:
    """Returns case -> the peer's time divided by fastevm's, if both were measured."""
    found = {}
    for name in names:
        own, other = figures.median(name, "fastevm"), figures.median(name, peer)
        if own and other:
            found[name] = other / own
    return found


def summary(
    figures: Figures, groups: dict[str, list[str]], peers: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Returns group -> peer -> geometric mean of the peer's time divided by fastevm's."""
    peers = list(peers)
    found: dict[str, dict[str, float]] = {}
    for group, names in groups.items():
        found[group] = {}
        for peer in peers:
            mean = geomean(ratios(figures, names, peer).values())
            if mean is not None:
                found[group][peer] = round(mean, 4)
    return found


def aim(name: str, unit: str, limit: float, value: float) -> dict[str, object]:
    """Returns an aim with the measured value."""
    return {
        "name": name, "unit": unit, "limit": limit, "value": round(value, 4),
        "met": value <= limit,
    }  # fmt: skip


def group_aims(figures: Figures, groups: dict[str, list[str]]) -> list[dict[str, object]]:
    """Returns the aims against pyrevm, or none if pyrevm did not run."""
    found = []
    for group, limit in GROUP_AIMS.items():
        mean = geomean(ratios(figures, groups.get(group, ()), "pyrevm").values())
        if mean is not None:
            found.append(aim(f"{group} against pyrevm", "of its time", limit, 1 / mean))
    by_case = ratios(figures, groups["all"], "pyrevm")
    if by_case:
        worst = min(by_case, key=by_case.__getitem__)
        found.append(aim(f"worst case ({worst})", "of pyrevm's time", CASE_AIM, 1 / by_case[worst]))
    return found


# Case -> (aim, repetitions of the measured operation in one run, unit, limit).
ABSOLUTE_AIMS = {
    "op/add": ("a simple opcode", 780_018, "ns", 1.1),
    "call/call_stop": ("an inner CALL, loop included", 5_000, "ns", 120.0),
    "storage/sload_warm": ("a warm SLOAD, loop included", 40_000, "ns", 20.0),
    "keccak/64B": ("KECCAK256 of 64 bytes, loop included", 10_000, "ns", 260.0),
    "empty/stop": ("an empty call from Python", 1, "us", 1.2),
    "erc20/balanceOf": ("balanceOf from Python", 1, "us", 2.5),
    "erc20/transfer": ("an ERC-20 transfer from Python", 1, "us", 3.5),
}


def absolute_aims(figures: Figures) -> list[dict[str, object]]:
    """Returns the aims in nanoseconds and microseconds for the measured cases."""
    found = []
    for case, (name, times, unit, limit) in ABSOLUTE_AIMS.items():
        seconds = figures.median(case, "fastevm")
        if seconds is not None:
            found.append(aim(name, unit, limit, seconds / times * (1e9 if unit == "ns" else 1e6)))
    return found
