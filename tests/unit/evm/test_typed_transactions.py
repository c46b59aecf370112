"""Tests that `EVM.transact` derives the type from the fields, and uses the EVM's chain id."""

from typing import Any

import pytest

from fastevm import EVM, Transaction
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.errors import InvalidTransaction

A, B, KEY = b"\xa1" * 20, b"\xb2" * 20, b"\x07" * 32
CHAIN = 10


@pytest.fixture
def evm() -> EVM:
    evm = EVM(chain_id=CHAIN, base_fee=0)
    evm.set_balance(A, 10**20)
    return evm


def fields_of(name: str) -> dict[str, Any]:
    blob = b"\x01" + bytes(31)
    authorization = sign_authorization(KEY, chain_id=CHAIN, address=B, nonce=0)
    return {
        "legacy": {},
        "price": {"gas_price": 1},
        "list": {"access_list": [(B, [1])]},
        "list with price": {"access_list": [(B, [1])], "gas_price": 1},
        "fees": {"max_fee_per_gas": 2, "max_priority_fee_per_gas": 1},
        "only a tip": {"max_priority_fee_per_gas": 0},
        "type 2": {"type": 2},
        "blobs": {"blob_versioned_hashes": [blob], "max_fee_per_blob_gas": 1},
        "authorizations": {"authorization_list": [authorization]},
    }[name]


@pytest.mark.parametrize("name", [
    "legacy", "price", "list", "list with price", "fees", "only a tip", "type 2", "blobs",
    "authorizations",
])  # fmt: skip
@pytest.mark.parametrize("chain", [{}, {"chain_id": CHAIN}])
def test_every_type_runs_on_every_chain(evm: EVM, name: str, chain: dict[str, int]) -> None:
    assert evm.transact(B, sender=A, **fields_of(name), **chain).success
    assert evm.nonce(A) == 1
    if name == "authorizations":
        assert any(evm.code(address)[:3] == b"\xef\x01\x00" for address in evm.state.addresses())


def test_a_deployment_is_typed_too(evm: EVM) -> None:
    result = evm.deploy(b"", sender=A, max_fee_per_gas=1)
    assert result.success and result.created_address is not None


def test_another_chain_is_refused(evm: EVM) -> None:
    before = evm.state
    with pytest.raises(InvalidTransaction, match="chain id"):
        evm.transact(B, sender=A, max_fee_per_gas=1, chain_id=CHAIN + 1)
    assert evm.state is before


@pytest.mark.parametrize("wrong", [
    {"gas_price": 1, "max_fee_per_gas": 1},
    {"gas_price": 1, "max_priority_fee_per_gas": 1},
    {"gas_price": 0, "authorization_list": []},
    {"max_fee_per_blob_gas": 1},
    {"type": 0, "access_list": [(B, [])]},
    {"type": 1, "max_fee_per_gas": 1},
    {"type": 2, "authorization_list": [(1, B, 0, 0, 1, 1)]},
])  # fmt: skip
def test_fields_that_do_not_go_together_are_an_error(evm: EVM, wrong: dict[str, Any]) -> None:
    before = evm.state
    with pytest.raises(TypeError, match="does not go with a transaction"):
        evm.transact(B, sender=A, **wrong)
    assert evm.state is before


def test_execute_takes_a_trace_and_a_time_limit(evm: EVM) -> None:
    signed = Transaction.build(
        to=B, value=3, gas_limit=21_000, max_fee_per_gas=1, chain_id=CHAIN
    ).sign(KEY)
    assert signed.sender is not None
    evm.set_balance(signed.sender, 10**18)
    twin = EVM(chain_id=CHAIN, state=evm.state)
    result = evm.execute(signed, trace=("calls", "diff"), timeout=60)
    assert result == twin.execute(signed)
    assert evm.state.state_root() == twin.state.state_root()
    assert result.trace["calls"]["value"] == "0x3"
    assert result.trace["diff"]["post"]["0x" + B.hex()] == {"balance": "0x3"}


def test_a_static_call_carries_no_value(evm: EVM) -> None:
    before = evm.state
    with pytest.raises(ValueError, match="static call cannot carry value"):
        evm.call(B, sender=A, static=True, value=4, commit=True)
    assert evm.state is before and evm.balance(B) == 0
