"""Tests that integers of other libraries, such as numpy, are accepted as numbers."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from fastevm import EVM, Contract, Layer, Transaction, simulate, simulate_many

A, B = "0x" + "aa" * 20, "0x" + "bb" * 20


class Five:
    """An object that is an integer only by its ``__index__``."""

    def __index__(self) -> int:
        return 5


def numpy_five() -> Any:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    return numpy.int64(5)


def encoded(five: Any) -> int:
    contract: Any = Contract(EVM(), ["function f(uint8 a, int256 b, fixed128x1 c)"], A)
    assert contract.f.encode(five, five, five) == contract.f.encode(5, 5, Decimal(5))
    return 5


def layer(five: Any) -> int:
    state = Layer.of({A: {"balance": five, "nonce": five, "storage": {five: five}}})
    assert state.nonce(A) == state.storage(A, 5) == 5
    return state.balance(A)


def set_state(five: Any) -> int:
    evm = EVM(number=five)
    evm.set_account(A, balance=five, nonce=five, storage={five: five})
    evm.set_block(timestamp=five)
    assert evm.storage(A, five) == evm.block.number == evm.block.timestamp == evm.nonce(A) == 5
    evm.set_storage(A, five, five)
    return evm.balance(A)


def called(five: Any) -> int:
    evm = EVM()
    evm.set_balance(A, 10)
    evm.call(B, sender=A, value=five, commit=True)
    evm.transact(B, sender=A, value=0, nonce=0)
    return evm.balance(B)


def simulated(five: Any) -> int:
    evm = EVM()
    overrides = {A: {"balance": five, "nonce": five, "stateDiff": {five: five}}}
    call = {"from": A, "to": B, "value": five, "nonce": five}
    payload = {
        "blockStateCalls": [
            {"stateOverrides": overrides, "blockOverrides": {"time": five}, "calls": [call]}
        ]
    }
    (block,) = simulate(evm, payload)
    assert block.calls[0].success and block.block.header.timestamp == 5
    (result,) = simulate_many(
        Layer.of({A: {"balance": 5}}), [[{"from": A, "to": B, "value": five}]], balances=True
    )
    return result.balance_changes[bytes.fromhex(B[2:])]


def built(five: Any) -> int:
    return Transaction.build(value=five, nonce=five, gas_limit=five).value


@pytest.mark.parametrize("five", [Five, numpy_five], ids=["index", "numpy"])
@pytest.mark.parametrize("use", [encoded, layer, set_state, called, simulated, built])
def test_an_integer_is_a_number(use: Callable[[Any], int], five: Callable[[], Any]) -> None:
    assert use(five()) == 5


@pytest.mark.parametrize("value", [5.0, Decimal(5), "five", True], ids=repr)
def test_other_values_are_not_encoded(value: Any) -> None:
    contract: Any = Contract(EVM(), ["function f(uint8 a)"], A)
    with pytest.raises(ValueError, match="f: a: uint8: expected an int"):
        contract.f.encode(value)
