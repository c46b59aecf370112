"""Estimates of transfers, whose price follows from the recipient since Amsterdam (EIP-2780)."""

import pytest

from fastevm.core.state.layer import Layer
from fastevm.simulate import CallRequest, estimate_gas
from fastevm.simulate.views import view_of

SENDER, OTHER, FRESH = b"\xa1" * 20, b"\xb0" * 20, b"\xf0" * 20
STATE = Layer.of({SENDER: {"balance": 10**20}, OTHER: {"balance": 1}})
NEW_ACCOUNT = 183_600


@pytest.mark.parametrize(
    ("fork", "to", "value", "gas"),
    [
        ("osaka", FRESH, 1, 21_000),
        ("osaka", SENDER, 1, 21_000),
        ("amsterdam-2026-04", FRESH, 1, 21_000),
        ("amsterdam", OTHER, 1, 21_000),
        ("amsterdam", OTHER, 0, 15_000),
        ("amsterdam", FRESH, 0, 15_000),
        ("amsterdam", FRESH, 1, 21_000 + NEW_ACCOUNT),
        ("amsterdam", SENDER, 1, 12_000),
    ],
)
def test_a_transfer_is_estimated_at_its_price(fork: str, to: bytes, value: int, gas: int) -> None:
    request = CallRequest(sender=SENDER, to=to, value=value)
    assert estimate_gas(view_of(STATE, fork=fork), request) == gas
