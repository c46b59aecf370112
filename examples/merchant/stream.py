"""Sends server-sent events to the pages. A page that is too slow reconnects and gets a snapshot."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from aiohttp import web

QUEUE_LIMIT: Final = 256  # queued events per page; more close its stream
READERS_LIMIT: Final = 200  # concurrent streams
HEARTBEAT: Final = 15.0  # seconds of silence after which a comment keeps the stream open
RETRY: Final = 500  # milliseconds until a browser reconnects

Event = tuple[str, dict[str, Any]]  # name, contents


class Reader:
    """An open page, with a queue of events. ``orders``: the orders that it may see; None: all."""

    def __init__(self, orders: frozenset[str] | None) -> None:
        self.orders = orders
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue(QUEUE_LIMIT + 1)

    def offer(self, event: Event) -> None:
        """Queues an event; if the queue is full, ends the stream so that the page reconnects."""
        name, contents = event
        if name == "order" and self.orders is not None and contents["id"] not in self.orders:
            return
        if self.queue.qsize() < QUEUE_LIMIT:
            self.queue.put_nowait(event)
        elif not self.queue.full():
            self.queue.put_nowait(None)


class Stream:
    """Sends events to all open pages."""

    def __init__(self) -> None:
        self._readers: set[Reader] = set()

    def send(self, name: str, contents: dict[str, Any]) -> None:
        """Sends an event to every page that may see it."""
        for reader in self._readers:
            reader.offer((name, contents))

    def close(self) -> None:
        """Ends all streams."""
        for reader in self._readers:
            if not reader.queue.full():
                reader.queue.put_nowait(None)

    @contextmanager
    def _registered(self, reader: Reader) -> Iterator[None]:
        self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)

    async def serve(
        self,
        request: web.Request,
        orders: frozenset[str] | None,
        snapshot: Callable[[], Awaitable[Iterable[Event]]],
    ) -> web.StreamResponse:
        """Sends a snapshot and then events, until the page disconnects.

        The page is registered before the snapshot is made, so it misses no event.
        """
        if len(self._readers) >= READERS_LIMIT:
            raise web.HTTPServiceUnavailable(text="too many pages are open")
        reader = Reader(orders)
        with self._registered(reader):
            response = web.StreamResponse(headers={"Cache-Control": "no-store"})
            response.content_type = "text/event-stream"
            with suppress(ConnectionResetError):  # the page disconnected
                await response.prepare(request)
                await response.write(f"retry: {RETRY}\n\n".encode())
                for event in await snapshot():
                    await response.write(line_of(event))
                await _pass_on(reader, response)
            return response


async def _pass_on(reader: Reader, response: web.StreamResponse) -> None:
    """Writes events until the end marker."""
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT):
                event = await reader.queue.get()
        except TimeoutError:
            await response.write(b": still here\n\n")
            continue
        if event is None:
            return
        await response.write(line_of(event))


def line_of(event: Event) -> bytes:
    """Encodes an event; JSON has no line breaks."""
    name, contents = event
    return f"event: {name}\ndata: {json.dumps(contents)}\n\n".encode()
