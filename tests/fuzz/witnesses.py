"""Mutates witnesses of real blocks. Each must be rejected with a message, and without a crash.

    python -m tests.fuzz.witnesses --count 10000

Only the nodes and codes that the block reads are mutated. Verification ignores all other nodes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from fastevm.chain.config import ChainConfig
from fastevm.chain.named import find
from fastevm.chain.stateless import Witness, WitnessError, verify
from fastevm.chain.stateless.verification import executed
from fastevm.chain.stateless.witness import ancestors_of
from fastevm.chain.stateless.witness_state import WitnessState
from fastevm.conformance.fields import bytes_of
from fastevm.conformance.real_sources import cases_of
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.types import Block
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidBlock
from tests.shared_data import REAL_BLOCKS

MOST_NODES = 900  # largest number of nodes in the witnesses that are mutated often
KINDS = ("bit", "removed", "swapped", "cut", "grown", "code", "header")


class Subject(NamedTuple):
    """A real block, with the part of its witness that the block reads."""

    name: str
    chain: ChainConfig
    block: Block
    witness: Witness


def subjects(most_nodes: int = MOST_NODES) -> Iterator[Subject]:
    """Yields the blocks whose witness is complete and has at most ``most_nodes`` nodes."""
    for name, content in cases_of(REAL_BLOCKS, "mainnet_witness"):
        fields = msgspec.json.decode(content)
        if fields["parent"] is None or len(fields["pre"]["nodes"]) > most_nodes:
            continue
        try:
            yield subject(name, fields)
        except WitnessError as error:
            print(f"{name} is not mutated: {error}")


def subject(name: str, fields: dict[str, Any]) -> Subject:
    """Returns a block with its witness. Raises WitnessError if a node is missing."""
    pre = fields["pre"]
    block = decode_block(bytes_of(fields["block"]))
    chain = find(fields["chain_id"]).config()
    header = bytes_of(fields["parent"])
    parent = ancestors_of(block.header.parent_hash, [header])[0]
    state = WitnessState(
        parent.state_root,
        map(bytes_of, pre["nodes"].values()),
        map(bytes_of, pre["codes"].values()),
        block_number=parent.number,
        block_hash=parent.hash,
    )
    executed(block, parent, state, chain, (parent.hash, parent.parent_hash))
    witness = Witness(
        tuple(state.nodes[node] for node in sorted(state.read_nodes)),
        tuple(state.codes[code] for code in sorted(state.read_codes)),
        (),
        (header,),
    )
    verify(block, witness, chain)
    return Subject(name, chain, block, witness)


def mutated(witness: Witness, kind: str, rng: random.Random) -> Witness:
    """Returns the witness with one changed item that the block reads."""
    member = {"code": "codes", "header": "headers"}.get(kind, "state")
    items = list(getattr(witness, member))
    at = rng.randrange(len(items))
    item = items[at]
    if kind in ("bit", "code", "header"):
        changed = bytearray(item)
        changed[rng.randrange(len(item))] ^= 1 << rng.randrange(8)
        items[at] = bytes(changed)
    elif kind == "removed":
        del items[at]
    elif kind == "swapped":  # another node of the tries replaces the item
        items[at] = rng.choice([entry for entry in items if entry != item])
    elif kind == "cut":
        items[at] = item[: rng.randrange(len(item))]
    else:
        items[at] = item + rng.randbytes(rng.randrange(1, 40))
    assert {keccak256(item) for item in items} != {
        keccak256(item) for item in getattr(witness, member)
    }
    return replace(witness, **{member: tuple(items)})


def refusal(subject: Subject, witness: Witness) -> str:
    """Returns the message with which verification rejects a witness.

    Raises AssertionError if the witness is accepted.
    """
    try:
        verify(subject.block, witness, subject.chain)
    except (WitnessError, InvalidBlock) as error:
        assert str(error)
        return str(error)
    raise AssertionError(f"{subject.name}: a mutation was accepted")


def run(found: list[Subject], count: int, seed: int) -> Counter[str]:
    """Verifies ``count`` mutated witnesses. Returns how many were rejected, by kind of mutation."""
    rng = random.Random(seed)
    refused: Counter[str] = Counter()
    for number in range(count):
        item, kind = found[number % len(found)], rng.choice(KINDS)
        refusal(item, mutated(item.witness, kind, rng))
        refused[kind] += 1
    return refused


def main() -> int:
    """Mutates witnesses and prints counts. Returns 0 if all were rejected."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.witnesses", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=100, help="of how many blocks at most")
    parser.add_argument("--nodes", type=int, default=MOST_NODES, help="of a witness at most")
    options = parser.parse_args()
    found = list(islice(subjects(options.nodes), options.blocks))
    started = time.monotonic()
    refused = run(found, options.count, options.seed)
    seconds = time.monotonic() - started
    print(f"{refused.total()} mutations of {len(found)} blocks refused in {seconds:.0f} s")
    print(", ".join(f"{kind} {refused[kind]}" for kind in KINDS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
