"""Tests that bytes, addresses, keys, hashes and slots may be any bytes-like value."""

from collections.abc import Callable
from typing import Any

import pytest
from eth_account import Account
from hexbytes import HexBytes

from fastevm import EVM, Contract, Layer, Revert, Transaction
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.core.primitives.bytes_like import address_of, bytes_of, word_of
from fastevm.simulate import AccountOverride, CallRequest, call, simulate, simulate_many, view_of

Form = Callable[[bytes], Any]
FORMS: dict[str, Form] = {
    "bytes": bytes,
    "HexBytes": HexBytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "hex text": lambda value: "0x" + value.hex(),
}
A, B, KEY = b"\xa1" * 20, b"\xb2" * 20, b"\x07" * 32
STORES = bytes.fromhex("60015f5500")  # stores 1 in slot 0
SLOT = (5).to_bytes(32, "big")
ABI = [
    {"type": "function", "name": "f", "inputs": [
        {"name": "who", "type": "address"}, {"name": "what", "type": "bytes32"},
        {"name": "data", "type": "bytes"}], "outputs": []}
]  # fmt: skip


def hashable(value: Any) -> Any:
    """Returns a hashable form of a value."""
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.fixture(params=FORMS, ids=str)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


def test_a_machine_takes_every_form(form: Form) -> None:
    evm = EVM(coinbase=form(B), block_hashes=[form(b"\x01" * 32)])
    evm.set_account(form(A), code=form(STORES), storage={hashable(form(SLOT)): 7})
    assert evm.code(form(A)) == STORES and evm.storage(form(A), form(SLOT)) == 7
    evm.set_storage(form(A), form(SLOT), 8)
    evm.set_code(form(A), form(STORES))
    evm.set_balance(form(B), 9)
    evm.set_nonce(form(B), 3)
    assert (evm.storage(A, 5), evm.balance(form(B)), evm.nonce(form(B))) == (8, 9, 3)
    assert evm.block.coinbase == B and evm.block_hashes == (b"\x01" * 32,)
    listed = [(form(A), [form(SLOT), 0])]
    result = evm.call(
        form(A), form(b"\x01"), sender=form(B), origin=form(B), access_list=listed,
        blob_hashes=[form(b"\x01" * 32)], trace="prestate",
    )  # fmt: skip
    assert result.success
    assert evm.create(form(STORES), sender=form(B), address=form(b"\xc3" * 20)).success
    assert evm.transact(form(A), form(b"\x01"), sender=form(B), access_list=listed).success
    assert evm.deploy(form(b""), sender=form(B)).success
    evm.precompiles[form(b"\x55" * 20)] = lambda data, gas: form(data)
    assert evm.call(form(b"\x55" * 20), b"\x0a\x0b").output == b"\x0a\x0b"
    evm.transient_storage = {(hashable(form(A)), hashable(form(SLOT))): 1}
    assert evm.transient_storage == {(A, 5): 1}


def test_a_layer_takes_every_form(form: Form) -> None:
    key = hashable(form(A))
    fields = {"code": form(STORES), "storage": {bytes(SLOT): 7}}
    layer = Layer.of({key: fields}).with_accounts({key: {"balance": 1}})
    assert layer.balance(form(A)) == 1 and layer.code(form(A)) == STORES
    assert layer.storage(form(A), form(SLOT)) == 7 and layer.nonce(form(A)) == 0
    assert layer.account(form(A)) is not None and layer.storage_items(form(A)) == {5: 7}
    assert layer.proof(form(A), [form(SLOT)]).account is not None
    assert layer.without_accounts([form(A)]).account(A) is None


def test_transactions_take_every_form(form: Form) -> None:
    authorization = sign_authorization(form(KEY), chain_id=1, address=form(A), nonce=0)
    fields: dict[str, Any] = {"to": form(A), "data": form(b"\x01"), "gas_limit": 10**6}
    listed = [(form(A), [form(SLOT)])]
    blobs = [form(b"\x01" + bytes(31))]
    for more in (
        {"access_list": listed, "sender": form(B)},
        {"blob_versioned_hashes": blobs, "access_list": listed},
        {"authorization_list": [authorization]},
    ):
        built = Transaction.build(**fields, **more)
        signed = built.sign(form(KEY))
        assert Transaction.decode(form(signed.raw)) == signed
        assert signed.sender == bytes.fromhex(Account.from_key(KEY).address[2:])


def test_the_form_of_json_rpc_is_accepted_too() -> None:
    listed = [{"address": "0x" + A.hex(), "storageKeys": ["0x" + SLOT.hex()]}]
    assert Transaction.build(access_list=listed).access_list[0].storage_keys == (5,)
    signed = sign_authorization(KEY, chain_id=1, address=A, nonce=4)
    as_json = {
        "chainId": 1, "address": A, "nonce": 4,
        "yParity": signed.y_parity, "r": signed.r, "s": signed.s,
    }  # fmt: skip
    assert Transaction.build(authorization_list=[as_json]).authorization_list == (signed,)
    with pytest.raises(TypeError, match="no 'nonce'"):
        Transaction.build(authorization_list=[{k: as_json[k] for k in as_json if k != "nonce"}])
    evm = EVM()
    evm.set_code(A, "0x60055400")  # reads slot 5
    cold, warm = evm.call(A).gas_used, evm.call(A, access_list=listed).gas_used
    assert cold - warm == 2_000
    with pytest.raises(TypeError, match="unknown member 'slots'"):
        evm.call(A, access_list=[{"address": A, "slots": []}])


def test_simulations_take_every_form(form: Form) -> None:
    state = Layer.of({A: {"code": STORES}})
    payload = [{"from": form(B), "to": form(A), "data": form(b"\x01")}]
    assert simulate(state, payload, coinbase=form(B))[0].calls[0].success
    assert next(simulate_many(state, [payload], threads=1)).success
    request = CallRequest(sender=form(B), to=form(A), data=form(b"\x01"))
    if not isinstance(form(A), str):  # typed requests accept only bytes
        assert call(view_of(state), request).success
        assert AccountOverride(code=form(STORES)) is not None


def test_contracts_take_every_form(form: Form) -> None:
    evm = EVM()
    contract = Contract(evm, ABI, form(A), sender=form(B))
    evm.set_code(A, "0x00")
    data = contract.f.encode(form(B), form(b"\x01" * 32), form(b"\x02\x03"))
    assert data == contract.f.encode("0x" + B.hex(), b"\x01" * 32, b"\x02\x03")
    contract.f(form(B), form(b"\x01" * 32), form(b"\x02\x03"))
    assert Revert(form(b"\x01")).data == b"\x01"


MISTAKES = [
    ("ab" * 20, ValueError, "begins with 0x"),
    ("0xabc", ValueError, "even number of digits, found 3"),
    ("0x" + "zz" * 20, ValueError, "'z' at position 2 is not a hex digit"),
    ("0x1234", ValueError, "expected 20 bytes, found 2"),
    (b"\x01" * 21, ValueError, "expected 20 bytes, found 21"),
    ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD".replace("5aA", "5AA"), ValueError, "checksum"),
    (5, TypeError, "found int"),
    (None, TypeError, "found NoneType"),
    ([1, 2], TypeError, "found list"),
]


@pytest.mark.parametrize(("value", "error", "words"), MISTAKES)
def test_a_mistake_has_its_own_words(value: Any, error: type[Exception], words: str) -> None:
    evm = EVM()
    before = evm.state
    for use in (
        lambda: evm.call(value),
        lambda: evm.set_balance(value, 1),
        lambda: evm.balance(value),
        lambda: Layer.of({value: {}}) if not isinstance(value, list) else evm.nonce(value),
        lambda: address_of(value),
    ):
        with pytest.raises(error, match=words):
            use()
    assert evm.state is before


def test_a_checksum_is_checked_only_where_there_is_one() -> None:
    right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    assert address_of(right) == address_of(right.lower()) == address_of("0x" + right[2:].upper())
    assert address_of("0x" + "11" * 20) == b"\x11" * 20


def test_slots_and_data() -> None:
    assert word_of(5) == word_of(SLOT) == word_of("0x" + SLOT.hex()) == 5
    with pytest.raises(ValueError, match="slot: expected 32 bytes, found 1"):
        word_of(b"\x05")
    with pytest.raises(TypeError, match="expected an int or 32 bytes, found float"):
        word_of(5.0)
    assert bytes_of("0x") == b"" and bytes_of("0X0aFF") == b"\x0a\xff"
    assert type(bytes_of(HexBytes("0x01"))) is bytes
