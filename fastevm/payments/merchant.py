"""The back end of a merchant in one object: draft, accept, check, capture, cancel, void, reconcile.

One object serves one recipient and one token on one chain. Several processes may share a store:
what must happen once is decided in it, and any of them finishes what another began.
"""

import asyncio
import contextlib
import logging
import time
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

from fastevm.payments.authorization import (
    DEFAULT_BACKDATE,
    DEFAULT_LIFETIME,
    Authorization,
    Domain,
    Kind,
    Terms,
    TypedMessage,
    address,
)
from fastevm.payments.calls import ERC1271_MAGIC, cancel_data, capture_data, wallet_data
from fastevm.payments.errors import (
    CaptureRefused,
    IllegalTransition,
    InvalidTerms,
    NodeRefusal,
    NodeUnreachable,
    PaymentError,
    SignatureRefused,
    StaleOrder,
)
from fastevm.payments.events import ChainLog, Entry, entries
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
from fastevm.payments.policy import Policy, Signer
from fastevm.payments.preflight import PENDING, Preflight, Report, failure_of
from fastevm.payments.reasons import Reason
from fastevm.payments.routes import Direct, Route
from fastevm.payments.scanner import Scanner
from fastevm.payments.settlement import Settling, depth_block
from fastevm.payments.signatures import Signature, fault_of
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store, every_log, every_order
from fastevm.payments.transactions import Transactions
from fastevm.payments.vault import Vault
from fastevm.payments.watcher import Change, Watcher

log: Final = logging.getLogger(__name__)

CAPTURE_SECONDS: Final = 60.0  # that capture() and cancel() wait unless told otherwise
SignatureLike = Signature | str | bytes | Sequence[int]

_ON_THE_WAY: Final = (State.CAPTURING, State.CAPTURED, State.PAID)
_BOOK: Final = (State.STORED, State.CAPTURING)


class Merchant:
    """Everything that a back end does with authorizations.

        async with Merchant(node, store, vault, token, signer) as merchant:
            order = await merchant.draft("order-1", payer, 10_000_000)
            ...  # the payer signs order.authorization.typed_data()
            await merchant.accept("order-1", signature)
            order = await merchant.capture("order-1")
            assert order.paid

    ``signer`` pays the gas and is the recipient, unless ``route`` is a wallet that it controls,
    which then is the recipient, or ``recipient`` names another account, which then can only be
    paid by authorizations of the kind TRANSFER. The node, the store and the signer stay the
    caller's to close, :meth:`close` only ends what runs here.
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
    ) -> None:
        self.node, self.store, self.vault = node, store, vault
        self.token, self.signer, self.policy = token, signer, policy or Policy()
        self.route = route or Direct(signer.address)
        self.recipient = address(recipient or self.route.account, "recipient")
        self._clock = clock
        self._listeners: list[Callable[[Order], None]] = []
        self._news: list[Order] = []
        self._pass: asyncio.Task[None] | None = None
        self.transactions = Transactions(
            node, store, vault, signer, self.policy, chain_id=token.chain_id
        )
        self.settling = Settling(store, token, self.policy, self._news.append)
        self.scanner = Scanner(
            node, store, token, self.recipient,
            overlap=self.policy.overlap,
            first_block=self.policy.first_block,
            range_blocks=self.policy.range_blocks,
        )  # fmt: skip
        self.preflight = Preflight(
            node, signer.address, self.signature_of,
            route=self.route,
            capture_in=self.policy.capture_in,
            clock=clock,
        )  # fmt: skip

    async def __aenter__(self) -> "Merchant":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the reconciliation under way."""
        if self._pass is not None:
            self._pass.cancel()
            await asyncio.gather(self._pass, return_exceptions=True)

    # --- reading ----------------------------------------------------------------------------------

    async def order(self, order_id: str) -> Order:
        """One order; UnknownOrder."""
        return await to_thread(self.store.order, order_id)

    async def orders(
        self, states: Sequence[State] | None = None, *, after: str = "", limit: int = PAGE
    ) -> list[Order]:
        """Orders by id."""
        return await to_thread(self.store.orders, states, after=after, limit=limit)

    async def submissions(self, order_id: str) -> list[Submission]:
        """The transactions sent for an order."""
        return await to_thread(self.store.submissions, order_id=order_id)

    async def audit(self, order_id: str) -> list[AuditEntry]:
        """What happened to an order, oldest first."""
        return await to_thread(self.store.audit, order_id)

    async def ledger(self, *, first: int = 0, last: int | None = None) -> list[Entry]:
        """The canonical transfers to and from this merchant, each with its references.

        From block ``first`` to ``last``; all of them are in memory at once.
        """
        return await to_thread(self._ledger, first, last)

    def _ledger(self, first: int, last: int | None) -> list[Entry]:
        by_transaction: dict[str, list[ChainLog]] = {}
        for one in every_log(self.store, self.token.chain_id, first=first, last=last):
            by_transaction.setdefault(one.key.transaction_hash, []).append(one)
        us = self.recipient
        return [
            entry
            for group in by_transaction.values()
            for entry in entries(group, self.token.token)
            if us in (entry.transfer.text("sender"), entry.transfer.text("recipient"))
        ]

    def on_change(self, listener: Callable[[Order], None]) -> None:
        """Call ``listener(order)`` on the event loop after every change that this object makes."""
        self._listeners.append(listener)

    def signature_of(self, order: Order) -> Signature | None:
        """The stored signature of an order; None before one is stored. VaultError."""
        if order.sealed is None:
            return None
        return Signature(self.vault.open(order.sealed, order.place))

    # --- authorizing ------------------------------------------------------------------------------

    async def draft(
        self,
        order_id: str,
        payer: str,
        value: int,
        *,
        lifetime: int = DEFAULT_LIFETIME,
        backdate: int = DEFAULT_BACKDATE,
        reference: str = "",
        kind: Kind = Kind.RECEIVE,
        terms: Terms | None = None,
    ) -> Order:
        """Set the terms of an order: ``value`` token units from ``payer`` within ``lifetime`` s.

        ``terms`` replaces them all. Asking again with the same id answers the order that is there,
        if the terms say the same. DuplicateOrder, InvalidTerms.
        """
        if not 0 < len(order_id) <= LONGEST_ID or len(reference) > LONGEST_REFERENCE:
            raise InvalidTerms(
                f"order_id: expected 1 to {LONGEST_ID} characters; "
                f"reference: at most {LONGEST_REFERENCE}"
            )
        if terms is None:
            terms = Terms.now(
                payer, self.recipient, value,
                lifetime=lifetime, backdate=backdate, at=int(self._clock()),
            )  # fmt: skip
        if terms.recipient != self.recipient:
            raise InvalidTerms(f"recipient: expected {self.recipient}, whom this merchant serves")
        if kind is Kind.RECEIVE and self.route.account != self.recipient:
            raise InvalidTerms("kind: only the recipient submits RECEIVE, and another account does")
        order = Order(
            id=order_id,
            authorization=Authorization(self.token, terms, kind),
            reference=reference,
        )
        return self._tell(await to_thread(self.store.add, order))

    async def accept(self, order_id: str, signature: SignatureLike) -> Order:
        """Verify the payer's signature and store it sealed: drafted becomes signed, then stored.

        The same signature again changes nothing. SignatureRefused names what is wrong with it.
        """
        parsed = Signature.parse(signature)
        order = await self.order(order_id)
        if order.state in _BOOK and self.signature_of(order) == parsed:
            return order
        await self.verify(order.authorization, parsed)
        if order.state is State.DRAFTED:
            order = await self._change(order, Trigger.SIGN)
        sealed = self.vault.seal(parsed.secret_bytes, order.place)
        order = await self._change(order, Trigger.STORE, sealed=sealed)
        return self._tell(await to_thread(self.settling.settle, order.id))

    async def verify(self, message: TypedMessage, signature: Signature) -> None:
        """Raise SignatureRefused unless the token would take this signature now.

        A payer with code decides by its contract (ERC-1271), any other by its key.
        """
        question = "0x" + wallet_data(message.digest, signature).hex()
        code, answer = await self.node.batch(
            [
                ("eth_getCode", [message.signer, PENDING]),
                ("eth_call", [{"to": message.signer, "data": question}, PENDING]),
            ]
        )
        if isinstance(code, NodeRefusal):
            raise code
        if code not in ("0x", None):
            magic = "0x" + ERC1271_MAGIC.hex()
            if isinstance(answer, str) and len(answer) >= 66 and answer.startswith(magic):
                return
            detail = "the payer's contract does not accept it"
            raise SignatureRefused(Reason.SIGNATURE_SIGNER, detail)
        fault = fault_of(message, signature)
        if fault is not None:
            raise SignatureRefused(*fault)

    async def void(self, order_id: str, why: str = "") -> Order:
        """Give an order up: its signature is erased here and never submitted.

        On chain the nonce stays unused: whoever else has the signature may use it until it expires.
        """
        order = await self.order(order_id)
        detail = why[:LONGEST_REFERENCE]
        return await self._change(order, Trigger.VOID, sealed=None, detail=detail)

    # --- checking ---------------------------------------------------------------------------------

    async def check(self, order_ids: Sequence[str] | None = None) -> list[Report]:
        """Whether captures would succeed now, read at ``pending``; all stored orders when left out.

        One batch, whatever their number, as long as the node takes batches of that size.
        """
        if order_ids is None:
            orders = await to_thread(lambda: list(self._stored([State.STORED])))
        else:
            orders = [await self.order(order_id) for order_id in order_ids]
        payers = {order.authorization.terms.payer for order in orders}
        return await self.preflight.check(orders, await to_thread(self._book, payers))

    def _book(self, payers: set[str]) -> list[Order]:
        """All stored authorizations of these payers."""
        return [one for payer in payers for one in self._stored(_BOOK, payer)]

    def _stored(self, states: Sequence[State], payer: str | None = None) -> Iterator[Order]:
        domain = self.token
        return every_order(
            self.store, states, chain_id=domain.chain_id, token=domain.token, payer=payer
        )

    async def watch(self) -> AsyncGenerator[list[Change], None]:
        """Check all stored orders at each slice, and tell what changed since the last check."""
        watcher = Watcher(self.node, self.check, self.policy.poll)
        async with contextlib.aclosing(watcher.changes()) as watching:
            async for changes in watching:
                yield changes

    # --- capturing and cancelling -----------------------------------------------------------------

    async def capture(
        self,
        order_id: str,
        *,
        until: State = State.PAID,
        timeout: float = CAPTURE_SECONDS,
        force: bool = False,
    ) -> Order:
        """Take the money: submit ``receiveWithAuthorization`` once, and wait.

        However often and from however many processes it is called, one transaction is recorded; the
        others wait for its outcome. ``until`` CAPTURING comes back when it is sent, CAPTURED when
        it is canonical, PAID at the merchant's depth; after ``timeout`` seconds, or when the
        capture has failed, the order comes back as it is: look at ``state`` and ``reason``.

        CaptureRefused when the pre-flight says that it would fail now; ``force`` submits
        nevertheless. IllegalTransition for orders that have ended or hold no signature.
        """
        order = await self.order(order_id)
        if order.state not in _ON_THE_WAY:
            try:
                await self._submit_capture(order, force)
            except (IllegalTransition, StaleOrder):
                order = await self.order(order_id)
                if order.state not in _ON_THE_WAY:
                    raise
        return await self.wait(order_id, until, timeout)

    async def _submit_capture(self, order: Order, force: bool) -> None:
        if order.state is not State.STORED:
            raise IllegalTransition(order.state, Trigger.SUBMIT_CAPTURE)
        signature = await to_thread(self.signature_of, order)
        if signature is None:
            raise SignatureRefused(Reason.SIGNATURE_LENGTH, "no signature is stored")
        (report,) = await self.check([order.id])
        if not report.capturable and not force:
            raise CaptureRefused(report)
        data = capture_data(order.authorization, signature)
        gas = report.gas or self.policy.forced_gas
        to, data = self.route.through(order.authorization.domain.token, data)
        await self.transactions.submit(
            order, Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE, data, gas=gas, to=to
        )
        self._tell(await self.order(order.id))

    async def cancel(
        self,
        order_id: str,
        signature: SignatureLike,
        *,
        until: State = State.CANCELLED,
        timeout: float = CAPTURE_SECONDS,
    ) -> Order:
        """Relay the payer's cancellation: burn the nonce on chain, and wait.

        ``signature`` is over ``order.authorization.cancellation``. SignatureRefused,
        IllegalTransition; NodeRefusal when the token would refuse.
        """
        parsed = Signature.parse(signature)
        order = await self.order(order_id)
        if order.state in (State.STORED, State.VOIDED):
            message = order.authorization.cancellation
            await self.verify(message, parsed)
            data = cancel_data(message, parsed)
            try:
                await self.transactions.submit(order, Trigger.SUBMIT_CANCEL, Purpose.CANCEL, data)
            except NodeRefusal as refusal:
                raise SignatureRefused(*failure_of(refusal)) from None
            self._tell(await self.order(order_id))
        elif order.state not in (State.CANCELLING, State.CANCELLED):
            raise IllegalTransition(order.state, Trigger.SUBMIT_CANCEL)
        return await self.wait(order_id, until, timeout)

    async def wait(self, order_id: str, until: State, timeout: float = CAPTURE_SECONDS) -> Order:
        """Reconcile until the order is there, or nothing is on the way any more, or time is up."""
        goals = {
            State.CAPTURING: (State.CAPTURING, State.CAPTURED, State.PAID),
            State.CAPTURED: (State.CAPTURED, State.PAID),
        }.get(until, (until,))
        deadline = time.monotonic() + timeout
        while True:
            order = await self.order(order_id)
            moving = order.state.in_flight or order.state is State.CAPTURED
            if order.state in goals or not moving or time.monotonic() > deadline:
                return order
            with contextlib.suppress(NodeUnreachable, PaymentError):
                await self.reconcile()
            if (await self.order(order_id)).version == order.version:
                await asyncio.sleep(self.policy.poll)

    # --- reconciling ------------------------------------------------------------------------------

    async def reconcile(self) -> None:
        """Bring ledger and orders up to the canonical head, and move what is under way.

        Those who call while one pass runs share it. NodeUnreachable, ReorganisedMeanwhile: nothing
        is lost, the next pass goes on.
        """
        if self._pass is None or self._pass.done():
            self._pass = asyncio.create_task(self._reconcile())
        await asyncio.shield(self._pass)

    async def _reconcile(self) -> None:
        try:
            head = await self.scanner.scan()
            await to_thread(self.settling.apply_ledger)
            await self.transactions.follow()
            await to_thread(self.settling.release)
            await self.settling.confirm(self.node)
            number = depth_block(head, self.policy.depth)
            if number is not None:
                block = await self.node.call("eth_getBlockByNumber", hex(number), False)
                if block is not None:
                    await to_thread(self.settling.expire, int(block["timestamp"], 16))
        finally:
            self._tell_news()

    async def run(self) -> None:
        """Reconcile until cancelled: at every log of the stream, and again and again without any.

        Errors of the node are logged, and the next pass tries again.
        """
        wake = asyncio.Event()
        streams = [
            asyncio.create_task(self._listen(one, wake))
            for one in (await to_thread(self.scanner.filters))[:2]
            if self.node.feed_url is not None
        ]
        try:
            while True:
                wake.clear()
                try:
                    await self.reconcile()
                except PaymentError as error:
                    log.warning("reconciliation stopped: %s", type(error).__name__)
                # not wait_for: before Python 3.12 it can swallow a cancellation
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(await to_thread(self._pause)):
                        await wake.wait()
        finally:
            for stream in streams:
                stream.cancel()
            await asyncio.gather(*streams, return_exceptions=True)

    def _pause(self) -> float:
        """Seconds until the next pass: short while something is on its way."""
        moving = self.store.orders([State.CAPTURING, State.CANCELLING], limit=1)
        return self.policy.poll if moving else self.policy.scan_every

    async def _listen(self, wanted: dict[str, Any], wake: asyncio.Event) -> None:
        """Apply the stream of canonical logs; a new connection asks for a scan."""
        async for told in self.node.subscribe("logs", wanted):
            try:
                if told is None or await self.scanner.hear(told):
                    wake.set()
            except PaymentError as error:
                log.warning("a log of the stream waits for the next scan: %s", type(error).__name__)

    async def rotate_keys(self) -> int:
        """Seal again, under the newest key, what older keys of the ring sealed; how many."""

        def again(sealed: bytes, place: str) -> bytes | None:
            if not self.vault.outdated(sealed):
                return None
            return self.vault.seal(self.vault.open(sealed, place), place)

        return await to_thread(self.store.reseal, again)

    # --- inside -----------------------------------------------------------------------------------

    async def _change(self, order: Order, trigger: Trigger, **members: Any) -> Order:
        change = self.store.change
        return self._tell(
            await to_thread(change, order.id, trigger, version=order.version, **members)
        )

    def _tell(self, order: Order) -> Order:
        log.info("order %s is %s", order.id, order.state.value)
        for listener in self._listeners:
            listener(order)
        return order

    def _tell_news(self) -> None:
        news, self._news[:] = list(self._news), []
        for order in news:
            self._tell(replace(order))
