"""Updates ledger, orders and transactions to the canonical head, in repeated passes.

A pass starts with one batch that asks for the head, recent checkpoints, the account and every
transaction without a result. If nothing has changed, this batch is the whole pass.
"""

import asyncio
import contextlib
import logging
from asyncio import to_thread
from collections.abc import Callable, Sequence
from typing import Any, Final

from fastevm.core.primitives.replace import replace
from fastevm.payments.chain import Chain, Head, head_of
from fastevm.payments.errors import NodeUnreachable, OtherChain, PaymentError
from fastevm.payments.metrics import Metrics
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Order
from fastevm.payments.scanner import POINTS, Scanner
from fastevm.payments.settlement import Settler
from fastevm.payments.states import State
from fastevm.payments.store import Store
from fastevm.payments.transactions import Situation, Transactions
from fastevm.rpc_client.messages import Call

log: Final = logging.getLogger(__name__)

LONGEST_PAUSE: Final = 30.0  # seconds; maximum backoff after failed passes
MOVING: Final = (State.CAPTURING, State.AUTHORIZING, State.CANCELLING, State.CAPTURED)

# Exceptions from parsing a malformed answer of a provider.
ODD_ANSWERS: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)


class Reconciler:
    """Runs the passes of one back end and notifies listeners of changed orders."""

    def __init__(
        self,
        node: NodeClient,
        store: Store,
        chain: Chain,
        scanner: Scanner,
        transactions: Transactions,
        metrics: Metrics,
    ) -> None:
        self.node, self.store, self.chain, self.metrics = node, store, chain, metrics
        self.scanner, self.transactions = scanner, transactions
        self.settler = Settler(store, scanner.token, chain, self._changed)
        self.listeners: list[Callable[[Order], None]] = []
        # further coroutines of each pass; called with the block hashes that a reorg removed
        self.extra: list[Callable[[Sequence[str]], Any]] = []
        self.seen: Situation | None = None
        self._changed_orders: list[Order] = []
        self._pass: asyncio.Task[None] | None = None

    def _changed(self, order: Order) -> None:
        self._changed_orders.append(order)

    async def close(self) -> None:
        """Cancels the running pass."""
        if self._pass is not None:
            self._pass.cancel()
            await asyncio.gather(self._pass, return_exceptions=True)

    # --- passes -----------------------------------------------------------------------------------

    async def reconcile(self) -> None:
        """Runs one pass; concurrent callers share it.

        Raises OtherChain if the node's chain was restarted. Raises NodeUnreachable, NodeRefusal,
        NodeBehind, WrongChain, ReorganisedMeanwhile or StoreError; the next pass then continues
        without loss.
        """
        if self._pass is None or self._pass.done():
            self._pass = asyncio.create_task(self._reconcile())
        await asyncio.shield(self._pass)

    async def _reconcile(self) -> None:
        try:
            await self._pass_through()
            self.metrics.count("passes_total")
        except ODD_ANSWERS as error:
            log.warning("malformed answer of the node", exc_info=True)
            raise NodeUnreachable(f"malformed answer of the node: {error!r}") from None
        finally:
            self._notify_changed()

    async def _pass_through(self) -> None:
        points = (await to_thread(self.store.checkpoints, self.scanner.scope))[:POINTS]
        groups = await to_thread(self.transactions.open_groups)
        asked: list[Call] = [
            ("eth_chainId", []),
            ("eth_getBlockByNumber", ["latest", False]),
            *(("eth_getBlockByNumber", [hex(point.number), False]) for point in points),
        ]
        answers = await self.node.batch([*asked, *self.transactions.asked(groups)])
        self.chain.check_id(answers[0])
        head = head_of(answers[1])
        if head is None:
            raise NodeUnreachable("the node returned no latest block")
        self.metrics.set("head", head.number)
        self.seen = self.transactions.read(groups, answers[len(asked) :])
        dead = await self.scanner.scan(head, answers[2 : len(asked)])
        await to_thread(self.settler.apply_ledger)
        await to_thread(self.settler.apply_to_movements, dead)
        await self.settler.confirm(self.node)
        behind = self.scanner.behind > 0
        self.metrics.set("node_behind_blocks", self.scanner.behind)
        self.metrics.set("block_seconds", self.chain.block_seconds)
        deep = -1 if self.scanner.deep is None else self.scanner.deep.number
        await self.transactions.follow(self.seen, behind=behind, deep=deep)
        await to_thread(self.settler.apply_to_movements, ())
        await to_thread(self.settler.release)
        for step in self.extra:
            await step(dead)
        if self.scanner.deep is not None:
            await to_thread(self.settler.expire, self.scanner.deep.timestamp)

    async def head(self) -> Head:
        """Returns the latest block. Raises WrongChain if the node is on another chain."""
        chain_id, block = await self.node.batch(
            [("eth_chainId", []), ("eth_getBlockByNumber", ["latest", False])]
        )
        self.chain.check_id(chain_id)
        head = head_of(block)
        if head is None:
            raise NodeUnreachable("the node returned no latest block")
        return head

    # --- continuous operation ---------------------------------------------------------------------

    async def run(self) -> None:
        """Reconciles until cancelled: at every log of the subscription, and periodically.

        Errors are logged and counted; the next pass tries again, with exponential backoff. Raises
        OtherChain if the node's chain was restarted, because no later pass can succeed.
        """
        wake = asyncio.Event()
        streams: list[asyncio.Task[None]] = []
        failures = 0
        try:
            while True:
                wake.clear()
                try:
                    if not streams and self.node.feed_url is not None:
                        streams = await self._streams(wake)
                    await self.reconcile()
                    failures = 0
                except OtherChain:
                    raise
                except Exception as error:  # the back end must keep running
                    failures += 1
                    self._failed(error)
                pause = await self._pause(failures)
                # not wait_for: before Python 3.12 it can swallow a cancellation
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await wake.wait()
        finally:
            for stream in streams:
                stream.cancel()
            await asyncio.gather(*streams, return_exceptions=True)

    def _failed(self, error: Exception) -> None:
        name = type(error).__name__
        self.metrics.count("pass_failures_total", error=name)
        if isinstance(error, PaymentError):
            log.warning("reconciliation stopped: %s: %s", name, error)
        else:
            log.exception("reconciliation stopped")

    async def _pause(self, failures: int) -> float:
        """Returns the seconds until the next pass.

        The pause is short with open transactions and longer after failures.
        """
        policy = self.chain.policy
        try:
            moving = await to_thread(self._moving)
        except PaymentError:
            moving = False
        usual = self.chain.pause() if moving else policy.scan_every
        if not failures:
            return usual
        return float(min(max(policy.poll, 0.05) * 2 ** min(failures, 16), LONGEST_PAUSE))

    def _moving(self) -> bool:
        if self.store.orders(MOVING, limit=1):
            return True
        return bool(self.store.movements(open_only=True))

    async def _streams(self, wake: asyncio.Event) -> list[asyncio.Task[None]]:
        wanted = (await to_thread(self.scanner.filters))[:2]
        return [asyncio.create_task(self._listen(log_filter, wake)) for log_filter in wanted]

    async def _listen(self, wanted: dict[str, Any], wake: asyncio.Event) -> None:
        """Stores the logs of a subscription. Wakes :meth:`run` if a pass is needed.

        A pass is needed after a new or removed log, and after a new connection.
        """
        while True:
            try:
                async for notification in self.node.subscribe("logs", wanted):
                    if notification is None:  # a new connection, perhaps to a restarted node
                        self.scanner.trusted = False
                    if notification is None or await self.scanner.apply_log(notification):
                        wake.set()
            except Exception as error:  # the next scan reads what was missed
                self._failed(error)
                await asyncio.sleep(self.chain.policy.scan_every)

    # --- listeners --------------------------------------------------------------------------------

    def notify(self, order: Order) -> Order:
        """Calls every listener. Counts the errors of listeners and continues with the others."""
        log.info("order %s is %s", order.id, order.state.value)
        for listener in self.listeners:
            try:
                listener(order)
            except Exception:  # the caller's code
                self.metrics.count("listener_failures_total")
                log.exception("a listener raised an exception")
        return order

    def _notify_changed(self) -> None:
        changed, self._changed_orders[:] = list(self._changed_orders), []
        for order in changed:
            self.notify(replace(order))
