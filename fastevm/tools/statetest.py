"""``fastevm statetest --json FILE``: state tests with the traces of go-ethereum."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TextIO

import msgspec

from fastevm.conformance import statetest
from fastevm.conformance.runner import Selection
from fastevm.conformance.sources import SourceError, test_files
from fastevm.conformance.state import StateTest
from fastevm.evm import EVM, ExecutionResult
from fastevm.execution.transaction import Transaction
from fastevm.tracing.runner import execute_traced
from fastevm.tracing.steps import LineLogger

Entry = tuple[str, str, StateTest, Mapping[str, Any]]  # name, fork, test, expectation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `fastevm statetest`."""
    statetest.add_arguments(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="trace in the lines of go-ethereum's evm, for differential fuzzers",
    )
    parser.add_argument("--nostack", action="store_true", help="with --json: no stack")
    parser.add_argument("--returndata", action="store_true", help="with --json: return data, too")


def run(arguments: argparse.Namespace) -> int:
    """Run the entries; results go to standard output as one JSON list, traces to standard error.

    With ``--json`` each entry is told as go-ethereum does: a line per step, a line with output and
    gasUsed of the top frame, a line with the stateRoot. 0 if all passed, 1 if one did not, 2 if
    there is nothing to run.
    """
    if not arguments.json:
        return statetest.run(arguments)
    try:
        told = [played(entry, arguments, sys.stderr) for entry in entries(arguments)]
    except SourceError as error:
        print(f"fastevm statetest: {error}", file=sys.stderr)
        return 2
    if not told:
        print("fastevm statetest: no entry was selected", file=sys.stderr)
        return 2
    print(json.dumps(told, indent=2))
    return int(not all(result["pass"] for result in told))


def entries(arguments: argparse.Namespace) -> Iterator[Entry]:
    """Every selected entry of the files."""
    selection = Selection(fork=arguments.fork, filter=arguments.filter)
    for file, content in test_files(arguments.paths):
        for title, fields in msgspec.json.decode(content).items():
            test = StateTest(fields)
            for fork, expectations in fields["post"].items():
                for position, expected in enumerate(expectations):
                    name = f"{title}[{fork}-{position}]"
                    if selection.takes(f"{file}::{name}", fork):
                        yield name, fork, test, expected


def played(entry: Entry, arguments: argparse.Namespace, log: TextIO) -> dict[str, Any]:
    """Run one entry, its trace written to ``log``; its result."""
    name, fork, test, expected = entry
    options = {
        "stack": not arguments.nostack,
        "memory": arguments.memory,
        "return_data": arguments.returndata,
    }
    outcome = test.play(fork, expected, partial(execute_logged, log, options))
    result = {"name": name, "fork": fork, **statetest.told_of(expected, outcome)}
    print(json.dumps({"stateRoot": result["stateRoot"]}), file=log, flush=True)
    return result


def execute_logged(
    log: TextIO, options: Mapping[str, bool], evm: EVM, transaction: Transaction
) -> ExecutionResult:
    """Execute a transaction, a line for each of its steps and one for its end."""
    observer = LineLogger(log, **options)
    result = execute_traced(evm, transaction, observer)
    observer.flush()
    return result
