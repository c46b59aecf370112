"""``fastevm bench``: times programs on fastevm and on its peers, and writes the results."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fastevm.bench.engines import call_overhead, evms, state_growth, threads, token_block
from fastevm.bench.engines.timing import QUICK, THOROUGH, Runner
from fastevm.bench.node import suite
from fastevm.bench.node.load import LoadError
from fastevm.bench.options import DEFAULT_CASES, add_arguments
from fastevm.bench.programs import cases
from fastevm.bench.report import document, page
from fastevm.errors import FastevmError

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Measures.

    Returns 1 if a case gave wrong gas or output, and 2 if there is nothing to measure.
    """
    if arguments.node:
        return run_node(arguments)
    try:
        chosen = cases.load(arguments.cases, arguments.match)
    except (OSError, ValueError, KeyError) as error:
        print(f"fastevm bench: {error}", file=sys.stderr)
        return 2
    running, missing = evms.start(arguments.peers.split(","))
    for name, reason in missing.items():
        progress(f"{name} is left out: {reason}")
    try:
        effort = QUICK if arguments.quick else THOROUGH
        figures = Runner(running, effort, progress).measure(chosen)
    finally:
        for item in running:
            item.close()
    found = document.build(chosen, figures, running, missing, arguments.quick)
    is_ours = arguments.cases == DEFAULT_CASES
    if arguments.report is not None and not arguments.quick and is_ours:
        found["measures"] = measure_the_rest(arguments.large)
        transfers = found["measures"]["blocks"]
        transfers |= token_block.calls_alone(transfers, found["cases"])
        found["aims"] += call_overhead.aims(found["measures"]["border"])
    if arguments.report is not None:
        other = None if is_ours else (name_of(arguments.cases), found)
        page.write(arguments.report, found if is_ours else None, other_found=other)
    if arguments.json is not None:
        write_json(arguments.json, found)
    if arguments.json != Path("-"):
        print(document.table(found))
    for failure in figures.failures:
        print(f"fastevm bench: {failure}", file=sys.stderr)
    return 1 if figures.failures else 0


def name_of(file: Path) -> str:
    """Returns the file name without suffixes, as a name for the figures of a case file."""
    return file.name.partition(".")[0] or "cases"


def run_node(arguments: argparse.Namespace) -> int:
    """Measures the node against anvil. Returns 2 if the node cannot be started."""
    try:
        found = suite.measure(progress, arguments.quick)
    except (LoadError, FastevmError, OSError) as error:
        print(f"fastevm bench: {error}", file=sys.stderr)
        return 2
    if arguments.report is not None:
        page.write(arguments.report, node_found=found)
    if arguments.json is not None:
        write_json(arguments.json, found)
    if arguments.json != Path("-"):
        print(suite.table(found))
    return 0


def measure_the_rest(large: bool) -> dict[str, Any]:
    """Measures calls from Python, blocks, threads and the growth of the state."""
    progress("calls from Python, blocks, threads, growth of the state")
    return {
        "border": call_overhead.measure(),
        "blocks": token_block.measure(),
        "threads": threads.measure(),
        "growth": state_growth.measure(large),
    }


def write_json(target: Path, found: dict[str, object]) -> None:
    """Writes the figures to a file, or prints them if the path is a dash."""
    text = json.dumps(found, indent=1)
    if target == Path("-"):
        print(text)
    else:
        target.write_text(text + "\n")


def progress(text: str) -> None:
    """Prints the progress to standard error."""
    print(text, file=sys.stderr, flush=True)
