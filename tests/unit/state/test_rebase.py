"""A forked state moves to a newer block of its chain: values stay, or are fetched anew."""

from __future__ import annotations

import pytest

from fastevm.state.layer import Layer
from fastevm.state.rebase import rebased
from fastevm.state.source import Wanted

from .remote_source import LayerSource, forked

A, B, C, D = (bytes([n]) * 20 for n in (1, 2, 3, 4))
ACCOUNTS = {
    A: {"nonce": 1, "code": b"\x00", "storage": {1: 10, 2: 20, 3: 30}},
    B: {"nonce": 1, "code": b"\x01", "storage": {1: 11}},
    C: {"balance": 3},
}
CHANGES = {A: {"storage": {1: 0, 2: 21, 9: 9}}, B: {"balance": 5}, D: {"balance": 4}}


def moved() -> tuple[Layer, Layer, LayerSource]:
    """The newer state as a whole, the rebased layer, and the source below that."""
    layer, _ = forked(ACCOUNTS)
    remote = layer.remote_state
    assert remote is not None
    remote.fetch(Wanted(slots={(A, 3), (B, 1)}))
    newer = layer.with_accounts(CHANGES).without_accounts([C])
    whole = Layer.of(ACCOUNTS).with_accounts(CHANGES).without_accounts([C])
    source = LayerSource(whole)
    return whole, rebased(newer, source, [A, C, D]), source


def test_kept_accounts_stay_known() -> None:
    whole, layer, source = moved()
    for address in (A, C, D):
        assert layer.account(address) == whole.account(address)
    for slot in (1, 2, 3, 9):
        assert layer.storage(A, slot) == whole.storage(A, slot)
    assert not source.asked


def test_other_accounts_are_fetched_anew() -> None:
    whole, layer, source = moved()
    assert layer.account(B) == whole.account(B)
    assert layer.storage(B, 1) == 11
    assert len(source.asked) == 2


def test_nothing_counts_as_changed_here() -> None:
    _, layer, _ = moved()
    assert layer.addresses() == []
    assert layer.hidden() == {}


def test_a_whole_state_has_no_base_to_move() -> None:
    with pytest.raises(ValueError, match="no remote state"):
        rebased(Layer.empty(), LayerSource(Layer.empty()), [])
