"""Tests the comparison of instruction counts with a baseline."""

import pytest

from fastevm.bench import guard
from fastevm.bench.programs.loops import GUARDED


def test_the_baseline_knows_every_guarded_program():
    assert set(guard.read_baseline()) == {program.name for program in GUARDED}


def test_growth_beyond_the_tolerance_is_a_fault():
    assert guard.compare({"a": 1000, "b": 1000}, {"a": 1049, "b": 1051}) == [
        "b: 1051 instructions, +5.1%"
    ]


def test_an_unknown_program_is_a_fault():
    assert guard.compare({}, {"new": 1}) == ["new: not in the baseline"]


def test_a_dear_slot_of_a_fork_is_a_fault_whatever_the_baseline_says():
    counts = {"slots": 1000, "slots of a fork": 1101}
    assert guard.compare(counts, counts) == [
        "slots of a fork: 1.10 times the instructions of slots"
    ]
    assert guard.dearer({"slots": 1000, "slots of a fork": 1100}) == []


def test_without_valgrind_it_says_why_it_is_skipped(monkeypatch, capsys):
    monkeypatch.setattr(guard, "check_comparable", lambda: None)
    monkeypatch.setattr(guard.shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["guard"])
    assert guard.main() == 0
    assert "valgrind is not installed" in capsys.readouterr().out


def test_a_baseline_of_other_tools_is_no_measure(monkeypatch):
    monkeypatch.setattr(guard, "tools", lambda: {"python": "2.7"})
    with pytest.raises(guard.Unavailable, match=r"2\.7"):
        guard.check_comparable()


@pytest.mark.slow
def test_no_program_needs_more_instructions_than_the_baseline_allows():
    try:
        guard.check_comparable()
        found = guard.count()
    except guard.Unavailable as reason:
        pytest.skip(str(reason))
    assert guard.compare(guard.read_baseline(), found) == []
