"""Runs blockchain tests: imports blocks on a genesis state and checks the head and its state."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.chain.config import MAINNET_DEPOSIT_CONTRACT, ChainConfig
from fastevm.chain.retention import ChainLimits
from fastevm.conformance.access_lists import is_reason, list_of
from fastevm.conformance.fields import accounts_of, bytes_of, number_of
from fastevm.conformance.pre_states import layer_of
from fastevm.conformance.runner import Case, Mismatch
from fastevm.conformance.snapshots import rules_meant
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.types import HEADER_FIELDS, Block, Header
from fastevm.core.spec.activation import activations_named
from fastevm.core.spec.blobs import read_blob_schedule
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock

# Member names of header fields in test files, where they differ from JSON-RPC.
HEADER_KEYS: Final = {
    "ommers_hash": "uncleHash",
    "coinbase": "coinbase",
    "transactions_root": "transactionsTrie",
    "receipts_root": "receiptTrie",
    "logs_bloom": "bloom",
}


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each test of the file."""
    for title, test in content.items():
        yield title, network_of(test), partial(run, test)


def network_of(test: Mapping[str, Any]) -> str:
    """Returns the name of a test's fork or transition."""
    return rules_meant(str(test.get("network") or test["config"]["network"]), test)


def run(test: Mapping[str, Any], limits: ChainLimits | None = None) -> Mismatch | None:
    """Runs a test. Returns None if all blocks, the head and the state are as expected."""
    layer = layer_of(accounts_of(test["pre"]))
    genesis = genesis_of(test)
    mismatch = check_genesis(test, genesis, layer)
    if mismatch is not None:
        return mismatch
    sealed = test.get("sealEngine") == "Ethash"
    chain = Chain(config_of(test), genesis, layer, check_seals=sealed, limits=limits)
    for position, block in enumerate(test["blocks"]):
        mismatch = import_block(chain, position, block)
        if mismatch is not None:
            return mismatch
    return check_end(test, chain)


def genesis_of(test: Mapping[str, Any]) -> Block:
    """Returns the genesis block from its RLP or, if missing, from the header fields."""
    if "genesisRLP" in test:
        return decode_block(bytes_of(test["genesisRLP"]))
    return Block(Header(**header_values(test["genesisBlockHeader"], HEADER_KEYS)))


def header_values(fields: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Returns the header fields that are present in ``fields``, by name.

    ``keys``: field names and member names, where the latter differ from JSON-RPC.
    """
    read = {"int": number_of, "bytes": bytes_of, "data": bytes_of}
    return {
        row.name: read[row.kind](fields[key])
        for row in HEADER_FIELDS
        if fields.get(key := keys.get(row.name, row.json)) is not None
    }


def config_of(test: Mapping[str, Any]) -> ChainConfig:
    """Returns the chain of a test: the rules of its network, modified by its config."""
    config = test.get("config") or {}
    blobs = read_blob_schedule(config.get("blobSchedule"))
    return ChainConfig(
        chain_id=number_of(config.get("chainid", "0x1")),
        activations=activations_named(network_of(test), blob_schedule=blobs),
        deposit_contract=MAINNET_DEPOSIT_CONTRACT,
    )


def check_genesis(test: Mapping[str, Any], genesis: Block, layer: Layer) -> Mismatch | None:
    """Compares the genesis block and state with the test."""
    expected = bytes_of(test["genesisBlockHeader"]["hash"])
    if genesis.hash != expected:
        return Mismatch(f"genesis hash 0x{expected.hex()}", f"0x{genesis.hash.hex()}")
    root = layer.state_root()
    if genesis.header.state_root != root:
        return Mismatch(f"genesis root 0x{genesis.header.state_root.hex()}", f"0x{root.hex()}")
    return None


def import_block(chain: Chain, position: int, block: Mapping[str, Any]) -> Mismatch | None:
    """Imports a block. If the test requires a rejection, the next block builds on the old head.

    An invalid block must be rejected with and without its access list.
    """
    why = next((block[key] for key in block if key.startswith("expectException")), None)
    if "blockHeader" in block and why is None:
        try:
            add(chain, block, access_list=list_of(block))
        except InvalidBlock as error:
            return Mismatch(f"blocks[{position}] accepted", str(error))
        return None
    wanted = f"blocks[{position}] refused with {why or 'an error'}"
    for access_list in dict.fromkeys((None, list_of(block))):
        try:
            add(chain, block, access_list=access_list)
        except InvalidBlock as error:
            if not is_reason(why or "", error):
                return Mismatch(wanted, str(error))
        else:
            return Mismatch(wanted, "accepted")
    return None


def add(chain: Chain, block: Mapping[str, Any], *, access_list: bytes | None) -> None:
    """Imports a block from its RLP, with its access list. Raises InvalidBlock."""
    chain.add(decode_block(bytes_of(block["rlp"])).with_access_list(access_list))


def check_end(test: Mapping[str, Any], chain: Chain) -> Mismatch | None:
    """Compares the head and its state with the test."""
    expected = bytes_of(test["lastblockhash"])
    if chain.head.hash != expected:
        found = f"0x{chain.head.hash.hex()} (number {chain.head.number})"
        return Mismatch(f"head 0x{expected.hex()}", found)
    if "postStateHash" in test:
        expected = bytes_of(test["postStateHash"])
    elif test.get("postState") is not None:
        expected = Layer.of(accounts_of(test["postState"])).state_root()
    else:
        return None
    root = chain.layer_of(chain.head.hash).state_root()
    return None if root == expected else Mismatch(f"state 0x{expected.hex()}", f"0x{root.hex()}")
