"""Tests that an error about a list names the invalid entry and its invalid member."""

from typing import Any

import pytest

from fastevm import EVM, Layer, Transaction
from fastevm.errors import TransactionDecodeError
from fastevm.evm.stateful import stateful

A, B = b"\xa1" * 20, b"\xb2" * 20
SIGNED = (1, A, 0, 0, 1, 1)
AS_JSON = {
    "chainId": "0x1", "address": "0x" + A.hex(), "nonce": "0x0", "yParity": "0x1",
    "r": "0x" + "ff" * 32, "s": (7).to_bytes(32, "big"),
}  # fmt: skip

WRONG_ACCESS_LISTS: list[tuple[Any, str]] = [
    (5, "access_list: expected a list, found int"),
    ("0x12", "access_list: expected a list, found str"),
    ({A: [1]}, "access_list: expected a list, found dict"),
    ([(A, [1]), 5], "access_list[1]: expected a list, found int"),
    ([(A, [1]), (A,)], "access_list[1]: expected (address, storageKeys), found 1 values"),
    ([(A, [1]), (b"1", [])], "access_list[1].address: expected 20 bytes, found 1"),
    ([(A, [1]), (A, 5)], "access_list[1].storageKeys: expected a list, found int"),
    ([(A, [1, "zz"])], "access_list[0].storageKeys[1]: hex text begins with 0x, found 'zz'"),
    ([(A, [-1])], "access_list[0].storageKeys[0] cannot be negative"),
    ([(A, [2**256])], "access_list[0].storageKeys[0] does not fit 256 bits"),
    ([(A, [None])], "access_list[0].storageKeys[0]: expected an int or 32 bytes, found NoneType"),
    ([{"address": A}], "access_list[0]: there is no 'storageKeys'"),
    ([(A, []), {"slots": 1}], "access_list[1]: unknown member 'slots', expected address, "),
]
WRONG_AUTHORIZATIONS: list[tuple[Any, str]] = [
    ([SIGNED, 5], "authorization_list[1]: expected a list, found int"),
    ([SIGNED, (1, A)], "authorization_list[1]: expected (chainId, address, nonce, yParity, r, s)"),
    ([SIGNED, (1, b"1", 0, 0, 1, 1)], "authorization_list[1].address: expected 20 bytes, found 1"),
    ([(2**256, A, 0, 0, 1, 1)], "authorization_list[0].chainId does not fit 256 bits"),
    ([(1, A, 2**64, 0, 1, 1)], "authorization_list[0].nonce does not fit 64 bits"),
    ([(1, A, -1, 0, 1, 1)], "authorization_list[0].nonce cannot be negative"),
    ([(1, A, 0, 256, 1, 1)], "authorization_list[0].yParity does not fit 8 bits"),
    ([(1, A, 0, 0, "x", 1)], "authorization_list[0].r: hex text begins with 0x, found 'x'"),
    ([(1, A, 0, 0, 1, 1.5)], "authorization_list[0].s: expected an int or 32 bytes, found float"),
    ([{**AS_JSON, "v": 1}], "authorization_list[0]: unknown member 'v', expected chainId, "),
]
WRONG_HASHES: list[tuple[Any, str]] = [
    (b"\x01" * 32, ": expected a list, found bytes"),
    ([b"\x01" * 32, b"1"], "[1]: expected 32 bytes, found 1"),
    ([b"\x01" * 32, 5], "[1]: expected bytes or 0x-prefixed hex text, found int"),
]


def text_of(run: Any) -> str:
    with pytest.raises((ValueError, TypeError, OverflowError)) as found:
        run()
    return str(found.value)


@pytest.mark.parametrize(("wrong", "text"), WRONG_ACCESS_LISTS)
def test_an_access_list_names_its_wrong_entry(wrong: Any, text: str) -> None:
    evm = EVM()
    before = evm.state
    for run in (
        lambda: Transaction.build(access_list=wrong),
        lambda: evm.transact(B, access_list=wrong),
        lambda: evm.deploy(b"", access_list=wrong),
        lambda: evm.call(B, access_list=wrong),
        lambda: evm.create(b"", access_list=wrong),
    ):
        assert text_of(run).startswith(text)
    assert evm.state is before


@pytest.mark.parametrize(("wrong", "text"), WRONG_AUTHORIZATIONS)
def test_an_authorization_list_names_its_wrong_entry(wrong: Any, text: str) -> None:
    for run in (
        lambda: Transaction.build(authorization_list=wrong),
        lambda: EVM().transact(B, authorization_list=wrong),
    ):
        assert text_of(run).startswith(text)


@pytest.mark.parametrize(("wrong", "text"), WRONG_HASHES)
def test_a_list_of_hashes_names_its_wrong_entry(wrong: Any, text: str) -> None:
    evm = EVM()

    def emit(run: Any) -> bytes:
        run.emit(wrong)
        return b""

    evm.precompiles[B] = stateful(emit)
    for name, run in {
        "blob_versioned_hashes": lambda: evm.transact(B, blob_versioned_hashes=wrong),
        "blob_hashes": lambda: evm.call(A, blob_hashes=wrong),
        "block_hashes": lambda: evm.set_block(block_hashes=wrong),
        "topics": lambda: evm.call(B),
    }.items():
        assert text_of(run).startswith(name + text)


def test_a_value_that_does_not_fit_is_a_decoding_error_of_a_transaction() -> None:
    wrong: list[dict[str, Any]] = [
        {"access_list": [(A, [2**256])]}, {"access_list": [(b"", [])]}, {"value": -1}, {"to": "12"},
    ]  # fmt: skip
    for fields in wrong:
        with pytest.raises(TransactionDecodeError):
            Transaction.build(**fields)


def test_the_quantities_of_json_rpc_are_numbers() -> None:
    (found,) = Transaction.build(authorization_list=[AS_JSON]).authorization_list
    assert tuple(found) == (1, A, 0, 1, 2**256 - 1, 7)


def test_lists_may_be_iterators() -> None:
    listed = iter([iter((A, iter([1, 2])))])
    assert Transaction.build(access_list=listed).access_list[0].storage_keys == (1, 2)
    hashes = (bytes([1]) + bytes(31) for _ in range(2))
    assert len(Transaction.build(blob_versioned_hashes=hashes).blob_versioned_hashes) == 2


@pytest.mark.parametrize(
    ("accounts", "text"),
    [
        (5, "accounts: expected a mapping, found int"),
        ([(A, {})], "accounts: expected a mapping, found list"),
        ({A: {}, b"1": {}}, "address: expected 20 bytes, found 1"),
        ({A: {}, B: 5}, f"0x{B.hex()}: expected a mapping, found int"),
        ({A: {}, B: {"balance": -1}}, f"0x{B.hex()}: balance cannot be negative"),
        ({A: {}, B: {"ballance": 1}}, f"0x{B.hex()}: an account has no 'ballance'"),
        ({B: {"code": "0x1"}}, f"0x{B.hex()}: code: hex text has an even number of digits"),
        ({B: {"storage": 5}}, f"0x{B.hex()}: storage: expected a mapping, found int"),
        ({B: {"storage": {1: 1, "x": 1}}}, f"0x{B.hex()}: storage['x']: hex text begins with 0x"),
        ({B: {"storage": {1: 2**256}}}, f"0x{B.hex()}: storage[1]: value does not fit 256 bits"),
        ({B: {"storage": {-1: 1}}}, f"0x{B.hex()}: storage[-1]: slot cannot be negative"),
    ],
)
def test_a_state_names_its_wrong_account(accounts: Any, text: str) -> None:
    assert text_of(lambda: Layer.of(accounts)).startswith(text)


def test_values_of_slots_may_be_words() -> None:
    word: Any = (7).to_bytes(32, "big")
    evm = EVM(state=Layer.of({A: {"storage": {1: word}}}))
    evm.set_storage(A, 2, "0x" + word.hex())
    evm.set_account(B, storage={word: word})
    assert (evm.storage(A, 1), evm.storage(A, 2), evm.storage(B, 7)) == (7, 7, 7)
