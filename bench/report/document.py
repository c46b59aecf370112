"""Builds one JSON document of all figures of a run, and a text table."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastevm.bench.engines.evms import Engine, python_version
from fastevm.bench.engines.timing import Figures
from fastevm.bench.programs.cases import Case
from fastevm.bench.report.figures import MICROSECONDS, absolute_aims, group_aims, groups_of, summary

FORMAT = 1


def machine() -> dict[str, object]:
    """Describes the machine of the measurements."""
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }


def processor_name() -> str:
    """Returns the name of the processor, if the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def build(
    cases: list[Case],
    figures: Figures,
    engines: list[Engine],
    missing: dict[str, str],
    quick: bool,
) -> dict[str, Any]:
    """Returns the document: microseconds of each case on each engine, ratios, aims, circumstances.

    ``geomean`` gives, for each group and peer, the geometric mean of the peer's time divided by
    fastevm's. ``scaled`` names the engines that ran a shorter form of the loops: their time is
    multiplied by the ratio of gas.
    """
    groups = groups_of(case for case in cases if case.name in figures.seconds)
    peers = [engine.name for engine in engines if engine.name != "fastevm"]
    return {
        "format": FORMAT,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {"python": python_version(), **{e.name: e.version for e in engines}},
        "quick": quick,
        "clock": "thread CPU time, median of interleaved rounds",
        "cases": microseconds(figures, [case.name for case in cases]),
        "spread": spread(figures),
        "groups": groups,
        "geomean": summary(figures, groups, peers),
        "aims": group_aims(figures, groups) + absolute_aims(figures),
        "scaled": [engine.name for engine in engines if engine.slow],
        "missing": missing,
        "notes": figures.notes,
        "failures": figures.failures,
    }


def rounded(seconds: float) -> float:
    """Returns microseconds with five significant digits."""
    return float(f"{seconds * MICROSECONDS:.5g}")


def microseconds(figures: Figures, names: list[str]) -> dict[str, dict[str, float]]:
    """Returns case -> engine -> median in microseconds, in the order of the file."""
    found: dict[str, dict[str, float]] = {}
    for case in names:
        medians = {name: figures.median(case, name) for name in figures.seconds.get(case, ())}
        if medians:
            found[case] = {name: rounded(value) for name, value in medians.items() if value}
    return found


def spread(figures: Figures) -> dict[str, dict[str, list[float]]]:
    """Returns case -> engine -> seconds of the fastest and the slowest round."""
    return {
        case: {name: [rounded(min(all_)), rounded(max(all_))] for name, all_ in by_engine.items()}
        for case, by_engine in figures.seconds.items()
    }


def table(found: dict[str, Any]) -> str:
    """Formats the figures as text: cases, groups, aims."""
    engines = [name for name in found["versions"] if name != "python"]
    peers = engines[1:]
    lines = [f"{'case (microseconds)':42}" + "".join(f"{name:>14}" for name in engines)]
    for case, by_engine in found["cases"].items():
        cells = (f"{by_engine[e]:>14.5g}" if e in by_engine else f"{'-':>14}" for e in engines)
        lines.append(f"{case:42}" + "".join(cells))
    lines += ["", f"{'group (times as fast as)':42}" + "".join(f"{name:>14}" for name in peers)]
    for group, means in found["geomean"].items():
        cells = (f"{means[p]:>14.2f}" if p in means else f"{'-':>14}" for p in peers)
        lines.append(f"{group:42}" + "".join(cells))
    lines += ["", f"{'aim':52}{'limit':>10}{'value':>10}"]
    for aim in found["aims"]:
        verdict = "met" if aim["met"] else "MISSED"
        figures = f"{aim['limit']:>10g}{aim['value']:>10.4g}"
        lines.append(f"{aim['name']:52}{figures} {aim['unit']}, {verdict}")
    return "\n".join(lines)
