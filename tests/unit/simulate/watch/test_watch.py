"""Tests that a watch repeats only calls with changed reads."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from fastevm.core.state.layer import Layer
from fastevm.errors import ResourceLimitError
from fastevm.simulate import CallRequest, Change, View, Watch, simulate_many, view_of

SENDER = bytes([0xAA]) * 20
TOKEN = bytes([0xC1]) * 20
CLOCK = bytes([0xC2]) * 20
READER = bytes([0xC3]) * 20
NOBODY = bytes([0xB1]) * 20
ETHER = 10**18

# Returns the result of the instruction.
RETURN = bytes.fromhex("60005260206000f3")
CODES = {
    TOKEN: bytes.fromhex("600054") + RETURN,  # SLOAD 0
    CLOCK: bytes.fromhex("42") + RETURN,  # TIMESTAMP
    READER: b"\x73" + NOBODY + b"\x31" + RETURN,  # BALANCE of nobody
}


def state(changes: Mapping[bytes, Mapping[str, Any]] | None = None) -> Layer:
    accounts: dict[bytes, dict[str, Any]] = {
        address: {"code": code, "nonce": 1} for address, code in CODES.items()
    }
    accounts[TOKEN]["storage"] = {0: 5, 1: 7}
    accounts[SENDER] = {"balance": ETHER, "nonce": 1}
    return Layer.of(accounts).with_accounts(changes or {})


def call(to: bytes, **fields: Any) -> dict[str, Any]:
    return {"from": f"0x{SENDER.hex()}", "to": f"0x{to.hex()}", **fields}


def ran(watch: Watch, base: Any) -> tuple[int, list[int]]:
    """Moves the watch to a new base state.

    Returns how many calls ran again, and the ids of the calls whose answers changed.
    """
    changes = watch.advance(base)
    return changes.ran, sorted(change.id for change in changes)


def output(change: Change) -> int:
    assert change.answer is not None
    return int.from_bytes(change.answer.calls[-1].output, "big")


def test_only_questions_whose_slot_changed_run_again() -> None:
    base = state()
    watch = Watch(base)
    token, other = watch.add([call(TOKEN)]), watch.add([call(READER)])
    assert watch.refresh().ran == 2
    assert ran(watch, base.with_accounts({TOKEN: {"storage": {1: 8}}})) == (0, [])
    assert ran(watch, base.with_accounts({TOKEN: {"storage": {0: 6}}})) == (1, [token])
    assert output(watch.answer(token)) == 6
    assert ran(watch, base.with_accounts({NOBODY: {"balance": 3}})) == (2, [token, other])


def test_a_value_that_is_written_again_is_no_change() -> None:
    base = state()
    watch = Watch(base)
    watch.add([call(TOKEN)])
    watch.refresh()
    again = base.with_accounts({TOKEN: {"storage": {0: 6}}})
    back = again.with_accounts({TOKEN: {"storage": {0: 5}}})
    assert ran(watch, back) == (0, [])


def test_a_withdrawn_slice_is_a_change_back() -> None:
    base = state()
    watch = Watch(base)
    id = watch.add([call(TOKEN)])
    watch.refresh()
    assert ran(watch, base.with_accounts({TOKEN: {"storage": {0: 6}}})) == (1, [id])
    assert ran(watch, base) == (1, [id])
    assert output(watch.answer(id)) == 5


def test_a_credit_is_no_read() -> None:
    base = state()
    watch = Watch(base)
    watch.add([call(NOBODY, value="0x1")])
    watch.refresh()
    # the sender is richer, and the recipient exists
    rich = base.with_accounts({SENDER: {"balance": 2 * ETHER}})
    assert ran(watch, rich) == (0, [])
    assert ran(watch, rich.with_accounts({NOBODY: {"balance": 1}}))[0] == 1
    assert ran(watch, rich.with_accounts({NOBODY: {"balance": 9}})) == (0, [])


def test_funds_that_no_longer_suffice_are_a_change() -> None:
    base = state()
    watch = Watch(base)
    id = watch.add([call(NOBODY, value=hex(ETHER // 2))])
    watch.refresh()
    assert ran(watch, base.with_accounts({SENDER: {"balance": ETHER // 2}})) == (0, [])
    assert ran(watch, base.with_accounts({SENDER: {"balance": ETHER // 2 - 1}})) == (1, [id])
    change = watch.answer(id)
    assert change.answer is not None
    assert "insufficient funds" in str(change.answer.error)


def test_the_nonce_of_a_sender_matters_to_creations_only() -> None:
    base = state()
    watch = Watch(base)
    watch.add([call(TOKEN)])
    creation = watch.add([{"from": f"0x{SENDER.hex()}", "input": "0x00"}])
    watch.refresh()
    assert ran(watch, base.with_accounts({SENDER: {"nonce": 2}})) == (1, [creation])


def test_absence_is_a_read() -> None:
    base = state()
    watch = Watch(base)
    id = watch.add([call(NOBODY)])
    watch.refresh()
    code = {"code": CODES[CLOCK], "nonce": 1}
    assert ran(watch, base.with_accounts({NOBODY: code})) == (1, [id])
    assert ran(watch, base.without_accounts([NOBODY])) == (1, [id])


def test_the_environment_is_a_read() -> None:
    layer = state()
    watch = Watch(view_of(layer, timestamp=100, number=5))
    clock, token = watch.add(call(CLOCK)), watch.add(call(TOKEN))
    watch.refresh()
    assert output(watch.answer(clock)) == 100
    assert ran(watch, view_of(layer, timestamp=112, number=5)) == (1, [clock])
    assert ran(watch, view_of(layer, timestamp=112, number=6)) == (0, [])
    assert output(watch.answer(clock)) == 112
    assert output(watch.answer(token)) == 5


# Code before LT, GT, EQ or SLT; each compares TIMESTAMP with 110.
COMPARISONS = {
    "PUSH1 110 TIMESTAMP": "606e42",
    "TIMESTAMP PUSH1 110": "42606e",
    "PUSH1 110 TIMESTAMP SWAP1": "606e4290",
    "PUSH1 110 TIMESTAMP DUP2": "606e4281",
    "slot 1, which is 110, TIMESTAMP": "60015442",
}


def compared(code: str, op: str) -> Watch:
    """Returns a watch with a contract that returns the result of a comparison, at time 100."""
    layer = Layer.of(
        {TOKEN: {"code": bytes.fromhex(f"{code}{op}5f5260205ff3"), "storage": {1: 110}}}
    )
    watch = Watch(view_of(layer, timestamp=100, number=5))
    watch.add(call(TOKEN))
    watch.refresh()
    return watch


@pytest.mark.parametrize("code", COMPARISONS.values(), ids=COMPARISONS)
@pytest.mark.parametrize("op", ["10", "11", "12", "13", "14"])
def test_a_time_that_is_only_compared_runs_again_when_the_outcome_could_change(
    code: str, op: str
) -> None:
    watch = compared(code, op)
    view = watch._view
    assert view is not None
    outcomes = [output(watch.answer(1))]
    runs = []
    for time in (105, 109, 110, 111, 500, 100):
        moved = view_of(view.layer, timestamp=time, number=5)
        runs.append(watch.advance(moved).ran)
        fresh = Watch(moved)
        fresh.add(call(TOKEN))
        fresh.refresh()
        outcomes.append(output(fresh.answer(1)))
        assert output(watch.answer(1)) == outcomes[-1]
    assert sum(runs) < len(runs)
    assert runs[0] == runs[1] == runs[4] == 0
    assert runs[-1] == 1
    assert len(set(outcomes)) == 2


@pytest.mark.parametrize("after", ["50", "6001015f", "80", "80505f"])
def test_a_time_that_is_used_otherwise_is_a_read_of_its_value(after: str) -> None:
    layer = Layer.of({TOKEN: {"code": bytes.fromhex(f"606e42{after}")}})
    watch = Watch(view_of(layer, timestamp=100, number=5))
    watch.add(call(TOKEN))
    watch.refresh()
    assert watch.advance(view_of(layer, timestamp=101, number=5)).ran == 1


def test_each_deadline_of_many_runs_once() -> None:
    code = bytes.fromhex("5f35421160205200")  # calldata TIMESTAMP GT
    layer = Layer.of({TOKEN: {"code": code}})
    watch = Watch(view_of(layer, timestamp=100, number=5))
    deadlines = (150, 110, 190, 110, 130)
    watch.add_many([call(TOKEN, input=f"0x{deadline:064x}") for deadline in deadlines])
    watch.refresh()
    ran = []
    for time in (105, 115, 125, 135, 155, 170, 200, 140):
        ran.append(watch.advance(view_of(layer, timestamp=time, number=5)).ran)
    assert ran == [0, 2, 0, 1, 1, 0, 1, 2]


@pytest.mark.parametrize(("member", "field"), [("43", "number"), ("48", "base_fee")])
def test_numbers_and_base_fees_are_compared_likewise(member: str, field: str) -> None:
    layer = Layer.of({TOKEN: {"code": bytes.fromhex(f"606e{member}105f5260205ff3")}})
    watch = Watch(view_of(layer, **{"timestamp": 100, "number": 5, field: 100}))
    watch.add(call(TOKEN))
    watch.refresh()
    assert output(watch.answer(1)) == 1
    runs = []
    for value in (105, 109, 110, 2**70 if field == "base_fee" else 2**40, 7):
        moved = view_of(layer, **{"timestamp": 100, "number": 5, field: value})
        runs.append(watch.advance(moved).ran)
        assert output(watch.answer(1)) == int(value < 110)
    assert runs == [0, 0, 1, 0, 1]


@pytest.mark.parametrize("op", ["10", "11", "12", "13", "14"])
@pytest.mark.parametrize("limit", [2**63, 2**64 - 1, 2**64, 2**70, 2**255, 2**256 - 1])
def test_large_limits_and_base_fees_are_compared_as_the_op_does(op: str, limit: int) -> None:
    layer = Layer.of({TOKEN: {"code": bytes.fromhex(f"7f{limit:064x}48{op}5f5260205ff3")}})
    watch = Watch(view_of(layer, timestamp=100, number=5, base_fee=7))
    watch.add(call(TOKEN))
    watch.refresh()
    for value in (2**63, 2**64 - 2, 2**64 - 1, 2**64, 2**70, 2**255, 2**256 - 1, 2**70, 0):
        moved = view_of(layer, timestamp=100, number=5, base_fee=value)
        watch.advance(moved)
        fresh = Watch(moved)
        fresh.add(call(TOKEN))
        fresh.refresh()
        assert output(watch.answer(1)) == output(fresh.answer(1))


def test_a_deadline_that_passed_while_the_watch_was_pickled_runs_again() -> None:
    watch = compared("606e42", "10")  # TIMESTAMP < 110
    assert watch._view is not None
    layer = watch._view.layer
    assert output(watch.answer(1)) == 1
    copy = pickle.loads(pickle.dumps(watch))
    assert copy.advance(view_of(layer, timestamp=109, number=5)).ran == 0
    copy = pickle.loads(pickle.dumps(copy))
    assert copy.advance(view_of(layer, timestamp=110, number=5)).ran == 1
    assert output(copy.answer(1)) == 0


def test_questions_run_in_their_own_or_the_next_block() -> None:
    view = view_of(state(), timestamp=100, number=5)
    watch = Watch(view)
    own, following = watch.add(call(CLOCK)), watch.add(call(CLOCK), block="next")
    watch.refresh()
    assert output(watch.answer(own)) == 100
    assert output(watch.answer(following)) == 112


def test_answers_are_those_of_simulate_many() -> None:
    base = state()
    watch = Watch(base, balances=True, threads=2)
    bundles = [[call(TOKEN), call(NOBODY, value="0x5")], [call(CLOCK)], [call(TOKEN, gas="0x1")]]
    ids = watch.add_many(bundles)
    watch.refresh()
    full = list(simulate_many(base, bundles, balances=True))
    for id, result in zip(ids, full, strict=True):
        answer = watch.answer(id).answer
        assert answer is not None
        assert answer.calls == result.calls
        assert answer.balance_changes == result.balance_changes
        assert str(answer.error) == str(result.error)


def test_payloads_of_several_blocks_have_answers() -> None:
    base = state()
    watch = Watch(base)
    id = watch.add({"blockStateCalls": [{"calls": [call(TOKEN)]}, {"calls": [call(TOKEN)]}]})
    assert [change.id for change in watch.refresh()] == [id]
    assert ran(watch, base.with_accounts({TOKEN: {"storage": {0: 9}}})) == (1, [id])
    assert output(watch.answer(id)) == 9


def test_what_cannot_be_read_is_an_answer_with_an_error() -> None:
    watch = Watch(state())
    wrong = watch.add([{"to": "0x1"}])
    chain = watch.add({"blockStateCalls": [{}, {}]}, block="own")
    changes = watch.refresh()
    errors = {change.id: change.answer and str(change.answer.error) for change in changes}
    assert "address" in str(errors[wrong])
    assert 'block="next"' in str(errors[chain])
    assert changes[0].differs == {"new"}


@pytest.mark.parametrize("question", [7, None, "0x", b""])
def test_what_is_no_question_is_refused(question: object) -> None:
    watch = Watch(state())
    with pytest.raises(TypeError, match="a question is"):
        watch.add(question)
    with pytest.raises(ValueError, match='"own" or "next"'):
        watch.add(call(TOKEN), block="last")  # type: ignore[arg-type]
    assert len(watch) == 0


def test_there_is_a_limit_of_questions() -> None:
    watch = Watch(max_questions=2)
    with pytest.raises(ResourceLimitError, match="2 questions"):
        watch.add_many([call(TOKEN)] * 3)
    assert len(watch) == 0


def test_removed_questions_are_forgotten() -> None:
    base = state()
    watch = Watch(base)
    ids = watch.add_many([[call(TOKEN)]] * 40)
    watch.refresh()
    watch.remove([*ids[:39], 12345])
    assert len(watch) == 1
    assert ids[39] in watch
    assert ids[0] not in watch
    assert ran(watch, base.with_accounts({TOKEN: {"storage": {0: 6}}})) == (1, [ids[39]])
    watch.remove(ids[39:])
    assert watch.counters.keys == watch.counters.reads == 0
    with pytest.raises(KeyError):
        watch.answer(ids[39])


def test_a_missed_budget_leaves_stale_answers_with_their_base() -> None:
    base = state()
    watch = Watch(base)
    id = watch.add([call(TOKEN)])
    watch.refresh()
    first = watch.base
    changed = base.with_accounts({TOKEN: {"storage": {0: 6}}})
    changes = watch.advance(changed, budget=0.0, slice_index=3)
    assert [(change.id, change.stale, change.base) for change in changes] == [(id, True, first)]
    assert output(changes[0]) == 5
    assert watch.answer(id).stale
    assert watch.advance(changed, budget=0.0) == []  # the change was already reported
    fresh = watch.refresh()
    assert [(change.id, change.stale, change.base) for change in fresh] == [(id, False, watch.base)]
    assert output(watch.answer(id)) == 6
    assert watch.counters.late == 1


def test_a_stale_answer_that_holds_again_is_sent_without_differences() -> None:
    base = state()
    watch = Watch(base)
    watch.add([call(TOKEN)])
    watch.refresh()
    watch.advance(base.with_accounts({TOKEN: {"storage": {0: 6}}}), budget=0.0)
    changes = watch.advance(base)
    assert [(change.stale, change.differs) for change in changes] == [(False, frozenset())]


def test_the_higher_priority_runs_first() -> None:
    watch = Watch(state())
    low, high = watch.add([call(TOKEN)]), watch.add([call(TOKEN)], priority=5)
    middle = watch.add([call(TOKEN)])
    watch.set_priority(middle, 2)
    assert [change.id for change in watch.refresh()] == [high, middle, low]


def test_changes_say_what_differs() -> None:
    base = state()
    watch = Watch(base)
    id = watch.add([call(TOKEN)])
    assert watch.refresh()[0].differs == {"new"}
    changes = watch.advance(base.with_accounts({TOKEN: {"storage": {0: 6}}}))
    assert changes[0].differs == {"output"}
    changes = watch.advance(base.with_accounts({TOKEN: {"code": b"\xfe"}}))
    assert changes[0].differs == {"output", "status", "gas"}
    assert changes[0].id == id


def test_a_pickled_watch_runs_only_what_differs() -> None:
    base = state()
    watch = Watch(base, balances=True)
    token, other = watch.add([call(TOKEN)]), watch.add(call(READER))
    watch.refresh()
    restored = pickle.loads(pickle.dumps(watch))
    assert output(restored.answer(token)) == 5
    with pytest.raises(RuntimeError, match="no base"):
        restored.refresh()
    assert ran(restored, state()) == (0, [])
    restored = pickle.loads(pickle.dumps(restored))
    assert ran(restored, state({NOBODY: {"balance": 4}})) == (1, [other])
    assert restored.add([call(TOKEN)]) > other


def test_a_view_has_a_decoded_value() -> None:
    watch = Watch(state())
    id = watch.add(View(TOKEN, "total() view returns (uint256)"))
    failing = watch.add(View(TOKEN, "total() view returns (uint256)"))
    watch.remove([failing])
    assert [change.value for change in watch.refresh()] == [5]
    assert pickle.loads(pickle.dumps(watch)).answer(id).value == 5


def test_a_call_request_is_a_question() -> None:
    watch = Watch(state())
    id = watch.add(CallRequest(sender=SENDER, to=TOKEN))
    watch.refresh()
    assert output(watch.answer(id)) == 5


def test_a_fork_with_other_rules_runs_everything_again() -> None:
    layer = state()
    watch = Watch(view_of(layer, fork="cancun"))
    watch.add_many([[call(TOKEN)], call(TOKEN)])
    watch.refresh()
    assert ran(watch, view_of(layer, fork="prague"))[0] == 2


def test_columns_hold_all_answers() -> None:
    watch = Watch(state())
    ids = watch.add_many([call(TOKEN), [call(TOKEN, gas="0x5209")]])
    waiting = watch.columns()
    assert list(waiting.status) == [0, 0]
    watch.refresh()
    columns = watch.columns()
    assert [int(id) for id in columns.id] == ids
    assert [int(status) for status in columns.status] == [1, 3]
    assert columns.rows()["output"] == [(5).to_bytes(32, "big"), b""]
    assert columns.table().rows == len(columns) == 2


def test_questions_may_come_and_go_while_others_run() -> None:
    base = state()
    watch = Watch(base, threads=3)
    watch.add_many([[call(TOKEN)]] * 300)
    watch.refresh()
    stop = threading.Event()
    failures: list[BaseException] = []

    def churn() -> None:
        try:
            while not stop.is_set():
                ids = watch.add_many([[call(READER)]] * 20)
                watch.columns(ids[:2])
                watch.remove(ids)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for value in range(30):
            watch.advance(base.with_accounts({TOKEN: {"storage": {0: value}}}))
    finally:
        stop.set()
        thread.join()
    assert failures == []
    watch.refresh()
    assert {output(change) for change in watch.snapshot()[1]} == {29}


def test_a_closed_watch_runs_nothing() -> None:
    with Watch(state()) as watch:
        watch.add([call(TOKEN)])
    with pytest.raises(RuntimeError, match="closed"):
        watch.refresh()
