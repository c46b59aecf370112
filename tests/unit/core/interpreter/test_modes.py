"""Tests that suspending, fetching state and tracing do not change the outcome."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.interpreter.tracer import StepTrace
from fastevm.testing.interpreter import BareMachine, Outcome

from .programs import ADDRESSES, CONTRACTS, MAIN, OTHER, THIRD

FORKS = (
    "frontier", "tangerinewhistle", "spuriousdragon", "byzantium", "constantinople", "istanbul",
    "berlin", "london", "shanghai", "cancun", "prague", "osaka",
)  # fmt: skip
GAS = 400_000


def accounts_of(codes: tuple[bytes, bytes, bytes]) -> dict[bytes, dict[str, Any]]:
    return {
        address: {"balance": 1000, "nonce": 1, "code": code, "storage": {0: 7, 1: 1, 32: 5}}
        for address, code in zip((MAIN, OTHER, THIRD), codes, strict=True)
    }


def run(
    fork: str, accounts: Mapping[bytes, Any], trace: StepTrace | None = None, **mode: bool
) -> tuple[Outcome, tuple[Any, ...], list[dict[str, Any]]]:
    machine = BareMachine(fork, accounts, number=500, **mode)
    records: list[dict[str, Any]] = []
    outcome = machine.call(MAIN, bytes(range(70)), value=0, gas=GAS, trace=trace, records=records)
    state = tuple(
        (machine.account(address), *(machine.storage(address, key) for key in (0, 1, 2, 32, 255)))
        for address in ADDRESSES
    )
    return outcome, state, records


def visible(outcome: Outcome) -> tuple[Any, ...]:
    """Returns the members of an outcome that do not depend on the mode."""
    return (
        outcome.status, outcome.gas_left, outcome.output, outcome.refund, outcome.logs,
    )  # fmt: skip


@settings(max_examples=250)
@given(codes=st.tuples(CONTRACTS, CONTRACTS, CONTRACTS), fork=st.sampled_from(FORKS))
def test_a_run_ends_the_same_in_every_mode(codes: tuple[bytes, bytes, bytes], fork: str) -> None:
    accounts = accounts_of(codes)
    expected, expected_state, _ = run(fork, accounts)
    suspended, state, _ = run(fork, accounts, suspend=True)
    assert (visible(suspended), state) == (visible(expected), expected_state)
    remote, state, _ = run(fork, accounts, remote=True)
    assert (visible(remote), state) == (visible(expected), expected_state)
    both, state, _ = run(fork, accounts, remote=True, suspend=True)
    assert (visible(both), state) == (visible(expected), expected_state)
    paused, state, _ = run(fork, accounts, suspend=True, pause=True)
    assert (visible(paused), state) == (visible(expected), expected_state)
    traced, state, records = run(fork, accounts, StepTrace(calls=True, memory=True))
    assert (visible(traced), state) == (visible(expected), expected_state)
    cut, state, pieces = run(
        fork, accounts, StepTrace(calls=True, memory=True, limit=1),
        remote=True, suspend=True, pause=True,
    )  # fmt: skip
    assert (visible(cut), state) == (visible(expected), expected_state)
    assert pieces == records


@settings(max_examples=100)
@given(codes=st.tuples(CONTRACTS, CONTRACTS, CONTRACTS), fork=st.sampled_from(FORKS))
def test_steps_add_up_to_the_gas_of_their_frame(
    codes: tuple[bytes, bytes, bytes], fork: str
) -> None:
    outcome, _, records = run(fork, accounts_of(codes), StepTrace(calls=True))
    steps = [record for record in records if record["kind"] == "step" and record["depth"] == 1]
    if outcome.error in ("", "execution reverted"):
        last = steps[-1]
        assert last["gas"] - last["gas_cost"] == outcome.gas_left
    for before, after in pairwise(steps):
        assert after["gas"] >= before["gas"] - before["gas_cost"]
    enters = [record["depth"] for record in records if record["kind"] == "enter"]
    leaves = [record["depth"] for record in records if record["kind"] == "leave"]
    assert sorted(enters) == sorted(leaves)


# A loop of five rounds. Each round reads a slot, decrements the counter and jumps back.
ROUND = bytes.fromhex("6005 5b 5f5450 60019003 80")
JUMPS = {
    "JUMP": "15 6012 57 6002 56 5b 00",
    "JUMPI": "6002 57 00",
    "PUSH2 JUMP": "15 6013 57 610002 56 5b 00",
    "PUSH2 JUMPI": "610002 57 00",
    "ISZERO PUSH2 JUMPI": "15 15 610002 57 00",
}


@pytest.mark.parametrize("jump", JUMPS)
def test_a_pause_at_a_jump_changes_nothing(jump: str) -> None:
    accounts = {MAIN: {"code": ROUND + bytes.fromhex(JUMPS[jump])}}
    expected, _, steps = run("osaka", accounts, StepTrace())
    untraced, _, _ = run("osaka", accounts)
    suspended, _, _ = run("osaka", accounts, suspend=True)
    paused, _, _ = run("osaka", accounts, suspend=True, pause=True)
    traced, _, cut = run("osaka", accounts, StepTrace(), suspend=True, pause=True)
    assert expected.status == 1
    assert visible(untraced) == visible(paused) == visible(traced) == visible(expected)
    assert cut == steps
    # ``pause`` adds stops at jumps; ``suspend`` alone stops only before opcodes that may need state
    assert paused.requests > suspended.requests + 2


@pytest.mark.parametrize("fork", FORKS)
def test_a_run_of_nothing_ends_at_once(fork: str) -> None:
    outcome, _, _ = run(fork, {})
    assert (outcome.status, outcome.gas_left, outcome.requests) == (1, GAS, 0)
