"""Compares this node with anvil: the same requests over the same connections, alternately.

    python -m fastevm.bench.rpc [--quick] [--match NAME] [--json FILE] [--soak SECONDS]
    python -m fastevm.bench.rpc --hostile SECONDS

Every round runs every case once on each node, so that a slow moment of the machine affects both.
Figures are medians of the rounds. The load generator uses one core and the nodes may use two, so
CPU time per call is the figure to compare. Rates are also shown.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from fastevm.bench.node import hostile_load
from fastevm.bench.node.full_load import FullLoad
from fastevm.bench.node.load import LoadError, Sample, summary
from fastevm.bench.node.rpc_cases import CASES, Case, Side, modes_of, sides
from fastevm.bench.report.figures import aim


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int
    seconds: float


THOROUGH: Final = Effort(5, 0.6)
QUICK: Final = Effort(1, 0.25)


Found = dict[str, dict[str, dict[str, dict[str, float]]]]  # case -> mode -> node -> figures


def compare(
    opened: list[Side], chosen: list[Case], effort: Effort, progress: Callable[[str], None]
) -> Found:
    """Runs all cases on the nodes, alternately."""
    for case in chosen:
        answers = [side.answer(case) for side in opened]
        if case.same and any(answer != answers[0] for answer in answers):
            raise LoadError(f"{case.name}: the nodes answer differently: {answers}")
    samples: dict[tuple[str, str, str], list[Sample]] = {}
    memory: Found = {}
    for number in range(effort.rounds):
        progress(f"round {number + 1} of {effort.rounds}")
        for case in chosen:
            for mode in modes_of(case):
                for side in opened:
                    sample = side.run(case, mode, effort.seconds)
                    name = side.node.name
                    samples.setdefault((case.name, mode[0], name), []).append(sample)
                    by_mode = memory.setdefault(case.name, {}).setdefault(mode[0], {})
                    by_mode[name] = summary(samples[case.name, mode[0], name])
                    by_mode[name]["memory"] = side.node.memory()
    return memory


def aims(found: Found) -> list[dict[str, object]]:
    """Returns the aims for CPU time per call as a share of anvil's, and the measured shares."""
    limits = {case.name: case.limit for case in CASES}
    rows = []
    for name, by_mode in found.items():
        for mode, by_node in by_mode.items():
            single = limits[name]
            if single is None or "anvil" not in by_node:
                continue
            limit = min(single, 1.0) if mode.startswith("batches") else single
            share = by_node["fastevm"]["cpu_us"] / max(by_node["anvil"]["cpu_us"], 0.01)
            rows.append(aim(f"{name}, {mode}", "of anvil's CPU time", limit, share))
    return rows


def table(found: Found) -> str:
    """Formats the figures as text."""
    lines = [f"{'case':44}{'cpu us':>10}{'anvil':>10}{'ratio':>7}{'per s':>10}{'anvil':>10}"]
    for name, by_mode in found.items():
        for mode, by_node in by_mode.items():
            own, other = by_node["fastevm"], by_node.get("anvil")
            line = f"{name + ', ' + mode:44}{own['cpu_us']:>10.2f}"
            if other is None:
                line += f"{'-':>10}{'-':>7}{own['per_second']:>10.0f}{'-':>10}"
            else:
                ratio = own["cpu_us"] / max(other["cpu_us"], 0.01)
                line += f"{other['cpu_us']:>10.2f}{ratio:>7.2f}"
                line += f"{own['per_second']:>10.0f}{other['per_second']:>10.0f}"
            if own["failures"] or (other and other["failures"]):
                line += "  FAILURES"
            lines.append(line)
    return "\n".join(lines)


def measure(progress: Callable[[str], None], quick: bool = False) -> Found:
    """Measures both nodes."""
    with sides(progress) as opened:
        return compare(opened, list(CASES), QUICK if quick else THOROUGH, progress)


def main(argv: list[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.rpc", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument(
        "--soak",
        type=float,
        metavar="SECONDS",
        help="load this node alone with everything; fails unless its memory stays flat",
    )
    parser.add_argument(
        "--hostile",
        type=float,
        metavar="SECONDS",
        help="ask short questions beside traces of 60 s, simulations, searches and pool dumps",
    )
    options = parser.parse_args(argv)
    if options.hostile is not None:
        return hostile_load.measure(options.hostile, hostile_load.CONNECTIONS)

    def progress(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if options.soak is not None:
        with sides(progress, peers=False) as opened:
            return FullLoad(opened[0]).run(options.soak, partial(print, flush=True))
    chosen = [case for case in CASES if options.match in case.name]
    with sides(progress) as opened:
        found = compare(opened, chosen, QUICK if options.quick else THOROUGH, progress)
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
