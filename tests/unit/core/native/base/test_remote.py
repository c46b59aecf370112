"""Tests native contracts on remote state."""

from __future__ import annotations

import pytest

from fastevm.core.state.layer import Layer
from fastevm.testing.native_calls import FACTORY, POLICY_REGISTRY
from tests.unit.core.state.remote_source import LayerSource

from .support import (
    ALICE,
    ALLOWLIST_7,
    BOB,
    MEMO,
    POLICIES,
    TOKEN,
    VERSIONS,
    Tokens,
    asset_params,
    call_data,
    create_data,
    slot,
)

CALLER = b"\xcc" * 20
CALLS = (
    ("transferWithMemo(address,uint256,bytes32)", BOB, 5, MEMO),
    ("approve(address,uint256)", BOB, 7),
    ("transfer(address,uint256)", BOB, 10**9),
    ("name()",),
)


def prepared(fork: str) -> Tokens:
    """Returns a token in memory with an allowlist of senders as its policy."""
    token = Tokens(fork, timestamp=1)
    token.fund(ALICE, 100)
    token.seed(TOKEN + 9, ALLOWLIST_7)
    exists = (1 << 255) | int.from_bytes(BOB, "big")
    token.evm.set_storage(POLICY_REGISTRY, slot(POLICIES, ALLOWLIST_7), exists)
    token.authorize(ALLOWLIST_7, ALICE)
    return token


@pytest.mark.parametrize("fork", VERSIONS)
def test_a_remote_state_gives_the_results_of_one_in_memory(fork: str) -> None:
    here, remote = prepared(fork), prepared(fork)
    source = LayerSource(here.evm.state)
    remote.evm.state = Layer.remote(source)
    for signature, *values in CALLS:
        data = call_data(signature, *values)
        expected = here.call(here.token, data, sender=ALICE)
        assert remote.call(here.token, data, sender=ALICE) == expected
    for key in here.evm.state.storage_items(here.token):
        assert remote.evm.state.storage(here.token, key) == here.evm.state.storage(here.token, key)
    assert source.asked


@pytest.mark.parametrize("fork", VERSIONS)
def test_a_token_is_created_on_a_remote_state(fork: str) -> None:
    here, remote = prepared(fork), prepared(fork)
    remote.evm.state = Layer.remote(LayerSource(here.evm.state))
    calls = [call_data("updateContractURI(string)", "ipfs://" + "x" * 60)]
    data = create_data(0, asset_params(name="N" * 40), calls, salt=b"\x77" * 32)
    expected = here.call(FACTORY, data, sender=CALLER)
    assert expected.status == "success"
    assert remote.call(FACTORY, data, sender=CALLER) == expected
    token = expected.output[-20:]
    for key, value in here.evm.state.storage_items(token).items():
        assert remote.evm.state.storage(token, key) == value


def test_a_call_from_code_waits_for_the_slots_of_a_token() -> None:
    here, remote = prepared("denim"), prepared("denim")
    data = call_data("transfer(address,uint256)", BOB, 3)
    here.fund(CALLER, 10)
    here.authorize(ALLOWLIST_7, CALLER)
    copy, call = bytes.fromhex("365f5f37"), bytes.fromhex("5f5f365f5f73")
    code = copy + call + here.token + bytes.fromhex("5af15f5500")
    here.evm.set_code(CALLER, code)
    remote.evm.state = Layer.remote(LayerSource(here.evm.state))
    expected = here.call(CALLER, data)
    assert remote.call(CALLER, data) == expected
    assert remote.evm.state.storage(CALLER, 0) == 1
    assert remote.evm.state.storage(here.token, slot(TOKEN + 4, BOB)) == 3
