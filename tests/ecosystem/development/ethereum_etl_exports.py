"""Runs exports of ethereum-etl from block 0 of a node: ``ethereum_etl_exports.py URL KEY``."""

from __future__ import annotations

import csv
import inspect
import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.ecosystem.development.cases import case, tell

URL = sys.argv[1]
NOBODY = "0x00000000000000000000000000000000000000b0"
TRANSFER = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
# ^Emits a Transfer of 5 in the constructor, and deploys no code.
LOGS = f"60055f5260b05f7f{TRANSFER}60205fa3"
BLOCKS = 4
FOLDER = Path(tempfile.mkdtemp())


def ask(method: str, *params: Any) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    with urlopen(Request(URL, body, {"Content-Type": "application/json"})) as answer:
        return json.load(answer)["result"]


def prepare() -> None:
    """Mines blocks with a payment, a contract that emits a log, and another payment."""
    sender = ask("eth_accounts")[0]
    sent = ({"to": NOBODY, "value": "0x7"}, {"data": f"0x{LOGS}"}, {"to": NOBODY, "value": "0x9"})
    for transaction in sent:
        ask("evm_increaseTime", 10)
        tx_hash = ask("eth_sendTransaction", {"from": sender, "gas": "0x30d40", **transaction})
        while ask("eth_getTransactionReceipt", tx_hash) is None:
            pass
    ask("evm_increaseTime", 10)
    ask("evm_mine")


def run(command: str, *words: str) -> None:
    # ethereum-etl pins parsimonious 0.8, which needs this function. Python 3.11 removed it.
    inspect.getargspec = inspect.getfullargspec  # type: ignore[attr-defined]
    try:
        import_module("ethereumetl.cli").cli([command, *words])
    except SystemExit as ended:
        assert ended.code in (0, None), f"{command} ended with {ended.code}"


def rows(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / name).read_text()
    if name.endswith(".csv"):
        return list(csv.DictReader(text.splitlines()))
    return [json.loads(line) for line in text.splitlines()]


def path(name: str) -> str:
    return str(FOLDER / name)


RANGE = ("--start-block", "0", "--end-block", str(BLOCKS))


@case
def blocks_and_transactions_from_block_0() -> None:
    outputs = ("--blocks-output", path("blocks.csv"), "--transactions-output", path("txs.csv"))
    run("export_blocks_and_transactions", *RANGE, "-p", URL, *outputs)
    assert sorted(int(row["number"]) for row in rows("blocks.csv")) == list(range(BLOCKS + 1))
    assert len(rows("txs.csv")) == 3


@case
def receipts_and_logs() -> None:
    (FOLDER / "hashes.txt").write_text("\n".join(row["hash"] for row in rows("txs.csv")))
    outputs = ("--receipts-output", path("receipts.csv"), "--logs-output", path("logs.json"))
    run("export_receipts_and_logs", "-t", path("hashes.txt"), "-p", URL, *outputs)
    assert [row["status"] for row in rows("receipts.csv")] == ["1", "1", "1"]
    assert len(rows("logs.json")) == 1


@case
def token_transfers() -> None:
    run("export_token_transfers", *RANGE, "-p", URL, "--output", path("transfers.csv"))


@case
def traces_of_geth_from_block_0() -> None:
    run("export_geth_traces", *RANGE, "-p", URL, "--output", path("geth.json"))
    found = rows("geth.json")
    assert sorted(row["block_number"] for row in found) == list(range(BLOCKS + 1))
    run("extract_geth_traces", "--input", path("geth.json"), "--output", path("traces.csv"))
    assert len(rows("traces.csv")) == 3


@case
def traces_of_parity_from_block_0() -> None:
    run("export_traces", *RANGE, "-p", URL, "--output", path("parity.csv"))
    assert len([row for row in rows("parity.csv") if row["trace_type"] in ("call", "create")]) == 3


@case
def contracts_of_traces() -> None:
    run("extract_contracts", "--traces", path("parity.csv"), "--output", path("contracts.csv"))
    assert len(rows("contracts.csv")) <= 1


@case
def block_range_for_timestamps() -> None:
    blocks = [ask("eth_getBlockByNumber", hex(number), False) for number in (1, BLOCKS)]
    first, last = (str(int(block["timestamp"], 16)) for block in blocks)
    words = ("-s", first, "-e", last, "-p", URL, "--output", path("range.txt"))
    run("get_block_range_for_timestamps", *words)
    # ethereum-etl includes block 0, although the range begins at the timestamp of block 1.
    assert (FOLDER / "range.txt").read_text().strip() == f"0,{BLOCKS}"


if __name__ == "__main__":
    prepare()
    tell()
