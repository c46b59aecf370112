"""Waits for receipts. One batch asks for the receipts of all pending transactions."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from fastevm.payments.errors import NodeUnreachable
from fastevm.payments.node import NodeClient
from fastevm.rpc_client.messages import Call

INTERVAL: Final = 0.03  # seconds between two batches
RETRY_SECONDS: Final = 0.25  # seconds to wait after a node did not answer

Receipt = dict[str, Any]


class Receipts:
    """Polls for the receipts of pending transactions."""

    def __init__(self, node: NodeClient) -> None:
        self.node = node
        self._wanted: dict[str, list[asyncio.Queue[Receipt]]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def wait(
        self, hashes: Sequence[str], seconds: float, counts: Callable[[Receipt], bool]
    ) -> Receipt | None:
        """Returns the first receipt that satisfies ``counts``; None after ``seconds``."""
        queue: asyncio.Queue[Receipt] = asyncio.Queue()
        for tx_hash in hashes:
            self._wanted.setdefault(tx_hash, []).append(queue)
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        try:
            async with asyncio.timeout(seconds):
                while not counts(receipt := await queue.get()):
                    pass
                return receipt
        except TimeoutError:
            return None
        finally:
            self._forget(hashes, queue)

    def _forget(self, hashes: Sequence[str], queue: asyncio.Queue[Receipt]) -> None:
        for tx_hash in hashes:
            waiting = self._wanted[tx_hash]
            waiting.remove(queue)
            if not waiting:
                del self._wanted[tx_hash]

    async def _ask(self) -> None:
        """Polls while at least one caller waits."""
        while self._wanted:
            hashes = list(self._wanted)
            asked: list[Call] = [("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes]
            try:
                answers = await self.node.batch(asked)
            except NodeUnreachable:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for tx_hash, answer in zip(hashes, answers, strict=True):
                if isinstance(answer, dict):
                    for waiting in self._wanted.get(tx_hash, ()):
                        waiting.put_nowait(answer)
            await asyncio.sleep(INTERVAL)

    async def close(self) -> None:
        """Stops polling."""
        if self._asking is not None:
            self._asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._asking
