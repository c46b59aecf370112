"""Tests ``EVM.create``, and transient storage that an EVM keeps between messages."""

import copy
import pickle

import pytest

from fastevm import EVM
from fastevm.errors import FastevmError

A = "0x" + "a1" * 20
CHOSEN_ADDRESS = "0x" + "77" * 20
# init code that returns the runtime code 5f3560e01c (5 bytes)
INIT = "0x645f3560e01c5f526005601bf3"
RUNTIME = bytes.fromhex("5f3560e01c")
# TSTORE(0, TLOAD(0) + 1), RETURN of it
COUNTER = "0x5f5c600101805f5d5f5260205ff3"
SLOT = (bytes.fromhex("c0" * 20), 0)
C = "0x" + "c0" * 20


@pytest.fixture
def evm() -> EVM:
    machine = EVM("cancun")
    machine.set_account(A, balance=10**18, nonce=3)
    machine.set_account(C, code=COUNTER)
    return machine


def test_a_creation_is_forgotten_or_kept(evm: EVM) -> None:
    tried = evm.create(INIT, sender=A)
    assert tried.success and tried.created_address is not None
    assert evm.code(tried.created_address) == b"" and evm.nonce(A) == 3
    kept = evm.create(INIT, sender=A, commit=True)
    assert kept.created_address == tried.created_address
    assert evm.code(kept.created_address or b"") == RUNTIME
    assert evm.nonce(A) == 4 and evm.nonce(kept.created_address or b"") == 1


def test_a_creation_gives_the_address_that_a_transaction_gives(evm: EVM) -> None:
    expected = evm.create(INIT, sender=A).created_address
    assert evm.deploy(INIT, sender=A).created_address == expected


def test_an_address_may_be_chosen(evm: EVM) -> None:
    result = evm.create(INIT, sender=A, address=CHOSEN_ADDRESS, value=7, commit=True)
    assert result.created_address == bytes.fromhex("77" * 20)
    assert evm.code(CHOSEN_ADDRESS) == RUNTIME and evm.balance(CHOSEN_ADDRESS) == 7
    again = evm.create(INIT, sender=A, address=CHOSEN_ADDRESS)
    assert again.error == "contract address collision" and again.created_address is None


def test_a_creation_sees_the_terms_of_its_message(evm: EVM) -> None:
    # returns ORIGIN, GASPRICE and BLOBHASH(0) as code
    code = "0x325f523a602052" + "5f4960405260605ff3"
    terms = {"origin": CHOSEN_ADDRESS, "gas_price": 9, "blob_hashes": [b"\1" * 32]}
    created = evm.create(code, sender=A, commit=True, **terms).created_address
    seen = evm.code(created or b"")
    assert seen[12:32] == bytes.fromhex("77" * 20)
    assert int.from_bytes(seen[32:64], "big") == 9 and seen[64:] == b"\1" * 32


def test_a_creation_that_fails_keeps_nothing(evm: EVM) -> None:
    result = evm.create("0x5f5ffd", sender=A, commit=True)
    assert result.error == "execution reverted" and result.created_address is None
    assert evm.nonce(A) == 3


def test_a_creation_has_a_time_limit(evm: EVM) -> None:
    with pytest.raises(FastevmError):
        evm.create("0x5b5f56", sender=A, gas=10**12, timeout=0.05)
    assert evm.create(INIT, sender=A).success


def test_transient_storage_is_kept_while_it_is_set(evm: EVM) -> None:
    def count(**terms: bool) -> int:
        return int.from_bytes(evm.call(C, **terms).output, "big")

    assert [count(commit=True), count(commit=True)] == [1, 1]
    assert evm.transient_storage is None
    evm.transient_storage = {}
    assert [count(commit=True), count(commit=True), count(), count()] == [1, 2, 3, 3]
    assert evm.transient_storage == {SLOT: 2}
    evm.transient_storage = {SLOT: 9}
    assert count(commit=True) == 10
    evm.create(INIT, sender=A, commit=True)
    assert evm.transient_storage == {SLOT: 10}
    evm.transient_storage = None
    assert count() == 1


def test_a_failing_message_leaves_transient_storage_as_it_was(evm: EVM) -> None:
    evm.transient_storage = {SLOT: 5}
    assert not evm.call(C, gas=150, commit=True).success
    assert evm.transient_storage == {SLOT: 5}


def test_copies_and_pickles_have_the_transient_storage(evm: EVM) -> None:
    evm.transient_storage = {(C, 1): 4, (C, 2): 0}
    for other in (copy.copy(evm), pickle.loads(pickle.dumps(evm))):
        assert other.transient_storage == {(SLOT[0], 1): 4}


@pytest.mark.parametrize("values", [{("0x12", 0): 1}, {(C, -1): 1}, {(C, 0): 2**256}, {C: 1}])
def test_what_is_no_transient_storage_is_refused(evm: EVM, values: object) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        evm.transient_storage = values  # type: ignore[assignment]
    assert evm.transient_storage is None
