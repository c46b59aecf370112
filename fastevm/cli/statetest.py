"""``fastevm statetest FILE``: runs state tests, with an optional trace of every step (EIP-3155)."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TextIO

from fastevm.conformance.cli import known_fork
from fastevm.conformance.runner import Selection
from fastevm.conformance.sources import SourceError, test_files
from fastevm.conformance.state import Execute, Played, StateTest, verdict
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.primitives.json_file import read_json
from fastevm.errors import FastevmError, error_text
from fastevm.evm.machine import EVM, ExecutionResult
from fastevm.tracing.runner import execute_traced
from fastevm.tracing.step_loggers import Eip3155Logger

NOTHING: Final = 2  # exit code if nothing was run

Entry = tuple[str, str, StateTest, Mapping[str, Any]]  # name, fork, test, expectation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `fastevm statetest`."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="FILE",
        help="file, folder or archive; without paths, reads paths from standard input",
    )
    parser.add_argument("--fork", type=known_fork, help="only entries of this fork")
    parser.add_argument("--filter", metavar="TEXT", help="only entries whose name contains this")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--trace",
        action="store_true",
        help="print a JSON line for every step and a summary to standard error (EIP-3155)",
    )
    form.add_argument(
        "--json", action="store_true", help="the same in the format of go-ethereum's evm"
    )
    parser.add_argument("--memory", action="store_true", help="include memory in traces")
    parser.add_argument("--nostack", action="store_true", help="no stack in traces")
    parser.add_argument(
        "--returndata", action="store_true", help="return data with --json (--trace has it always)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the entries and prints their outcomes to standard output as a JSON list.

    Each outcome has name, fork, stateRoot, pass (whether the result is as the test expects) and, if
    the entry did not pass, an error. Traces are written to standard error while an entry runs.
    Without paths, every line of standard input is a path. The list for a path is printed before the
    next line is read, because fuzzers keep the process running. Returns 0 if all passed, 1 if any
    failed, 2 if there was nothing to run or a file is invalid.
    """
    if arguments.paths:
        return run_paths(arguments.paths, arguments)
    names = (line.strip() for line in sys.stdin)
    worst = max((run_paths([name], arguments) for name in names if name), default=None)
    if worst is None:
        print("fastevm statetest: no path on standard input", file=sys.stderr)
        return NOTHING
    return worst


def run_paths(paths: Sequence[str], arguments: argparse.Namespace) -> int:
    """Runs the entries below the paths and prints the list."""
    try:
        outcomes = [outcome_of(entry, arguments, sys.stderr) for entry in entries(paths, arguments)]
    except SourceError as error:
        print(f"fastevm statetest: {error_text(error)}", file=sys.stderr)
        return NOTHING
    if not outcomes:
        print("fastevm statetest: no entry was selected", file=sys.stderr)
        return NOTHING
    print(json.dumps(outcomes, indent=2), flush=True)
    return int(not all(entry["pass"] for entry in outcomes))


def entries(paths: Sequence[str], arguments: argparse.Namespace) -> Iterator[Entry]:
    """Yields the selected entries. Raises SourceError for a file without state tests."""
    selection = Selection(fork=arguments.fork, filter=arguments.filter)
    for file, content in test_files(paths):
        for title, fields in state_tests(file, content).items():
            test = StateTest(fields)
            for fork, expectations in fields["post"].items():
                for position, expected in enumerate(expectations):
                    name = f"{title}[{fork}-{position}]"
                    if selection.takes(f"{file}::{name}", fork):
                        yield name, fork, test, expected


def state_tests(file: str, content: bytes) -> Mapping[str, Any]:
    """Parses a file. Returns its state tests by name."""
    try:
        tests = read_json(content)
    except ValueError as error:
        raise SourceError(f"{file}: not JSON: {error}") from None
    if not isinstance(tests, dict) or not all(
        isinstance(test, dict) and isinstance(test.get("post"), dict) for test in tests.values()
    ):
        raise SourceError(f"{file}: contains no state tests")
    return tests


def outcome_of(entry: Entry, arguments: argparse.Namespace, log: TextIO) -> dict[str, Any]:
    """Runs an entry and returns its outcome. Writes the trace to ``log`` if requested."""
    name, fork, test, expected = entry
    try:
        played = test.play(fork, expected, execution(arguments, log))
    except (FastevmError, LookupError, TypeError, ValueError) as error:
        fault = f"malformed test: {type(error).__name__}: {error}"
        return {"name": name, "fork": fork, "pass": False, "error": fault}
    root = hex_bytes(played.state.state_root())
    if arguments.trace:
        print(json.dumps(summary(fork, root, played)), file=log, flush=True)
    elif arguments.json:
        print(json.dumps({"stateRoot": root}), file=log, flush=True)
    mismatch = verdict(expected, played)
    outcome = {"name": name, "fork": fork, "stateRoot": root, "pass": mismatch is None}
    if mismatch is not None:
        outcome["error"] = f"expected {mismatch.expected}, found {mismatch.found}"
    return outcome


def execution(arguments: argparse.Namespace, log: TextIO) -> Execute:
    """Returns the function that executes transactions, with or without a step trace."""
    if not arguments.trace and not arguments.json:
        return EVM.execute
    options = {
        "standard": arguments.trace,
        "stack": not arguments.nostack,
        "memory": arguments.memory,
        "return_data": arguments.trace or arguments.returndata,
    }
    return partial(execute_logged, log, options)


def execute_logged(
    log: TextIO, options: Mapping[str, bool], evm: EVM, transaction: Transaction
) -> ExecutionResult:
    """Executes a transaction and writes a line for each step."""
    observer = Eip3155Logger(log, **options)
    try:
        return execute_traced(evm, transaction, observer)
    finally:
        observer.flush()


def summary(fork: str, root: str, played: Played) -> dict[str, Any]:
    """Returns the summary line of a trace (EIP-3155)."""
    result = played.result
    members = {
        "stateRoot": root,
        "output": hex_bytes(b"" if result is None else result.output),
        "gasUsed": quantity(0 if result is None else result.gas_used),
        "pass": result is not None and result.success,
        "fork": fork,
    }
    if played.rejection:
        members["error"] = played.rejection
    return members
