"""The sequence of a feed's messages: gaps, duplicates, restarts and early slices."""

from collections.abc import Iterator
from enum import Enum

from fastevm.core.primitives.replace import replace
from fastevm.rpc_types.feed import FeedSlice

EARLY_BLOCKS = 6  # blocks above the canonical head that may start before their parent is known
EARLY_SLICES = 64  # early messages per block
EARLY_SIZE = 64 * 1024 * 1024  # bytes of memory of all early messages
MESSAGE_SIZE = 2_048  # bytes of memory of a message without transactions
TRANSACTION_SIZE = 64  # bytes of memory of a transaction, in addition to its encoding


class Verdict(Enum):
    """The relation of a message to the last accepted message. The values are labels of a metric."""

    NEXT = "next"
    FIRST = "first"
    START = "start"
    DUPLICATE = "duplicate"
    RESTART = "restart"
    CONFLICT = "conflict"
    GAP = "gap"
    INVALID_BLOCK = "invalid_block"
    PREDECESSOR = "predecessor_mismatch"
    MISSING_FIRST = "missing_first"
    RESTING = "resting"

    @property
    def invalidates(self) -> bool:
        """Whether the message contradicts the pending state, so that it must all be dropped."""
        return self in _INVALIDATING


_INVALIDATING = frozenset(
    {
        Verdict.RESTART,
        Verdict.CONFLICT,
        Verdict.GAP,
        Verdict.INVALID_BLOCK,
        Verdict.PREDECESSOR,
    }
)


def classify(latest: FeedSlice | None, new: FeedSlice) -> Verdict:
    """Classifies ``new`` after ``latest``, the last accepted message.

    ``latest`` is None if there is no pending state. CONFLICT is a message with the index of
    ``latest`` and other content.
    """
    if latest is None:
        return Verdict.START if new.index == 0 else Verdict.MISSING_FIRST
    same_block = new.block_number == latest.block_number
    if same_block and new.payload_id != latest.payload_id:
        return Verdict.RESTART if new.index == 0 else Verdict.GAP
    if same_block and new.index == latest.index:
        return Verdict.DUPLICATE if is_copy(new, latest) else Verdict.CONFLICT
    if new.previous_id is not None and new.previous_id != latest.id:
        return Verdict.PREDECESSOR
    if same_block:
        return Verdict.NEXT if new.index == latest.index + 1 else Verdict.GAP
    if new.block_number == latest.block_number + 1 and new.index == 0:
        return Verdict.FIRST
    return Verdict.INVALID_BLOCK


def is_copy(feed_slice: FeedSlice, other: FeedSlice) -> bool:
    """Returns whether two messages are equal, except for the predecessor that they name."""
    return feed_slice == other or replace(feed_slice, previous_id=other.previous_id) == other


def size_of(message: FeedSlice) -> int:
    """Returns the approximate bytes of memory that a message uses."""
    transactions = sum(map(len, message.transactions)) + len(message.post_exec_tx or b"")
    return MESSAGE_SIZE + TRANSACTION_SIZE * len(message.transactions) + transactions


class EarlySlices:
    """Messages whose parent block is not known yet. Each block has them from index 0 without gaps.

    The messages use at most ``EARLY_SIZE`` bytes of memory.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, list[FeedSlice]] = {}

    @property
    def size(self) -> int:
        """The approximate bytes of memory that the messages use."""
        return sum(size_of(message) for kept in self._blocks.values() for message in kept)

    def __len__(self) -> int:
        return sum(map(len, self._blocks.values()))

    def keep(self, new: FeedSlice, head: int) -> bool:
        """Keeps a message until its parent arrives. Returns False if the message must not be kept.

        ``head``: the number of the canonical head.
        """
        if not head < new.block_number <= head + EARLY_BLOCKS:
            return False
        if self.size + size_of(new) > EARLY_SIZE:
            return False
        kept = self._blocks.setdefault(new.block_number, [])
        if kept and new.payload_id != kept[0].payload_id and new.index == 0:
            kept.clear()
        if new.index > len(kept) or new.index >= EARLY_SLICES:
            if not kept:
                del self._blocks[new.block_number]
            return False
        kept[new.index :] = [new]
        return True

    def take(self, number: int) -> Iterator[FeedSlice]:
        """Removes and returns the messages of a block in order.

        Drops the messages of lower blocks.
        """
        found = self._blocks.pop(number, [])
        for old in [known for known in self._blocks if known < number]:
            del self._blocks[old]
        return iter(found)

    def clear(self) -> None:
        """Drops all messages."""
        self._blocks.clear()
