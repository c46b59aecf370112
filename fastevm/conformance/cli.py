"""``fastevm conformance SUITE PATH...``: the official tests from the command line."""

import argparse
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from fastevm.conformance import (
    basic,
    blockchain,
    difficulty,
    precompile,
    rlp,
    rpc,
    state,
    transaction,
    trie,
    vm,
)
from fastevm.conformance.runner import Selection, Suite, Tally, run_suite, write_report
from fastevm.conformance.sources import SourceError, is_archive
from fastevm.errors import UnknownForkError
from fastevm.spec.activation import activations_named

SUITES: Final[Mapping[str, tuple[Suite, str]]] = {
    "state": (state.cases, "one transaction on a given state, in every fork"),
    "blockchain": (blockchain.cases, "blocks imported one by one on a genesis state"),
    "transaction": (transaction.cases, "encoded transactions, accepted or refused"),
    "trie": (trie.cases, "roots of tries"),
    "rlp": (rlp.cases, "the recursive length prefix, valid and not"),
    "difficulty": (difficulty.cases, "the difficulty of a block by its parent"),
    "basic": (basic.cases, "keys, signatures, genesis blocks, proof of work"),
    "vm": (vm.cases, "one message frame under Frontier rules"),
    "precompile": (precompile.cases, "input, output and gas of precompiled contracts"),
}

UNFINISHED: Final = "amsterdam"
"""Part of the names of archives whose fork is unfinished: they are mentioned, not run."""

ARCHIVES: Final = (
    ("blockchain", "blockchain"),
    ("state_tests", "state"),
    ("transaction_tests", "transaction"),
    ("vm_tests", "vm"),
    ("trie_tests", "trie"),
    ("rlp_tests", "rlp"),
    ("difficulty_tests", "difficulty"),
    ("basic_tests", "basic"),
    ("precompile_vectors", "precompile"),
)
"""Part of an archive's name, its suite."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands, one per suite, and `all` and `rpc`."""
    suites = parser.add_subparsers(dest="suite", metavar="SUITE", required=True)
    for name, (suite, purpose) in SUITES.items():
        one = suites.add_parser(name, help=purpose, description=f"Official tests: {purpose}.")
        one.add_argument("paths", nargs="+", metavar="PATH", help="file, folder or archive")
        add_options(one)
        one.set_defaults(run_suite=partial(run_one, suite))
    every = suites.add_parser("all", help="every archive of a folder, each by its suite")
    every.add_argument("directory", metavar="DIR", help="folder of archives")
    add_options(every)
    every.set_defaults(run_suite=run_all)
    node = suites.add_parser("rpc", help="recorded JSON-RPC requests against a running node")
    rpc.add_arguments(node)
    node.set_defaults(run_suite=rpc.run)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what all suites of files understand."""
    parser.add_argument("--fork", type=known_fork, help="only cases of this fork or transition")
    parser.add_argument("--filter", metavar="TEXT", help="only cases whose name contains this text")
    parser.add_argument(
        "--workers",
        type=worker_count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes (default: one per core, here %(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", help="write counts, failures and skips there")


def known_fork(name: str) -> str:
    """A fork's name as the tests write it, checked."""
    try:
        activations_named(name)
    except UnknownForkError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def worker_count(text: str) -> int:
    """A number of processes, at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the suite that was asked for.

    0 if every case passed, 1 if one failed, 2 if there was nothing to run or it could not be read.
    """
    try:
        return int(arguments.run_suite(arguments))
    except SourceError as error:
        print(f"fastevm conformance: {error}", file=sys.stderr)
        return 2


def run_one(suite: Suite, arguments: argparse.Namespace) -> int:
    """Run the files below some paths by one suite."""
    tally = run_suite(
        suite, arguments.paths, selection=selection_of(arguments), workers=arguments.workers
    )
    return finish(tally, arguments)


def run_all(arguments: argparse.Namespace) -> int:
    """Run each archive of a folder by the suite that its name tells."""
    folder, total = Path(arguments.directory), Tally()
    archives = [path for path in sorted(folder.glob("*")) if is_archive(path)]
    if not archives:
        raise SourceError(f"{folder}: no folder of archives")
    for path in archives:
        name, kind = path.name.split(".")[0], suite_of(path.name)
        if kind is None:
            why = "its fork is unfinished" if UNFINISHED in name else "no suite knows it"
            print(f"{name:<36} not run: {why}", flush=True)
            continue
        started = time.monotonic()
        tally = run_suite(
            SUITES[kind][0],
            [path],
            selection=selection_of(arguments),
            workers=arguments.workers,
        )
        seconds = time.monotonic() - started
        print(f"{name:<36} {tally.line()}, {seconds:.1f} s", flush=True)
        total.merge(tally)
    return finish(total, arguments)


def suite_of(archive: str) -> str | None:
    """The suite that runs an archive, by a part of its name; None if no suite does."""
    if UNFINISHED in archive:
        return None
    return next((suite for part, suite in ARCHIVES if part in archive), None)


def selection_of(arguments: argparse.Namespace) -> Selection:
    return Selection(fork=arguments.fork, filter=arguments.filter)


def finish(tally: Tally, arguments: argparse.Namespace) -> int:
    """Write the report, print the closing line; what the command exits with."""
    if arguments.json:
        write_report(tally, arguments.json)
    for case, reason in tally.skips.items():
        print(f"SKIPPED {case}: {reason}")
    if not tally.passed + tally.failed + tally.skipped:
        print("fastevm conformance: no case was selected", file=sys.stderr)
        return 2
    print(tally.line())
    return int(tally.failed > 0)
