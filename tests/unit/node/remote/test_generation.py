"""Tests `Generation`, which takes known values from the state before and fetches all others."""

from __future__ import annotations

from typing import Any

from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import RemoteAccount, Wanted
from fastevm.node.remote.generation import Generation, known_of
from tests.unit.core.state.remote_source import LayerSource, forked

A, B, C = (bytes([n]) * 20 for n in (1, 2, 3))
ACCOUNTS: dict[bytes, dict[str, Any]] = {
    A: {"nonce": 1, "code": b"\x00", "storage": {1: 10, 2: 20}},
    B: {"balance": 5},
}
CHANGES: dict[bytes, dict[str, Any]] = {A: {"storage": {1: 11}}, C: {"balance": 7}}


def begun() -> tuple[Layer, Generation, LayerSource]:
    """Returns a remote state, its generation, and the source from which the generation fetches.

    The state before it knows A, slot 1 of A, and C.
    """
    layer, _ = forked(ACCOUNTS)
    newer = layer.with_accounts(CHANGES)
    source = LayerSource(Layer.of(ACCOUNTS).with_accounts(CHANGES))
    generation = Generation(source, newer)  # type: ignore[arg-type]
    return Layer.remote(RemoteState(generation)), generation, source


def test_what_was_known_costs_no_request() -> None:
    layer, generation, source = begun()
    assert layer.storage(A, 1) == 11
    assert (layer.nonce(A), layer.balance(C)) == (1, 7)
    assert not source.asked
    assert generation.carried == 3


def test_what_was_not_known_is_asked_for_alone() -> None:
    layer, _, source = begun()
    remote = layer.remote_state
    assert remote is not None
    remote.fetch(Wanted(accounts={A, B}, slots={(A, 1), (A, 2)}))
    assert len(source.asked) == 1
    assert source.asked[0].accounts == {B} and source.asked[0].slots == {(A, 2)}
    assert (layer.balance(B), layer.storage(A, 1), layer.storage(A, 2)) == (5, 11, 20)


def test_without_the_generation_before_all_is_asked_for() -> None:
    layer, generation, source = begun()
    generation.before = None
    assert layer.storage(A, 1) == 11
    assert source.asked[0].slots == {(A, 1)}


def test_looking_for_what_is_known_asks_nothing_and_leaves_nothing() -> None:
    layer, source = forked(ACCOUNTS)
    newer = layer.with_accounts({A: {"storage": {1: 0}}}).without_accounts([B])
    asked = len(source.asked)
    found = known_of(newer, Wanted(accounts={A, B, C}, slots={(A, 1), (A, 2), (B, 9)}))
    assert found.accounts == {A: RemoteAccount(0, 1, b"\x00"), B: RemoteAccount(0, 0)}
    assert found.slots == {(A, 1): 0, (B, 9): 0}
    assert len(source.asked) == asked
    remote = newer.remote_state
    assert remote is not None and not remote.take_missing()
