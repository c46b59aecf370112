"""Tests that ``fastevm.bench.trend`` stores runs in a CSV file and draws them over time."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench import trend

Capture = pytest.CaptureFixture[str]


def figures(time: str, mean: float, processor: str = "A") -> dict[str, Any]:
    return {
        "time": time,
        "machine": {"processor": processor, "cores": 2, "system": "Linux", "load_before": [0.1]},
        "versions": {"python": "3.11", "fastevm": "1", "revm": "43"},
        "clock": "thread CPU time",
        "missing": {},
        "scaled": [],
        "notes": [],
        "geomean": {"all": {"revm": mean}},
        "groups": {"all": ["one"]},
        "aims": [
            {"name": "a simple opcode", "unit": "ns", "limit": 1.1, "value": 0.9, "met": True}
        ],
        "cases": {"one": {"fastevm": 1.0, "revm": mean}},
        "spread": {},
    }


def run(folder: Path, file: Path, found: dict[str, Any]) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "figures.json").write_text(json.dumps(found))
    assert trend.main([str(folder), str(file)]) == 0
    return (folder / "index.html").read_text()


def test_each_run_is_added_once_and_drawn(tmp_path: Path) -> None:
    report, file = tmp_path / "report", tmp_path / "trend.csv"
    assert "<svg" not in run(report, file, figures("2026-01-01", 2.0)).partition("Over time")[2]
    run(report, file, figures("2026-01-08", 4.0))
    text = run(report, file, figures("2026-01-08", 4.0)).partition("Over time")[2]
    assert "<td>2026-01-01</td><td>0.5</td>" in text
    assert "<td>2026-01-08</td><td>0.25</td>" in text
    assert text.count("<svg") == 2
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["time"], row["measure"], row["value"]) for row in rows] == [
        ("2026-01-01", "all cases, of revm's time", "0.5"),
        ("2026-01-01", "a simple opcode", "0.9"),
        ("2026-01-08", "all cases, of revm's time", "0.25"),
        ("2026-01-08", "a simple opcode", "0.9"),
    ]


def test_another_processor_is_kept_but_not_drawn(tmp_path: Path) -> None:
    report, file = tmp_path / "report", tmp_path / "trend.csv"
    run(report, file, figures("2026-01-01", 2.0, "B"))
    text = run(report, file, figures("2026-01-08", 4.0)).partition("Over time")[2]
    assert "2026-01-08" in text and "2026-01-01" not in text
    assert len(trend.read(file)) == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n", "expected the columns"),
        ("time,processor,measure,value\n1,2\n", "expected 4 cells"),
        ("time,processor,measure,value\n1,2,3,x\n", "'x'"),
    ],
)
def test_another_file_is_left_as_it_is(
    tmp_path: Path, capsys: Capture, content: str, words: str
) -> None:
    file = tmp_path / "trend.csv"
    file.write_text(content)
    (tmp_path / "figures.json").write_text(json.dumps(figures("2026-01-01", 2.0)))
    assert trend.main([str(tmp_path), str(file)]) == 2
    assert words in capsys.readouterr().err
    assert file.read_text() == content


def test_a_folder_without_a_report_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    assert trend.main([str(tmp_path), str(tmp_path / "trend.csv")]) == 2
    assert "figures.json" in capsys.readouterr().err
    assert not (tmp_path / "trend.csv").exists()
