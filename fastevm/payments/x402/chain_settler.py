"""One chain of a facilitator: every payment becomes one transaction, however often it is asked for.

A payment is an order under the name of its chain, token, payer and nonce. Its transaction is signed
and recorded before it is sent; whoever asks again, here or in another process, waits for the same
one. The answer comes from a receipt that holds the transfer, and is "pending" while there is none.
"""

import asyncio
import logging
import time
from asyncio import to_thread
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastevm.payments.chain import Chain
from fastevm.payments.errors import (
    DuplicateOrder,
    IllegalTransition,
    NodeRefusal,
    NodeUnreachable,
    PaymentError,
)
from fastevm.payments.events import Event, entries, read_log
from fastevm.payments.holds import Holds
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Order, Purpose, Submission
from fastevm.payments.policy import Policy
from fastevm.payments.preflight import failure_of
from fastevm.payments.routes import Direct
from fastevm.payments.settlement import Settler, pays
from fastevm.payments.signer import Signer
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store, every_order
from fastevm.payments.tokens import Token
from fastevm.payments.transactions import Transactions
from fastevm.payments.vault import Vault
from fastevm.payments.x402 import reasons
from fastevm.payments.x402.claims import BLOCK, Call, Claim
from fastevm.payments.x402.messages import Settled
from fastevm.payments.x402.reasons import Refused, Unavailable
from fastevm.payments.x402.receipts import Receipts
from fastevm.rpc_client.messages import Call as NodeCall

log: Final = logging.getLogger(__name__)

NO_BLOCK: Final = 0  # the block hash of a receipt that is only pre-confirmed
USED_TOPIC: Final = Event.USED.topic
DONE: Final = (State.CAPTURED, State.PAID, State.HELD, State.RELEASED)
TAKING: Final = (Purpose.CAPTURE, Purpose.HOLD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What an operator decides. Times in seconds.

    ``recipients`` and ``factories``: who may be paid (anybody when None), and which factories may
    deploy wallets. ``settle_for`` is how long /settle waits before it answers "pending".
    ``preconfirmed``: whether the receipt of a pre-confirmed slice is an answer; otherwise the block
    must be canonical. No payment costs more than ``most_gas``.
    """

    recipients: frozenset[str] | None = None
    factories: tuple[str, ...] = ()
    settle_for: float = 20.0
    tend_every: float = 1.0
    preconfirmed: bool = True
    most_gas: int = 500_000


class ChainSettler:
    """Collects payments of some tokens on one chain, from one account that does nothing else."""

    def __init__(
        self,
        node: NodeClient,
        store: Store,
        vault: Vault,
        signer: Signer,
        tokens: Sequence[Token],
        *,
        policy: Policy | None = None,
        rules: Rules | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not tokens or len({token.domain.chain_id for token in tokens}) != 1:
            raise ValueError("tokens: expected one or more of one chain")
        self.node, self.vault, self.signer = node, vault, signer
        self.chain_id = tokens[0].domain.chain_id
        self.store = store.scoped(f"x402/{self.chain_id}")
        self.tokens = {token.domain.token: token for token in tokens}
        self.policy, self.rules = policy or Policy(), rules or Rules()
        self.factories = self.rules.factories
        self._clock = clock
        self.transactions = Transactions(
            node, self.store, vault, signer, self.policy, chain_id=self.chain_id
        )
        self.holds = Holds(node, self.store, self.transactions, Direct(signer.address), clock=clock)
        self.receipts = Receipts(node)
        chain = Chain(node, self.chain_id, self.policy)
        self._settler = Settler(self.store, tokens[0].domain, chain, lambda order: None)
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def account(self) -> str:
        """Who sends the transactions."""
        return self.signer.address

    def now(self) -> int:
        """Seconds."""
        return int(self._clock())

    def domain_of(self, asset: str) -> Token:
        """The token, as it was read from the chain; Refused for one that is not served."""
        token = self.tokens.get(asset)
        if token is None:
            raise Refused(reasons.INVALID_REQUIREMENTS, f"{asset} is not served here")
        return token

    async def ask(self, calls: Sequence[NodeCall]) -> list[Any]:
        """Answers of the node, in one batch; Unavailable, or NodeRefusal for one of them."""
        try:
            return await self.node.batch(calls)
        except NodeUnreachable as error:
            raise Unavailable(str(error)) from None

    async def collect(self, calls: Sequence[tuple[str, bytes]]) -> Call:
        """The first of these calls that would succeed now; Refused for the last one's reason."""
        requests = [
            {"from": self.account, "to": to, "data": "0x" + data.hex()} for to, data in calls
        ]
        asked: list[NodeCall] = [("eth_estimateGas", [one, BLOCK]) for one in requests]
        answers = await self.ask([*asked, ("eth_getBalance", [self.account, BLOCK])])
        funds = answers.pop()
        for (to, data), answer in zip(calls, answers, strict=True):
            if not isinstance(answer, str):
                continue
            gas = int(answer, 16)
            if gas > self.rules.most_gas:
                raise Refused(reasons.SIMULATION, f"needs {gas} gas, more than is paid for")
            if isinstance(funds, str) and int(funds, 16) < gas:
                raise Unavailable("the facilitator's account cannot pay the gas")
            return Call(to, data, gas)
        cause, detail = failure_of(answers[-1])
        raise Refused(reasons.of_cause(cause), detail)

    # --- settling ---------------------------------------------------------------------------------

    async def settle(self, claim: Claim, check: Callable[[], Any]) -> Settled:
        """Collect once, and tell the outcome; ``check()`` gives the Call, or raises Refused."""
        lock = self._locks.setdefault(claim.order_id, asyncio.Lock())
        try:
            async with lock:
                order = await self._submitted(claim, check)
            return await self._outcome(order, time.monotonic() + self.rules.settle_for)
        finally:
            if not lock.locked():
                self._locks.pop(claim.order_id, None)

    async def known(self, claim: Claim) -> Order | None:
        """The order of this payment, if it was ever to be settled here; Refused for other terms."""
        terms, domain = claim.authorization.terms, claim.authorization.domain
        order = await to_thread(
            self.store.find, domain.token, terms.payer, "0x" + terms.nonce.hex()
        )
        if order is not None and order.authorization != claim.authorization:
            raise Refused(reasons.NONCE_USED, "the nonce belongs to another payment")
        return order

    async def _submitted(self, claim: Claim, check: Callable[[], Any]) -> Order:
        """The order with its transaction on the way, or behind it."""
        order = await self.known(claim)
        if order is not None and order.state is not State.STORED:
            return order
        call: Call = await check()
        order = order or await self._added(claim)
        trigger, purpose = Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE
        if order.annex:
            trigger, purpose = Trigger.SUBMIT_HOLD, Purpose.HOLD
        try:
            await self.transactions.submit(
                order, trigger, purpose, call.data, gas=call.gas, to=call.to
            )
        except IllegalTransition:
            log.info("order %s: another process was faster", order.id)
        except NodeRefusal as refusal:
            raise Refused(reasons.of_cause(failure_of(refusal)[0])) from None
        except NodeUnreachable as error:
            raise Unavailable(str(error)) from None
        return await to_thread(self.store.order, order.id)

    async def _added(self, claim: Claim) -> Order:
        order = Order(
            id=claim.order_id,
            authorization=claim.authorization,
            state=State.STORED,
            annex=claim.note,
        )
        sealed = self.vault.seal(claim.signature, order.place)
        made = Order(
            id=order.id,
            authorization=order.authorization,
            state=State.STORED,
            annex=claim.note,
            sealed=sealed,
        )
        try:
            return await to_thread(self.store.add, made)
        except DuplicateOrder:
            raise Refused(reasons.NONCE_USED, "the nonce belongs to another payment") from None

    # --- outcomes ---------------------------------------------------------------------------------

    async def _outcome(self, order: Order, deadline: float) -> Settled:
        """What became of an order's transactions; pending when time is up."""
        last = ""
        while True:
            sent = await to_thread(partial(self.store.submissions, order_id=order.id))
            hashes = [one.transaction_hash for one in captures(sent)]
            last = hashes[-1] if hashes else last
            left = min(self.rules.tend_every, deadline - time.monotonic())
            receipt = await self.receipts.wait(hashes, max(0.0, left), self._counts)
            if receipt is not None and int(receipt["status"], 16) == 1 and moved(receipt, order):
                return self._success(order, receipt["transactionHash"])
            if receipt is not None and int(receipt["status"], 16) == 0:
                return await self._failed(order, receipt)
            order = await to_thread(self.store.order, order.id)
            if order.state in DONE and order.settlement is not None:
                return self._success(order, order.settlement.transaction_hash)
            if order.state is State.STORED or order.state in (State.FAILED, State.EXPIRED):
                return self._refusal(order, sent)
            if time.monotonic() >= deadline:
                return self._answer(order, last, reasons.PENDING, "no receipt yet: ask again")

    def _counts(self, receipt: dict[str, Any]) -> bool:
        """Whether a receipt is an answer. A failure counts only in a canonical block."""
        canonical = int(receipt["blockHash"] or "0x0", 16) != NO_BLOCK
        return canonical or (self.rules.preconfirmed and int(receipt["status"], 16) == 1)

    async def _failed(self, order: Order, receipt: dict[str, Any]) -> Settled:
        """Our transaction reverted: unless somebody else submitted the same one, it has failed."""
        elsewhere = await self._elsewhere(order, receipt)
        if elsewhere is not None:
            return self._success(order, elsewhere)
        try:
            await self.transactions.follow()
        except PaymentError:
            log.warning("order %s: the cause of its failure was not asked", order.id)
        sent = await to_thread(partial(self.store.submissions, order_id=order.id))
        return self._refusal(order, sent)

    async def _elsewhere(self, order: Order, receipt: dict[str, Any]) -> str | None:
        """The transaction of somebody else that made this very payment."""
        terms, domain = order.authorization.terms, order.authorization.domain
        first = max(0, int(receipt["blockNumber"], 16) - self.policy.range_blocks + 1)
        payer = "0x" + terms.payer[2:].lower().rjust(64, "0")
        wanted = {
            "address": domain.token,
            "topics": [USED_TOPIC, payer, "0x" + terms.nonce.hex()],
            "fromBlock": hex(first),
            "toBlock": receipt["blockNumber"],
        }
        try:
            logs = await self.node.call("eth_getLogs", wanted)
            for one in logs:
                found = await self.node.call("eth_getTransactionReceipt", one["transactionHash"])
                if found is not None and moved(found, order):
                    await self._take(order, found)
                    return str(one["transactionHash"])
        except NodeRefusal:
            return None
        except NodeUnreachable as error:
            raise Unavailable(str(error)) from None
        return None

    def _success(self, order: Order, transaction_hash: str) -> Settled:
        return self._answer(order, transaction_hash)

    def _refusal(self, order: Order, sent: Sequence[Submission]) -> Settled:
        cause = next((one.reason for one in reversed(sent) if one.reason is not None), order.reason)
        word = reasons.TRANSACTION if cause is None else reasons.of_cause(cause, "")
        last = sent[-1].transaction_hash if sent else ""
        detail = cause.value if cause is not None else ""
        return self._answer(order, last, word or reasons.TRANSACTION, detail)

    def _answer(
        self, order: Order, transaction: str, reason: str | None = None, message: str = ""
    ) -> Settled:
        terms = order.authorization.terms
        return Settled(
            chain_id=self.chain_id,
            payer=terms.payer,
            transaction=transaction,
            amount=terms.value,
            reason=reason,
            message=message,
        )

    # --- tending ----------------------------------------------------------------------------------

    async def tend(self) -> None:
        """Send again what got lost, raise fees, and move orders as far as the chain is."""
        await self.transactions.follow()
        moving = (State.CAPTURING, State.AUTHORIZING)
        orders = await to_thread(lambda: list(every_order(self.store, moving)))
        for order in orders:
            await self._look(order)
        await self.holds.look()
        await to_thread(self._settler.settle_movements, ())
        await to_thread(self._settler.release)
        await self._settler.confirm(self.node)

    async def _look(self, order: Order) -> None:
        sent = await to_thread(partial(self.store.submissions, order_id=order.id))
        hashes = [one.transaction_hash for one in captures(sent)]
        if not hashes:
            return
        asked: list[NodeCall] = [("eth_getTransactionReceipt", [one]) for one in hashes]
        for receipt in await self.node.batch(asked):
            if isinstance(receipt, dict) and int(receipt["blockHash"] or "0x0", 16) != NO_BLOCK:
                await self._take(order, receipt)

    async def _take(self, order: Order, receipt: dict[str, Any]) -> None:
        """Put a canonical receipt into the ledger, and settle its order by it."""
        if int(receipt["status"], 16) != 1:
            return
        logs = [read for one in receipt["logs"] if (read := read_log(one)) is not None]
        await to_thread(self.store.take, self.chain_id, logs)
        await to_thread(self._settler.settle, order.id)

    async def run(self) -> None:
        """Tend until cancelled; errors of the node are logged, and the next round tries again."""
        while True:
            try:
                await self.tend()
            except PaymentError as error:
                log.warning("chain %d was not tended: %s", self.chain_id, type(error).__name__)
            await asyncio.sleep(self.rules.tend_every)


def captures(sent: Sequence[Submission]) -> list[Submission]:
    """Those among them that take the money, and are signed."""
    return [one for one in sent if one.purpose in TAKING and one.transaction_hash]


def moved(receipt: dict[str, Any], order: Order) -> bool:
    """Whether the receipt holds the transfer that this order's authorization allows."""
    logs = [read for one in receipt["logs"] if (read := read_log(one)) is not None]
    return any(pays(entry, order) for entry in entries(logs, order.authorization.domain.token))
