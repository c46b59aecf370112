"""Tests that the example has a sentence for every state, reason and trigger of an order."""

from enum import Enum
from typing import Any

import pytest

from examples.merchant import words
from examples.merchant.sales import money
from examples.merchant.view import ACTIONS, cause_of, event_of, view_of, words_of
from fastevm.payments import (
    Actor,
    AuditEntry,
    Authorization,
    Domain,
    Order,
    Progress,
    Purpose,
    Reason,
    State,
    Submission,
    Terms,
    Trigger,
    Verdict,
)

PAYER, SHOP, TOKEN = ("0x" + f"{i:040x}" for i in (1, 2, 3))
DOMAIN = Domain("USD Coin", "2", 31337, TOKEN)


def order(state: State, reason: Reason | None = None) -> Order:
    terms = Terms.now(PAYER, SHOP, 12_500_000, at=1_700_000_000)
    return Order(id="1", authorization=Authorization(DOMAIN, terms), state=state, reason=reason)


def submission(progress: Progress, purpose: Purpose = Purpose.CAPTURE) -> Submission:
    return Submission(
        number=1, transaction_hash="0x" + "ab" * 32, order_id="1", purpose=purpose, chain_id=31337,
        sender=SHOP, account_nonce=0, bump=0, sealed=b"secret", gas=1, max_fee=1, priority_fee=1,
        progress=progress,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        (State, words.STATES),
        (Reason, words.REASONS),
        (Purpose, words.PURPOSES),
        (Progress, words.PROGRESS),
        (Trigger, words.TRIGGERS),
    ],
)
def test_every_member_has_words(kind: type[Enum], table: dict[Any, Any]) -> None:
    assert set(table) == set(kind)


def test_every_actor_has_a_name() -> None:
    assert set(words.ACTORS) == {actor.value for actor in Actor}


@pytest.mark.parametrize("state", State)
def test_every_state_makes_a_view_without_secrets(state: State) -> None:
    view = view_of(
        order(state, Reason.BALANCE),
        verdicts=[Verdict("balance", False, Reason.BALANCE, "has 1"), Verdict("odd", None)],
        submissions=[submission(progress) for progress in Progress],
        trail=[AuditEntry(1, "1", 0.0, "merchant", "drafted", "", "drafted", "")],
    )
    assert view["label"] and view["sentence"]
    assert view["actions"] == list(ACTIONS.get(state, ()))
    assert "secret" not in repr(view)


def test_only_open_orders_can_be_acted_on_and_only_money_that_moved_refunded() -> None:
    for state, actions in ACTIONS.items():
        assert ("refund" in actions) == (state is State.PAID)
        assert ("capture" in actions) == (state is State.STORED)


@pytest.mark.parametrize(
    ("state", "progress", "label"),
    [
        (State.CAPTURING, Progress.SENT, "Capturing"),
        (State.CAPTURING, Progress.PRE_CONFIRMED, "Pre-confirmed"),
        (State.CANCELLING, Progress.PRE_CONFIRMED, "Cancellation pre-confirmed"),
        (State.PAID, Progress.PRE_CONFIRMED, "Paid"),
    ],
)
def test_a_transaction_in_a_slice_shows_in_the_label(
    state: State, progress: Progress, label: str
) -> None:
    assert words_of(order(state), [submission(progress)]).label == label


BALANCE = Verdict("balance", False, Reason.BALANCE)
OTHERS = Verdict("balance_after_others", False, Reason.BALANCE_LATER)
FINE = Verdict("nonce", True)


@pytest.mark.parametrize(
    ("held", "verdicts", "effect", "name"),
    [
        (
            order(State.STORED),
            [OTHERS, BALANCE],
            "A capture would fail now",
            "insufficient_balance",
        ),
        (
            order(State.STORED),
            [FINE, OTHERS],
            "Not all open orders can be paid",
            Reason.BALANCE_LATER.value,
        ),
        (order(State.STORED, Reason.PAUSED), [FINE], "The last attempt failed", "paused"),
        (order(State.FAILED, Reason.WRONG_TYPE), [], "Why", Reason.WRONG_TYPE.value),
    ],
)
def test_a_cause_says_what_follows_from_it(
    held: Order, verdicts: list[Verdict], effect: str, name: str
) -> None:
    found = cause_of(held, verdicts)
    assert found is not None
    assert (found["effect"], found["name"]) == (effect, name)


def test_what_is_past_needs_no_cause() -> None:
    assert cause_of(order(State.STORED), [FINE]) is None
    assert cause_of(order(State.PAID, Reason.PAUSED), []) is None


def test_a_line_of_the_trail_that_is_not_known_is_shown_as_it_is() -> None:
    odd = AuditEntry(1, "1", 0.0, "merchant", "resealed", "", "", "")
    assert event_of(odd) == "resealed"


def test_amounts_are_exact_to_the_cent() -> None:
    assert money(12_500_000) == "12.50 USDC"
    assert money(10**30) == f"{10**24}.00 USDC"
