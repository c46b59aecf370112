"""Passes events of the node to subscribers and waiting requests."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

from fastevm.chain import HeadChange, PendingBlock
from fastevm.node import Node
from fastevm.rpc.errors import RpcError
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.limits import Limits
from fastevm.rpc.metrics import Metrics
from fastevm.rpc.subscriptions.backlog import MESSAGE_MEMORY, Backlog, Parcel
from fastevm.rpc.subscriptions.filter_quota import FilterQuota
from fastevm.rpc.subscriptions.state_changes import ReportedState, StatePosition
from fastevm.rpc.subscriptions.topics import (
    ORDER,
    PENDING_LOGS,
    STATE_CHANGES,
    WATCH,
    Event,
    HeadEvent,
    SliceEvent,
    SliceMemory,
    Topic,
    TransactionEvent,
    WithdrawalEvent,
)
from fastevm.rpc.subscriptions.withdrawn_logs import WithdrawnLogs
from fastevm.rpc.watching.service import WatchService

log: Final = logging.getLogger("fastevm.rpc")

BATCH: Final = 256  # new transactions whose messages are built in one step
MESSAGES: Final = 20_000  # messages built in one step, before they are delivered
OVERRUN: Final = "events were lost: more than {limit} were queued"


class Subscriber(Protocol):
    """Receives messages. ``deliver`` queues messages and returns whether more may follow.

    ``has_room`` says whether the queue accepts a message now. Limits count by ``client``.
    """

    @property
    def client(self) -> str: ...
    def has_room(self) -> bool: ...
    def deliver(self, messages: Sequence[bytes], parcel: Parcel | None = None) -> bool: ...
    def drop(self) -> None: ...
    def close(self, cause: str) -> None: ...


class Hub:
    """Distributes events to all listeners of a node. Runs on the event loop that started it.

    The node's threads append events to a bounded queue and wake the loop once for all events that
    are queued before it runs. A thread of the hub builds each message once per distinct topic and
    puts it into the queue of each subscriber.
    """

    def __init__(self, node: Node, limits: Limits, metrics: Metrics, freshness: Freshness) -> None:
        self.node = node
        self.limits = limits
        self.metrics = metrics
        self.freshness = freshness
        self.room = FilterQuota(limits.watch_size, limits.address_watch_size)
        self.backlog = Backlog(limits.notifications_size)
        self.arrivals: deque[tuple[int, bytes]] = deque(maxlen=limits.arrivals)
        self._numbers = count(1)
        self._topics: dict[str, dict[Topic, dict[Subscriber, None]]] = {
            kind: {} for kind in (*ORDER, WATCH)
        }
        self._tells_transactions = False  # whether anyone subscribes to new pool transactions
        self._waiters: dict[bytes, set[asyncio.Event]] = {}
        self._waiting = 0  # number of reserved waiters
        self._inbox: deque[Callable[[], Event]] = deque()
        self._events: deque[Event] = deque()
        self._lost = False
        self._awake = False
        self._wake = asyncio.Event()
        self._memory = SliceMemory()
        self._sent = WithdrawnLogs(node)
        self._reported = ReportedState()
        self.watching = WatchService(node, limits)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._scribe = ThreadPoolExecutor(1, thread_name_prefix="fastevm-events")

    def start(self) -> None:
        """Register with the node. Call it on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._distribute())
        self.node.on_head(self._on_head)
        self.node.on_slice(self._on_slice)
        self.node.on_withdrawal(self._on_withdrawal)
        self.watching.start()
        self.node.on_transaction(self._on_transaction)

    async def stop(self) -> None:
        """Stop accepting events."""
        self._loop = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.watching.stop()
        self._scribe.shutdown(wait=False, cancel_futures=True)

    def subscribe(self, topic: Topic, subscriber: Subscriber) -> None:
        """Deliver events of ``topic`` to ``subscriber`` from now on.

        Raises RpcError if a ``fastevm_watch`` request exceeds the limits of the client.
        """
        if topic.watch is not None:
            self.watching.subscribe(topic.watch, subscriber)
        self._topics[topic.kind].setdefault(topic, {})[subscriber] = None
        self._look_for_transactions()
        if topic.kind == STATE_CHANGES and not self._reported.is_used:
            self._reported.begin(StatePosition.newest(self.node))

    def unsubscribe(self, topic: Topic, subscriber: Subscriber) -> None:
        """Stop delivering events of ``topic`` to ``subscriber``."""
        if topic.watch is not None:
            self.watching.unsubscribe(subscriber)
        topics = self._topics[topic.kind]
        subscribers = topics.get(topic, {})
        subscribers.pop(subscriber, None)
        if not subscribers:
            topics.pop(topic, None)
            self._look_for_transactions()
            if not self._topics[STATE_CHANGES]:
                self._reported.end()

    def _look_for_transactions(self) -> None:
        self._tells_transactions = any(self._topics[kind] for kind in TransactionEvent.kinds)

    @property
    def subscriptions(self) -> int:
        """Return the number of subscriptions."""
        return sum(len(found) for topics in self._topics.values() for found in topics.values())

    @contextmanager
    def waiter(self) -> Iterator[None]:
        """Reserve a waiter of a transaction. Raises RpcError if there are too many."""
        if self._waiting >= self.limits.sync_waiters:
            raise RpcError("overloaded", limit=self.limits.sync_waiters)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def confirmed(self, tx_hash: bytes, seen: Callable[[], bool], timeout: float) -> bool:
        """Wait until ``seen()`` is true, at most ``timeout`` seconds. Returns ``seen()``."""
        arrived = asyncio.Event()
        self._waiters.setdefault(tx_hash, set()).add(arrived)
        try:
            async with asyncio.timeout(timeout):
                while not seen():
                    await arrived.wait()
                    arrived.clear()
            return True
        except TimeoutError:
            return False
        finally:
            waiters = self._waiters[tx_hash]
            waiters.discard(arrived)
            if not waiters:
                del self._waiters[tx_hash]

    # --- on the node's threads --------------------------------------------------------------------

    def _on_head(self, change: HeadChange) -> None:
        # Later subscribers and waiters read the new head themselves.
        if self._waiters or any(self._topics.values()):
            position = StatePosition.newest(self.node) if self._reported.is_used else None
            make = partial(HeadEvent, self.node, change, self._sent, self._reported, position)
            self._hand_over(make)

    def _on_slice(self, pending: PendingBlock, first_new: int) -> None:
        self.freshness.note(pending)
        new = range(first_new, len(pending.transactions))
        known = (self._memory, self._sent, self._reported)
        self._hand_over(partial(SliceEvent, self.node, pending, new, *known))

    def _on_withdrawal(self) -> None:
        if self._reported.is_used:
            position = StatePosition.newest(self.node)
            self._hand_over(lambda: WithdrawalEvent(self._reported, position))

    def _on_transaction(self, transaction: Any) -> None:
        self.arrivals.append((next(self._numbers), transaction.hash))
        if self._tells_transactions:  # waking the loop costs as much as answering a short call
            self._hand_over(lambda: TransactionEvent(transaction))

    def _hand_over(self, event: Callable[[], Event]) -> None:
        loop = self._loop
        if loop is None:
            return
        if len(self._inbox) + len(self._events) >= self.limits.event_queue:
            self._lost = True
        else:
            self._inbox.append(event)
        if not self._awake:
            self._awake = True
            # the loop may have closed, then there are no subscribers
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._arrive)

    # --- on the event loop ------------------------------------------------------------------------

    def _arrive(self) -> None:
        self._awake = False  # reset before reading the queue: a later append wakes the loop again
        while self._inbox:
            event = self._inbox.popleft()()
            if self._waiters:
                self._tell_waiters(event.hashes())
            self._events.append(event)
        self._wake.set()

    def _tell_waiters(self, hashes: Iterable[bytes]) -> None:
        for tx_hash in hashes:
            for arrived in self._waiters.get(tx_hash, ()):
                arrived.set()

    async def _distribute(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._lost:
                self._lost = False
                self._close_all(OVERRUN.format(limit=self.limits.event_queue))
            while self._events:
                events = self._next_events()
                try:
                    await self._tell(events)
                except Exception:  # one failure must not end all subscriptions
                    log.exception("%d events were not sent to subscribers", len(events))
                del events  # they keep their messages in memory

    def _next_events(self) -> list[Event]:
        """Remove and return the next event, or the next group of new transactions."""
        events = [self._events.popleft()]
        while (
            self._events
            and len(events) < BATCH
            and isinstance(events[-1], TransactionEvent)
            and isinstance(self._events[0], TransactionEvent)
        ):
            events.append(self._events.popleft())
        return events

    async def _tell(self, events: list[Event]) -> None:
        kinds = frozenset().union(*(event.kinds for event in events))
        topics = [topic for kind in ORDER if kind in kinds for topic in self._topics[kind]]
        if not topics or self._loop is None:
            return
        if not any(topic.removed for topic in self._topics[PENDING_LOGS]):
            self._sent.clear()
        while topics and self._loop is not None:
            job = self._loop.run_in_executor(self._scribe, _messages, events, topics)
            made, size, topics = await job
            parcel = self.backlog.parcel(size)
            for topic, messages in made:
                for subscriber in tuple(self._topics[topic.kind].get(topic, ())):
                    self._deliver(topic, subscriber, messages, parcel)
                    await asyncio.sleep(0)  # lets answers to requests go out in between
            self.backlog.trim()
            topics = [topic for topic in topics if topic in self._topics[topic.kind]]

    def _deliver(
        self, topic: Topic, subscriber: Subscriber, messages: list[bytes], parcel: Parcel
    ) -> None:
        # the subscriber has left in the meantime
        if subscriber not in self._topics[topic.kind].get(topic, ()):
            return
        sent = subscriber.deliver(messages, parcel)
        counter = "notifications_total" if sent else "notifications_dropped_total"
        self.metrics.add(counter, len(messages))

    def _close_all(self, cause: str) -> None:
        all_subscribers = [found for topics in self._topics.values() for found in topics.values()]
        for subscribers in all_subscribers:
            for subscriber in tuple(subscribers):
                subscriber.close(cause)
                self.metrics.add("subscriptions_closed_overrun_total")


def _messages(
    events: list[Event], topics: list[Topic]
) -> tuple[list[tuple[Topic, list[bytes]]], int, list[Topic]]:
    """Return the messages of the first topics, their bytes of memory, and the remaining topics.

    Stops after about `MESSAGES`. Skips an event if its messages cannot be built.
    """
    answer: list[tuple[Topic, list[bytes]]] = []
    # ids of messages already counted, because topics share the messages about equal logs
    counted: set[int] = set()
    lists, size = 0, 0
    for position, topic in enumerate(topics):
        if lists >= MESSAGES:
            return answer, size, topics[position:]
        found: list[bytes] = []
        for event in events:
            if topic.kind not in event.kinds:
                continue
            try:
                messages = event.messages(topic)
            except Exception:
                log.exception("an event could not be sent to subscribers of %s", topic.kind)
                continue
            found = found + messages if found else messages
        if found:
            answer.append((topic, found))
            lists += len(found)
            new = [message for message in found if id(message) not in counted]
            counted.update(map(id, new))
            size += sum(map(len, new)) + MESSAGE_MEMORY * len(found)
    return answer, size, []
