"""Checks orders when a slice may have changed their verdicts, and reports changed verdicts."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.payments.arguments import checked
from fastevm.payments.errors import NodeRefusal, NodeUnreachable
from fastevm.payments.node import NodeClient
from fastevm.payments.preflight import Report, Verdict

log: Final = logging.getLogger(__name__)

WATCH: Final = "fastevm_watch"
SLICES: Final = "newFlashblocks"
STILL: Final = 2.0  # seconds without a slice until orders are checked anyway
# seconds between checks of all orders, for changes that cause no notification: gas prices, windows,
# new orders
ALL_SECONDS: Final = 1.0
CALLS_OF_A_WATCH: Final = 1_000  # calls of one subscription; a node refuses more

Questions = list[tuple[dict[str, str], list[str]]]  # calls, each with the ids of its orders


class Change(Struct, frozen=True):
    """A changed verdict; ``before`` is None if the order was not checked before."""

    order_id: str
    before: Verdict | None
    after: Verdict


class Due:
    """Collects the orders to check. ``take`` waits until there is at least one."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._all = False
        self._came = asyncio.Event()

    def add(self, ids: Sequence[str]) -> None:
        """Marks orders to be checked."""
        self._ids.update(ids)
        self._came.set()

    def add_all(self) -> None:
        """Marks all orders to be checked."""
        self._all = True
        self._came.set()

    async def take(self, seconds: float) -> list[str] | None:
        """Waits for marked orders and returns their ids, or None for all orders.

        Also returns None if no order was marked within ``seconds``.
        """
        is_late = True
        # not wait_for: before Python 3.12 it can swallow a cancellation
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._came.wait()
                is_late = False
        self._came.clear()
        ids, every = sorted(self._ids), self._all or is_late
        self._ids.clear()
        self._all = False
        return None if every else ids


@checked
class Watcher:
    """Checks orders when the node reports a change that may change their verdicts.

    ``check(ids)`` checks these orders, ``check(None)`` all orders. ``questions()`` returns the
    calls of all orders that the node watches (``fastevm_watch``). If the node lacks this
    subscription, all orders are checked at each slice. Without a feed, they are checked every
    ``poll`` seconds.

    Orders that change during a check are checked together afterwards, on the newest state.
    """

    def __init__(
        self,
        node: NodeClient,
        check: Callable[[Sequence[str] | None], Awaitable[Sequence[Report]]],
        poll: float,
        questions: Callable[[], Awaitable[Questions]] | None = None,
    ) -> None:
        self.node, self.poll = node, poll
        self._check, self._questions = check, questions
        self._known: dict[str, Report] = {}

    async def changes(self) -> AsyncGenerator[list[Change], None]:
        """Yields non-empty lists of changes, forever. The first list has all verdicts."""
        due = self.due()
        ids: list[str] | None = None
        try:
            while True:
                try:
                    reports = await self._check(ids)
                except (NodeUnreachable, NodeRefusal) as error:
                    log.warning("orders were not checked: %s", type(error).__name__)
                    reports, ids = list(self._known.values()), None
                changes = self.compare(reports, ids)
                if changes:
                    yield changes
                ids = await anext(due)
        finally:
            await due.aclose()

    def compare(self, reports: Sequence[Report], ids: Sequence[str] | None = None) -> list[Change]:
        """Returns the changes since the previous reports. Keeps ``reports`` for the next call.

        ``ids`` are the checked orders, None if all orders were checked.
        """
        changes = []
        for report in reports:
            known = self._known.get(report.order_id)
            for after in report.verdicts:
                before = known.verdict(after.name) if known is not None else None
                if before is None or (before.ok, before.reason) != (after.ok, after.reason):
                    changes.append(Change(report.order_id, before, after))
        if ids is None:
            self._known.clear()
        for order_id in ids or ():
            self._known.pop(order_id, None)
        self._known.update({report.order_id: report for report in reports})
        return changes

    async def due(self) -> AsyncGenerator[list[str] | None, None]:
        """Yields the ids of the orders to check, or None for all orders."""
        if self.node.feed_url is None:
            while True:
                await asyncio.sleep(self.poll)
                yield None
        due = Due()
        has_watch = self._questions is not None
        asked: Questions | None = None
        tasks: list[asyncio.Task[None]] = []
        checked = time.monotonic()
        ids: list[str] | None = None
        try:
            while True:
                if has_watch and ids is None and self._questions is not None:
                    questions = await self._questions()
                    if questions != asked:
                        await _ended(tasks)
                        asked, tasks = questions, self._watching(questions, due)
                if has_watch and any(task.done() for task in tasks):
                    await self._refused(tasks)
                    has_watch, tasks = False, []
                if not has_watch and not tasks:
                    tasks = [asyncio.create_task(self._slices(due))]
                left = checked + ALL_SECONDS - time.monotonic() if has_watch else STILL
                ids = await due.take(max(left, 0.0))
                if ids is None:
                    checked = time.monotonic()
                yield ids
        finally:
            await _ended(tasks)

    def _watching(self, questions: Questions, due: Due) -> list[asyncio.Task[None]]:
        parts = [
            questions[first : first + CALLS_OF_A_WATCH]
            for first in range(0, len(questions), CALLS_OF_A_WATCH)
        ]
        return [asyncio.create_task(self._answers(part, due)) for part in parts]

    async def _answers(self, questions: Questions, due: Due) -> None:
        """Marks the orders of a call when the answer changes. Raises NodeRefusal if refused."""
        wanted: dict[str, Any] = {"calls": [call for call, _ in questions]}
        async for message in self.node.subscribe(WATCH, wanted):
            if message is None or message.get("snapshot"):
                due.add_all()
                continue
            for answer in message["answers"]:
                due.add(questions[answer["question"]][1])

    async def _slices(self, due: Due) -> None:
        async for _ in self.node.subscribe(SLICES):
            due.add_all()

    async def _refused(self, tasks: list[asyncio.Task[None]]) -> None:
        """Ends the tasks after one of them has failed.

        Raises the error, unless it is a refusal by the node.
        """
        for found in await _ended(tasks):
            if isinstance(found, NodeRefusal):
                log.info("the node does not watch orders, they are checked at each slice")
            elif isinstance(found, Exception):
                raise found


async def _ended(tasks: list[asyncio.Task[None]]) -> list[BaseException | None]:
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)
