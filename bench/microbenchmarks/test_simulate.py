"""Times calls, gas estimates and simulated blocks on a state with a token (pytest-benchmark)."""

import pytest

from fastevm import Layer
from fastevm.bench.programs.loops import (
    CALLER,
    FUNDS,
    HELPER,
    PROGRAM,
    TOKEN,
    balance_slot,
    transfer,
)
from fastevm.simulate import (
    AccountOverride,
    BlockStateCalls,
    CallRequest,
    SimulateOptions,
    SimulatePayload,
    call,
    estimate_gas,
    simulate_v1,
)
from fastevm.simulate.views import view_of

TRANSFER = CallRequest(sender=CALLER, to=PROGRAM, data=transfer(HELPER, 5))


@pytest.fixture(scope="module")
def view():
    token = {"nonce": 1, "code": TOKEN, "storage": {balance_slot(CALLER): 10**18}}
    return view_of(Layer.of({CALLER: {"balance": FUNDS}, PROGRAM: token}))


def test_a_call(benchmark, view):
    assert benchmark(call, view, TRANSFER).success


def test_a_call_with_overrides(benchmark, view):
    overrides = {PROGRAM: AccountOverride(state_diff={7: 8}), HELPER: AccountOverride(balance=9)}
    assert benchmark(call, view, TRANSFER, state_overrides=overrides).success


def test_a_gas_estimate(benchmark, view):
    assert 30_000 < benchmark(estimate_gas, view, TRANSFER) < 60_000


@pytest.mark.parametrize(("blocks", "calls"), [(1, 1), (10, 20)])
def test_a_simulated_chain(benchmark, view, blocks, calls):
    payload = SimulatePayload(blocks=(BlockStateCalls(calls=(TRANSFER,) * calls),) * blocks)
    options = SimulateOptions(zero_state_root=False, block_spacing=1)
    found = benchmark(simulate_v1, view, payload, options)
    assert [len(block.calls) for block in found] == [calls] * blocks
