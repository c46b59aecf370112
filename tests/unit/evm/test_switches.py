"""Tests the validity rules that a machine can skip."""

import copy
import pickle

import pytest

from fastevm import EVM
from fastevm.errors import InvalidTransaction

SENDER, TARGET = "0x" + "11" * 20, "0x" + "aa" * 20
LARGE = 0x6001
CREATES = bytes.fromhex("6160015ff3")  # creates a contract of 24,577 zeros


def refused(evm: EVM, code: str, **terms: object) -> None:
    with pytest.raises(InvalidTransaction) as raised:
        evm.transact(TARGET, sender=SENDER, **terms)  # type: ignore[arg-type]
    assert raised.value.code == code


def test_balance() -> None:
    refused(EVM(), "insufficient_funds", value=5)
    evm = EVM(unchecked="balance", base_fee=7)
    assert evm.transact(TARGET, sender=SENDER, value=5, gas_price=10).success
    assert evm.balance(TARGET) == 5 and evm.balance(SENDER) == 0
    assert EVM().call(TARGET, value=5).error == "insufficient balance for transfer"
    assert evm.call(TARGET, value=5, commit=True).success and evm.balance(TARGET) == 10
    assert evm.create("0x", value=5).success


def test_nonce() -> None:
    refused(EVM(), "nonce_too_high", nonce=9)
    evm = EVM(unchecked=["nonce"])
    assert evm.transact(TARGET, sender=SENDER, nonce=9).success
    assert evm.nonce(SENDER) == 1


def test_gas_limits() -> None:
    refused(EVM(gas_limit=100_000), "block_gas_limit", gas=200_000)
    evm = EVM(gas_limit=100_000, unchecked=("block_gas_limit",))
    assert evm.transact(TARGET, sender=SENDER, gas=200_000).success
    refused(EVM(gas_limit=10**8), "gas_limit_too_high", gas=2**24 + 1)
    evm = EVM(gas_limit=10**8, unchecked=("gas_cap",))
    assert evm.transact(TARGET, sender=SENDER, gas=2**24 + 1).success
    assert evm.most_gas() == 10**8


def test_base_fee() -> None:
    refused(EVM(base_fee=7), "fee_cap_too_low")
    assert EVM(base_fee=7, unchecked={"base_fee"}).transact(TARGET, sender=SENDER).success


def test_sender_code() -> None:
    evm = EVM()
    evm.set_code(SENDER, "0x00")
    refused(evm, "sender_not_eoa")
    evm.unchecked = ("sender_code",)
    assert evm.transact(TARGET, sender=SENDER).success


def test_code_size() -> None:
    assert EVM().create(CREATES).error == "max code size exceeded"
    assert EVM(unchecked="code_size").create(CREATES).success
    assert EVM(code_size_limit=LARGE).create(CREATES).success
    assert not EVM(code_size_limit=LARGE - 1).create(CREATES).success
    assert EVM(code_size_limit=0).deploy(CREATES + bytes(50_000)).success
    evm = EVM()
    schedule = evm.schedule
    evm.code_size_limit = 10
    assert evm.deploy("0x600b5ff3").error == "max code size exceeded"
    evm.code_size_limit = None
    assert evm.deploy("0x600b5ff3").success and evm.schedule is schedule
    assert evm.schedule.name == EVM(code_size_limit=5).schedule.name


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown rule 'fees': expected one of balance"):
        EVM(unchecked=("fees",))
    for limit in (-1, 2**31):
        with pytest.raises(ValueError, match="invalid code size limit"):
            EVM(code_size_limit=limit)
    evm = EVM(unchecked="nonce")
    with pytest.raises(TypeError):
        evm.unchecked = 5  # type: ignore[assignment]
    assert evm.unchecked == {"nonce"}


def test_copies_keep_the_switches() -> None:
    evm = EVM(unchecked="nonce", code_size_limit=LARGE)
    for again in (copy.deepcopy(evm), pickle.loads(pickle.dumps(evm))):
        assert again.unchecked == {"nonce"} and again.code_size_limit == LARGE
        assert again.create(CREATES).success
        again.code_size_limit = None
        assert again.schedule.parameters["max_code_size"] == 24_576
