"""The session of a client that may subscribe: calls in progress, subscriptions, sender task.

The client is connected over a `Channel`: a WebSocket or a Unix socket.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final, Protocol

from msgspec import Struct, field

from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.dispatch.envelope import encode, encode_error
from fastevm.rpc.dispatch.long_answer import LongAnswer
from fastevm.rpc.dispatch.workers import released
from fastevm.rpc.errors import RpcError, wire_error
from fastevm.rpc.subscriptions.backlog import Parcel
from fastevm.rpc.subscriptions.filter_quota import WATCH_SIZE
from fastevm.rpc.subscriptions.hub import Hub
from fastevm.rpc.subscriptions.topics import TRANSACTION_INCLUSION, LastMessage, Topic
from fastevm.rpc.transport.outbox import Entry, Frame, Outbox, OutboxOverflow
from fastevm.rpc.transport.turns import LoopShare

log: Final = logging.getLogger("fastevm.rpc")

ID_BYTES: Final = 16
SEND_SIZE: Final = 1 << 15  # bytes of messages sent before the loop serves other clients
# bytes; while a larger message is processed, no other message is read
LARGE_MESSAGE: Final = 1024 * 1024
# seconds to send the last answers to a client that has closed its sending side
LAST_ANSWERS_SECONDS: Final = 5.0
SLOW_READER: Final = "the client reads too slowly, {fullness}"
SLOWEST: Final = "the queues of all clients are full"


class Channel(Protocol):
    """A connection that carries messages in both directions."""

    listens_on: bool
    """Whether a client that has closed its sending side may still wait for answers."""

    def messages(self) -> AsyncIterator[bytes]:
        """Yield the client's messages, until it disconnects or breaks the protocol."""

    async def send(self, frames: Sequence[Frame]) -> None:
        """Send messages and wait until most is sent. Raises ConnectionError on disconnect."""


class Holder(Protocol):
    """Counts the memory of messages in progress."""

    def message_began(self, message: bytes) -> int:
        """Charge the memory of a message in progress. Return the bytes for `message_ended`."""

    def message_ended(self, memory: int) -> None:
        """Release the memory of a message that has been answered."""


class Subscription:
    """A subscription of a session: its id and its notifications.

    Notifications are held until `begin`: the client must receive the id first, and a later call in
    the same batch may already cause notifications. The limits of the queue apply to held
    notifications too.
    """

    def __init__(self, session: "Session", topic: Topic) -> None:
        self.session = session
        self.topic = topic
        self._held: list[Entry] | None = []
        self._held_size = 0
        self._overran = False
        self._newest = b""  # last inclusion message
        self.id = f"0x{int.from_bytes(os.urandom(ID_BYTES)):x}"
        self._wrap = (
            b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"%b","result":'
            % self.id.encode(),
            b"}}",
        )

    @property
    def client(self) -> str:
        """The client whose limits count this subscription."""
        return self.session.client

    def has_room(self) -> bool:
        """Return whether `deliver` would accept notifications now."""
        outbox = self.session.outbox
        if self._held is not None:
            return len(self._held) < outbox.messages and self._held_size < outbox.size
        return not outbox.full

    def deliver(self, messages: Sequence[bytes], parcel: Parcel | None = None) -> bool:
        """Queue notifications as one entry. A full queue ends the subscription.

        ``parcel`` counts the memory of messages that subscribers share. Returns False if the
        subscription ends.
        """
        if self.topic.kind == TRANSACTION_INCLUSION:
            messages = self._new_inclusions(messages)
            if not messages:
                return True
        has_room = self.has_room()
        if self._held is not None:
            if has_room:
                self._held.append(self._entry(messages, parcel))
                self._held_size += self._held[-1].size
            self._overran |= not has_room
            return has_room
        if has_room:
            self._queue(self._entry(messages, parcel))
            return True
        self._close_slow(self.session.outbox.fullness)
        return False

    def begin(self) -> None:
        """Deliver the first and the held notifications. Later ones go into the queue."""
        held, self._held = self._held or [], None
        if self._overran:
            self._close_slow(self.session.outbox.fullness)
            return
        # `deliver` has set `_newest` for held messages. Reset it, because greetings and held
        # messages may repeat the same inclusion, and `_new_inclusions` must compare them from the
        # start.
        self._newest = b""
        greetings = self.topic.greetings(self.session.hub.node)
        entries = [self._entry(greetings, None), *held] if greetings else held
        for entry in entries:
            if self.topic.kind == TRANSACTION_INCLUSION:
                entry.messages = self._new_inclusions(entry.messages)
            if entry.messages and self.id in self.session.subscriptions:
                if not self.session.outbox.full:
                    self._queue(entry)
                    continue
                self._close_slow(self.session.outbox.fullness)
            entry.release()

    def _entry(self, messages: Sequence[bytes], parcel: Parcel | None) -> Entry:
        return Entry(messages, wrap=self._wrap, reader=self, parcel=parcel)

    def _new_inclusions(self, messages: Sequence[bytes]) -> list[bytes]:
        """Return the inclusions without repetitions of the previous one, up to the last message."""
        found: list[bytes] = []
        for message in messages:
            if message != self._newest and not isinstance(self._newest, LastMessage):
                found.append(message)
                self._newest = message
        return found

    def _queue(self, entry: Entry) -> None:
        self.session.outbox.push(entry)
        if isinstance(entry.messages[-1], LastMessage):
            self.session.forget(self)

    def drop(self) -> None:
        """Remove the queued notifications and close the subscription.

        The queues of all clients together use too much memory.
        """
        self.discard_held()
        self.session.outbox.drop(self)
        if self.id in self.session.subscriptions:
            self._close_slow(SLOWEST)

    def discard_held(self) -> None:
        """Drop the held notifications. `begin` then closes the subscription."""
        if self._held:
            for entry in self._held:
                entry.release()
            self._held, self._overran = [], True

    def _close_slow(self, fullness: str) -> None:
        self.close(SLOW_READER.format(fullness=fullness))
        self.session.hub.metrics.add("subscriptions_closed_slow_total")

    def close(self, cause: str) -> None:
        """End the subscription and send the client the reason."""
        self.session.forget(self)
        error = RpcError("subscription_closed", cause=cause)
        params = {
            "subscription": self.id,
            "error": wire_error(error, self.session.dispatcher.context.dialect),
        }
        notice = {"jsonrpc": "2.0", "method": "eth_subscription", "params": params}
        self.session.outbox.push(Entry((encode(notice),)))


class SessionRequest(Struct):
    """One message of a client, and the subscriptions that it opened.

    The subscriptions receive events immediately, and deliver them once the answer is queued.
    """

    session: "Session"
    opened: list[Subscription] = field(default_factory=list)

    def subscribe(self, topic: Topic) -> str:
        """Open a subscription. Returns its id."""
        subscription = self.session.open(topic)
        self.opened.append(subscription)
        try:
            self.session.hub.subscribe(topic, subscription)
        except RpcError:
            self.session.forget(subscription)
            raise
        return subscription.id

    def unsubscribe(self, subscription_id: str) -> bool:
        """End a subscription. Returns whether the id was known."""
        return self.session.cancel(subscription_id)

    def begin(self) -> None:
        """Start delivery to the opened subscriptions that the same message did not cancel."""
        for subscription in self.opened:
            if subscription.id in self.session.subscriptions:
                subscription.begin()


class Session:
    """Reads the messages of a client, answers them concurrently and sends the answers."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        hub: Hub,
        channel: Channel,
        client: str,
        share: LoopShare,
    ) -> None:
        limits = dispatcher.context.limits
        self.dispatcher = dispatcher
        self.hub = hub
        self.channel = channel
        self.limits = limits
        self.client = client
        self.share = share
        self.unread = dispatcher.context.traffic.holding(client, self.cut)
        self.outbox = Outbox(
            messages=limits.outbound_messages,
            size=limits.outbound_size,
            hard_size=limits.socket_output_size,
            holding=self.unread,
        )
        self._overflow = asyncio.Event()
        self.subscriptions: dict[str, Subscription] = {}
        self.connection: Holder | None = None
        self.cut_off = False  # the client read nothing for too long, so no close frame is sent
        self._slots = asyncio.Semaphore(limits.socket_calls)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until the client disconnects, breaks the protocol or stops reading."""
        CLIENT.set(self.client)  # for this task and the tasks that it creates
        sender = asyncio.create_task(self._send())
        reader = asyncio.create_task(self._read(sender))
        overflow = asyncio.create_task(self._overflow.wait())
        try:
            await asyncio.wait((sender, reader, overflow), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sender, reader, overflow, *self._tasks):
                task.cancel()
            self.outbox.clear()
            for subscription in tuple(self.subscriptions.values()):
                self.forget(subscription)
            await asyncio.gather(sender, reader, overflow, *self._tasks, return_exceptions=True)
            self.unread.close()

    def open(self, topic: Topic) -> Subscription:
        """Create a subscription that does not receive events yet."""
        if len(self.subscriptions) >= self.limits.subscriptions:
            raise RpcError("too_many_subscriptions", limit=self.limits.subscriptions)
        self.hub.room.take(self.client, WATCH_SIZE + topic.memory)
        subscription = Subscription(self, topic)
        self.subscriptions[subscription.id] = subscription
        return subscription

    def cancel(self, subscription_id: str) -> bool:
        """End a subscription. Returns whether the id was known."""
        subscription = self.subscriptions.get(subscription_id)
        if subscription is None:
            return False
        self.forget(subscription)
        return True

    def forget(self, subscription: Subscription) -> None:
        """Remove a subscription without notifying the client."""
        if self.subscriptions.pop(subscription.id, None) is not None:
            self.hub.room.give_back(self.client, WATCH_SIZE + subscription.topic.memory)
        self.hub.unsubscribe(subscription.topic, subscription)
        subscription.discard_held()

    async def _read(self, sender: asyncio.Task[None]) -> None:
        async for body in self.channel.messages():
            await self._slots.acquire()
            task = asyncio.create_task(self._answer(body))
            self._tasks.add(task)
            task.add_done_callback(self._answered)
            self._count(task, body)
            if len(body) > LARGE_MESSAGE:
                await asyncio.wait((task,))
        if self.channel.listens_on:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=LAST_ANSWERS_SECONDS)
            self.outbox.end()
            await asyncio.wait((sender,))

    def _count(self, task: "asyncio.Task[None]", body: bytes) -> None:
        """Count a message's memory for the connection until its task is done."""
        connection = self.connection
        if connection is not None:
            memory = connection.message_began(body)
            task.add_done_callback(lambda _: connection.message_ended(memory))

    async def _answer(self, body: bytes) -> None:
        request = SessionRequest(self)
        respond = partial(self.dispatcher.respond, body, self.client, request)
        found = await self.share.result(respond)
        answer = found if isinstance(found, bytes) else await found
        if isinstance(answer, LongAnswer):
            answer = await self._whole(answer)
        try:
            if answer:
                await self.outbox.put(answer)
        except OutboxOverflow:
            self.cut()
            return
        request.begin()

    def cut(self) -> None:
        """End the session immediately, because too much data waits for the client."""
        self.hub.metrics.add("sockets_cut_off_total")
        self.cut_off = True
        self._overflow.set()

    async def _whole(self, answer: LongAnswer) -> bytes:
        """Join a long answer into one message. Returns an error if it is too large to join."""
        if answer.is_spooled and len(answer) > self.limits.batch_response_size:
            error = wire_error(RpcError("response_too_large"), self.dispatcher.context.dialect)
            return encode_error(answer.id, error)
        return await asyncio.to_thread(answer.read)

    def _answered(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._slots.release()
        if not task.cancelled() and task.exception() is not None:
            log.error("a message over WebSocket got no answer", exc_info=task.exception())

    async def _send(self) -> None:
        while frames := await self.outbox.take(SEND_SIZE):
            try:
                async with asyncio.timeout(self.limits.socket_send_time):
                    await self.channel.send(frames)
            except TimeoutError:
                self.hub.metrics.add("sockets_cut_off_total")
                self.cut_off = True
                return
            # a future would keep the exception, its frames and the answer alive
            except ConnectionError as error:
                released(error)
                return
            del frames
            if len(self.outbox):
                await asyncio.sleep(0)
