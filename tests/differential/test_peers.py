"""Tests that random programs have equal results on fastevm and on other implementations.

Compares status, gas used, output and logs of each transaction, every account, and the state root if
the peer has one. For more programs run `make fuzz`.
"""

from collections.abc import Callable
from functools import cache

import pytest

from .cases import Case, make_case
from .judge import KNOWN, Verdict, judge_all
from .peers import Peer

FIRST_SEED = 1_000_000
CASES = {"eels": 60, "py-evm": 10, "pyrevm": 1500}
FORKS = [(name, fork) for name in CASES for fork in KNOWN[name]]


@cache
def cases_of(name: str, fork: str) -> list[Case]:
    return [make_case(FIRST_SEED + number, fork) for number in range(CASES[name])]


@pytest.mark.parametrize(("name", "fork"), FORKS)
def test_programs_do_the_same(peer: Callable[[str], Peer], name: str, fork: str) -> None:
    verdicts = list(judge_all(peer(name), cases_of(name, fork)))
    differing = [shown(verdict) for verdict in verdicts if verdict.difference]
    assert not differing, "\n\n".join(differing)
    compared = sum(not verdict.unsupported for verdict in verdicts)
    assert compared > len(verdicts) // 2


def shown(verdict: Verdict) -> str:
    return f"{verdict.difference}\n{verdict.case.dumps()}"


def test_enough_programs_are_compared_with_the_executable_specification() -> None:
    cases = [case for fork in KNOWN["eels"] for case in cases_of("eels", fork)]
    assert sum(case.programs for case in cases) > 3000
