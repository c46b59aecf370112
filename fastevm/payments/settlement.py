"""Applies the ledger to orders and movements.

This module marks orders as captured, paid, cancelled, held or failed, and undoes these changes
after a reorganisation. `holds` marks the end of a held order. Refunds and sweeps are recognised by
their transfers in the ledger.
"""

import logging
from asyncio import to_thread
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from fastevm.payments.authorization import Domain
from fastevm.payments.chain import Chain, head_of
from fastevm.payments.errors import (
    IllegalTransition,
    NodeRefusal,
    StaleOrder,
    UnknownOrder,
    UnreadableRow,
)
from fastevm.payments.events import ChainLog, Entry, Event, entries, read_log
from fastevm.payments.memo_payments import amount_reason, order_of, received
from fastevm.payments.movements import Movement, MovementKind, MovementState, MovementTrigger
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Order, Progress, Purpose, Settlement, Submission
from fastevm.payments.reasons import AMOUNT_REASONS, Reason
from fastevm.payments.states import State, Trigger, possible
from fastevm.payments.store import Store, every_log, every_order

log: Final = logging.getLogger(__name__)

RETRIES: Final = 5  # attempts to change an order that other processes change at the same time
UNENDED: Final = (
    State.DRAFTED, State.SIGNED, State.STORED, State.CAPTURING, State.AUTHORIZING,
    State.CANCELLING,
)  # fmt: skip
# Movements that are only token transfers; the others have their own events.
TRANSFERS: Final = (MovementKind.REFUND, MovementKind.SWEEP)

_UNDO: Final = {
    State.CAPTURED: Trigger.UNDO_CAPTURE,
    State.PAID: Trigger.UNDO_CAPTURE,
    State.CANCELLED: Trigger.UNDO_CANCEL,
    State.FAILED: Trigger.UNDO_FAILURE,
    State.HELD: Trigger.UNDO_HOLD,
    State.RELEASED: Trigger.UNDO_RELEASE,
}
# Triggers by which an ended hold becomes held again.
AGAIN: Final = {
    State.CAPTURED: Trigger.UNDO_PARTS,
    State.PAID: Trigger.UNDO_PARTS,
    State.RELEASED: Trigger.UNDO_RELEASE,
}
_RELEASE: Final = (
    (State.CAPTURING, Purpose.CAPTURE, Trigger.LOSE_CAPTURE),
    (State.CANCELLING, Purpose.CANCEL, Trigger.LOSE_CANCEL),
    (State.AUTHORIZING, Purpose.HOLD, Trigger.LOSE_HOLD),
)


class Fact(NamedTuple):
    """The effect of one authorization on the canonical chain, according to the ledger."""

    trigger: Trigger
    settlement: Settlement
    reason: Reason | None = None


class Settler:
    """Applies the ledger of one token to its orders and movements."""

    def __init__(
        self,
        store: Store,
        token: Domain,
        chain: Chain,
        changed: Callable[[Order], None],
    ) -> None:
        self.store, self.token, self.chain, self.changed = store, token, chain, changed

    # --- facts ------------------------------------------------------------------------------------

    def apply_ledger(self) -> None:
        """Applies all new ledger logs to their orders, and marks the logs as applied."""
        while news := self.store.unapplied(self.token.chain_id):
            for chain_log in news:
                try:
                    order = self._order_of(chain_log)
                except UnreadableRow as error:
                    log.error("the chain spent the nonce of what cannot be read: %s", error)
                    continue
                if order is not None:
                    self.apply_to_order(order.id)
            self.store.mark_applied(self.token.chain_id, news)

    def _order_of(self, chain_log: ChainLog) -> Order | None:
        """Returns the order with the nonce or memo of a log. May raise UnreadableRow."""
        if chain_log.event is Event.MEMO:
            return order_of(self.store, self.store, self.token.chain_id, chain_log)
        authorizer, nonce = chain_log.text("authorizer"), chain_log.text("nonce")
        return self.store.find(chain_log.address, authorizer, nonce)

    def apply_to_order(self, order_id: str) -> Order:
        """Updates one order from the ledger. Raises StaleOrder after ``RETRIES`` conflicts."""
        for _ in range(RETRIES):
            try:
                return self._apply(self.store.order(order_id))
            except StaleOrder:
                continue
        raise StaleOrder(f"order {order_id} kept changing during {RETRIES} attempts")

    def _apply(self, order: Order) -> Order:
        fact = self.fact(order)
        settled = order.settlement
        if settled is not None and (fact is None or fact.settlement != settled):
            if order.annex and order.state in AGAIN:
                order = self._change(order, AGAIN[order.state])
            trigger = _UNDO[order.state]
            log.warning("order %s: %s", order.id, trigger.value)
            order = self._change(order, trigger)
        if fact is not None and order.settlement is None and fact.trigger in possible(order.state):
            order = self._change(
                order, fact.trigger, settlement=fact.settlement, reason=fact.reason, detail=""
            )
        if order.authorization.memo is not None:
            order = self._explain_amount(order)
        return order

    def _explain_amount(self, order: Order) -> Order:
        """Records that a payer sent too little, too much or too late."""
        reason, detail = amount_reason(order, received(self.store, order))
        if reason is None and order.reason not in AMOUNT_REASONS:
            return order
        if (reason, detail) == (order.reason, order.detail):
            return order
        order = self.store.receive(order.id, reason, detail)
        self.changed(order)
        return order

    def fact(self, order: Order) -> Fact | None:
        """Returns how the canonical chain used the nonce of an order; None if it is unused.

        For an order with a memo, returns the transfer with which the sum reached the order's value,
        or None while the sum is smaller.
        """
        terms, domain = order.authorization.terms, order.authorization.domain
        if order.authorization.memo is not None:
            completed = received(self.store, order).settlement
            return None if completed is None else Fact(Trigger.SEE_CAPTURE, completed)
        nonce = "0x" + terms.nonce.hex()
        spendings = self.store.spendings(domain.chain_id, domain.token, terms.payer, nonce)
        if not spendings:
            return None
        spent = spendings[-1]
        settlement = Settlement(
            spent.key.transaction_hash, spent.key.block_hash, spent.block_number
        )
        if spent.event is Event.CANCELED:
            return Fact(Trigger.SEE_CANCEL, settlement)
        found = every_log(self.store, domain.chain_id, transaction_hash=spent.key.transaction_hash)
        if any(pays(entry, order) for entry in entries(found, domain.token)):
            # an annex means an escrow: the payer's money was collected into it
            return Fact(Trigger.SEE_HOLD if order.annex else Trigger.SEE_CAPTURE, settlement)
        return Fact(Trigger.FAIL, settlement, Reason.NONCE_SPENT_ELSEWHERE)

    def _orders(self, *states: State) -> Iterator[Order]:
        return every_order(self.store, states)

    def _change(self, order: Order, trigger: Trigger, **members: Any) -> Order:
        order = self.store.change(order.id, trigger, version=order.version, **members)
        self.changed(order)
        return order

    # --- depth, windows, failures -----------------------------------------------------------------

    async def confirm(self, node: NodeClient) -> None:
        """Marks captured orders as paid and seen movements as final once they are deep enough.

        Asks the node again for the receipts and blocks.
        """
        waiting: list[Order | Movement] = []
        waiting += await to_thread(lambda: list(self._orders(State.CAPTURED)))
        waiting += await to_thread(self._seen_movements)
        settlements = [item.settlement for item in waiting]
        asked: list[Any] = []
        for settlement in settlements:
            assert settlement is not None
            asked.append(("eth_getTransactionReceipt", [settlement.transaction_hash]))
            asked.append(("eth_getBlockByNumber", [hex(settlement.block_number), False]))
        if not asked:
            return
        depth = self.chain.policy.depth
        tag = depth if isinstance(depth, str) else "latest"
        *found, latest, tagged = await node.batch(
            [*asked, *(("eth_getBlockByNumber", [block, False]) for block in ("latest", tag))]
        )
        head = head_of(latest)
        deep = None if isinstance(tagged, NodeRefusal) else head_of(tagged)
        number = None if head is None else self.chain.newest_confirmed_number(head, deep)
        for at, item in enumerate(waiting):
            if number is None or not _stands(item.settlement, found[2 * at], found[2 * at + 1]):
                continue
            assert item.settlement is not None
            if item.settlement.block_number > number:
                continue
            if isinstance(item, Movement):
                await to_thread(self._advance, item, MovementTrigger.REACH_DEPTH)
            elif self._pays(item, found[2 * at]):
                await to_thread(self._try, item, Trigger.REACH_DEPTH)

    def _pays(self, order: Order, receipt: dict[str, Any]) -> bool:
        logs = [read for raw in receipt["logs"] if (read := read_log(raw)) is not None]
        found = entries(logs, order.authorization.domain.token)
        return any(pays(entry, order) for entry in found)

    def expire(self, timestamp: int) -> None:
        """Expires orders whose window has closed at ``timestamp``.

        ``timestamp`` is the timestamp of a block at the merchant's depth. The ledger has no capture
        of these orders up to that block. Later blocks have later timestamps, so they contain no
        capture either.
        """
        for order in every_order(self.store, UNENDED, ended_at=timestamp):
            known = order.reason if order.reason in AMOUNT_REASONS else Reason.EXPIRED
            self._try(order, Trigger.EXPIRE, reason=known)

    def release(self) -> None:
        """Changes orders whose transactions all failed.

        The orders become STORED or VOIDED again, or FAILED if no capture can ever succeed.
        """
        for state, purpose, trigger in _RELEASE:
            sent: dict[str, list[Submission]] = {}
            for submission in self.store.submissions(state=state):
                if not submission.movement:
                    sent.setdefault(submission.order_id, []).append(submission)
            for order in self._orders(state):
                known = sent.get(order.id, [])
                if any(submission.purpose is purpose for submission in known) and not ended(
                    known, purpose
                ):
                    continue
                # read again: a transaction may have been reserved after the first query
                ours = self.store.submissions(order_id=order.id, movement="")
                if not any(submission.purpose is purpose for submission in ours):
                    self._try(order, trigger)
                elif (last := ended(ours, purpose)) is not None:
                    self._release(order, trigger, last)

    def _release(self, order: Order, trigger: Trigger, last: Submission) -> None:
        reason = last.reason or order.reason or Reason.UNKNOWN
        log.info("order %s: its transaction ended: %s", order.id, reason.value)
        if trigger is Trigger.LOSE_CAPTURE and reason.final:
            trigger = Trigger.FAIL
        if trigger is Trigger.LOSE_CANCEL and order.sealed is None:
            # the order was voided, so it has no signature any more
            trigger = Trigger.LOSE_VOIDED_CANCEL
        self._try(order, trigger, reason=reason, detail=last.detail)

    def _try(self, order: Order, trigger: Trigger, **members: Any) -> None:
        """Applies a change unless another process changed the order first."""
        try:
            self._change(order, trigger, **members)
        except (StaleOrder, IllegalTransition):
            log.info("order %s was changed by another process", order.id)

    # --- movements --------------------------------------------------------------------------------

    def apply_to_movements(self, dead: Collection[str]) -> None:
        """Updates movements from the ledger.

        ``dead`` has the hashes of blocks that a reorganisation has just removed.
        """
        for movement in self.store.movements(open_only=not dead):
            if movement.kind not in TRANSFERS:
                continue
            sent = self.store.submissions(movement=movement.key)
            settlement = self._find_transfer(movement, sent)
            if movement.settlement is not None and settlement != movement.settlement:
                movement = self._advance(movement, MovementTrigger.UNDO)
            if settlement is not None and movement.settlement is None:
                self._advance(movement, MovementTrigger.SEE, settlement=settlement, reason=None)
            elif movement.state is MovementState.REQUESTED:
                last = ended(sent, movement.kind.purpose)
                if last is not None:
                    reason = last.reason or Reason.UNKNOWN
                    self._advance(movement, MovementTrigger.FAIL, reason=reason, detail=last.detail)

    def _find_transfer(self, movement: Movement, sent: Sequence[Submission]) -> Settlement | None:
        """Returns the canonical transaction that contains a refund's or sweep's token transfer.

        ``sent`` are the transactions that were sent for the movement. Returns None if the ledger
        has no transfer of the movement's amount to its recipient in any of them.
        """
        for submission in sent:
            if not submission.transaction_hash or submission.purpose is Purpose.FILL:
                continue
            for chain_log in every_log(
                self.store, self.token.chain_id, transaction_hash=submission.transaction_hash
            ):
                if (
                    chain_log.event is Event.TRANSFER
                    and chain_log.address == self.token.token
                    and chain_log.text("recipient") == movement.recipient
                    and chain_log.number("amount") == movement.amount
                ):
                    key = chain_log.key
                    return Settlement(key.transaction_hash, key.block_hash, chain_log.block_number)
        return None

    def _seen_movements(self) -> list[Movement]:
        return [
            movement
            for movement in self.store.movements(open_only=True)
            if movement.state is MovementState.SEEN
        ]

    def _advance(self, movement: Movement, trigger: MovementTrigger, **members: Any) -> Movement:
        """Applies a transition to a movement, unless another process has applied it first.

        Returns the movement as it is stored then.
        """
        try:
            return self.store.advance(movement.key, trigger, **members)
        except IllegalTransition:
            return self.store.movement(movement.key) or movement


def ended(submissions: Sequence[Submission], purpose: Purpose) -> Submission | None:
    """Returns the last transaction with a purpose, if no transaction with it can be included now.

    Returns None if there is no transaction with this purpose, or if one waits or has succeeded.
    """
    last = None
    for submission in submissions:
        if submission.purpose is not purpose:
            continue
        if submission.progress.waiting or submission.progress is Progress.SUCCEEDED:
            return None
        last = submission
    return last


def _stands(settlement: Settlement | None, receipt: Any, block: Any) -> bool:
    """Whether a transaction succeeded in a canonical block. False if unknown."""
    if settlement is None or not isinstance(receipt, dict) or not isinstance(block, dict):
        return False
    if receipt["blockHash"] != settlement.block_hash or block["hash"] != settlement.block_hash:
        return False
    return int(receipt["status"], 16) == 1


def pays(entry: Entry, order: Order) -> bool:
    """Whether a transfer is the payment, or a part of it, that the order's authorization allows.

    The nonce alone proves nothing: the payer can use up the nonce with another authorization.
    """
    terms = order.authorization.terms
    if order.authorization.memo is not None:
        parties = entry.transfer.text("sender"), entry.transfer.text("recipient")
        return entry.memo == order.authorization.memo and parties == (terms.payer, terms.recipient)
    return (
        entry.authorization == (terms.payer, "0x" + terms.nonce.hex())
        and entry.transfer.text("recipient") == terms.recipient
        and entry.amount == terms.value
    )


def is_covered(store: Store, movement: Movement, deep: int | None) -> bool:
    """Whether the order has received the money of a refund. True for other movements.

    Earlier refunds of the order are deducted first. With ``deep``, the number of the newest block
    at the merchant's depth, only money at that depth counts; with None, money at any depth. Refunds
    of a hold are covered, because an escrow refunds only what it has captured.
    """
    if movement.kind is not MovementKind.REFUND:
        return True
    try:
        order = store.order(movement.order_id)
    except (UnknownOrder, UnreadableRow):
        return False
    if order.annex:
        return True
    if order.authorization.memo is not None:
        income = received(store, order, last=deep).total
    else:
        arrived = order.paid or (deep is None and order.state is State.CAPTURED)
        income = order.authorization.terms.value if arrived else 0
    refunds = [
        item
        for item in store.movements(order.id)
        if item.kind is MovementKind.REFUND and item.state.counts
    ]
    # refunds on the chain come first: they have already been paid out
    refunds.sort(key=lambda item: (item.settlement is None, item.created_at, item.key))
    taken = 0
    for item in refunds:
        taken += item.amount
        if item.key == movement.key:
            break
    return taken <= income
