"""Runs test files in worker processes; prints failures immediately and a tally at the end."""

import json
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct, field, to_builtins

from fastevm.conformance.skips import DRAFTS, is_draft, skips_of, unfinished_fork
from fastevm.conformance.sources import test_files
from fastevm.core.primitives.safe_text import safe
from fastevm.core.spec.forks import fork_named
from fastevm.errors import FastevmError, UnknownForkError
from fastevm.rpc_client.large_json import decode

SHOWN_FAILURES = 20  # failures to print; the JSON report contains all
PROGRESS_SECONDS = 0.2
FILES_AHEAD = 3  # files queued per worker, so that no worker waits for the archive to be read


class WorkerError(FastevmError):
    """A worker process was killed, so the outcome of its file is unknown."""


class Failure(Struct, frozen=True):
    """A failed case, with expected and found values."""

    case: str
    expected: str
    found: str


class Tally(Struct):
    """Counts of cases, and the failures."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    skips: dict[str, str] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)  # reason -> cases that are not counted

    def add(self, case: str, outcome: "Outcome") -> None:
        """Counts a case. None means that the case passed."""
        if outcome is None:
            self.passed += 1
        elif isinstance(outcome, Apart):
            self.apart[outcome.reason] = self.apart.get(outcome.reason, 0) + 1
        elif isinstance(outcome, Skip):
            self.skipped += 1
            self.skips[case] = outcome.reason
        else:
            self.failed += 1
            self.failures.append(Failure(case, outcome.expected, outcome.found))

    def merge(self, other: "Tally") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures
        self.skips |= other.skips
        for reason, count in other.apart.items():
            self.apart[reason] = self.apart.get(reason, 0) + count

    def line(self) -> str:
        """The summary line, which tools parse."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Mismatch(Struct, frozen=True):
    """The expected and the found outcome of a case."""

    expected: str
    found: str


class Skip(Struct, frozen=True):
    """A case that is not run, and the reason."""

    reason: str


class Apart(Struct, frozen=True):
    """A case for rules that are not part of the protocol (yet). It is reported separately."""

    reason: str


Outcome = Mismatch | Skip | Apart | None


class Selection(Struct, frozen=True):
    """The cases to run, by fork and by a text in the name."""

    fork: str | None = None
    filter: str | None = None

    def takes(self, label: str, fork: str | None) -> bool:
        """Returns whether a case is selected; a case without a fork matches every fork."""
        if self.filter and self.filter not in label:
            return False
        return self.fork is None or fork is None or same_network(fork, self.fork)


@cache
def same_network(name: str, other: str) -> bool:
    """Returns whether two names mean the same fork or transition. Unknown names must be equal."""
    return _canonical(name) == _canonical(other)


def _canonical(name: str) -> str:
    try:
        return name.casefold() if "To" in name else fork_named(name).name
    except UnknownForkError:
        return name


# A suite yields the cases of a decoded file: name, fork (None = no fork) and a function.
Case = tuple[str, str | None, Callable[[], Outcome]]
Suite = Callable[[str, Any], Iterable[Case]]


def run_file(suite: Suite, selection: Selection, name: str, content: bytes) -> Tally:
    """Runs the selected cases of a file. An exception fails its case only."""
    tally, skips = Tally(), skips_of(name)
    try:
        decoded = decode(content)
        draft = is_draft(decoded)
        for case, fork, run in every_skipped(decoded) if "" in skips else suite(name, decoded):
            label = f"{name}::{case}"
            if selection.takes(label, fork):
                tally.add(label, excuse(skips, case, fork, draft) or _guarded(run))
    except Exception as error:
        tally.add(name, Mismatch("a readable test file", f"{type(error).__name__}: {error}"))
    return tally


def every_skipped(content: Any) -> Iterator[Case]:
    """Yields the cases of a skipped file, without a suite."""
    for case in content if isinstance(content, Mapping) else range(len(content)):
        yield str(case), None, lambda: None


def excuse(
    skips: Mapping[str, str], case: str, fork: str | None, draft: bool = False
) -> Skip | Apart | None:
    """Returns why a case is not run, or None if it runs. ``draft``: the file tests draft EIPs."""
    reason = skips.get(case) or skips.get("")
    if reason:
        return Skip(reason)
    _, network, why = DRAFTS
    if draft and fork is not None and network in fork:
        return Apart(why)
    unfinished = unfinished_fork(fork) if fork is not None else None
    return Apart(unfinished) if unfinished else None


def _guarded(run: Callable[[], Outcome]) -> Outcome:
    try:
        return run()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        location = f"{Path(where.filename).name}:{where.lineno}"
        return Mismatch("no exception", f"{type(error).__name__}: {error} ({location})")


_WORK: tuple[Suite, Selection] | None = None


def _begin_worker(suite: Suite, selection: Selection) -> None:
    global _WORK
    _WORK = (suite, selection)


def _work(item: tuple[str, bytes]) -> Tally:
    assert _WORK is not None
    return run_file(*_WORK, *item)


def tallies(
    suite: Suite, selection: Selection, files: Iterator[tuple[str, bytes]], workers: int
) -> Iterator[Tally]:
    """Yields a tally per file, in any order."""
    if workers <= 1:
        for name, content in files:
            yield run_file(suite, selection, name, content)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(workers, context, _begin_worker, (suite, selection))
    under_way: dict[Future[Tally], str] = {}
    try:
        with pool:
            for name, content in files:
                if len(under_way) >= workers * FILES_AHEAD:
                    yield from _finished(under_way)
                under_way[pool.submit(_work, (name, content))] = name
            while under_way:
                yield from _finished(under_way)
    except BrokenProcessPool:
        names = ", ".join(under_way.values())
        raise WorkerError(f"a worker process ended (out of memory?), running: {names}") from None


def _finished(under_way: dict[Future[Tally], str]) -> Iterator[Tally]:
    """Waits for the next result and yields it."""
    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        tally = future.result()
        del under_way[future]
        yield tally


def run_suite(
    suite: Suite,
    paths: Sequence[str | Path],
    *,
    selection: Selection | None = None,
    workers: int = 1,
    output: TextIO | None = None,
) -> Tally:
    """Runs all tests below the paths and prints failures immediately.

    Raises SourceError for invalid paths and WorkerError if a worker process is killed. ``output``:
    the stream to print to (default: standard output). Progress is only shown on a terminal.
    """
    output, total = output or sys.stdout, Tally()
    started, shown = time.monotonic(), 0.0
    for tally in tallies(suite, selection or Selection(), test_files(paths), workers):
        for failure in tally.failures[: max(0, SHOWN_FAILURES - total.failed)]:
            print_failure(failure, output)
        total.merge(tally)
        if output.isatty() and time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            print(f"\r{total.line()}, {shown - started:.0f} s", end="", file=output, flush=True)
    if output.isatty():
        print("\r\033[K", end="", file=output)
    return total


def print_failure(failure: Failure, output: TextIO) -> None:
    print(f"FAILED {safe(failure.case)}", file=output)
    print(f"  expected: {safe(failure.expected)}", file=output)
    print(f"  found:    {safe(failure.found)}", file=output, flush=True)


def write_report(tally: Tally, path: str) -> None:
    """Writes the tally as JSON."""
    Path(path).write_text(json.dumps(to_builtins(tally), indent=1) + "\n")
