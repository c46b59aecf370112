"""Takes orders and updates the pages. `Merchant` handles the payments."""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from examples.merchant.chain import DECIMALS, SYMBOL
from examples.merchant.requests import BadRequest
from examples.merchant.stream import Stream
from examples.merchant.view import view_of
from fastevm.payments import (
    Kind,
    Merchant,
    MovementState,
    Order,
    PaymentError,
    State,
    UnknownOrder,
    Verdict,
)
from fastevm.payments.amounts import amount as amount_of
from fastevm.payments.errors import NotRefundable

log: Final = logging.getLogger(__name__)

MOST_OF_ONE: Final = 9  # maximum bags in one order
MOST_ORDERS: Final = 500  # per run of the demonstration
ID_BYTES: Final = 6  # bytes of an order's id, which gives access to the order


class Item(NamedTuple):
    """An article; the price is in token units."""

    id: str
    name: str
    note: str
    price: int


ITEMS: Final = (
    Item("guji", "Guji, washed", "Ethiopia. Bergamot, peach, black tea.", 12_500_000),
    Item("huila", "Huila, natural", "Colombia. Strawberry, cocoa nibs.", 11_000_000),
    Item("santos", "Santos, espresso", "Brazil. Hazelnut, dark sugar.", 9_500_000),
)
NAMES: Final = {item.id: item.name for item in ITEMS}


class Sales:
    """Connects the pages with `Merchant`: prices, requests to cancel, and views of orders."""

    def __init__(self, merchant: Merchant, stream: Stream, kind: Kind = Kind.RECEIVE) -> None:
        self.merchant, self.kind = merchant, kind
        self.stream = stream
        self._serials = itertools.count(1)
        self._placed = 0
        self._asked: set[str] = set()  # orders whose buyer was asked to cancel
        self._verdicts: dict[str, dict[str, Verdict]] = {}  # of stored orders, at the newest slice
        self._moving: set[str] = set()  # orders with a pending transaction
        self._sent: dict[str, dict[str, Any]] = {}  # last view sent of each order
        self._stale: set[str] = set()
        self._wake = asyncio.Event()
        self._slice = asyncio.Event()
        merchant.on_change(lambda order: self._touch([order.id]))

    # --- selling and collecting -------------------------------------------------------------------

    async def place(self, item_id: str, quantity: int, payer: str) -> str:
        """Creates an order and returns its id. Raises BadRequest or InvalidTerms."""
        item = next((article for article in ITEMS if article.id == item_id), None)
        if item is None:
            raise BadRequest(f"unknown article {item_id!r}")
        if not 1 <= quantity <= MOST_OF_ONE:
            raise BadRequest(f"an order has 1 to {MOST_OF_ONE} bags")
        if self._placed >= MOST_ORDERS:
            raise BadRequest(f"the demonstration ends at {MOST_ORDERS} orders; start it again")
        order_id = secrets.token_hex(ID_BYTES)
        reference = f"{quantity} {item.id}"
        await self.merchant.draft(
            order_id, payer, quantity * item.price, reference=reference, kind=self.kind
        )
        self._placed += 1
        return order_id

    async def authorization(self, order_id: str) -> dict[str, Any]:
        """Returns the typed data that the buyer signs to pay."""
        return (await self.merchant.order(order_id)).authorization.typed_data()

    async def sign(self, order_id: str, signature: str) -> None:
        await self.merchant.accept(order_id, signature)

    async def capture(self, order_id: str) -> None:
        """Submits the capture; the pages show its progress."""
        await self.merchant.capture(order_id, until=State.CAPTURING)

    async def capture_many(self, order_ids: Sequence[str]) -> tuple[int, int]:
        """Submits captures. Returns how many were submitted and how many failed."""
        results = await asyncio.gather(*map(self.capture, order_ids), return_exceptions=True)
        failed = [result for result in results if isinstance(result, BaseException)]
        for error in failed:
            if not isinstance(error, PaymentError):
                raise error
        return len(results) - len(failed), len(failed)

    async def refund(self, order_id: str, amount: str) -> None:
        """Refunds a decimal amount to the buyer; the pages show its progress."""
        units = amount_of(amount, DECIMALS)
        # two concurrent clicks make one refund
        refund_id = str(len(await self.merchant.movements(order_id)))
        try:
            await self.merchant.refund(
                order_id, units, refund_id=refund_id, until=MovementState.REQUESTED
            )
        except NotRefundable as error:
            raise BadRequest(f"{money(error.left)} can be refunded, not {money(units)}") from None
        self._touch([order_id])

    async def void(self, order_id: str) -> None:
        await self.merchant.void(order_id)

    async def ask_cancel(self, order_id: str) -> None:
        """Shows the buyer a cancel button, because only the payer's signature cancels on chain."""
        order = await self.merchant.order(order_id)
        if order.state is not State.STORED:
            raise BadRequest("only a stored authorization can be cancelled")
        self._asked.add(order_id)
        self._touch([order_id])

    async def cancellation(self, order_id: str) -> dict[str, Any]:
        """Returns the typed data that the buyer signs to cancel."""
        return (await self.merchant.order(order_id)).authorization.cancellation.typed_data()

    async def cancel(self, order_id: str, signature: str) -> None:
        """Relays the buyer's cancellation."""
        await self.merchant.cancel(order_id, signature, until=State.CANCELLING)

    # --- showing ----------------------------------------------------------------------------------

    async def shown(self, wanted: Iterable[str] | None) -> list[dict[str, Any]]:
        """Returns views of these orders or of all orders, oldest first. Skips unknown ids."""
        if wanted is None:
            orders = await self.merchant.orders(limit=MOST_ORDERS)
            orders.sort(key=lambda order: order.created_at)
            return [await self._view(order) for order in orders]
        found = []
        for order_id in wanted:
            try:
                found.append(await self._view(await self.merchant.order(order_id)))
            except UnknownOrder:
                continue
        return sorted(found, key=lambda view: view["createdAt"])

    async def _view(self, order: Order) -> dict[str, Any]:
        serial = next(self._serials)
        quantity, _, item = order.reference.partition(" ")
        if order.state is not State.STORED:
            self._verdicts.pop(order.id, None)
            self._asked.discard(order.id)
        view = view_of(
            order,
            verdicts=list(self._verdicts.get(order.id, {}).values()),
            submissions=await self.merchant.submissions(order.id),
            trail=await self.merchant.audit(order.id),
        )
        sums = await self.merchant.amounts(order.id)
        return {
            **view,
            "serial": serial,
            "refundable": str(sums.refundable),
            "refundableText": money(sums.refundable),
            "refundedText": money(sums.refunded) if sums.refunded else "",
            "item": NAMES.get(item, item),
            "quantity": int(quantity),
            "amountText": money(order.authorization.terms.value),
            "cancelAsked": order.id in self._asked,
            "actions": [
                action for action in view["actions"] if action != "refund" or sums.refundable > 0
            ],
        }

    # --- background tasks -------------------------------------------------------------------------

    async def run(self) -> None:
        """Reconciles, checks stored orders at each slice, and updates the pages.

        Runs until cancelled.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self.merchant.run())
            group.create_task(self._watch())
            group.create_task(self._follow())
            group.create_task(self._send_changed())

    def slice(self) -> None:
        """Notifies the reconciliation of a new slice, which may contain a pending transaction."""
        if self._moving:
            self._slice.set()

    async def _follow(self) -> None:
        """Reconciles at every slice while transactions are pending."""
        while True:
            await self._slice.wait()
            self._slice.clear()
            try:
                await self.merchant.reconcile()
            except PaymentError as error:
                log.warning("reconciling failed, retry at the next slice: %s", type(error).__name__)
            self._touch(self._moving)

    async def _watch(self) -> None:
        async for changes in self.merchant.watch():
            for change in changes:
                self._verdicts.setdefault(change.order_id, {})[change.after.name] = change.after
            self._touch({change.order_id for change in changes})

    def _touch(self, order_ids: Iterable[str]) -> None:
        self._stale.update(order_ids)
        if self._stale:
            self._wake.set()

    async def _send_changed(self) -> None:
        """Sends orders to the pages if their view has changed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            stale, self._stale = self._stale, set()
            for order_id in stale:
                order = await self.merchant.order(order_id)
                (self._moving.add if order.state.in_flight else self._moving.discard)(order_id)
                view = await self._view(order)
                looks = {name: value for name, value in view.items() if name != "serial"}
                if looks != self._sent.get(order_id):
                    self._sent[order_id] = looks
                    self.stream.send("order", view)


def money(units: int) -> str:
    """Formats units as an amount with two decimals and the symbol."""
    return f"{Decimal(units).scaleb(-DECIMALS):.2f} {SYMBOL}"
