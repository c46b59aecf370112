"""Tests names of calls, events and revert reasons: common names, and names from ABI files."""

import json

import pytest
from eth_abi import encode

from fastevm.core.primitives.keccak import keccak256
from fastevm.rpc_types.contract_abi import Entry, entry_of_json
from fastevm.rpc_types.contract_names import Names, common_entries, entries_of, shortened
from tests.shared_data import SHARED

WHO = "0xB0B0b0B0B0B0B0b0B0B0B0b0b0b0b0B0b0b0B0B0"
WORD = bytes(12) + bytes.fromhex(WHO[2:])
TRANSFER = keccak256(b"Transfer(address,address,uint256)")


def data_of(signature: str, *values: object) -> bytes:
    types = [item for item in signature.partition("(")[2][:-1].split(",") if item]
    return keccak256(signature.encode())[:4] + encode(types, values)


@pytest.fixture(scope="module")
def names() -> Names:
    return Names(common_entries())


def test_calls_have_the_names_of_common_functions(names: Names) -> None:
    called = names.call(data_of("transfer(address,uint256)", WHO, 5))
    assert called == f"transfer(to: {WHO}, value: 5)"
    cut = data_of("transfer(address,uint256)", WHO, 5)[:40]
    assert names.call(cut) == f"transfer(0x{cut[4:].hex()})"
    assert names.call(b"") is None
    assert names.call(b"\x01\x02\x03\x04") is None


def test_an_event_is_reported_by_the_number_of_its_topics(names: Names) -> None:
    token = names.event((TRANSFER, WORD, WORD), (7).to_bytes(32))
    assert token == f"Transfer(from: {WHO}, to: {WHO}, value: 7)"
    collectible = names.event((TRANSFER, WORD, WORD, (8).to_bytes(32)), b"")
    assert collectible == f"Transfer(from: {WHO}, to: {WHO}, tokenId: 8)"
    assert names.event((TRANSFER, WORD, WORD), b"") is None
    assert names.event((), b"") is None


def test_an_indexed_text_is_its_hash() -> None:
    inputs = [{"name": "n", "type": "string", "indexed": True}]
    names = Names(entries_of([{"type": "event", "name": "Named", "inputs": inputs}]))
    topic = keccak256(b"x")
    assert names.event((keccak256(b"Named(string)"), topic), b"") == f"Named(n: 0x{topic.hex()})"


def test_entries_that_cannot_be_read_are_ignored() -> None:
    assert (
        list(entries_of([1, {}, {"type": "error", "name": "E", "inputs": [{"type": "what"}]}]))
        == []
    )


def test_unknown_names_are_asked_for_again() -> None:
    """A developer may compile a contract after the names were read."""
    kinds = ("function", "error", "event")
    abi = [{"type": kind, "name": "Late", "inputs": [{"type": "uint256"}]} for kind in kinds]
    later: list[Entry] = []
    names = Names(more=lambda: later)
    data = data_of("Late(uint256)", 5)
    event = [keccak256(b"Late(uint256)")], bytes(32)
    assert (names.call(data), names.event(*event)) == (None, None)
    later += entries_of(abi)
    assert (names.call(data), names.revert(data), names.event(*event)) == (
        "Late(5)", "Late(5)", "Late(0)",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (data_of("Error(string)", "not today"), "not today"),
        (data_of("Panic(uint256)", 0x11), "panic 0x11: arithmetic overflow or underflow"),
        (data_of("Panic(uint256)", 0x99), "panic 0x99: unknown code"),
        (data_of("AddressEmptyCode(address)", WHO), f"AddressEmptyCode(target: {WHO})"),
        (b"", "no reason given"),
        (bytes.fromhex("08c379a0ff"), "0x08c379a0ff"),
        (b"\x01\x02", "0x0102"),
    ],
)  # fmt: skip
def test_a_reason_is_read(names: Names, data: bytes, reason: str) -> None:
    assert names.revert(data) == reason


def test_a_custom_error_has_the_name_of_its_abi(names: Names) -> None:
    data = data_of("Late(uint256)", 5)
    assert names.revert(data) == "0x" + data.hex()
    entry = {"type": "error", "name": "Late", "inputs": [{"type": "uint256"}]}
    names = Names(entries_of([entry]))
    assert names.revert(data) == "Late(5)"


def test_long_data_is_shortened() -> None:
    assert shortened(bytes(65)) == "0x" + "00" * 64 + "... (65 bytes)"


def test_native_tokens_of_base_have_names(names: Names) -> None:
    called = names.call(data_of("transferWithMemo(address,uint256,bytes32)", WHO, 5, bytes(32)))
    assert called == f"transferWithMemo(to: {WHO}, amount: 5, memo: 0x{bytes(32).hex()})"
    memo = keccak256(b"Memo(address,bytes32)")
    assert names.event((memo, WORD, WORD), b"") == f"Memo(caller: {WHO}, memo: 0x{WORD.hex()})"


@pytest.mark.parametrize(
    "name", ["IB20Asset.v2", "IB20Stablecoin.v2", "IB20Factory.v1", "IPolicyRegistry.v3"]
)
def test_the_whole_interface_of_native_tokens_has_names(name: str) -> None:
    abi = SHARED / "base" / "abi" / f"{name}.json"
    entries = [entry_of_json(load) for load in json.loads(abi.read_text())]
    known = {(entry.kind, entry.signature) for entry in common_entries()}
    assert {(entry.kind, entry.signature) for entry in entries if entry is not None} <= known
