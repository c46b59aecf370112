"""Tests layers above a remote state: values, fetches and local changes."""

from __future__ import annotations

import threading

import pytest

from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState, resolved
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.errors import ForkError, ResourceLimitError, StateNotKnown
from tests.max_wait import MAX_WAIT

from .remote_source import LayerSource, forked

A, B, C = (bytes([n]) * 20 for n in (1, 2, 3))
CODE = bytes.fromhex("60005460005260206000f3")
ACCOUNTS = {
    A: {"balance": 5, "nonce": 2, "code": CODE, "storage": {0: 7, 1: 8}},
    B: {"balance": 9},
}


def test_accounts_and_slots_are_fetched_when_they_are_read() -> None:
    layer, source = forked(ACCOUNTS)
    assert (layer.balance(A), layer.nonce(A), layer.code(A)) == (5, 2, CODE)
    assert (layer.storage(A, 0), layer.storage(A, 5)) == (7, 0)
    assert layer.account(C) is None
    assert layer.account(A) == Layer.of(ACCOUNTS).account(A)
    assert len(source.asked) == 4


def test_nothing_is_fetched_twice() -> None:
    layer, source = forked(ACCOUNTS)
    for _ in range(3):
        assert (layer.balance(C), layer.storage(A, 1), layer.storage(A, 2)) == (0, 8, 0)
    assert len(source.asked) == 3


def test_a_change_hides_the_remote_value_in_its_own_layer_only() -> None:
    layer, _ = forked(ACCOUNTS)
    changed = layer.with_accounts({A: {"balance": 6, "storage": {0: 0, 3: 4}}, C: {"nonce": 1}})
    assert [changed.storage(A, slot) for slot in (0, 1, 3)] == [0, 8, 4]
    assert (changed.balance(A), changed.nonce(A), changed.code(A)) == (6, 2, CODE)
    assert changed.nonce(C) == 1
    assert [layer.storage(A, slot) for slot in (0, 1, 3)] == [7, 8, 0]
    assert (layer.balance(A), layer.nonce(C)) == (5, 0)


def test_a_slot_set_to_zero_stays_zero_above_and_can_be_set_again() -> None:
    layer, _ = forked(ACCOUNTS)
    zeroed = layer.with_accounts({A: {"storage": {0: 0}}})
    later = zeroed.with_accounts({A: {"balance": 1}})
    assert later.storage(A, 0) == 0
    assert later.with_accounts({A: {"storage": {0: 3}}}).storage(A, 0) == 3


def test_a_removed_account_is_gone_and_comes_back_without_its_storage() -> None:
    layer, source = forked(ACCOUNTS)
    removed = layer.without_accounts([A])
    asked = len(source.asked)
    assert removed.account(A) is None
    assert removed.storage(A, 0) == 0
    again = removed.with_accounts({A: {"nonce": 1, "code": CODE}})
    assert [again.storage(A, slot) for slot in (0, 1)] == [0, 0]
    assert len(source.asked) == asked
    assert layer.storage(A, 0) == 7


def test_reset_drops_the_remote_storage() -> None:
    layer, source = forked(ACCOUNTS)
    changed = layer.with_accounts({A: {"reset": True, "storage": {1: 1}}})
    asked = len(source.asked)
    assert [changed.storage(A, slot) for slot in (0, 1, 2)] == [0, 1, 0]
    assert len(source.asked) == asked


def test_all_accounts_of_a_change_are_fetched_together() -> None:
    layer, source = forked(ACCOUNTS)
    layer.with_accounts({address: {"balance": 1} for address in (A, B, C)})
    assert [wanted.accounts for wanted in source.asked] == [{A, B, C}]


def test_the_root_is_that_of_what_was_changed_here() -> None:
    layer, _ = forked({})
    accounts = {A: {"balance": 1, "storage": {2: 3}}}
    assert layer.with_accounts(accounts).state_root() == Layer.of(accounts).state_root()
    assert layer.with_accounts(accounts).addresses() == [A]


def test_an_error_of_the_source_changes_nothing() -> None:
    layer, source = forked(ACCOUNTS)
    source.broken = True
    with pytest.raises(ForkError, match="broken"):
        layer.balance(A)
    source.broken = False
    assert layer.balance(A) == 5


def test_a_source_that_leaves_values_out_is_an_error() -> None:
    class Sparse(LayerSource):
        def fetch(self, wanted: Wanted) -> Found:
            return Found()

    layer = Layer.remote(Sparse(Layer.empty()))
    with pytest.raises(ForkError, match="no account 0x0101"):
        layer.balance(A)
    with pytest.raises(ForkError, match="no slot 0x3 of 0x0101"):
        layer.storage(A, 3)


def test_values_can_be_put_before_they_are_asked_for() -> None:
    source = LayerSource(Layer.empty())
    state = RemoteState(source)
    state.put(Found({A: RemoteAccount(3, 1, CODE)}, {(A, 4): 5}, {7: b"\x07" * 32}))
    layer = Layer.remote(state)
    assert (layer.balance(A), layer.code(A), layer.storage(A, 4)) == (3, CODE, 5)
    assert not source.asked
    known = state.known_values()
    assert known.accounts == {A: RemoteAccount(3, 1, CODE)}
    assert (known.slots, known.block_hashes) == ({(A, 4): 5}, {7: b"\x07" * 32})


def test_code_of_an_account_that_was_known_without_it_is_not_shared() -> None:
    """A's first value, without code, stays. The code in its second value is not stored for A."""
    state = RemoteState(LayerSource(Layer.empty()))
    codes = [bytes([n]) * 4_000 for n in (1, 2)]
    state.put(Found({A: RemoteAccount(1, 1)}))
    state.put(Found({A: RemoteAccount(1, 1, codes[0])}))
    state.put(Found({B: RemoteAccount(0, 1, codes[1])}))
    state.put(Found({C: RemoteAccount(0, 1, codes[0])}))
    known = state.known_values().accounts
    assert [known[item].code for item in (A, B, C)] == [b"", codes[1], codes[0]]


def test_known_values_have_a_limit() -> None:
    state = RemoteState(LayerSource(Layer.of(ACCOUNTS)), limit=0)
    with pytest.raises(ResourceLimitError, match="remote state"):
        Layer.remote(state).balance(A)


def test_many_values_are_found_again() -> None:
    slots = {n: n + 1 for n in range(20_000)}
    layer, source = forked({A: {"nonce": 1, "storage": slots}})
    state = layer.remote_state
    assert state is not None
    state.fetch(Wanted(slots={(A, slot) for slot in slots}))
    assert len(source.asked) == 1
    assert all(layer.storage(A, slot) == value for slot, value in slots.items())
    assert len(source.asked) == 1
    assert state.size > 20_000 * 80


def test_a_run_that_reads_another_state_ends() -> None:
    """The run also reads ``other``, whose values a fetch for ``layer`` cannot provide."""
    layer, source = forked(ACCOUNTS)
    other, elsewhere = forked(ACCOUNTS)
    with pytest.raises(StateNotKnown, match="another block"):
        resolved(layer, lambda: (layer.nonce(A), other.balance(B)))
    assert (len(source.asked), elsewhere.asked) == (1, [])
    assert resolved(other, lambda: other.balance(B)) == 9


def test_what_a_failed_fetch_wanted_is_fetched_again() -> None:
    layer, source = forked(ACCOUNTS)
    source.broken = True

    def run() -> tuple[int, int]:
        return layer.balance(A), layer.balance(B)

    for _ in range(2):
        with pytest.raises(ForkError):
            resolved(layer, run)
    source.broken = False
    assert resolved(layer, run) == (5, 9)


def test_threads_share_one_fetch() -> None:
    started, go = threading.Event(), threading.Event()

    class Slow(LayerSource):
        def fetch(self, wanted: Wanted) -> Found:
            started.set()
            assert go.wait(MAX_WAIT)
            return super().fetch(wanted)

    source = Slow(Layer.of(ACCOUNTS))
    layer = Layer.remote(source)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(layer.balance(A))) for _ in range(4)]
    threads[0].start()
    assert started.wait(MAX_WAIT)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(MAX_WAIT)
    assert found == [5] * 4
    assert len(source.asked) == 1
