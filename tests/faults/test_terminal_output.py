"""Tests that the terminal output for one transaction is limited."""

import pytest

from fastevm.rpc.terminal.rerun_budget import BURST, SHARE, RerunBudget
from tests.unit.rpc.terminal.test_terminal import LOGGING, REVERTING, Harness, data_of

LONG = 9_000  # characters


@pytest.mark.parametrize("as_json", [False, True])
def test_long_texts_of_contracts_are_cut(as_json: bool) -> None:
    harness = Harness(traces=True, as_json=as_json)
    harness.send(REVERTING, data_of("Error(string)", "x" * LONG))
    reported = harness.reported()
    assert "more characters)" in reported and len(reported) < 8_000


def test_line_feeds_of_the_console_begin_few_lines() -> None:
    harness = Harness()
    harness.send(LOGGING, data_of("log(string)", "\n" * 3_000))
    reported = harness.reported()
    assert reported.count("\n") < 70 and "\\x0a" in reported


def test_what_is_executed_again_has_a_share_of_the_time() -> None:
    now = [0.0]
    budget = RerunBudget(lambda: now[0])
    assert not budget.is_spent
    with budget.charge():
        now[0] += 2 * BURST
    assert budget.is_spent
    now[0] += (BURST + 0.1) / SHARE
    assert not budget.is_spent


def test_a_transaction_beyond_the_budget_is_reported_without_its_calls() -> None:
    harness = Harness(traces=True)
    recorder = harness.terminal._recorder()
    with recorder.budget.charge():
        recorder.budget._left = -1_000.0
    harness.send(LOGGING, data_of("log(string)", "text"))
    reported = harness.reported()
    assert "too much was executed again" in reported
    assert "text" not in reported
