"""Reads published data of OP-stack chains in the shared folder: vectors, blocks, feed messages."""

import gzip
import json
from functools import cache
from typing import Any

from fastevm.chain.genesis import genesis_state
from fastevm.core.spec.schedule import schedule_for
from tests.shared_data import SHARED

OP_STACK = SHARED / "op-stack"
HOLOCENE = schedule_for("holocene")


def hex_data(text: str) -> bytes:
    return bytes.fromhex(text[2:])


@cache
def vectors() -> list[dict[str, Any]]:
    """Returns all published and recomputed vectors. ``kind`` names the type of each vector."""
    return json.loads((OP_STACK / "vectors.json").read_text())["vectors"]


def vectors_of(kind: str) -> list[dict[str, Any]]:
    found = [vector for vector in vectors() if vector["kind"] == kind]
    assert found, f"no vectors of kind {kind}"
    return found


def input_of(vector: dict[str, Any]) -> bytes:
    """Returns the input bytes of a vector, which gives hex, a repeated byte, or ``i % 251``."""
    given = vector["input"]
    if isinstance(given, str):
        return hex_data(given)
    if "repeat" in given:
        return hex_data(given["repeat"]) * given["times"]
    return bytes(i % 251 for i in range(given["bytes i mod 251, i <"]))


@cache
def sepolia_blocks() -> dict[str, Any]:
    """Returns eight Holocene blocks of OP Sepolia, with the state that they read."""
    with gzip.open((OP_STACK / "op-sepolia-holocene-blocks.json.gz").required) as file:
        return json.load(file)


def pre_state(block: dict[str, Any]) -> Any:
    """Returns the accounts before the block in the format of a genesis file."""
    alloc, codes = {}, sepolia_blocks()["codes"]
    for address, fields in block["pre"].items():
        if fields is None:
            continue
        known = {name: fields[name] for name in ("nonce", "balance", "storage")}
        if fields["codeHash"] in codes:
            known["code"] = codes[fields["codeHash"]]
        alloc[address] = known
    return genesis_state(alloc)
