"""Writes the sections of the report that compare the node with anvil."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any

from fastevm.bench.report.drawing import bars


def sections(found: dict[str, Any], table_of: Callable[..., str]) -> list[str]:
    """Returns the sections. ``table_of(head, rows)`` returns an HTML table."""
    names = ", ".join(f"{name} ({row['version']})" for name, row in found["start"].items())
    parts = [
        "<h2>The node</h2>",
        f"<p class=note>{escape(found['time'])}: {escape(names)}; in turns on the loopback "
        "interface, medians. CPU is that of the server for one call.</p>",
        table_of(
            ("node", "s to the first answer", "MB then"),
            ([name, row["seconds"], row["megabytes"]] for name, row in found["start"].items()),
        ),
        "<h2>Requests</h2>",
        comparison({
            f"{case}, {mode}": by_node
            for case, by_mode in found["rpc"].items()
            for mode, by_node in by_mode.items()
        }, table_of),
        "<h2>Transactions</h2>",
        comparison(transactions(found["sending"]), table_of),
        "<h2>Logs</h2>",
        comparison(found["logs"]["http"], table_of),
        table_of(("in the process", ""), found["logs"]["process"].items()),
        "<h2>Simulation in the process</h2>",
        table_of(("a transfer in a bundle", "us"), found["simulate"]["transfer"].items()),
        table_of(("two threads for one", "times"), found["simulate"]["threads"].items()),
    ]  # fmt: skip
    if found["cadence"] is not None:
        rows = ((name, json.dumps(value)) for name, value in found["cadence"].items())
        parts += ["<h2>Cadence under load</h2>", table_of(("figure", ""), rows)]
    return parts


def transactions(
    found: dict[str, dict[str, dict[str, float]]],
) -> dict[str, dict[str, dict[str, float]]]:
    """Splits the figures of transactions into two cases, accepted and included."""
    return {
        f"{what}, {mode}": {
            node: {"cpu_us": row[f"{what}_cpu_us"], "per_second": row[f"{what}_per_second"]}
            for node, row in by_node.items()
        }
        for mode, by_node in found.items()
        for what in ("accepted", "included")
    }


def comparison(found: dict[str, dict[str, dict[str, float]]], table_of: Callable[..., str]) -> str:
    """Returns a table of both nodes, and bars of anvil's CPU time divided by ours."""
    columns = [
        (node, figure)
        for figure in ("cpu_us", "per_second", "p50_us", "p99_us")
        for node in ("fastevm", "anvil")
        if any(figure in by_node.get(node, {}) for by_node in found.values())
    ]
    head = ("case", *(f"{node} {figure.replace('_', ' ')}" for node, figure in columns))
    text = table_of(
        head,
        (
            (name, *(by_node.get(node, {}).get(figure, "") for node, figure in columns))
            for name, by_node in found.items()
        ),
    )
    ratios = [
        (name, by_node["anvil"]["cpu_us"] / max(by_node["fastevm"]["cpu_us"], 0.01))
        for name, by_node in found.items()
        if "anvil" in by_node
    ]
    return text + (bars("CPU time of anvil by CPU time of fastevm", ratios) if ratios else "")
