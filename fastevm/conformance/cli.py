"""``fastevm conformance SUITE PATH...``: runs the official tests."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from fastevm.conformance import real, rpc
from fastevm.conformance.kinds import EVERY, SUITES, only
from fastevm.conformance.pre_states import FORKED, forked
from fastevm.conformance.runner import Selection, Suite, Tally, WorkerError, run_suite, write_report
from fastevm.conformance.skips import UNFINISHED
from fastevm.conformance.sources import SourceError, is_archive
from fastevm.core.primitives.safe_text import safe
from fastevm.core.spec.activation import activations_named
from fastevm.errors import UnknownForkError, error_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands: one for each suite, and `all`, `real` and `rpc`."""
    suites = parser.add_subparsers(dest="suite", metavar="SUITE", required=True)
    for name, (_, purpose) in SUITES.items():
        item = suites.add_parser(name, help=purpose, description=f"Official tests: {purpose}.")
        item.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or archive")
        add_options(item)
        item.set_defaults(run_suite=partial(run_one, only(name)))
    every = suites.add_parser("all", help="tests of all kinds, each with its suite")
    every.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or archive")
    add_options(every)
    every.set_defaults(run_suite=run_all)
    recorded = suites.add_parser("real", help="blocks and traces of real networks, with readers")
    recorded.add_argument("paths", nargs="+", metavar="DIR", help="folder of archives and readers")
    add_options(recorded)
    recorded.set_defaults(run_suite=partial(real.run, finish=finish))
    node = suites.add_parser("rpc", help="recorded JSON-RPC requests against a running node")
    rpc.add_arguments(node)
    node.set_defaults(run_suite=rpc.run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options common to all suites of files."""
    parser.add_argument("--fork", type=known_fork, help="only cases of this fork or transition")
    parser.add_argument("--filter", metavar="TEXT", help="only cases whose name contains this text")
    parser.add_argument(
        "--workers",
        type=worker_count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes (default: one per core, here %(default)s)",
    )
    parser.add_argument(
        "--forked",
        choices=FORKED,
        help="; ".join(
            f"{where}: the state before each case is {what}" for where, what in FORKED.items()
        ),
    )
    parser.add_argument("--json", metavar="FILE", help="write counts, failures and skips to FILE")


def known_fork(name: str) -> str:
    """Checks and returns the name of a fork in the tests' spelling."""
    if name in UNFINISHED:
        raise argparse.ArgumentTypeError(f"tests {UNFINISHED[name]}, are not run")
    try:
        activations_named(name)
    except UnknownForkError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        pass  # a fork whose blob parameters only the tests contain
    return name


def worker_count(text: str) -> int:
    """Parses a number of processes, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: expected a number >= 1")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Runs the requested suite.

    Returns 0 if all cases passed, 1 if any failed, 2 if there was nothing to run or a file is
    invalid.
    """
    try:
        return int(arguments.run_suite(arguments))
    except (SourceError, WorkerError) as error:
        print(f"fastevm conformance: {error_text(error)}", file=sys.stderr)
        return 2


def run_one(suite: Suite, arguments: argparse.Namespace) -> int:
    """Runs the files below the paths with one suite."""
    if arguments.forked:
        suite = forked(arguments.forked, suite)
    tally = run_suite(
        suite, arguments.paths, selection=selection_of(arguments), workers=arguments.workers
    )
    return finish(tally, arguments)


def run_all(arguments: argparse.Namespace) -> int:
    """Runs files of all kinds. Runs the archives of a folder one after the other."""
    total = Tally()
    suite = forked(arguments.forked, EVERY) if arguments.forked else EVERY
    for path in parts(arguments.paths):
        started = time.monotonic()
        tally = run_suite(
            suite, [path], selection=selection_of(arguments), workers=arguments.workers
        )
        seconds = time.monotonic() - started
        apart = f", {sum(tally.apart.values())} not counted" if tally.apart else ""
        name = safe(path.name.split(".")[0])
        print(f"{name:<36} {tally.line()}{apart}, {seconds:.1f} s", flush=True)
        total.merge(tally)
    return finish(total, arguments)


def parts(paths: Sequence[str]) -> Iterator[Path]:
    """Yields the paths; a folder with archives is replaced by its archives."""
    for path in map(Path, paths):
        archives = [item for item in sorted(path.glob("*")) if is_archive(item)]
        yield from archives or [path]


def counted(tally: Tally) -> int:
    """Returns the number of cases that passed, failed or were skipped."""
    return tally.passed + tally.failed + tally.skipped


def selection_of(arguments: argparse.Namespace) -> Selection:
    return Selection(fork=arguments.fork, filter=arguments.filter)


def finish(tally: Tally, arguments: argparse.Namespace) -> int:
    """Writes the report, prints the summary line and returns the exit code."""
    if arguments.json:
        write_report(tally, arguments.json)
    for case, reason in tally.skips.items():
        print(f"SKIPPED {safe(case)}: {reason}")
    for reason, count in tally.apart.items():
        print(f"NOT COUNTED {count} cases: {reason}")
    if not counted(tally):
        print("fastevm conformance: no case was selected", file=sys.stderr)
        return 2
    print(tally.line())
    return int(tally.failed > 0)
