"""Tests the table of order states: its transitions, and errors for all other transitions."""

import itertools

import pytest

from fastevm.payments import TRANSITIONS, Actor, IllegalTransition, State, Trigger
from fastevm.payments.states import actions, possible, target, transition

# Transitions of the payment flow's specification: state before, trigger, state after, actor.
DOCUMENT = [
    (State.DRAFTED, Trigger.SIGN, State.SIGNED, Actor.PAYER),
    (State.SIGNED, Trigger.STORE, State.STORED, Actor.MERCHANT),
    (State.STORED, Trigger.SUBMIT_CAPTURE, State.CAPTURING, Actor.MERCHANT),
    (State.CAPTURING, Trigger.SEE_CAPTURE, State.CAPTURED, Actor.CHAIN),
    (State.STORED, Trigger.SUBMIT_CANCEL, State.CANCELLING, Actor.PAYER),
    (State.CANCELLING, Trigger.SEE_CANCEL, State.CANCELLED, Actor.CHAIN),
    (State.STORED, Trigger.VOID, State.VOIDED, Actor.MERCHANT),
]


@pytest.mark.parametrize(("source", "trigger", "end", "actor"), DOCUMENT)
def test_the_documents_rows_are_in_the_table(
    source: State, trigger: Trigger, end: State, actor: Actor
) -> None:
    row = transition(source, trigger)
    assert (row.target, row.actor) == (end, actor)


def test_every_pair_outside_the_table_raises_and_says_what_is_possible() -> None:
    legal = {(row.source, row.trigger) for row in TRANSITIONS}
    for pair in itertools.product(State, Trigger):
        if pair in legal:
            continue
        with pytest.raises(IllegalTransition) as raised:
            transition(*pair)
        assert raised.value.allowed == actions(pair[0])


def test_no_cause_has_two_rows_and_every_row_says_what_can_go_wrong() -> None:
    causes = [(row.source, row.trigger) for row in TRANSITIONS]
    assert len(causes) == len(set(causes))
    assert all(row.risk for row in TRANSITIONS)


def test_only_the_chain_makes_a_payment() -> None:
    rows = [row for row in TRANSITIONS if row.target in (State.CAPTURED, State.PAID)]
    assert rows
    assert {row.actor for row in rows} == {Actor.CHAIN}
    assert [row.source for row in rows if row.target is State.PAID] == [State.CAPTURED]


def test_every_state_but_the_first_is_reached() -> None:
    ends = {row.target for row in TRANSITIONS}
    assert set(State) - ends == {State.DRAFTED}


def test_what_a_reorganisation_undoes_leads_back_to_where_it_was() -> None:
    for origin in (State.STORED, State.CAPTURING, State.VOIDED, State.EXPIRED):
        assert target(State.PAID, Trigger.UNDO_CAPTURE, origin) is origin
    assert target(State.CANCELLED, Trigger.UNDO_CANCEL, State.CANCELLING) is State.CANCELLING


def test_whatever_the_chain_can_do_it_can_undo() -> None:
    undo = {
        State.CAPTURED: Trigger.UNDO_CAPTURE,
        State.PAID: Trigger.UNDO_CAPTURE,
        State.CANCELLED: Trigger.UNDO_CANCEL,
        State.FAILED: Trigger.UNDO_FAILURE,
        State.HELD: Trigger.UNDO_HOLD,
        State.RELEASED: Trigger.UNDO_RELEASE,
    }
    for state, trigger in undo.items():
        assert trigger in possible(state)


def test_a_hold_is_undone_to_where_it_began_and_a_capture_of_it_to_the_hold() -> None:
    assert target(State.HELD, Trigger.UNDO_HOLD, State.AUTHORIZING) is State.AUTHORIZING
    assert target(State.CAPTURED, Trigger.UNDO_CAPTURE, State.HELD) is State.HELD
    assert target(State.RELEASED, Trigger.UNDO_RELEASE) is State.HELD
    assert target(State.PAID, Trigger.UNDO_PARTS, State.STORED) is State.HELD


def test_a_voided_order_can_be_cancelled_and_is_voided_again_without_it() -> None:
    assert target(State.VOIDED, Trigger.SUBMIT_CANCEL) is State.CANCELLING
    assert target(State.CANCELLING, Trigger.LOSE_VOIDED_CANCEL) is State.VOIDED
