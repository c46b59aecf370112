"""``fastevm stateless verify``: verifies a block from a file or a node using only its witness."""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastevm.chain.config import ChainConfig
from fastevm.chain.named import CHAIN_HELP, choice, registry
from fastevm.chain.stateless import Witness, WitnessError, verify
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.types import Block
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.primitives.json_file import read_json
from fastevm.errors import FastevmError, error_text
from fastevm.rpc_client.blocking import JsonRpcClient

HTTP_SECONDS: Final = 120.0  # seconds to wait for a witness, for which the node executes the block
MAX_FILE_BYTES: Final = 1 << 30
TAGS: Final = ("latest", "safe", "finalized", "earliest")


class Input(NamedTuple):
    """The input as JSON: ``chainId``, ``block`` (RLP) and ``witness``."""

    chain_id: int
    block: Block
    witness: Witness

    @classmethod
    def from_json(cls, found: Any) -> "Input":
        """Reads a decoded file. Raises ValueError, which names the invalid member."""
        if not isinstance(found, Mapping):
            raise ValueError("expected an object with chainId, block and witness")
        if missing := [name for name in ("chainId", "block", "witness") if name not in found]:
            raise ValueError(f"{missing[0]}: missing")
        return cls(
            read_number(found["chainId"], "chainId"),
            decode_block(read_bytes(found["block"], "block")),
            Witness.from_json(found["witness"]),
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommand ``verify`` and its options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    item = actions.add_parser("verify", help="execute a block on its witness and compare all roots")
    item.add_argument(
        "file", nargs="?", type=Path, help="JSON with chainId, block (RLP) and witness"
    )
    item.add_argument("--url", help="URL of a node with debug_executionWitness")
    item.add_argument("--block", default="latest", help="number, hash or tag (%(default)s)")
    item.add_argument("--save", type=Path, metavar="FILE", help="save the answer of the node")
    item.add_argument("--chain", metavar="NAME", help="default: by chain id; " + CHAIN_HELP)
    item.add_argument("--genesis", type=Path, metavar="FILE", help="genesis file of the chain")


def run(arguments: argparse.Namespace) -> int:
    """Verifies and prints. Returns 0 if the block is valid, 1 if not, 2 if the input is invalid."""
    if (arguments.file is None) == (arguments.url is None):
        print("fastevm stateless: missing input: pass a file or --url", file=sys.stderr)
        return 2
    try:
        found = fetched(arguments) if arguments.url else read_file(arguments.file)
        given = Input.from_json(found)
        chain = chain_of(arguments, given.chain_id)
        began = time.perf_counter()
        verified = verify(given.block, given.witness, chain)
    except (FastevmError, ValueError, OSError) as error:
        print(f"fastevm stateless: {error_text(error)}", file=sys.stderr)
        return 1
    milliseconds = 1e3 * (time.perf_counter() - began)
    print(f"block {given.block.number} 0x{given.block.hash.hex()} holds, {milliseconds:.0f} ms")
    print(f"state root    0x{verified.state_root.hex()}")
    print(f"receipts root 0x{verified.receipts_root.hex()}")
    print(f"{len(verified.receipts)} transactions, {verified.gas_used} gas")
    print(
        f"needed: {verified.nodes} nodes of {len(given.witness.state)}, "
        f"{verified.codes} codes of {len(given.witness.codes)}"
    )
    return 0


def read_file(path: Path) -> Any:
    """Returns the decoded file. Raises ValueError."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{path}: over {MAX_FILE_BYTES} bytes")
    try:
        return read_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: not a JSON file: {error}") from None


def fetched(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fetches the block and its witness from a node, in the format of a file."""
    client = JsonRpcClient(arguments.url, timeout=HTTP_SECONDS, compressed=True)
    block = block_named(arguments.block)
    raw = client.call("debug_getRawBlock", block)
    # Requested by hash, so that a reorganisation in between does not matter.
    block_hash = "0x" + decode_block(read_bytes(raw, "debug_getRawBlock")).hash.hex()
    try:
        witness = client.call("debug_executionWitnessByBlockHash", block_hash)
    except FastevmError:  # the node only accepts block numbers
        witness = client.call("debug_executionWitness", block)
    found = {"chainId": client.call("eth_chainId"), "block": raw, "witness": witness}
    if arguments.save:
        arguments.save.write_text(json.dumps(found) + "\n")
    return found


def block_named(text: str) -> str:
    """Converts a block name to a block parameter. Raises ValueError."""
    if text in TAGS or (text.startswith("0x") and len(text) == 66):
        return text
    try:
        return hex(int(text, 0))
    except ValueError:
        raise ValueError(f"--block: expected a number, hash or tag, found {text!r}") from None


def chain_of(arguments: argparse.Namespace, chain_id: int) -> ChainConfig:
    """Returns the chain by name or id. Raises ValueError."""
    if arguments.genesis is None:
        config = registry.find(arguments.chain or chain_id).config()
    else:
        chosen = choice.chosen_chain(arguments.chain, arguments.genesis)
        config = ChainConfig.from_genesis(chosen.genesis if chosen else {})
    if config.chain_id != chain_id:
        raise WitnessError(f"the block is of chain {chain_id}, not {config.chain_id}")
    return config
