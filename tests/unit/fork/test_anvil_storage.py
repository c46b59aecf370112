"""Tests that anvil's cached values are used if they belong to the block of the fork."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import RemoteAccount, Wanted
from fastevm.errors import ForkError
from fastevm.fork import RemoteSource
from fastevm.fork.anvil_storage import anvil_values
from fastevm.fork.pinned_block import PinnedBlock

from .fake_endpoint import CHAIN_ID, FakeEndpoint, block

TOKEN = b"\x70" * 20
CODE = bytes.fromhex("6000546001540160025500")[:-1]
HEADER = {**block(10), "mixHash": "0x" + "77" * 32}
Open = Callable[..., RemoteSource]


def content(**environment: Any) -> dict[str, Any]:
    """Returns the content of a file that anvil 1.7.1 would write."""
    return {
        "meta": {
            "block_env": {
                "number": "0xa", "beneficiary": HEADER["miner"], "timestamp": HEADER["timestamp"],
                "gas_limit": 30_000_000, "basefee": 7, "prevrandao": HEADER["mixHash"],
                "difficulty": "0x0", **environment,
            },
            "hosts": ["127.0.0.1"],
        },
        "accounts": {
            "0x" + TOKEN.hex(): {
                "balance": "0x5", "nonce": 1, "code_hash": "0x" + keccak256(CODE).hex(),
                "code": {"LegacyAnalyzed": {
                    "bytecode": "0x" + CODE.hex() + "00", "original_len": len(CODE),
                    "jump_table": {"bits": 0},
                }},
            },
            "0x" + "a1" * 20: {
                "balance": "0x1", "nonce": 0, "code_hash": "0x" + keccak256(b"").hex(),
                "code": None,
            },
        },
        "storage": {"0x" + TOKEN.hex(): {"0x0": "0x5", "0x1": "0x0"}},
        "block_hashes": {"0x9": HEADER["parentHash"]},
    }  # fmt: skip


def write(home: Path, found: Any, name: str = "storage.json", *, packed: bool = False) -> None:
    folder = home / f".foundry/cache/rpc/{CHAIN_ID}/10"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found).encode()
    (folder / name).write_bytes(zstandard.compress(text) if packed else text)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["storage.json", "storage-0f0f.json"])
def test_a_file_of_the_block_gives_its_values(tmp_path: Path, packed: bool, name: str) -> None:
    write(tmp_path, content(), name, packed=packed)
    found = anvil_values(CHAIN_ID, PinnedBlock.read(HEADER), tmp_path)
    assert found is not None
    assert found.accounts[TOKEN] == RemoteAccount(5, 1, CODE)
    assert found.accounts[b"\xa1" * 20] == RemoteAccount(1, 0)
    assert found.slots == {TOKEN: {0: 5, 1: 0}}


@pytest.mark.parametrize(
    "wrong",
    [
        content(timestamp="0x1"), content(prevrandao="0x" + "78" * 32), content(basefee=8),
        {**content(), "block_hashes": {"0x9": "0x" + "00" * 32}}, {**content(), "meta": {}},
        {}, [], {**content(), "storage": {"0x00": {}}},
    ],
)  # fmt: skip
def test_a_file_of_another_block_or_form_is_not_used(tmp_path: Path, wrong: Any) -> None:
    write(tmp_path, wrong)
    assert anvil_values(CHAIN_ID, PinnedBlock.read(HEADER), tmp_path) is None


def test_a_code_that_is_not_the_one_of_its_hash_is_left_out(tmp_path: Path) -> None:
    wrong = content()
    wrong["accounts"]["0x" + TOKEN.hex()]["code_hash"] = "0x" + "12" * 32
    write(tmp_path, wrong)
    found = anvil_values(CHAIN_ID, PinnedBlock.read(HEADER), tmp_path)
    assert found is not None
    assert TOKEN not in found.accounts


def test_a_source_uses_it_and_compares_some_of_it(
    endpoint: FakeEndpoint, source_of: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    endpoint.methods["eth_getBlockByNumber"] = lambda tag, full: HEADER
    write(tmp_path, content())
    endpoint.slots[(TOKEN, 0)] = 5
    source = source_of(10, cache=True)
    endpoint.forget()
    assert source.fetch(Wanted({TOKEN}, {(TOKEN, 0)})).slots[(TOKEN, 0)] == 5
    assert not endpoint.bodies
    endpoint.slots[(TOKEN, 0)] = 6
    with pytest.raises(ForkError, match=r"differs from anvil's storage\.json"):
        source.fetch(Wanted(slots={(TOKEN, 9)}))
