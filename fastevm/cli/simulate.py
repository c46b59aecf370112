"""``fastevm simulate``: runs a payload on a node, a capsule or a chain in files.

A capsule is a file with a payload and all state values that the payload reads.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final, cast

from fastevm.chain.named import CHAIN_HELP, chosen_chain
from fastevm.core.primitives.json_file import read_json
from fastevm.core.primitives.replace import replace
from fastevm.errors import FastevmError, error_text
from fastevm.node import genesis_node
from fastevm.rpc_client.blocking import call_once
from fastevm.rpc_client.messages import RpcRefusal
from fastevm.rpc_types.simulate_request import payload_from
from fastevm.simulate import (
    DEFAULT_GAS_CAP,
    DEFAULT_TIMEOUT,
    ErrorForm,
    Plan,
    SimulateOptions,
    StateView,
    make_capsule,
    open_capsule,
    simulate_text,
)

HTTP_SECONDS: Final = 60.0
GETH_SPACING: Final = 12  # seconds between simulated blocks in geth
# options that select the state; exactly one is required
STATES: Final = ("url", "capsule", "genesis", "chain")
WIDTH: Final = 24  # characters of output and errors in the table
HEADINGS: Final = ("block", "call", "status", "gas", "logs", "output or error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``fastevm simulate``."""
    parser.add_argument(
        "payload", nargs="?", help="file with the payload, - for standard input; a capsule has one"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="URL of the node to use")
    where.add_argument("--capsule", type=Path, metavar="FILE", help="run on a saved capsule")
    where.add_argument(
        "--genesis", type=Path, metavar="FILE", help="genesis file of a chain to run on"
    )
    where.add_argument("--chain", metavar="NAME", help="run on " + CHAIN_HELP)
    parser.add_argument("--import", type=Path, metavar="FILE", dest="import_file",
                        help="RLP blocks of the chain")  # fmt: skip
    parser.add_argument("--block", default="latest", help="block to simulate on (%(default)s)")
    parser.add_argument("--dialect", choices=("geth", "preconf"), default="geth",
                        help="client whose answers to imitate (%(default)s)")  # fmt: skip
    parser.add_argument("--table", action="store_true", help="print a table instead of JSON")
    parser.add_argument("--save-capsule", type=Path, metavar="FILE",
                        help="save all values that are read, to repeat the run")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Simulates and prints. Returns 1 for an invalid payload or state, 2 for a missing one."""
    if all(getattr(arguments, name) is None for name in STATES):
        return missing("state: pass --url, --capsule, --genesis or --chain")
    if arguments.payload is None and arguments.capsule is None:
        return missing("payload: pass a file, or - for standard input")
    try:
        blocks = simulated(arguments)
    except (FastevmError, ValueError, OSError) as error:
        print(f"fastevm simulate: {error_text(error)}", file=sys.stderr)
        return 1
    print(table(blocks) if arguments.table else json.dumps(blocks, indent=2))
    return 0


def missing(what: str) -> int:
    """Prints what is missing on the command line. Returns the exit code for wrong usage."""
    print(f"fastevm simulate: missing {what}", file=sys.stderr)
    return 2


def simulated(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Returns the simulated blocks as JSON values."""
    if arguments.url is not None:
        return asked(arguments.url, read_payload(arguments), arguments.block)
    if arguments.capsule is not None:
        view, payload, options = open_capsule(arguments.capsule.read_bytes())
        if arguments.payload is not None:
            payload = read_payload(arguments)
    else:
        view, payload = chain_view(arguments), read_payload(arguments)
        options = options_for(view, arguments.dialect)
    if arguments.save_capsule is not None:
        arguments.save_capsule.write_bytes(make_capsule(view, payload, options)[0])
        # prints zero state roots, as a run of the capsule does
        options = replace(options, zero_state_root=True)
    form = ErrorForm(as_text=arguments.dialect == "preconf")
    text = simulate_text(view, Plan.of(payload_from(payload)), options, form)
    return cast(list[dict[str, Any]], json.loads(text))


def read_payload(arguments: argparse.Namespace) -> Any:
    """Reads the payload from its file. Raises ValueError if it is empty or not JSON."""
    is_stdin = arguments.payload == "-"
    name = "standard input" if is_stdin else arguments.payload
    content = sys.stdin.read().encode() if is_stdin else Path(arguments.payload).read_bytes()
    if not content.strip():
        raise ValueError(f"payload: {name} is empty, expected a JSON object")
    try:
        return read_json(content)
    except ValueError as error:
        raise ValueError(f"payload: {name} is not JSON: {error}") from None


def asked(url: str, payload: Any, block: str) -> list[dict[str, Any]]:
    """Calls eth_simulateV1 of a node. Returns the simulated blocks."""
    try:
        answer = call_once(url, "eth_simulateV1", payload, block, timeout=HTTP_SECONDS)
    except RpcRefusal as error:
        raise ValueError(f"{error.message} ({error.code})") from None
    return cast(list[dict[str, Any]], answer)


def chain_view(arguments: argparse.Namespace) -> StateView:
    """Returns a view of the selected block of a chain in files."""
    chosen = chosen_chain(arguments.chain, arguments.genesis)
    assert chosen is not None
    chain = genesis_node(chosen.genesis, genesis_hash=chosen.genesis_hash).chain
    if arguments.import_file is not None:
        chain.import_rlp(arguments.import_file.read_bytes())
    block = chain.head
    if arguments.block not in ("latest", "pending"):
        found = chain.block_by_number(int(arguments.block, 0))
        if found is None:
            raise ValueError(f"there is no block {arguments.block}")
        block = found
    return StateView(
        header=block.header,
        block_hash=block.hash,
        layer=chain.layer_of(block.hash),
        ancestors=tuple(chain.ancestors(block.hash))[1:],
        schedule=chain.schedule_of(block.hash),
        config=chain.config,
    )


def options_for(view: StateView, dialect: str) -> SimulateOptions:
    """Returns the options determined by the dialect and the chain."""
    spacing = max(view.config.block_time_ms // 1000, 1)
    return SimulateOptions(
        zero_state_root=dialect == "preconf",
        block_spacing=GETH_SPACING if dialect == "geth" else spacing,
        gas_cap=DEFAULT_GAS_CAP,
        timeout=DEFAULT_TIMEOUT,
    )


def table(blocks: list[dict[str, Any]]) -> str:
    """Returns a table with one line for each call."""
    rows = [HEADINGS]
    for block in blocks:
        number = str(int(block["number"], 16))
        if not block["calls"]:
            rows.append((number, "-", "-", "-", "-", ""))
        for index, call in enumerate(block["calls"]):
            rows.append((number, str(index), *call_cells(call)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def call_cells(call: dict[str, Any]) -> tuple[str, str, str, str]:
    """Returns status, gas, number of logs, and output or error."""
    error = call.get("error")
    text = call["returnData"] if error is None else error
    if isinstance(error, dict):
        text = error["message"]
    if error is None and len(text) > WIDTH:
        text = f"{text[:WIDTH]}... ({len(text) // 2 - 1} bytes)"
    status = "ok" if call["status"] == "0x1" else "failed"
    return status, str(int(call["gasUsed"], 16)), str(len(call["logs"])), text
