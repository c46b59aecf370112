"""Tests random actions of a shop on two machines: refunds, holds, lagging nodes, reorganisations.

The two merchants share a store. Each has its own connections and node, and they act and reconcile
alternately or concurrently. An auditor with a separate store only reads the chain. After a machine
whose node is up to date has reconciled, the ledger in the shared store must equal the chain. The
auditor's ledger must equal the chain too.
"""

import asyncio
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fastevm.errors import InvalidTransaction
from fastevm.payments import (
    HoldTerms,
    Merchant,
    MovementKind,
    MovementState,
    NodeBehind,
    Order,
    PaymentError,
    ReorganisedMeanwhile,
    State,
    open_store,
)
from fastevm.payments.contracts import artifact
from fastevm.payments.contracts.placing import place_escrow
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.escrow import V1_1, PaymentInfo, reclaim_data
from fastevm.payments.node import NodeClient

from .databases import Server
from .market import VALUE, Market, canonical_transfers, market
from .test_lagging_nodes import Lagging
from .test_random_lives import Fragile, includable

ORDERS = st.integers(0, 2).map(lambda number: f"order-{number}")
HOLDS = st.integers(0, 1).map(lambda number: f"hold-{number}")
MACHINES = st.integers(0, 1)
EXAMPLES: Final = int(os.environ.get("FASTEVM_PAYMENT_LIVES", "6"))
STEPS: Final = 25
STORE: Final = "0x5701E05701E05701E05701e05701e05701E05701"
ENOUGH: Final = 10**12  # allowance in units for refunds of holds
# The oldest blocks, with contracts and balances, which no reorganisation removes.
KEPT: Final = 7
HELD: Final = (State.HELD, State.CAPTURED, State.PAID, State.RELEASED)
ON_CHAIN: Final = (MovementState.SEEN, MovementState.FINAL)


class Unreliable(Fragile, Lagging):
    """A node that may lag, behind a connection that may break when a transaction is sent."""


class Trade(RuleBasedStateMachine):
    """A market, two machines of a shop, an auditor, three orders, and two holds in the escrow."""

    server: Server | None = None  # PostgreSQL server; None for a SQLite file

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        self.url = self.server.create() if self.server else ""
        self.market: Market = self.run(market(folder, store_url=self.url))
        self.nodes = [Unreliable(self.market.server.urls[0], self.market) for _ in range(2)]
        self.machines = [self.start(at) for at in range(2)]
        audit = open_store(f"sqlite:///{folder / 'audit.db'}")
        self.market.stores.append(audit)
        self.auditor = self.market.merchant(store=audit, overlap=2)
        self.signed: set[str] = set()
        # number of a machine that has reconciled with the current head
        self.looked: int | None = None
        self.open()

    def open(self) -> None:
        shop = self.market
        self.run(place_escrow(shop.client(), V1_1, STORE, MULTICALL))
        shop.do(shop.shop, "approve", V1_1.refund_collector, ENOUGH)
        shop.mine(KEPT)
        self.agree("order-0", 60)
        self.agree("hold-0", 60)

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def ends(self, work: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Runs coroutines concurrently. Returns their results and exceptions."""

        async def gathered() -> list[Any]:
            return await asyncio.gather(*work, return_exceptions=True)

        found: list[Any] = self.run(gathered())
        return found

    def start(self, at: int) -> Merchant:
        return self.market.merchant(
            node=NodeClient(self.nodes[at]), overlap=2, capture_in=0, bump_after=1e9
        )

    def teardown(self) -> None:
        try:
            self.settle_down()
        finally:
            for node in self.nodes:
                self.run(node.close())
            self.run(self.market.close())
            self.loop.close()
            self.folder.cleanup()
            if self.server:
                self.server.release(self.url)

    def changed(self) -> None:
        """Records that the chain has changed since the last reconciliation."""
        self.looked = None

    def order(self, name: str) -> Order | None:
        return self.run(self.machines[0].order(name)) if name in self.signed else None

    # --- the merchant -----------------------------------------------------------------------------

    def agree(self, name: str, lifetime: int, within: int = 90) -> None:
        """Drafts an order, signs it as the payer, and stores the signature."""
        merchant, payer = self.machines[0], self.market.payer.address
        hold = HoldTerms(capture_within=within) if name.startswith("hold") else None
        order = self.run(merchant.draft(name, payer, VALUE, lifetime=lifetime, hold=hold))
        self.run(merchant.accept(name, self.market.signed(order)))
        self.signed.add(name)

    @rule(name=ORDERS | HOLDS, lifetime=st.integers(5, 60), within=st.integers(20, 90))
    def order_more(self, name: str, lifetime: int, within: int) -> None:
        if name not in self.signed:
            with suppress(NodeBehind):
                self.agree(name, lifetime, within)

    @rule(
        name=ORDERS | HOLDS,
        at=MACHINES,
        both=st.booleans(),
        cable=st.sampled_from([None, None, "before", "after"]),
    )
    def capture(self, name: str, at: int, both: bool, cable: str | None) -> None:
        """Captures an order, or holds its money, on one machine or on both concurrently."""
        if name not in self.signed:
            return
        self.changed()
        self.nodes[at].broken = cable
        until = State.AUTHORIZING if name.startswith("hold") else State.CAPTURING
        acting = self.machines if both else [self.machines[at]]
        work = [item.capture(name, until=until, timeout=0) for item in acting]
        self.check_results(self.ends(work))
        self.nodes[at].broken = None

    @rule(name=ORDERS | HOLDS, at=MACHINES, share=st.sampled_from([1, 2, 4]), both=st.booleans())
    def refund(self, name: str, at: int, share: int, both: bool) -> None:
        if name not in self.signed:
            return
        self.changed()
        acting = self.machines if both else [self.machines[at]]
        asked, now = VALUE // share, MovementState.REQUESTED
        work = [
            item.refund(name, asked, refund_id=str(share), until=now, timeout=0) for item in acting
        ]
        self.check_results(self.ends(work))

    @rule(name=HOLDS, at=MACHINES, share=st.sampled_from([1, 2, 4]), both=st.booleans())
    def capture_a_part(self, name: str, at: int, share: int, both: bool) -> None:
        if name not in self.signed:
            return
        self.changed()
        acting = self.machines if both else [self.machines[at]]
        key = f"{name}/part/{share}"
        work = [item.holds.capture(name, VALUE // share, key=key, timeout=0) for item in acting]
        self.check_results(self.ends(work))

    @rule(name=HOLDS, at=MACHINES)
    def void_the_rest(self, name: str, at: int) -> None:
        if name not in self.signed:
            return
        self.changed()
        self.check_results(self.ends([self.machines[at].holds.void(name, timeout=0)]))

    @staticmethod
    def check_results(ends: list[Any]) -> None:
        """Asserts that every exception is an expected rejection."""
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, PaymentError):
                raise end

    @rule(at=MACHINES)
    def restart(self, at: int) -> None:
        merchant = self.machines[at]
        self.run(merchant.close())
        self.market.stores.remove(merchant_store := self.store_of(merchant))
        merchant_store.close()
        self.machines[at] = self.start(at)

    def store_of(self, merchant: Merchant) -> Any:
        database = merchant.store.database  # type: ignore[attr-defined]
        return next(store for store in self.market.stores if store.database is database)  # type: ignore[attr-defined]

    @rule(at=MACHINES, late=st.integers(0, 2))
    def lag(self, at: int, late: int) -> None:
        """Makes the node of a machine lag by ``late`` blocks."""
        self.nodes[at].late, self.nodes[at].behind = late, late > 0

    @rule(at=MACHINES, both=st.booleans())
    def look(self, at: int, both: bool = False) -> None:
        """Reconciles on one machine or on both, so that the invariants are checked."""
        acting = self.machines if both else [self.machines[at]]
        work = [item.reconcile() for item in acting]
        for end in self.ends(work):
            if isinstance(end, Exception) and not isinstance(
                end, NodeBehind | ReorganisedMeanwhile
            ):
                raise end
        for number, item in enumerate(self.machines):
            if item in acting and not self.nodes[number].behind and self.is_new(item):
                self.looked = number

    def is_new(self, merchant: Merchant) -> bool:
        """Returns whether the merchant has seen the current head.

        A merchant ignores a chain that became shorter until the chain is longer again.
        """
        points = merchant.store.checkpoints(merchant.scanner.scope)
        return bool(points) and points[0].block_hash == self.head_hash()

    def head_hash(self) -> str:
        return "0x" + self.market.node.chain.head.hash.hex()

    # --- the payer and strangers ------------------------------------------------------------------

    @rule(name=HOLDS)
    def reclaim(self, name: str) -> None:
        """Makes the payer reclaim held money after the capture deadline."""
        order = self.order(name)
        if order is not None:
            self.changed()
            data = reclaim_data(PaymentInfo.from_json(order.annex))
            with suppress(InvalidTransaction):
                self.market.send(self.market.payer, V1_1.escrow, data, mine=False)

    @rule()
    def pay_without_an_order(self) -> None:
        self.other(self.market.payer, "transfer", self.market.shop.address, VALUE)

    @rule(on=st.booleans())
    def pause(self, on: bool) -> None:
        self.other(self.market.admin, "pause" if on else "unpause")

    def other(self, who: Any, function: str, *arguments: Any) -> None:
        with suppress(InvalidTransaction):
            self.market.do(who, function, *arguments, mine=False)

    # --- the chain --------------------------------------------------------------------------------

    @rule(
        count=st.integers(1, 3),
        seconds=st.sampled_from([1, 1, 2, 30]),
        look=st.sampled_from([None, 0, 1]),
    )
    def mine(self, count: int, seconds: int, look: int | None) -> None:
        self.changed()
        self.market.mine(count, seconds=seconds)
        if look is not None:
            self.look(look)

    @precondition(lambda self: self.market.node.chain.head.number > KEPT + 6)
    @rule(
        depth=st.integers(1, 3),
        keep=st.integers(0, 255),
        mark=st.integers(1, 9),
        look=st.sampled_from([None, 0, 1]),
    )
    def reorganise(self, depth: int, keep: int, mark: int, look: int | None) -> None:
        """Replaces blocks with a branch that is one block longer. Keeps some transactions."""
        self.changed()
        chain = self.market.node.chain
        heads = range(chain.head.number - depth + 1, chain.head.number + 1)
        blocks = [chain.block_by_number(number) for number in heads]
        old = [transaction for block in blocks if block for transaction in block.transactions]
        kept = [item for at, item in enumerate(old) if keep >> (at % 8) & 1]
        branch: list[list[Any]] = [[] for _ in range(depth + 1)]
        branch[0] = includable(kept, keeper=old)
        self.market.rival(depth, branch, mark=mark)
        if look is not None:
            self.look(look)

    # --- invariants -------------------------------------------------------------------------------

    @invariant()
    def the_books_are_the_chain(self) -> None:
        if self.looked is None:
            return
        merchant = self.machines[self.looked]
        us = self.market.shop.address.lower()
        chain = canonical_transfers(self.market.node, self.market.token.token)
        truth = Counter(item for item in chain if us in item[:2])
        self.run(self.auditor.reconcile())
        for item in (merchant, self.auditor):
            ledger = Counter(_transfer(entry) for entry in self.run(item.ledger()))
            assert ledger == truth, "a ledger is not the chain"
        self.orders_are(merchant, self.escrow())
        self.refunds_are(merchant, chain)

    def orders_are(self, merchant: Merchant, sums: dict[str, Counter[str]]) -> None:
        captured = Counter(
            entry.authorization
            for entry in self.run(merchant.ledger())
            if entry.authorization and entry.amount == VALUE
        )
        for name in self.signed:
            order = self.run(merchant.order(name))
            terms = order.authorization.terms
            if not order.annex:
                key = (terms.payer, "0x" + terms.nonce.hex())
                assert order.paid == (captured[key] == 1), (name, order.state)
                continue
            done = sums[key_of(order)]
            assert (order.state in HELD) == (done["authorized"] == VALUE), (name, order.state)
            moves = self.run(merchant.movements(name))
            for kind, what in (
                (MovementKind.PART, "captured"),
                (MovementKind.VOID, "voided"),
                (MovementKind.REFUND, "refunded"),
            ):
                ours = sum(m.amount for m in moves if m.kind is kind and m.state in ON_CHAIN)
                assert ours == done[what], (name, what, ours, done, moves)
            left = VALUE - done["captured"] - done["voided"] - done["reclaimed"]
            if order.state in (State.CAPTURED, State.PAID, State.RELEASED):
                assert left == 0, (name, order.state, done)

    def refunds_are(self, merchant: Merchant, chain: list[tuple[str, str, int, str]]) -> None:
        """Checks that the chain's refunds equal the store's, and are at most the captured sum."""
        us, payer = self.market.shop.address.lower(), self.market.payer.address.lower()
        sent = sum(amount for item, to, amount, _ in chain if (item, to) == (us, payer))
        moves = [
            movement
            for movement in self.run(merchant.movements())
            if movement.kind is MovementKind.REFUND and movement.order_id.startswith("order")
        ]
        assert sent == sum(movement.amount for movement in moves if movement.state in ON_CHAIN), (
            moves
        )
        for name in self.signed:
            sums = self.run(merchant.amounts(name))
            if self.run(merchant.order(name)).state in (State.PAID, State.HELD):
                assert 0 <= sums.refunded <= sums.captured <= VALUE, (name, sums)

    def escrow(self) -> dict[str, Counter[str]]:
        """Returns the units in each state of each payment, from the escrow's canonical logs."""
        contract, node = artifact("AuthCaptureEscrow"), self.market.node
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for number in range(node.chain.head.number + 1):
            block = node.chain.block_by_number(number)
            assert block is not None
            for receipt in node.chain.receipts_of(block.hash):
                for log in receipt.logs:
                    if log.address.hex() != V1_1.escrow[2:].lower():
                        continue
                    event = contract.decode_log(log.topics, log.data)
                    if event is not None and event.name.startswith("Payment"):
                        what = event.name.removeprefix("Payment").lower()
                        key = "0x" + log.topics[1].hex()
                        found[key][what] += int(event.arguments["amount"])
        return found

    def settle_down(self) -> None:
        """Mines and reconciles without further changes until all orders and holds have ended."""
        for node in self.nodes:
            node.behind = False
        self.other(self.market.admin, "unpause")
        self.market.mine(2, seconds=120)
        for at in range(6):
            try:
                self.run(self.machines[at % 2].reconcile())
            except PaymentError as error:
                raise AssertionError("a pass failed on a still chain") from error
            self.market.mine()
        for at in range(2):
            self.look(at)
            assert self.looked == at
            self.the_books_are_the_chain()
        for name in self.signed:
            state = self.run(self.machines[0].order(name)).state
            assert not state.in_flight, f"{name} is still {state.value}"
        moves = self.run(self.machines[0].movements())
        waiting = [movement for movement in moves if movement.state is MovementState.REQUESTED]
        assert not waiting, waiting
        assert not self.market.node.pool.queued_count, "a gap in the merchant's nonces"


def _transfer(entry: Any) -> tuple[str, str, int, str]:
    transfer = entry.transfer
    sender, recipient = transfer.text("sender").lower(), transfer.text("recipient").lower()
    return sender, recipient, entry.amount, transfer.key.transaction_hash


def key_of(order: Order) -> str:
    """Returns the hash by which the escrow identifies an order's hold."""
    info = PaymentInfo.from_json(order.annex)
    return "0x" + info.hash(order.authorization.domain.chain_id, V1_1.escrow).hex()


class OnPostgres(Trade):
    """The same rules on PostgreSQL, where each machine has its own connection pool."""


@pytest.fixture
def server(postgres: Server) -> Iterator[None]:
    """Provides the PostgreSQL server for `OnPostgres`."""
    OnPostgres.server = postgres
    yield
    OnPostgres.server = None


# Without shrinking, because one run takes up to a second and prints its steps.
HOW: Final = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestTrade = Trade.TestCase
TestTrade.settings = HOW
TestTradeOnPostgres = pytest.mark.usefixtures("server")(OnPostgres.TestCase)
TestTradeOnPostgres.settings = HOW
