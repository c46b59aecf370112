"""Tests estimates of transfers: the fast path makes the same checks as the binary search."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from fastevm.core.execution.transaction.transaction_fields import AccessListEntry, Authorization
from fastevm.core.simulation.values import NO_BLOCK_OVERRIDES
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.simulate import (
    AccountOverride,
    BlockOverrides,
    CallRequest,
    CallResult,
    SimulationError,
    StateOverrides,
    estimate_gas,
)
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


# --- the short cut of transfers against the search ------------------------------------------------

GWEI = 10**9
TINY, CODE, DELEGATED = b"\xbc" * 20, b"\xc0" * 20, b"\xd0" * 20
IDENTITY = bytes(19) + b"\4"
CHAIN_ID = 1
LAYER = Layer.of(
    {
        SENDER: {"balance": 10**24, "nonce": 7},
        OTHER: {"balance": 1000},
        TINY: {"balance": 21_000 * GWEI - 1},
        CODE: {"balance": 10**20, "code": b"\0"},
        DELEGATED: {"balance": 10**20, "code": b"\xef\x01\x00" + CODE},
    }
)
VIEW = view_of(LAYER, number=5, timestamp=1000, base_fee=GWEI)
# Values of each member of a call: usual ones, and those that break a rule.
MEMBERS: dict[str, list[Any]] = {
    "sender": [OTHER, TINY, CODE, DELEGATED],
    "to": [CODE, DELEGATED, None, IDENTITY, FRESH],
    "data": [b"\0"],
    "value": [1, 10**20, 2**256 - 1],
    "gas": [0, 20_000, 30_000, 2**64 - 1],
    "nonce": [0, 2**64 - 1],
    "gas_price": [0, 1, 2 * GWEI, 2**256 - 1],
    "max_fee_per_gas": [1, 2 * GWEI],
    "max_priority_fee_per_gas": [1, 3 * GWEI],
    "chain_id": [CHAIN_ID, 0, 2**256 - 1],
    "access_list": [(), (AccessListEntry(CODE, (1,)),)],
    "authorization_list": [
        (),
        (Authorization(chain_id=0, address=CODE, nonce=0, y_parity=0, r=1, s=1),),
    ],
    "blob_versioned_hashes": [(), (b"\1" * 32,), (b"\2" * 32,)],
    "max_fee_per_blob_gas": [0, GWEI],
}
CHOICES = [(name, value) for name, values in MEMBERS.items() for value in values]
PAIRS = [dict(pair) for pair in combinations(CHOICES, 2) if pair[0][0] != pair[1][0]]
CALLS = [{}, *({name: value} for name, value in CHOICES), *PAIRS]
# Account overrides, block overrides, and the node's gas cap (0: none).
Around = tuple[StateOverrides, BlockOverrides, int]
GAS_CAP = 50_000_000
AROUND: dict[str, Around] = {
    "nothing": ({}, NO_BLOCK_OVERRIDES, GAS_CAP),
    "a poor sender": ({SENDER: AccountOverride(balance=0)}, NO_BLOCK_OVERRIDES, GAS_CAP),
    "a recipient with code": ({OTHER: AccountOverride(code=b"\0")}, NO_BLOCK_OVERRIDES, GAS_CAP),
    "a recipient without code": ({CODE: AccountOverride(code=b"")}, NO_BLOCK_OVERRIDES, GAS_CAP),
    "a moved precompile": (
        {IDENTITY: AccountOverride(move_precompile_to=OTHER)},
        NO_BLOCK_OVERRIDES,
        GAS_CAP,
    ),
    "a small block": ({}, BlockOverrides(gas_limit=20_000), GAS_CAP),
    "a high base fee": ({}, BlockOverrides(base_fee_per_gas=10**12), GAS_CAP),
    "content of a block": ({}, BlockOverrides(withdrawals=()), GAS_CAP),
    "a low cap": ({}, NO_BLOCK_OVERRIDES, 10_000),
    "no cap": ({}, NO_BLOCK_OVERRIDES, 0),
}


def outcome(run: Callable[[], int | CallResult]) -> object:
    """Returns the estimate, the failed result, or the details of the error."""
    try:
        return run()
    except InvalidTransaction as error:
        return error.code, error.message, error.have, error.want
    except SimulationError as error:
        return error.reason, error.message


@pytest.mark.parametrize("around", AROUND)
def test_the_short_cut_of_transfers_refuses_what_the_search_refuses(
    around: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts, block, cap = AROUND[around]

    def estimates() -> list[object]:
        return [
            outcome(
                lambda members=members: estimate_gas(
                    VIEW,
                    CallRequest(**({"sender": SENDER, "to": OTHER} | members)),
                    state_overrides=accounts,
                    block_overrides=block,
                    gas_cap=cap,
                )
            )
            for members in CALLS
        ]

    short = estimates()
    monkeypatch.setattr("fastevm.simulate.estimate.is_transfer", lambda *_: False)
    for members, found, searched in zip(CALLS, short, estimates(), strict=True):
        if isinstance(found, int) and isinstance(searched, int):
            assert found <= searched <= found * 1.016, members
        else:
            assert found == searched, members


def test_the_calls_reach_the_short_cut_and_most_rules() -> None:
    found = [
        outcome(lambda members=members: estimate_gas(VIEW, CallRequest(**members)))
        for members in ({"sender": SENDER, "to": OTHER} | members for members in CALLS)
    ]
    assert found.count(21_000) > 100
    codes = {item[0] for item in found if isinstance(item, tuple)}
    assert len(codes) >= 10, codes
