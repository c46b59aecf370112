"""Appends the figures of a report to a CSV file and draws them over time.

    make bench
    python -m fastevm.bench.trend build/report trend.csv

Each run adds a row for each peer (geometric mean over all cases of fastevm's time divided by the
peer's) and for each aim with a figure. The report's page then shows their course on this processor.
A run that is already in the file is not added again. Exit status 2 if the report has no figures or
the file has another format.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fastevm.bench.report import page

COLUMNS: Final = ("time", "processor", "measure", "value")


class Row(Struct, frozen=True):
    """A figure of a run. ``time``: when the run was made (ISO 8601)."""

    time: str
    processor: str
    measure: str
    value: float


def rows_of(found: dict[str, Any]) -> list[Row]:
    """Returns the figures of one run of ``fastevm bench``."""
    time, processor = found["time"], found["machine"]["processor"]
    means: dict[str, float] = found["geomean"]["all"]
    measures = {f"all cases, of {peer}'s time": round(1 / mean, 4) for peer, mean in means.items()}
    measures |= {row["name"]: row["value"] for row in found["aims"]}
    return [Row(time, processor, measure, value) for measure, value in measures.items()]


def read(file: Path) -> list[Row]:
    """Returns the rows of a file; none if it is missing. Raises ValueError for another format."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        reader = csv.reader(lines)
        if tuple(next(reader, ())) != COLUMNS:
            raise ValueError(f"{file}: expected the columns {', '.join(COLUMNS)}")
        return [_row(file, cells) for cells in reader]


def _row(file: Path, cells: list[str]) -> Row:
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{file}: expected {len(COLUMNS)} cells in a row, found {len(cells)}")
    time, processor, measure, value = cells
    return Row(time, processor, measure, float(value))


def append(file: Path, new: list[Row]) -> list[Row]:
    """Adds the rows of a run, unless the file already has the run. Returns all rows of the file."""
    rows = read(file)
    if any((row.time, row.processor) == (new[0].time, new[0].processor) for row in rows):
        return rows
    is_new = not file.exists()
    with file.open("a", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerows((row.time, row.processor, row.measure, row.value) for row in new)
    return rows + new


def main(argv: list[str] | None = None) -> int:
    """Appends a run and writes the page again."""
    assert __doc__
    parser = argparse.ArgumentParser(
        prog="python -m fastevm.bench.trend", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("report", type=Path, metavar="DIR", help="folder of a report")
    parser.add_argument("file", type=Path, metavar="FILE", help="the CSV file; made if missing")
    options = parser.parse_args(argv)
    try:
        new = rows_of(json.loads((options.report / page.FIGURES).read_text()))
        rows = append(options.file, new) if new else read(options.file)
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"fastevm.bench.trend: {error}", file=sys.stderr)
        return 2
    shown = [row for row in rows if not new or row.processor == new[0].processor]
    trend: dict[str, list[tuple[str, float]]] = {}
    for row in shown:
        trend.setdefault(row.measure, []).append((row.time, row.value))
    page.write(options.report, trend=trend)
    print(f"{options.file}: {len(rows)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
