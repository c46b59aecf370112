"""The follower part of a node, which takes canonical blocks and slices from another node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.errors import FastevmError, InvalidTransaction
from fastevm.node.following.block_import import SyncState
from fastevm.node.following.feed_follower import FeedFollower, Publish
from fastevm.node.following.service import PENDING_AGE, SyncService
from fastevm.node.following.upstream import UpstreamError
from fastevm.node.remote.local_pending import Forecasts, NoLocalPending
from fastevm.node.remote.remote_state import LocalState
from fastevm.node.submission import Submission
from fastevm.rpc_client.messages import RpcRefusal

DEFAULT_POLL_MS = 200
REFUSALS = {
    "nonce too low": "nonce_too_low",
    "insufficient funds": "insufficient_funds",
    "already known": "already_known",
    "replacement transaction underpriced": "replacement_underpriced",
}


class NoFollower:
    """The follower part of a node that follows no other node.

    Its pool keeps submitted transactions.
    """

    forwards = False  # whether submitted transactions go to another node

    def __init__(self, submission: Submission) -> None:
        self.submission = submission

    @property
    def has_slices(self) -> bool:
        """Whether a feed updates the pending block."""
        return False

    @property
    def guesses_pending(self) -> bool:
        """Whether this node builds the pending block itself, without pre-confirmation."""
        return False

    @property
    def sync_state(self) -> SyncState | None:
        """The progress of the sync, or None if the node is in sync or does not follow."""
        return None

    @property
    def upstream_age(self) -> float | None:
        """Seconds since this node last had its upstream's head. None without an upstream."""
        return None

    @property
    def connections(self) -> dict[str, bool]:
        """Whether the connections to other nodes are open, by name."""
        return {}

    @property
    def unverified(self) -> tuple[str, ...] | None:
        """Names of pending-block values that cannot be verified.

        None if there is no pending block.
        """
        return None

    def on_foreign_chain(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener(text)`` when the upstream turns out to be on another chain."""

    def submit(self, raw: bytes) -> bytes:
        """Accepts a signed transaction, see :meth:`Submission.submit`."""
        return self.submission.submit(raw)

    def submit_signed(self, raw: bytes, sender: bytes) -> bytes:
        """Accepts a transaction of ``sender``, see :meth:`Submission.submit_signed`."""
        return self.submission.submit_signed(raw, sender)

    def begin_to_forward(self, raw: bytes) -> Future[bytes]:
        """Starts to send a transaction to the upstream. Raises FastevmError without an upstream."""
        raise FastevmError("this node follows no other node")

    def metrics(self) -> Mapping[str, float]:
        """Returns gauges by name."""
        return {}

    async def start(self) -> None:
        """Starts following."""

    async def stop(self) -> None:
        """Stops following."""


class Follower(NoFollower):
    """The part of a node that follows ``upstream_url``, and the feed of slices at ``feed_url``.

    Forwards submitted transactions to the upstream. ``add_block`` imports a canonical block.
    ``publish(pending, notify)`` receives each pending block of the feed. Without a feed,
    ``publish_guess(pending)`` receives the pending blocks that this node builds. For other
    arguments see `Node.follow`.
    """

    forwards = True

    def __init__(
        self,
        submission: Submission,
        remote: LocalState,
        *,
        add_block: Callable[[Block], BlockResult],
        publish: Publish,
        publish_guess: Callable[[PendingBlock], None],
        metrics: MetricsRegistry,
        upstream_url: str,
        feed_url: str | None,
        poll_ms: int = DEFAULT_POLL_MS,
        pending_age: float = PENDING_AGE,
    ) -> None:
        super().__init__(submission)
        producer = submission.producer
        lock = producer.lock
        feed = FeedFollower(submission.chain, publish, lock=lock, metrics=metrics)
        feed.missing_state = remote.fetcher
        self.sync = SyncService(
            submission.chain,
            feed,
            add_block=add_block,
            lock=lock,
            metrics=metrics,
            upstream_url=upstream_url,
            feed_url=feed_url,
            poll_seconds=poll_ms / 1000,
            jump=remote.jump,
            lag_seconds=remote.lag_seconds,
            pending_age=pending_age,
        )
        self.local_pending: NoLocalPending = Forecasts(producer, publish_guess)
        if feed_url is None:
            self.local_pending = remote.local_pending(producer, publish_guess)
        submission.on_transaction(self.local_pending.wake)

    @property
    def has_slices(self) -> bool:
        """Whether there is a feed with transactions.

        A feed is assumed to have transactions until it sends only headers. Feeds send no slices if
        blocks replace slices (Base, Denim).
        """
        return self.sync.has_slices and not self.submission.chain.has_base_time

    @property
    def guesses_pending(self) -> bool:
        """Whether this node builds the pending block itself, without pre-confirmation."""
        return self.local_pending.is_built

    @property
    def sync_state(self) -> SyncState | None:
        """The progress of the sync, or None if the node is in sync."""
        return self.sync.block_import.sync_state

    @property
    def upstream_age(self) -> float:
        """Seconds since this node last had its upstream's head."""
        return self.sync.upstream_age

    @property
    def connections(self) -> dict[str, bool]:
        """Whether the connections to the upstream and the feed are open, by name."""
        return self.sync.connections

    @property
    def unverified(self) -> tuple[str, ...] | None:
        """Names of pending-block values that cannot be verified.

        None if there is no pending block.
        """
        return self.sync.follower.unverified

    def on_foreign_chain(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener(text)`` when the upstream turns out to be on another chain."""
        self.sync.on_foreign = listener

    # --- submitted transactions -------------------------------------------------------------------

    def submit(self, raw: bytes) -> bytes:
        """Forwards a transaction and waits for the upstream. Must not run on the event loop."""
        return self.begin_to_forward(raw).result()

    def submit_signed(self, raw: bytes, sender: bytes) -> bytes:
        """Forwards a transaction, see `submit`. The upstream recovers the sender itself."""
        return self.submit(raw)

    def begin_to_forward(self, raw: bytes) -> Future[bytes]:
        """Checks a transaction and sends it to the upstream, without waiting for the answer.

        The future has the transaction's hash, or the exception that `submit` would raise.
        """
        transaction = self.submission.admit(raw)
        try:
            return self.sync.begin(self._forward(raw, transaction))
        except UpstreamError:
            self.submission.pool.drop(transaction.hash)
            raise

    async def _forward(self, raw: bytes, transaction: Transaction) -> bytes:
        """Sends a transaction to the upstream.

        If the upstream refuses it, removes it from the pool.
        """
        pool = self.submission.pool
        try:
            await self.sync.forward(raw)
        except RpcRefusal as error:
            if "already known" not in error.message:
                pool.drop(transaction.hash)
                raise InvalidTransaction(refusal_code(error.message), error.message) from error
        except UpstreamError:
            pool.drop(transaction.hash)
            raise
        self.submission.announce(transaction)
        return transaction.hash

    # --- start and stop ---------------------------------------------------------------------------

    def metrics(self) -> Mapping[str, float]:
        """Returns the ages of upstream and feed in seconds, and a gauge for each unverifiable
        value.
        """
        values: dict[str, float] = {"upstream_age_seconds": self.upstream_age}
        values |= {f'pending_unverified{{member="{item}"}}': 1 for item in self.unverified or ()}
        if self.sync.feed_age is not None:
            values["feed_age_seconds"] = self.sync.feed_age
        return values

    async def start(self) -> None:
        """Starts following, on the running event loop."""
        await self.sync.start()
        await asyncio.to_thread(self.local_pending.start)  # local_pending may fetch state

    async def stop(self) -> None:
        """Stops following and closes the connections."""
        await self.sync.stop()
        await asyncio.to_thread(self.local_pending.stop)


def refusal_code(message: str) -> str:
    """Returns fastevm's error code for the refusal message of another node."""
    for text, code in REFUSALS.items():
        if message.startswith(text):
            return code
    return "upstream"
