"""Checks gas and output of every case of the shared file, then times it (pytest-benchmark)."""

import pytest

from fastevm.bench.engines.evms import call_for, outcome_of
from fastevm.bench.options import DEFAULT_CASES
from fastevm.bench.programs.cases import load

CASES = load(DEFAULT_CASES) if DEFAULT_CASES.exists() else []


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(benchmark, case):
    benchmark.group = case.group
    call = call_for(case)
    assert outcome_of(call()).difference(case.expected(slow=False)) == ""
    benchmark(call)
