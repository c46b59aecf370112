"""Tests that calls to Base's tokens on remote state fetch their slots in few round trips."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fastevm import EVM
from fastevm.core.state.source import RemoteAccount
from fastevm.fork.native_reads import is_token, predicted_reads
from fastevm.testing.native_calls import POLICY_REGISTRY
from tests.unit.core.native.base.support import (
    ALICE,
    ALLOWLIST_7,
    BOB,
    CAROL,
    MEMO,
    POLICIES,
    TOKEN,
    Tokens,
    call_data,
    slot,
)

from .fake_endpoint import FakeEndpoint


def served(token: Tokens) -> FakeEndpoint:
    """Returns an endpoint with the state of a token."""
    fake = FakeEndpoint()
    state = token.evm.state
    for address in state.addresses():
        fake.accounts[address] = RemoteAccount(
            state.balance(address), state.nonce(address), state.code(address)
        )
        for key, value in state.storage_items(address).items():
            fake.slots[address, key] = value
    return fake


@pytest.fixture
def token() -> Tokens:
    made = Tokens("denim", timestamp=1)
    made.fund(ALICE, 100)
    return made


@pytest.fixture
def endpoint(token: Tokens) -> Iterator[FakeEndpoint]:
    fake = served(token)
    yield fake
    fake.close()


def trips(endpoint: FakeEndpoint, token: Tokens, data: bytes, sender: bytes = ALICE) -> int:
    """Makes a call on a new fork. Asserts its result, and returns its number of round trips."""
    evm = EVM.fork(endpoint.url, cache=False, hardfork="denim")
    endpoint.forget()
    found = evm.call(token.token, data, sender=sender)
    expected = token.evm.call(token.token, data, sender=sender)
    assert (found.success, found.output, found.gas_used) == (
        expected.success, expected.output, expected.gas_used,
    )  # fmt: skip
    return len(endpoint.bodies)


@pytest.mark.parametrize(
    "data",
    [
        call_data("balanceOf(address)", ALICE),
        call_data("transfer(address,uint256)", BOB, 5),
        call_data("transferWithMemo(address,uint256,bytes32)", BOB, 5, MEMO),
        call_data("approve(address,uint256)", BOB, 7),
    ],
)
def test_a_call_takes_one_round_trip(endpoint: FakeEndpoint, token: Tokens, data: bytes) -> None:
    assert trips(endpoint, token, data) == 1


def test_a_transfer_of_an_allowance_takes_one_round_trip(token: Tokens) -> None:
    token.do("approve(address,uint256)", CAROL, 50, sender=ALICE)
    endpoint = served(token)
    data = call_data("transferFrom(address,address,uint256)", ALICE, BOB, 5)
    assert trips(endpoint, token, data, sender=CAROL) == 1
    endpoint.close()


def test_policies_take_a_second_round_trip(token: Tokens) -> None:
    token.seed(TOKEN + 9, ALLOWLIST_7)
    exists = (1 << 255) | int.from_bytes(BOB, "big")
    token.evm.set_storage(POLICY_REGISTRY, slot(POLICIES, ALLOWLIST_7), exists)
    token.authorize(ALLOWLIST_7, ALICE)
    endpoint = served(token)
    assert trips(endpoint, token, call_data("transfer(address,uint256)", BOB, 5)) <= 3
    endpoint.close()


def test_only_tokens_have_predictions(token: Tokens) -> None:
    assert is_token(token.token)
    other = token.token[:10] + b"\x02" + token.token[11:]
    for address in (b"", ALICE, other, token.token[:-1]):
        assert not is_token(address)
        assert predicted_reads([{"to": "0x" + address.hex()}]) == (set(), set())
    assert predicted_reads([{"to": "0xzz"}, {"to": 7}, {}]) == (set(), set())


def test_predictions_are_bounded(token: Tokens) -> None:
    data = call_data("transfer(address,uint256)", BOB, 5)[:4] + (bytes(12) + ALICE) * 10_000
    call = {"to": "0x" + token.token.hex(), "data": "0x" + data.hex()}
    accounts, slots = predicted_reads([call] * 10_000)
    assert len(accounts) == 3
    assert len(slots) < 40
