"""Holds orders against the ledger: what the canonical chain says becomes the orders' state.

Only here does an order become captured, paid or cancelled, and only here is that taken back.
"""

import logging
from asyncio import to_thread
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from fastevm.payments.authorization import Domain
from fastevm.payments.errors import IllegalTransition, StaleOrder
from fastevm.payments.events import Checkpoint, Entry, Event, entries, read_log
from fastevm.payments.node import NodeClient
from fastevm.payments.orders import Order, Purpose, Settlement, Submission
from fastevm.payments.policy import Policy
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State, Trigger, possible
from fastevm.payments.store import Store, every_log, every_order
from fastevm.payments.transactions import ended

log: Final = logging.getLogger(__name__)

RETRIES: Final = 5  # of a change that another process was faster with

_UNDO: Final = {
    State.CAPTURED: Trigger.UNDO_CAPTURE,
    State.PAID: Trigger.UNDO_CAPTURE,
    State.CANCELLED: Trigger.UNDO_CANCEL,
    State.FAILED: Trigger.UNDO_FAILURE,
}
_RELEASE: Final = (
    (State.CAPTURING, Purpose.CAPTURE, Trigger.LOSE_CAPTURE),
    (State.CANCELLING, Purpose.CANCEL, Trigger.LOSE_CANCEL),
)


class Fact(NamedTuple):
    """What the ledger says about one authorization."""

    trigger: Trigger
    settlement: Settlement
    reason: Reason | None = None


class Settling:
    """Applies the ledger of one token to its orders."""

    def __init__(
        self,
        store: Store,
        token: Domain,
        policy: Policy,
        changed: Callable[[Order], None],
    ) -> None:
        self.store, self.token, self.policy, self.changed = store, token, policy, changed

    # --- facts ------------------------------------------------------------------------------------

    def apply_ledger(self) -> None:
        """Settle every order whose nonce the ledger has news of; what is done is marked so."""
        while news := self.store.unsettled(self.token.chain_id):
            for one in news:
                order = self.store.find(
                    self.token.chain_id, one.address, one.text("authorizer"), one.text("nonce")
                )
                if order is not None:
                    self.settle(order.id)
            self.store.settled(self.token.chain_id, news)

    def settle(self, order_id: str) -> Order:
        """Make one order say what the ledger says."""
        for _ in range(RETRIES):
            try:
                return self._settle(self.store.order(order_id))
            except StaleOrder:
                continue
        raise StaleOrder(f"order {order_id} is changed again and again")

    def _settle(self, order: Order) -> Order:
        fact = self.fact(order)
        settled = order.settlement
        if settled is not None and (fact is None or fact.settlement != settled):
            trigger = _UNDO[order.state]
            log.warning("order %s: %s", order.id, trigger.value)
            order = self._change(order, trigger)
        if fact is not None and order.settlement is None and fact.trigger in possible(order.state):
            order = self._change(
                order, fact.trigger, settlement=fact.settlement, reason=fact.reason
            )
        return order

    def fact(self, order: Order) -> Fact | None:
        """How the canonical chain spent the nonce of an order; None when it did not."""
        terms, domain = order.authorization.terms, order.authorization.domain
        nonce = "0x" + terms.nonce.hex()
        spendings = self.store.spendings(domain.chain_id, domain.token, terms.payer, nonce)
        if not spendings:
            return None
        spent = spendings[-1]
        place = Settlement(spent.key.transaction_hash, spent.key.block_hash, spent.block_number)
        if spent.event is Event.CANCELED:
            return Fact(Trigger.SEE_CANCEL, place)
        found = every_log(self.store, domain.chain_id, transaction_hash=spent.key.transaction_hash)
        if any(pays(entry, order) for entry in entries(found, domain.token)):
            return Fact(Trigger.SEE_CAPTURE, place)
        return Fact(Trigger.FAIL, place, Reason.NONCE_SPENT_ELSEWHERE)

    def _orders(self, *states: State) -> Iterator[Order]:
        """Orders of this token; a store may hold those of others."""
        domain = self.token
        return every_order(self.store, states, chain_id=domain.chain_id, token=domain.token)

    def _change(self, order: Order, trigger: Trigger, **members: Any) -> Order:
        order = self.store.change(order.id, trigger, version=order.version, **members)
        self.changed(order)
        return order

    # --- depth, windows, ends ---------------------------------------------------------------------

    async def confirm(self, node: NodeClient) -> None:
        """Captured orders that are deep enough, by their receipts and blocks, become paid."""
        waiting = await to_thread(lambda: list(self._orders(State.CAPTURED)))
        asked: list[Any] = []
        for order in waiting:
            assert order.settlement is not None
            place = order.settlement
            asked.append(("eth_getTransactionReceipt", [place.transaction_hash]))
            asked.append(("eth_getBlockByNumber", [hex(place.block_number), False]))
        if not asked:
            return
        *found, head = await node.batch([*asked, ("eth_blockNumber", [])])
        for at, order in enumerate(waiting):
            receipt, block = found[2 * at], found[2 * at + 1]
            if isinstance(head, str) and self._is_paid(order, receipt, block, int(head, 16)):
                await to_thread(self._try, order, Trigger.REACH_DEPTH)

    def _is_paid(self, order: Order, receipt: Any, block: Any, head: int) -> bool:
        place = order.settlement
        if place is None or not isinstance(receipt, dict) or not isinstance(block, dict):
            return False
        if receipt["blockHash"] != place.block_hash or block["hash"] != place.block_hash:
            return False
        if int(receipt["status"], 16) != 1 or head - place.block_number + 1 < self.policy.depth:
            return False
        logs = [read for one in receipt["logs"] if (read := read_log(one)) is not None]
        found = entries(logs, order.authorization.domain.token)
        return any(pays(entry, order) for entry in found)

    def expire(self, timestamp: int) -> None:
        """End orders whose window is closed at ``timestamp`` of a block at the merchant's depth.

        Every later block is later still, and the ledger holds no capture up to it.
        """
        for order in self._orders(
            State.DRAFTED, State.SIGNED, State.STORED, State.CAPTURING, State.CANCELLING
        ):
            if order.authorization.terms.valid_before <= timestamp:
                self._try(order, Trigger.EXPIRE, reason=Reason.EXPIRED)

    def release(self) -> None:
        """Orders whose transactions have all come to nothing can be captured again, or fail."""
        for state, purpose, trigger in _RELEASE:
            for order in self._orders(state):
                sent = self.store.submissions(order_id=order.id)
                if any(one.purpose is purpose for one in sent):
                    last = ended(sent, purpose)
                    if last is None:
                        continue
                    self._release(order, trigger, last)
                else:
                    self._try(order, trigger)

    def _release(self, order: Order, trigger: Trigger, last: Submission) -> None:
        reason = last.reason or Reason.UNKNOWN
        log.info("order %s: its transaction ended: %s", order.id, reason.value)
        if trigger is Trigger.LOSE_CAPTURE and reason.final:
            trigger = Trigger.FAIL
        if trigger is Trigger.LOSE_CANCEL and order.sealed is None:
            trigger = Trigger.LOSE_VOIDED_CANCEL  # it was voided, and nothing is left to capture
        self._try(order, trigger, reason=reason, detail=last.detail)

    def _try(self, order: Order, trigger: Trigger, **members: Any) -> None:
        """Apply a change unless somebody else has changed the order meanwhile."""
        try:
            self._change(order, trigger, **members)
        except (StaleOrder, IllegalTransition):
            log.info("order %s was changed meanwhile", order.id)


def pays(entry: Entry, order: Order) -> bool:
    """Whether a transfer is the one that this order's authorization allows.

    A payer can burn the nonce with another authorization: the nonce alone proves nothing.
    """
    terms = order.authorization.terms
    return (
        entry.authorization == (terms.payer, "0x" + terms.nonce.hex())
        and entry.transfer.text("recipient") == terms.recipient
        and entry.amount == terms.value
    )


def depth_block(head: Checkpoint, depth: int) -> int | None:
    """The number of the newest block at a depth; None while the chain is shorter."""
    number = head.number - depth + 1
    return number if number >= 0 else None
