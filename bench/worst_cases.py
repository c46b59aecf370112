"""Makes cases for ``fastevm bench`` from blocks that are slow by design.

    python -m fastevm.bench.worst_cases DIR CASES.json [--gas N]
    fastevm bench --cases CASES.json --peers pyrevm

DIR has blockchain tests of the compute suite of execution-specs (``tests/benchmark/compute``), as
filled with ``fill --gas-benchmark-values 30``. Each block is executed, with its gas and roots
checked, and a table lists the slowest blocks. From the last block of each test, the message call
with most gas becomes a case, with at most ``--gas``, because such programs use all gas and many of
them would take hours on slow engines. The expected outcome of a case is fastevm's. Exit status 1 if
a block differs from its expectations, 2 if there is no test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from fastevm.bench.engines.evms import call_for, outcome_of
from fastevm.bench.programs.cases import Case
from fastevm.chain.chain import Chain
from fastevm.cli.writing import alloc_json
from fastevm.conformance import blockchain
from fastevm.conformance.fields import accounts_of
from fastevm.conformance.pre_states import layer_of
from fastevm.conformance.sources import SourceError, test_files
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes

ENVIRONMENT: Final = {
    "fork": "osaka", "chain_id": 1, "number": 1_000, "timestamp": 1_000_000,
    "gas_limit": 10**12, "base_fee": 0, "gas_price": 0,
}  # fmt: skip
MOST_GAS: Final = 2_000_000  # per case, without --gas
ROUNDS: Final = 3  # the fastest round is shown
SHOWN: Final = 20  # blocks in the table

Json = dict[str, Any]


class WorstBlock(Struct, frozen=True):
    """The last block of a test: its gas, the seconds to import it, and its call as a case, if any.

    ``problem``: how the test differs from its expectations; empty if it does not.
    """

    name: str
    gas: int
    seconds: float
    case: Json | None
    problem: str = ""

    @property
    def speed(self) -> float:
        """Millions of gas per second."""
        return self.gas / self.seconds / 1e6


def tests(folder: Path) -> Iterator[tuple[str, Json]]:
    """Yields the tests below a folder, with names like ``precompile/blake2f::test[30M]``."""
    for _, content in test_files([folder]):
        for title, test in json.loads(content).items():
            if isinstance(test, dict) and "blocks" in test:
                path, _, function = title.partition("::")
                group = path.rpartition("compute/")[2].replace("test_", "").removesuffix(".py")
                yield f"{group}::{function.removeprefix('test_')}", test


def measured(name: str, test: Mapping[str, Any], most_gas: int) -> WorstBlock:
    """Imports the blocks of a test ``ROUNDS`` times. Returns the last block."""
    last = len(test["blocks"]) - 1
    problem, seconds, before = "", float("inf"), None
    for _ in range(ROUNDS):
        genesis = blockchain.genesis_of(test)
        layer = layer_of(accounts_of(test["pre"]))
        chain = Chain(blockchain.config_of(test), genesis, layer)
        for position, block in enumerate(test["blocks"]):
            before = chain.layer_of(chain.head.hash)
            start = time.thread_time()
            found = blockchain.import_block(chain, position, block)
            taken = time.thread_time() - start
            problem = problem or ("" if found is None else str(found))
            if position == last:
                seconds = min(seconds, taken)
    head = chain.head
    assert before is not None
    case = case_of(name, alloc_json(before), head.transactions, most_gas)
    return WorstBlock(name, head.header.gas_used, seconds, case, problem)


def case_of(
    name: str, pre: Json, transactions: tuple[Transaction, ...], most_gas: int
) -> Json | None:
    """Returns the call with most gas as a case, or None without calls."""
    calls = [(transaction, transaction.to) for transaction in transactions if transaction.to]
    if not calls:
        return None
    call, to = max(calls, key=lambda found: found[0].gas_limit)
    assert call.sender is not None  # set by the execution
    group = name.partition("/")[0]
    document = {
        "name": name,
        "group": group,
        "pre": pre,
        "caller": hex_bytes(call.sender),
        "to": hex_bytes(to),
        "calldata": hex_bytes(call.data),
        "gas": min(call.gas_limit, most_gas),
    }
    expected = outcome_of(call_for(Case(name, group, ENVIRONMENT, document))())
    return document | {
        "expected_gas_used": expected.gas_used,
        "expected_output": expected.output,
        "expected_success": expected.success,
    }


def table(blocks: list[WorstBlock]) -> str:
    """Formats the slowest blocks, and how many are slower than 100 million gas per second.

    Leaves out blocks without gas, because they have no speed.
    """
    rows = sorted((block for block in blocks if block.gas), key=lambda block: block.speed)
    lines = [f"{row.speed:8.1f} Mgas/s {row.seconds * 1e3:8.1f} ms  {row.name}" for row in rows]
    slow = sum(row.speed < 100 for row in rows)
    return "\n".join([*lines[:SHOWN], f"{len(rows)} blocks, {slow} below 100 Mgas/s"])


def main(arguments: list[str] | None = None) -> int:
    """Writes the cases and prints the table. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fastevm.bench.worst_cases", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, metavar="DIR", help="the filled tests")
    parser.add_argument("cases", type=Path, metavar="CASES.json", help="the file to write")
    parser.add_argument(
        "--gas",
        type=int,
        default=MOST_GAS,
        metavar="N",
        help="gas of a case (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    blocks = []
    try:
        for name, test in tests(options.folder):
            blocks.append(measured(name, test, options.gas))
            print(f"\r{len(blocks)} blocks", end="", file=sys.stderr, flush=True)
    except SourceError as error:
        print(f"worst_cases: {error}", file=sys.stderr)
    if not blocks:
        print(f"worst_cases: no blockchain tests in {options.folder}", file=sys.stderr)
        return 2
    print(file=sys.stderr)
    cases = [block.case for block in blocks if block.case is not None]
    options.cases.write_text(json.dumps({"env": ENVIRONMENT, "cases": cases}))
    print(table(blocks))
    wrong = [f"{block.name}: {block.problem}" for block in blocks if block.problem]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
