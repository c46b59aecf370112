"""Streams of changes. A slow consumer gets only the newest change of each question."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from fastevm.simulate.watch.change import Change


class Stream:
    """Changes of some questions of a `Watch`, as an iterator and an asynchronous iterator.

    A newer change of a question replaces an older change that no consumer has received yet, so at
    most one change per question waits for a slow consumer. `Change.skipped` and ``skipped`` count
    the replaced changes.
    Changes come in the order of their bases. Any thread may use a stream; each change goes to one
    consumer.
    """

    def __init__(self, ids: Iterable[int] | None, drop: Callable[[Stream], None]) -> None:
        self._drop = drop
        self._ids = None if ids is None else set(ids)
        self._waiting: dict[int, Change] = {}
        self._changed = threading.Condition()
        self._listeners: list[Callable[[], object]] = []
        self.skipped = 0
        self.is_closed = False

    def put(self, changes: Iterable[Change]) -> None:
        """Adds changes. Only the watch calls this method."""
        with self._changed:
            was_empty = not self._waiting
            for change in changes:
                if self._ids is None or change.id in self._ids:
                    self._put(change)
            has_news = was_empty and bool(self._waiting)
            if has_news:
                self._changed.notify_all()
        if has_news:
            self._call_listeners()

    def _put(self, change: Change) -> None:
        earlier = self._waiting.pop(change.id, None)
        if earlier is not None:
            change = change.after(earlier)
            self.skipped += 1
        self._waiting[change.id] = change

    def forget(self, ids: Iterable[int]) -> None:
        """Removes the waiting changes of questions that were removed.

        Only the watch calls this method.
        """
        with self._changed:
            for id in ids:
                self._waiting.pop(id, None)
                if self._ids is not None:
                    self._ids.discard(id)

    def _call_listeners(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    # --- the consumer ---

    def take(self) -> list[Change]:
        """Returns all waiting changes without blocking."""
        with self._changed:
            found = list(self._waiting.values())
            self._waiting.clear()
        return found

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is a change, at most ``timeout`` seconds.

        Returns whether there is a change.

        Returns immediately if the stream is closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.is_closed, timeout)
            return bool(self._waiting)

    def add(self, ids: Iterable[int]) -> None:
        """Adds questions. No effect on a stream of all questions."""
        with self._changed:
            if self._ids is not None:
                self._ids.update(ids)

    def discard(self, ids: Iterable[int]) -> None:
        """Removes questions and their waiting changes. No effect on a stream of all questions."""
        with self._changed:
            if self._ids is not None:
                for id in ids:
                    self._ids.discard(id)
                    self._waiting.pop(id, None)

    def on_ready(self, listener: Callable[[], object]) -> None:
        """Calls ``listener()`` when a change enters the empty stream, and on close.

        The listener runs on the thread that advances the watch and must return immediately. An
        example is ``lambda: loop.call_soon_threadsafe(event.set)``. If changes already wait, calls
        it immediately.
        """
        with self._changed:
            self._listeners.append(listener)
            is_ready = bool(self._waiting) or self.is_closed
        if is_ready:
            listener()

    def close(self) -> None:
        """Closes the stream. A consumer can still receive the waiting changes."""
        self._drop(self)
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
        self._call_listeners()

    def __iter__(self) -> Iterator[Change]:
        while True:
            self.wait()
            changes = self.take()
            if not changes and self.is_closed:
                return
            yield from changes

    async def __aiter__(self) -> AsyncIterator[Change]:
        # imported here, because it is slow; an asynchronous caller has already imported it
        from asyncio import Event, get_running_loop

        loop, ready = get_running_loop(), Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(ready.set)

        self.on_ready(wake)
        try:
            while True:
                await ready.wait()
                ready.clear()
                changes = self.take()
                for change in changes:
                    yield change
                if not changes and self.is_closed:
                    return
                if self.is_closed:
                    ready.set()
        finally:
            self._listeners.remove(wake)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
