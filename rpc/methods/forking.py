"""Resets a development node to another fork block, changes the upstream URL, and reports both.

Names and answers are those of anvil and Hardhat.
"""

from typing import Any, Final

from msgspec import Struct

import fastevm
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.node import never_wait
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import decode_text
from fastevm.rpc.dispatch.registry import Needs, Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.methods.development import attempt, control, decode_number
from fastevm.rpc.methods.fees import next_base_fee, suggested_tip
from fastevm.rpc_types.quantity import object_fault
from fastevm.rpc_types.transactions import Json

MILLISECONDS: Final = 1000


class Forking(Struct, frozen=True):
    """The upstream URL and fork block of a reset. None means the current value."""

    url: str | None = None
    block: int | None = None


def decode_reset(value: Any) -> Forking | None:
    """Decode ``{"forking": {"jsonRpcUrl", "blockNumber"}}``, or the inner object."""
    if not isinstance(value, dict):
        raise object_fault(value, "map", "forking")
    if not value:
        return None
    wanted = value.get("forking", value)
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        raise object_fault(wanted, "map", "forking")
    url, block = wanted.get("jsonRpcUrl"), wanted.get("blockNumber")
    return Forking(
        None if url is None else decode_text(url), None if block is None else decode_number(block)
    )


async def _reset(context: Context, wanted: Forking | None) -> None:
    reset = control(context).reset
    never_wait()  # this thread must never wait for an upstream
    if wanted is None:
        await context.workers.run(attempt, reset.to_development, long=True)
    else:
        await context.workers.run(attempt, reset.to_fork, wanted.url, wanted.block, long=True)


RESET: Final = Param(decode_reset, optional=True)


@method("anvil_reset", RESET, run_on=RunOn.TASK, needs=Needs.CONTROLS)
async def anvil_reset(context: Context, wanted: Forking | None) -> None:
    """Restart the chain as a fork at ``wanted``. With None, restart it without an upstream."""
    await _reset(context, wanted)


@method("hardhat_reset", RESET, run_on=RunOn.TASK, needs=Needs.CONTROLS)
async def hardhat_reset(context: Context, wanted: Forking | None) -> bool:
    """Restart the chain as a fork, as anvil_reset does. Returns true."""
    await _reset(context, wanted)
    return True


@method("evm_reset", run_on=RunOn.TASK, needs=Needs.CONTROLS)
async def evm_reset(context: Context) -> None:
    """Restart the chain without an upstream."""
    await _reset(context, None)


@method("anvil_getGenesisTime", needs=Needs.CONTROLS)
def genesis_time(context: Context) -> int:
    """Return the timestamp of the first block, in seconds."""
    return context.node.chain.genesis.header.timestamp


@method("anvil_setRpcUrl", Param(decode_text), run_on=RunOn.WORKER, needs=Needs.CONTROLS)
@method("hardhat_setRpcUrl", Param(decode_text), run_on=RunOn.WORKER, needs=Needs.CONTROLS)
@long_running
def set_rpc_url(context: Context, url: str) -> None:
    """Fetch the forked state from now on from the node at this URL, which must have the fork block.

    Does nothing if the chain is not forked, as on anvil.
    """
    if context.node.history is not None:
        attempt(context.node.history.move, url)


@method("anvil_nodeInfo", run_on=RunOn.WORKER, needs=Needs.CONTROLS)
def node_info(context: Context) -> Json:
    """Return the head, hardfork and prices of the chain, and its fork block."""
    chain, history = context.node.chain, context.node.history
    head = chain.head
    fee = next_base_fee(context, head) or 0
    settings = control(context).settings
    fork: Json = dict.fromkeys(("forkUrl", "forkBlockNumber", "forkRetryBackoff"))
    if history is not None:
        fork = {
            "forkUrl": history.name,
            "forkBlockNumber": history.number,
            "forkRetryBackoff": int(history.options.backoff * MILLISECONDS),
        }
    return {
        "currentBlockNumber": quantity(head.number),
        "currentBlockTimestamp": head.header.timestamp,
        "currentBlockHash": hex_bytes(head.hash),
        "hardFork": chain.schedule_of(head.hash).fork.name,
        "transactionOrder": "fees",
        "environment": {
            "baseFee": quantity(fee),
            "chainId": context.node.config.chain_id,
            "gasLimit": quantity(settings.gas_limit or head.header.gas_limit),
            "gasPrice": quantity(fee + suggested_tip(context)),
        },
        "forkConfig": fork,
    }


def metadata(context: Context) -> Json:
    """Return client version, head and fork block of the chain."""
    chain, history = context.node.chain, context.node.history
    forked = history and {
        "chainId": history.chain_id,
        "forkBlockNumber": history.number,
        "forkBlockHash": hex_bytes(history.block_hash),
    }
    return {
        "clientVersion": context.client_version,
        "clientSemver": fastevm.__version__,
        "clientCommitSha": None,
        "chainId": context.node.config.chain_id,
        "instanceId": hex_bytes(control(context).reset.instance),
        "latestBlockNumber": chain.head.number,
        "latestBlockHash": hex_bytes(chain.head.hash),
        "forkedNetwork": forked,
        "snapshots": {
            quantity(number): [block, hex_bytes(block_hash)]
            for number, (block, block_hash) in control(context).snapshots().items()
        },
    }


for _name in ("anvil_metadata", "hardhat_metadata"):
    method(_name, run_on=RunOn.WORKER, needs=Needs.CONTROLS)(metadata)
