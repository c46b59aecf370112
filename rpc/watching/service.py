"""Keeps the answers of all ``fastevm_watch`` subscriptions up to date, in its own thread.

Subscriptions with the same block tag and the same rule for BASEFEE (see `Dialect`) share a `Watch`,
which runs equal questions once. Events of the node only wake the thread. The thread runs on the
newest state and skips slices that come while it works. It passes messages to the event loop in
batches and waits until the loop has accepted a batch before it builds the next batch.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field

from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.node import Node
from fastevm.rpc.dispatch.envelope import encode
from fastevm.rpc.dispatch.workers import lower_priority
from fastevm.rpc.errors import RpcError
from fastevm.rpc.freshness import extends_head
from fastevm.rpc.limits import Limits
from fastevm.rpc.view import View
from fastevm.rpc.watching.answers import Sent, answer_json
from fastevm.rpc.watching.request import PENDING, Question, WatchRequest
from fastevm.simulate import Change, Watch, WatchCounters

log: Final = logging.getLogger("fastevm.rpc")

# Niceness of the service's thread: above that of the event loop and of the thread that builds
# slices, and below that of worker threads (`NICENESS`), so that requests do not delay the answers.
WATCH_NICENESS: Final = 2
RETRY_SECONDS: Final = 0.1  # seconds until a subscriber that fell behind is tried again
HANDOVER_SECONDS: Final = 5.0  # seconds that the event loop may take to accept a batch of messages
TOO_MUCH_GAS: Final = "the answers of one address use {gas} gas, more than {limit}"
TOO_LARGE: Final = "the answers of {whose} have {size} bytes, more than {limit}"
UNREADABLE: Final = "the answer cannot be written: {fault}"
FAILED: Final = "questions could not be added: {fault}"

# counters whose values are summed over all watches
COUNTED: Final = ("touched", "ran", "unchanged", "kept", "late", "seconds")


class Subscriber(Protocol):
    """A client's subscription. ``has_room`` says whether the queue accepts a message now."""

    @property
    def client(self) -> str: ...
    def has_room(self) -> bool: ...
    def deliver(self, messages: Sequence[bytes]) -> bool: ...
    def close(self, cause: str) -> None: ...


class Position(Struct, frozen=True, eq=False):
    """A state that questions run on. ``published`` is in monotonic seconds, None for a block."""

    source: object  # the PendingBlock or the Block
    view: View
    amendments: int = 0  # the chain's count of state amendments
    slice_index: int | None = None
    published: float | None = None

    def is_at(self, other: "Position | None") -> bool:
        """Return whether this position and ``other`` have the same state."""
        if other is None or other.source is not self.source:
            return False
        return other.amendments == self.amendments

    def members(self) -> dict[str, Any]:
        """Return the members of a message that identify the state."""
        is_slice = self.slice_index is not None
        return {
            "blockNumber": quantity(self.view.block.number),
            "blockHash": None if is_slice else hex_bytes(self.view.block.hash),
            "index": self.slice_index,
        }


def newest(node: Node, tag: str) -> Position:
    """Return the pre-confirmed state for `PENDING` if there is one, else the state of the head."""
    pending = node.pending() if tag == PENDING else None
    if pending is not None and node.pre_confirms and extends_head(node, pending):
        view = View.of_pending(node, pending)
        return Position(pending, view, slice_index=pending.slice_index, published=pending.published)
    head, amendments = node.chain.head, node.chain.amendments
    return Position(head, View(node, head, amendments=amendments), amendments)


class Standing(Struct, eq=False):
    """A subscription, and the values last sent to its client.

    After `add`, only the service's thread uses the object.
    """

    request: WatchRequest
    subscriber: Subscriber
    ids: list[int] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    gas: int = 0  # gas of all answers
    size: int = 0  # bytes of all answers
    sequence: int = 0
    missed: int = 0
    is_behind: bool = True
    is_new: bool = True
    is_gone: bool = False


class Lane:
    """All questions with equal block tag and BASEFEE rule, with their subscribers."""

    def __init__(self, tag: str, watch: Watch) -> None:
        self.tag, self.watch = tag, watch
        self.position: Position | None = None
        self.standing: dict[Standing, None] = {}
        # question id -> its subscriptions and the index in each
        self.listeners: defaultdict[int, list[tuple[Standing, int]]] = defaultdict(list)
        self._ids: dict[bytes, int] = {}
        self._questions: dict[int, Question] = {}

    def add(self, standing: Standing) -> None:
        """Add a subscription, and the questions that the watch does not have yet."""
        questions = standing.request.questions
        new = {q.text: q for q in questions if q.text not in self._ids}
        ids = self.watch.add_many([question.content for question in new.values()])
        for (text, question), id in zip(new.items(), ids, strict=True):
            self._ids[text], self._questions[id] = id, question
        standing.ids = [self._ids[question.text] for question in questions]
        standing.sent = [Sent() for _ in questions]
        for index, id in enumerate(standing.ids):
            self.listeners[id].append((standing, index))
        self.standing[standing] = None

    def drop(self, standing: Standing) -> None:
        """Remove a subscription, and the questions that no other subscription has."""
        if standing not in self.standing:
            return
        del self.standing[standing]
        for id in set(standing.ids):
            self.listeners[id] = [one for one in self.listeners[id] if one[0] is not standing]
            if not self.listeners[id]:
                del self.listeners[id], self._ids[self._questions.pop(id).text]
                self.watch.remove([id])

    def question(self, id: int) -> Question:
        """Return the question with this id."""
        return self._questions[id]

    def move(self, position: Position, budget: float) -> list[Change]:
        """Update the answers to the state ``position``, for at most ``budget`` seconds.

        Returns the changes.
        """
        if position.is_at(self.position):
            return self.watch.refresh(budget=budget)
        state, self.position = position.view.state(), position
        return self.watch.advance(state, slice_index=position.slice_index, budget=budget)


class WatchService:
    """Serves all ``fastevm_watch`` subscriptions of a node. Its thread runs while any exist."""

    def __init__(self, node: Node, limits: Limits) -> None:
        self.node = node
        self.limits = limits
        self.questions = 0  # number of questions in all subscriptions
        self.steps = self.snapshots = self.missed = self.failures = 0
        self.lateness_sum = self.lateness_max = 0.0
        self.lateness_count = 0
        self._by_client: Counter[str] = Counter()
        self._gas: Counter[str] = Counter()  # gas of all answers by client
        self._sizes: Counter[str] = Counter()  # bytes of all answers by client
        self._standing: dict[Subscriber, Standing] = {}
        self._lanes: dict[tuple[str, bool], Lane] = {}
        self._past: Counter[str] = Counter()  # total counters of lanes that have ended
        self._commands: deque[tuple[str, Standing]] = deque()
        self._wakes = threading.Condition()
        self._is_awake = False
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    # --- on the event loop ------------------------------------------------------------------------

    def start(self) -> None:
        """Register with the node. Call it on the running loop."""
        self._loop = asyncio.get_running_loop()
        self.node.on_slice(lambda pending, first_new: self._moved())
        self.node.on_head(lambda change: self._moved())
        self.node.on_withdrawal(self._moved)

    async def stop(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()
        for lane in tuple(self._lanes.values()):
            lane.watch.close()
        self._wake()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def subscribe(self, request: WatchRequest, subscriber: Subscriber) -> None:
        """Answer a subscriber's questions from now on. Raises RpcError if a limit is exceeded."""
        count, client = len(request.questions), subscriber.client
        most = self.limits.client_watch_questions
        if self._by_client[client] + count > most:
            raise RpcError("too_many_questions", whose=" of one address", limit=most)
        if self.questions + count > self.limits.watch_questions:
            raise RpcError("too_many_questions", whose="", limit=self.limits.watch_questions)
        self.questions += count
        self._by_client[client] += count
        standing = Standing(request, subscriber)
        self._standing[subscriber] = standing
        self._commands.append(("add", standing))
        if self._thread is None:
            name = "fastevm-watch"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        self._wake()

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove the questions of a subscriber, if it has any."""
        standing = self._standing.pop(subscriber, None)
        if standing is None:
            return
        count, client = len(standing.request.questions), subscriber.client
        self.questions -= count
        self._by_client[client] -= count
        if not self._by_client[client]:
            del self._by_client[client]
        standing.is_gone = True
        self._commands.append(("drop", standing))
        self._wake()

    def gauges(self) -> dict[str, float]:
        """Return the metrics of the service by name."""
        counters = [lane.watch.counters for lane in tuple(self._lanes.values())]
        past = self._past
        found: dict[str, float] = {
            "watch_subscriptions": len(self._standing),
            "watch_questions": self.questions,
            "watch_distinct_questions": sum(each.questions for each in counters),
            "watch_reads": sum(each.reads for each in counters),
            "watch_memory_bytes": sum(each.memory for each in counters),
            "watch_stale": sum(each.stale for each in counters),
            "watch_steps_total": self.steps,
            "watch_snapshots_total": self.snapshots,
            "watch_messages_missed_total": self.missed,
            "watch_failures_total": self.failures,
            "watch_lateness_seconds_max": self.lateness_max,
            "watch_lateness_seconds_sum_total": self.lateness_sum,
            "watch_lateness_count_total": self.lateness_count,
        }
        for name in COUNTED:
            total = past[name] + sum(getattr(each, name) for each in counters)
            found[f"watch_{name}_total"] = total
        return found

    def _deliver(self, messages: list[tuple[Standing, bytes]], taken: threading.Event) -> None:
        try:
            for standing, payload in messages:
                if standing.is_gone:
                    continue
                if standing.subscriber.has_room():
                    standing.subscriber.deliver((payload,))
                    continue
                standing.is_behind = True
                standing.missed += 1
                self.missed += 1
        finally:
            taken.set()

    def _retry(self) -> None:
        """Schedule another attempt to send to subscribers that fell behind."""
        if self._timer is None and self._loop is not None:
            self._timer = self._loop.call_later(RETRY_SECONDS, self._retried)

    def _retried(self) -> None:
        self._timer = None
        self._wake()

    # --- on any thread ----------------------------------------------------------------------------

    def _moved(self) -> None:
        if self._standing:
            self._wake()

    def _wake(self) -> None:
        with self._wakes:
            self._is_awake = True
            self._wakes.notify()

    # --- on the thread of the service -------------------------------------------------------------

    def _run(self) -> None:
        lower_priority(WATCH_NICENESS)
        while not self._is_closed:
            with self._wakes:
                self._wakes.wait_for(lambda: self._is_awake)
                self._is_awake = False
            self._obey()
            for lane in tuple(self._lanes.values()):
                if self._is_closed:
                    break
                try:
                    if self._step(lane):
                        self._wake()
                except Exception:
                    self.failures += 1
                    if not self._is_closed:
                        log.exception("the answers of watched questions could not be updated")

    def _obey(self) -> None:
        """Process the queued commands: add and remove subscriptions."""
        while self._commands:
            command, standing = self._commands.popleft()
            key = (standing.request.tag, standing.request.shows_base_fee)
            if command == "drop":
                lane = self._lanes.get(key)
                self._account(standing, -standing.gas, -standing.size)
                if lane is not None:
                    lane.drop(standing)
                    if not lane.standing:
                        self._end(key)
            elif not standing.is_gone:
                self._begin(key, standing)

    def _begin(self, key: tuple[str, bool], standing: Standing) -> None:
        if key not in self._lanes:
            limits = self.limits
            watch = Watch(
                threads=limits.watch_threads,
                gas_cap=limits.call_gas,
                timeout=limits.watch_call_time,
                shows_base_fee=key[1],
                max_questions=limits.watch_questions,
            )
            self._lanes[key] = Lane(key[0], watch)
        try:
            self._lanes[key].add(standing)
        except Exception as fault:
            log.exception("watched questions could not be added")
            self._close(standing, FAILED.format(fault=type(fault).__name__))
        if not self._lanes[key].standing:
            self._end(key)

    def _end(self, key: tuple[str, bool]) -> None:
        watch = self._lanes.pop(key).watch
        counters: WatchCounters = watch.counters
        for name in COUNTED:
            self._past[name] += getattr(counters, name)
        watch.close()

    def _step(self, lane: Lane) -> bool:
        position = newest(self.node, lane.tag)
        is_first, is_new = lane.position is None, not position.is_at(lane.position)
        try:
            changes = lane.move(position, self.limits.watch_time)
        except Exception:
            for standing in lane.standing:
                standing.is_behind = True
            raise
        self.steps += is_new
        messages = list(self._messages(lane, position, changes, is_new))
        if messages:
            self._hand_over(messages)
        if any(standing.is_behind and not standing.is_new for standing in lane.standing):
            self._on_loop(self._retry)
        if is_new and not is_first and position.published is not None:
            late = time.monotonic() - position.published
            self.lateness_sum += late
            self.lateness_max = max(self.lateness_max, late)
            self.lateness_count += 1
        return lane.watch.counters.stale > 0

    def _messages(
        self, lane: Lane, position: Position, changes: list[Change], is_new: bool
    ) -> Iterator[tuple[Standing, bytes]]:
        for change in changes:
            for standing, index in lane.listeners.get(change.id, ()):
                self._note(standing, standing.sent[index], change)
        self._check_limits(lane)
        answers: dict[Standing, list[bytes]] = {}
        for change in changes:
            members: dict[str, Any] | None = None
            for standing, index in lane.listeners.get(change.id, ()):
                sent, wanted = standing.sent[index], standing.request.questions[index].wanted
                if standing.is_behind:
                    continue
                if not sent.wants(change, wanted):
                    continue
                if members is None:
                    members = self._members_of(lane, position, change)
                answers.setdefault(standing, []).append(encode({"question": index, **members}))
        for standing in tuple(lane.standing):
            if standing.is_behind:
                found = self._whole(lane, standing, position)
                if found is not None:
                    yield standing, found
            elif standing in answers or (standing.request.progress and is_new):
                yield standing, self._message(standing, position, answers.get(standing, []))
        self._check_limits(lane)

    def _members_of(self, lane: Lane, position: Position, change: Change) -> dict[str, Any]:
        try:
            members = answer_json(change, lane.question(change.id))
        except Exception as fault:  # other questions are answered nevertheless
            self.failures += 1
            log.exception("the answer of a watched question cannot be written")
            members = {"error": UNREADABLE.format(fault=type(fault).__name__)}
        if change.stale:
            base = change.base
            members |= {
                "stale": True,
                "blockNumber": quantity(base.number),
                "index": base.slice_index,
            }
        return members

    def _message(
        self, standing: Standing, position: Position, answers: list[bytes], **more: Any
    ) -> bytes:
        standing.sequence += 1
        head = {"sequence": standing.sequence, **position.members(), **more}
        return encode({**head, "answers": [msgspec.Raw(answer) for answer in answers]})

    def _whole(self, lane: Lane, standing: Standing, position: Position) -> bytes | None:
        """Return the message with all answers; None if one is missing or the queue is full."""
        if not standing.is_new and not standing.subscriber.has_room():
            return None
        _, changes = lane.watch.snapshot(standing.ids)
        if any(change.answer is None for change in changes):
            return None
        by_id = {change.id: change for change in changes}
        answers = []
        for index, id in enumerate(standing.ids):
            change = by_id[id]
            question = standing.request.questions[index]
            standing.sent[index].remember(change, question.wanted)
            answers.append(encode({"question": index, **self._members_of(lane, position, change)}))
            self._note(standing, standing.sent[index], change)
        missed, standing.missed = standing.missed, 0
        standing.is_behind = standing.is_new = False
        self.snapshots += 1
        return self._message(standing, position, answers, snapshot=True, missed=missed)

    # --- gas and sizes of answers -----------------------------------------------------------------

    def _note(self, standing: Standing, sent: Sent, change: Change) -> None:
        """Replace the counted gas and size of the previous answer with those of this answer."""
        used, size = change.gas_used, change.size
        self._account(standing, used - sent.used, size - sent.size)
        sent.used, sent.size = used, size

    def _account(self, standing: Standing, gas: int, size: int) -> None:
        """Add gas and bytes to the totals of the client of a subscription."""
        client = standing.subscriber.client
        standing.gas += gas
        standing.size += size
        for totals, change in ((self._gas, gas), (self._sizes, size)):
            totals[client] += change
            if not totals[client]:
                del totals[client]

    def _check_limits(self, lane: Lane) -> None:
        """End the subscriptions of clients whose answers use too much gas or memory."""
        for standing in tuple(lane.standing):
            cause = self._excess(standing.subscriber.client)
            if cause is not None:
                self._refuse(lane, standing, cause)

    def _excess(self, client: str) -> str | None:
        """Return which limit the answers of a client exceed; None if there is none.

        If the answers to all clients together are too large, only the client with the largest
        answers exceeds the limit.
        """
        limits, gas, size = self.limits, self._gas[client], self._sizes[client]
        most, total_most = limits.client_watch_answers_size, limits.watch_answers_size
        if gas > limits.client_watch_gas:
            return TOO_MUCH_GAS.format(gas=gas, limit=limits.client_watch_gas)
        if size > most:
            return TOO_LARGE.format(whose="one address", size=size, limit=most)
        total = self._sizes.total()
        if total > total_most and size == max(self._sizes.values()):
            return TOO_LARGE.format(whose="all clients", size=total, limit=total_most)
        return None

    def _refuse(self, lane: Lane, standing: Standing, cause: str) -> None:
        """End a subscription and free the memory of its answers."""
        self._account(standing, -standing.gas, -standing.size)
        lane.drop(standing)
        self._close(standing, cause)

    # --- messages to the event loop ---------------------------------------------------------------

    def _close(self, standing: Standing, cause: str) -> None:
        self._on_loop(lambda: None if standing.is_gone else standing.subscriber.close(cause))

    def _hand_over(self, messages: list[tuple[Standing, bytes]]) -> None:
        taken = threading.Event()
        if self._on_loop(lambda: self._deliver(messages, taken)):
            taken.wait(HANDOVER_SECONDS)

    def _on_loop(self, job: Callable[[], None]) -> bool:
        loop = self._loop
        if loop is None:
            return False
        with contextlib.suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(job)
            return True
        return False
