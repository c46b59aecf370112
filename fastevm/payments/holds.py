"""Holds: money collected into an escrow, then captured in parts, voided or refunded.

An order whose ``annex`` contains the escrow's terms is a hold. Each operation on a hold is a
movement in the store, and its state follows the chain. A movement has a key: repeated requests with
the same key send one transaction. `Merchant` and the facilitator's `ChainSettler` both use `Holds`.
"""

import asyncio
import secrets
import time
from asyncio import to_thread
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fastevm.payments.amounts import integer, text
from fastevm.payments.arguments import check_members, checked
from fastevm.payments.authorization import Authorization, Domain, Kind, Terms, address
from fastevm.payments.call_routes import Route
from fastevm.payments.calls import call_data
from fastevm.payments.contracts import artifact
from fastevm.payments.errors import (
    DuplicateOrder,
    IllegalTransition,
    InvalidTerms,
    LimitReached,
    MovementRefused,
    NodeRefusal,
    NotRefundable,
    OtherTerms,
    StaleOrder,
    UnknownOrder,
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
from fastevm.payments.movements import (
    ADMINISTRATION,
    Movement,
    MovementKind,
    MovementState,
    MovementTrigger,
    check_key,
)
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import LONGEST_ID, Order, Settlement, Submission
from fastevm.payments.preflight import PENDING, failure_of
from fastevm.payments.reasons import Reason
from fastevm.payments.settlement import AGAIN, ended
from fastevm.payments.states import State, Trigger
from fastevm.payments.store import Store, every_order
from fastevm.payments.tokens import money_at
from fastevm.payments.transactions import Transactions

WAIT_SECONDS: Final = 30.0  # default wait for the block of an operation
POLL_SECONDS: Final = 0.1
NO_BLOCK: Final = 0  # block hash of a receipt that is only pre-confirmed
CAPTURE_WITHIN: Final = 86_400  # seconds; default for `HoldTerms.capture_within`
REFUND_WITHIN: Final = 30 * 86_400
MOST_SECONDS: Final = 2**47  # keeps all times below 2**48, because the escrow stores them as uint48
# Movements that this module updates. `Settler` finds all other movements by their transfers.
OURS: Final = (MovementKind.PART, MovementKind.VOID, *ADMINISTRATION.values())


@checked
class HoldTerms(Struct, frozen=True):
    """The duration of a hold, in seconds from now, and the escrow that it uses."""

    capture_within: int = CAPTURE_WITHIN
    refund_within: int = REFUND_WITHIN
    deployment: Deployment = V1_1

    def __post_init__(self) -> None:
        check_members(self)

    def drawn(
        self, token: Domain, operator: str, receiver: str, payer: str, value: int | str,
        lifetime: int | str, now: int,
    ) -> tuple[Authorization, str]:  # fmt: skip
        """Returns the authorization to sign, and the escrow's terms as JSON (the order's annex).

        Raises InvalidTerms.
        """
        lifetime = integer(lifetime, "lifetime", most=MOST_SECONDS)
        now = integer(now, "now", most=MOST_SECONDS)
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


def same_order(known: Order, asked: Order, *, exact: bool) -> Order:
    """Returns ``known`` if its terms equal those of ``asked``, else raises DuplicateOrder.

    With ``exact``, nonce and times must be equal too. Otherwise only the lengths of the windows
    must be equal. An empty reference in ``asked`` matches every reference. The text of the error
    shows the differences.
    """
    stored, wanted = _terms_of(known, exact), _terms_of(asked, exact)
    if asked.reference:
        stored["reference"], wanted["reference"] = repr(known.reference), repr(asked.reference)
    if stored == wanted:
        return known
    names = sorted(name for name in stored | wanted if stored.get(name) != wanted.get(name))
    shown = "; ".join(f"{name} {stored.get(name)}, asked {wanted.get(name)}" for name in names)
    raise DuplicateOrder(f"order {known.id} exists with other terms: {shown}")


def _terms_of(order: Order, exact: bool) -> dict[str, Any]:
    """Returns the terms to compare, by name. Without ``exact``, a window is a length in seconds."""
    authorization, terms = order.authorization, order.authorization.terms
    domain = authorization.domain
    found: dict[str, Any] = {
        "token": f"{domain.token} on chain {domain.chain_id} ({domain.name!r} {domain.version!r})",
        "kind": authorization.kind.value,
        "payer": terms.payer,
        "recipient": terms.recipient,
        "value": money_at(domain.chain_id, domain.token).text(terms.value),
    }
    if exact:
        found |= {"valid_after": terms.valid_after, "valid_before": terms.valid_before}
        found["nonce"] = "0x" + terms.nonce.hex()
    elif order.annex:
        info = PaymentInfo.from_json(order.annex)
        start = info.pre_approval_expiry
        found |= {"operator": info.operator, "receiver": info.receiver}
        found["capture_within"] = f"{info.authorization_expiry - start} s after the signature"
        found["refund_within"] = f"{info.refund_expiry - start} s after the signature"
    else:
        found["valid for"] = f"{terms.valid_before - terms.valid_after} s"
    return found


class Hold(NamedTuple):
    """An order that uses an escrow, its terms, and the escrow's current payment state."""

    order: Order
    info: PaymentInfo
    held: Held


@checked
class Holds:
    """Operations on holds. Methods that ask the node may raise NodeUnreachable."""

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
        self.deployments = {deployment.erc3009_collector: deployment for deployment in deployments}

    # --- reading ----------------------------------------------------------------------------------

    async def hold(self, order_id: str, block: str = PENDING) -> Hold:
        """Returns a hold with its state at ``block``.

        Raises UnknownOrder, or InvalidTerms if the order is not a hold.
        """
        order = await to_thread(self.store.order, order_id)
        info, deployment = self.terms_of(order)
        key = info.hash(order.authorization.domain.chain_id, deployment.escrow)
        return Hold(order, info, await held(self.node, deployment.escrow, key, block))

    def terms_of(self, order: Order) -> tuple[PaymentInfo, Deployment]:
        """Returns the terms and the escrow of a hold. Raises InvalidTerms for other orders."""
        deployment = self.deployments.get(order.authorization.terms.recipient)
        if not order.annex or deployment is None:
            raise InvalidTerms(f"order {order.id} is not a hold")
        return PaymentInfo.from_json(order.annex), deployment

    def collecting(self, order: Order, signature: bytes) -> tuple[str, bytes]:
        """Returns target and data of the call that collects the money into the escrow."""
        info, deployment = self.terms_of(order)
        data = authorize_data(info, deployment.erc3009_collector, signature)
        return self.route.through(deployment.escrow, data)

    # --- moving -----------------------------------------------------------------------------------

    async def capture(
        self, order_id: str, amount: int, *, key: str, fee: int = 0, timeout: float = WAIT_SECONDS
    ) -> Movement:
        """Pays ``amount`` units less ``fee`` to the receiver, once for each ``key``.

        Raises LimitReached if fewer than ``amount`` units are left in the hold, if the policy's
        limit of the day is reached, or if the key belongs to a movement with other terms. Raises
        MovementRefused if the escrow would reject the capture now.
        """
        check_key(text(key, "key", longest=2 * LONGEST_ID, least=1))
        order = await to_thread(self.store.order, order_id)
        info, deployment = self.terms_of(order)
        units = integer(amount, "amount", least=1)
        movement = _movement(key, order, MovementKind.PART, units, info.receiver)

        def check(others: list[Movement]) -> None:
            left = info.max_amount - _sum(others, MovementKind.PART, MovementKind.VOID)
            if units > left:
                raise LimitReached(f"the hold has {left:,} units, not {units:,} units")

        data = capture_data(info, units, fee, deployment)
        return await self._move(movement, deployment.escrow, data, check, timeout)

    async def void(self, order_id: str, *, timeout: float = WAIT_SECONDS) -> Movement:
        """Returns the held money to the payer. Raises LimitReached if nothing is held."""
        order = await to_thread(self.store.order, order_id)
        info, deployment = self.terms_of(order)
        known = await to_thread(self.store.movement, f"{order_id}/void")
        left = known.amount if known is not None else (await self.hold(order_id)).held.capturable
        if not left:
            raise LimitReached(f"order {order_id}: nothing is held")
        movement = _movement(f"{order_id}/void", order, MovementKind.VOID, left, info.payer)
        return await self._move(
            movement, deployment.escrow, void_data(info), lambda others: None, timeout
        )

    async def refund(
        self, order_id: str, amount: int, *, key: str, timeout: float = WAIT_SECONDS
    ) -> Movement:
        """Refunds ``amount`` of the captured money from the operator's tokens, once per ``key``.

        The refund collector needs an allowance of the operator's tokens: :meth:`allow_refunds`.
        """
        order = await to_thread(self.store.order, order_id)
        info, deployment = self.terms_of(order)
        units = integer(amount, "amount", least=1)
        movement = _movement(key, order, MovementKind.REFUND, units, info.payer)

        def check(others: list[Movement]) -> None:
            captured = _sum(others, MovementKind.PART)
            left = captured - _sum(others, MovementKind.REFUND)
            if units > left:
                raise NotRefundable(left, units)

        data = refund_data(info, units, deployment.refund_collector)
        return await self._move(movement, deployment.escrow, data, check, timeout)

    async def allow_refunds(self, token: str, units: int, collector: str | None = None) -> str:
        """Approves the refund collector for ``units`` of the operator's tokens.

        Returns the transaction hash. The allowance stays in force until spent, so allow only what
        refunds are expected to need.
        """
        token = address(token, "token")
        if collector is None:
            collector = next(iter(self.deployments.values())).refund_collector
        spender = address(collector, "collector")
        data = call_data("approve(address,uint256)", spender, integer(units, "units"))
        # a retry within the same minute has the same key, so it does not approve again
        key = f"allowance/{spender}/{units}/{int(time.time()) // 60}"
        await self.administer(MovementKind.ALLOWANCE, key, token, data, spender, units)
        sent = await to_thread(partial(self.store.submissions, movement=key))
        return sent[-1].transaction_hash if sent else ""

    async def administer(
        self, kind: MovementKind, key: str, to: str, data: bytes, subject: str, units: int = 0
    ) -> Movement:
        """Sends a call that belongs to no order, such as an approval, and waits for inclusion.

        A repeated request with the same key sends no second call. ``key`` begins with the kind's
        prefix in `ADMINISTRATION`. ``subject`` is the account that the call concerns. Raises
        MovementRefused if the call would revert.
        """
        movement = Movement(key=key, order_id="", kind=kind, amount=units, recipient=subject)
        return await self._move(movement, to, data, lambda others: None, WAIT_SECONDS)

    async def _move(
        self,
        movement: Movement,
        to: str,
        data: bytes,
        check: Callable[[list[Movement]], None],
        timeout: float,
    ) -> Movement:
        known = await to_thread(self.store.movement, movement.key)
        if known is not None and known.terms != movement.terms:
            raise OtherTerms(known, movement)
        if known is None or known.state is MovementState.FAILED:
            if movement.order_id:
                others = await to_thread(self.store.movements, movement.order_id)
                check([other for other in others if other.key != movement.key])
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
            result: Any = await to_thread(
                partial(reserve, check=check, most_today=self.transactions.policy.most_per_day)
                if known is None
                else reserve
            )
            reserved: Submission | None = result[1] if known is None else result
            if reserved is not None:
                await self.transactions.carry_on(reserved)
        return await self.wait(movement.key, timeout)

    async def wait(self, key: str, timeout: float = WAIT_SECONDS) -> Movement:
        """Polls until the movement is in a block or has failed, at most ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            movement = await to_thread(self.store.movement, key)
            if movement is None:
                raise UnknownOrder(f"no movement has the key {key!r}")
            if movement.state is not MovementState.REQUESTED or time.monotonic() > deadline:
                return movement
            await self._look_at(movement)
            await asyncio.sleep(POLL_SECONDS)

    # --- following --------------------------------------------------------------------------------

    async def look(self, dead: Collection[str] = ()) -> None:
        """Updates movements and holds from the chain. Sends no request if none of them is open.

        ``dead`` has the hashes of blocks that a reorganisation has just removed. If there are any,
        ended movements and holds are checked too.
        """
        for movement in await to_thread(partial(self.store.movements, open_only=not dead)):
            await self._look_at(movement)
        states = (State.HELD, *AGAIN) if dead else (State.HELD,)
        for order in await to_thread(lambda: list(every_order(self.store, states))):
            if order.annex:
                await self._end(order)

    async def _look_at(self, movement: Movement) -> None:
        sent = await to_thread(partial(self.store.submissions, movement=movement.key))
        hashes = [submission.transaction_hash for submission in sent if submission.transaction_hash]
        asked: list[Any] = [("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes]
        settlement = movement.settlement
        if settlement is not None:
            asked.append(("eth_getBlockByNumber", [hex(settlement.block_number), False]))
        answers = await self.node.batch(asked)
        if settlement is not None and _stands(answers.pop(), settlement):
            return
        found = [answer for answer in answers if isinstance(answer, dict) and _canonical(answer)]
        good = next((candidate for candidate in found if int(candidate["status"], 16) == 1), None)
        if good is not None:
            logs = [read for raw in good["logs"] if (read := read_log(raw)) is not None]
            await to_thread(self.store.take, self.transactions.chain_id, logs)
        if movement.kind in OURS:
            await to_thread(self._advance, movement, good, sent)
        if found and good is None:
            # records why the transaction failed, for the next check of the movement
            await self.transactions.follow()

    def _advance(
        self, movement: Movement, receipt: dict[str, Any] | None, sent: Sequence[Submission]
    ) -> None:
        settlement = None
        if receipt is not None:
            number = int(receipt["blockNumber"], 16)
            settlement = Settlement(receipt["transactionHash"], receipt["blockHash"], number)
        try:
            if movement.settlement is not None and settlement != movement.settlement:
                movement = self.store.advance(movement.key, MovementTrigger.UNDO)
            if settlement is not None and movement.settlement is None:
                see = MovementTrigger.SEE
                self.store.advance(movement.key, see, settlement=settlement, reason=None)
            elif settlement is None and movement.state is MovementState.REQUESTED:
                last = ended(sent, movement.kind.purpose)
                if last is not None:
                    why, detail = last.reason or Reason.UNKNOWN, last.detail
                    fail = MovementTrigger.FAIL
                    self.store.advance(movement.key, fail, reason=why, detail=detail)
        except IllegalTransition:
            return  # another process has already applied the change

    async def _end(self, order: Order) -> None:
        """Ends a hold if the escrow no longer holds money for the order.

        The order becomes CAPTURED if a part was captured, otherwise RELEASED. It becomes HELD again
        if a reorganisation has put money back into the escrow.
        """
        info, _ = self.terms_of(order)
        moves = await to_thread(partial(self.store.movements, order.id))
        live = [movement for movement in moves if movement.state.counts]
        waits = any(movement.state is MovementState.REQUESTED for movement in live)
        spent = _sum(live, MovementKind.PART, MovementKind.VOID)
        whole = spent < info.max_amount and self._clock() < info.authorization_expiry
        if order.state is State.HELD and (waits or whole):
            return
        now = (await self.hold(order.id, "latest")).held
        if not now.collected:
            return  # the node is behind or reorganised: the reconciler decides
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
    """Returns why the escrow or its token rejects a call, with the name of the escrow's error."""
    reason, detail = failure_of(refusal)
    data = refusal.data
    if isinstance(data, str) and len(data) >= 10:
        named = artifact("AuthCaptureEscrow").error_name(bytes.fromhex(data[2:10]))
        return reason, named or detail
    return reason, detail


def _movement(key: str, order: Order, kind: MovementKind, amount: int, recipient: str) -> Movement:
    return Movement(key=key, order_id=order.id, kind=kind, amount=amount, recipient=recipient)


def _sum(movements: Sequence[Movement], *kinds: MovementKind) -> int:
    return sum(
        movement.amount
        for movement in movements
        if movement.state.counts and movement.kind in kinds
    )


def _stands(block: Any, settlement: Settlement) -> bool:
    """Whether a settlement's block is canonical. True if the node has no block at its height."""
    return not isinstance(block, dict) or block["hash"] == settlement.block_hash


def _canonical(receipt: dict[str, Any]) -> bool:
    return int(receipt["blockHash"] or "0x0", 16) != NO_BLOCK
