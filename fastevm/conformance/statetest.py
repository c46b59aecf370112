"""``fastevm statetest FILE``: state tests one by one, with a trace of every step (EIP-3155)."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TextIO

import msgspec

from fastevm.conformance.cli import known_fork
from fastevm.conformance.runner import Selection
from fastevm.conformance.sources import SourceError, test_files
from fastevm.conformance.state import Played, StateTest, verdict
from fastevm.conformance.stepping import execute_recorded
from fastevm.evm import EVM, ExecutionResult
from fastevm.execution.transaction import Transaction
from fastevm.interpreter.tracer import StepTrace

Record = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `fastevm statetest`."""
    parser.add_argument("paths", nargs="+", metavar="FILE", help="file, folder or archive")
    parser.add_argument("--fork", type=known_fork, help="only entries of this fork")
    parser.add_argument("--filter", metavar="TEXT", help="only entries whose name contains this")
    parser.add_argument(
        "--trace", action="store_true", help="a line of JSON for every step, on standard error"
    )
    parser.add_argument("--memory", action="store_true", help="with --trace: the memory, too")


def run(arguments: argparse.Namespace) -> int:
    """Run the entries; what became of them goes to standard output as one JSON list.

    Each of the list says name, fork, stateRoot, pass (as the test expects), and an error where it
    did not pass. 0 if all passed, 1 if one did not, 2 if there is nothing to run.
    """
    selection = Selection(fork=arguments.fork, filter=arguments.filter)
    try:
        told = list(outcomes(arguments, selection, sys.stderr))
    except SourceError as error:
        print(f"fastevm statetest: {error}", file=sys.stderr)
        return 2
    if not told:
        print("fastevm statetest: no entry was selected", file=sys.stderr)
        return 2
    print(msgspec.json.format(msgspec.json.encode(told)).decode())
    return int(not all(entry["pass"] for entry in told))


def outcomes(
    arguments: argparse.Namespace, selection: Selection, log: TextIO
) -> Iterator[dict[str, Any]]:
    """Play every selected entry, its steps written to ``log``; what is to be said of each."""
    for file, content in test_files(arguments.paths):
        for title, fields in msgspec.json.decode(content).items():
            test = StateTest(fields)
            for fork, entries in fields["post"].items():
                for position, entry in enumerate(entries):
                    name = f"{title}[{fork}-{position}]"
                    if selection.takes(f"{file}::{name}", fork):
                        played = play(test, fork, entry, arguments, log)
                        yield {"name": name, "fork": fork, **told_of(entry, played)}


def play(
    test: StateTest,
    fork: str,
    entry: Mapping[str, Any],
    arguments: argparse.Namespace,
    log: TextIO,
) -> Played:
    """Play one entry, with its steps and a summary in ``log`` if they are asked for."""
    if not arguments.trace:
        return test.play(fork, entry)
    played = test.play(fork, entry, partial(execute_written, log, arguments.memory))
    result = played.result
    summary = {
        "stateRoot": f"0x{played.state.state_root().hex()}",
        "output": f"0x{result.output.hex() if result else ''}",
        "gasUsed": hex(result.gas_used if result else 0),
        "pass": result is not None and result.success,
        "fork": fork,
    }
    if played.rejection:
        summary["error"] = played.rejection
    print(msgspec.json.encode(summary).decode(), file=log, flush=True)
    return played


def execute_written(
    log: TextIO, memory: bool, evm: EVM, transaction: Transaction
) -> ExecutionResult:
    """Execute a transaction, a line for each of its steps."""
    trace = StepTrace(memory=memory, return_data=True)

    def write(records: list[dict[str, Any]]) -> None:
        log.writelines(f"{msgspec.json.encode(line_of(r)).decode()}\n" for r in records)

    return execute_recorded(evm, transaction, trace, write)


def line_of(step: Record) -> dict[str, Any]:
    """A step in the order and the types of EIP-3155."""
    line = {
        "pc": step["pc"],
        "op": step["op"],
        "gas": hex(step["gas"]),
        "gasCost": hex(step["gas_cost"]),
        "stack": [hex(word) for word in step["stack"]],
        "depth": step["depth"],
        "returnData": f"0x{step['return_data'].hex()}",
        "refund": hex(step["refund"]),
        "memSize": step["memory_size"],
        "opName": step["name"],
    }
    if step["error"]:
        line["error"] = step["error"]
    if "memory" in step:
        line["memory"] = f"0x{step['memory'].hex()}"
    return line


def told_of(entry: Mapping[str, Any], played: Played) -> dict[str, Any]:
    """Whether the entry passed, the root it came to, and why it did not pass."""
    told: dict[str, Any] = {"stateRoot": f"0x{played.state.state_root().hex()}"}
    mismatch = verdict(entry, played)
    told["pass"] = mismatch is None
    if mismatch is not None:
        told["error"] = f"expected {mismatch.expected}, found {mismatch.found}"
    return told
