"""Server-sent events: pages are told at once; one that is too slow comes back for a snapshot."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from aiohttp import web

QUEUE_LIMIT: Final = 256  # events that wait for one page; more close its stream
READERS_LIMIT: Final = 200  # streams at a time
HEARTBEAT: Final = 15.0  # seconds of silence after which a comment keeps the stream open
RETRY: Final = 500  # milliseconds after which a browser comes back

Event = tuple[str, dict[str, Any]]  # name, contents


class Reader:
    """One open page: which orders it may see (None: all), and what waits for it."""

    def __init__(self, orders: frozenset[str] | None) -> None:
        self.orders = orders
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue(QUEUE_LIMIT + 1)

    def offer(self, event: Event) -> None:
        """Queue an event; a page that lags gets its end instead, and begins anew."""
        name, contents = event
        if name == "order" and self.orders is not None and contents["id"] not in self.orders:
            return
        if self.queue.qsize() < QUEUE_LIMIT:
            self.queue.put_nowait(event)
        elif not self.queue.full():
            self.queue.put_nowait(None)


class Stream:
    """Passes events on to all open pages."""

    def __init__(self) -> None:
        self._readers: set[Reader] = set()

    def tell(self, name: str, contents: dict[str, Any]) -> None:
        """Tell every page that may see it."""
        for reader in self._readers:
            reader.offer((name, contents))

    def close(self) -> None:
        """End all streams."""
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
        """Answer with the snapshot and then with what happens, until the page leaves.

        The snapshot is made when the page is already listed: nothing falls between the two.
        """
        if len(self._readers) >= READERS_LIMIT:
            raise web.HTTPServiceUnavailable(text="too many pages are open")
        reader = Reader(orders)
        with self._registered(reader):
            response = web.StreamResponse(headers={"Cache-Control": "no-store"})
            response.content_type = "text/event-stream"
            with suppress(ConnectionResetError):  # the page has left
                await response.prepare(request)
                await response.write(f"retry: {RETRY}\n\n".encode())
                for event in await snapshot():
                    await response.write(line_of(event))
                await _pass_on(reader, response)
            return response


async def _pass_on(reader: Reader, response: web.StreamResponse) -> None:
    """Write what comes, until the reader's end."""
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
    """An event on the wire; JSON has no line breaks."""
    name, contents = event
    return f"event: {name}\ndata: {json.dumps(contents)}\n\n".encode()
