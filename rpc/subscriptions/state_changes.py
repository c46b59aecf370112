"""``stateChanges``: reports the difference between the newest and the last reported state."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct

from fastevm import Layer
from fastevm.chain import AccountChange, PendingBlock, account_change, changed_addresses
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.node import Node
from fastevm.rpc.dispatch.envelope import encode
from fastevm.rpc.freshness import extends_head

# slots per message; an account with more changes gets several messages
SLOTS_IN_A_MESSAGE: Final = 4_096


class StatePosition(Struct, frozen=True):
    """A state that was or will be reported to subscribers.

    ``number`` is the block number. ``slice_index`` and ``published`` are as in `PendingBlock`, and
    None for the state after a canonical block.
    """

    layer: Layer
    number: int
    slice_index: int | None = None
    published: float | None = None

    @classmethod
    def of_slice(cls, pending: PendingBlock) -> "StatePosition":
        """Return the state after a slice."""
        return cls(pending.layer, pending.header.number, pending.slice_index, pending.published)

    @classmethod
    def newest(cls, node: Node) -> "StatePosition":
        """Return the node's pre-confirmed state, or the head's state if there is none."""
        pending = node.pending()
        if pending is not None and node.pre_confirms and extends_head(node, pending):
            return cls.of_slice(pending)
        head = node.chain.head
        return cls(node.chain.layer_of(head.hash), head.number)


class ReportedState:
    """The last reported state. Each step compares the next state with the last one.

    Reorganised blocks and withdrawn slices are steps like any other, so a value that returns to its
    previous state is reported. Only the event loop calls `begin` and `end`; only the thread that
    builds messages calls `step`.
    """

    def __init__(self) -> None:
        self._position: StatePosition | None = None
        self._published = 0.0

    @property
    def is_used(self) -> bool:
        """Whether there are subscribers."""
        return self._position is not None

    def begin(self, position: StatePosition) -> None:
        """Start reporting changes from this state on, when the first subscriber joins."""
        self._position, self._published = position, position.published or 0.0

    def end(self) -> None:
        """Stop reporting, when the last subscriber has left."""
        self._position = None

    def step(self, position: StatePosition | None) -> "StateStep | None":
        """Return the step to a newer state. None for a slice older than the last reported slice."""
        before = self._position
        if before is None or position is None:
            return None
        if position.published is not None:
            if position.published < self._published:
                return None
            self._published = position.published
        self._position = position
        return StateStep(before, position)


class StateStep:
    """The changes from one state to the next. Each account is compared and encoded once."""

    def __init__(self, before: StatePosition, after: StatePosition) -> None:
        self.before = before
        self.after = after
        self._messages: dict[bytes, list[bytes]] = {}

    @cached_property
    def addresses(self) -> set[bytes]:
        """Addresses of accounts that may differ."""
        return changed_addresses(self.before.layer, self.after.layer)

    def messages(self, wanted: frozenset[bytes]) -> list[bytes]:
        """Return the messages about the wanted accounts, sorted by address."""
        return [
            message
            for address in sorted(self.addresses & wanted)
            for message in self._of_account(address)
        ]

    def _of_account(self, address: bytes) -> list[bytes]:
        if address not in self._messages:
            change = account_change(self.before.layer, self.after.layer, address)
            found = [] if change is None else list(self._encoded(address, change))
            self._messages[address] = found
        return self._messages[address]

    def _encoded(self, address: bytes, change: AccountChange) -> Iterator[bytes]:
        slots, position = list(change.storage.items()), self.after
        for first in range(0, max(1, len(slots)), SLOTS_IN_A_MESSAGE):
            part = slots[first : first + SLOTS_IN_A_MESSAGE]
            yield encode(
                {
                    "address": hex_bytes(address),
                    "nonce": change.nonce,
                    "balance": quantity(change.balance),
                    "storage": {quantity(slot): quantity(value) for slot, value in part},
                    "blockNumber": quantity(position.number),
                    "index": position.slice_index,
                }
            )
