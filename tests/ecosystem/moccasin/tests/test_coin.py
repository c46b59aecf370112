"""Tests a moccasin project with snekmate contracts, as a user would."""

from typing import Any

import boa
from hypothesis import given, settings
from hypothesis import strategies as st

SUPPLY = 10**24
ANY = st.integers(0, 2**256 - 1)


def test_coins_move_and_no_more_than_there_are(coin: Any) -> None:
    alice, bob = boa.env.generate_address(), boa.env.generate_address()
    coin.transfer(alice, 5)
    with boa.env.prank(alice):
        coin.approve(bob, 3)
        with boa.reverts():
            coin.transfer(bob, 6)
    with boa.env.prank(bob):
        coin.transferFrom(alice, bob, 3)
        with boa.reverts():
            coin.transferFrom(alice, bob, 1)
    assert (coin.balanceOf(alice), coin.balanceOf(bob)) == (2, 3)
    assert coin.totalSupply() == SUPPLY


def test_transfers_are_reported(coin: Any) -> None:
    alice = boa.env.generate_address()
    coin.transfer(alice, 7)
    (event,) = coin.get_logs()
    assert (event.receiver, event.value) == (alice, 7)


def test_only_the_owner_mints(coin: Any) -> None:
    alice = boa.env.generate_address()
    with boa.env.prank(alice), boa.reverts("erc20: access is denied"):
        coin.mint(alice, 1)
    coin.mint(alice, 1)
    assert coin.balanceOf(alice) == 1


def test_an_anchor_takes_a_deposit_back(coin: Any, vault: Any) -> None:
    owner = boa.env.eoa
    coin.approve(vault, 1_000)
    with boa.env.anchor():
        assert vault.deposit(1_000, owner) == 1_000
        coin.transfer(vault, 500)  # a donation, after which a share is worth 1.5 times as much
        assert vault.convertToAssets(1_000) == 1_499
    assert (vault.totalSupply(), vault.totalAssets()) == (0, 0)


def test_time_moves_on_request(coin: Any) -> None:
    before = boa.env.timestamp
    boa.env.time_travel(seconds=60)
    assert boa.env.timestamp == before + 60
    assert coin.nonces(boa.env.eoa) == 0


@settings(deadline=None)
@given(x=ANY, y=ANY, denominator=st.integers(1, 2**256 - 1))
def test_products_are_divided_in_full(numbers: Any, x: int, y: int, denominator: int) -> None:
    if (expected := x * y // denominator) < 2**256:
        assert numbers.mul_div(x, y, denominator) == expected
    else:
        with boa.reverts():
            numbers.mul_div(x, y, denominator)


@settings(deadline=None)
@given(x=st.integers(1, 2**256 - 1))
def test_logarithms_are_floors(numbers: Any, x: int) -> None:
    assert numbers.log2(x) == x.bit_length() - 1
