"""Tests which transfer pays an order: payer, nonce, recipient and amount must match."""

from typing import Any

import pytest

from fastevm.payments import NodeClient, Order, Policy, Progress, Purpose, Reason
from fastevm.payments.chain import Chain, Head
from fastevm.payments.events import Entry, Event
from fastevm.payments.orders import Submission
from fastevm.payments.settlement import ended, pays

from .test_events import log
from .test_store import NONCE, order

OURS: Order = order()
TERMS = OURS.authorization.terms


def entry(**changes: Any) -> Entry:
    usual = {"sender": TERMS.payer, "recipient": TERMS.recipient, "amount": TERMS.value}
    authorization = changes.pop("authorization", (TERMS.payer, NONCE))
    transfer = log(1, Event.TRANSFER, **{**usual, **changes})
    return Entry(transfer=transfer, authorization=authorization)


def test_the_transfer_of_the_terms_pays() -> None:
    assert pays(entry(), OURS)


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": TERMS.value - 1},
        {"amount": TERMS.value + 1},
        {"recipient": TERMS.payer},
        {"authorization": None},
        {"authorization": (TERMS.payer, "0x" + "22" * 32)},
        {"authorization": (TERMS.recipient, NONCE)},
    ],
)
def test_any_other_transfer_does_not(changes: dict[str, Any]) -> None:
    assert not pays(entry(**changes), OURS)


def deep(depth: int | str, tagged: int | None = None) -> int | None:
    chain = Chain(NodeClient("http://127.0.0.1:1"), 1, Policy(depth=depth))
    return chain.newest_confirmed_number(
        Head(10, "0x01", 0), None if tagged is None else Head(tagged, "0x02", 0)
    )


def test_depth_counts_the_block_itself() -> None:
    assert deep(1) == 10
    assert deep(11) == 0
    assert deep(12) is None


def test_depth_is_what_the_node_calls_safe_or_finalized() -> None:
    assert deep("safe", 7) == 7
    assert deep("finalized") is None
    assert deep("finalized", 12) == 10, "a tag that is ahead of the head is another node's"


def sent(progress: Progress, purpose: Purpose = Purpose.CAPTURE) -> Submission:
    return Submission(
        number=1, transaction_hash=progress.value, order_id="order-1", purpose=purpose, chain_id=1,
        sender=TERMS.recipient, account_nonce=0, bump=0, sealed=b"", gas=1, max_fee=1,
        priority_fee=1, progress=progress, reason=Reason.BALANCE,
    )  # fmt: skip


def test_an_attempt_has_ended_when_nothing_of_it_can_be_included() -> None:
    reverted, lost = sent(Progress.REVERTED), sent(Progress.LOST)
    assert ended([lost, reverted], Purpose.CAPTURE) is reverted
    for alive in (Progress.RECORDED, Progress.SENT, Progress.PRE_CONFIRMED, Progress.SUCCEEDED):
        assert ended([reverted, sent(alive)], Purpose.CAPTURE) is None
    assert ended([reverted], Purpose.CANCEL) is None
