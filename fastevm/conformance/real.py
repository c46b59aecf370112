"""``fastevm conformance real DIR``: runs blocks, traces and first blocks of real networks."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.chain.config import ChainConfig
from fastevm.chain.genesis import genesis_block
from fastevm.conformance import real_blocks, real_traces
from fastevm.conformance.fields import bytes_of
from fastevm.conformance.real_sources import ARCHIVES, CHAINS, RECORDINGS, WITNESSES, cases_of
from fastevm.conformance.runner import Case, Outcome, Selection, Tally, print_failure, tallies
from fastevm.core.execution.block.block_decoding import item_size

Finish = Callable[[Tally, argparse.Namespace], int]


def run(arguments: argparse.Namespace, finish: Finish) -> int:
    """Runs the archives of the folders one after the other. Returns the exit code."""
    total = Tally()
    for folder in map(Path, arguments.paths):
        for archive in ARCHIVES:
            started = time.monotonic()
            tally = run_archive(
                folder, archive, Selection(filter=arguments.filter), workers=arguments.workers
            )
            apart = f", {sum(tally.apart.values())} not counted" if tally.apart else ""
            seconds = time.monotonic() - started
            print(f"{archive:<20} {tally.line()}{apart}, {seconds:.1f} s", flush=True)
            total.merge(tally)
    return finish(total, arguments)


def run_archive(
    folder: Path,
    archive: str,
    selection: Selection | None = None,
    *,
    workers: int = 1,
    most: int | None = None,
) -> Tally:
    """Runs the cases of the first ``most`` files of an archive; prints failures.

    Raises SourceError if the folder does not contain the archive.
    """
    total = Tally()
    files = islice(cases_of(folder, archive), most)
    for tally in tallies(cases, selection or Selection(), files, workers):
        for failure in tally.failures:
            print_failure(failure, sys.stdout)
        total.merge(tally)
    return total


def cases(name: str, content: Any) -> Iterable[Case]:
    """Returns the cases of a recorded file."""
    archive = name.partition("/")[0]
    if archive in WITNESSES:
        return [("every root", None, partial(real_blocks.verified, name, content))]
    if archive == RECORDINGS:
        return [(content["tracer"], None, partial(real_traces.recorded_transaction, content))]
    if archive == CHAINS:
        return chain_cases(content)
    block = partial(real_blocks.executed_on_accounts, name, content)
    found: list[Case] = [("gas, bloom, receipts", None, block)]
    if "calltrace" in content.get("extra", {}):
        found += real_traces.TracedBlock(name, content).cases()
    return found


def chain_cases(content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields the first blocks of a chain, imported with all checks except the seal."""
    config = ChainConfig.from_genesis(content["genesis"])
    chain = Chain(config, *genesis_block(content["genesis"], config))
    data, at, number = bytes_of(content["blocks"]), 0, 1
    while at < len(data):
        end = at + item_size(data, at, number)
        yield f"block {number}", None, partial(imported, chain, data[at:end])
        at, number = end, number + 1


def imported(chain: Chain, block: bytes) -> Outcome:
    """Imports a block. InvalidBlock describes the difference from its header."""
    chain.add(block)
    return None
