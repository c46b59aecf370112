"""The difficulty formulas of proof of work, with the difficulty bomb."""

from __future__ import annotations

from fastevm.core.execution.types import EMPTY_LIST_HASH, Header
from fastevm.core.spec.schedule import ForkSchedule

_FRONTIER, _HOMESTEAD = 0, 1
_FRONTIER_BLOCK_TIME = 13
_HOMESTEAD_BLOCK_TIME = 10
_BYZANTIUM_BLOCK_TIME = 9
_LOWEST_STEP = -99


def child_difficulty(parent: Header, schedule: ForkSchedule, timestamp: int) -> int:
    """Returns the difficulty of a child of ``parent`` at ``timestamp`` (seconds).

    ``schedule``: the child's rules.
    """
    return next_difficulty(
        schedule,
        number=parent.number + 1,
        timestamp=timestamp,
        parent_timestamp=parent.timestamp,
        parent_difficulty=parent.difficulty,
        parent_has_ommers=parent.ommers_hash != EMPTY_LIST_HASH,
    )


def next_difficulty(
    schedule: ForkSchedule,
    *,
    number: int,
    timestamp: int,
    parent_timestamp: int,
    parent_difficulty: int,
    parent_has_ommers: bool,
) -> int:
    """Returns the difficulty of block ``number`` at ``timestamp`` (seconds), or 0 after the merge.

    Sources: Yellow Paper section 4.3.4; EIP-2 (Homestead), EIP-100 (uncle-aware) and the EIPs that
    delay the bomb. As in these sources, the minimum difficulty applies to the sum that includes the
    bomb. The timestamp must be after that of the parent.
    """
    rules = schedule.parameters
    if rules["proof_of_stake"]:
        return 0
    elapsed = timestamp - parent_timestamp
    version = rules["difficulty_version"]
    if version == _FRONTIER:
        step = 1 if elapsed < _FRONTIER_BLOCK_TIME else -1
    elif version == _HOMESTEAD:
        step = max(1 - elapsed // _HOMESTEAD_BLOCK_TIME, _LOWEST_STEP)
    else:
        step = max(1 + parent_has_ommers - elapsed // _BYZANTIUM_BLOCK_TIME, _LOWEST_STEP)
    least = int(rules["min_difficulty"])
    moved = parent_difficulty + parent_difficulty // int(rules["difficulty_divisor"]) * step
    periods = max(number - int(rules["bomb_delay_blocks"]), 0) // int(rules["bomb_period"])
    bomb = 1 << (periods - 2) if periods >= 2 else 0
    return max(moved + bomb, least)
