"""Formats answers to watched calls as JSON, and decides which changes a subscriber wants."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.core.primitives.safe_text import safe
from fastevm.rpc.limits import WATCH_ANSWER
from fastevm.rpc.watching.request import Question, Wanted
from fastevm.simulate import CallOutcome, Change

ERROR_SHOWN: Final = 256  # most characters of an error
TOO_LARGE: Final = "the answer has {size} bytes, more than {limit}"


class Sent:
    """The last values sent to a subscriber for a question. Decides whether to send a change."""

    __slots__ = ("gas", "side", "size", "used", "was_stale")

    def __init__(self) -> None:
        self.gas = 0  # gas of the last answer that was sent
        self.used = 0  # gas of the newest answer
        self.size = 0  # bytes of the newest answer
        self.side: bool | None = None  # whether the last value sent was at or above the threshold
        self.was_stale = False

    def wants(self, change: Change, wanted: Wanted) -> bool:
        """Return whether to send a change. If so, remember the change."""
        news = change.differs
        if change.stale or self.was_stale or "new" in news:
            is_wanted = True
        elif wanted.crosses is not None:
            is_wanted = side_of(change, wanted.crosses) != self.side
        else:
            is_wanted = bool(news & wanted.fields - {"gas"}) or "error" in news
            if "gas" in wanted.fields and "gas" in news:
                assert change.answer is not None
                difference = abs(change.answer.gas_used - self.gas)
                is_wanted = is_wanted or difference >= (wanted.gas_by or 1)
        if is_wanted:
            self.remember(change, wanted)
        return is_wanted

    def remember(self, change: Change, wanted: Wanted) -> None:
        """Remember that the answer of ``change`` is sent."""
        self.was_stale = change.stale
        if change.answer is not None:
            self.gas = change.answer.gas_used
            if wanted.crosses is not None:
                self.side = side_of(change, wanted.crosses)


def side_of(change: Change, threshold: int) -> bool | None:
    """Return whether a value's first number is >= the threshold; None without a number."""
    value = change.value
    while isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
        value = value[0]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value >= threshold if is_number else None


def answer_json(change: Change, question: Question) -> dict[str, Any]:
    """Return an answer as JSON. The answer to a bundle has the outcomes in ``calls``.

    An answer of more than `WATCH_ANSWER` bytes is replaced by an error.
    """
    answer = change.answer
    if answer is None:
        return {}
    found: dict[str, Any] = {"status": "0x1" if answer.success else "0x0"}
    found["gasUsed"] = quantity(answer.gas_used)
    if change.size > WATCH_ANSWER:
        found["error"] = TOO_LARGE.format(size=change.size, limit=WATCH_ANSWER)
        return found
    calls = answer.calls
    if answer.error is not None:
        found["error"] = safe(answer.error)[:ERROR_SHOWN]
    if not question.is_bundle:
        found |= outcome_json(calls[0]) if calls else {}
    else:
        found["calls"] = [outcome_json(call) for call in calls]
    if question.is_view:
        found["value"] = value_json(change.value)
    return found


def outcome_json(outcome: CallOutcome) -> dict[str, Any]:
    """Return the outcome of a call as JSON."""
    found: dict[str, Any] = {
        "status": "0x1" if outcome.success else "0x0",
        "gasUsed": quantity(outcome.gas_used),
        "returnData": hex_bytes(outcome.output),
    }
    if outcome.error is not None:
        found["error"] = safe(outcome.error)[:ERROR_SHOWN]
    if outcome.logs:
        found["logs"] = [
            {
                "address": hex_bytes(log.address),
                "topics": [hex_bytes(topic) for topic in log.topics],
                "data": hex_bytes(log.data),
            }
            for log in outcome.logs
        ]
    return found


def value_json(value: Any) -> Any:
    """Return a decoded value as JSON.

    Integers are signed quantities, fixed-point numbers decimal text, bytes hex text.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return quantity(value) if value >= 0 else f"-{quantity(-value)}"
    if isinstance(value, bytes):
        return hex_bytes(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, Mapping):
        return {str(name): value_json(each) for name, each in value.items()}
    return [value_json(each) for each in value]
