"""Tests that views encode a function call and decode its output."""

import pickle

import pytest

from fastevm import EVM
from fastevm.simulate import View, Watch

TOKEN = "0x" + "c1" * 20
HOLDER = "0x" + "a1" * 20


def test_the_word_function_may_be_missing() -> None:
    short = View(TOKEN, "balanceOf(address) returns (uint256)", [HOLDER])
    full = View(TOKEN, "function balanceOf(address holder) view returns (uint256)", [HOLDER])
    assert short.data == full.data
    assert short.data[:4].hex() == "70a08231"
    assert short.decode((7).to_bytes(32, "big")) == 7


def test_several_outputs_are_a_tuple() -> None:
    view = View(TOKEN, "reserves() returns (uint256, uint256)")
    assert tuple(view.decode(bytes(31) + b"\x01" + bytes(31) + b"\x02")) == (1, 2)


def test_a_view_can_be_pickled() -> None:
    view = View(TOKEN, "balanceOf(address) returns (uint256)", [HOLDER], sender=HOLDER)
    again = pickle.loads(pickle.dumps(view))
    assert (again.data, again.request, again.sender) == (view.data, view.request, view.sender)


@pytest.mark.parametrize(
    ("declaration", "args"), [("event E()", ()), ("balanceOf(address)", ()), ("x", ())]
)
def test_a_wrong_declaration_is_refused(declaration: str, args: tuple[object, ...]) -> None:
    with pytest.raises((ValueError, TypeError)):
        View(TOKEN, declaration, args)


def test_an_output_of_another_shape_has_no_value() -> None:
    evm = EVM()
    evm.set_account(TOKEN, code="0x5f545f5260205ff3")
    with Watch(evm) as watch:
        (question,) = watch.add_many([View(TOKEN, "value() returns (uint256)")])
        assert [change.value for change in watch.refresh()] == [0]
        evm.set_account(TOKEN, code=b"")
        (change,) = watch.advance(evm)
        assert change.id == question and change.value is None
        assert change.answer is not None and change.answer.success
