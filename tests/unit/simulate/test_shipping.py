"""Tests states that are packed as bytes, and batches on workers that get only packed states."""

import runpy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm import Layer
from fastevm.core.state.shipping import pack_layer, unpack_layer

EXAMPLES = Path(__file__).parents[3] / "examples"

addresses = st.binary(min_size=20, max_size=20)
words = st.integers(0, 2**256 - 1)
accounts = st.fixed_dictionaries(
    {
        "balance": words,
        "nonce": st.integers(0, 2**64 - 1),
        "code": st.binary(max_size=40),
        "storage": st.dictionaries(words, words, max_size=4),
    }
)


@given(st.dictionaries(addresses, accounts, max_size=5))
@settings(max_examples=50)
def test_a_state_comes_back_as_it_was(state: dict[bytes, dict[str, object]]) -> None:
    layer = Layer.of(state)
    packed = pack_layer(layer)
    again = unpack_layer(packed)
    assert again.state_root() == layer.state_root()
    assert pack_layer(again) == packed
    assert sorted(again.addresses()) == sorted(state)


@pytest.mark.parametrize("damage", [b"", b"x", b"fastevm-state-1\n", b"fastevm-state-1\nxx"])
def test_other_bytes_are_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match="state"):
        unpack_layer(damage)


def test_a_cut_state_is_refused() -> None:
    packed = pack_layer(Layer.of({b"\x01" * 20: {"code": b"\x60\x01", "storage": {1: 2}}}))
    with pytest.raises(ValueError, match="damaged"):
        unpack_layer(packed[:-3])


def test_bundles_run_on_a_dask_cluster() -> None:
    pytest.importorskip("distributed")
    example = runpy.run_path(str(EXAMPLES / "simulate_dask.py"))
    assert example["main"](300) == 300


def test_the_best_bundle_is_found() -> None:
    example = runpy.run_path(str(EXAMPLES / "simulate_bundles.py"))
    assert example["main"]() == (50, 2500)
