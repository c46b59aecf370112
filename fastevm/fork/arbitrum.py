"""Recognises Arbitrum's chains, and determines the rules of a block.

The version of ArbOS is in the header of each block, so no activation times are needed.
"""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import Final

from fastevm.chain.config import ChainConfig
from fastevm.core.execution.arbitrum.header import HeaderInfo, is_arbitrum
from fastevm.core.execution.types import Header
from fastevm.core.native.arbitrum.storage import STATE_ADDRESS, slot
from fastevm.core.spec.activation import Activations
from fastevm.core.spec.forks import NEWEST_ARBOS, arbos_fork
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.source import Wanted
from fastevm.errors import ForkError
from fastevm.fork.remote_source import RemoteSource
from fastevm.rpc_types.blocks import header_from_json

log = logging.getLogger(__name__)

NAMES: Final = MappingProxyType(
    {42_161: "Arbitrum One", 42_170: "Arbitrum Nova", 421_614: "Arbitrum Sepolia"}
)
"""The names of the chains by chain id."""
CLASSIC_BLOCKS: Final = MappingProxyType({42_161: 22_207_818})
"""The first block of Nitro by chain id. Earlier blocks ran Arbitrum Classic's virtual machine."""

VERSION_SLOT: Final = slot((), 0)
FEATURES_SLOT: Final = slot((b"\x09",), 0)
CALLDATA_FLOOR: Final = 1  # bit of the feature flags that enables EIP-7623
FIRST_WITH_FEATURES: Final = 40
L1_RING: Final = 256
HISTORY_CONTRACT: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
# slots in the ring buffer of Arbitrum's version of the history contract
HISTORY_RING: Final = 393_168
# Slots that most calls of precompiles read: the root, both prices, L1's block number.
OPENING_SLOTS: Final = (
    *(slot((), key) for key in range(12)),
    *(slot((b"\x00",), key) for key in range(13)),
    *(slot((b"\x01",), key) for key in range(8)),
    slot((b"\x06",), 0),
    FEATURES_SLOT,
)


def opening_slots(schedule: ForkSchedule) -> set[tuple[bytes, int]]:
    """Returns the slots to fetch before the first call.

    There are none under rules other than Arbitrum's.
    """
    if not schedule.parameters["arbos_version"]:
        return set()
    return {(STATE_ADDRESS, key) for key in OPENING_SLOTS}


def block_slots(parent: Header, count: int) -> set[tuple[bytes, int]]:
    """Returns the slots that are written at the start of the next ``count`` blocks.

    The slots hold block hashes: by L1 number in the storage of ArbOS, and by Arbitrum's number in
    the history contract.
    """
    l1_number = HeaderInfo.of(parent.mix_hash).l1_number
    numbers = range(l1_number, l1_number + count)
    ring = {(STATE_ADDRESS, slot((b"\x06",), 1 + number % L1_RING)) for number in numbers}
    blocks = range(parent.number, parent.number + count)
    return ring | {(HISTORY_CONTRACT, number % HISTORY_RING) for number in blocks}


def is_arbitrum_chain(source: RemoteSource) -> bool:
    """Returns whether a chain is an Arbitrum chain, by its id or by the form of its block."""
    if source.chain_id in NAMES:
        return True
    return "l1BlockNumber" in source.header and is_arbitrum(header_from_json(source.header))


def arbitrum_rules(source: RemoteSource) -> ChainConfig:
    """Returns the constants of the chain and the rules of the source's block.

    Raises ForkError for a block of Arbitrum Classic.
    """
    first = CLASSIC_BLOCKS.get(source.chain_id, 0)
    if source.block_number < first:
        raise ForkError(
            f"block {source.block_number} belongs to Arbitrum Classic, whose rules fastevm does not"
            f" know: fork at block {first} or later"
        )
    deciding = {(STATE_ADDRESS, VERSION_SLOT), (STATE_ADDRESS, FEATURES_SLOT)}
    known = source.fetch(Wanted(slots=deciding)).slots
    version = HeaderInfo.of(header_from_json(source.header).mix_hash).arbos_version
    version = version or known[STATE_ADDRESS, VERSION_SLOT]
    if version == 0:
        raise ForkError(f"{source.endpoint}: block {source.block_number} has no version of ArbOS")
    if version > NEWEST_ARBOS:
        log.warning(
            "unknown version %d of ArbOS: using the rules of %d", version, NEWEST_ARBOS
        )  # fmt: skip
    features = known[STATE_ADDRESS, FEATURES_SLOT] if version >= FIRST_WITH_FEATURES else 0
    fork = arbos_fork(version, has_calldata_floor=bool(features & CALLDATA_FLOOR))
    return ChainConfig(
        chain_id=source.chain_id,
        activations=Activations.always(fork),
        shares_seconds=True,
    )
