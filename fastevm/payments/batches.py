"""Captures that go together: one transaction through Multicall3, in which each may fail alone.

Only what anybody may submit can go this way, since the token sees Multicall3 as its caller: orders
of the kind TRANSFER. RECEIVE is for the recipient's account, and an escrow obeys its operator's:
these have a transaction each. So do payers with code, whose contracts decide when they are called
how much gas is left for the others.

What becomes of each order is read from its own events, never from the receipt's status alone.
"""

import logging
from asyncio import to_thread
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from fastevm.payments.authorization import Kind
from fastevm.payments.erc6492 import MULTICALL, in_one_call, results_of, unwrap
from fastevm.payments.errors import CaptureRefused, LimitReached, NodeRefusal, PaymentError
from fastevm.payments.escrow import taking
from fastevm.payments.metrics import Metrics
from fastevm.payments.orders import Order
from fastevm.payments.policy import BATCH_GAS
from fastevm.payments.preflight import PENDING, Preflight, Report, failure_of
from fastevm.payments.reasons import Reason, decode_revert
from fastevm.payments.signatures import Signature
from fastevm.payments.states import State
from fastevm.payments.store import Store
from fastevm.payments.transactions import Transactions
from fastevm.rpc_client.messages import Call

log: Final = logging.getLogger(__name__)

LEAST: Final = 2  # orders that one transaction is made for
NO_CODE: Final = ("0x", None)

Ends = dict[str, PaymentError | None]


class Part(NamedTuple):
    """An order, what its pre-flight said, and the call that captures it."""

    report: Report
    call: tuple[str, bytes]

    @property
    def order_id(self) -> str:
        """The order."""
        return self.report.order_id

    @property
    def gas(self) -> int:
        """What it would take in a transaction of its own: in one with others it takes less."""
        return self.report.gas or 0


class Batches:
    """Puts captures together and submits them."""

    def __init__(
        self,
        store: Store,
        transactions: Transactions,
        preflight: Preflight,
        metrics: Metrics,
        tell: Callable[[Order], Order],
    ) -> None:
        self.store, self.transactions, self.preflight = store, transactions, preflight
        self.node, self.policy = transactions.node, transactions.policy
        self.metrics, self._tell = metrics, tell
        self._told = False

    async def submit(self, order_ids: Sequence[str]) -> Ends:
        """Submit what can go together; None for what was, its error for what was refused.

        Orders that are not in the answer need a transaction of their own, or are none that can be
        captured now: capturing them alone tells.
        """
        ends: Ends = {}
        if self.policy.batch < LEAST:
            return ends
        try:
            for parts in self._chunks(await self._ready(order_ids, ends)):
                if len(parts) >= LEAST:
                    await self._submit(parts, ends)
        except PaymentError as error:
            log.warning("no captures go together now: %s", type(error).__name__)
        return ends

    async def _ready(self, order_ids: Sequence[str], ends: Ends) -> list[Part]:
        """What can go together and would succeed alone."""
        found = await to_thread(self._candidates, order_ids)
        if len(found) < LEAST:
            return []
        payers = sorted({order.authorization.terms.payer for order, _ in found.values()})
        here, *codes = await self.node.batch(
            [("eth_getCode", [one, PENDING]) for one in (MULTICALL, *payers)]
        )
        if isinstance(here, NodeRefusal) or here in NO_CODE:
            self._say_missing()
            return []
        keys = {payer for payer, code in zip(payers, codes, strict=True) if code in NO_CODE}
        orders = [order for order, _ in found.values() if order.authorization.terms.payer in keys]
        if len(orders) < LEAST:
            return []
        parts = []
        for order, report in zip(orders, await self.preflight.check(orders), strict=True):
            if report.capturable and report.gas:
                parts.append(Part(report, taking(order, found[order.id][1])))
            elif not report.capturable:
                self._refuse(report, ends)
        return parts

    def _candidates(self, order_ids: Sequence[str]) -> dict[str, tuple[Order, Signature]]:
        """Stored orders that anybody may submit, with their signatures."""
        found = {}
        for order_id in dict.fromkeys(order_ids):
            try:
                order = self.store.order(order_id)
                signature = self.preflight.signature_of(order)
            except PaymentError:
                continue
            alone = order.authorization.kind is not Kind.TRANSFER or order.annex
            if order.state is not State.STORED or alone or signature is None:
                continue
            if unwrap(signature.secret_bytes) is None:
                found[order_id] = order, signature
        return found

    def _say_missing(self) -> None:
        if not self._told:
            log.warning("Multicall3 has no code at %s: captures have a transaction each", MULTICALL)
        self._told = True

    def _refuse(self, report: Report, ends: Ends) -> None:
        """Say that it was refused; whoever uses the nonce may be paying: capturing alone tells."""
        if report.verdict("nonce").ok is False:
            return
        ends[report.order_id] = CaptureRefused(report)
        if report.reason is not None:
            self.metrics.count("refusals_total", reason=report.reason.value)

    def _chunks(self, parts: Sequence[Part]) -> Iterator[list[Part]]:
        """As many as the policy and ``BATCH_GAS`` let go together."""
        chunk: list[Part] = []
        for part in parts:
            gas = self.policy.gas_limit(sum(one.gas for one in (*chunk, part)))
            if len(chunk) == self.policy.batch or (chunk and gas > BATCH_GAS):
                yield chunk
                chunk = []
            chunk.append(part)
        if chunk:
            yield chunk

    async def _submit(self, parts: Sequence[Part], ends: Ends) -> None:
        """Simulate them together, leave out what would fail, and submit the others."""
        good, gas = await self._simulated(parts, ends)
        if len(good) < LEAST:
            return
        refused = await self.transactions.submit_many({one.order_id: one.call for one in good}, gas)
        self.metrics.count("batches_total")
        for part in good:
            error = refused.get(part.order_id)
            if error is None:
                ends[part.order_id] = None
                self._tell(await to_thread(self.store.order, part.order_id))
                self.metrics.count("captures_total", state=State.CAPTURING.value)
            elif isinstance(error, LimitReached):
                ends[part.order_id] = error
                self.metrics.count("limit_refusals_total", limit="day")

    async def _simulated(self, parts: Sequence[Part], ends: Ends) -> tuple[list[Part], int]:
        """Those that succeed one after the other at ``pending``, and their gas; none if unsure."""
        told, gas = await self._ask(parts)
        results = results_of(bytes.fromhex(told[2:])) if isinstance(told, str) else None
        if results is None or len(results) != len(parts):
            why = failure_of(told)[1] if isinstance(told, NodeRefusal) else "not understood"
            log.warning("the simulation of %d captures together: %s", len(parts), why)
            return [], 0
        good = []
        for part, (succeeds, output) in zip(parts, results, strict=True):
            if succeeds:
                good.append(part)
            else:
                self._refuse(part.report.refused(*decode_revert(output)), ends)
        if len(good) < LEAST:
            return [], 0
        if gas is None or len(good) < len(parts):
            _, gas = await self._ask(good)
        if gas is None:  # the chain has moved, or the account is short
            gas = sum(one.gas for one in good)
        return (good, gas) if await self._affordable(gas) else ([], 0)

    async def _ask(self, parts: Sequence[Part]) -> tuple[Any, int | None]:
        """What each call answers at ``pending``, and the gas with which all of them succeed.

        The latter is asked with calls that may not fail: with those that may, a node looks for the
        gas with which the outer call succeeds, whatever fails inside.
        """
        asked: list[Call] = []
        calls = [one.call for one in parts]
        for method, may_fail in (("eth_call", True), ("eth_estimateGas", False)):
            to, data = in_one_call(calls, may_fail=may_fail)
            call = {"from": self.transactions.signer.address, "to": to, "data": "0x" + data.hex()}
            asked.append((method, [call, PENDING]))
        told, estimate = await self.node.batch(asked)
        return told, int(estimate, 16) if isinstance(estimate, str) else None

    async def _affordable(self, gas: int) -> bool:
        """Whether the account can pay for all of it; otherwise as many as it can pay go alone."""
        quote = self.preflight.quote
        assert quote is not None
        sender = self.transactions.signer.address
        funds = int(await self.node.call("eth_getBalance", sender, "latest"), 16)
        promised = await to_thread(self.preflight.outstanding)
        enough = funds >= self.policy.gas_limit(gas) * quote.cap + promised
        if not enough:
            log.warning("%s: captures go alone", Reason.GAS_FUNDS.value)
        return enough
