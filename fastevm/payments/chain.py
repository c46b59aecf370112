"""What a node says of its chain right now: the newest block, how fast blocks come, what fees are.

Nodes behind a load balancer differ by a block or two. A block that one of them does not know says
nothing; only another hash at the same height does, and only once a later head has confirmed it.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Final

from msgspec import Struct

from fastevm.payments.errors import NodeUnreachable, PaymentError, WrongChain
from fastevm.payments.events import Checkpoint
from fastevm.payments.node import Answer, NodeClient
from fastevm.payments.policy import GWEI, Policy
from fastevm.rpc_client.messages import Call

HISTORY_BLOCKS: Final = 10  # whose tips are looked at
PERCENTILE: Final = 50
PACE_BLOCKS: Final = 64  # over which the time of a block is measured
USUAL_BLOCK_SECONDS: Final = 2.0  # until it is measured
SLOW_BLOCK_SECONDS: Final = 5.0
SHORTEST_BLOCK_SECONDS: Final = 0.05
LONGEST_BLOCK_SECONDS: Final = 60.0
PASS_SECONDS: Final = 2.0  # that a look at the chain may take beyond the pause before it


class Head(Struct, frozen=True):
    """A block: number, hash, and its timestamp in seconds."""

    number: int
    hash: str
    timestamp: int

    @property
    def point(self) -> Checkpoint:
        """As a checkpoint."""
        return Checkpoint(self.number, self.hash)


class Quote(Struct, frozen=True):
    """What a transaction costs now, in wei per gas: the fee cap and the tip of a new one."""

    base_fee: int
    cap: int
    tip: int


FEE_CALLS: Final[tuple[Call, ...]] = (
    ("eth_getBlockByNumber", ["pending", False]),
    ("eth_getBlockByNumber", ["latest", False]),
    ("eth_feeHistory", [hex(HISTORY_BLOCKS), "latest", [PERCENTILE]]),
    ("eth_maxPriorityFeePerGas", []),
)


def head_of(told: Answer) -> Head | None:
    """A block that the node told; None when it knows none."""
    if isinstance(told, PaymentError):
        raise told
    if told is None:
        return None
    try:
        return Head(int(told["number"], 16), str(told["hash"]), int(told["timestamp"], 16))
    except (KeyError, TypeError, ValueError):
        raise NodeUnreachable("a block that is not laid out as blocks are") from None


def quote_of(answers: Sequence[Answer], policy: Policy) -> Quote:
    """Fees from the answers to :data:`FEE_CALLS`; a provider may lack all but the newest block."""
    pending, latest, history, suggestion = answers
    base_fee = _base_fee(pending)
    if base_fee is None:
        base_fee = _base_fee(latest)
    if base_fee is None:
        raise NodeUnreachable("no block with a base fee")
    tip = _median_tip(history)
    if tip is None:
        tip = int(suggestion, 16) if isinstance(suggestion, str) else GWEI
    tip = min(max(tip, policy.least_tip), policy.most_tip)
    return Quote(base_fee, *policy.fees(base_fee, tip))


def _base_fee(block: Answer) -> int | None:
    if not isinstance(block, Mapping):
        return None
    told = block.get("baseFeePerGas") or "0x0"
    return int(told, 16) if isinstance(told, str) else None


def _median_tip(history: Answer) -> int | None:
    """What the median transaction paid in blocks that had any; None when none had."""
    if not isinstance(history, Mapping):
        return None
    try:
        rewards = [int(row[0], 16) for row in history.get("reward") or [] if row]
    except (TypeError, ValueError):
        return None
    paid = [one for one in rewards if one]
    return median_low(paid) if paid else None


class Chain:
    """What this process knows of the node's chain."""

    def __init__(self, node: NodeClient, chain_id: int, policy: Policy) -> None:
        self.node, self.chain_id, self.policy = node, chain_id, policy
        self.block_seconds = USUAL_BLOCK_SECONDS
        self._paced = False
        self._number = -1  # of the newest block seen
        self._still_since = self._looked = -math.inf  # its first and its last look, monotonic s
        self._awaited = False  # a pause was asked for since the last look

    def check_id(self, told: Answer) -> None:
        """Raise :class:`WrongChain` unless the node's chain is the token's."""
        if isinstance(told, PaymentError):
            raise told
        if not isinstance(told, str) or int(told, 16) != self.chain_id:
            shown = int(told, 16) if isinstance(told, str) else told
            raise WrongChain(f"the node's chain is {shown}, the token's is {self.chain_id}")

    def pace_call(self, head: Head) -> Call | None:
        """What to ask beside other things so that :meth:`pace` can measure; None when it did."""
        first = max(1, head.number - PACE_BLOCKS)
        if self._paced or head.number <= first:
            return None
        return "eth_getBlockByNumber", [hex(first), False]

    def pace(self, head: Head, told: Answer) -> None:
        """Measure the time between blocks, from an earlier block."""
        begin = head_of(None if isinstance(told, PaymentError) else told)
        if begin is None or head.number <= begin.number:
            return
        seconds = (head.timestamp - begin.timestamp) / (head.number - begin.number)
        self.block_seconds = min(max(seconds, SHORTEST_BLOCK_SECONDS), LONGEST_BLOCK_SECONDS)
        self._paced = head.number - begin.number >= PACE_BLOCKS

    def look(self, head: Head, now: float) -> None:
        """Follow the time between blocks: at ``now``, in monotonic seconds, the node told ``head``.

        A head that stands still makes it longer, several blocks at once make it shorter. Only a
        look counts that follows a :meth:`pause` about as closely as that asked for: at other times
        a node that mines on demand has nothing to do.
        """
        steady = self._awaited and now - self._looked <= 2 * self._poll_seconds + PASS_SECONDS
        self._looked, self._awaited = now, False
        advanced = head.number - self._number
        since = self._still_since if steady else now
        seconds = self.block_seconds
        if advanced <= 0:
            self._still_since = since
            seconds = max(seconds, min(now - since, LONGEST_BLOCK_SECONDS))
        else:
            self._number, self._still_since = head.number, now
            if steady and advanced > 1:
                seconds = min(seconds, max((now - since) / advanced, SHORTEST_BLOCK_SECONDS))
        if seconds != self.block_seconds:
            self.block_seconds, self._paced = seconds, True  # newer than what old blocks tell

    def pause(self) -> float:
        """Seconds until the next look at what is on its way: a few looks in a block."""
        self._awaited = True
        return self._poll_seconds

    @property
    def _poll_seconds(self) -> float:
        looks = 2 if self.block_seconds > SLOW_BLOCK_SECONDS else 3
        return max(self.policy.poll, self.block_seconds / looks)

    def deep_number(self, head: Head, tagged: Head | None) -> int | None:
        """The number of the newest block that is deep enough; None when none is."""
        depth = self.policy.depth
        if isinstance(depth, str):
            return None if tagged is None else min(tagged.number, head.number)
        return head.number - depth + 1 if head.number >= depth - 1 else None
