"""A merchant's back end in one class: draft, accept, check, capture, cancel, refund.

A `Merchant` serves one recipient and one token on one chain. Several processes may share a store.
The store ensures that each transition happens only once, and any process can finish what another
started.

States and methods
------------------
An order starts as DRAFTED. `states.TRANSITIONS` has every transition; these are the usual ones:

    method        order before        order after    then, when the chain shows it
    draft         (none)              DRAFTED        kind MEMO: the payer's transfer makes it
                                                     CAPTURED, then PAID
    accept        DRAFTED             STORED         (SIGNED in between)
    capture       STORED              CAPTURING      CAPTURED, PAID; STORED again if it fails
    hold          STORED              AUTHORIZING    HELD; see `holds` for partial captures
    cancel        STORED, VOIDED      CANCELLING     CANCELLED; back again if it fails
    void          DRAFTED to STORED   VOIDED
    refund        PAID, HELD          unchanged      a movement: REQUESTED, SEEN, FINAL or FAILED
    (time)        all before CAPTURED EXPIRED        a confirmed block is later than the deadline
    (reorg)       CAPTURED, PAID, ... the state before the chain changed it

Methods of this class make only the first step: they record and send a transaction. `reconcile`
makes all later transitions, from what is on the chain. `wait` calls `reconcile` until the order
reaches the state that the caller wants.

    reconcile -> Reconciler.reconcile      one pass
                   Scanner.scan            reads logs of the canonical chain into the ledger
                   Settler.apply_ledger    CAPTURED, CANCELLED, FAILED, HELD, and their undoing
                   Settler.confirm         PAID, once deep enough
                   Transactions.follow     signs, sends again, replaces, or closes transactions
                   Settler.release         STORED again, after a transaction that failed
                   Settler.expire          EXPIRED

Where it is stored
------------------
Everything is in the store (`schema` has the tables): ``orders`` with encrypted signatures,
``submissions`` (transactions), ``movements`` (refunds, sweeps), ``logs`` and ``checkpoints`` (the
ledger), ``audit``, and ``events`` with ``deliveries`` (webhooks). `UnitOfWork.change` applies a
transition, and writes its audit entry and its notice in the same database transaction.
`Transactions.submit` reserves the transaction of a capture together with the transition, before
anything is signed or sent. Objects keep only caches, so a process may end at any time.
"""

import asyncio
import contextlib
import logging
import math
import time
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final

from fastevm.payments.amounts import integer, text
from fastevm.payments.arguments import checked
from fastevm.payments.authorization import (
    DEFAULT_BACKDATE,
    DEFAULT_LIFETIME,
    Authorization,
    Domain,
    Kind,
    Permit,
    Terms,
    TypedMessage,
    address,
)
from fastevm.payments.batches import Batches
from fastevm.payments.call_routes import Direct, Route
from fastevm.payments.calls import (
    ERC1271_MAGIC,
    allowance_data,
    cancel_data,
    permit_nonce_data,
    separator_data,
    state_data,
    transfer_data,
    wallet_data,
)
from fastevm.payments.chain import FIRST_MARGIN, Chain, head_of
from fastevm.payments.erc6492 import refusal_of, unwrap, without_wrapper
from fastevm.payments.errors import (
    AlreadyRefunded,
    CaptureRefused,
    DuplicateOrder,
    ExpiredOrder,
    IllegalTransition,
    InvalidTerms,
    LimitReached,
    MovementRefused,
    NodeRefusal,
    NodeUnreachable,
    NotRefundable,
    OtherTerms,
    PaymentError,
    SignatureRefused,
    StaleOrder,
    UnknownOrder,
)
from fastevm.payments.escrow import ZERO, collecting_call, escrow_of
from fastevm.payments.events import ChainLog, Entry, Event, entries
from fastevm.payments.holds import Holds, HoldTerms, same_order
from fastevm.payments.memo_payments import received, sums_of
from fastevm.payments.metrics import Metrics
from fastevm.payments.movements import (
    Amounts,
    Movement,
    MovementKind,
    MovementState,
    amounts_of,
    check_key,
    newest_refund,
    refund_key,
)
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import (
    LONGEST_ID,
    LONGEST_REFERENCE,
    PAGE,
    AuditEntry,
    Order,
    Purpose,
    Submission,
)
from fastevm.payments.permits import collector_of, deployment_of
from fastevm.payments.policy import Policy
from fastevm.payments.preflight import PENDING, Preflight, Report, failure_of
from fastevm.payments.reasons import Reason
from fastevm.payments.reconciler import Reconciler
from fastevm.payments.scanner import Scanner
from fastevm.payments.signatures import Signature, fault_of
from fastevm.payments.signer import Signer
from fastevm.payments.states import EXPOSED, State, Trigger
from fastevm.payments.store import Store, every_log, every_order
from fastevm.payments.store_key import rotate
from fastevm.payments.tokens import NOBODY, money_at
from fastevm.payments.transactions import Prepared, Transactions
from fastevm.payments.vault import Vault
from fastevm.payments.watcher import Change, Watcher
from fastevm.rpc_client.closing import AsyncClosing

log: Final = logging.getLogger(__name__)

CAPTURE_SECONDS: Final = 60.0  # default timeout of capture() and cancel()
AT_ONCE: Final = 16  # captures submitted concurrently
SignatureLike = Signature | str | bytes | bytearray | Sequence[int]

ON_THE_WAY: Final = (
    State.CAPTURING, State.CAPTURED, State.PAID, State.AUTHORIZING, State.HELD,
)  # fmt: skip
ABSENT: Final = (
    Reason.NO_TOKEN, Reason.NO_COLLECTOR, Reason.NO_ESCROW, Reason.NO_MULTICALL,
)  # fmt: skip
UNCAPTURED: Final = (State.DRAFTED, State.SIGNED, State.STORED)
_BOOK: Final = (State.STORED, State.CAPTURING)


@checked
class Merchant(AsyncClosing):
    """Drafts, verifies, captures, cancels and refunds authorizations.

        async with Merchant(node, store, vault, token, signer) as merchant:
            order = await merchant.draft("order-1", payer, 10_000_000)
            ...  # the payer signs order.authorization.typed_data()
            await merchant.accept("order-1", signature)
            order = await merchant.capture("order-1")
            assert order.paid

    ``signer`` pays the gas and is the recipient by default. With ``route`` the recipient is a
    wallet that the signer controls. With ``recipient`` it is any other account, which RECEIVE
    authorizations cannot pay, because only the recipient can submit them. ``emitters`` are the
    contracts whose PaymentCaptured and PayoutSent events count. ``factories`` may deploy a payer's
    wallet in the capturing transaction (ERC-6492), for TRANSFER and for holds. The caller closes
    the node, the store and the signer; :meth:`close` ends only this object's tasks.

    Stored data belongs to a shop: chain, token and recipient. Merchants of different shops can
    share a store and do not see each other's orders.
    """

    def __init__(
        self,
        node: NodeClient,
        store: Store,
        vault: Vault,
        token: Domain,
        signer: Signer,
        *,
        policy: Policy | None = None,
        clock: Callable[[], float] = time.time,
        recipient: str | None = None,
        route: Route | None = None,
        emitters: Collection[str] = (),
        factories: Collection[str] = (),
    ) -> None:
        self.node, self.vault = node, vault
        self.token, self.signer, self.policy = token, signer, policy or Policy()
        self.route = route or Direct(signer.address)
        self.recipient = address(recipient or self.route.account, "recipient")
        self.emitters = frozenset(address(emitter, "emitters") for emitter in emitters)
        self.factories = frozenset(address(factory, "factories") for factory in factories)
        self.collector = collector_of(self.route.account, self.recipient)
        self.shop = f"{token.chain_id}/{token.token}/{self.recipient}"
        self.money = money_at(token.chain_id, token.token)
        self.store = store.scoped(self.shop)
        self._clock = clock
        self._authorizations = False  # whether the token is known to have EIP-3009
        self.metrics = Metrics({"chain_id": str(token.chain_id), "token": token.token})
        self.chain = Chain(node, token.chain_id, self.policy)
        self.transactions = Transactions(
            node, self.store, vault, signer, self.policy, chain_id=token.chain_id
        )
        self.scanner = Scanner(node, self.store, token, self.recipient, self.chain)
        self.reconciler = Reconciler(
            node, self.store, self.chain, self.scanner, self.transactions, self.metrics
        )
        self.settler = self.reconciler.settler
        self.holds = Holds(node, self.store, self.transactions, self.route, clock=clock)
        self.reconciler.extra.append(self.holds.look)
        self.preflight = self._preflight()
        self.batches = Batches(
            self.store, self.transactions, self.preflight, self.metrics, self.reconciler.notify
        )

    def _preflight(self) -> Preflight:
        return Preflight(
            self.node, self.signer.address, self.signature_of,
            policy=self.policy,
            margin=self.margin,
            outstanding=partial(
                self.store.outstanding, self.token.chain_id, self.signer.address
            ),
            route=self.route,
            clock=self._clock,
        )  # fmt: skip

    async def close(self) -> None:
        """Stops the running reconciliation."""
        await self.reconciler.close()

    # --- reading ----------------------------------------------------------------------------------

    async def order(self, order_id: str) -> Order:
        """Returns an order. Raises UnknownOrder."""
        return await to_thread(self.store.order, text(order_id, "order_id", longest=LONGEST_ID))

    async def orders(
        self, states: Sequence[State] | None = None, *, after: str = "", limit: int = PAGE
    ) -> list[Order]:
        """Returns a page of orders, sorted by id."""
        return await to_thread(self.store.orders, states, after=after, limit=limit)

    async def submissions(self, order_id: str) -> list[Submission]:
        """Returns the transactions sent for an order."""
        return await to_thread(self.store.submissions, order_id=order_id)

    async def audit(self, order_id: str) -> list[AuditEntry]:
        """Returns the audit trail of an order, oldest first."""
        return await to_thread(self.store.audit, order_id)

    async def ledger(self, *, first: int = 0, last: int | None = None) -> list[Entry]:
        """Returns the canonical transfers to and from this merchant, with their references.

        References are the nonce, the memo, and the ids of order and payout. Covers blocks ``first``
        to ``last``. The whole list is held in memory.
        """
        return await to_thread(self._ledger, first, last)

    def _ledger(self, first: int, last: int | None) -> list[Entry]:
        by_transaction: dict[str, list[ChainLog]] = {}
        for chain_log in every_log(self.store, self.token.chain_id, first=first, last=last):
            by_transaction.setdefault(chain_log.key.transaction_hash, []).append(chain_log)
        us = self.recipient
        return [
            entry
            for group in by_transaction.values()
            for entry in entries(group, self.token.token, self.emitters)
            if us in (entry.transfer.text("sender"), entry.transfer.text("recipient"))
        ]

    async def unexpected(self, *, first: int = 0, last: int | None = None) -> list[ChainLog]:
        """Returns PaymentCaptured and PayoutSent logs of contracts outside ``emitters``.

        Any contract can emit them with this merchant's order ids, so they prove nothing.
        """
        claims = (Event.PAYMENT_CAPTURED, Event.PAYOUT_SENT)
        found = partial(every_log, self.store, self.token.chain_id, first=first, last=last)
        logs = await to_thread(lambda: list(found()))
        return [
            chain_log
            for chain_log in logs
            if chain_log.event in claims and chain_log.address not in self.emitters
        ]

    async def movements(self, order_id: str | None = None) -> list[Movement]:
        """Returns the refunds, sweeps and other movements of one order or all, oldest first."""
        return await to_thread(self.store.movements, order_id)

    async def amounts(self, order_id: str) -> Amounts:
        """Returns how much of an order is authorized, captured and refunded."""
        order = await self.order(order_id)
        return await to_thread(sums_of, self.store, order, await self.movements(order_id))

    def unreadable(self) -> list[str]:
        """Messages about rows of the store that were skipped because they cannot be read."""
        return list(self.store.unreadable)

    def on_change(self, listener: Callable[[Order], None]) -> None:
        """Calls ``listener(order)`` on the event loop when this object has changed an order."""
        self.reconciler.listeners.append(listener)

    def signature_of(self, order: Order) -> Signature | None:
        """Decrypts an order's signature. Returns None if none is stored. Raises VaultError."""
        if order.sealed is None:
            return None
        return Signature(self.vault.open(order.sealed, order.seal_context))

    # --- authorizing ------------------------------------------------------------------------------

    async def draft(
        self,
        order_id: str,
        payer: str,
        value: int | str,
        *,
        lifetime: int | str = DEFAULT_LIFETIME,
        backdate: int | str = DEFAULT_BACKDATE,
        reference: str = "",
        kind: Kind = Kind.RECEIVE,
        terms: Terms | None = None,
        hold: HoldTerms | None = None,
    ) -> Order:
        """Creates an order of ``value`` token units from ``payer``, valid for ``lifetime`` s.

        ``terms`` replaces payer, value, lifetime and backdate. With ``hold`` the money is first
        collected into an escrow: call `hold`, then use `holds`.

        ``kind`` PERMIT is for tokens without EIP-3009, such as B20: the payer signs a permit for
        ``collector``, which must be deployed (`deploy_collector`). With MEMO the payer signs
        nothing and sends ``transferWithMemo(recipient, value, memo)`` himself; ``memo`` is the memo
        of the order's authorization.

        A second call with the same arguments returns the existing order in its current state, so
        that a checkout page can be reloaded. Raises DuplicateOrder if the id belongs to an order
        with other terms or another ``reference``; the text shows the differences. Raises
        ExpiredOrder if the same order exists and its window has ended. Raises InvalidTerms, or
        LimitReached if ``value`` exceeds the policy's ``most_per_order``.
        """
        text(order_id, "order_id", longest=LONGEST_ID, least=1)
        text(reference, "reference", longest=LONGEST_REFERENCE)
        if not kind.has_memo:
            await self._check_authorizations()
        if hold is not None:
            authorization, annex = hold.drawn(
                self.token, self.route.account, self.recipient, payer, value, lifetime,
                int(self._clock()),
            )  # fmt: skip
            return await self._add(
                Order(id=order_id, authorization=authorization, reference=reference, annex=annex)
            )
        exact = terms is not None
        if terms is None:
            terms = Terms.now(
                payer, self.recipient, integer(value, "value"),
                lifetime=lifetime, backdate=backdate, at=int(self._clock()),
            )  # fmt: skip
        if terms.recipient != self.recipient:
            raise InvalidTerms(f"recipient: expected this merchant's recipient {self.recipient}")
        if kind is Kind.RECEIVE and self.route.account != self.recipient:
            raise InvalidTerms("kind: RECEIVE needs the recipient as the sender; use TRANSFER")
        permit = await self._permit(kind, terms.payer) if kind.has_memo else None
        made = Authorization(self.token, terms, kind, permit)
        order = Order(id=order_id, authorization=made, reference=reference)
        return await self._add(order, exact=exact)

    async def _check_authorizations(self) -> None:
        """Raises InvalidTerms if the token has no EIP-3009.

        Asks the node until it has confirmed EIP-3009, then never again.
        """
        if self._authorizations:
            return
        asked = {"to": self.token.token, "data": "0x" + state_data(NOBODY, bytes(32)).hex()}
        try:
            chain_id, answer = await self.node.batch(
                [("eth_chainId", []), ("eth_call", [asked, PENDING])]
            )
        except NodeUnreachable:
            return  # a draft needs no node; `accept` does
        self.chain.check_id(chain_id)
        if isinstance(answer, NodeRefusal):
            if "revert" not in answer.message.lower():
                return
            raise InvalidTerms(
                f"kind: the token {self.token.token} has no EIP-3009: draft with"
                " kind=Kind.PERMIT or Kind.MEMO"
            )
        self._authorizations = True

    async def _check_escrow(self, order: Order) -> None:
        """Raises InvalidTerms if the chain does not have the escrow of a hold."""
        escrow = escrow_of(order)
        try:
            (code,) = await self.node.batch([("eth_getCode", [escrow, PENDING])])
        except NodeUnreachable:
            return  # a draft needs no node; `hold` does
        if code == "0x":
            chain_id = self.token.chain_id
            raise InvalidTerms(
                f"hold: chain {chain_id} has no escrow at {escrow}: draft without hold or, on a"
                " development chain, deploy it with contracts.placing.place_escrow"
            )

    async def _permit(self, kind: Kind, payer: str) -> Permit | None:
        """Returns the payer's next permit for PERMIT, None for MEMO.

        Also starts the ledger of a new store at the current head, so that no later memo is missed.
        Raises InvalidTerms if the token takes no permits or the collector is not deployed.
        """
        await self.scanner.begin(await self.reconciler.head())
        if kind is not Kind.PERMIT:
            return None
        asked = {"to": self.token.token, "data": "0x" + permit_nonce_data(payer).hex()}
        nonce, code = await self.node.batch(
            [("eth_call", [asked, PENDING]), ("eth_getCode", [self.collector, PENDING])]
        )
        if not isinstance(nonce, str) or len(nonce) != 66:
            raise InvalidTerms(f"kind: the token {self.token.token} takes no permits")
        if not isinstance(code, str) or code == "0x":
            raise InvalidTerms(
                f"kind: no permit collector at {self.collector}: run 'fastevm pay collector'"
            )
        return Permit(self.collector, int(nonce, 16))

    async def deploy_collector(self) -> str:
        """Deploys the collector that PERMIT orders need, unless it exists. Returns the address.

        Raises MovementRefused if the chain has no deterministic deployment proxy.
        """
        if await self.node.call("eth_getCode", self.collector, PENDING) != "0x":
            return self.collector
        to, data = deployment_of(self.route.account, self.recipient)
        if await self.node.call("eth_getCode", to, PENDING) == "0x":
            detail = f"the chain has no deployment proxy at {to}"
            raise MovementRefused(Reason.NO_COLLECTOR, detail)
        key = f"collector/{self.collector}"
        await self.holds.administer(MovementKind.DEPLOYMENT, key, to, data, self.collector)
        return self.collector

    async def _add(self, order: Order, *, exact: bool = False) -> Order:
        """Adds an order, or returns the existing order if its terms are equal (`same_order`)."""
        known = await self._drafted(order.id)
        if known is None:
            self._check_payable(order, exact=exact)
            if order.annex:
                await self._check_escrow(order)
            most, value = self.policy.most_per_order, order.authorization.terms.value
            if most is not None and value > most:
                self.metrics.count("limit_refusals_total", limit="order")
                text_of = self.money.text
                raise LimitReached(
                    f"an order may have at most {text_of(most)}, found {text_of(value)}"
                )
            await to_thread(self._check_unsold, order)
            sold = [f"x402/{order.authorization.domain.chain_id}"]
            try:
                return self._notify(await to_thread(self.store.add, order, sold))
            except DuplicateOrder:
                known = await self._drafted(order.id)
                if known is None:  # payer and nonce belong to another order
                    raise
        return self._unexpired(same_order(known, order, exact=exact))

    def _unexpired(self, order: Order) -> Order:
        """Returns an order that was drafted before. Raises ExpiredOrder if nobody can pay it now.

        Does not raise for a memo order if a transfer in time may still be unread.
        """
        end, now = order.authorization.terms.valid_before, int(self._clock())
        late = order.state in UNCAPTURED and end <= now and not order.awaited
        if late or order.state is State.EXPIRED:
            raise ExpiredOrder(
                f"order {order.id} has expired unpaid: it was valid before {end}, and it is {now}"
                " (Unix seconds): draft again with another order_id"
            )
        return order

    def _check_payable(self, order: Order, *, exact: bool) -> None:
        """Raises InvalidTerms for a new order that can never bring in money."""
        text(order.id, "order_id", longest=LONGEST_ID, least=1, one_line=True)
        terms, now = order.authorization.terms, int(self._clock())
        if terms.value == 0:
            raise InvalidTerms("value: expected at least 1 unit, found 0")
        if terms.payer == ZERO:
            raise InvalidTerms("payer: nobody can sign for the zero address")
        if terms.payer in (self.recipient, terms.recipient):
            raise InvalidTerms(f"payer: {terms.payer} is the shop's own account")
        if terms.valid_before <= now:
            raise InvalidTerms(
                f"{'terms' if exact else 'lifetime'}: the order would have expired already:"
                f" valid before {terms.valid_before}, and it is {now} (Unix seconds)"
            )

    def _payee(self, account: str) -> str:
        """Returns the checksummed recipient of a refund or sweep.

        Raises InvalidTerms for the zero address, which tokens reject, for the token's own contract,
        where tokens would be lost, and for the shop's accounts, because nothing would move.
        """
        found = address(account, "recipient")
        if found == ZERO:
            raise InvalidTerms("recipient: the zero address can hold no tokens")
        if found == self.token.token:
            raise InvalidTerms(
                f"recipient: {found} is the token's contract: tokens sent there are lost"
            )
        if found in (self.recipient, self.route.account):
            raise InvalidTerms(f"recipient: {found} is the shop's own account")
        return found

    def _check_unsold(self, order: Order) -> None:
        """Raises DuplicateOrder if an x402 facilitator in this store has the order's nonce."""
        domain, terms = order.authorization.domain, order.authorization.terms
        sold = self.store.scoped(f"x402/{domain.chain_id}")
        if sold.find(domain.token, terms.payer, "0x" + terms.nonce.hex()) is not None:
            raise DuplicateOrder("payer and nonce belong to an x402 payment")

    async def _drafted(self, order_id: str) -> Order | None:
        try:
            return await self.order(order_id)
        except UnknownOrder:
            return None

    async def accept(self, order_id: str, signature: SignatureLike) -> Order:
        """Verifies the payer's signature and stores it encrypted. The order becomes STORED.

        Accepting the same signature again changes nothing. Raises SignatureRefused if the
        signature, the domain or the window is wrong, WrongChain, LimitReached, or VaultError if the
        vault lacks the store's key.
        """
        parsed = Signature.parse(signature)
        order = await self.order(order_id)
        if order.state in _BOOK and self.signature_of(order) in (parsed, parsed.of_key):
            return order
        await self.transactions.check_key()
        good = await self.verify(order.authorization, parsed)
        sealed = self.vault.seal(good.secret_bytes, order.seal_context)
        limits = self.policy.exposure
        try:
            if order.state is State.DRAFTED:
                order = await self._change(order, Trigger.SIGN, exposure=limits)
            order = await self._change(order, Trigger.STORE, exposure=limits, sealed=sealed)
        except LimitReached as error:
            self.metrics.count("limit_refusals_total", limit=error.limit)
            raise
        return self._notify(await to_thread(self.settler.apply_to_order, order.id))

    async def exposure(self, payer: str | None = None) -> int:
        """Returns the units that are authorized or captured but unpaid, of one payer or of all."""
        if payer is not None:
            found = await to_thread(lambda: list(self._stored(EXPOSED, payer)))
            return sum(order.authorization.terms.value for order in found)
        counts = await to_thread(self.store.counts)
        return sum(counts[state][1] for state in EXPOSED if state in counts)

    async def measure(self) -> None:
        """Updates the gauges of ``metrics`` from the store and the node."""
        counts = await to_thread(self.store.counts)
        now = time.time()
        for state in State:
            count, units, oldest = counts.get(state, (0, 0, now))
            self.metrics.set("orders", count, state=state.value)
            self.metrics.set("order_units", units, state=state.value)
            if not state.ended:
                self.metrics.set("oldest_seconds", now - oldest, state=state.value)
        self.metrics.set("exposure_units", await self.exposure())
        self.metrics.set("unreadable_rows", len(self.store.unreadable))
        waiting, since = await to_thread(self.store.backlog)
        self.metrics.set("outbox_waiting", waiting)
        self.metrics.set("outbox_lag_seconds", now - since if waiting else 0.0)
        sender = self.signer.address
        promised = await to_thread(self.store.outstanding, self.token.chain_id, sender)
        self.metrics.set("signer_promised_wei", promised)
        with contextlib.suppress(PaymentError):
            funds = await self.node.call("eth_getBalance", sender, "latest")
            self.metrics.set("signer_wei", int(funds, 16))

    async def verify(self, message: TypedMessage, signature: Signature) -> Signature:
        """Returns the signature in the form that the token accepts.

        Raises SignatureRefused if the token would reject the signature now. If the payer has code,
        the payer's contract verifies the signature (ERC-1271). Otherwise the signature must be that
        of the payer's key, or of the wallet that one of ``factories`` would deploy (ERC-6492).

        The message's domain must be the token's, and its window must not have closed, neither by
        the newest block's time nor by the clock. Raises WrongChain if the node is on another chain.
        """
        question = "0x" + wallet_data(message.digest, without_wrapper(signature)).hex()
        separator = "0x" + separator_data().hex()
        chain_id, block, separator_answer, code, answer = await self.node.batch(
            [
                ("eth_chainId", []),
                ("eth_getBlockByNumber", ["latest", False]),
                ("eth_call", [{"to": message.domain.token, "data": separator}, PENDING]),
                ("eth_getCode", [message.signer, PENDING]),
                ("eth_call", [{"to": message.signer, "data": question}, PENDING]),
            ]
        )
        self.chain.check_id(chain_id)
        head = head_of(block)
        self._check_domain(message, separator_answer, head.timestamp if head else 0)
        if head is not None:
            await self.scanner.begin(head)
        if isinstance(code, NodeRefusal):
            raise code
        if isinstance(message, Authorization) and message.permit is not None:
            return await self._verify_permit(message, message.permit, signature)
        if code not in ("0x", None):
            magic = "0x" + ERC1271_MAGIC.hex()
            if isinstance(answer, str) and len(answer) >= 66 and answer.startswith(magic):
                return signature
            detail = "the payer's contract rejects the signature"
            raise self._refused(Reason.SIGNATURE_SIGNER, detail)
        return await self._verify_without_code(message, signature)

    async def _verify_without_code(self, message: TypedMessage, signature: Signature) -> Signature:
        """Verifies the signature of a key or of an undeployed wallet."""
        if unwrap(signature.secret_bytes) is not None:
            escrows = self.holds.deployments
            why = await refusal_of(self.node, message, signature, self.factories, escrows)
            if why is not None:
                raise self._refused(Reason.SIGNATURE_SIGNER, why)
            return signature
        fault = fault_of(message, signature.of_key)
        if fault is not None:
            raise self._refused(*fault)
        return signature.of_key

    async def _verify_permit(
        self, message: Authorization, permit: Permit, signature: Signature
    ) -> Signature:
        """Verifies a permit: the payer's key must have signed it, and no other order may use it.

        Accepts a permit that was already submitted if the allowance still covers the value.
        """
        fault = fault_of(message, signature.of_key)
        if fault is not None:
            raise self._refused(*fault)
        token, payer = message.domain.token, message.signer
        nonce, allowance = await self.node.batch(
            [
                ("eth_call", [{"to": token, "data": "0x" + data.hex()}, PENDING])
                for data in (permit_nonce_data(payer), allowance_data(payer, permit.spender))
            ]
        )
        for answer in (nonce, allowance):
            if isinstance(answer, NodeRefusal):
                raise answer
        if int(nonce, 16) > permit.nonce and int(allowance, 16) < message.terms.value:
            detail = f"the payer's permit {permit.nonce} was used: draft a new order"
            raise self._refused(Reason.NONCE_CONSUMED, detail)
        for other in await to_thread(self._book, {payer}):
            same = other.authorization.permit == permit
            if same and other.authorization.terms.nonce != message.terms.nonce:
                detail = f"permit {permit.nonce} is that of order {other.id}: capture or void it"
                raise self._refused(Reason.PERMIT_TAKEN, detail)
        return signature.of_key

    def _refused(self, reason: Reason, detail: str) -> SignatureRefused:
        self.metrics.count("refusals_total", reason=reason.value)
        return SignatureRefused(reason, detail)

    def _check_domain(self, message: TypedMessage, separator: Any, timestamp: int) -> None:
        """Raises SignatureRefused if the message is for another token or has expired."""
        if not isinstance(separator, str) or len(separator) < 66:
            raise self._refused(Reason.NO_TOKEN, "the token has no domain separator")
        if separator[:66] != "0x" + message.domain.separator.hex():
            detail = "name, version, chain id or address differ from the token's"
            raise self._refused(Reason.WRONG_DOMAIN, detail)
        if isinstance(message, Authorization):
            end = message.terms.valid_before
            if max(timestamp, int(self._clock())) >= end:
                raise self._refused(Reason.EXPIRED, f"expired: valid before {end}")

    async def void(self, order_id: str, why: str = "") -> Order:
        """Abandons an order: erases its signature, which is then never submitted.

        The nonce stays unused on chain. Until the window closes, a copy of the signature is still
        valid for everybody who may submit the capture (see `Authorization`).
        """
        order = await self.order(order_id)
        detail = text(why, "why", longest=LONGEST_REFERENCE)
        return await self._change(order, Trigger.VOID, sealed=None, detail=detail)

    # --- checking ---------------------------------------------------------------------------------

    async def check(self, order_ids: Sequence[str] | None = None) -> list[Report]:
        """Checks at ``pending`` whether captures would succeed, by default of all stored orders.

        Sends one JSON-RPC batch for all orders, or several if they exceed the node client's
        ``batch_limit``.
        """
        if order_ids is None:
            orders = await to_thread(lambda: list(self._stored([State.STORED])))
        else:
            orders = [await self.order(order_id) for order_id in order_ids]
        payers = {order.authorization.terms.payer for order in orders}
        return await self.preflight.check(orders, await to_thread(self._book, payers))

    def _book(self, payers: set[str]) -> list[Order]:
        """Returns the STORED and CAPTURING orders of these payers."""
        return [order for payer in payers for order in self._stored(_BOOK, payer)]

    def _stored(self, states: Sequence[State], payer: str | None = None) -> Iterator[Order]:
        return every_order(self.store, states, payer=payer)

    async def watch(self) -> AsyncGenerator[list[Change], None]:
        """Checks stored orders when a slice may have changed their verdicts. Yields the changes.

        If the node client has a feed, the node reports which orders to check (``fastevm_watch``),
        and all orders are checked once a second. If the node lacks this subscription, all orders
        are checked at each slice. Without a feed, all are checked every ``policy.poll`` seconds.
        """
        watcher = Watcher(self.node, self._recheck, self.policy.poll, self._questions)
        async with contextlib.aclosing(watcher.changes()) as watching:
            async for changes in watching:
                yield changes

    async def _recheck(self, order_ids: Sequence[str] | None) -> list[Report]:
        """Checks those of the given orders that are STORED. None checks all STORED orders."""
        if order_ids is None:
            return await self.check()
        found = [await self.order(order_id) for order_id in order_ids]
        return await self.check([order.id for order in found if order.state is State.STORED])

    async def _questions(self) -> list[tuple[dict[str, str], list[str]]]:
        """Returns the calls that the node watches for stored orders, each with its order ids."""
        return await to_thread(lambda: self.preflight.questions(list(self._stored([State.STORED]))))

    # --- capturing and cancelling -----------------------------------------------------------------

    async def capture(
        self,
        order_id: str,
        *,
        until: State = State.PAID,
        timeout: float = CAPTURE_SECONDS,
        force: bool = False,
    ) -> Order:
        """Captures the payment: submits the call that collects the money, and waits.

        If several calls or processes capture an order, one of them records a transaction, and the
        others wait for its result. ``until`` says when to return: CAPTURING after sending, CAPTURED
        when the transaction is canonical, PAID at the merchant's depth. After ``timeout`` seconds,
        or if the capture fails, returns the order in its current state: see ``state`` and
        ``reason``.

        Raises CaptureRefused if the preflight fails (``force`` submits anyway, unless a contract
        that the capture calls does not exist), IllegalTransition if the order has ended or has no
        signature, LimitReached if the policy's limit of the day is
        reached. Raises InvalidTerms if the signer's account cannot capture the order, and for a
        MEMO order, which only its payer can pay (see `wait`).
        """
        order = await self.order(order_id)
        if order.awaited:
            raise InvalidTerms(
                f"the payer of order {order_id} sends the money himself: wait for it"
            )
        if order.state in ON_THE_WAY:
            return await self.wait(order_id, until, timeout)
        begun = time.monotonic()
        try:
            await self._submit_capture(order, force)
        except CaptureRefused as refused:
            if refused.report.verdict("nonce").reason is not Reason.NONCE_CONSUMED:
                raise
            return await self._captured_by_others(order, refused, until, timeout)
        except (IllegalTransition, StaleOrder):
            order = await self.order(order_id)
            if order.state not in ON_THE_WAY:
                raise
        order = await self.wait(order_id, until, timeout)
        if order.paid:
            self.metrics.observe("capture_seconds", time.monotonic() - begun)
        self.metrics.count("captures_total", state=order.state.value)
        return order

    async def capture_many(
        self,
        order_ids: Sequence[str],
        *,
        until: State = State.PAID,
        timeout: float = CAPTURE_SECONDS,
        at_once: int = AT_ONCE,
    ) -> dict[str, Order | PaymentError]:
        """Captures several orders. Returns the order or the error for each id.

        One transaction captures up to ``Policy.batch`` TRANSFER orders, in the order given. Every
        other order gets its own transaction; ``at_once`` of these are submitted concurrently. A
        refused order does not stop the other captures; the result has its error.
        """
        gate = asyncio.Semaphore(integer(at_once, "at_once", least=1))
        together = await self.batches.submit(order_ids)

        async def capture_one(order_id: str) -> Order | PaymentError:
            try:
                if (error := together.get(order_id)) is not None:
                    return error
                if order_id not in together:
                    async with gate:
                        await self.capture(order_id, until=State.CAPTURING, timeout=0)
                return await self.wait(order_id, until, timeout)
            except PaymentError as error:
                return error

        found = await asyncio.gather(*(capture_one(order_id) for order_id in order_ids))
        return dict(zip(order_ids, found, strict=True))

    async def margin(self) -> int:
        """Returns the margin in seconds: a capture that expires sooner is refused.

        The margin is ``Policy.capture_in`` or, if that is not set, the observed inclusion time.
        Before this process has observed an inclusion, it is the chain's block time, 1 to 12 s.
        """
        if self.policy.capture_in is not None:
            return self.policy.capture_in
        margin = self.transactions.inclusion.margin()
        if margin is None:
            await self.chain.measure()
            margin = min(max(1, math.ceil(self.chain.block_seconds)), FIRST_MARGIN)
        return margin

    async def hold(self, order_id: str, *, timeout: float = CAPTURE_SECONDS) -> Order:
        """Collects the money of an order into its escrow, once, and waits until it is held.

        Then ``holds`` captures parts, voids and refunds. Otherwise like `capture`.
        """
        return await self.capture(order_id, until=State.HELD, timeout=timeout)

    async def _captured_by_others(
        self, order: Order, refused: CaptureRefused, until: State, timeout: float
    ) -> Order:
        """Waits until the chain shows how another process or system has used the nonce.

        At ``pending`` the nonce is used already. Raises ``refused`` if the order is still STORED
        after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while order.state is State.STORED:
            with contextlib.suppress(PaymentError):
                await self.reconcile()
            order = await self.order(order.id)
            if order.state is not State.STORED:
                break
            if time.monotonic() > deadline:
                raise refused
            await asyncio.sleep(self.chain.pause())
        return await self.wait(order.id, until, max(0.0, deadline - time.monotonic()))

    def refusal_of_signer(self, order: Order) -> str | None:
        """Returns why the signer's account may not capture or hold an order; None if it may."""
        authorization, caller = order.authorization, self.route.account
        if order.annex:
            operator = self.holds.terms_of(order)[0].operator
            if caller != operator:
                return f"{caller} is not the operator {operator} of its hold"
        elif authorization.permit is not None:
            if authorization.permit.spender != self.collector:
                spender = authorization.permit.spender
                return f"{caller} does not operate the permit collector {spender}"
        elif authorization.kind is Kind.RECEIVE and caller != authorization.terms.recipient:
            return f"{caller} is not the recipient {authorization.terms.recipient}"
        return None

    async def _submit_capture(self, order: Order, force: bool) -> None:
        if order.state is not State.STORED:
            raise IllegalTransition(order.state, Trigger.SUBMIT_CAPTURE)
        if (refusal := self.refusal_of_signer(order)) is not None:
            raise InvalidTerms(f"signer: order {order.id}: {refusal}, so its capture would revert")
        signature = await to_thread(self.signature_of, order)
        if signature is None:
            raise SignatureRefused(Reason.SIGNATURE_LENGTH, "no signature is stored")
        # Does not check the payer's other orders. They may be many, and they never block a capture.
        (report,) = await self.preflight.check([order])
        absent = report.verdict("domain").reason in ABSENT  # a capture would move nothing
        if not report.capturable and (absent or not force):
            if report.reason is not None:
                self.metrics.count("refusals_total", reason=report.reason.value)
            raise CaptureRefused(report)
        gas = report.gas or self.policy.forced_gas
        to, data = self.route.through(*collecting_call(order, signature))
        trigger, purpose = Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE
        if order.annex:
            trigger, purpose = Trigger.SUBMIT_HOLD, Purpose.HOLD
        try:
            await self.transactions.submit(order, trigger, purpose, data, gas=gas, to=to)
        except LimitReached:
            self.metrics.count("limit_refusals_total", limit="day")
            raise
        self._notify(await self.order(order.id))

    async def cancel(
        self,
        order_id: str,
        signature: SignatureLike,
        *,
        until: State = State.CANCELLED,
        timeout: float = CAPTURE_SECONDS,
    ) -> Order:
        """Relays the payer's cancellation, which consumes the nonce on chain, and waits.

        ``signature`` signs ``order.authorization.cancellation``. Raises SignatureRefused,
        IllegalTransition, or NodeRefusal.
        """
        parsed = Signature.parse(signature)
        order = await self.order(order_id)
        if order.state in (State.STORED, State.VOIDED):
            message = order.authorization.cancellation
            data = cancel_data(message, await self.verify(message, parsed))
            try:
                await self.transactions.submit(order, Trigger.SUBMIT_CANCEL, Purpose.CANCEL, data)
            except NodeRefusal as refusal:
                raise self._refused(*failure_of(refusal)) from None
            self._notify(await self.order(order_id))
        elif order.state not in (State.CANCELLING, State.CANCELLED):
            raise IllegalTransition(order.state, Trigger.SUBMIT_CANCEL)
        return await self.wait(order_id, until, timeout)

    async def wait(self, order_id: str, until: State, timeout: float = CAPTURE_SECONDS) -> Order:
        """Reconciles until the order reaches ``until``, for at most ``timeout`` seconds.

        Returns earlier if the order waits for no inclusion and no confirmation. A MEMO order waits
        for the transfer that the payer sends himself, until it is paid or expires.
        """
        goals = {
            State.CAPTURING: ON_THE_WAY,
            State.CAPTURED: (State.CAPTURED, State.PAID),
        }.get(until, (until,))
        deadline = time.monotonic() + timeout
        while True:
            order = await self.order(order_id)
            moving = order.state.in_flight or order.state is State.CAPTURED or order.awaited
            if order.state in goals or not moving or time.monotonic() > deadline:
                return order
            with contextlib.suppress(PaymentError):
                await self.reconcile()
            if (await self.order(order_id)).version == order.version:
                await asyncio.sleep(min(self.chain.pause(), timeout))

    # --- refunds and sweeps -----------------------------------------------------------------------

    async def refund(
        self,
        order_id: str,
        amount: int | None = None,
        *,
        refund_id: str | None = None,
        recipient: str | None = None,
        until: MovementState = MovementState.FINAL,
        timeout: float = CAPTURE_SECONDS,
    ) -> Movement:
        """Refunds ``amount`` units of a paid order, by default all that is refundable.

        Refunds the payer unless ``recipient`` names another account. ``refund_id`` identifies the
        refund within the order: calls with the same id and terms make one refund, calls with two
        ids make two refunds, even of the same amount. Without an id an order has one refund; the
        second call raises AlreadyRefunded.

        The captured part of a hold is refunded through its escrow, to its payer only, and needs
        ``holds.allow_refunds``. If a memo identifies the payment, everything that the payer sent
        can be refunded, including an excess and, after the order's window, payments that were too
        small or too late. Only money in blocks at ``Policy.depth`` counts.

        Raises LimitReached if ``amount`` exceeds the captured money that is not refunded yet,
        IllegalTransition if the order is neither paid nor held, MovementRefused if the token or the
        escrow would reject the refund now.
        """
        order = await self.order(order_id)
        income = None
        if order.authorization.memo is not None:
            order, income = await self._refundable(order)
        elif not order.paid and not (order.annex and order.state in (State.HELD, State.CAPTURED)):
            raise IllegalTransition(order.state, MovementKind.REFUND)
        movement = await self._refund(order, amount, refund_id, recipient, income)
        if order.annex:
            if movement.recipient != order.authorization.terms.payer:
                raise InvalidTerms("recipient: an escrow refunds the payer only")
            await self.holds.refund(order_id, movement.amount, key=movement.key, timeout=0)
            return await self._wait_movement(movement.key, until, timeout)

        def check(others: list[Movement]) -> None:
            left = amounts_of(order, others, income).refundable
            if movement.amount > left:
                raise NotRefundable(left, movement.amount, self.money)

        try:
            return await self._move(movement, check, until, timeout, once=refund_id is None)
        except LimitReached:
            newest = newest_refund(await self.movements(order_id))
            if refund_id is None and newest is not None:  # another process has requested the refund
                raise AlreadyRefunded(newest, self.money) from None
            raise

    async def _refundable(self, order: Order) -> tuple[Order, int]:
        """Reconciles an order with a memo. Returns the order and the units received at depth.

        Raises IllegalTransition while the order is unpaid and its window is open.
        """
        await self.reconcile()
        order, deep = await self.order(order.id), self.scanner.deep
        ended = deep is not None and deep.timestamp >= order.authorization.terms.valid_before
        if not order.paid and not (ended and order.state in (State.EXPIRED, State.VOIDED)):
            raise IllegalTransition(order.state, MovementKind.REFUND)
        if deep is None:
            return order, 0
        found = await to_thread(partial(received, self.store, order, last=deep.number))
        return order, found.total

    async def _refund(
        self,
        order: Order,
        amount: int | None,
        refund_id: str | None,
        recipient: str | None,
        income: int | None,
    ) -> Movement:
        """Returns the movement of a requested refund, without storing it.

        Raises AlreadyRefunded, or NotRefundable if nothing can be refunded.
        """
        if refund_id is not None:
            text(refund_id, "refund_id", longest=LONGEST_ID, least=1)
        others = await self.movements(order.id)
        key = refund_key(order.id, refund_id, others)
        if all(movement.key != key for movement in others):
            text(refund_id or "", "refund_id", longest=LONGEST_ID, one_line=True)
        newest = newest_refund(others)
        if refund_id is None and newest is not None:
            raise AlreadyRefunded(newest, self.money)
        if amount is None:
            known = next((movement for movement in others if movement.key == key), None)
            left = amounts_of(order, others, income).refundable
            amount = known.amount if known is not None else left
            if amount == 0:
                raise NotRefundable(0, None, self.money)
        return Movement(
            key=key,
            order_id=order.id,
            kind=MovementKind.REFUND,
            amount=integer(amount, "amount", least=1),
            recipient=self._payee(
                order.authorization.terms.payer if recipient is None else recipient
            ),
        )

    async def sweep(
        self,
        recipient: str,
        amount: int,
        *,
        key: str,
        until: MovementState = MovementState.FINAL,
        timeout: float = CAPTURE_SECONDS,
    ) -> Movement:
        """Sends ``amount`` units of the income to ``recipient``, once for each ``key``.

        Raises LimitReached if the key belongs to a movement with other terms.
        """
        movement = Movement(
            key=text(key, "key", longest=2 * LONGEST_ID, least=1, one_line=True),
            order_id="",
            kind=MovementKind.SWEEP,
            amount=integer(amount, "amount", least=1),
            recipient=self._payee(recipient),
        )
        check_key(movement.key)
        return await self._move(movement, lambda others: None, until, timeout)

    async def _move(
        self,
        movement: Movement,
        check: Callable[[list[Movement]], None],
        until: MovementState,
        timeout: float,
        *,
        once: bool = False,
    ) -> Movement:
        """Submits the token transfer of a movement once and waits. Retries a failed movement.

        With ``once``, raises AlreadyRefunded if another process has requested the movement first.
        """
        known = await to_thread(self.store.movement, movement.key)
        if known is not None and known.terms != movement.terms:
            raise OtherTerms(known, movement, self.money)
        if once and known is not None and known.state is not MovementState.FAILED:
            raise AlreadyRefunded(known, self.money)
        if known is None or known.state is MovementState.FAILED:
            check(await self._others(movement))  # before any request to the node
            data = transfer_data(movement.recipient, movement.amount)
            try:
                made = await self.transactions.prepare(*self.route.through(self.token.token, data))
            except NodeRefusal as refusal:
                other = await to_thread(self.store.movement, movement.key)
                if known is not None or other is None:
                    check(await self._others(movement))  # another process may have moved the money
                    raise MovementRefused(*failure_of(refusal)) from None
                # another process has requested the movement, and its transaction moves the money
                if once:
                    raise AlreadyRefunded(other, self.money) from None
                return await self._wait_movement(movement.key, until, timeout)
            reserved = await to_thread(self._reserve, movement, made, check, known is None)
            if reserved is not None:
                await self.transactions.carry_on(reserved)
            elif once:
                made_first = await to_thread(self.store.movement, movement.key)
                raise AlreadyRefunded(made_first, self.money)
        return await self._wait_movement(movement.key, until, timeout)

    async def _others(self, movement: Movement) -> list[Movement]:
        """Returns the movements of the same order, except ``movement`` itself."""
        found = await self.movements(movement.order_id)
        return [other for other in found if other.key != movement.key]

    def _reserve(
        self,
        movement: Movement,
        made: Prepared,
        check: Callable[[list[Movement]], None],
        new: bool,
    ) -> Submission | None:
        store, chain_id = self.store, self.token.chain_id
        sender, least = self.signer.address, made.least_nonce
        draft = self.transactions.drafted(movement.order_id, made)
        if new:
            return store.move(
                movement,
                chain_id=chain_id,
                sender=sender,
                least_nonce=least,
                draft=draft,
                check=check,
            )[1]
        return store.resubmit(
            movement, chain_id=chain_id, sender=sender, least_nonce=least, draft=draft
        )

    async def _wait_movement(self, key: str, until: MovementState, timeout: float) -> Movement:
        goals = (until, MovementState.FINAL, MovementState.FAILED)
        deadline = time.monotonic() + timeout
        while True:
            movement = await to_thread(self.store.movement, key)
            if movement is None:
                raise UnknownOrder(f"no movement has the key {key!r}")
            if movement.state in goals or time.monotonic() > deadline:
                return movement
            with contextlib.suppress(PaymentError):
                await self.reconcile()
            again = await to_thread(self.store.movement, key)
            if again == movement:
                await asyncio.sleep(min(self.chain.pause(), timeout))

    # --- reconciling ------------------------------------------------------------------------------

    async def reconcile(self) -> None:
        """Updates ledger and orders to the canonical head, and resends pending transactions.

        Concurrent callers share one pass. Raises OtherChain if the node's chain was restarted.
        Raises NodeUnreachable, NodeBehind, WrongChain, ReorganisedMeanwhile or StoreError; the next
        pass then continues without loss.
        """
        await self.reconciler.reconcile()

    async def run(self) -> None:
        """Reconciles until cancelled: at every log of the subscription, and periodically.

        Errors are logged and counted in ``metrics``; the next pass tries again. Raises OtherChain
        if the node's chain was restarted.
        """
        await self.reconciler.run()

    async def rotate_keys(self) -> int:
        """Re-encrypts the values of this shop that older keys encrypted, with the newest key.

        Returns how many values were re-encrypted. Before you remove an old key, rotate the keys of
        every shop and facilitator in the store. Raises VaultError if the ring lacks the store's
        key.
        """
        return (await to_thread(rotate, self.store, self.vault))[0]

    # --- helpers ----------------------------------------------------------------------------------

    async def _change(self, order: Order, trigger: Trigger, **members: Any) -> Order:
        change = self.store.change
        return self._notify(
            await to_thread(change, order.id, trigger, version=order.version, **members)
        )

    def _notify(self, order: Order) -> Order:
        return self.reconciler.notify(order)
