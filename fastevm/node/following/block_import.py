"""Imports the upstream's canonical chain: new blocks, reorganisations and a new genesis."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from threading import RLock
from typing import Any, NamedTuple

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.types import Block
from fastevm.core.simulation.deadline import WATCHDOG, Deadline
from fastevm.errors import InvalidBlock, StateUnavailableError
from fastevm.node.following.upstream import Upstream, UpstreamError
from fastevm.rpc_client.messages import METHOD_NOT_FOUND, RpcRefusal, shown_address
from fastevm.rpc_types.blocks import block_from_json

log = logging.getLogger(__name__)

FETCH_AHEAD = 16  # blocks requested concurrently
MAX_BRANCH = 512  # most blocks replaced in one step; a longer branch is imported in several steps
# lag in blocks after which a partial-state node jumps to the head; full nodes keep 128 states
JUMP_BLOCKS = 96
HIGHEST_NUMBER = 2**64 - 1  # highest block number, as in geth
BLOCK_SECONDS = 60.0  # most seconds to execute a block; then it is fetched again
SYNCING_BLOCKS = 3  # lag in blocks from which on the node reports syncing


class ForeignChain(UpstreamError):
    """The upstream's chain shares no block with this chain, or no block whose state is stored."""


class SyncState(NamedTuple):
    """The progress of a sync in block numbers (as ``eth_syncing``)."""

    starting: int
    current: int
    highest: int


class BlockImport:
    """Fetches blocks from the upstream and imports them.

    ``add_block`` verifies and stores a block. ``lock`` guards additions to the chain. Worker
    threads use both. ``jump(block)`` restarts the chain at the upstream's head if the states in
    between are no longer available. It is None if this node has complete states. An upstream whose
    head is an older block of this chain counts as lagging for ``lag_seconds``.
    ``in_thread(call, *args)`` runs a call in another thread.
    """

    def __init__(
        self,
        chain: Chain,
        upstream: Upstream,
        *,
        add_block: Callable[[Block], Any],
        lock: RLock,
        metrics: MetricsRegistry,
        jump: Callable[[Block], None] | None = None,
        lag_seconds: float = 0.0,
        in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread,
    ) -> None:
        self.chain, self.upstream, self.metrics = chain, upstream, metrics
        self._in_thread = in_thread
        self.raw_blocks, self.jump, self.lag_seconds = True, jump, lag_seconds
        self._lags_since: float | None = None  # monotonic seconds
        metrics.count("upstream_stale_heads_total", 0)
        self._add_block, self._lock = add_block, lock
        self._deadline = Deadline()  # deadline of the block that is being executed
        self._is_stopped = False
        self._starting: int | None = None
        self._highest = 0

    @property
    def sync_state(self) -> SyncState | None:
        """The progress of the sync, or None if the node is in sync."""
        starting = self._starting
        if starting is None:
            return None
        return SyncState(starting, self.chain.head.number, self._highest)

    async def check_identity(self) -> None:
        """Raises :class:`ForeignChain` unless the upstream has this chain's first block."""
        genesis, url = self.chain.genesis, self.upstream.url
        chain_id = int(await self.upstream.call("eth_chainId"), 16)
        if chain_id != self.chain.config.chain_id:
            expected = self.chain.config.chain_id
            raise ForeignChain(f"{url} has the chain id {chain_id}, this node {expected}")
        found = await self._hash_at(genesis.number)
        if found != genesis.hash:
            theirs = "none" if found is None else "0x" + found.hex()
            raise ForeignChain(
                f"{url} is on another chain: its block {genesis.number} is {theirs}, "
                f"here it is 0x{genesis.hash.hex()}"
            )

    async def follow_head(self) -> bool:
        """Imports the upstream's head and the blocks before it, at most one branch per call.

        Returns False if the upstream seems to lag. It seems to lag if its head has been an older
        block of this chain for less than ``lag_seconds``.
        """
        number, block_hash = await self._head()
        self.metrics.set("upstream_head_number", number)
        if self._lags(number, block_hash):
            self.metrics.count("upstream_stale_heads_total")
            return False
        if block_hash == self.chain.head.hash:
            return True
        self._note_distance(number)
        try:
            if self.jump is not None and number > self.chain.head.number + JUMP_BLOCKS:
                log.warning("block %d is %d blocks ahead: begun anew there", number, self._ahead)
                await self._in_thread(self.jump, await self._fetch(number))
            else:
                await self._catch_up(number, block_hash)
        except InvalidBlock:
            self.metrics.count("upstream_invalid_blocks_total")
            raise
        finally:
            self._starting = None
        return True

    async def _head(self) -> tuple[int, bytes]:
        """Returns number and hash of the upstream's head. Raises UpstreamError if invalid."""
        head = await self.upstream.call("eth_getBlockByNumber", "latest", False)
        url = shown_address(self.upstream.url)
        try:
            number, block_hash = int(head["number"], 16), bytes.fromhex(head["hash"][2:])
        except (KeyError, TypeError, ValueError):
            raise UpstreamError(f"{url}: its head is not a block") from None
        if not 0 <= number <= HIGHEST_NUMBER:
            raise UpstreamError(f"{url}: the number of its head exceeds 64 bits")
        return number, block_hash

    def _lags(self, number: int, block_hash: bytes) -> bool:
        """Returns whether the upstream's head has been an older block for less than
        `lag_seconds`.
        """
        ours = self.chain.head.number
        if number >= ours or self.chain.canonical_hash(number) != block_hash:
            self._lags_since = None
            return False
        now = time.monotonic()
        if self._lags_since is None:
            self._lags_since = now
        return now - self._lags_since < self.lag_seconds

    @property
    def _ahead(self) -> int:
        return self._highest - self.chain.head.number

    def _note_distance(self, number: int) -> None:
        behind = number - self.chain.head.number
        self.metrics.set("upstream_behind_blocks", max(0, behind))
        self._highest = number
        self._starting = self.chain.head.number if behind >= SYNCING_BLOCKS else None

    async def _catch_up(self, number: int, block_hash: bytes) -> None:
        first = self.chain.head.number + 1
        if first > number or not await self._add_from(first, number):
            fork = await self._fork(min(number, self.chain.head.number))
            left = self.chain.head.number - fork
            log.info("the upstream left our branch after block %d, %d blocks ago", fork, left)
            if left > MAX_BRANCH:
                await self._in_thread(self._set_head, self._kept(fork))
            if not await self._add_from(fork + 1, number):
                return  # the upstream's head moved; the next call imports it
        if self.chain.block_by_hash(block_hash) is not None:
            await self._in_thread(self._set_head, block_hash)

    async def _add_from(self, first: int, last: int) -> bool:
        """Imports the upstream's blocks ``first`` to ``last``.

        Returns False if a block has no parent.
        """
        while first <= last:
            end = min(last, first + FETCH_AHEAD - 1)
            for block in await asyncio.gather(*map(self._fetch, range(first, end + 1))):
                if self.chain.block_by_hash(block.header.parent_hash) is None:
                    return False
                if self.chain.block_by_hash(block.hash) is None:
                    await self._in_thread(self._add, block)
                    self.metrics.count("upstream_blocks_total")
            first = end + 1
        return True

    def _add(self, block: Block) -> None:
        """Imports a block. Raises ResourceLimitError if its execution takes too long."""
        deadline = self._deadline = Deadline()
        if self._is_stopped:
            deadline.cancel()
        WATCHDOG.begin(deadline, BLOCK_SECONDS)
        try:
            with deadline.active():
                self._add_block(block)
        finally:
            WATCHDOG.end(deadline)

    def start(self) -> None:
        """Allows execution of blocks again after `stop`."""
        self._is_stopped = False

    def stop(self) -> None:
        """Cancels the execution of the current block and of all blocks until `start`."""
        self._is_stopped = True
        self._deadline.cancel()

    async def _fork(self, highest: int) -> int:
        """Returns the number of the newest common block, at most ``highest``."""
        await self.check_identity()
        low, high = self.chain.genesis.number, highest
        while low < high:
            middle = (low + high + 1) // 2
            if await self._hash_at(middle) == self.chain.canonical_hash(middle):
                low = middle
            else:
                high = middle - 1
        try:
            self.chain.layer_of(self._kept(low))
        except StateUnavailableError as error:
            raise ForeignChain(
                f"{self.upstream.url} left our branch too long ago: {error}"
            ) from None
        return low

    def _kept(self, number: int) -> bytes:
        block_hash = self.chain.canonical_hash(number)
        assert block_hash is not None
        return block_hash

    def _set_head(self, block_hash: bytes) -> None:
        with self._lock:
            if self.chain.head.hash != block_hash:
                self.chain.set_head(block_hash)

    async def _hash_at(self, number: int) -> bytes | None:
        found = await self.upstream.call("eth_getBlockByNumber", hex(number), False)
        return None if found is None else bytes.fromhex(found["hash"][2:])

    async def _fetch(self, number: int) -> Block:
        if self.raw_blocks:
            try:
                raw = await self.upstream.call("debug_getRawBlock", hex(number))
                return decode_block(bytes.fromhex(raw[2:]), number=number)
            except RpcRefusal as error:  # public endpoints word this refusal differently
                log.info("%s gives no raw blocks: %s", self.upstream.url, error)
                self.raw_blocks = error.code != METHOD_NOT_FOUND
        found = await self.upstream.call("eth_getBlockByNumber", hex(number), True)
        if found is None:
            raise UpstreamError(f"{self.upstream.url} has no block {number}")
        return block_from_json(found)
