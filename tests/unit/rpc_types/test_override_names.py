"""Tests aliases and unknown members of overrides."""

import json
from typing import Any

import pytest

from fastevm.rpc_types.overrides import (
    block_overrides_from,
    decode_block_overrides,
    decode_state_overrides,
)
from fastevm.rpc_types.quantity import DecodeError
from fastevm.rpc_types.simulate_request import decode_payload, read_request
from fastevm.rpc_types.value_forms import GETH, STRICT
from fastevm.simulate import AccountOverride, BlockOverrides

A = "0x" + "aa" * 20
ADDRESS_A = b"\xaa" * 20
WORD = "0x" + "00" * 31 + "07"
BLOCK_ALIASES = {
    "timestamp": ("time", "0x2"),
    "coinbase": ("feeRecipient", A),
    "random": ("prevRandao", WORD),
    "baseFee": ("baseFeePerGas", "0x4"),
}


@pytest.mark.parametrize("alias", BLOCK_ALIASES)
def test_an_alias_of_a_block_member_means_the_same(alias: str) -> None:
    own, value = BLOCK_ALIASES[alias]
    wanted = decode_block_overrides({own: value})
    assert wanted != BlockOverrides()
    assert decode_block_overrides({alias: value}) == wanted
    assert decode_block_overrides({alias: value}, STRICT) == wanted
    assert decode_block_overrides({alias: value, own: None}) == wanted
    assert block_overrides_from({alias: value}) == wanted


@pytest.mark.parametrize("form", [GETH, STRICT])
@pytest.mark.parametrize("alias", BLOCK_ALIASES)
def test_an_alias_beside_its_own_name_is_refused(alias: str, form: Any) -> None:
    own, value = BLOCK_ALIASES[alias]
    with pytest.raises(DecodeError, match=f"'{alias}' means '{own}': give only one of them"):
        decode_block_overrides({alias: value, own: value}, form)


def test_storage_means_state_diff() -> None:
    wanted = {ADDRESS_A: AccountOverride(state_diff={7: 7})}
    assert decode_state_overrides({A: {"storage": {WORD: WORD}}}) == wanted
    with pytest.raises(DecodeError, match="'storage' means 'stateDiff'"):
        decode_state_overrides({A: {"storage": {}, "stateDiff": {}}})


def test_unknown_members_are_ignored_or_refused_by_the_form() -> None:
    assert decode_block_overrides({"gaslimit": "0x1"}) == BlockOverrides()
    assert decode_state_overrides({A: {"balence": "0x1"}}) == {ADDRESS_A: AccountOverride()}
    with pytest.raises(DecodeError, match="no member 'gaslimit': did you mean 'gasLimit'"):
        decode_block_overrides({"gaslimit": "0x1"}, STRICT)
    with pytest.raises(DecodeError, match="no member 'balence': did you mean 'balance'"):
        decode_state_overrides({A: {"balence": "0x1"}}, STRICT)


def test_a_strict_payload_refuses_unknown_members_of_overrides_only() -> None:
    decode_payload({"unknown": 1, "blockStateCalls": [{"other": 1, "calls": [{"x": 1}]}]}, STRICT)
    with pytest.raises(DecodeError, match="no member 'tme'"):
        decode_payload({"blockStateCalls": [{"blockOverrides": {"tme": "0x1"}}]}, STRICT)


@pytest.mark.parametrize(
    "entry",
    [
        {"stateOverrides": {A: {"storage": {WORD: WORD}}}},
        {"blockOverrides": {alias: value for alias, (_, value) in BLOCK_ALIASES.items()}},
    ],
)
def test_the_text_reader_knows_the_aliases(entry: Any) -> None:
    assert read_request(json.dumps([{"blockStateCalls": [entry]}]).encode()) is not None


@pytest.mark.parametrize(
    "entry",
    [
        {"stateOverrides": {A: {"storage": {}, "stateDiff": {}}}},
        {"blockOverrides": {"time": "0x2", "timestamp": "0x2"}},
        {"blockOverrides": {"baseFee": "0x2", "baseFeePerGas": "0x2"}},
        {"blockOverrides": {"tme": "0x2"}},
    ],
)
def test_the_text_reader_leaves_faults_to_the_reader_of_parsed_json(entry: Any) -> None:
    assert read_request(json.dumps([{"blockStateCalls": [entry]}]).encode()) is None
