"""Gas report of a test run, by contract and function."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from fastevm.integrations.chain_control import Chain

COLUMNS: Final = ("contract", "function", "calls", "min", "median", "mean", "max")
CREATION: Final = "(creation)"
PAYMENT: Final = "(payment)"
SELECTOR: Final = 10  # characters
Medians = dict[str, dict[str, int]]  # gas by contract and function


class GasReport:
    """Collects the gas used by transactions. `Chain.label` sets names of contracts."""

    def __init__(self) -> None:
        self.used: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def read(self, chain: Chain, first: int) -> None:
        """Counts the blocks of a chain from number ``first`` on."""
        request = chain.node.request
        for number in range(first, chain.height + 1):
            block = request("eth_getBlockByNumber", [hex(number), True])
            if not block["transactions"]:
                continue
            receipts = request("eth_getBlockReceipts", [hex(number)])
            for transaction, receipt in zip(block["transactions"], receipts, strict=True):
                self.used[named(chain, transaction, receipt)].append(int(receipt["gasUsed"], 16))

    def lines(self) -> list[str]:
        """Returns the table, with one line for each function.

        Empty if there were no transactions.
        """
        if not self.used:
            return []
        rows = [COLUMNS, *(
            (contract, function, *map(str, (
                len(used), min(used), round(median(used)), round(sum(used) / len(used)), max(used),
            )))
            for (contract, function), used in sorted(self.used.items())
        )]  # fmt: skip
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        return ["  ".join(aligned(row, widths)).rstrip() for row in rows]

    def medians(self) -> Medians:
        """Returns the median gas of each function, by contract and function, sorted."""
        found: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for (contract, function), used in sorted(self.used.items()):
            found[contract][function] = round(median(used))
        return dict(found)

    def save(self, path: Path) -> None:
        """Writes the medians to a JSON file."""
        path.write_text(json.dumps(self.medians(), indent=2) + "\n")

    def changes(self, before: Medians) -> list[str]:
        """Returns a line for each function whose median differs from the median in another run.

        Functions that only one of the runs used are not compared. So a run of some tests can be
        compared with a run of all tests.
        """
        return [
            f"{contract} {function}: {old:,} -> {now:,} gas ({now - old:+,})"
            for contract, functions in self.medians().items()
            for function, now in functions.items()
            if (old := before.get(contract, {}).get(function, now)) != now
        ]


def read_snapshot(path: Path) -> Medians:
    """Returns the medians in a file of `GasReport.save`.

    Raises ValueError if the file is not such a file, and OSError if it cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, int]])
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path} is not a gas snapshot: {error}") from None


def aligned(row: tuple[str, ...], widths: list[int]) -> list[str]:
    """Aligns the cells of a row: names to the left, numbers to the right."""
    return [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def named(
    chain: Chain, transaction: Mapping[str, Any], receipt: Mapping[str, Any]
) -> tuple[str, str]:
    """Returns the contract and the function of a transaction, by name if the name is known."""
    to = transaction["to"] or receipt["contractAddress"]
    name, functions = chain.labels.get(to.lower(), (to, {}))
    if transaction["to"] is None:
        return name, CREATION
    data = transaction["input"]
    if len(data) < SELECTOR:
        return name, PAYMENT
    return name, functions.get(data[:SELECTOR], data[:SELECTOR])
