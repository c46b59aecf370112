"""Money that waits in an escrow: taken once, captured in parts, given back, refunded.

An order whose ``annex`` holds the escrow's terms is a hold. What is done with it are movements of
the store: each has a key, is one transaction however often it is asked for, and follows the chain.
`Holds` serves a `Merchant` and a facilitator's `ChainSettler` alike: both keep orders and send
transactions.
"""

import asyncio
import secrets
import time
from asyncio import to_thread
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fastevm.payments.amounts import integer
from fastevm.payments.authorization import Authorization, Domain, Kind, Terms
from fastevm.payments.calls import call_data
from fastevm.payments.contracts import artifact
from fastevm.payments.errors import (
    IllegalTransition,
    InvalidTerms,
    LimitReached,
    MovementRefused,
    NodeRefusal,
    StaleOrder,
)
from fastevm.payments.escrow import (
    V1_0,
    V1_1,
    Deployment,
    Held,
    PaymentInfo,
    authorize_data,
    capture_data,
    held,
    refund_data,
    void_data,
)
from fastevm.payments.events import read_log
from fastevm.payments.movements import Movement, MovementKind, MovementState, MovementTrigger
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Order, Settlement, Submission
from fastevm.payments.preflight import PENDING, failure_of
from fastevm.payments.reasons import Reason
from fastevm.payments.routes import Route
from fastevm.payments.settlement import AGAIN, ended
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store, every_order
from fastevm.payments.transactions import Transactions

WAIT_SECONDS: Final = 30.0  # that an operation waits for its block unless told otherwise
POLL_SECONDS: Final = 0.1
NO_BLOCK: Final = 0  # the block hash of a receipt that is only pre-confirmed
CAPTURE_WITHIN: Final = 86_400  # seconds
REFUND_WITHIN: Final = 30 * 86_400
OURS: Final = (MovementKind.PART, MovementKind.VOID)  # the others are transfers in the ledger


class HoldTerms(Struct, frozen=True):
    """How long a hold lasts, in seconds from now, and in which escrow it is."""

    capture_within: int = CAPTURE_WITHIN
    refund_within: int = REFUND_WITHIN
    deployment: Deployment = V1_1

    def drawn(
        self, token: Domain, operator: str, receiver: str, payer: str, value: int, lifetime: int,
        now: int,
    ) -> tuple[Authorization, str]:  # fmt: skip
        """What the payer signs, and the annex of the order; InvalidTerms."""
        info = PaymentInfo(
            operator=operator,
            payer=payer,
            receiver=receiver,
            token=token.token,
            max_amount=integer(value, "value", least=1),
            pre_approval_expiry=now + lifetime,
            authorization_expiry=now + max(lifetime, self.capture_within),
            refund_expiry=now + max(lifetime, self.capture_within, self.refund_within),
            salt=secrets.randbits(256),
        )
        terms = Terms(
            payer=info.payer,
            recipient=self.deployment.erc3009_collector,
            value=info.max_amount,
            valid_after=0,
            valid_before=info.pre_approval_expiry,
            nonce=info.nonce(token.chain_id, self.deployment.escrow),
        )
        return Authorization(token, terms, Kind.RECEIVE), info.to_json()


class Hold(NamedTuple):
    """An order in an escrow: its terms, and what the escrow says of it now."""

    order: Order
    info: PaymentInfo
    held: Held


class Holds:
    """What the operator does with holds. NodeUnreachable from every method."""

    def __init__(
        self,
        node: NodeClient,
        store: Store,
        transactions: Transactions,
        route: Route,
        *,
        deployments: Sequence[Deployment] = (V1_1, V1_0),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.node, self.store, self.transactions, self.route = node, store, transactions, route
        self._clock = clock
        self.deployments = {one.erc3009_collector: one for one in deployments}

    # --- reading ----------------------------------------------------------------------------------

    async def hold(self, order_id: str, block: str = PENDING) -> Hold:
        """One hold, as it is at ``block``; UnknownOrder, InvalidTerms for an order that is none."""
        order = await to_thread(self.store.order, order_id)
        info, place = self.terms_of(order)
        key = info.hash(order.authorization.domain.chain_id, place.escrow)
        return Hold(order, info, await held(self.node, place.escrow, key, block))

    def terms_of(self, order: Order) -> tuple[PaymentInfo, Deployment]:
        """The escrow's terms and the escrow; InvalidTerms for an order that is no hold."""
        place = self.deployments.get(order.authorization.terms.recipient)
        if not order.annex or place is None:
            raise InvalidTerms(f"order {order.id} is no hold")
        return PaymentInfo.from_json(order.annex), place

    def collecting(self, order: Order, signature: bytes) -> tuple[str, bytes]:
        """The call that takes the money into the escrow."""
        info, place = self.terms_of(order)
        data = authorize_data(info, place.erc3009_collector, signature)
        return self.route.through(place.escrow, data)

    # --- moving -----------------------------------------------------------------------------------

    async def capture(
        self, order_id: str, amount: int, *, key: str, fee: int = 0, timeout: float = WAIT_SECONDS
    ) -> Movement:
        """Pay ``amount`` units to the receiver, less ``fee``; once for each ``key``.

        LimitReached for more than is left, MovementRefused when the escrow would refuse now.
        """
        order = await to_thread(self.store.order, order_id)
        info, place = self.terms_of(order)
        units = integer(amount, "amount", least=1)
        movement = _movement(key, order, MovementKind.PART, units, info.receiver)

        def check(others: list[Movement]) -> None:
            left = info.max_amount - _sum(others, MovementKind.PART, MovementKind.VOID)
            if units > left:
                raise LimitReached(f"{left} units of the hold are left, not {units}")

        data = capture_data(info, units, fee, place)
        return await self._move(movement, place.escrow, data, check, timeout)

    async def void(self, order_id: str, *, timeout: float = WAIT_SECONDS) -> Movement:
        """Give everything back that is still held; LimitReached when nothing is."""
        order = await to_thread(self.store.order, order_id)
        info, place = self.terms_of(order)
        known = await to_thread(self.store.movement, f"{order_id}/void")
        left = known.amount if known is not None else (await self.hold(order_id)).held.capturable
        if not left:
            raise LimitReached("nothing is held any more")
        movement = _movement(f"{order_id}/void", order, MovementKind.VOID, left, info.payer)
        return await self._move(
            movement, place.escrow, void_data(info), lambda others: None, timeout
        )

    async def refund(
        self, order_id: str, amount: int, *, key: str, timeout: float = WAIT_SECONDS
    ) -> Movement:
        """Give back ``amount`` of what was captured, out of the operator's tokens, once a ``key``.

        The operator must have allowed the refund collector to take them: :meth:`allow_refunds`.
        """
        order = await to_thread(self.store.order, order_id)
        info, place = self.terms_of(order)
        units = integer(amount, "amount", least=1)
        movement = _movement(key, order, MovementKind.REFUND, units, info.payer)

        def check(others: list[Movement]) -> None:
            captured = _sum(others, MovementKind.PART)
            left = captured - _sum(others, MovementKind.REFUND)
            if units > left:
                raise LimitReached(f"{left} units of the order can be given back, not {units}")

        data = refund_data(info, units, place.refund_collector)
        return await self._move(movement, place.escrow, data, check, timeout)

    async def allow_refunds(self, token: str, units: int, collector: str | None = None) -> str:
        """Let the refund collector take so much of the operator's tokens; the transaction's hash.

        An allowance is a standing permission: give what refunds are expected to need, not more.
        """
        place = collector or next(iter(self.deployments.values())).refund_collector
        data = call_data("approve(address,uint256)", place, integer(units, "units"))
        # a movement of no order, whose key makes the same allowance once
        movement = Movement(
            key=f"allowance/{place}/{units}/{int(time.time()) // 60}",
            order_id="",
            kind=MovementKind.VOID,
            amount=integer(units, "units"),
            recipient=place,
        )
        await self._move(movement, token, data, lambda others: None, WAIT_SECONDS)
        sent = await to_thread(partial(self.store.submissions, movement=movement.key))
        return sent[-1].transaction_hash if sent else ""

    async def _move(
        self,
        movement: Movement,
        to: str,
        data: bytes,
        check: Callable[[list[Movement]], None],
        timeout: float,
    ) -> Movement:
        known = await to_thread(self.store.movement, movement.key)
        if known is None or known.state is MovementState.FAILED:
            if movement.order_id:
                others = await to_thread(self.store.movements, movement.order_id)
                check([one for one in others if one.key != movement.key])
            try:
                made = await self.transactions.prepare(*self.route.through(to, data))
            except NodeRefusal as refusal:
                raise MovementRefused(*_cause(refusal)) from None
            reserve = partial(
                self.store.move if known is None else self.store.resubmit,
                movement,
                chain_id=self.transactions.chain_id,
                sender=self.transactions.signer.address,
                least_nonce=made.least_nonce,
                draft=self.transactions.drafted(movement.order_id, made),
            )
            told: Any = await to_thread(partial(reserve, check=check) if known is None else reserve)
            reserved: Submission | None = told[1] if known is None else told
            if reserved is not None:
                await self.transactions.carry_on(reserved)
        return await self.wait(movement.key, timeout)

    async def wait(self, key: str, timeout: float = WAIT_SECONDS) -> Movement:
        """Look until a movement is in a block, has failed, or time is up."""
        deadline = time.monotonic() + timeout
        while True:
            movement = await to_thread(self.store.movement, key)
            assert movement is not None
            if movement.state is not MovementState.REQUESTED or time.monotonic() > deadline:
                return movement
            await self._look_at(movement)
            await asyncio.sleep(POLL_SECONDS)

    # --- following --------------------------------------------------------------------------------

    async def look(self, dead: Collection[str] = ()) -> None:
        """Bring movements and holds up to the chain; asks nothing while nothing moves.

        ``dead`` are blocks that a reorganisation has just removed: what had ended is looked at too.
        """
        for movement in await to_thread(partial(self.store.movements, open_only=not dead)):
            await self._look_at(movement)
        states = (State.HELD, *AGAIN) if dead else (State.HELD,)
        for order in await to_thread(lambda: list(every_order(self.store, states))):
            if order.annex:
                await self._end(order)

    async def _look_at(self, movement: Movement) -> None:
        sent = await to_thread(partial(self.store.submissions, movement=movement.key))
        hashes = [one.transaction_hash for one in sent if one.transaction_hash]
        asked: list[Any] = [("eth_getTransactionReceipt", [one]) for one in hashes]
        place = movement.settlement
        if place is not None:
            asked.append(("eth_getBlockByNumber", [hex(place.block_number), False]))
        told = await self.node.batch(asked)
        if place is not None and _stands(told.pop(), place):
            return
        found = [one for one in told if isinstance(one, dict) and _canonical(one)]
        good = next((one for one in found if int(one["status"], 16) == 1), None)
        if good is not None:
            logs = [read for one in good["logs"] if (read := read_log(one)) is not None]
            await to_thread(self.store.take, self.transactions.chain_id, logs)
        if movement.kind in OURS:
            await to_thread(self._advance, movement, good, sent)
        if found and good is None:
            await self.transactions.follow()  # it says why

    def _advance(
        self, movement: Movement, receipt: dict[str, Any] | None, sent: Sequence[Submission]
    ) -> None:
        place = None
        if receipt is not None:
            number = int(receipt["blockNumber"], 16)
            place = Settlement(receipt["transactionHash"], receipt["blockHash"], number)
        try:
            if movement.settlement is not None and place != movement.settlement:
                movement = self.store.advance(movement.key, MovementTrigger.UNDO)
            if place is not None and movement.settlement is None:
                see = MovementTrigger.SEE
                self.store.advance(movement.key, see, settlement=place, reason=None)
            elif place is None and movement.state is MovementState.REQUESTED:
                last = ended(sent, movement.kind.purpose)
                if last is not None:
                    why, detail = last.reason or Reason.UNKNOWN, last.detail
                    fail = MovementTrigger.FAIL
                    self.store.advance(movement.key, fail, reason=why, detail=detail)
        except IllegalTransition:
            return  # another process was faster

    async def _end(self, order: Order) -> None:
        """A hold of which nothing is left is captured, or released if no part was.

        One of which something is left again, after a reorganisation, is held again.
        """
        info, _ = self.terms_of(order)
        moves = await to_thread(partial(self.store.movements, order.id))
        live = [one for one in moves if one.state.counts]
        waits = any(one.state is MovementState.REQUESTED for one in live)
        spent = _sum(live, MovementKind.PART, MovementKind.VOID)
        whole = spent < info.max_amount and self._clock() < info.authorization_expiry
        if order.state is State.HELD and (waits or whole):
            return
        now = (await self.hold(order.id, "latest")).held
        if not now.collected:
            return  # a node that is behind, or a reorganisation: the ledger tells
        captured = _sum(live, MovementKind.PART)
        trigger: Trigger | None = None
        if order.state is not State.HELD:
            released = order.state is State.RELEASED
            if now.capturable or waits or bool(captured) is released:
                trigger = AGAIN[order.state]
        elif not now.capturable:
            trigger = Trigger.SEE_CAPTURE if captured else Trigger.SEE_RELEASE
        if trigger is None:
            return
        change = partial(self.store.change, order.id, trigger, version=order.version)
        try:
            await to_thread(partial(change, settlement=order.settlement))
        except (StaleOrder, IllegalTransition):
            return


def _cause(refusal: NodeRefusal) -> tuple[Reason, str]:
    """Why the escrow, or the token behind it, would refuse; errors of the escrow by their names."""
    reason, detail = failure_of(refusal)
    data = refusal.data
    if isinstance(data, str) and len(data) >= 10:
        named = artifact("AuthCaptureEscrow").error_name(bytes.fromhex(data[2:10]))
        return reason, named or detail
    return reason, detail


def _movement(key: str, order: Order, kind: MovementKind, amount: int, recipient: str) -> Movement:
    return Movement(key=key, order_id=order.id, kind=kind, amount=amount, recipient=recipient)


def _sum(movements: Sequence[Movement], *kinds: MovementKind) -> int:
    return sum(one.amount for one in movements if one.state.counts and one.kind in kinds)


def _stands(block: Any, place: Settlement) -> bool:
    """Whether a block is still canonical; a node that does not know its height says nothing."""
    return not isinstance(block, dict) or block["hash"] == place.block_hash


def _canonical(receipt: dict[str, Any]) -> bool:
    return int(receipt["blockHash"] or "0x0", 16) != NO_BLOCK
