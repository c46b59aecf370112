"""eth_config: the current, next and last known fork configuration (EIP-7910)."""

from typing import Any

import fastevm
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.registry import method
from fastevm.rpc_types.transactions import Json

ADDRESS_SIZE = 20


@method("eth_config")
def fork_configuration(context: Context) -> Json:
    """Return the current, next and last fork configuration, each null if there is none."""
    head = context.node.chain.head.header
    times = context.node.config.activations.fork_times
    later = [time for time in times if time > head.timestamp]
    current = max((time for time in times if time <= head.timestamp), default=0)
    return {
        "current": _configuration(context, current, head.timestamp),
        "next": _configuration(context, later[0], later[0]) if later else None,
        "last": _configuration(context, later[-1], later[-1]) if later else None,
    }


def _configuration(context: Context, activated: int, timestamp: int) -> Json:
    """Return the configuration of a child of the head at ``timestamp`` (Unix seconds)."""
    chain, config = context.node.chain, context.node.config
    schedule = chain.schedule_for_child(chain.head, timestamp)
    genesis = chain.genesis.header
    identifier = fastevm.fork_id(
        config.activations,
        genesis.hash,
        number=chain.head.number,
        timestamp=timestamp,
        genesis_timestamp=genesis.timestamp,
    )
    contracts = {name: hex_bytes(address) for name, address in schedule.system_contracts.items()}
    if schedule.parameters["collects_requests"]:
        contracts["DEPOSIT_CONTRACT_ADDRESS"] = hex_bytes(config.deposit_contract)
    return {
        "activationTime": activated,
        "blobSchedule": _blob_schedule(schedule),
        "chainId": quantity(config.chain_id),
        "forkId": hex_bytes(identifier.checksum),
        "precompiles": {
            name: hex_bytes(number.to_bytes(ADDRESS_SIZE, "big"))
            for name, number in schedule.precompiles.items()
        },
        "systemContracts": contracts,
    }


def _blob_schedule(schedule: Any) -> Json | None:
    blobs = schedule.blobs
    if blobs is None or not schedule.parameters["accepts_blobs"]:
        return None
    return {
        "target": blobs.target,
        "max": blobs.max,
        "baseFeeUpdateFraction": blobs.base_fee_fraction,
    }
