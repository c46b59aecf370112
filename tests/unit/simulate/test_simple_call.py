"""Tests that a simple call has equal results on the fast path and on the general path."""

import random
from typing import Any

import pytest

from fastevm import Layer
from fastevm.bench.programs.assembler import assemble
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import NO_BLOCK_OVERRIDES
from fastevm.errors import InvalidTransaction
from fastevm.simulate import (
    AccountOverride,
    CallRequest,
    SimulationError,
    StateOverrides,
    StateView,
    call,
    estimate_gas,
    view_of,
)
from fastevm.simulate.calls import Attempt, SimpleAttempt, attempt_of

RICH, POOR, CODE = b"\xaa" * 20, b"\xbb" * 20, b"\xc0" * 20
# Name -> program. The programs read the call and the block, use storage, log, revert or halt.
PROGRAMS = {
    "stop": "STOP",
    "sees": "CALLER ORIGIN CALLVALUE GASPRICE BASEFEE BLOBBASEFEE NUMBER TIMESTAMP COINBASE "
    "GASLIMIT CHAINID PREVRANDAO GAS 0 MSTORE 32 MSTORE 64 MSTORE 96 MSTORE 128 MSTORE 160 MSTORE "
    "192 MSTORE 224 MSTORE 256 MSTORE 288 MSTORE 320 MSTORE 352 MSTORE 384 MSTORE 416 0 RETURN",
    "ancestors": "1 NUMBER SUB BLOCKHASH 0 MSTORE 32 0 RETURN",
    "echoes": "CALLDATASIZE 0 0 CALLDATACOPY CALLDATASIZE 0 RETURN",
    "stores": "7 1 SSTORE 0 1 SSTORE 1 0 SSTORE 32 0 LOG0",
    "reverts": "CALLDATASIZE 0 0 CALLDATACOPY CALLDATASIZE 0 REVERT",
    "halts": "INVALID",
    "underflows": "ADD",
    "nests": "0 0 0 0 0 ADDRESS GAS CALL POP",
    "pays": "0 0 0 0 5 0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb GAS CALL 0 MSTORE 32 0 RETURN",
}


def view_with(program: str) -> StateView:
    """Returns a view with the program at the account CODE."""
    layer = Layer.of(
        {
            RICH: {"balance": 10**24, "nonce": 7},
            POOR: {"balance": 1000},
            CODE: {"balance": 50, "code": assemble(PROGRAMS[program]), "storage": {1: 9}},
        }
    )
    return view_of(layer, number=5, timestamp=1000, base_fee=10**9)


def request(rng: random.Random) -> CallRequest:
    """Returns a call with random simple members."""
    made = CallRequest(
        sender=rng.choice((RICH, POOR, bytes(20))),
        to=rng.choice((CODE, CODE, CODE, POOR, None)),
        data=rng.randbytes(rng.choice((0, 4, 100))),
        value=rng.choice((0, 0, 3, 10**20)),
        gas=rng.choice((None, None, 20_000, 53_000, 1_000_000)),
        nonce=rng.choice((None, None, 0, 2**64 - 1)),
    )
    price = rng.random()
    if price < 0.2:
        made = replace(made, gas_price=rng.choice((0, 1, 2 * 10**9)))
    elif price < 0.5:
        cap, tip = rng.choice((0, 5, 3 * 10**9)), rng.choice((0, 2, 10**9))
        made = replace(made, max_fee_per_gas=cap, max_priority_fee_per_gas=tip)
    if rng.random() < 0.1:
        made = replace(made, max_fee_per_blob_gas=1)
    return made


def ending(attempt: Attempt | SimpleAttempt, gas: int) -> object:
    """Returns everything that a run reports."""
    try:
        found = attempt.run(gas, 5.0)
    except InvalidTransaction as error:
        return type(error), error.code, error.message, error.have, error.want
    names = ("success", "reverted", "output", "error", "gas_used", "max_used_gas")
    return [getattr(found, name) for name in names]


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_both_ways_end_alike(program: str) -> None:
    rng, view = random.Random(program), view_with(program)
    for _ in range(60):
        asked = request(rng)
        gas = 1_000_000 if asked.gas is None else asked.gas
        shown = rng.random() < 0.5
        short = SimpleAttempt(view, asked, shows_base_fee=shown)
        long = Attempt(view, asked, {}, NO_BLOCK_OVERRIDES, shows_base_fee=shown)
        assert ending(short, gas) == ending(long, gas), asked
        assert (short.funds(), short.gas_limit) == (long.funds(), long.gas_limit)


@pytest.mark.parametrize("overrides", [{}, {POOR: AccountOverride(balance=1)}])
def test_a_free_call_sees_the_base_fee_where_it_is_shown(overrides: StateOverrides) -> None:
    view = view_of(Layer.of({CODE: {"code": assemble("BASEFEE 0 MSTORE 32 0 RETURN")}}), base_fee=9)

    def seen(**options: Any) -> int:
        found = call(view, CallRequest(to=CODE), state_overrides=overrides, **options)
        return int.from_bytes(found.output, "big")

    assert (seen(), seen(shows_base_fee=True)) == (0, 9)


def test_only_a_simple_call_takes_the_fast_path() -> None:
    view, simple = view_with("stop"), CallRequest(to=CODE)
    assert isinstance(attempt_of(view, simple, None, None), SimpleAttempt)
    assert isinstance(attempt_of(view, replace(simple, access_list=()), None, None), Attempt)
    overrides = replace(NO_BLOCK_OVERRIDES, number=9)
    assert isinstance(attempt_of(view, simple, None, overrides), Attempt)


def test_a_thread_changes_from_view_to_view() -> None:
    asked = CallRequest(to=CODE, data=b"1234")
    echo, stop = view_with("echoes"), view_with("stop")
    outputs = [call(view, asked).output for view in (echo, stop, echo, stop)]
    assert outputs == [b"1234", b"", b"1234", b""]
    assert call(echo, asked, gas_cap=0).output == b"1234"


def test_nothing_of_a_call_is_kept() -> None:
    view = view_with("stores")
    used = {call(view, CallRequest(sender=RICH, to=CODE)).gas_used for _ in range(3)}
    assert len(used) == 1
    assert view.layer.storage(CODE, 1) == 9


@pytest.mark.parametrize("address", [b"", b"\x01" * 19, b"\x01" * 21])
def test_an_address_of_another_length_is_refused(address: bytes) -> None:
    for asked in (CallRequest(to=address), CallRequest(to=CODE, sender=address)):
        with pytest.raises(ValueError, match="20 bytes"):
            call(view_with("stop"), asked)


def test_a_call_that_does_not_end_is_stopped() -> None:
    layer = Layer.of({CODE: {"code": assemble("again: @again JUMP")}})
    with pytest.raises(SimulationError, match=r"execution aborted \(timeout = 0.05s\)"):
        call(view_of(layer), CallRequest(to=CODE, gas=2**62), gas_cap=0, timeout=0.05)


def test_estimates_are_enough_and_not_much_more() -> None:
    view, asked = view_with("stores"), CallRequest(sender=RICH, to=CODE)
    gas = estimate_gas(view, asked)
    assert isinstance(gas, int)
    assert call(view, replace(asked, gas=gas)).success
    assert not call(view, replace(asked, gas=int(gas / 1.02))).success
