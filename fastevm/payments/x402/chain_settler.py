"""Settles the payments of one chain for a facilitator: one transaction per payment.

A payment is an order, identified by chain, token, payer and nonce. Its transaction is signed and
recorded before it is sent. Repeated requests wait for the same transaction, also in other
processes. A payment succeeds when a receipt contains its transfer. Until the result is known, the
answer is "pending".
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastevm.core.primitives.replace import replace
from fastevm.payments.arguments import check_members, checked
from fastevm.payments.call_routes import Direct
from fastevm.payments.calls import balance_data, state_data
from fastevm.payments.chain import Chain
from fastevm.payments.errors import (
    DuplicateOrder,
    IllegalTransition,
    InvalidTerms,
    NodeRefusal,
    NodeUnreachable,
    PaymentError,
    VaultError,
)
from fastevm.payments.escrow import PaymentInfo
from fastevm.payments.events import Event, entries, read_log
from fastevm.payments.holds import Holds
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Order, Purpose, Submission
from fastevm.payments.policy import Policy
from fastevm.payments.preflight import failure_of
from fastevm.payments.settlement import Settler, pays
from fastevm.payments.signer import Signer
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store, every_order
from fastevm.payments.tokens import Token
from fastevm.payments.transactions import Transactions, time_of
from fastevm.payments.vault import Vault
from fastevm.payments.x402 import reasons
from fastevm.payments.x402.claims import BLOCK, Call, Claim, read_terms
from fastevm.payments.x402.grants import PaymentLocks
from fastevm.payments.x402.messages import Payment, Requirements, Settled, as_bytes
from fastevm.payments.x402.reasons import Refused, Unavailable
from fastevm.payments.x402.receipts import Receipts
from fastevm.rpc_client.messages import Call as NodeCall

log: Final = logging.getLogger(__name__)

NO_BLOCK: Final = 0  # block hash of a pre-confirmed receipt
# Seconds of chain time after validBefore. Only then does an unused nonce prove that no money will
# move. Covers a node that is behind the others, and a reorganisation of the newest blocks.
AFTER_WINDOW: Final = 30
MOST_VERIFIED: Final = 10_000  # verified payments in memory
MOST_IN_FLIGHT: Final = 100  # a payer's recorded orders that are compared with the payer's balance
SPENT_TOPICS: Final = [Event.USED.topic, Event.CANCELED.topic]
DONE: Final = (State.CAPTURED, State.PAID, State.HELD, State.RELEASED)
ENDED: Final = (State.STORED, State.FAILED, State.EXPIRED, State.CANCELLED)
MOVING: Final = (State.CAPTURING, State.AUTHORIZING)
FINISH_SECONDS: Final = 0.2  # seconds between two passes of `ChainSettler.finish`
BEHIND: Final = 16  # blocks by which a node may be behind the others
COLLECTING: Final = (Purpose.CAPTURE, Purpose.HOLD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A facilitator's settings. Times are in seconds.

    ``recipients`` are the accounts that may be paid; None allows every account. ``factories`` may
    deploy payers' wallets. /settle answers "pending" after ``settle_for``. `ChainSettler.tend` runs
    again after a pause of ``tend_every``. `Facilitator.close` waits for at most ``close_for`` until
    payments in flight are in blocks; the default covers two blocks of Base. If ``preconfirmed`` is
    true, a pre-confirmed receipt is sufficient; otherwise the block must be canonical. ``most_gas``
    is the gas limit of a payment.
    """

    recipients: frozenset[str] | None = None
    factories: tuple[str, ...] = ()
    settle_for: float = 20.0
    tend_every: float = 1.0
    close_for: float = 4.0
    preconfirmed: bool = True
    most_gas: int = 500_000

    def __post_init__(self) -> None:
        check_members(self)


@checked
class ChainSettler:
    """Collects payments of some tokens on one chain. Use the sending account for nothing else."""

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
            raise InvalidTerms("tokens: expected at least one, all on the same chain")
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
        self._locks = PaymentLocks()
        self._verified: dict[str, bytes] = {}  # hash of the signature by order id
        self._starting: dict[str, Order] = {}  # orders whose transaction is being reserved
        # ids of orders whose first request has no key and still waits for the result
        self._begun: set[str] = set()

    @property
    def account(self) -> str:
        """The account that sends the transactions."""
        return self.signer.address

    def now(self) -> int:
        """Returns the time in Unix seconds."""
        return int(self._clock())

    def domain_of(self, asset: str) -> Token:
        """Returns a supported token. Raises Refused for any other token."""
        token = self.tokens.get(asset)
        if token is None:
            raise Refused(reasons.INVALID_REQUIREMENTS, f"{asset} is not supported")
        return token

    async def ask(self, calls: Sequence[NodeCall]) -> list[Any]:
        """Sends one batch to the node. Answers may be NodeRefusals. Raises Unavailable."""
        try:
            return await self.node.batch(calls)
        except NodeUnreachable as error:
            raise Unavailable(str(error)) from None

    async def collect(self, calls: Sequence[tuple[str, bytes]]) -> Call:
        """Returns the first of these calls that would succeed now.

        Raises Refused with the reason of the last call, or Unavailable if the account lacks gas.
        """
        requests = [
            {"from": self.account, "to": to, "data": "0x" + data.hex()} for to, data in calls
        ]
        asked: list[NodeCall] = [("eth_estimateGas", [request, BLOCK]) for request in requests]
        asked += [("eth_getCode", [to, BLOCK]) for to, _ in calls]
        *answers, funds = await self.ask([*asked, ("eth_getBalance", [self.account, BLOCK])])
        answers, codes = answers[: len(calls)], answers[len(calls) :]
        for (to, data), answer, code in zip(calls, answers, codes, strict=True):
            if code == "0x":  # a call without code succeeds and moves nothing
                text = f"there is no contract at {to} on chain {self.chain_id}"
                raise Refused(reasons.SIMULATION, text)
            if not isinstance(answer, str):
                continue
            gas = int(answer, 16)
            if gas > self.rules.most_gas:
                raise Refused(reasons.SIMULATION, f"{gas} gas exceed {self.rules.most_gas}")
            if isinstance(funds, str) and int(funds, 16) < gas:
                raise Unavailable("the facilitator's account cannot pay the gas")
            return Call(to, data, gas)
        cause, detail = failure_of(answers[-1])
        raise Refused(reasons.of_cause(cause), detail)

    # --- settlement -------------------------------------------------------------------------------

    async def settle(self, claim: Claim, check: Callable[[], Any], key: str = "") -> Settled:
        """Collects a payment once and returns the result; ``check()`` returns the call to make.

        ``key`` is the ``claim`` of `Facilitator.settle`. Raises Refused or Unavailable.
        """
        await self._check_key()
        caller = hashlib.sha256(key.encode()).hexdigest() if key else ""
        first = False
        try:
            async with self._locks.of(claim.order_id):
                order, begun = await self._submitted(claim, check, caller)
                first = begun and not caller
                if first:
                    self._begun.add(order.id)
            settled = await self._outcome(order, time.monotonic() + self.rules.settle_for)
            if not settled.success:
                return settled
            return await self._entitled(settled, order.id, caller, first=first)
        finally:
            if first:
                self._begun.discard(claim.order_id)

    async def _check_key(self) -> None:
        """Raises Unavailable if the vault lacks the store's key."""
        try:
            await self.transactions.check_key()
        except VaultError as error:
            log.error("chain %d: %s", self.chain_id, error)
            raise Unavailable("the facilitator's store cannot be opened") from None

    async def _entitled(
        self, settled: Settled, order_id: str, caller: str, *, first: bool
    ) -> Settled:
        """Returns the success if this caller may receive it, else ``duplicate_settlement``.

        While the request that began the settlement without a key waits, no other request without
        a key gets the success.
        """
        if caller or first or order_id not in self._begun:
            entitle = self.store.entitle if caller else self.store.entitle_once
            caller = caller or secrets.token_hex(16)
            entitled = await to_thread(entitle, order_id, caller)
            if hmac.compare_digest(entitled, caller):
                return settled
        text = "this payment was settled before, for another request"
        return replace(settled, reason=reasons.DUPLICATE, message=text)

    def verified(self, claim: Claim) -> None:
        """Remembers that a payment was valid and not settled yet.

        If somebody else then submits the payment, it still counts for the first request to settle
        it.
        """
        if len(self._verified) >= MOST_VERIFIED:
            del self._verified[next(iter(self._verified))]
        self._verified[claim.order_id] = hashlib.sha256(claim.signature).digest()

    def _was_verified(self, claim: Claim) -> bool:
        known = self._verified.get(claim.order_id)
        return known is not None and known == hashlib.sha256(claim.signature).digest()

    async def _was_published(self, order: Order, store: Store | None = None) -> bool:
        """Whether a transaction with the payer's signature may have been sent.

        ``store`` is the store of the order if the order is on another chain.
        """
        found = partial((store or self.store).submissions, order_id=order.id)
        return bool(captures(await to_thread(found)))

    async def recorded(self, payment: Payment, offer: Requirements) -> Claim | None:
        """Returns the claim of a payment that was sent to this chain; None if it was not sent.

        Does not check whether the current settings accept the payment. Raises Malformed, or Refused
        if the terms of the payment differ from the order or the offer.
        """
        terms = read_terms(dict(payment.payload))
        order = await to_thread(self.store.find, offer.asset, terms.payer, "0x" + terms.nonce.hex())
        if order is None or not await self._may_move(order, self.store):
            return None
        known = order.authorization
        receiver = PaymentInfo.from_json(order.annex).receiver if order.annex else terms.recipient
        if (terms, terms.value, receiver) != (known.terms, offer.amount, offer.pay_to):
            raise Refused(reasons.NONCE_USED, "the nonce belongs to another payment")
        signature = as_bytes(payment.payload, "signature")
        return Claim(authorization=known, signature=signature, note=order.annex)

    async def was_sent(self, payment: Payment, offer: Requirements) -> bool:
        """Whether this store has sent a payment with this nonce, on any chain."""
        terms = read_terms(dict(payment.payload))
        store = self.store.scoped(f"x402/{offer.chain_id}")
        order = await to_thread(store.find, offer.asset, terms.payer, "0x" + terms.nonce.hex())
        return order is not None and await self._may_move(order, store)

    async def _may_move(self, order: Order, store: Store) -> bool:
        """Whether an order's money has moved or may move."""
        return order.state in (*DONE, *MOVING) or await self._was_published(order, store)

    async def check_unordered(self, claim: Claim, recipient: str) -> None:
        """Raises Refused if an order of `Merchant` in this store has the payment's nonce.

        Otherwise one transfer would pay for the order and for the offer.
        """
        terms, token = claim.authorization.terms, claim.authorization.domain.token
        shop = self.store.scoped(f"{self.chain_id}/{token}/{recipient}")
        if await to_thread(shop.find, token, terms.payer, "0x" + terms.nonce.hex()) is not None:
            raise Refused(reasons.INVALID_PAYLOAD, "the nonce belongs to an order of the recipient")

    async def check_unsent(self, claim: Claim) -> None:
        """Raises Refused if the payment's transaction is in flight.

        The chain may not show such a transaction. A seller that has lost the payment's grant would
        treat the payment as new.
        """
        order = await self.known(claim)
        if order is not None and order.state in (*DONE, *MOVING):
            raise Refused(reasons.NONCE_USED, "the payment is being settled")

    async def check_unspent(self, claim: Claim) -> None:
        """Raises Refused if the payment's nonce is used, or if a transaction in flight may use it.

        After its window, a payment that was made could seem unpaid, and the payer would pay again.
        """
        order = await self.known(claim)
        if order is None or order.state not in (*DONE, *MOVING):
            terms, token = claim.authorization.terms, claim.authorization.domain.token
            data = "0x" + state_data(terms.payer, terms.nonce).hex()
            (used,) = await self.ask([("eth_call", [{"to": token, "data": data}, BLOCK])])
            if not isinstance(used, str) or len(used) <= 2:
                raise Unavailable("the node does not show whether the nonce is used")
            if int(used, 16) == 0:
                return
        raise Refused(reasons.NONCE_USED, "the payment was made before its window ended")

    async def known(self, claim: Claim) -> Order | None:
        """Returns the order of a known payment. Raises Refused if the payment has other terms."""
        terms, domain = claim.authorization.terms, claim.authorization.domain
        order = await to_thread(
            self.store.find, domain.token, terms.payer, "0x" + terms.nonce.hex()
        )
        if order is not None and order.authorization != claim.authorization:
            raise Refused(reasons.NONCE_USED, "the nonce belongs to another payment")
        return order

    async def _submitted(
        self, claim: Claim, check: Callable[[], Any], caller: str
    ) -> tuple[Order, bool]:
        """Submits the payment's transaction unless that was done before.

        Returns the order, and whether this call began the settlement.
        """
        order = await self.known(claim)
        if order is not None and order.state is not State.STORED:
            await to_thread(self._check_signature, order, claim)
            return order, False
        try:
            call: Call = await check()
        except Refused as refusal:
            spent = refusal.reason in reasons.SPENT
            if order is not None and (spent or await self._was_published(order)):
                # `_outcome` reads from the chain whether the payment was made, or still can be made
                await to_thread(self._check_signature, order, claim)
                return order, False
            if order is not None or not spent or not self._was_verified(claim):
                raise
            # Somebody else submitted the payment after this facilitator had verified it. The
            # payment counts for this request.
            order = await self._added(claim)
            await to_thread(partial(self.store.entitle, order.id, caller, anew=True))
            return order, True
        async with self._affordable(claim):
            order = order or await self._added(claim)
            # Records the caller before the transaction publishes the signature. Until then only the
            # payer has the signature, so this caller is the payer.
            await to_thread(partial(self.store.entitle, order.id, caller, anew=True))
            await self._submit(order, call)
        return await to_thread(self.store.order, order.id), True

    async def _submit(self, order: Order, call: Call) -> None:
        trigger, purpose = Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE
        if order.annex:
            trigger, purpose = Trigger.SUBMIT_HOLD, Purpose.HOLD
        try:
            await self.transactions.submit(
                order, trigger, purpose, call.data, gas=call.gas, to=call.to
            )
        except IllegalTransition:
            log.info("order %s: another process submitted it", order.id)
        except NodeRefusal as refusal:
            # the node did not return the account's nonce or the fees: the payment may be valid
            raise Unavailable(f"the node refused to prepare: code {refusal.code}") from None
        except NodeUnreachable as error:
            raise Unavailable(str(error)) from None

    @asynccontextmanager
    async def _affordable(self, claim: Claim) -> AsyncIterator[None]:
        """Reserves this payment's amount of the payer's balance until the payment is recorded.

        Raises Unavailable if the balance is too small for this payment and the payer's other
        payments in flight: this payment would revert at the facilitator's cost. Payments of other
        processes count once they are recorded.
        """
        terms, token = claim.authorization.terms, claim.authorization.domain.token
        async with self._locks.of(f"{token}/{terms.payer}"):
            starting = list(self._starting.values())
            recorded = await to_thread(
                partial(self.store.orders, MOVING, payer=terms.payer, limit=MOST_IN_FLIGHT)
            )
            others = {
                order.id: order
                for order in (*recorded, *starting, *self._starting.values())
                if order.id != claim.order_id
                and order.authorization.domain.token == token
                and order.authorization.terms.payer == terms.payer
            }
            if others:
                await self._check_balance(claim, list(others.values()))
            self._starting[claim.order_id] = Order(
                id=claim.order_id, authorization=claim.authorization
            )
        try:
            yield
        finally:
            self._starting.pop(claim.order_id, None)

    async def _check_balance(self, claim: Claim, others: Sequence[Order]) -> None:
        """Raises Unavailable unless the balance covers this payment and ``others``."""
        terms, token = claim.authorization.terms, claim.authorization.domain.token
        asked = [balance_data(terms.payer)]
        asked += [state_data(terms.payer, order.authorization.terms.nonce) for order in others]
        balance, *used = await self.ask(
            [("eth_call", [{"to": token, "data": "0x" + data.hex()}, BLOCK]) for data in asked]
        )
        if not all(isinstance(answer, str) and len(answer) > 2 for answer in (balance, *used)):
            raise Unavailable("the node does not show the payer's balance")
        reserved = sum(
            order.authorization.terms.value
            for order, answer in zip(others, used, strict=True)
            if int(answer, 16) == 0
        )
        if int(balance, 16) < reserved + terms.value:
            text = "the payer's other payments are in flight, and its balance is too small for all"
            raise Unavailable(text)

    def _check_signature(self, order: Order, claim: Claim) -> None:
        """Raises Refused if the order has a stored signature that differs from the claim's."""
        if order.sealed is None:
            return
        stored = self.vault.open(order.sealed, order.seal_context)
        if not hmac.compare_digest(stored, claim.signature):
            raise Refused(reasons.SIGNATURE, "the payment is known with another signature")

    def _shop_of(self, claim: Claim) -> str:
        """Returns the shop in which a `Merchant` keeps orders of the payment's recipient."""
        terms, token = claim.authorization.terms, claim.authorization.domain.token
        receiver = PaymentInfo.from_json(claim.note).receiver if claim.note else terms.recipient
        return f"{self.chain_id}/{token}/{receiver}"

    async def _added(self, claim: Claim) -> Order:
        order = Order(
            id=claim.order_id,
            authorization=claim.authorization,
            state=State.STORED,
            annex=claim.note,
        )
        sealed = self.vault.seal(claim.signature, order.seal_context)
        made = Order(
            id=order.id,
            authorization=order.authorization,
            state=State.STORED,
            annex=claim.note,
            sealed=sealed,
        )
        try:
            return await to_thread(self.store.add, made, [self._shop_of(claim)])
        except DuplicateOrder:
            raise Refused(reasons.NONCE_USED, "the nonce belongs to another payment") from None

    # --- results ----------------------------------------------------------------------------------

    async def _outcome(self, order: Order, deadline: float) -> Settled:
        """Waits for the result of an order's transactions; pending after ``deadline``.

        The result is a success if any transaction moved the money. It is a failure only if the
        newest transaction failed.
        """
        last = ""
        while True:
            sent = await to_thread(partial(self.store.submissions, order_id=order.id))
            hashes = [submission.transaction_hash for submission in captures(sent)]
            last = hashes[-1] if hashes else last
            left = min(self.rules.tend_every, deadline - time.monotonic())
            counts = partial(self._counts, newest=newest_hashes(sent))
            receipt = await self.receipts.wait(hashes, max(0.0, left), counts)
            if receipt is not None and int(receipt["status"], 16) == 1 and moved(receipt, order):
                return self._success(order, receipt["transactionHash"])
            order = await to_thread(self.store.order, order.id)
            if order.state in DONE and order.settlement is not None:
                return self._success(order, order.settlement.transaction_hash)
            if receipt is not None and int(receipt["status"], 16) == 0:
                ended, waits = await self._failed(order)
            elif order.state in ENDED:
                ended, waits = await self._ended(order)
            else:
                ended, waits = self._answer(order, last, reasons.PENDING, "no receipt yet"), True
            if not waits or time.monotonic() >= deadline:
                return ended
            if order.state in ENDED or receipt is not None:
                await asyncio.sleep(max(0.0, min(self.rules.tend_every, left)))

    def _counts(self, receipt: dict[str, Any], newest: Collection[str] = ()) -> bool:
        """Whether a receipt decides the result of a payment.

        A success counts in a canonical block, or before it if ``Rules.preconfirmed`` is set. A
        failure counts only in a canonical block, and only if it is one of the ``newest``
        transactions.
        """
        canonical = int(receipt["blockHash"] or "0x0", 16) != NO_BLOCK
        if int(receipt["status"], 16) == 1:
            return canonical or self.rules.preconfirmed
        return canonical and receipt["transactionHash"] in newest

    async def _failed(self, order: Order) -> tuple[Settled, bool]:
        """Records why a transaction reverted. Returns the order's result, as `_ended` does."""
        try:
            await self.transactions.follow()
        except PaymentError:
            log.warning("order %s: the reason of its failure is unknown", order.id)
        return await self._ended(order)

    async def _ended(self, order: Order) -> tuple[Settled, bool]:
        """Returns an order's result if no transaction is in flight, and whether waiting may help.

        The result is a success if somebody else submitted the payment. The result is pending while
        the token reports the nonce as used but no receipt shows which transaction used it, because
        nodes index logs after blocks. The result is also pending while anybody can still submit the
        published signature.
        """
        sent = await to_thread(partial(self.store.submissions, order_id=order.id))
        receipts, used, timestamp = await self._uses(order, sent[0].head if sent else 0)
        for receipt in receipts:
            if receipt is not None and moved(receipt, order):
                await self._take(order, receipt)
                return self._success(order, receipt["transactionHash"]), False
        last = sent[-1].transaction_hash if sent else ""
        if None in receipts or (used and not receipts):
            text = "the nonce is used: try again"
            return self._answer(order, last, reasons.PENDING, text), True
        refusal = self._refusal(order, sent)
        end = order.authorization.terms.valid_before
        if not used and timestamp < end + AFTER_WINDOW:
            text = (
                f"not paid yet ({refusal.message or 'submitted by somebody else'}); the signature"
                f" is public and can be used until {end}: repeat this payment, sign no other"
            )
            return self._answer(order, last, reasons.PENDING, text), not captures(sent)
        # report the used nonce: after any other reason the payer would sign again
        spent = used and refusal.reason not in reasons.SPENT
        return (replace(refusal, reason=reasons.NONCE_USED) if spent else refusal), False

    async def _uses(
        self, order: Order, first: int
    ) -> tuple[list[dict[str, Any] | None], bool, int]:
        """Returns receipts, whether an order's nonce is used, and a block's timestamp.

        The receipts are those of the transactions that used or cancelled the nonce; a receipt is
        None if the node lacks it. The block is not newer than the state in which the nonce was
        read. ``first`` is a block at which the nonce was unused, 0 if unknown. Raises Unavailable
        if the node does not answer.
        """
        terms, token = order.authorization.terms, order.authorization.domain.token
        payer, nonce = terms.payer[2:].lower().rjust(64, "0"), terms.nonce.hex()
        if not first:
            (newest,) = await self.ask([("eth_blockNumber", [])])
            head = int(newest, 16) if isinstance(newest, str) else 0
            first = head + 1 - self.policy.range_blocks + BEHIND
        begin = max(0, first - BEHIND)
        wanted = {
            "address": token,
            "topics": [SPENT_TOPICS, "0x" + payer, "0x" + nonce],
            "fromBlock": hex(begin),
            "toBlock": hex(begin + self.policy.range_blocks - 1),
        }
        state = {"to": token, "data": "0x" + state_data(terms.payer, terms.nonce).hex()}
        block, answer, newest, logs = await self.ask(
            [
                ("eth_getBlockByNumber", ["latest", False]),
                ("eth_call", [state, "latest"]),
                ("eth_blockNumber", []),
                ("eth_getLogs", [wanted]),
            ]
        )
        if isinstance(logs, NodeRefusal) and isinstance(newest, str) and int(newest, 16) >= begin:
            # some nodes refuse a range that ends above their head
            (logs,) = await self.ask([("eth_getLogs", [{**wanted, "toBlock": newest}])])
        if not isinstance(answer, str) or len(answer) < 3:
            raise Unavailable("the node does not say whether the nonce is used")
        hashes = [raw["transactionHash"] for raw in logs] if isinstance(logs, list) else []
        found = await self.ask([("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes])
        receipts = [receipt if isinstance(receipt, dict) else None for receipt in found]
        return receipts, bool(int(answer, 16)), time_of(block)

    def _success(self, order: Order, transaction_hash: str) -> Settled:
        return self._answer(order, transaction_hash)

    def _refusal(self, order: Order, sent: Sequence[Submission]) -> Settled:
        cause = next(
            (submission.reason for submission in reversed(sent) if submission.reason is not None),
            order.reason,
        )
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

    # --- maintenance ------------------------------------------------------------------------------

    async def tend(self) -> None:
        """Resends lost transactions, raises fees, and updates orders from the chain."""
        await self.transactions.follow()
        orders = await to_thread(lambda: list(every_order(self.store, MOVING)))
        for order in orders:
            await self._look(order)
        await self.holds.look()
        await to_thread(self._settler.apply_to_movements, ())
        await to_thread(self._settler.release)
        await self._settler.confirm(self.node)

    async def _look(self, order: Order) -> None:
        sent = await to_thread(partial(self.store.submissions, order_id=order.id))
        hashes = [submission.transaction_hash for submission in captures(sent)]
        if not hashes:
            return
        asked: list[NodeCall] = [("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes]
        for receipt in await self.node.batch(asked):
            if isinstance(receipt, dict) and int(receipt["blockHash"] or "0x0", 16) != NO_BLOCK:
                await self._take(order, receipt)

    async def _take(self, order: Order, receipt: dict[str, Any]) -> None:
        """Adds a canonical receipt's logs to the ledger and updates its order."""
        if int(receipt["status"], 16) != 1:
            return
        logs = [read for raw in receipt["logs"] if (read := read_log(raw)) is not None]
        await to_thread(self.store.take, self.chain_id, logs)
        await to_thread(self._settler.apply_to_order, order.id)

    async def run(self) -> None:
        """Calls :meth:`tend` until cancelled; errors are logged and retried."""
        while True:
            try:
                await self.tend()
            except PaymentError as error:
                log.warning("chain %d: maintenance failed: %s", self.chain_id, type(error).__name__)
            await asyncio.sleep(self.rules.tend_every)

    async def finish(self) -> None:
        """Calls :meth:`tend` until no transaction is in flight, or ``Rules.close_for`` passes."""
        moving = partial(self.store.orders, MOVING, limit=1)
        try:
            async with asyncio.timeout(self.rules.close_for):
                while await to_thread(moving):
                    await self.tend()
                    await asyncio.sleep(FINISH_SECONDS)
        except (PaymentError, TimeoutError) as error:
            log.warning(
                "chain %d: payments are unfinished: %s", self.chain_id, type(error).__name__
            )


def captures(sent: Sequence[Submission]) -> list[Submission]:
    """Returns the signed transactions that collect the payment."""
    return [
        submission
        for submission in sent
        if submission.purpose in COLLECTING and submission.transaction_hash
    ]


def newest_hashes(sent: Sequence[Submission]) -> list[str]:
    """Returns the hashes of the newest transaction that collects the payment.

    The list includes replacements with the same account nonce and other fees. It is empty while the
    newest transaction is not signed yet.
    """
    collecting = [submission for submission in sent if submission.purpose in COLLECTING]
    nonce = max((submission.account_nonce for submission in collecting), default=None)
    return [
        submission.transaction_hash
        for submission in captures(collecting)
        if submission.account_nonce == nonce
    ]


def moved(receipt: dict[str, Any], order: Order) -> bool:
    """Whether the receipt contains the payment that the order's authorization allows."""
    logs = [read for raw in receipt["logs"] if (read := read_log(raw)) is not None]
    return any(pays(entry, order) for entry in entries(logs, order.authorization.domain.token))
