"""Implements ``fastevm bench --node``: makes all measurements of the node in one document."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from fastevm.bench import logs, rpc, simulate
from fastevm.bench.cadence import aims as cadence_aims
from fastevm.bench.node import sending
from fastevm.bench.node.compared import ComparedNode, start_anvil, start_fastevm
from fastevm.bench.node.load import LoadError
from fastevm.bench.options import child_environment
from fastevm.bench.report.document import machine
from fastevm.bench.report.figures import aim

STARTS: Final = 5
MEGABYTE: Final = 2**20
CADENCE_SECONDS: Final = 60.0
QUICK_BUNDLES: Final = 2_000
START_AIM: Final = 0.5  # seconds to the first response
MEMORY_AIM: Final = 80.0  # megabytes after the first response

Progress = Callable[[str], None]


def measure(progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Returns all figures with the machine and the aims."""
    found: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "quick": quick,
        "start": starts(progress, 1 if quick else STARTS),
        "rpc": rpc.measure(progress, quick),
        "sending": sending.measure(progress, quick),
        "logs": logs.measure(progress, quick),
        "simulate": simulations(progress, quick),
        "cadence": None if quick else cadence(progress),
    }
    found["aims"] = [
        *start_aims(found["start"]), *rpc.aims(found["rpc"]), *sending.aims(found["sending"]),
        *logs.aims(found["logs"]), *simulate.aims(found["simulate"]),
    ]  # fmt: skip
    if found["cadence"] is not None:
        found["aims"] += cadence_aims(found["cadence"])
    return found


def starts(progress: Progress, count: int) -> dict[str, dict[str, Any]]:
    """Returns each node's median seconds to its first response, and its megabytes at that time."""
    rows: dict[str, list[ComparedNode]] = {}
    for number in range(count):
        progress(f"start {number + 1} of {count}")
        for start in (start_fastevm, start_anvil):
            try:
                node = start()
            except LoadError as reason:
                if start is start_fastevm:
                    raise
                progress(f"anvil is left out: {reason}")
                continue
            node.stop()
            rows.setdefault(node.name, []).append(node)
    return {
        name: {
            "version": nodes[0].version,
            "seconds": round(statistics.median(node.started_in for node in nodes), 3),
            "megabytes": round(
                statistics.median(node.memory_at_start for node in nodes) / MEGABYTE, 1
            ),
        }
        for name, nodes in rows.items()
    }


def start_aims(found: dict[str, dict[str, Any]]) -> list[dict[str, object]]:
    """Returns the aims for this node's start."""
    own = found["fastevm"]
    return [
        aim("start to first answer", "s", START_AIM, own["seconds"]),
        aim("memory at the start", "MB", MEMORY_AIM, own["megabytes"]),
    ]


def simulations(progress: Progress, quick: bool) -> dict[str, Any]:
    """Returns the figures of `bench.simulate`."""
    progress("simulations in the process")
    return simulate.measure(bundles=QUICK_BUNDLES, rounds=1) if quick else simulate.measure()


def cadence(progress: Progress) -> dict[str, Any]:
    """Runs `bench.cadence` in a separate process and returns its figures."""
    progress("cadence under load")
    command = [sys.executable, "-m", "fastevm.bench.cadence", "--seconds", str(CADENCE_SECONDS)]
    done = subprocess.run(
        command, env=child_environment(), capture_output=True, text=True, check=False
    )
    try:
        found = dict(json.loads(done.stdout))
    except ValueError:
        raise LoadError(f"bench.cadence gave no figures: {done.stderr[-500:]}") from None
    return found


def table(found: dict[str, Any]) -> str:
    """Formats the figures as text."""
    lines = [
        f"{name:12}{row['seconds']:8.3f} s to the first answer{row['megabytes']:8.1f} MB"
        for name, row in found["start"].items()
    ]
    lines += ["", rpc.table(found["rpc"]), "", sending.table(found["sending"])]
    lines += ["", logs.table(found["logs"]), "", simulate.table(found["simulate"])]
    if found["cadence"] is not None:
        lines += ["", "cadence under load", json.dumps(found["cadence"])]
    missed = [row for row in found["aims"] if not row["met"]]
    lines += ["", f"{len(found['aims']) - len(missed)} of {len(found['aims'])} aims met; not met:"]
    lines += [
        f"  {row['name']:52}{row['value']:>9} {row['unit']}, at most {row['limit']:.3g}"
        for row in missed
    ]
    return "\n".join(lines)
