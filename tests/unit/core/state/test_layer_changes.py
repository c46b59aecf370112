"""Tests that every change between layers is found: on branches, after removals, on a fork."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.state.layer import Layer
from fastevm.core.state.layer_changes import account_change, changed_addresses
from tests.unit.core.state.test_layer import applied, changes

from .remote_source import forked

A, B = b"\xaa" * 20, b"\xbb" * 20
ABSENT = {"balance": 0, "nonce": 0, "code": b"", "storage": {}}


def expected(old: dict, new: dict) -> tuple[int, int, dict[int, int]] | None:
    """Returns an account's new balance, new nonce and changed slots, or None without changes."""
    slots = sorted(old["storage"].keys() | new["storage"].keys())
    storage = {
        slot: new["storage"].get(slot, 0)
        for slot in slots
        if new["storage"].get(slot, 0) != old["storage"].get(slot, 0)
    }
    if not storage and (old["balance"], old["nonce"]) == (new["balance"], new["nonce"]):
        return None
    return new["balance"], new["nonce"], storage


def found(before: Layer, after: Layer) -> dict[bytes, tuple[int, int, dict[int, int]]]:
    changes = {
        address: account_change(before, after, address)
        for address in changed_addresses(before, after)
    }
    return {
        address: (change.balance, change.nonce, change.storage)
        for address, change in changes.items()
        if change is not None
    }


@settings(max_examples=150, deadline=None)
@given(
    st.lists(changes, max_size=3),
    st.lists(changes, max_size=3),
    st.lists(changes, max_size=3),
    st.lists(st.integers(1, 12), max_size=3),
)
def test_the_differences_of_two_branches_are_those_of_their_contents(
    shared: list, left: list, right: list, removed: list
) -> None:
    base, model = Layer.empty(), {}
    for change in shared:
        base, model = base.with_accounts(change), applied(model, change)
    before, after, old, new = base, base, model, model
    for change in left:
        before, old = before.with_accounts(change), applied(old, change)
    for change in right:
        after, new = after.with_accounts(change), applied(new, change)
    gone = [number.to_bytes(20, "big") for number in removed]
    after = after.without_accounts(gone)
    new = {address: fields for address, fields in new.items() if address not in gone}
    wanted = {
        address: expected(old.get(address, ABSENT), new.get(address, ABSENT))
        for address in old.keys() | new.keys()
    }
    assert found(before, after) == {
        address: change for address, change in wanted.items() if change is not None
    }
    assert changed_addresses(base, base) == set()


def test_a_value_that_was_only_rewritten_is_no_change() -> None:
    base = Layer.of({A: {"balance": 5, "storage": {1: 2}}})
    after = base.with_accounts({A: {"balance": 5, "storage": {1: 2}}})
    assert account_change(base, after, A) is None
    assert account_change(base, base, B) is None


def test_changes_above_a_remote_state_are_compared_with_its_values() -> None:
    base, _ = forked({A: {"balance": 5, "nonce": 1, "storage": {1: 2, 3: 4}}})
    after = base.with_accounts({A: {"balance": 6, "storage": {1: 0, 3: 4, 5: 6}}})
    assert found(base, after) == {A: (6, 1, {1: 0, 5: 6})}
    assert found(after, base) == {A: (5, 1, {1: 2, 5: 0})}
    again = after.with_accounts({A: {"balance": 5, "storage": {1: 2, 5: 0}}})
    assert found(base, again) == {}


def test_a_remote_account_that_was_removed_has_nothing_left() -> None:
    base, _ = forked({A: {"balance": 5, "nonce": 1}, B: {"balance": 7}})
    assert found(base, base.without_accounts([A])) == {A: (0, 0, {})}


def test_layers_above_different_remote_states_are_compared_by_value() -> None:
    base, _ = forked({A: {"balance": 5, "nonce": 1, "storage": {1: 2}}})
    moved, _ = forked({A: {"balance": 6, "nonce": 1, "storage": {1: 3}}})
    before = base.with_accounts({A: {"balance": 6, "storage": {1: 3}}})
    after = moved.with_accounts({A: {"storage": {4: 4}}})
    assert found(before, moved) == {}
    assert found(before, after) == {A: (6, 1, {4: 4})}
