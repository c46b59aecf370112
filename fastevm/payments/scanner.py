"""Reads the canonical chain into the ledger: scans restore the truth, a stream is faster.

A scan trusts nothing that it knows: blocks that it has logs of are asked for again by number, and
those that are not canonical any more take their logs with them. It begins below the newest block
that is still canonical, however deep a reorganisation went.
"""

import logging
import time
from asyncio import to_thread
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fastevm.payments.authorization import Domain
from fastevm.payments.errors import NodeRefusal, ReorganisedMeanwhile
from fastevm.payments.events import ChainLog, Checkpoint, Event, LogKey, read_log
from fastevm.payments.node import NodeClient
from fastevm.payments.states import State
from fastevm.payments.store import Store

log: Final = logging.getLogger(__name__)

ATTEMPTS: Final = 5  # at a scan that the chain moves under
CHOICES: Final = 500  # payers of one filter
WATCHED_SECONDS: Final = 86_400.0  # that a burned nonce is watched, should a reorganisation free it
LEAST_RANGE: Final = 1  # blocks, when a node refuses wider ones
LIMIT_CODES: Final = (-32602, -32005, -32000)  # what nodes say of ranges that are too wide
OPEN_STATES: Final = (
    State.DRAFTED, State.SIGNED, State.STORED, State.CAPTURING, State.CANCELLING,
)  # fmt: skip
SPENT_STATES: Final = (State.CANCELLED, State.FAILED)

Head = Checkpoint


class _Moved(Exception):
    """The chain is another one than a moment ago."""


class Scanner:
    """Keeps the ledger of one recipient and one token, and of the nonces of those who pay it."""

    def __init__(
        self,
        node: NodeClient,
        store: Store,
        token: Domain,
        recipient: str,
        *,
        overlap: int,
        first_block: int = 0,
        range_blocks: int = 2_000,
    ) -> None:
        self.node, self.store, self.token, self.recipient = node, store, token, recipient
        self.overlap, self.first_block, self.range_blocks = overlap, first_block, range_blocks

    @property
    def scope(self) -> str:
        """What this scanner looks for: another one's progress is not its own."""
        return f"{self.token.chain_id}/{self.token.token}/{self.recipient}"

    # --- scanning ---------------------------------------------------------------------------------

    async def scan(self) -> Head:
        """Bring the ledger up to the head, and say which head that was.

        :class:`ReorganisedMeanwhile` when the chain does not stand still for long enough.
        """
        for _ in range(ATTEMPTS):
            try:
                return await self._scan()
            except _Moved:
                log.info("the chain moved under a scan")
        raise ReorganisedMeanwhile(f"the chain moved under {ATTEMPTS} scans in a row")

    async def _scan(self) -> Head:
        head = _point(await self.node.call("eth_getBlockByNumber", "latest", False))
        known, gone = await self._common()
        first = max(self.first_block, 0 if known is None else known.number - self.overlap + 1)
        await self._drop_dead_blocks(first)
        width = self.range_blocks
        while first <= head.number:
            last = min(head.number, first + width - 1)
            try:
                logs = await self._read(first, last)
            except NodeRefusal as refusal:
                await self._still(head)
                if width == LEAST_RANGE or refusal.code not in LIMIT_CODES:
                    raise
                width = max(LEAST_RANGE, width // 2)
                continue
            end = head if last == head.number else await self._block(last)
            await self._still(end)
            await to_thread(self._keep, logs, end, gone)
            first = last + 1
        return head

    async def _common(self) -> tuple[Checkpoint | None, list[Checkpoint]]:
        """The newest point that is still canonical, and the newer ones that are not."""
        points = await to_thread(self.store.checkpoints, self.scope)
        step, at = 16, 0
        while at < len(points):
            asked = points[at : at + step]
            canonical = await self._canonical(asked)
            for offset, good in enumerate(canonical):
                if good:
                    return asked[offset], points[: at + offset]
            at, step = at + step, step * 4
        return None, points

    async def _drop_dead_blocks(self, first: int) -> None:
        """Undo the logs of blocks that are not canonical any more."""
        chain_id = self.token.chain_id
        blocks = await to_thread(self.store.blocks, chain_id, first)
        canonical = await self._canonical(blocks)
        dead = [block.block_hash for block, good in zip(blocks, canonical, strict=True) if not good]
        if dead:
            count = await to_thread(self.store.drop_blocks, chain_id, dead)
            log.warning("a reorganisation removed %d logs of %d blocks", count, len(dead))

    async def _canonical(self, points: Sequence[Checkpoint]) -> list[bool]:
        asked = [("eth_getBlockByNumber", [hex(point.number), False]) for point in points]
        found = await self.node.batch(asked) if asked else []
        return [
            isinstance(block, dict) and block["hash"] == point.block_hash
            for point, block in zip(points, found, strict=True)
        ]

    async def _block(self, number: int) -> Checkpoint:
        return _point(await self.node.call("eth_getBlockByNumber", hex(number), False))

    async def _still(self, point: Checkpoint) -> None:
        """What was read up to this block belongs to the chain that it is in."""
        if not all(await self._canonical([point])):
            raise _Moved

    def _keep(self, logs: Sequence[ChainLog], end: Checkpoint, gone: Sequence[Checkpoint]) -> None:
        self.store.take(self.token.chain_id, logs)
        self.store.check(self.scope, end, gone=gone)

    async def _read(self, first: int, last: int) -> list[ChainLog]:
        """Everything of interest in a range: all events of each transaction that concerns us."""
        reach = {"fromBlock": hex(first), "toBlock": hex(last)}
        asked = [("eth_getLogs", [{**one, **reach}]) for one in await to_thread(self.filters)]
        found: list[dict[str, Any]] = []
        for answer in await self.node.batch(asked):
            if isinstance(answer, NodeRefusal):
                raise answer
            found += answer
        return await self._whole(found)

    async def _whole(self, found: Iterable[dict[str, Any]]) -> list[ChainLog]:
        """All events of the transactions that these logs are of."""
        places = {one["transactionHash"]: one["blockHash"] for one in found}
        asked = [("eth_getTransactionReceipt", [key]) for key in places]
        logs: list[ChainLog] = []
        for receipt in await self.node.batch(asked) if asked else []:
            if not isinstance(receipt, dict):
                raise _Moved
            if receipt["blockHash"] != places[receipt["transactionHash"]]:
                raise _Moved
            logs += [read for one in receipt["logs"] if (read := read_log(one)) is not None]
        return logs

    def filters(self) -> list[dict[str, Any]]:
        """What to ask the node for: our transfers, both ways, and nonces of our payers."""
        us, token = word(self.recipient), self.token.token
        transfer = Event.TRANSFER.topic
        spent = [Event.USED.topic, Event.CANCELED.topic]
        since = time.time() - WATCHED_SECONDS
        watched = self.store.payers(self.token.chain_id, OPEN_STATES, SPENT_STATES, since)
        payers = sorted(word(payer) for payer in watched)
        return [
            {"address": token, "topics": [transfer, None, us]},
            {"address": token, "topics": [transfer, us]},
            *(
                {"address": token, "topics": [spent, payers[at : at + CHOICES]]}
                for at in range(0, len(payers), CHOICES)
            ),
        ]

    # --- streaming --------------------------------------------------------------------------------

    async def hear(self, told: dict[str, Any]) -> bool:
        """Apply one log of a subscription; whether the ledger changed.

        What joined the chain is taken with its whole transaction; what left it is undone at once.
        """
        chain_id = self.token.chain_id
        if told.get("removed"):
            key = LogKey(told["blockHash"], told["transactionHash"], int(told["logIndex"], 16))
            return bool(await to_thread(self.store.drop, chain_id, [key]))
        try:
            logs = await self._whole([told])
        except _Moved:
            return False  # another message or the next scan tells
        return bool(await to_thread(self.store.take, chain_id, logs))


def word(address: str) -> str:
    """An address as a topic."""
    return "0x" + address[2:].lower().rjust(64, "0")


def _point(block: dict[str, Any] | None) -> Checkpoint:
    if block is None:
        raise _Moved
    return Checkpoint(int(block["number"], 16), block["hash"])
