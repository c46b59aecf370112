"""Executes blocks on py-evm with only their witnesses: trie nodes and codes by hash.

py-evm reads an ancestor's header to get its hash. The oldest ancestor's header is not in the
witness, so here the hash comes from the parent hash in its child's header.
"""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import rlp
from eth.consensus import ConsensusContext
from eth.db.atomic import AtomicDB
from eth.db.chain import ChainDB
from eth.vm import forks
from eth.vm.chain_context import ChainContext
from eth_hash.auto import keccak
from pipe import hexed, serve, unhexed


def hashes(chaindb: ChainDB, newest: bytes) -> Iterator[bytes]:
    """Yields the hashes of ancestors, parent first, up to the first without a known header."""
    while True:
        yield newest
        if newest not in chaindb.db:
            return
        newest = chaindb.get_block_header_by_hash(newest).parent_hash


def run(case: "dict[str, Any]") -> "dict[str, Any]":
    """Returns hash and state root of the block that py-evm builds, or the error."""
    named = getattr(forks, f"{case['fork']}VM")
    reported = {
        "previous_hashes": property(lambda vm: hashes(vm.chaindb, block.header.parent_hash))
    }
    machine = type("Stateless", (named,), reported)
    db, witness = AtomicDB(), case["witness"]
    for kind in ("state", "codes", "headers"):
        for item in map(unhexed, witness[kind]):
            db[keccak(item)] = item
    block = rlp.decode(unhexed(case["block"]), machine.get_block_class())
    chaindb = ChainDB(db)
    parent = chaindb.get_block_header_by_hash(block.header.parent_hash)
    drafted = machine.create_header_from_parent(parent)
    vm = machine(drafted, chaindb, ChainContext(case["chainId"]), ConsensusContext(db))
    try:
        made = vm.import_block(block).block
    # py-trie and py-evm raise different exceptions for each kind of missing node.
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:400]}
    return {"hash": hexed(made.hash), "state": hexed(made.header.state_root)}


if __name__ == "__main__":
    serve(run, f"py-evm {version('py-evm')}")
