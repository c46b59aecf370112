"""Compares the instruction counts of a dozen programs with ``baseline.json``.

``python -m fastevm.bench.guard`` counts under callgrind. It fails if a program needs 5 % more
instructions than the baseline, or if reading a fetched slot of a fork needs 10 % more than reading
a slot in memory. ``--update`` writes a new baseline. Only the call from Python is counted, not
start-up and set-up. Counts depend a little on the random seed of the hash tables, so the minimum of
several processes is used.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import fastevm.evm.machine
from fastevm.bench.options import child_environment
from fastevm.bench.programs.loops import GUARDED

BASELINE = Path(__file__).parent / "baseline.json"
TOLERANCE = 1.05
# (program, reference) -> largest allowed ratio of their instruction counts.
RATIOS = {("slots of a fork", "slots"): 1.10}
WARM_UPS = 2  # calls of each program before the counted call
PROCESSES = 3
SECONDS = 300  # seconds, timeout of each process

# The C function of EVM.call, in which counting starts. Cython puts package names before the class
# and a number after it.
BORDER = re.compile(rb"__pyx_pw_\w+_3EVM_\d+call(?=\0)")
COMPILER = re.compile(rb"GCC: \([^)]*\) ([\d.]+)")


class Unavailable(Exception):
    """Instructions cannot be counted here. The message says why."""


def border() -> str:
    """Returns the name of the C function whose instructions count. Raises Unavailable."""
    if shutil.which("valgrind") is None:
        raise Unavailable("valgrind is not installed")
    found = BORDER.search(Path(fastevm.evm.machine.__file__).read_bytes())
    if found is None:
        raise Unavailable("the build has been stripped of its symbols")
    return found[0].decode()


def tools() -> dict[str, str]:
    """Returns the versions of the tools that influence instruction counts."""
    compiler = COMPILER.search(Path(fastevm.evm.machine.__file__).read_bytes())
    return {
        "machine": platform.machine(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "gcc": compiler[1].decode() if compiler else "unknown",
    }


def check_comparable() -> None:
    """Raises Unavailable if the baseline was made with other tools."""
    recorded, here = json.loads(BASELINE.read_text())["tools"], tools()
    if recorded != here:
        raise Unavailable(f"the baseline is of {recorded}, this is {here}")


def count() -> dict[str, int]:
    """Returns program -> instructions per call, for this build."""
    counts = [count_in_process() for _ in range(PROCESSES)]
    return {name: min(found[name] for found in counts) for name in counts[0]}


def count_in_process() -> dict[str, int]:
    """Returns the counts of one process."""
    symbol = border()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
            "--collect-atstart=no", f"--toggle-collect={symbol}", f"--dump-after={symbol}",
            "--error-exitcode=97", sys.executable, "-m", "fastevm.bench.guard", "--run",
        ]  # fmt: skip
        fixed = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        environment = child_environment() | fixed
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"callgrind failed: {done.stderr[-800:]}")
        return read_dumps(Path(folder))


def read_dumps(folder: Path) -> dict[str, int]:
    """Reads the last dump of each program. callgrind numbers its dumps in call order."""
    totals = {}
    for file in folder.glob("out.*"):
        found = re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.M)
        if found:
            totals[int(file.suffix[1:])] = int(found[1])
    calls = 1 + WARM_UPS
    if len(totals) < calls * len(GUARDED):
        raise RuntimeError(f"callgrind wrote {len(totals)} dumps only")
    return {p.name: totals[calls * (i + 1)] for i, p in enumerate(GUARDED)}


def run_programs() -> None:
    """Runs each program a few times under callgrind."""
    for program in GUARDED:
        call = program.call()
        for _ in range(WARM_UPS):
            call()


def compare(baseline: dict[str, int], found: dict[str, int]) -> list[str]:
    """Returns the programs whose counts exceed the tolerance or are missing in the baseline."""
    faults = []
    for name, instructions in found.items():
        if name not in baseline:
            faults.append(f"{name}: not in the baseline")
        elif instructions > baseline[name] * TOLERANCE:
            growth = instructions / baseline[name] - 1
            faults.append(f"{name}: {instructions} instructions, {growth:+.1%}")
    return faults + dearer(found)


def dearer(found: dict[str, int]) -> list[str]:
    """Returns the programs that need too many instructions compared with a reference program."""
    return [
        f"{name}: {found[name] / found[other]:.2f} times the instructions of {other}"
        for (name, other), most in RATIOS.items()
        if name in found and found[name] > found.get(other, 0) * most
    ]


def read_baseline() -> dict[str, int]:
    """Returns the recorded instruction counts."""
    document: dict[str, dict[str, int]] = json.loads(BASELINE.read_text())
    return document["instructions"]


def write_baseline(found: dict[str, int]) -> None:
    """Writes new counts, and the versions of the tools that counted."""
    BASELINE.write_text(json.dumps({"tools": tools(), "instructions": found}, indent=1) + "\n")


def main() -> int:
    """Counts and compares, or writes a new baseline."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.guard", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the counts as the baseline")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_programs()
        return 0
    try:
        if not arguments.update:
            check_comparable()
        found = count()
    except Unavailable as error:
        print(f"instruction counts skipped: {error}")
        return 0
    if arguments.update:
        write_baseline(found)
        return 0
    baseline = read_baseline()
    for name, instructions in found.items():
        change = f"{instructions / baseline[name] - 1:+8.2%}" if name in baseline else "new"
        print(f"{name:14}{instructions:12}{change:>10}")
    faults = compare(baseline, found)
    for fault in faults:
        print(f"grown: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
