"""Checks orders at every slice and reports changed verdicts."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from fastevm.payments.errors import NodeRefusal, NodeUnreachable
from fastevm.payments.node import NodeClient
from fastevm.payments.preflight import Report, Verdict

log: Final = logging.getLogger(__name__)

SLICES: Final = "newFlashblocks"
STILL: Final = 2.0  # seconds without a slice until orders are checked anyway


class Change(Struct, frozen=True):
    """A changed verdict; ``before`` is None if the order was not checked before."""

    order_id: str
    before: Verdict | None
    after: Verdict


class Watcher:
    """Checks at each slice of the node's feed or, without a feed, every ``poll`` seconds.

    Slices that arrive during a check are skipped; the next check reads the newest state.
    """

    def __init__(
        self, node: NodeClient, check: Callable[[], Awaitable[Sequence[Report]]], poll: float
    ) -> None:
        self.node, self.poll = node, poll
        self._check = check
        self._known: dict[str, Report] = {}

    async def changes(self) -> AsyncGenerator[list[Change], None]:
        """Yields non-empty lists of changes, forever. The first list has every verdict."""
        slices = self.slices()
        try:
            while True:
                try:
                    reports = await self._check()
                except (NodeUnreachable, NodeRefusal) as error:
                    log.warning("orders were not checked: %s", type(error).__name__)
                    reports = list(self._known.values())
                changes = self.compare(reports)
                if changes:
                    yield changes
                await anext(slices)
        finally:
            await slices.aclose()

    def compare(self, reports: Sequence[Report]) -> list[Change]:
        """Returns the changes since the previous reports, and keeps these as the previous ones."""
        changes = []
        for report in reports:
            known = self._known.get(report.order_id)
            for after in report.verdicts:
                before = known.verdict(after.name) if known is not None else None
                if before is None or (before.ok, before.reason) != (after.ok, after.reason):
                    changes.append(Change(report.order_id, before, after))
        self._known = {report.order_id: report for report in reports}
        return changes

    async def slices(self) -> AsyncGenerator[None, None]:
        """Yields once for each slice, or once for several that arrived meanwhile."""
        if self.node.feed_url is None:
            while True:
                await asyncio.sleep(self.poll)
                yield
        came = asyncio.Event()

        async def listen() -> None:
            async for _ in self.node.subscribe(SLICES):
                came.set()

        task = asyncio.create_task(listen())
        try:
            while True:
                # not wait_for: before Python 3.12 it can swallow a cancellation
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(STILL):
                        await came.wait()
                came.clear()
                yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
