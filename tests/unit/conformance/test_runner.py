"""Tests selection and counting of cases, and cases that crash a worker process."""

import io
import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fastevm.conformance import runner
from fastevm.conformance.runner import (
    Case,
    Mismatch,
    Selection,
    Skip,
    Tally,
    WorkerError,
    run_file,
    run_suite,
    same_network,
    write_report,
)
from fastevm.conformance.sources import SourceError


def outcome(kind: str) -> Mismatch | Skip | None:
    if kind == "crash":
        raise RuntimeError("out of cheese")
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"wrong": Mismatch("4", "5"), "skip": Skip("too slow")}.get(kind)


def suite(name: str, content: dict[str, Any]) -> Iterator[Case]:
    for title, (fork, kind) in content.items():
        yield title, fork, partial(outcome, kind)


CONTENT = {
    "good": ("London", "pass"),
    "bad": ("Merge", "wrong"),
    "lazy": (None, "skip"),
    "mad": ("Paris", "crash"),
}
FILE = json.dumps(CONTENT).encode()


def test_passes_failures_skips_and_crashes_are_counted() -> None:
    tally = run_file(suite, Selection(), "file.json", FILE)
    assert tally.line() == "1 passed, 2 failed, 1 skipped"
    wrong, crash = tally.failures
    assert (wrong.case, wrong.expected, wrong.found) == ("file.json::bad", "4", "5")
    assert crash.found.startswith("RuntimeError: out of cheese (test_runner.py:")
    assert tally.skips == {"file.json::lazy": "too slow"}


def test_a_file_that_is_no_test_is_one_failure() -> None:
    tally = run_file(suite, Selection(), "file.json", b'{"cut": ')
    assert tally.line() == "0 passed, 1 failed, 0 skipped"
    assert tally.failures[0].case == "file.json"


@pytest.mark.parametrize(
    ("selection", "line"),
    [
        (Selection(fork="paris"), "0 passed, 2 failed, 1 skipped"),
        (Selection(fork="London"), "1 passed, 0 failed, 1 skipped"),
        (Selection(filter="::ba"), "0 passed, 1 failed, 0 skipped"),
        (Selection(fork="Berlin", filter="good"), "0 passed, 0 failed, 0 skipped"),
    ],
)
def test_cases_are_selected_by_fork_and_text(selection: Selection, line: str) -> None:
    assert run_file(suite, selection, "file.json", FILE).line() == line


def test_networks_are_the_same_by_any_of_their_names() -> None:
    assert same_network("EIP158", "SpuriousDragon")
    assert same_network("BerlinToLondonAt5", "berlintolondonat5")
    assert same_network("Amsterdam", "Amsterdam")
    assert not same_network("Constantinople", "ConstantinopleFix")


def test_listed_cases_and_files_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    skips = {"file.json": {"mad": "crashes"}, "whole.json": {"": "no part of this"}}
    monkeypatch.setattr(runner, "skips_of", lambda name: skips.get(name, {}))
    tally = run_file(suite, Selection(), "file.json", FILE)
    assert tally.line() == "1 passed, 1 failed, 2 skipped"
    assert tally.skips["file.json::mad"] == "crashes"
    assert run_file(suite, Selection(), "whole.json", FILE).skipped == len(CONTENT)
    assert run_file(suite, Selection(), "whole.json", b"[1, 2]").skipped == 2


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("src/EIPTestsFiller/StateTests/a.json", "0 passed, 1 failed, 0 skipped"),
        ("src/GeneralStateTestsFiller/a.json", "0 passed, 2 failed, 0 skipped"),
    ],
)
def test_cases_of_prague_in_a_draft_are_set_apart(source: str, line: str) -> None:
    def of_two_forks(name: str, decoded: Any) -> Iterator[Case]:
        for fork in ("Prague", "Cancun"):
            yield fork, fork, lambda: Mismatch("4", "5")

    content = json.dumps({"case": {"_info": {"source": source}}}).encode()
    assert run_file(of_two_forks, Selection(), "file.json", content).line() == line


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_give_the_same_tally(workers: int, tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"{number}.json").write_bytes(FILE)
    output = io.StringIO()
    tally = run_suite(suite, [tmp_path], workers=workers, output=output)
    assert tally.line() == "8 passed, 16 failed, 8 skipped"
    assert "expected: 4\n  found:    5" in output.getvalue()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_path_ends_the_run(workers: int, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(FILE)
    with pytest.raises(SourceError, match="nowhere"):
        run_suite(suite, [tmp_path, tmp_path / "nowhere"], workers=workers, output=io.StringIO())


def test_a_killed_worker_ends_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "heavy.json").write_text('{"case": ["London", "kill"]}')
    with pytest.raises(WorkerError, match=r"out of memory\?\), running: heavy\.json"):
        run_suite(suite, [tmp_path], workers=2, output=io.StringIO())


def test_only_the_first_failures_are_printed_and_all_are_reported(tmp_path: Path) -> None:
    content = {str(number): (None, "wrong") for number in range(50)}
    path, report, output = tmp_path / "all.json", tmp_path / "report.json", io.StringIO()
    path.write_text(json.dumps(content))
    tally = run_suite(suite, [path], output=output)
    assert output.getvalue().count("FAILED") == runner.SHOWN_FAILURES
    write_report(tally, str(report))
    assert len(json.loads(report.read_text())["failures"]) == 50


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    (tmp_path / "one.json").write_text('{"good": ["London", "pass"]}')
    terminal, pipe = Terminal(), io.StringIO()
    run_suite(suite, [tmp_path], output=terminal)
    run_suite(suite, [tmp_path], output=pipe)
    assert "1 passed, 0 failed, 0 skipped" in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_tallies_add_up() -> None:
    total, part = Tally(), run_file(suite, Selection(), "file.json", FILE)
    total.merge(part)
    total.merge(part)
    assert total.line() == "2 passed, 4 failed, 2 skipped"
