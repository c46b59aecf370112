"""Tests the comparison of state-test runners: samples, counts and omitted tests."""

import random
from types import SimpleNamespace

from fastevm.bench.statetests import Comparison, cases_of, in_turn, median, reduced
from tests.unit.conformance.made import counting, state_test

GAS = 43_106


def made():
    """Provides two tests of one case each. The second test expects a wrong root."""
    wrong = state_test("London", *counting(GAS, 0))
    return {"right": state_test("Berlin", *counting(GAS, GAS)), "wrong": wrong}


class Peer:
    """A fake of py-evm's worker."""

    version = "7"

    def __init__(self, refused=()):
        self.refused = refused
        self.asked = []

    def ask(self, **request):
        self.asked.append([label[0] for label in request["cases"]])
        cases = [
            ["with another root" if title in self.refused else "", 1.0, 2.0]
            for title, _, _ in request["cases"]
        ]
        return {"reading": 0.5, "cases": cases}


def test_each_list_gives_in_turn_until_there_are_enough():
    lists = [["a"] * 5, ["b"] * 5, ["c"]]
    assert sorted(in_turn(lists, 7, random.Random(1))) == ["a", "a", "a", "b", "b", "b", "c"]
    assert len(list(in_turn([["a"], ["b"]], 7, random.Random(1)))) == 2


def test_a_file_is_reduced_to_some_of_its_cases():
    tests = made() | {"other": state_test("Osaka", *counting(GAS, GAS))}
    tests["right"]["post"]["Berlin"] *= 3
    assert cases_of(tests) == [
        ("right", "Berlin", 0), ("right", "Berlin", 1), ("right", "Berlin", 2),
        ("wrong", "London", 0),
    ]  # fmt: skip
    small = reduced(tests, [("right", "Berlin", 1)])
    assert cases_of(small) == [("right", "Berlin", 0)]
    assert small["right"]["env"] == tests["right"]["env"]


def test_what_the_peer_gets_wrong_is_left_out_on_both_sides():
    peer = Peer(refused=("wrong",))
    comparison = Comparison(peer, 1.0, 3)
    comparison.add("suite", "a/dir/file.json", made())
    assert peer.asked == [["right", "wrong"], ["right"], ["right"]]
    assert not comparison.failures
    total = comparison.total()
    assert (total.cases, total.py_evm, total.alone) == (1, 3.5, 2.0)
    assert 0 < total.fastevm < 1
    assert "1 with another root" in comparison.table()
    assert list(comparison.by_directory) == ["suite/dir"]


def test_what_fastevm_fails_is_reported_and_not_timed():
    comparison = Comparison(Peer(), 1.0, 3)
    comparison.add("suite", "a/dir/file.json", made())
    assert len(comparison.failures) == 1
    assert not comparison.by_directory


def test_the_median_is_of_each_side_alone():
    rounds = [
        SimpleNamespace(cases=2, fastevm=f, py_evm=p, alone=a)
        for f, p, a in ((1, 30, 3), (2, 10, 2), (3, 20, 1))
    ]
    found = median(rounds)
    assert (found.cases, found.fastevm, found.py_evm, found.alone) == (2, 2, 20, 2)
