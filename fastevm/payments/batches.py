"""Batch captures: several captures in one Multicall3 transaction.

A capture may fail without the others. The token sees Multicall3 as the caller. So only TRANSFER
authorizations, which anybody may submit, can be batched. RECEIVE requires the recipient as the
caller, PERMIT and holds require their operator. Each of these captures gets its own transaction. A
capture from a payer with code gets its own transaction too, because the payer's contract decides
how much gas is left for the other captures.

The result of each order is read from its own events, never from the status of the receipt alone.
"""

import logging
from asyncio import to_thread
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from fastevm.payments.authorization import Kind
from fastevm.payments.erc6492 import MULTICALL, in_one_call, results_of, unwrap
from fastevm.payments.errors import CaptureRefused, LimitReached, NodeRefusal, PaymentError
from fastevm.payments.escrow import collecting_call
from fastevm.payments.hidden import hiding
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

LEAST: Final = 2  # orders in a batch; a single order is captured alone
NO_CODE: Final = ("0x", None)

Ends = dict[str, PaymentError | None]


@hiding("call")  # `call` contains the payer's signature
class Part(NamedTuple):
    """An order's preflight report and the call that captures it."""

    report: Report
    call: tuple[str, bytes]

    @property
    def order_id(self) -> str:
        """The id of the order."""
        return self.report.order_id

    @property
    def gas(self) -> int:
        """The gas estimate of the capture in its own transaction. In a batch it needs less gas."""
        return self.report.gas or 0


class Batches:
    """Builds, simulates and submits batches of captures."""

    def __init__(
        self,
        store: Store,
        transactions: Transactions,
        preflight: Preflight,
        metrics: Metrics,
        notify: Callable[[Order], Order],
    ) -> None:
        self.store, self.transactions, self.preflight = store, transactions, preflight
        self.node, self.policy = transactions.node, transactions.policy
        self.metrics, self._notify = metrics, notify
        self._warned = False

    async def submit(self, order_ids: Sequence[str]) -> Ends:
        """Submits the orders that can be batched. Returns None or an error for each order id.

        None means that the order was submitted. If an order id is missing from the result, the
        order needs its own transaction or cannot be captured now. If the caller then captures the
        order alone, the capture succeeds or raises the reason.
        """
        ends: Ends = {}
        if self.policy.batch < LEAST:
            return ends
        try:
            for parts in self._chunks(await self._ready(order_ids, ends)):
                if len(parts) >= LEAST:
                    await self._submit(parts, ends)
        except PaymentError as error:
            log.warning("captures are not batched now: %s", type(error).__name__)
        return ends

    async def _ready(self, order_ids: Sequence[str], ends: Ends) -> list[Part]:
        """Returns the captures that can be batched and pass their own preflight.

        Adds the refusals to ``ends``. Returns an empty list if the chain has no Multicall3.
        """
        found = await to_thread(self._candidates, order_ids)
        if len(found) < LEAST:
            return []
        payers = sorted({order.authorization.terms.payer for order, _ in found.values()})
        here, *codes = await self.node.batch(
            [("eth_getCode", [account, PENDING]) for account in (MULTICALL, *payers)]
        )
        if isinstance(here, NodeRefusal) or here in NO_CODE:
            self._warn_missing()
            return []
        keys = {payer for payer, code in zip(payers, codes, strict=True) if code in NO_CODE}
        orders = [order for order, _ in found.values() if order.authorization.terms.payer in keys]
        if len(orders) < LEAST:
            return []
        parts = []
        for order, report in zip(orders, await self.preflight.check(orders), strict=True):
            if report.capturable and report.gas:
                parts.append(Part(report, collecting_call(order, found[order.id][1])))
            elif not report.capturable:
                self._refuse(report, ends)
        return parts

    def _candidates(self, order_ids: Sequence[str]) -> dict[str, tuple[Order, Signature]]:
        """Returns the STORED orders that anybody may capture, with their signatures.

        Leaves out ERC-6492 signatures, because their captures also deploy the payer's wallet.
        """
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

    def _warn_missing(self) -> None:
        if not self._warned:
            log.warning("no Multicall3 at %s: each capture gets its own transaction", MULTICALL)
        self._warned = True

    def _refuse(self, report: Report, ends: Ends) -> None:
        """Records the refusal of an order in ``ends``, unless its nonce is used.

        A used nonce may mean that the order is paid. To find out, the caller captures the order
        alone.
        """
        if report.verdict("nonce").ok is False:
            return
        ends[report.order_id] = CaptureRefused(report)
        if report.reason is not None:
            self.metrics.count("refusals_total", reason=report.reason.value)

    def _chunks(self, parts: Sequence[Part]) -> Iterator[list[Part]]:
        """Splits the captures into batches within ``policy.batch`` and ``BATCH_GAS``."""
        chunk: list[Part] = []
        for part in parts:
            gas = self.policy.gas_limit(sum(item.gas for item in (*chunk, part)))
            if len(chunk) == self.policy.batch or (chunk and gas > BATCH_GAS):
                yield chunk
                chunk = []
            chunk.append(part)
        if chunk:
            yield chunk

    async def _submit(self, parts: Sequence[Part], ends: Ends) -> None:
        """Simulates the batch, leaves out captures that would fail, and submits the others."""
        good, gas = await self._simulated(parts, ends)
        if len(good) < LEAST:
            return
        refused = await self.transactions.submit_many(
            {part.order_id: part.call for part in good}, gas
        )
        self.metrics.count("batches_total")
        for part in good:
            error = refused.get(part.order_id)
            if error is None:
                ends[part.order_id] = None
                self._notify(await to_thread(self.store.order, part.order_id))
                self.metrics.count("captures_total", state=State.CAPTURING.value)
            elif isinstance(error, LimitReached):
                ends[part.order_id] = error
                self.metrics.count("limit_refusals_total", limit="day")

    async def _simulated(self, parts: Sequence[Part], ends: Ends) -> tuple[list[Part], int]:
        """Simulates the captures one after the other at ``pending``.

        Returns the captures that succeed, and the gas that they need. The list is empty if fewer
        than two succeed, if the simulation fails, or if the account cannot pay.
        """
        answer, gas = await self._ask(parts)
        results = results_of(bytes.fromhex(answer[2:])) if isinstance(answer, str) else None
        if results is None or len(results) != len(parts):
            why = failure_of(answer)[1] if isinstance(answer, NodeRefusal) else "malformed answer"
            log.warning("simulating a batch of %d captures failed: %s", len(parts), why)
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
        if gas is None:  # a new head changed the result, or the sender lacks funds
            gas = sum(part.gas for part in good)
        return (good, gas) if await self._affordable(gas) else ([], 0)

    async def _ask(self, parts: Sequence[Part]) -> tuple[Any, int | None]:
        """Returns the Multicall3 output at ``pending``, and the gas with which all calls succeed.

        If the node answers with an error, the output is that error and the gas is None. For the
        estimate, no call may fail. Otherwise the node would return an amount of gas with which
        Multicall3 succeeds although every capture inside fails.
        """
        asked: list[Call] = []
        calls = [part.call for part in parts]
        for method, may_fail in (("eth_call", True), ("eth_estimateGas", False)):
            to, data = in_one_call(calls, may_fail=may_fail)
            call = {"from": self.transactions.signer.address, "to": to, "data": "0x" + data.hex()}
            asked.append((method, [call, PENDING]))
        output, estimate = await self.node.batch(asked)
        return output, int(estimate, 16) if isinstance(estimate, str) else None

    async def _affordable(self, gas: int) -> bool:
        """Whether the sender can pay the batch. If not, each capture gets its own transaction."""
        quote = self.preflight.quote
        assert quote is not None
        sender = self.transactions.signer.address
        funds = int(await self.node.call("eth_getBalance", sender, "latest"), 16)
        promised = await to_thread(self.preflight.outstanding)
        enough = funds >= self.policy.gas_limit(gas) * quote.cap + promised
        if not enough:
            log.warning("%s: captures are not batched", Reason.GAS_FUNDS.value)
        return enough
