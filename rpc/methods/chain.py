"""Node and chain information: versions, chain id, modules, capabilities."""

import inspect
from typing import Final

from msgspec.structs import asdict

import fastevm
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.rpc import limits as limits_module
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import DATA
from fastevm.rpc.dispatch.registry import METHODS, Method, method, namespace_of
from fastevm.rpc_types.state_reads import Read
from fastevm.rpc_types.transactions import Json

MODULE_VERSION: Final = "1.0"
OPENRPC_VERSION: Final = "1.3.2"


@method("web3_clientVersion")
def client_version(context: Context) -> str:
    """Return the node's name, version, platform and Python version."""
    return context.client_version


@method("web3_sha3", DATA)
def sha3(context: Context, data: bytes) -> str:
    """Return Keccak-256 of the data."""
    return hex_bytes(fastevm.keccak256(data))


@method("net_version")
def network_version(context: Context) -> str:
    """Return the network id, which is the chain id, in decimal."""
    return str(context.node.config.chain_id)


method("eth_networkId")(network_version)


@method("eth_protocolVersion")
def protocol_version(context: Context) -> int:
    """Return 1, as anvil does: the node does not speak the devp2p protocol."""
    return 1


@method("net_listening")
def listening(context: Context) -> bool:
    """Return true: the node answers."""
    return True


@method("net_peerCount")
def peer_count(context: Context) -> str:
    """Return 0x0: the node has no peers."""
    return quantity(0)


@method("eth_hashrate")
def hashrate(context: Context) -> str:
    """Return 0x0: the node does not mine."""
    return quantity(0)


@method("rpc_modules")
def modules(context: Context) -> dict[str, str]:
    """Return the served namespaces, each with its version."""
    names = set(map(namespace_of, METHODS))
    served = names if context.namespaces is None else names & context.namespaces
    return dict.fromkeys(sorted(served), MODULE_VERSION)


@method("rpc_discover")
def discover(context: Context) -> Json:
    """Return the served methods as an OpenRPC document.

    Parameters have the handlers' names and order; their schema allows any value.
    """
    served = set(modules(context))
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {"title": "fastevm", "version": context.client_version},
        "methods": [
            _described(METHODS[name]) for name in sorted(METHODS) if namespace_of(name) in served
        ],
    }


def _described(entry: Method) -> Json:
    names = inspect.getfullargspec(entry.handler).args[1:]
    given = dict(zip(names[-len(entry.params) :], entry.params, strict=False))
    summary, _, description = (inspect.getdoc(entry.handler) or "").partition("\n\n")
    return {
        "name": entry.name,
        "summary": summary,
        **({"description": description} if description else {}),
        "paramStructure": "by-position",
        "params": [
            {"name": name, "required": not param.optional, "schema": {}}
            for name, param in given.items()
        ],
        "result": {"name": "result", "schema": {}},
    }


@method("rpc_limits")
def limits(context: Context) -> Json:
    """Return every limit of the node by name, also limits that an operator cannot change.

    Sizes are in bytes, times in seconds; `fastevm.rpc.limits` describes each. ``transaction_fee``
    is the highest fee in wei that a transaction may offer for its gas; 0 means no limit.
    """
    fixed = {name.lower(): value for name, value in vars(limits_module).items() if name.isupper()}
    fee = {"transaction_fee": quantity(context.node.fee_cap)}
    return dict(sorted((fixed | asdict(context.limits) | fee).items()))


@method("eth_chainId", reads=Read.CHAIN_ID)
def chain_id(context: Context) -> str:
    """Return the chain id (EIP-695)."""
    return quantity(context.node.config.chain_id)


@method("eth_blockNumber", reads=Read.BLOCK_NUMBER)
def block_number(context: Context) -> str:
    """Return the number of the latest canonical block."""
    return quantity(context.node.chain.head.number)


@method("eth_syncing")
def syncing(context: Context) -> Json | bool:
    """Return the first, current and highest block of a sync in progress, or else false."""
    state = context.node.sync_state
    if state is None:
        return False
    starting, current, highest = map(quantity, state)
    return {"startingBlock": starting, "currentBlock": current, "highestBlock": highest}


@method("eth_capabilities")
def capabilities(context: Context) -> Json:
    """Return the head, and the oldest block of each kind of data.

    The oldest state may be newer than the oldest block: after a restart from a snapshot, older
    states are missing.
    """
    chain = context.node.chain
    head = chain.head
    first, state = chain.genesis.number, chain.oldest_state()
    oldest = {"state": state, "tx": first, "logs": first, "receipts": first, "blocks": first}
    return {
        "head": {"number": quantity(head.number), "hash": hex_bytes(head.hash)},
        **{
            kind: {"disabled": False, "oldestBlock": quantity(number)}
            for kind, number in (oldest | {"stateproofs": state}).items()
        },
    }
