"""Subscription topics, and the JSON messages that each event produces for them."""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm.chain import HeadChange, PendingBlock
from fastevm.core.execution.types import Block, Log
from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.errors import UnknownBlockError
from fastevm.node import Node
from fastevm.rpc.dispatch.envelope import encode
from fastevm.rpc.log_filter import LogFilter
from fastevm.rpc.subscriptions.log_table import LogTable
from fastevm.rpc.subscriptions.state_changes import ReportedState, StatePosition, StateStep
from fastevm.rpc.subscriptions.withdrawn_logs import WithdrawnLogs
from fastevm.rpc.view import View
from fastevm.rpc.watching.request import WatchRequest
from fastevm.rpc_types.blocks import head_json
from fastevm.rpc_types.transactions import transaction_json

NEW_HEADS: Final = "newHeads"
LOGS: Final = "logs"
NEW_PENDING_TRANSACTIONS: Final = "newPendingTransactions"
SYNCING: Final = "syncing"
PENDING_LOGS: Final = "pendingLogs"
NEW_SLICES: Final = "newFlashblocks"
NEW_SLICE_TRANSACTIONS: Final = "newFlashblockTransactions"
TRANSACTION_RECEIPTS: Final = "transactionReceipts"
TRANSACTION_INCLUSION: Final = "transactionInclusion"
STATE_CHANGES: Final = "stateChanges"
WATCH: Final = "fastevm_watch"

HASH_MEMORY: Final = 120  # bytes of memory of a hash or address in a set

INCLUDED: Final = "included"
FINALIZED: Final = "finalized"
REORGED: Final = "reorged"

# The order of an event's messages: a block comes before its content.
ORDER: Final = (
    NEW_HEADS, LOGS, TRANSACTION_RECEIPTS, TRANSACTION_INCLUSION, NEW_SLICES,
    NEW_SLICE_TRANSACTIONS, PENDING_LOGS, STATE_CHANGES, NEW_PENDING_TRANSACTIONS, SYNCING,
)  # fmt: skip


class LastMessage(bytes):
    """The last message of a subscription. The subscription ends after it."""


class Topic(Struct, frozen=True):
    """The topic of a subscription. Equal topics get equal messages, which are built once.

    - ``wanted`` selects logs, or transactions that have a matching log.
    - ``full`` selects objects in place of hashes, or receipts with the timestamp of their block.
    - ``hashes`` selects transactions. If it is empty, all transactions match.
    - ``reorgs``: whether messages about the inclusion of a transaction follow until its block is
      final.
    - ``removed``: whether logs are sent again if they are withdrawn before they are canonical.
    - ``addresses`` are the accounts whose changes are reported.
    - ``watch`` is the request of a ``fastevm_watch`` subscription, which `WatchService` answers.
    """

    kind: str
    wanted: LogFilter | None = None
    full: bool = False
    hashes: frozenset[bytes] = frozenset()
    reorgs: bool = False
    removed: bool = False
    addresses: frozenset[bytes] = frozenset()
    watch: WatchRequest | None = None

    @property
    def memory(self) -> int:
        """The bytes of memory that the filter, hashes, addresses and questions use."""
        selected = len(self.hashes) + len(self.addresses)
        size = selected * HASH_MEMORY + (0 if self.wanted is None else self.wanted.memory)
        return size + (0 if self.watch is None else self.watch.memory)

    def greetings(self, node: Node) -> list[bytes]:
        """Return the first messages: ``syncing`` from a follower that has caught up, or inclusions.

        A node that builds its own chain sends no ``syncing`` message, like geth.
        """
        if self.kind == TRANSACTION_INCLUSION:
            (tx_hash,) = self.hashes
            located = node.chain.locate(tx_hash)
            found = [] if located is None else [inclusion(node, INCLUDED, *located, self.full)]
            return ended(node, self, found)
        caught_up = node.upstream_age is not None and node.sync_state is None
        return [b"false"] if self.kind == SYNCING and caught_up else []


class TransactionEvent:
    """A transaction entered the pool."""

    kinds = frozenset((NEW_PENDING_TRANSACTIONS,))

    def __init__(self, transaction: Any) -> None:
        self.transaction = transaction

    def hashes(self) -> Iterator[bytes]:
        """Return no hashes, because a transaction that enters the pool is not confirmed."""
        return iter(())

    def messages(self, topic: Topic) -> list[bytes]:
        """Return the hash or the object of the transaction."""
        if topic.full:
            return [encode(transaction_json(self.transaction))]
        return [encode(hex_bytes(self.transaction.hash))]


class HeadEvent:
    """The canonical chain changed."""

    kinds = frozenset(
        (NEW_HEADS, LOGS, TRANSACTION_RECEIPTS, TRANSACTION_INCLUSION, PENDING_LOGS, STATE_CHANGES)
    )

    def __init__(
        self,
        node: Node,
        change: HeadChange,
        sent: WithdrawnLogs,
        reported: ReportedState,
        position: StatePosition | None,
    ) -> None:
        self.node = node
        self.change = change
        self.sent = sent
        self.reported = reported
        self.position = position

    def hashes(self) -> Iterator[bytes]:
        """Return the hashes of the transactions in the new canonical blocks."""
        return (entry.hash for block in self.change.added for entry in block.transactions)

    def messages(self, topic: Topic) -> list[bytes]:
        """Return a header for each new block, or logs, of which removed logs come first.

        Removed logs are in reverse order.
        """
        if topic.kind == NEW_HEADS:
            return [encode(head_json(block, block.hash)) for block in self.change.added]
        if topic.kind == PENDING_LOGS:
            return self.withdrawn.messages(topic) if topic.removed else []
        if topic.kind == TRANSACTION_RECEIPTS:
            return list(self._receipts(topic))
        if topic.kind == TRANSACTION_INCLUSION:
            return ended(self.node, topic, list(self._inclusions(topic)))
        if topic.kind == STATE_CHANGES:
            return state_changes(self.state_step, topic)
        return self.logs.messages(topic)

    @cached_property
    def state_step(self) -> StateStep | None:
        """The step from the last reported state to the newest state."""
        return self.reported.step(self.position)

    @cached_property
    def withdrawn(self) -> "EncodedLogs":
        """The pre-confirmed logs that are not in the new chain."""
        return EncodedLogs(self.sent.take(self.node.pending()))

    def _receipts(self, topic: Topic) -> Iterator[bytes]:
        """Yield an array of receipts for each new block with at least one selected receipt."""
        for block in self.change.added:
            view = View(self.node, block)
            texts = [
                view.receipt_text(index, with_block=topic.full)
                for index, transaction in enumerate(block.transactions)
                if not topic.hashes or transaction.hash in topic.hashes
            ]
            if texts:
                yield b"[%b]" % b",".join(texts)

    def _inclusions(self, topic: Topic) -> Iterator[bytes]:
        """Yield messages that the transaction was in a removed block or is in an added block."""
        changes = [(REORGED, block) for block in self.change.removed if topic.reorgs]
        changes += [(INCLUDED, block) for block in self.change.added]
        for status, block in changes:
            for index, transaction in enumerate(block.transactions):
                if transaction.hash in topic.hashes:
                    yield inclusion(self.node, status, block, index, topic.full)

    @cached_property
    def logs(self) -> "EncodedLogs":
        """The logs of removed blocks, newest first, then the logs of added blocks."""
        gone = [log for block in self.change.removed for log in self._logs(block, True)[::-1]]
        new = [log for block in self.change.added for log in self._logs(block, False)]
        return EncodedLogs(gone + new)

    def _logs(self, block: Block, removed: bool) -> list[tuple[Log, bytes]]:
        view = View(self.node, block)
        try:
            receipts = view.receipts
        except UnknownBlockError:  # a side block that was dropped in the meantime
            return []
        answer, position = [], 0
        for index, receipt in enumerate(receipts):
            for entry in receipt.logs:
                told = view.log_text(entry, index, position, removed=removed)
                answer.append((entry, told))
                position += 1
        return answer


class SliceMemory:
    """Caches the encoded transactions of the pending block from slice to slice."""

    def __init__(self) -> None:
        self._block: tuple[int, bytes, int] | None = None
        self._known: list[tuple[bytes, bytes]] = []

    def objects(self, view: View) -> list[bytes]:
        """Return the encoded objects of all transactions in the block so far."""
        header, transactions = view.block.header, view.block.transactions
        block = (header.number, header.parent_hash, header.timestamp)
        count = len(self._known)
        same = all(
            known[0] == transaction.hash
            for known, transaction in zip(self._known, transactions, strict=False)
        )
        if block != self._block or count > len(transactions) or not same:
            self._block, self._known, count = block, [], 0
        for index in range(count, len(transactions)):
            told = encode(view.transaction_json(index))
            self._known.append((transactions[index].hash, told))
        return [told for _, told in self._known]


class SliceEvent:
    """A slice was published. ``new`` are the indices of the added transactions."""

    kinds = frozenset((PENDING_LOGS, NEW_SLICES, NEW_SLICE_TRANSACTIONS, STATE_CHANGES))

    def __init__(
        self,
        node: Node,
        pending: PendingBlock,
        new: range,
        memory: SliceMemory,
        sent: WithdrawnLogs,
        reported: ReportedState,
    ) -> None:
        self.sent = sent
        self.reported = reported
        self.pending = pending
        self.view = View.of_pending(node, pending)
        self.new = new
        self.memory = memory

    def hashes(self) -> Iterator[bytes]:
        """Return the hashes of the new transactions."""
        return (self.pending.transactions[index].hash for index in self.new)

    def messages(self, topic: Topic) -> list[bytes]:
        """Return the block so far, or the logs, hashes or objects that the slice added."""
        if topic.kind == PENDING_LOGS:
            new = self.logs.messages(topic)
            return [*self.withdrawn.messages(topic), *new] if topic.removed else new
        if topic.kind == NEW_SLICES:
            return [self._block()]
        if topic.kind == STATE_CHANGES:
            return state_changes(self.state_step, topic)
        if not topic.full:
            return [encode(hex_bytes(transaction_hash)) for transaction_hash in self.hashes()]
        wanted = topic.wanted
        if wanted is None:
            return self.outcomes
        hit = {self._origins[position] for position in self.logs.table.select(wanted)}
        return [told for index, told in zip(self.new, self.outcomes, strict=True) if index in hit]

    @cached_property
    def state_step(self) -> StateStep | None:
        """The step from the last reported state to the newest state."""
        return self.reported.step(StatePosition.of_slice(self.pending))

    @cached_property
    def withdrawn(self) -> "EncodedLogs":
        """The pre-confirmed logs that this slice no longer has. Records the new logs."""
        gone, position = self.sent.take(self.pending), self._first_log
        for index in self.new:
            count = len(self.pending.receipts[index].logs)
            if count:
                removed = partial(self._removed, index, position)
                self.sent.add(self.pending.transactions[index].hash, removed)
            position += count
        return EncodedLogs(gone)

    def _removed(self, index: int, position: int) -> list[tuple[Log, bytes]]:
        """Return the logs of a transaction as removed. ``position`` is the first log's index."""
        logs = self.pending.receipts[index].logs
        return [
            (entry, self.view.log_text(entry, index, position + at, removed=True))
            for at, entry in enumerate(logs)
        ]

    @cached_property
    def logs(self) -> "EncodedLogs":
        """The logs that the slice added."""
        told, position = [], self._first_log
        for index in self.new:
            for entry in self.pending.receipts[index].logs:
                told.append((entry, self.view.log_text(entry, index, position)))
                position += 1
        return EncodedLogs(told)

    @cached_property
    def _origins(self) -> list[int]:
        """The transaction index of each new log."""
        return [index for index in self.new for _ in self.pending.receipts[index].logs]

    @cached_property
    def outcomes(self) -> list[bytes]:
        """The new transactions as objects, with members of their receipts."""
        receipts, position, told = self.pending.receipts, self._first_log, []
        for index in self.new:
            transaction = self.view.block.transactions[index]
            outcome = self.view.writer.outcome(receipts[index], transaction, index, position)
            answer = encode(self.view.transaction_json(index))
            told.append(b"%b,%b}" % (answer[:-1], outcome))
            position += len(receipts[index].logs)
        return told

    @property
    def _first_log(self) -> int:
        return sum(len(receipt.logs) for receipt in self.pending.receipts[: self.new.start])

    def _block(self) -> bytes:
        answer = self.view.block_json(full=False)
        answer["transactions"] = [msgspec.Raw(told) for told in self.memory.objects(self.view)]
        return encode(answer)


class WithdrawalEvent:
    """The pending block was withdrawn. The newest state is again the state of the head."""

    kinds = frozenset((STATE_CHANGES,))

    def __init__(self, reported: ReportedState, position: StatePosition) -> None:
        self.reported = reported
        self.position = position

    def hashes(self) -> Iterator[bytes]:
        """Return no hashes, because a withdrawal does not confirm transactions."""
        return iter(())

    def messages(self, topic: Topic) -> list[bytes]:
        """Return the changes of accounts that the withdrawal caused."""
        return state_changes(self.state_step, topic)

    @cached_property
    def state_step(self) -> StateStep | None:
        """The step from the last reported state to the newest state."""
        return self.reported.step(self.position)


Event = TransactionEvent | HeadEvent | SliceEvent | WithdrawalEvent


def state_changes(step: StateStep | None, topic: Topic) -> list[bytes]:
    """Return the messages about accounts that the topic selects."""
    return [] if step is None else step.messages(topic.addresses)


class EncodedLogs:
    """Logs with their JSON texts, which all topics share."""

    def __init__(self, logs: list[tuple[Log, bytes]]) -> None:
        self.texts = [text for _, text in logs]
        self.table = LogTable([entry for entry, _ in logs])

    def messages(self, topic: Topic) -> list[bytes]:
        """Return the texts of the logs that a topic selects."""
        if topic.wanted is None or not self.texts:
            return self.texts
        return [self.texts[position] for position in self.table.select(topic.wanted)]


def inclusion(node: Node, status: str, block: Block, index: int, with_block: bool) -> bytes:
    """Return the message (EIP-8072) that a transaction joined or left a block."""
    receipt = b"null"
    if status != REORGED:
        receipt = View(node, block).receipt_text(index, with_block=with_block)
    return encode(
        {
            "status": status,
            "blockHash": hex_bytes(block.hash),
            "blockNumber": quantity(block.number),
            "transactionIndex": quantity(index),
            "receipt": msgspec.Raw(receipt),
        }
    )


def ended(node: Node, topic: Topic, messages: list[bytes]) -> list[bytes]:
    """Return the messages about an inclusion, and mark the last message of the subscription.

    The mark is the type `LastMessage`.
    """
    if not topic.reorgs:
        return [LastMessage(message) for message in messages[:1]]
    (tx_hash,) = topic.hashes
    located, finalized = node.chain.locate(tx_hash), 2 * node.slots_in_an_epoch
    if located is None or located[0].number > node.chain.head.number - finalized:
        return messages
    return [*messages, LastMessage(inclusion(node, FINALIZED, *located, topic.full))]
