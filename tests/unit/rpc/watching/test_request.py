"""Tests the object of a ``fastevm_watch`` subscription: valid and invalid members."""

from typing import Any

import pytest

from fastevm.rpc.limits import WATCH_BUNDLE_CALLS, WATCH_QUESTIONS
from fastevm.rpc.watching.request import DEFAULT_FIELDS, Wanted, decode_watch
from fastevm.rpc_types.quantity import DecodeError

TO = "0x" + "11" * 20
CALL = {"to": TO, "data": "0x01"}
VIEW = {"to": TO, "function": "balanceOf(address) returns (uint256)", "args": [TO]}


def returning(types: str) -> dict[str, Any]:
    return {"to": TO, "function": f"get() returns ({types})"}


def decoded(**given: Any) -> Any:
    return decode_watch(given, shows_base_fee=True)


def test_questions_keep_the_order_of_the_request() -> None:
    made = decoded(views=[VIEW], calls=[CALL, {"to": TO}], bundles=[[CALL, CALL]])
    assert [type(question.content).__name__ for question in made.questions] == [
        "CallRequest", "CallRequest", "list", "View",
    ]  # fmt: skip
    assert [question.is_view for question in made.questions] == [False, False, False, True]
    assert (made.tag, made.progress) == ("pending", False)
    assert made.questions[0].wanted == Wanted(DEFAULT_FIELDS)


def test_equal_questions_have_equal_texts_whatever_the_order_of_members() -> None:
    one = decoded(calls=[{"to": TO, "data": "0x01"}]).questions[0]
    other = decoded(calls=[{"data": "0x01", "to": TO}], changes=["gas"]).questions[0]
    assert one.text == other.text
    texts = {
        question.text
        for question in decoded(
            calls=[CALL, {"to": TO}], bundles=[[CALL]], views=[VIEW, {**VIEW, "from": TO}]
        ).questions
    }
    assert len(texts) == 5


def test_a_threshold_belongs_to_views_and_does_not_make_another_question() -> None:
    made = decoded(calls=[CALL], views=[VIEW, {**VIEW, "crosses": "0x5"}], crosses="0x9")
    assert [question.wanted.crosses for question in made.questions] == [None, 9, 5]
    assert made.questions[1].text == made.questions[2].text


def test_a_difference_of_gas_makes_gas_count() -> None:
    wanted = decoded(calls=[CALL], gasBy="0x64").questions[0].wanted
    assert wanted == Wanted(DEFAULT_FIELDS | {"gas"}, 100)


def test_decimal_arguments_are_numbers() -> None:
    view = {"to": TO, "function": "f(uint256,int8[]) returns (bool)", "args": ["7", ["-1", "2"]]}
    data = decoded(views=[view]).questions[0].content.data
    assert data[4:36] == (7).to_bytes(32)
    assert data[-64:-32] == b"\xff" * 32


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (5, "watch"),
        ({}, "expected 1 to 1000 calls, bundles and views, got 0"),
        ({"calls": [CALL] * (WATCH_QUESTIONS + 1)}, f"got {WATCH_QUESTIONS + 1}"),
        ({"calls": CALL}, "calls: expected an array"),
        ({"calls": [5]}, "cannot unmarshal"),
        ({"calls": [CALL], "block": "safe"}, 'expected "pending" or "latest"'),
        ({"calls": [CALL], "changes": ["colour"]}, "changes: expected an array of status"),
        ({"calls": [CALL], "changes": []}, "changes: expected an array of status"),
        ({"calls": [CALL], "colour": 1}, "unknown member 'colour'"),
        ({"calls": [CALL], "gasBy": -1}, "cannot unmarshal"),
        ({"calls": [CALL], "progress": 1}, "cannot unmarshal"),
        ({"bundles": [[]]}, "bundles: expected arrays"),
        ({"bundles": [[CALL] * (WATCH_BUNDLE_CALLS + 1)]}, "bundles: expected arrays"),
        ({"views": [{"to": TO}]}, 'views: expected "function"'),
        ({"views": [{**VIEW, "function": "5"}]}, "views: "),
        ({"views": [{**VIEW, "args": []}]}, "1 arguments"),
        ({"views": [{**VIEW, "args": "x"}]}, "args: expected an array"),
        ({"views": [{**VIEW, "to": None}]}, "cannot unmarshal"),
        ({"views": [{**VIEW, "x": 1}]}, "view: unknown member 'x'"),
        ({"views": [returning("uint256" + "[]" * 9_000)]}, "more than 64 levels"),
        ({"views": [returning("(" * 9_000 + ")" * 9_000)]}, "more than 64 levels"),
        ({"views": [returning("uint256[99999999999999999999]")]}, "larger than"),
        ({"views": [returning(" " * 20_000 + "%")]}, "unexpected '%'"),
        ({"views": [returning("uint8," * 6_000 + "uint8")]}, "more than 32768"),
    ],
)
def test_what_cannot_be_asked_is_refused(given: Any, text: str) -> None:
    with pytest.raises(DecodeError) as fault:
        decode_watch(given, shows_base_fee=True)
    assert text in str(fault.value)
