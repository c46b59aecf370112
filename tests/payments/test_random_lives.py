"""Tests orders with random actions of merchant, payer and strangers, and random reorganisations.

After the back end has reconciled, these invariants must hold:

- The ledger equals the transfers in canonical blocks.
- No order is paid without a canonical receipt of exactly its payment.
- Every order with such a payment is paid, and none is paid twice.
"""

import asyncio
import os
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fastevm.errors import InvalidTransaction
from fastevm.payments import (
    CaptureRefused,
    IllegalTransition,
    Kind,
    Merchant,
    NodeUnreachable,
    Order,
    PaymentError,
    SignatureRefused,
    State,
    Terms,
)
from fastevm.payments.contracts import artifact
from fastevm.payments.contracts.placing import place_contract
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.node import HttpTransport, NodeClient

from .market import VALUE, Market, canonical_transfers, market

ORDERS = st.integers(0, 3).map(lambda number: f"order-{number}")
DEPTH = st.integers(1, 3)
EXAMPLES = int(os.environ.get("FASTEVM_PAYMENT_LIVES", "25"))
STEPS = 25


class Fragile(HttpTransport):
    """A connection that breaks once, before or after it has sent a transaction."""

    broken: str | None = None

    async def send(self, body: bytes) -> bytes:
        if b"eth_sendRawTransaction" not in body or self.broken is None:
            return await super().send(body)
        where, self.broken = self.broken, None
        if where == "after":
            await super().send(body)
        raise NodeUnreachable("the cable was pulled")


class Lives(RuleBasedStateMachine):
    """A market, a back end that is restarted at random, and up to four orders."""

    kind = Kind.RECEIVE
    batch = 1

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.market: Market = self.run(market(Path(self.folder.name)))
        if self.batch > 1:
            code = artifact("Multicall").initcode()
            self.run(place_contract(self.market.client(), MULTICALL, code))
        self.depth = 1
        self.transport = Fragile(self.market.server.urls[0])
        self.merchant: Merchant = self.start()
        self.terms: dict[str, Terms] = {}
        self.looked = False
        self.market.mine(6)
        for name in ("order-0", "order-1"):
            self.agree(name, 60)

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def start(self) -> Merchant:
        return self.market.merchant(
            node=NodeClient(self.transport),
            depth=self.depth,
            overlap=2,
            capture_in=0,
            bump_after=1e9,
            batch=self.batch,
        )

    def teardown(self) -> None:
        try:
            self.settle_down()
        finally:
            self.run(self.transport.close())
            self.run(self.market.close())
            self.loop.close()
            self.folder.cleanup()

    def order(self, name: str) -> Order | None:
        return self.run(self.merchant.order(name)) if name in self.terms else None

    # --- the merchant -----------------------------------------------------------------------------

    @rule(name=ORDERS, lifetime=st.integers(3, 60))
    def order_more(self, name: str, lifetime: int) -> None:
        if name not in self.terms:
            self.agree(name, lifetime)

    def agree(self, name: str, lifetime: int) -> None:
        """Drafts an order, signs it as the payer, and stores the signature."""
        terms = self.market.terms(valid_before=self.market.now + lifetime)
        self.terms[name] = terms
        order = self.run(self.merchant.draft(name, terms.payer, VALUE, kind=self.kind, terms=terms))
        self.run(self.merchant.accept(name, self.market.signed(order)))

    @rule(name=ORDERS, look=st.booleans())
    def capture_and_mine(self, name: str, look: bool) -> None:
        self.capture(name, False, None)
        self.mine(1, 1, look)

    @rule(name=ORDERS, force=st.booleans(), cable=st.sampled_from([None, None, "before", "after"]))
    def capture(self, name: str, force: bool, cable: str | None) -> None:
        if name not in self.terms:
            return
        self.transport.broken, self.looked = cable, False
        with suppress(CaptureRefused, IllegalTransition, SignatureRefused):
            self.run(self.merchant.capture(name, until=State.CAPTURING, force=force, timeout=0))
        self.transport.broken = None

    @rule(name=ORDERS)
    def void(self, name: str) -> None:
        order = self.order(name)
        if order is not None and order.state is State.STORED:
            self.run(self.merchant.void(name))

    @rule(name=ORDERS)
    def cancel(self, name: str) -> None:
        order = self.order(name)
        if order is None or order.state is not State.STORED:
            return
        self.looked = False
        signature = self.market.cancelled(order)
        with suppress(SignatureRefused, IllegalTransition):
            self.run(self.merchant.cancel(name, signature, until=State.CANCELLING, timeout=0))

    @rule()
    def restart(self) -> None:
        self.run(self.merchant.close())
        self.market.stores.pop().close()
        self.merchant = self.start()

    @rule()
    def look(self) -> None:
        """Reconciles, so that the invariants are checked if the back end has seen the head.

        The back end ignores a chain that became shorter until the chain is longer again.
        """
        self.run(self.merchant.reconcile())
        points = self.merchant.store.checkpoints(self.merchant.scanner.scope)
        head = self.market.node.chain.head
        self.looked = points[0].block_hash == "0x" + head.hash.hex()

    # --- the payer and strangers ------------------------------------------------------------------

    @rule(share=st.sampled_from([1, 2]))
    def drain(self, share: int) -> None:
        self.other(self.market.payer, "transfer", self.market.stranger.address, 4 * VALUE // share)

    @rule()
    def top_up(self) -> None:
        self.other(self.market.admin, "mint", self.market.payer.address, 2 * VALUE)

    @rule()
    def pay_by_transfer(self) -> None:
        """Transfers an order's amount to the shop without reference to an order."""
        self.other(self.market.payer, "transfer", self.market.shop.address, VALUE)

    @rule(on=st.booleans())
    def pause(self, on: bool) -> None:
        self.other(self.market.admin, "pause" if on else "unpause")

    @rule(name=ORDERS, ours=st.booleans(), mine=st.booleans(), look=st.booleans())
    def burn_the_nonce(self, name: str, ours: bool, mine: bool, look: bool) -> None:
        """Uses an order's nonce for a payment of one unit.

        ``ours``: the recipient is the merchant, otherwise a stranger.
        """
        if name not in self.terms:
            return
        market, nonce = self.market, self.terms[name].nonce
        recipient = market.shop if ours else market.stranger
        terms = market.terms(nonce=nonce, recipient=recipient.address, value=1)
        self.looked = False
        with suppress(InvalidTransaction):
            market.take(terms, market.stranger, kind=Kind.TRANSFER, mine=False)
        if mine:
            self.mine(1, 1, look)

    def other(self, who: Any, function: str, *arguments: Any) -> None:
        with suppress(InvalidTransaction):
            self.market.do(who, function, *arguments, mine=False)

    # --- the chain --------------------------------------------------------------------------------

    @rule(count=st.integers(1, 2), seconds=st.sampled_from([1, 1, 2, 15]), look=st.booleans())
    def mine(self, count: int, seconds: int, look: bool) -> None:
        self.looked = False
        self.market.mine(count, seconds=seconds)
        if look:
            self.look()

    @rule(
        depth=DEPTH,
        keep=st.integers(0, 255),
        backwards=st.booleans(),
        mark=st.integers(1, 9),
        look=st.booleans(),
    )
    def reorganise(self, depth: int, keep: int, backwards: bool, mark: int, look: bool) -> None:
        """Replaces blocks with another branch, which contains some of the replaced transactions."""
        self.looked = False
        chain = self.market.node.chain
        heads = range(chain.head.number - depth + 1, chain.head.number + 1)
        blocks = [chain.block_by_number(number) for number in heads]
        old = [transaction for block in blocks if block for transaction in block.transactions]
        kept = [item for at, item in enumerate(old) if keep >> (at % 8) & 1]
        kept = includable(kept, keeper=old)
        branch: list[list[Any]] = [[] for _ in range(depth + 1)]
        branch[depth if backwards else 0] = kept
        self.market.rival(depth, branch, mark=mark)
        if look:
            self.look()

    @precondition(lambda self: self.market.node.chain.head.number > 6)
    @rule(depth=DEPTH)
    def shorten(self, depth: int) -> None:
        """Sets the head back by ``depth`` blocks, until later rules add blocks."""
        self.looked = False
        chain = self.market.node.chain
        target = chain.canonical_hash(chain.head.number - depth)
        assert target is not None
        with self.market.node.producer.lock:
            chain.set_head(target)
        self.market.now = chain.head.header.timestamp

    # --- invariants -------------------------------------------------------------------------------

    @invariant()
    def paid_means_paid(self) -> None:
        if not self.looked:
            return
        us = self.market.shop.address.lower()
        chain = canonical_transfers(self.market.node, self.market.token.token)
        incoming = Counter((tx, amount) for _, to, amount, tx in chain if to == us)
        entries = self.run(self.merchant.ledger())
        ours = Counter(
            (entry.transfer.key.transaction_hash, entry.amount)
            for entry in entries
            if entry.transfer.text("recipient") == self.market.shop.address
        )
        assert ours == incoming, "the ledger is not the chain"
        captured = Counter(
            entry.authorization
            for entry in entries
            if entry.authorization and entry.amount == VALUE
        )
        assert all(count == 1 for count in captured.values()), "an authorization counts twice"
        paid: Counter[str] = Counter()
        for name, terms in self.terms.items():
            order = self.run(self.merchant.order(name))
            key = (terms.payer, "0x" + terms.nonce.hex())
            assert order.paid == (captured[key] == 1), (name, order.state)
            assert order.state is not State.CAPTURED, "one block is deep enough here"
            if order.paid:
                settlement = order.settlement
                paid[settlement.transaction_hash] += 1
                where = self.market.node.chain.canonical_hash(settlement.block_number)
                assert where is not None
                assert settlement.block_hash == "0x" + where.hex()
        for transaction_hash, count in paid.items():
            assert incoming[transaction_hash, VALUE] == count

    def settle_down(self) -> None:
        """Mines and reconciles without further changes until every order has ended."""
        self.other(self.market.admin, "unpause")
        self.market.mine(seconds=60)
        points = self.merchant.store.checkpoints(self.merchant.scanner.scope)
        short = points[0].number - self.market.node.chain.head.number if points else 0
        if short >= 0:
            self.market.mine(short + 1)
        for _ in range(4):
            try:
                self.run(self.merchant.reconcile())
            except PaymentError as error:
                raise AssertionError("a pass failed on a still chain") from error
            self.market.mine()
        self.run(self.merchant.reconcile())
        self.looked = True
        self.paid_means_paid()
        for name in self.terms:
            state = self.run(self.merchant.order(name)).state
            assert not state.in_flight, f"{name} is still {state.value}"
        assert not self.market.node.pool.queued_count, "a gap in the merchant's nonces"


def includable(kept: list[Any], keeper: list[Any]) -> list[Any]:
    """Returns the transactions to keep: those whose sender's earlier transactions are kept."""
    dropped: set[bytes] = set()
    answer = []
    for item in keeper:
        if item in kept and item.sender not in dropped:
            answer.append(item)
        else:
            dropped.add(item.sender)
    return answer


class LivesTogether(Lives):
    """The same rules, with batch captures."""

    kind = Kind.TRANSFER
    batch = 3

    @rule(
        names=st.lists(ORDERS, min_size=2, max_size=4, unique=True),
        cable=st.sampled_from([None, None, "before", "after"]),
        mine=st.booleans(),
        look=st.booleans(),
    )
    def capture_together(self, names: list[str], cable: str | None, mine: bool, look: bool) -> None:
        names = [name for name in names if name in self.terms]
        self.transport.broken, self.looked = cable, False
        self.run(self.merchant.capture_many(names, until=State.CAPTURING, timeout=0, at_once=1))
        self.transport.broken = None
        if mine:
            self.mine(1, 1, look)


TestLives = Lives.TestCase
TestLivesTogether = LivesTogether.TestCase
TestLives.settings = TestLivesTogether.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    suppress_health_check=list(HealthCheck),
)
