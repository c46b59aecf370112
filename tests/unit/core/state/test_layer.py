"""Tests that layers return what was stored, are independent, and have canonical roots."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.layer import Layer

EMPTY_ROOT = bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")

addresses = st.integers(1, 12).map(lambda n: n.to_bytes(20, "big"))
words = st.integers(0, 2**256 - 1)
slots = st.one_of(st.integers(0, 20), words)
changes = st.dictionaries(
    addresses,
    st.fixed_dictionaries(
        {},
        optional={
            "balance": words,
            "nonce": st.integers(0, 2**64 - 1),
            "code": st.binary(max_size=40),
            "storage": st.dictionaries(slots, st.one_of(st.just(0), words), max_size=6),
            "reset": st.booleans(),
        },
    ),
    max_size=5,
)


def applied(model: dict, change: dict) -> dict:
    """Returns a copy of the model (address -> fields) after a change."""
    result = {
        address: dict(fields, storage=dict(fields["storage"])) for address, fields in model.items()
    }
    for address, fields in change.items():
        entry = result.setdefault(address, {"balance": 0, "nonce": 0, "code": b"", "storage": {}})
        for name in ("balance", "nonce", "code"):
            if name in fields:
                entry[name] = fields[name]
        if fields.get("reset"):
            entry["storage"] = {}
        entry["storage"].update(fields.get("storage", {}))
        entry["storage"] = {slot: value for slot, value in entry["storage"].items() if value}
    return result


def assert_same(layer: Layer, model: dict) -> None:
    assert set(layer.addresses()) == set(model)
    assert layer.account_count == len(model)
    for address, fields in model.items():
        account = layer.account(address)
        assert account is not None
        assert account.balance == layer.balance(address) == fields["balance"]
        assert account.nonce == layer.nonce(address) == fields["nonce"]
        assert layer.code(address) == fields["code"]
        assert account.code_hash == keccak256(fields["code"])
        assert layer.storage_items(address) == fields["storage"]
        for slot, value in fields["storage"].items():
            assert layer.storage(address, slot) == value


def test_the_empty_state_has_the_empty_root() -> None:
    assert Layer.empty().state_root() == EMPTY_ROOT
    assert Layer.empty().account(bytes(20)) is None
    assert Layer.empty().storage(bytes(20), 0) == 0


@settings(max_examples=60)
@given(st.lists(changes, max_size=6), st.randoms())
def test_every_version_reads_as_it_was_and_has_the_root_of_its_content(
    history: list, random
) -> None:
    layer, model = Layer.empty(), {}
    versions = [(layer, model)]
    for change in history:
        layer, model = layer.with_accounts(change), applied(model, change)
        versions.append((layer, model))
    random.shuffle(versions)
    for layer, model in versions:
        assert_same(layer, model)
        assert layer.state_root() == Layer.of(model).state_root()


def test_thousands_of_layers_without_a_root_do_not_keep_their_parents_alive() -> None:
    address = b"\x01" * 20
    layer = Layer.empty()
    for value in range(1, 2001):
        layer = layer.with_accounts({address: {"storage": {value % 7: value}}})
    assert layer.storage(address, 2000 % 7) == 2000
    expected = {value % 7: value for value in range(1, 2001)}
    assert layer.state_root() == Layer.of({address: {"storage": expected}}).state_root()


def test_an_account_may_change_go_and_come_back_before_the_next_root() -> None:
    address = b"\x07" * 20
    first = Layer.of({address: {"balance": 1, "storage": {1: 1, 2: 2}}})
    first.state_root()
    changed = first.with_accounts({address: {"storage": {1: 9, 3: 3}}})
    gone = changed.without_accounts([address])
    back = gone.with_accounts({address: {"balance": 4, "storage": {3: 5}}})
    expected = Layer.of({address: {"balance": 4, "storage": {3: 5}}})
    assert back.state_root() == expected.state_root()
    assert gone.state_root() == EMPTY_ROOT
    assert changed.storage_items(address) == {1: 9, 2: 2, 3: 3}


def test_the_root_of_many_accounts_with_storage_does_not_depend_on_the_way() -> None:
    accounts = {
        number.to_bytes(20, "big"): {"balance": number, "storage": {number: number, 5: 6}}
        for number in range(1, 200)
    }
    layer = Layer.empty()
    for address, fields in accounts.items():
        layer = layer.with_accounts({address: fields})
    assert layer.state_root() == Layer.of(accounts).state_root()


def test_an_account_that_is_empty_still_counts_when_it_was_put() -> None:
    layer = Layer.of({b"\x05" * 20: {}})
    assert layer.account_count == 1
    assert layer.state_root() != EMPTY_ROOT


@pytest.mark.parametrize(
    ("accounts", "error"),
    [
        ({b"short": {}}, ValueError),
        ({bytes(20): {"balance": -1}}, OverflowError),
        ({bytes(20): {"balance": 2**256}}, OverflowError),
        ({bytes(20): {"nonce": 2**64}}, OverflowError),
        ({bytes(20): {"storage": {0: 2**256}}}, OverflowError),
    ],
)
def test_what_does_not_fit_is_refused(accounts: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        Layer.of(accounts)


def test_a_layer_is_not_made_by_hand() -> None:
    with pytest.raises(TypeError):
        Layer()
