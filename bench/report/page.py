"""Writes an HTML page with the figures of one run as tables and bars."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fastevm.bench.report import node_sections
from fastevm.bench.report.drawing import bars, lines
from fastevm.bench.report.figures import geomean

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #1c2430; background: #fff }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #dde2ea }
th:first-child, td:first-child { text-align: left }
.missed { color: #b3261e; font-weight: 600 } .note { color: #5a6675 }
svg { display: block; margin: 1rem 0; max-width: 100% }
"""


FIGURES = "figures.json"
NODE_FIGURES = "node.json"
BLOCK_FIGURES = "blocks.json"
OTHER_FIGURES = "cases-{}.json"  # by the name of a case file that is not ours
TREND = "trend.json"
MOST_BARS = 200  # cases with a bar; a table lists all cases


def write(
    folder: Path,
    found: dict[str, Any] | None = None,
    node_found: dict[str, Any] | None = None,
    blocks_found: dict[str, Any] | None = None,
    other_found: tuple[str, dict[str, Any]] | None = None,
    trend: dict[str, list[tuple[str, float]]] | None = None,
) -> None:
    """Writes the figures to a directory and an HTML page about them.

    Creates the directory if needed.

    ``found``: figures of the engines. ``node_found``: figures of the node. ``blocks_found``:
    figures of real blocks. ``other_found``: name and figures of a case file from another project.
    ``trend``: times and values of each measure. For missing arguments, the page uses the
    directory's older figures.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if other_found is not None:
        kept(folder / OTHER_FIGURES.format(other_found[0]), other_found[1])
    others = {
        file.stem.partition("-")[2]: kept(file, None)
        for file in sorted(folder.glob(OTHER_FIGURES.format("*")))
    }
    found = kept(folder / FIGURES, found)
    node_found = kept(folder / NODE_FIGURES, node_found)
    blocks_found = kept(folder / BLOCK_FIGURES, blocks_found)
    trend = kept(folder / TREND, trend)
    (folder / "index.html").write_text(page(found, node_found, blocks_found, others, trend))


def kept(file: Path, found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Stores new figures in a file and returns them.

    Without new figures, returns the stored ones.
    """
    if found is not None:
        file.write_text(json.dumps(found, indent=1) + "\n")
        return found
    return dict(json.loads(file.read_text())) if file.exists() else None


def page(
    found: dict[str, Any] | None,
    node_found: dict[str, Any] | None = None,
    blocks_found: dict[str, Any] | None = None,
    others: Mapping[str, dict[str, Any] | None] = MappingProxyType({}),
    trend: dict[str, Any] | None = None,
) -> str:
    """Returns the whole page. ``others``: figures by name of case files from other projects."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>fastevm: measurements</title>",
        f"<style>{STYLE}</style><h1>fastevm: measurements</h1>",
    ]
    if found is not None:
        parts += engines(found)
    for name, other in others.items():
        if other is not None:
            parts += [f"<h2>Cases of {escape(name)}</h2>", origin(other), lead(other)]
            parts += [cases(other), listed(other["notes"])]
    if node_found is not None:
        parts += node_sections.sections(node_found, table)
        parts += ["<h2>Aims of the node</h2>", aims(node_found["aims"])]
    if blocks_found is not None:
        parts += real_blocks(blocks_found["blocks"])
    if trend is not None:
        parts += ["<h2>Over time</h2>", *map(course, trend.items())]
    return "\n".join(parts) + "\n"


def course(measured: tuple[str, list[tuple[str, float]]]) -> str:
    """Returns a table of a measure in each run. With several runs, adds a line chart."""
    name, runs = measured
    text = table(("run", name), runs)
    if len(runs) > 1:
        text += lines(f"{name}, by run", range(1, len(runs) + 1), {name: [v for _, v in runs]})
    return text


def real_blocks(found: list[dict[str, Any]]) -> list[str]:
    """Returns the sections on real blocks, from the figures of `fastevm.bench.blocks.Timed`."""

    def speeds(seconds: Callable[[dict[str, Any]], float]) -> list[tuple[str, float]]:
        return [(str(item["number"]), item["gas"] / seconds(item) / 1e6) for item in found]

    return [
        "<h2>Real blocks</h2>",
        bars("Mgas/s by block, senders known", speeds(lambda item: item["execution"])),
        bars(
            "Mgas/s by block, senders recovered on one thread",
            speeds(lambda item: item["execution"] + item["senders"]),
        ),
    ]


def engines(found: dict[str, Any]) -> list[str]:
    """Returns the sections on the engine."""
    parts = [
        origin(found),
        "<h2>Aims</h2>",
        aims(found["aims"]),
        "<h2>Groups</h2>",
        groups(found),
        "<h2>Ahead and behind</h2>",
        lead(found),
        "<h2>Cases</h2>",
        cases(found),
    ]
    if found.get("measures"):
        parts += measures(found["measures"])
    return [*parts, "<h2>Notes</h2>", listed(found["notes"])]


def origin(found: dict[str, Any]) -> str:
    """Returns notes on date, machine, versions and omitted engines."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    machine = found["machine"]
    missing = "; ".join(f"{name}: {reason}" for name, reason in found["missing"].items())
    lines_ = [
        f"{found['time']}: {machine['processor']}, {machine['cores']} cores, load "
        f"{machine['load_before'][0]}. {machine['system']}.",
        f"{versions}. {found['clock']}.",
        f"Left out: {missing}." if missing else "",
        "Engines that ran a shorter form of the loops, scaled by gas: "
        + ", ".join(found["scaled"]) + "." if found["scaled"] else "",
    ]  # fmt: skip
    return "".join(f"<p class=note>{escape(line)}</p>" for line in lines_ if line)


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Returns an HTML table. Cells are HTML text or numbers."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{shown(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"


def shown(cell: object) -> str:
    """Formats a number with four significant digits, and any other value as text."""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return escape(str(cell))


def verdict(row: dict[str, Any]) -> str:
    """Returns whether an aim was met, as text."""
    return "met" if row["met"] else "MISSED"


def aims(rows: list[dict[str, Any]]) -> str:
    """Returns the table of aims. Missed aims are marked."""
    if not rows:
        return "<p class=note>None of the cases that the aims speak of was run.</p>"
    text = table(
        ("aim", "at most", "found", "unit", ""),
        (
            (
                row["name"],
                row["limit"],
                row["value"],
                row["unit"],
                "met" if row["met"] else "MISSED",
            )
            for row in rows
        ),
    )
    return text.replace("<td>MISSED</td>", "<td class=missed>missed</td>")


def peers_of(found: dict[str, Any]) -> list[str]:
    return [name for name in found["versions"] if name not in ("python", "fastevm")]


def groups(found: dict[str, Any]) -> str:
    """Returns ratios by group: a table, and bars for each peer."""
    peers = peers_of(found)
    means: dict[str, dict[str, float]] = found["geomean"]
    text = table(
        ("group", "cases", *(f"{peer} / fastevm" for peer in peers)),
        (
            (group, len(found["groups"][group]), *(by_peer.get(peer, "") for peer in peers))
            for group, by_peer in means.items()
        ),
    )
    for peer in peers:
        rows = [(group, by_peer[peer]) for group, by_peer in means.items() if peer in by_peer]
        text += bars(f"time of {peer} by time of fastevm", rows)
    return text


def shares(found: dict[str, Any], peer: str) -> dict[str, float]:
    """Returns case -> fastevm's time divided by the peer's, largest first."""
    shares_ = {
        name: by_engine["fastevm"] / by_engine[peer]
        for name, by_engine in found["cases"].items()
        if by_engine.get(peer) and by_engine.get("fastevm")
    }
    return dict(sorted(shares_.items(), key=lambda item: -item[1]))


def lead(found: dict[str, Any]) -> str:
    """Returns how often fastevm is faster than each peer, and the slower cases."""
    by_peer = {peer: shares(found, peer) for peer in peers_of(found)}
    by_peer = {peer: found_ for peer, found_ in by_peer.items() if found_}
    text = table(
        ("peer", "cases", "ahead", "ahead, %", "fastevm's time / the peer's, geometric mean"),
        (
            (
                peer,
                len(ratios),
                ahead := sum(ratio < 1 for ratio in ratios.values()),
                100 * ahead / len(ratios),
                geomean(ratios.values()) or "",
            )
            for peer, ratios in by_peer.items()
        ),
    )
    for peer, ratios in by_peer.items():
        behind = [(name, ratio) for name, ratio in ratios.items() if ratio >= 1]
        if behind:
            text += table((f"behind {peer}", f"fastevm's time / {peer}'s"), behind)
    return text


def spread_text(rounds: Sequence[float], median: float) -> str:
    """Returns half of the range of the rounds, in percent of the median."""
    return f"±{50 * (rounds[-1] - rounds[0]) / median:.0f} %" if median else ""


def cases(found: dict[str, Any]) -> str:
    """Returns times by case with their spread, and bars of the ratios to the first peer."""
    engines = ["fastevm", *peers_of(found)]
    figures: dict[str, dict[str, float]] = found["cases"]
    spreads: dict[str, dict[str, list[float]]] = found["spread"]

    def cells(name: str, by_engine: dict[str, float]) -> Iterator[object]:
        for engine in engines:
            time = by_engine.get(engine)
            yield "" if time is None else time
            rounds = spreads.get(name, {}).get(engine)
            yield "" if time is None or rounds is None else spread_text(rounds, time)

    text = table(
        ("case", *(head for engine in engines for head in (f"{engine}, us", ""))),
        ((name, *cells(name, by_engine)) for name, by_engine in figures.items()),
    )
    for peer in engines[1:2] if len(figures) <= MOST_BARS else ():
        rows = [
            (name, by_engine[peer] / by_engine["fastevm"])
            for name, by_engine in figures.items()
            if peer in by_engine
        ]
        text += bars(f"time of {peer} by time of fastevm", rows)
    return text


def measures(found: dict[str, Any]) -> list[str]:
    """Returns the section with the measurements that have no case file."""
    growth = found["growth"]
    threads = found["threads"]
    sizes = [math.log10(row["slots"]) for row in growth]
    series = ("cold_read_ns", "write_ns", "root_ns_per_node")
    return [
        "<h2>The border to Python</h2>",
        table(("what", "us"), found["border"].items()),
        "<h2>A block of a thousand token transfers</h2>",
        table(("part", "ms"), found["blocks"].items()),
        "<h2>Growth with the state</h2>",
        table(growth[0], (row.values() for row in growth)),
        lines("ns over log10 of slots", sizes, {n: [row[n] for row in growth] for n in series}),
        "<h2>Threads</h2>",
        table(threads[0], (row.values() for row in threads)),
        bars("work done by so many threads", [(str(r["threads"]), r["speedup"]) for r in threads]),
    ]


def listed(notes: list[str]) -> str:
    """Returns notes as an HTML list."""
    return "<ul class=note>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"
