"""Tests the store: unique authorizations, audited transitions, storing before sending."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastevm.core.primitives.replace import replace
from fastevm.payments import (
    Authorization,
    DuplicateOrder,
    IllegalTransition,
    LimitReached,
    Order,
    Progress,
    Purpose,
    Reason,
    Settlement,
    StaleOrder,
    State,
    Store,
    StoreError,
    Terms,
    Trigger,
    UnknownOrder,
    open_store,
)
from fastevm.payments.events import ChainLog, Checkpoint, Event, LogKey
from fastevm.payments.orders import Draft
from fastevm.payments.sql_store import SqlStore
from fastevm.payments.store import every_log, every_order
from tests.payments.stores import BOTH

from .test_authorization import PAYER, SEPOLIA, SHOP

CHAIN = SEPOLIA.chain_id
NONCE = "0x" + "11" * 32


def order(name: str = "order-1", nonce: bytes = b"\x11" * 32) -> Order:
    terms = Terms(
        payer=PAYER, recipient=SHOP, value=2**200, valid_after=0, valid_before=2**255, nonce=nonce
    )
    return Order(id=name, authorization=Authorization(SEPOLIA, terms), reference="two chairs")


def draft(fee: int = 1) -> Draft:
    return Draft(sealed=b"sealed", gas=1, max_fee=fee, priority_fee=1)


STORES = BOTH


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    made = open_store(store_url)
    yield made
    made.close()


@pytest.fixture
def stored(store: Store) -> Store:
    """Stores one order that is ready to be captured."""
    store.add(order())
    store.change("order-1", Trigger.SIGN)
    store.change("order-1", Trigger.STORE, sealed=b"sealed")
    return store


def test_an_order_comes_back_as_it_went(store: Store) -> None:
    added = store.add(order())
    assert added == store.order("order-1")
    assert replace(added, created_at=0.0, updated_at=0.0) == order()
    assert store.add(order()) == added, "asking again changes nothing"
    with pytest.raises(UnknownOrder, match="order-2"):
        store.order("order-2")


def test_an_authorization_belongs_to_one_order(store: Store) -> None:
    store.add(order())
    with pytest.raises(DuplicateOrder, match="payer and nonce"):
        store.add(order("order-2"))
    with pytest.raises(DuplicateOrder, match="other terms"):
        store.add(order(nonce=b"\x22" * 32))
    assert [order.id for order in store.orders()] == ["order-1"]


def test_pages_have_every_order_once(store: Store) -> None:
    for number in range(25):
        store.add(order(f"order-{number:02}", bytes([number]) * 32))
    page = [order.id for order in store.orders(limit=10, after="order-03")]
    assert (page[0], len(page)) == ("order-04", 10)
    assert [order.id for order in every_order(store)] == [f"order-{n:02}" for n in range(25)]
    assert store.orders([State.STORED]) == []
    assert len(store.orders([State.DRAFTED], payer=PAYER)) == 25


def test_an_illegal_transition_changes_nothing(store: Store) -> None:
    added = store.add(order())
    with pytest.raises(IllegalTransition):
        store.change("order-1", Trigger.REACH_DEPTH)
    assert store.order("order-1") == added
    assert len(store.audit("order-1")) == 1


def test_who_saw_an_older_version_changes_nothing(store: Store) -> None:
    added = store.add(order())
    store.change("order-1", Trigger.SIGN, version=added.version)
    with pytest.raises(StaleOrder):
        store.change("order-1", Trigger.VOID, version=added.version)
    assert store.order("order-1").state is State.SIGNED


def test_members_that_are_agreed_do_not_change(store: Store) -> None:
    store.add(order())
    with pytest.raises(TypeError, match="value"):
        store.change("order-1", Trigger.SIGN, value=1)


def test_what_the_chain_did_is_undone_completely(stored: Store) -> None:
    settlement = Settlement("0x01", "0x02", 3)
    seen = stored.change("order-1", Trigger.SEE_CAPTURE, settlement=settlement, detail="found")
    assert (seen.settlement, seen.origin) == (settlement, State.STORED)
    assert stored.change("order-1", Trigger.REACH_DEPTH).origin is State.STORED
    undone = stored.change("order-1", Trigger.UNDO_CAPTURE)
    assert (undone.state, undone.settlement, undone.origin) == (State.STORED, None, None)
    assert undone.sealed == b"sealed"


def test_the_trail_only_grows(stored: Store) -> None:
    trail = [(entry.actor, entry.before, entry.after) for entry in stored.audit("order-1")]
    assert trail == [
        ("merchant", "", "drafted"),
        ("payer", "drafted", "signed"),
        ("merchant", "signed", "stored"),
    ]
    assert isinstance(stored, SqlStore)
    for statement in ("UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"):
        with (
            pytest.raises((sqlite3.IntegrityError, StoreError)) as raised,
            stored.database.transaction() as connection,
        ):
            connection.execute(statement)
        assert "append-only" in f"{raised.value} {raised.value.__cause__}"


def test_transition_and_transaction_are_recorded_both_or_neither(stored: Store) -> None:
    def breaking(nonce: int) -> Draft:
        raise RuntimeError("the signer is gone")

    trail = stored.audit("order-1")
    with pytest.raises(RuntimeError):
        stored.submit(
            "order-1", Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE,
            sender=SHOP, least_nonce=0, draft=breaking,
        )  # fmt: skip
    assert stored.order("order-1").state is State.STORED
    assert stored.submissions() == []
    assert stored.audit("order-1") == trail


def submit(store: Store, name: str, tx_hash: str, least_nonce: int) -> int:
    submission = store.submit(
        name, Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE,
        sender=SHOP, least_nonce=least_nonce, draft=lambda nonce: draft(),
    )  # fmt: skip
    assert submission.progress is Progress.RESERVED
    assert store.signed(submission.number, tx_hash, b"sealed") is not None
    return submission.account_nonce


def test_of_two_who_submit_one_is_refused(stored: Store, store_url: str) -> None:
    other = open_store(store_url)
    submit(stored, "order-1", "0xaa", 0)
    with pytest.raises(IllegalTransition):
        submit(other, "order-1", "0xbb", 0)
    assert [submission.transaction_hash for submission in other.submissions()] == ["0xaa"]
    other.close()


def test_account_nonces_follow_each_other_whatever_became_of_them(store: Store) -> None:
    for number in range(3):
        store.add(order(f"order-{number}", bytes([number]) * 32))
        store.change(f"order-{number}", Trigger.SIGN)
        store.change(f"order-{number}", Trigger.STORE)
    assert submit(store, "order-0", "0xa0", 7) == 7
    store.note(store.submissions()[0].number, Progress.SUCCEEDED)
    assert submit(store, "order-1", "0xa1", 7) == 8, "a reorganisation may free nonce 7 again"
    assert submit(store, "order-2", "0xa2", 20) == 20


def test_one_replacement_replaces_one_transaction(stored: Store) -> None:
    submit(stored, "order-1", "0xaa", 0)
    (old,) = stored.submissions()
    new = stored.replace(old, Purpose.CAPTURE, lambda nonce: draft(fee=2))
    assert new is not None
    assert (new.account_nonce, new.bump) == (0, 1)
    assert stored.replace(old, Purpose.CAPTURE, lambda nonce: draft(fee=2)) is None
    sent = stored.submissions(order_id="order-1")
    assert [submission.transaction_hash for submission in sent] == ["0xaa", ""]


def test_of_two_who_sign_one_is_kept_and_what_was_replaced_is_signed_no_more(
    stored: Store,
) -> None:
    reserved = stored.submit(
        "order-1", Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE,
        sender=SHOP, least_nonce=0, draft=lambda nonce: draft(),
    )  # fmt: skip
    assert not stored.claim(reserved.number), "whoever reserved it signs first"
    stored.postpone(reserved.number, Reason.SIGNER_UNAVAILABLE, "slow", 0.0)
    assert stored.claim(reserved.number)
    assert not stored.claim(reserved.number)
    fill = stored.replace(reserved, Purpose.FILL, lambda nonce: draft())
    assert fill is not None
    assert stored.signed(reserved.number, "0xaa", b"late") is None
    assert stored.signed(fill.number, "0xbb", b"kept") is not None
    assert stored.signed(fill.number, "0xcc", b"late") is None
    assert [
        (submission.transaction_hash, submission.progress) for submission in stored.submissions()
    ] == [
        ("", Progress.REPLACED),
        ("0xbb", Progress.RECORDED),
    ]


def test_progress_is_in_the_trail_once(stored: Store) -> None:
    submit(stored, "order-1", "0xaa", 0)
    (sent,) = stored.submissions()
    for _ in range(3):
        stored.note(sent.number, Progress.REVERTED, Reason.BALANCE, "too little")
    (item,) = stored.submissions()
    assert (item.progress, item.reason, item.detail) == (
        Progress.REVERTED,
        Reason.BALANCE,
        "too little",
    )
    assert [entry.after for entry in stored.audit("order-1")].count("reverted") == 1
    assert stored.submissions(waiting=True) == []
    assert stored.submissions(least_nonce=1) == []


def test_everything_sealed_is_sealed_again(stored: Store) -> None:
    submit(stored, "order-1", "0xaa", 0)
    places: list[str] = []

    def again(sealed: bytes, context: str) -> bytes | None:
        places.append(context)
        return b"newly " + sealed

    assert stored.reseal(again, b"check") == 2
    assert stored.key_check() == b"check"
    assert stored.order("order-1").sealed == b"newly sealed"
    assert stored.submissions()[0].sealed == b"newly sealed"
    assert places == [stored.order("order-1").seal_context, stored.submissions()[0].seal_context]
    assert stored.reseal(lambda sealed, place: None, b"newer") == 0
    assert stored.key_check() == b"newer"


def test_addresses_choose_the_store(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    open_store(f"sqlite:///{path}").close()
    assert path.exists()
    open_store("sqlite:///:memory:").close()
    for url in ("postgresql://127.0.0.1:1/db", "mysql://host/db", "sqlite:///", "payments.db"):
        with pytest.raises(StoreError):
            open_store(url)
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(f"sqlite:///{tmp_path}/no/such/folder/x.db")


def test_a_store_of_another_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "payments.db"
    open_store(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE layout SET version = 99")
    connection.close()
    with pytest.raises(StoreError, match="schema version 99"):
        open_store(f"sqlite:///{path}")


# --- the ledger ---------------------------------------------------------------------------------


def log(
    block: str, number: int, tx_hash: str = "0xaa", index: int = 0, event: Event = Event.USED
) -> ChainLog:
    return ChainLog(
        key=LogKey(block, tx_hash, index),
        block_number=number,
        address=SEPOLIA.token,
        event=event,
        arguments={"authorizer": PAYER, "nonce": NONCE},
    )


def counted(store: Store) -> list[LogKey]:
    return [chain_log.key for chain_log in store.logs(CHAIN)]


def test_a_log_counts_once_however_often_it_is_reported(store: Store) -> None:
    item = log("0xb1", 1)
    assert store.take(CHAIN, [item, item]) == 1
    assert store.take(CHAIN, [item]) == 0
    assert store.logs(CHAIN) == [item]
    assert store.logs(1) == [], "of this chain only"


def test_a_removed_log_counts_no_more_until_it_comes_back(store: Store) -> None:
    item = log("0xb1", 1)
    store.take(CHAIN, [item])
    assert store.drop_blocks(CHAIN, ["0xb1"]) == 1
    assert store.drop_blocks(CHAIN, ["0xb1"]) == 0
    assert counted(store) == []
    assert [kept.removed for kept in store.logs(CHAIN, removed=True)] == [True]
    assert store.take(CHAIN, [item]) == 1
    assert counted(store) == [item.key]


def test_a_transaction_and_a_height_count_in_one_block_only(store: Store) -> None:
    store.take(CHAIN, [log("0xb1", 1), log("0xb1", 1, "0xcc", 1)])
    store.take(CHAIN, [log("0xb2", 2)])
    assert counted(store) == [LogKey("0xb1", "0xcc", 1), LogKey("0xb2", "0xaa", 0)]
    store.take(CHAIN, [log("0xf1", 1, "0xdd")])
    assert counted(store) == [LogKey("0xf1", "0xdd", 0), LogKey("0xb2", "0xaa", 0)]


def test_pages_of_logs_have_every_log_once(store: Store) -> None:
    logs = [log(f"0xb{number}", number, f"0x{number}", index)
            for number in range(4) for index in range(400)]  # fmt: skip
    assert store.take(CHAIN, logs) == len(logs)
    assert [chain_log.key for chain_log in every_log(store, CHAIN)] == [added.key for added in logs]
    assert len(list(every_log(store, CHAIN, first=1, last=2))) == 800
    assert len(list(every_log(store, CHAIN, transaction_hash="0x3"))) == 400


def test_blocks_go_with_all_their_logs(store: Store) -> None:
    store.take(CHAIN, [log("0xb1", 1), log("0xb1", 1, "0xcc", 1), log("0xb2", 2, "0xdd")])
    assert store.blocks(CHAIN, 0) == [Checkpoint(1, "0xb1"), Checkpoint(2, "0xb2")]
    assert store.blocks(CHAIN, 2) == [Checkpoint(2, "0xb2")]
    assert store.drop_blocks(CHAIN, ["0xb1"]) == 2
    assert store.blocks(CHAIN, 0) == [Checkpoint(2, "0xb2")]


def test_spendings_wait_until_they_are_applied_and_again_when_they_change(
    store: Store,
) -> None:
    item = log("0xb1", 1)
    store.take(CHAIN, [item, log("0xb1", 1, index=1, event=Event.TRANSFER)])
    assert store.unapplied(CHAIN) == [item]
    store.mark_applied(CHAIN, [item])
    assert store.unapplied(CHAIN) == []
    store.drop_blocks(CHAIN, ["0xb1"])
    (gone,) = store.unapplied(CHAIN)
    assert gone.removed
    store.take(CHAIN, [item])
    store.mark_applied(CHAIN, [gone])  # the removed log, not the log that came again
    assert store.unapplied(CHAIN) == [item]
    assert store.spendings(CHAIN, SEPOLIA.token, PAYER, NONCE) == [item]


def test_an_order_is_found_by_its_authorization(store: Store) -> None:
    added = store.add(order())
    assert store.find(SEPOLIA.token, PAYER, NONCE) == added
    assert store.find(SHOP, PAYER, NONCE) is None
    assert store.scoped("another").find(SEPOLIA.token, PAYER, NONCE) is None
    assert store.payers([State.DRAFTED], [], 0) == [PAYER]
    assert store.payers([State.PAID], [State.FAILED], 0) == []


def test_checkpoints_are_replaced_and_forgotten(store: Store) -> None:
    for number in range(4):
        store.check("one", Checkpoint(number, f"0xb{number}"))
    gone = [Checkpoint(3, "0xb3"), Checkpoint(2, "0xb2")]
    store.check("one", Checkpoint(2, "0xf2"), gone=gone)
    assert store.checkpoints("one") == [
        Checkpoint(2, "0xf2"),
        Checkpoint(1, "0xb1"),
        Checkpoint(0, "0xb0"),
    ]
    assert store.checkpoints("another") == []


# --- limits and sums ------------------------------------------------------------------------------


def test_captures_of_a_day_have_a_limit_whoever_asks(store: Store, store_url: str) -> None:
    value = order().authorization.terms.value
    for number in range(3):
        store.add(order(f"order-{number}", bytes([number]) * 32))
        store.change(f"order-{number}", Trigger.SIGN)
        store.change(f"order-{number}", Trigger.STORE)
    other = open_store(store_url)
    for at, item in enumerate((store, other)):
        item.submit(
            f"order-{at}", Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE, sender=SHOP, least_nonce=0,
            draft=lambda nonce: draft(), most_today=2 * value,
        )  # fmt: skip
    with pytest.raises(LimitReached, match="today"):
        other.submit(
            "order-2", Trigger.SUBMIT_CAPTURE, Purpose.CAPTURE, sender=SHOP, least_nonce=0,
            draft=lambda nonce: draft(), most_today=2 * value,
        )  # fmt: skip
    assert store.order("order-2").state is State.STORED
    assert len(store.submissions()) == 2
    assert store.counts()[State.CAPTURING][:2] == (2, 2 * value)
    assert store.outstanding(CHAIN, SHOP) == 2
    other.close()


def test_orders_whose_window_is_over_are_found_by_number_not_by_text(store: Store) -> None:
    for number, end in enumerate((9, 10, 100, 1_000)):
        terms = Terms(
            payer=PAYER, recipient=SHOP, value=1, valid_after=0, valid_before=end,
            nonce=bytes([number]) * 32,
        )  # fmt: skip
        store.add(Order(id=f"order-{end}", authorization=Authorization(SEPOLIA, terms)))
    assert [order.id for order in store.orders(ended_at=10)] == ["order-10", "order-9"]
    assert [order.id for order in store.orders(ended_at=99)] == ["order-10", "order-9"]
    assert len(store.orders(ended_at=1_000)) == 4
