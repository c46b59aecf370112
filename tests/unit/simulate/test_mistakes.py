"""Tests that unknown members and invalid numbers are errors with a suggestion."""

from typing import Any

import pytest

import fastevm
from fastevm import Layer, simulate_many

A = "0x" + "a1" * 20
STATE = Layer.of({b"\xa1" * 20: {"balance": 10**18}})
CALL = {"from": A, "to": A}


@pytest.mark.parametrize(
    "payload, message",
    [
        ([{"frm": A, "to": A}], "'frm': did you mean 'from'"),
        ([{"to": A, "valeu": "0x1", "accessList": []}], "did you mean 'value'"),
        ({"blockStateCalls": [{"calls": [CALL], "stateOverride": {}}]}, "'stateOverrides'"),
        ({"blockStateCalls": [{"stateOverrides": {A: {"ballance": 1}}}]}, "'balance'"),
        ({"blockStateCalls": [{"blockOverrides": {"numbr": 1}}]}, "'number'"),
        ({"blockStateCalls": [{}], "validaton": True}, "'validation'"),
        ({"blockStateCals": [{}]}, "'blockStateCalls'"),
        ([{"to": A, "value": 1.9}], "value: expected a quantity, found float"),
        ({"blockStateCalls": [{"blockOverrides": {"number": 1.5}}]}, "number"),
    ],
)
def test_what_is_misspelt_or_cut_is_refused(payload: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fastevm.simulate(STATE, payload)
    (bundle,) = simulate_many(STATE, [payload])
    assert not bundle.success
    assert message in str(bundle.error)


def test_null_members_are_absent() -> None:
    call = {**CALL, "nonce": None, "gasPrice": None, "accessList": None, "type": "0x0"}
    assert fastevm.simulate(STATE, [call])[0].calls[0].success
    (bundle,) = simulate_many(STATE, [[call]])
    assert bundle.success


@pytest.mark.parametrize("name", ["ballance", "Nonce", "stateDiff"])
def test_accounts_have_no_other_fields(name: str) -> None:
    with pytest.raises(TypeError, match=f"an account has no '{name}'"):
        Layer.of({b"\xa1" * 20: {name: 1}})


def test_a_nonce_is_not_cut() -> None:
    with pytest.raises(TypeError):
        Layer.of({b"\xa1" * 20: {"nonce": 1.5}})
    with pytest.raises(TypeError):
        STATE.storage(b"\xa1" * 20, 0.5)  # type: ignore[arg-type]
