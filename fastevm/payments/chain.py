"""The state of the node's chain: newest block, block time, and current fees.

The heads of nodes behind a load balancer differ by a block or two. So a block may be canonical
although one of these nodes does not have it yet. A reorganisation is accepted only if a node has
another hash at the same height and a head above that height.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Final

from msgspec import Struct

from fastevm.payments.errors import NodeUnreachable, PaymentError, WrongChain
from fastevm.payments.events import Checkpoint
from fastevm.payments.node import Answer, NodeClient
from fastevm.payments.policy import GWEI, Policy
from fastevm.rpc_client.messages import Call

HISTORY_BLOCKS: Final = 10  # blocks of eth_feeHistory from which the tip is computed
PERCENTILE: Final = 50
PACE_BLOCKS: Final = 64  # blocks over which the block time is measured
USUAL_BLOCK_SECONDS: Final = 2.0  # block time assumed until it is measured
SLOW_BLOCK_SECONDS: Final = 5.0
SHORTEST_BLOCK_SECONDS: Final = 0.05
LONGEST_BLOCK_SECONDS: Final = 60.0
RECENT_INCLUSIONS: Final = 16  # number of recent inclusions that are kept
MOST_MARGIN: Final = 60  # seconds; a longer wait counts as 60 s
FIRST_MARGIN: Final = 12  # seconds; upper limit of the margin before the first observed inclusion
PASS_SECONDS: Final = 2.0  # maximum seconds for a poll itself, after the pause before the poll


class Head(Struct, frozen=True):
    """A block: number, hash, and its timestamp in seconds."""

    number: int
    hash: str
    timestamp: int

    @property
    def point(self) -> Checkpoint:
        """Returns the block as a checkpoint."""
        return Checkpoint(self.number, self.hash)


class Quote(Struct, frozen=True):
    """The current price of a transaction in wei per gas: base fee, fee cap and tip to use."""

    base_fee: int
    cap: int
    tip: int


FEE_CALLS: Final[tuple[Call, ...]] = (
    ("eth_getBlockByNumber", ["pending", False]),
    ("eth_getBlockByNumber", ["latest", False]),
    ("eth_feeHistory", [hex(HISTORY_BLOCKS), "latest", [PERCENTILE]]),
    ("eth_maxPriorityFeePerGas", []),
)


def head_of(block: Answer) -> Head | None:
    """Parses the answer to ``eth_getBlockByNumber``. Returns None if the node lacks the block.

    Raises NodeUnreachable if the block is malformed. If ``block`` is an error, raises that error.
    """
    if isinstance(block, PaymentError):
        raise block
    if block is None:
        return None
    try:
        return Head(int(block["number"], 16), str(block["hash"]), int(block["timestamp"], 16))
    except (KeyError, TypeError, ValueError):
        raise NodeUnreachable("malformed block: no valid number, hash or timestamp") from None


def quote_of(answers: Sequence[Answer], policy: Policy) -> Quote:
    """Computes the fees from the answers to :data:`FEE_CALLS`.

    Raises NodeUnreachable if there is neither a pending nor a latest block. The other answers are
    optional: the default tip is 1 gwei, within the policy's limits.
    """
    pending, latest, history, suggestion = answers
    base_fee = _base_fee(pending)
    if base_fee is None:
        base_fee = _base_fee(latest)
    if base_fee is None:
        raise NodeUnreachable("neither the pending nor the latest block has a base fee")
    tip = _median_tip(history)
    if tip is None:
        tip = int(suggestion, 16) if isinstance(suggestion, str) else GWEI
    tip = min(max(tip, policy.least_tip), policy.most_tip)
    return Quote(base_fee, *policy.fees(base_fee, tip))


def _base_fee(block: Answer) -> int | None:
    if not isinstance(block, Mapping):
        return None
    fee = block.get("baseFeePerGas") or "0x0"
    return int(fee, 16) if isinstance(fee, str) else None


def _median_tip(history: Answer) -> int | None:
    """Returns the median of the tips in ``eth_feeHistory``, in wei per gas; None if there are none.

    Leaves out tips of 0, which a node reports for empty blocks.
    """
    if not isinstance(history, Mapping):
        return None
    try:
        rewards = [int(row[0], 16) for row in history.get("reward") or [] if row]
    except (TypeError, ValueError):
        return None
    paid = [reward for reward in rewards if reward]
    return median_low(paid) if paid else None


class InclusionTimes:
    """Records how many seconds recent transactions waited for inclusion.

    A wait starts at the timestamp of the pending block at the submission. It ends at the timestamp
    of the block that includes the transaction. So the clocks of machines do not matter.
    """

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=RECENT_INCLUSIONS)

    def add(self, seconds: int) -> None:
        """Adds an observation."""
        self._recent.append(min(max(0, seconds), MOST_MARGIN))

    def margin(self) -> int | None:
        """Returns how many seconds a capture needs until inclusion; None if unknown.

        This is the 90th percentile of the observed waits, so that one stuck transaction among more
        than ten does not count, plus 1 s for rounding.
        """
        if not self._recent:
            return None
        return 1 + sorted(self._recent)[len(self._recent) * 9 // 10]


def check_chain_id(answer: Answer, chain_id: int) -> None:
    """Raises :class:`WrongChain` unless the answer to ``eth_chainId`` is ``chain_id``."""
    if isinstance(answer, PaymentError):
        raise answer
    if not isinstance(answer, str) or int(answer, 16) != chain_id:
        shown = int(answer, 16) if isinstance(answer, str) else answer
        raise WrongChain(f"the node's chain id is {shown}, the token's is {chain_id}")


class Chain:
    """The state of the node's chain as far as this process has seen it."""

    def __init__(self, node: NodeClient, chain_id: int, policy: Policy) -> None:
        self.node, self.chain_id, self.policy = node, chain_id, policy
        self.block_seconds = USUAL_BLOCK_SECONDS
        self._paced = False
        self._number = -1  # number of the newest block seen
        # monotonic seconds of the first poll that saw this head, and of the newest poll
        self._still_since = self._looked = -math.inf
        self._awaited = False  # `pause` was called since the last poll

    def check_id(self, answer: Answer) -> None:
        """Raises :class:`WrongChain` unless the node's chain id is the token's."""
        check_chain_id(answer, self.chain_id)

    def pace_call(self, head: Head) -> Call | None:
        """Returns the call for :meth:`pace`, which needs the answer.

        Returns None if the block time is known, or if the chain has no earlier block.
        """
        first = max(1, head.number - PACE_BLOCKS)
        if self._paced or head.number <= first:
            return None
        return "eth_getBlockByNumber", [hex(first), False]

    def pace(self, head: Head, answer: Answer) -> None:
        """Measures the block time between an earlier block (the answer) and ``head``."""
        begin = head_of(None if isinstance(answer, PaymentError) else answer)
        if begin is None or head.number <= begin.number:
            return
        seconds = (head.timestamp - begin.timestamp) / (head.number - begin.number)
        self.block_seconds = min(max(seconds, SHORTEST_BLOCK_SECONDS), LONGEST_BLOCK_SECONDS)
        self._paced = head.number - begin.number >= PACE_BLOCKS

    async def measure(self) -> None:
        """Measures the block time from blocks of the node, unless it is known already."""
        if self._paced:
            return
        head = head_of(await self.node.call("eth_getBlockByNumber", "latest", False))
        asked = None if head is None else self.pace_call(head)
        if head is not None and asked is not None:
            self.pace(head, await self.node.call(asked[0], *asked[1]))

    def look(self, head: Head, now: float) -> None:
        """Adjusts the block time after a poll that saw ``head`` at ``now`` (monotonic seconds).

        An unchanged head raises the block time. Several new blocks in one poll lower it. A poll
        counts only if it follows a :meth:`pause` without much delay. Otherwise the head may be
        unchanged because a node that mines on demand had no transactions.
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
            self.block_seconds, self._paced = seconds, True  # no need to measure older blocks

    def pause(self) -> float:
        """Returns the seconds to wait before the next poll.

        Allows two or three polls per block, but waits at least ``policy.poll``.
        """
        self._awaited = True
        return self._poll_seconds

    @property
    def _poll_seconds(self) -> float:
        looks = 2 if self.block_seconds > SLOW_BLOCK_SECONDS else 3
        return max(self.policy.poll, self.block_seconds / looks)

    def newest_confirmed_number(self, head: Head, tagged: Head | None) -> int | None:
        """Returns the highest block number at the policy's depth; None if no block is so deep.

        ``tagged`` is the node's ``safe`` or ``finalized`` block, if the depth is a tag.
        """
        depth = self.policy.depth
        if isinstance(depth, str):
            return None if tagged is None else min(tagged.number, head.number)
        return head.number - depth + 1 if head.number >= depth - 1 else None
