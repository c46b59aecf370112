"""Fills tests of execution-specs with several transition tools, and compares the fixtures.

    python -m tests.ecosystem.filling CLONE TESTS... [--tools NAMES] [--rounds N] [OPTIONS]

CLONE is a clone of execution-specs with the program ``.venv/bin/fill``, and TESTS are folders or
files in it. OPTIONS are passed to ``fill``. The tools alternate:

- ``plugin``: fastevm in the process of the filler
- ``program``: ``--evm-bin fastevm-evm``
- ``geth``: geth's ``evm`` (`python -m fastevm.bench.peers evm`). It rejects state tests of Prague
  and later without system contracts, so use ``-m blockchain_test``.
- ``specification``: the filler's default

The table has medians of wall and CPU seconds, and the fastest and the slowest round, of the filler
and of its calls to the tool. Exit status 1 if fixtures differ from those of the first tool, 2 if a
tool fails.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from fastevm.bench.peers.compiled import PROGRAMS, NotBuilt
from tests.ecosystem.fill_timing import FILE

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PLUGIN: Final = ("-p", "fastevm.cli.filler")
TOOLS: Final = ("plugin", "program", "geth", "specification")
FILL: Final = Path(".venv/bin/fill")  # path in the clone
HEAD: Final = "| tool | fixtures | wall s | CPU s | tool, wall s | tool, CPU s | differ |"
SHOWN_OUTPUT: Final = 2000  # characters that are shown of a failed run's output


class NotFilled(Exception):
    """Raised if a tool is missing or its run fails."""


class Filled(NamedTuple):
    """Fixture -> its hash; wall and CPU seconds of the run, then of the calls to the tool."""

    hashes: dict[str, str]
    seconds: tuple[float, float, float, float]


def options_of(tool: str, folder: Path) -> list[str]:
    """Returns the options with which ``fill`` uses a tool. Writes a start script to ``folder``."""
    if tool == "plugin":
        return [*PLUGIN]
    if tool == "specification":
        return []
    if tool == "geth":
        try:
            return ["--evm-bin", str(PROGRAMS["evm"].found())]
        except NotBuilt as error:
            raise NotFilled(str(error)) from error
    program = folder / "fastevm-evm"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from fastevm.__main__ import evm\nsys.exit(evm())\n"
    )
    program.chmod(0o755)
    return ["--evm-bin", str(program)]


def fill(clone: Path, tests: list[str], tool: str, *more: str) -> Filled:
    """Fills tests once. Raises NotFilled if a test fails."""
    with tempfile.TemporaryDirectory(prefix="fastevm-fill-") as name:
        folder, modules = Path(name), Path(name) / "modules"
        # The import path gets this folder instead of ROOT, whose package `tests` would hide the
        # clone's.
        modules.mkdir()
        for source in (ROOT / "fastevm", HERE / "fill_timing.py"):
            (modules / source.name).symlink_to(source)
        command = [
            str(clone / FILL), *options_of(tool, folder), "-p", "fill_timing",
            "--output", str(folder / "fixtures"), "--no-html", "-q", "-n", "0", *more, *tests,
        ]  # fmt: skip
        environment = os.environ | {"PYTHONPATH": str(modules), FILE: str(folder / "times")}
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            command, cwd=clone, env=environment, text=True, errors="replace", check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise NotFilled(f"{tool}: {done.stdout[-SHOWN_OUTPUT:]}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        in_tool = tuple(map(float, (folder / "times").read_text().split()))
        return Filled(hashes_below(folder / "fixtures"), (wall, cpu, in_tool[0], in_tool[1]))


def hashes_below(folder: Path) -> dict[str, str]:
    """Returns name -> hash of all fixtures below a folder."""
    found = {}
    for path in sorted(folder.rglob("*.json")):
        if ".meta" not in path.parts:
            for name, fixture in json.loads(path.read_text()).items():
                found[name] = fixture["_info"]["hash"]
    return found


def differing(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """Returns the names of fixtures that differ. Ignores fixtures that only one tool has."""
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def spread(seconds: list[float]) -> str:
    """Returns the fastest and the slowest round in brackets, or nothing for a single round."""
    return f" ({seconds[0]:.1f} to {seconds[-1]:.1f})" if len(seconds) > 1 else ""


def main(arguments: list[str] | None = None) -> int:
    """Fills and prints the table. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem.filling")
    parser.add_argument("clone", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--tools", default=",".join(TOOLS), help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=1)
    options, more = parser.parse_known_args(arguments)
    tools = options.tools.split(",")
    first: dict[str, str] = {}
    filled: dict[str, int] = {}
    seconds: dict[str, list[tuple[float, ...]]] = {tool: [] for tool in tools}
    differ: dict[str, list[str]] = {tool: [] for tool in tools}
    try:
        for _ in range(options.rounds):
            for tool in tools:
                found = fill(options.clone.resolve(), options.tests, tool, *more)
                first = first or found.hashes
                filled[tool] = len(found.hashes)
                seconds[tool].append(found.seconds)
                differ[tool] = differ[tool] or differing(first, found.hashes)
    except NotFilled as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{HEAD}\n|{'---|' * (HEAD.count('|') - 1)}")
    for tool in tools:
        columns = [sorted(column) for column in zip(*seconds[tool], strict=True)]
        shown = [f"{statistics.median(item):.1f}{spread(item)}" for item in columns]
        print(f"| {tool} | {filled[tool]} | {' | '.join(shown)} | {len(differ[tool])} |")
    wrong = [name for tool in tools for name in differ[tool]]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
