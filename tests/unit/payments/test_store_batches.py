"""Tests batch captures in the store: which orders join, each order's view, and the split cost."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.primitives.replace import replace
from fastevm.payments import IllegalTransition, LimitReached, Store, UnknownOrder, open_store
from fastevm.payments.errors import PaymentError
from fastevm.payments.orders import Draft, Progress, Purpose, Submission
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State, Trigger
from tests.payments.stores import BOTH

from .test_authorization import SEPOLIA, SHOP
from .test_store import draft, order

STORES = BOTH
NAMES = ("order-0", "order-1", "order-2")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """Provides a store with three stored orders."""
    made = open_store(store_url)
    for number, name in enumerate(NAMES):
        made.add(order(name, bytes([number]) * 32))
        made.change(name, Trigger.SIGN)
        made.change(name, Trigger.STORE, sealed=b"sealed")
    yield made
    made.close()


def submit(
    store: Store, names: Sequence[str] = NAMES, most: int | None = None
) -> tuple[Submission | None, dict[str, PaymentError]]:
    drafted: list[Sequence[str]] = []

    def drawn(nonce: int, taken: Sequence[str]) -> Draft:
        drafted.append(tuple(taken))
        return draft()

    submission, refused = store.submit_many(
        names, Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE, chain_id=SEPOLIA.chain_id, sender=SHOP,
        least_nonce=0, draft=drawn, most_today=most,
    )  # fmt: skip
    assert drafted == ([] if submission is None else [submission.orders])
    return submission, refused


def test_each_order_sees_the_transaction_as_its_own(store: Store) -> None:
    submission, refused = submit(store)
    assert submission is not None and not refused
    assert (submission.order_id, submission.orders, submission.account_nonce) == ("", NAMES, 0)
    recorded = store.signed(submission.number, "0xaa", b"raw")
    assert recorded is not None and recorded.orders == NAMES
    store.note(
        submission.number,
        Progress.SUCCEEDED,
        cost=100,
        failures={"order-1": (Reason.BALANCE, "short")},
    )
    seen = store.submissions()
    assert [(each.order_id, each.cost) for each in seen] == [
        ("order-0", 34), ("order-1", 33), ("order-2", 33),
    ]  # fmt: skip
    assert [each.progress for each in seen] == [
        Progress.SUCCEEDED, Progress.REVERTED, Progress.SUCCEEDED,
    ]  # fmt: skip
    (failed,) = store.submissions(order_id="order-1")
    assert (failed.reason, failed.detail) == (Reason.BALANCE, "short")
    assert failed.seal_context == recorded.seal_context, "the bytes are sealed for the transaction"
    assert store.submissions(state=State.CAPTURING) == seen
    assert store.submissions(order_id="order-3") == store.submissions(movement="x") == []
    (followed,) = store.open_submissions(SEPOLIA.chain_id, SHOP, 1)
    assert (followed.progress, followed.cost) == (Progress.SUCCEEDED, 100)
    trail = [(each.what, each.after) for each in store.audit("order-1")]
    assert ("call inside transaction 0xaa", Reason.BALANCE.value) in trail
    store.note(submission.number, Progress.SUCCEEDED, failures={})
    assert store.submissions(order_id="order-1")[0].progress is Progress.SUCCEEDED
    store.note(submission.number, Progress.SENT)
    assert {each.progress for each in store.submissions()} == {Progress.SENT}


def test_who_cannot_go_with_the_others_stays_behind(store: Store) -> None:
    store.change("order-1", Trigger.VOID, sealed=None)
    submission, refused = submit(store, (*NAMES, "unknown"))
    assert submission is not None and submission.orders == ("order-0", "order-2")
    assert isinstance(refused["order-1"], IllegalTransition)
    assert isinstance(refused["unknown"], UnknownOrder)
    again, refused = submit(store)
    assert again is None and sorted(refused) == sorted(NAMES)
    assert store.order("order-1").state is State.VOIDED


def test_the_limit_of_a_day_counts_within_the_batch(store: Store) -> None:
    value = store.order("order-0").authorization.terms.value
    submission, refused = submit(store, most=2 * value)
    assert submission is not None and submission.orders == NAMES[:2]
    assert isinstance(refused["order-2"], LimitReached)
    assert store.order("order-2").state is State.STORED


def test_all_or_none_when_the_draft_fails(store: Store) -> None:
    def breaking(nonce: int, taken: Sequence[str]) -> Draft:
        raise RuntimeError("no draft")

    with pytest.raises(RuntimeError):
        store.submit_many(
            NAMES, Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE, chain_id=SEPOLIA.chain_id,
            sender=SHOP, least_nonce=0, draft=breaking,
        )  # fmt: skip
    assert {store.order(name).state for name in NAMES} == {State.STORED}
    assert store.submissions() == []


def test_a_replacement_is_of_the_same_orders_and_a_fill_is_no_capture(store: Store) -> None:
    submission, _ = submit(store)
    assert submission is not None
    fill = store.replace(submission, Purpose.FILL, lambda nonce: draft(fee=2))
    assert fill is not None and fill.orders == NAMES
    store.note(fill.number, Progress.SUCCEEDED, failures={"order-0": (Reason.UNKNOWN, "")})
    first, second = store.submissions(order_id="order-0")
    assert (first.purpose, first.progress) == (Purpose.CAPTURE, Progress.REPLACED)
    assert (second.purpose, second.progress) == (Purpose.FILL, Progress.SUCCEEDED)


@given(cost=st.integers(0, 10**18), count=st.integers(1, 100))
def test_shares_of_the_cost_sum_up_to_it(cost: int, count: int) -> None:
    names = tuple(f"order-{number}" for number in range(count))
    whole = Submission(
        number=1, transaction_hash="0xaa", order_id="", purpose=Purpose.CAPTURE, chain_id=1,
        sender=SHOP, account_nonce=0, bump=0, sealed=b"", gas=1, max_fee=1, priority_fee=1,
        orders=names,
    )  # fmt: skip
    assert whole.seen_by(names[0], None).cost is None
    shares = [replace(whole, cost=cost).seen_by(name, None).cost or 0 for name in names]
    assert sum(shares) == cost
    assert max(shares) - min(shares) <= 1
