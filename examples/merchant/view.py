"""Formats an order as JSON for the pages: state, cause, checks and history as text."""

from collections.abc import Sequence
from typing import Any, Final

from examples.merchant.words import (
    ACTORS,
    CHECKS,
    PRE_CONFIRMED,
    PROGRESS,
    PURPOSES,
    REASONS,
    STATES,
    TRIGGERS,
    Words,
)
from fastevm.payments import (
    AuditEntry,
    Order,
    Progress,
    Reason,
    State,
    Submission,
    Verdict,
)

# The actions of each state; each page shows its own buttons.
ACTIONS: Final[dict[State, tuple[str, ...]]] = {
    State.DRAFTED: ("sign", "void"),
    State.STORED: ("capture", "ask_cancel", "cancel", "void"),
    State.PAID: ("refund",),
}
CANCELLING: Final = ("ask_cancel", "cancel")
# If only this check fails, the order can be captured, but then another order of the payer cannot.
ONLY_A_WARNING: Final = "balance_after_others"


def view_of(
    order: Order,
    *,
    verdicts: Sequence[Verdict],
    submissions: Sequence[Submission],
    trail: Sequence[AuditEntry],
) -> dict[str, Any]:
    """Returns the view of an order, without the article.

    Amounts are decimal strings, times Unix seconds.
    """
    terms, words = order.authorization.terms, words_of(order, submissions)
    return {
        "id": order.id,
        "createdAt": order.created_at,
        "state": order.state.value,
        "label": words.label,
        "sentence": words.sentence,
        "tone": words.tone,
        "amount": str(terms.value),
        "payer": terms.payer,
        "recipient": terms.recipient,
        "nonce": "0x" + terms.nonce.hex(),
        "validAfter": terms.valid_after,
        "validBefore": terms.valid_before,
        "expires": order.state.open,
        "cause": cause_of(order, verdicts),
        "actions": actions_of(order),
        "checks": [check(verdict) for verdict in verdicts],
        "transactions": [transaction(submission) for submission in submissions],
        "settlement": settlement(order),
        "trail": [entry(line) for line in trail],
    }


def actions_of(order: Order) -> list[str]:
    """Returns the actions of an order; a permit cannot be cancelled."""
    found = ACTIONS.get(order.state, ())
    cancels = order.authorization.memo is None
    return [action for action in found if cancels or action not in CANCELLING]


def words_of(order: Order, submissions: Sequence[Submission]) -> Words:
    """Returns the text of a state, or of its pre-confirmed variant."""
    in_slice = any(submission.progress is Progress.PRE_CONFIRMED for submission in submissions)
    if in_slice and order.state in PRE_CONFIRMED:
        return PRE_CONFIRMED[order.state]
    return STATES[order.state]


def cause_of(order: Order, verdicts: Sequence[Verdict]) -> dict[str, str] | None:
    """Returns the problem of an order as effect and reason, or None if there is no problem."""
    if order.state is State.STORED:
        failing = [
            verdict for verdict in verdicts if verdict.ok is False and verdict.reason is not None
        ]
        failing.sort(key=lambda verdict: verdict.name == ONLY_A_WARNING)
        if failing and failing[0].reason is not None:
            warning = failing[0].name == ONLY_A_WARNING
            effect = "Not all open orders can be paid" if warning else "A capture would fail now"
            return cause(effect, failing[0].reason)
        return None if order.reason is None else cause("The last attempt failed", order.reason)
    if order.reason is not None and order.state in (State.FAILED, State.EXPIRED):
        return cause("Why", order.reason)
    return None


def cause(effect: str, reason: Reason) -> dict[str, str]:
    return {"effect": effect, "name": reason.value, "text": REASONS[reason]}


def check(verdict: Verdict) -> dict[str, str]:
    """Returns a verdict as JSON, with a title and a sentence."""
    title, fine = CHECKS.get(verdict.name, (verdict.name, "passes"))
    if verdict.ok:
        return {"name": verdict.name, "title": title, "verdict": "ok", "text": fine}
    if verdict.ok is None or verdict.reason is None:
        text = "could not be checked"
        return {"name": verdict.name, "title": title, "verdict": "unknown", "text": text}
    text = REASONS[verdict.reason]
    return {"name": verdict.name, "title": title, "verdict": "failed", "text": text}


def transaction(submission: Submission) -> dict[str, Any]:
    return {
        "hash": submission.transaction_hash,
        "purpose": PURPOSES[submission.purpose],
        "progress": PROGRESS[submission.progress],
        "reason": None if submission.reason is None else REASONS[submission.reason],
    }


def settlement(order: Order) -> dict[str, Any] | None:
    """Returns the transaction that used the nonce of the authorization, or None."""
    found = order.settlement
    if found is None:
        return None
    return {"hash": found.transaction_hash, "block": found.block_number}


def entry(line: AuditEntry) -> dict[str, Any]:
    """Returns an audit entry as a sentence."""
    detail = f" ({line.detail})" if line.detail else ""
    return {
        "at": line.at,
        "text": f"{ACTORS.get(line.actor, line.actor)}: {event_of(line)}{detail}",
    }


def event_of(line: AuditEntry) -> str:
    """Returns the text of a transition or of a transaction's progress."""
    for trigger, words in TRIGGERS.items():
        if line.what == trigger.value:
            return words
    if line.what == State.DRAFTED.value:
        return "set the terms"
    for progress, words in PROGRESS.items():
        if line.after == progress.value:
            return f"a transaction is {words}"
    return line.what
