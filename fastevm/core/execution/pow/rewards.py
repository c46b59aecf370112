"""Credits at the end of a block: mining and uncle rewards before the merge, withdrawals after
it.
"""

from __future__ import annotations

from fastevm.core.execution.types import Block
from fastevm.core.spec.schedule import ForkSchedule

WEI_PER_GWEI = 10**9
_OMMER_REACH = 8
_NEPHEW_SHARE = 32

Credit = tuple[bytes, int]


def block_rewards(block: Block, schedule: ForkSchedule) -> list[Credit]:
    """Returns the block rewards as (address, wei): the uncles' miners, then the block's miner.

    Empty under proof of stake. Source: Yellow Paper, section 11.3.
    """
    reward = int(schedule.parameters["block_reward_gwei"]) * WEI_PER_GWEI
    if not reward:
        return []
    credits = [
        (ommer.coinbase, (_OMMER_REACH + ommer.number - block.number) * reward // _OMMER_REACH)
        for ommer in block.ommers
    ]
    credits.append((block.header.coinbase, reward + len(block.ommers) * (reward // _NEPHEW_SHARE)))
    return credits


def withdrawal_credits(block: Block) -> list[Credit]:
    """Returns the block's withdrawals as (address, wei) (EIP-4895)."""
    return [(entry.address, entry.amount * WEI_PER_GWEI) for entry in block.withdrawals or ()]
