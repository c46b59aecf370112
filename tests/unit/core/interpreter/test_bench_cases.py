"""Tests that each benchmark program uses the expected gas and gives the expected output.

The expected values come from five other EVMs, which agree.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from fastevm.bench.options import DEFAULT_CASES
from fastevm.bench.programs.cases import read
from fastevm.conformance.fields import accounts_of, address_of, bytes_of
from fastevm.testing.interpreter import BareMachine

OUTPUT_CUT = 256
STOPPED = 1


@cache
def data() -> dict[str, Any]:
    return read(DEFAULT_CASES)


def machine_of(case: Mapping[str, Any]) -> BareMachine:
    env = data()["env"]
    block = {name: env[name] for name in ("number", "timestamp", "gas_limit", "chain_id")}
    return BareMachine(env["fork"], accounts_of(case["pre"]), **block)


def check(case: Mapping[str, Any], calldata: str, gas: int, expected: Mapping[str, Any]) -> None:
    outcome = machine_of(case).call(
        address_of(case["to"]), bytes_of(calldata), sender=address_of(case["caller"]), gas=gas
    )
    assert (outcome.status == STOPPED) == expected["success"], outcome.error
    assert gas - outcome.gas_left == expected["gas_used"]
    assert outcome.output[:OUTPUT_CUT] == bytes_of(expected["output"])[:OUTPUT_CUT]


def test_there_are_cases() -> None:
    assert len(data()["cases"]) == 87


@pytest.mark.parametrize("case", data()["cases"], ids=lambda case: case["name"])
def test_a_program_uses_the_gas_and_gives_the_output_expected(case: Mapping[str, Any]) -> None:
    expected = {
        "success": case["expected_success"],
        "gas_used": case["expected_gas_used"],
        "output": case["expected_output"],
    }
    check(case, case["calldata"], case["gas"], expected)


@pytest.mark.parametrize("case", data()["cases"], ids=lambda case: case["name"])
def test_a_short_run_of_it_or_one_that_runs_out_of_gas_too(case: Mapping[str, Any]) -> None:
    check(case, case["calldata_slow"], case["gas_slow"], case["expected_slow"])
