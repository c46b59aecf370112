"""Reads the canonical chain into the ledger, by scans and subscriptions.

A subscription brings logs earlier than the next scan. A scan makes the ledger complete and correct:
it asks again for the blocks of stored logs, and removes the logs of blocks that are not canonical
any more. A scan starts below the newest checkpoint that is still canonical, however deep a
reorganisation was. A scan of a node that is behind removes nothing, because a block that the node
lacks may still be canonical.
"""

import logging
import time
from asyncio import to_thread
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fastevm.core.primitives.replace import replace
from fastevm.payments.authorization import Domain
from fastevm.payments.chain import Chain, Head, head_of
from fastevm.payments.errors import NodeBehind, NodeRefusal, OtherChain, ReorganisedMeanwhile
from fastevm.payments.events import ChainLog, Checkpoint, Event, read_log
from fastevm.payments.node import Answer, NodeClient
from fastevm.payments.states import State
from fastevm.payments.store import Store, every_log

log: Final = logging.getLogger(__name__)

ATTEMPTS: Final = 5  # attempts of a scan, if the chain changes during each attempt
CHOICES: Final = 500  # payers per filter
# Seconds for which the nonces of ended orders are watched: a reorganisation may free them.
WATCHED_SECONDS: Final = 86_400.0
# blocks; the smallest range that is tried after the node refused larger ranges
LEAST_RANGE: Final = 1
# error codes with which nodes refuse a too wide range
LIMIT_CODES: Final = (-32602, -32005, -32000)
OPEN_STATES: Final = (
    State.DRAFTED, State.SIGNED, State.STORED, State.CAPTURING, State.AUTHORIZING,
    State.CANCELLING,
)  # fmt: skip
SPENT_STATES: Final = (State.CANCELLED, State.FAILED, State.VOIDED)
RECEIPT: Final = "eth_getTransactionReceipt"
RESTARTED: Final = (
    "the chain was restarted, and the payments of this store are gone with the old one: pass a new"
    " --store for the new chain, or --node of the old chain"
)
POINTS: Final = 4  # newest checkpoints that every pass asks for again


class _Moved(Exception):
    """The chain changed during the scan."""


class _Unknown(Exception):
    """The node lacks a block, receipt or logs that it should have.

    Probably the URL leads to several nodes, and a node further ahead gave the previous answer.
    """


class Scanner:
    """Updates the ledger with the transfers of a recipient and token, and the payers' nonces."""

    def __init__(
        self, node: NodeClient, store: Store, token: Domain, recipient: str, chain: Chain
    ) -> None:
        self.node, self.store, self.token, self.recipient = node, store, token, recipient
        self.chain = chain
        self.deep: Head | None = None  # newest block at the policy's depth, as last seen
        self.behind = 0  # blocks by which the node was behind at the last poll
        # Whether the node's chain is that of the store; False after a start or a lost connection.
        self.trusted = False
        self._begun = False
        self._logged = -1  # newest scanned block for which a lag of the node was logged

    @property
    def scope(self) -> str:
        """The key of this scanner's checkpoints in the store."""
        return f"{self.token.chain_id}/{self.token.token}/{self.recipient}"

    @property
    def origin(self) -> str:
        """The key of the checkpoint that holds the genesis block of the store's chain."""
        return f"genesis/{self.scope}"

    # --- scanning ---------------------------------------------------------------------------------

    async def scan(self, head: Head | None = None, points: Sequence[Answer] = ()) -> list[str]:
        """Updates the ledger to the head. Returns the block hashes that a reorganisation removed.

        ``head`` and ``points`` are answers that the caller already has. Raises
        :class:`ReorganisedMeanwhile` if the chain changes during every attempt, :class:`NodeBehind`
        if the node keeps missing blocks that were seen before.
        """
        unknown = False
        for _ in range(ATTEMPTS):
            try:
                return await self._scan(head, points)
            except (_Moved, _Unknown) as moved:
                unknown = isinstance(moved, _Unknown)
                log.info("the chain changed during a scan")
            head, points = None, ()
        if unknown:
            raise NodeBehind("the node lacks blocks that were seen before")
        raise ReorganisedMeanwhile(f"the chain changed during {ATTEMPTS} scans in a row")

    async def _scan(self, head: Head | None, answers: Sequence[Answer]) -> list[str]:
        head = head or _known(await self.node.call("eth_getBlockByNumber", "latest", False))
        self.chain.look(head, time.monotonic())
        points = await to_thread(self.store.checkpoints, self.scope)
        behind = self._is_behind(head, points)
        if behind or not self.trusted:
            await self._trust(points)
        if behind:
            return []
        if points and points[0] == head.point and self.deep is not None:
            return []
        known, gone = await self._common(points, answers)
        if gone:
            await self._trust(points)
        first = self._first(head, known, points)
        width = self.chain.policy.range_blocks
        dead: list[str] = []
        while first <= head.number:
            last = min(head.number, first + width - 1)
            try:
                dead += await self._step(first, last, head, gone)
            except NodeRefusal as refusal:
                await self._check_canonical(head)
                if width == LEAST_RANGE or refusal.code not in LIMIT_CODES:
                    raise
                width = max(LEAST_RANGE, width // 2)
                continue
            first = last + 1
        return dead

    def _is_behind(self, head: Head, points: Sequence[Checkpoint]) -> bool:
        """Whether the node's head is older than the newest checkpoint.

        Also returns True if the head is another block at the checkpoint's height. Then the next
        head shows which block is canonical.
        """
        if not points:
            return False
        newest = points[0]
        self.behind = max(0, newest.number - head.number)
        rival = newest.number == head.number and newest.block_hash != head.hash
        if self.behind and newest.number != self._logged:
            self._logged = newest.number
            log.warning(
                "the node's head is block %d, and block %d was scanned before: orders do not change"
                " until the node has caught up; if its chain was restarted, it never will"
                " ('fastevm pay doctor' finds out)",
                head.number,
                newest.number,
            )
        return bool(self.behind) or rival

    def _first(self, head: Head, known: Checkpoint | None, points: Sequence[Checkpoint]) -> int:
        """Returns the first block to scan.

        The scan rereads ``overlap`` blocks, up to the newest canonical checkpoint ``known``. In a
        new store it starts at the policy's ``first_block`` or, without it, with the last
        ``overlap`` blocks up to the head.

        If no checkpoint is canonical any more, the checkpoints do not show how deep the
        reorganisation was. The scan then starts at ``first_block`` again or, without it,
        ``overlap`` blocks below the oldest checkpoint.
        """
        policy = self.chain.policy
        if known is None and policy.first_block is not None:
            return policy.first_block
        newest = known or (points[-1] if points else None)
        begin = (head.number if newest is None else newest.number) - policy.overlap + 1
        return max(0 if policy.first_block is None else policy.first_block, begin)

    async def check_chain(self) -> Head | None:
        """Returns the node's genesis block if the store has none yet and the node shows it.

        Raises OtherChain if the genesis block differs from that in the store. A restarted
        development chain soon has blocks at all heights in the store, so only a hash shows that the
        chain is another one.
        """
        answer = (await self.node.batch([("eth_getBlockByNumber", ["0x0", False])]))[0]
        genesis = None if isinstance(answer, NodeRefusal) else head_of(answer)
        known = await to_thread(self.store.checkpoints, self.origin)
        if genesis is not None and known and genesis.hash != known[0].block_hash:
            raise OtherChain(
                f"the node's genesis block is {genesis.hash}, that of this store's chain was"
                f" {known[0].block_hash}: {RESTARTED}"
            )
        return None if known else genesis

    async def _trust(self, points: Sequence[Checkpoint]) -> None:
        """Raises OtherChain as `check_chain` does. Remembers the genesis block of a new store.

        The genesis block of an older version's store is remembered if the newest of its checkpoints
        ``points`` is canonical.
        """
        genesis = await self.check_chain()
        if genesis is not None:
            asked = [("eth_getBlockByNumber", [hex(point.number), False]) for point in points[:1]]
            found = await self.node.batch(asked) if asked else []
            if all(isinstance(block, dict) and _same(block, points[0]) for block in found):
                await to_thread(self.store.check, self.origin, genesis.point)
        self.trusted = True

    async def begin(self, head: Head) -> None:
        """Stores the first checkpoint of a new store, so that no later block is missed."""
        if self._begun or self.chain.policy.first_block is not None:
            return
        if not await to_thread(self.store.checkpoints, self.scope):
            await self._trust(())
            await to_thread(self.store.check, self.scope, head.point)
        self._begun = True

    async def _common(
        self, points: Sequence[Checkpoint], answers: Sequence[Answer]
    ) -> tuple[Checkpoint | None, list[Checkpoint]]:
        """Returns the newest canonical checkpoint, and all newer, non-canonical checkpoints.

        ``answers`` are the node's blocks at the heights of the first checkpoints, as far as they
        are known.
        """
        step, at = 16, 0
        if answers:
            asked = points[: len(answers)]
            canonical = [_same(block, point) for block, point in zip(answers, asked, strict=False)]
            if True in canonical:
                return points[canonical.index(True)], list(points[: canonical.index(True)])
            at = len(canonical)
        while at < len(points):
            asked = points[at : at + step]
            canonical = await self._canonical(asked)
            if True in canonical:
                offset = canonical.index(True)
                return asked[offset], list(points[: at + offset])
            at, step = at + step, step * 4
        return None, list(points)

    async def _canonical(self, points: Sequence[Checkpoint]) -> list[bool]:
        asked = [("eth_getBlockByNumber", [hex(point.number), False]) for point in points]
        found = await self.node.batch(asked) if asked else []
        return [_same(block, point) for block, point in zip(found, points, strict=True)]

    async def _check_canonical(self, head: Head) -> None:
        """Raises _Moved if the block is not canonical any more."""
        if not all(await self._canonical([head.point])):
            raise _Moved

    async def _step(
        self, first: int, last: int, head: Head, gone: Sequence[Checkpoint]
    ) -> list[str]:
        """Scans one range of blocks. Returns the hashes of blocks that a reorganisation removed.

        One batch asks for the logs, and for the blocks that show whether they are canonical. A load
        balancer sends a batch to one node, so logs and blocks match.
        """
        reach = {"fromBlock": hex(first), "toBlock": hex(last)}
        filters = await to_thread(self.filters)
        blocks = await to_thread(self.store.blocks, self.token.chain_id, first)
        blocks = [block for block in blocks if block.number <= last]
        extra = self._extra(head) if last == head.number else []
        answers = await self.node.batch(
            [
                *(("eth_getLogs", [{**log_filter, **reach}]) for log_filter in filters),
                *(("eth_getBlockByNumber", [hex(block.number), False]) for block in blocks),
                ("eth_getBlockByNumber", [hex(last), False]),
                *extra,
            ]
        )
        found = [raw for answer in answers[: len(filters)] for raw in _logs(answer)]
        standing = answers[len(filters) : len(filters) + len(blocks)]
        canonical = [_same(block, point) for block, point in zip(standing, blocks, strict=True)]
        dead = [block.block_hash for block, good in zip(blocks, canonical, strict=True) if not good]
        end = _known(answers[len(filters) + len(blocks)])
        if last == head.number and end != head:
            raise _Moved
        logs = await self._whole(found, [block for block in blocks if block.block_hash not in dead])
        await to_thread(self._keep, dead, logs, end.point, gone)
        if last == head.number:
            self._note(head, answers[len(answers) - len(extra) :])
        return dead

    def _extra(self, head: Head) -> list[Any]:
        """Returns the calls to add when the scan reaches the head.

        The calls ask for the block at the policy's depth and, until the block time is known, for
        the block from which it is measured.
        """
        depth = self.chain.policy.depth
        deep = depth if isinstance(depth, str) else hex(max(0, head.number - depth + 1))
        pace = self.chain.pace_call(head)
        asked: list[Any] = [("eth_getBlockByNumber", [deep, False])]
        return asked if pace is None else [*asked, pace]

    def _note(self, head: Head, answers: Sequence[Answer]) -> None:
        found = None if isinstance(answers[0], NodeRefusal) else head_of(answers[0])
        number = self.chain.newest_confirmed_number(head, found)
        self.deep = found if number is not None and found and found.number == number else None
        if len(answers) > 1:
            self.chain.pace(head, answers[1])

    def _keep(
        self,
        dead: Sequence[str],
        logs: Sequence[ChainLog],
        end: Checkpoint,
        gone: Sequence[Checkpoint],
    ) -> None:
        chain_id = self.token.chain_id
        if dead:
            count = self.store.drop_blocks(chain_id, dead)
            log.warning("a reorganisation removed %d logs of %d blocks", count, len(dead))
        if logs:
            self.store.take(chain_id, logs)
        self.store.check(self.scope, end, gone=gone)

    async def _whole(
        self, found: Iterable[dict[str, Any]], known: Sequence[Checkpoint] = ()
    ) -> list[ChainLog]:
        """Returns all events of the transactions that contain the logs ``found``.

        Leaves out stored transactions of ``known`` blocks.
        """
        block_of = {raw["transactionHash"]: raw["blockHash"] for raw in found}
        kept = await to_thread(self._kept, known)
        asked = [key for key, block in block_of.items() if (block, key) not in kept]
        logs: list[ChainLog] = []
        for key, receipt in zip(
            asked, await self.node.batch([(RECEIPT, [tx_hash]) for tx_hash in asked]), strict=True
        ):
            if not isinstance(receipt, dict):
                raise _Unknown
            chain_logs = [read for raw in receipt["logs"] if (read := read_log(raw)) is not None]
            if receipt["blockHash"] != block_of[key]:
                raise _Moved
            if not chain_logs:
                raise _Unknown  # a node may have the receipt before the logs
            logs += chain_logs
        return await self._timed(logs)

    async def _timed(self, logs: list[ChainLog]) -> list[ChainLog]:
        """Adds the timestamps of memos from their blocks, if the node's logs have none."""
        untimed = {
            chain_log.key.block_hash
            for chain_log in logs
            if chain_log.event is Event.MEMO and chain_log.timestamp is None
        }
        if not untimed:
            return logs
        asked = [("eth_getBlockByHash", [block_hash, False]) for block_hash in sorted(untimed)]
        times = {head.hash: head.timestamp for head in map(_known, await self.node.batch(asked))}
        return [
            replace(chain_log, timestamp=times.get(chain_log.key.block_hash, chain_log.timestamp))
            for chain_log in logs
        ]

    def _kept(self, blocks: Sequence[Checkpoint]) -> set[tuple[str, str]]:
        """Returns (block hash, transaction hash) of the stored logs of these blocks."""
        if not blocks:
            return set()
        first = min(block.number for block in blocks)
        found = every_log(self.store, self.token.chain_id, first=first)
        return {(chain_log.key.block_hash, chain_log.key.transaction_hash) for chain_log in found}

    def filters(self) -> list[dict[str, Any]]:
        """Returns the log filters: the recipient's transfers in and out, and its payers' nonces."""
        us, token = word(self.recipient), self.token.token
        transfer = Event.TRANSFER.topic
        spent = [Event.USED.topic, Event.CANCELED.topic]
        since = time.time() - WATCHED_SECONDS
        watched = self.store.payers(OPEN_STATES, SPENT_STATES, since)
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

    async def apply_log(self, raw: dict[str, Any]) -> bool:
        """Applies one log of a subscription. Returns whether a scan is needed.

        A new log is stored with all logs of its transaction. A removed log changes nothing and
        makes a scan necessary, because the answer of one node is not enough to undo a payment.
        Until a scan has checked the chain, every log only makes a scan necessary.
        """
        if raw.get("removed") or not self.trusted:
            return True
        try:
            logs = await self._whole([raw])
        except (_Moved, _Unknown):
            return False  # a later log or the next scan applies it
        return bool(await to_thread(self.store.take, self.token.chain_id, logs))


def word(address: str) -> str:
    """Returns an address as a log topic."""
    return "0x" + address[2:].lower().rjust(64, "0")


def _known(block: Answer) -> Head:
    head = head_of(block)
    if head is None:
        raise _Unknown
    return head


def _same(block: Answer, point: Checkpoint) -> bool:
    """Whether ``block`` and ``point`` are the same block.

    Raises _Unknown if the node has no such block.
    """
    return _known(block).hash == point.block_hash


def _logs(answer: Answer) -> list[dict[str, Any]]:
    if isinstance(answer, NodeRefusal):
        raise answer
    if not isinstance(answer, list):
        raise _Unknown
    return answer
