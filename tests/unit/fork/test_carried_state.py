"""Tests which values a fork keeps and which it fetches again when it moves to another block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fastevm import EVM
from fastevm.core.state.layer import Layer
from fastevm.errors import ForkError

from .fake_endpoint import CHAIN_ID, FakeEndpoint, RpcError, block, block_hash

TOKEN, COUNTER, NEW = b"\x70" * 20, b"\x71" * 20, b"\x72" * 20
ADDS = bytes.fromhex("60005460015401600254015f5260205ff3")  # returns the sum of slots 0 to 2
READS = ("eth_getStorageAt", "eth_getBalance", "eth_getTransactionCount", "eth_getCode")


class Chain:
    """Serves the states of blocks 5 to 8 with real roots and proofs."""

    def __init__(self, endpoint: FakeEndpoint) -> None:
        self.endpoint, self.layers = endpoint, {}
        machine = EVM()
        for address in (TOKEN, COUNTER):
            self.put(machine, address, ADDS, 1)
        self.layers[5] = machine.state
        machine.set_storage(COUNTER, 0, 100)
        self.layers[6] = machine.state
        self.put(machine, TOKEN, ADDS, 7)
        self.layers[7] = machine.state
        machine.set_account(NEW, code=ADDS)
        self.put(machine, TOKEN, ADDS + b"\x00", 7)
        self.layers[8] = machine.state
        for name in ("eth_getBlockByNumber", "eth_getBlockByHash", "eth_getProof", *READS):
            endpoint.methods[name] = getattr(self, name)

    def put(self, machine: EVM, address: bytes, code: bytes, balance: int) -> None:
        machine.set_account(address, code=code, balance=balance)
        for slot in range(3):
            machine.set_storage(address, slot, 10 + slot)

    def layer(self, at: Any) -> Layer:
        return self.layers[int(at["blockHash"][-8:] if isinstance(at, dict) else at, 16)]

    def header(self, number: int) -> dict[str, Any]:
        layer = self.layers.get(number, Layer.empty())
        return block(number) | {"stateRoot": "0x" + layer.state_root().hex()}

    def eth_getBlockByNumber(self, tag: str, full: bool) -> Any:
        return self.header(8 if tag == "latest" else int(tag, 16))

    def eth_getBlockByHash(self, digest: str, full: bool) -> Any:
        return self.header(int(digest[-8:], 16))

    def machine(self, at: Any) -> EVM:
        return EVM(state=self.layer(at))

    def eth_getStorageAt(self, address: str, slot: str, at: Any) -> str:
        return f"0x{self.machine(at).storage(address, int(slot, 16)):064x}"

    def eth_getBalance(self, address: str, at: Any) -> str:
        return hex(self.machine(at).balance(address))

    def eth_getTransactionCount(self, address: str, at: Any) -> str:
        return hex(self.machine(at).nonce(address))

    def eth_getCode(self, address: str, at: Any) -> str:
        return "0x" + self.machine(at).code(address).hex()

    def eth_getProof(self, address: str, keys: list[str], at: Any) -> Any:
        proof = self.layer(at).proof(address, [])
        return {
            "accountProof": ["0x" + node.hex() for node in proof.nodes],
            "storageHash": "0x" + proof.storage_root.hex(),
        }


@pytest.fixture
def chain(endpoint: FakeEndpoint) -> Chain:
    return Chain(endpoint)


@pytest.fixture
def fork_of(endpoint: FakeEndpoint) -> Callable[..., EVM]:
    def fork(number: int, **options: Any) -> EVM:
        options = {"backoff": 0.01, "timeout": 2.0, "cache": False, "hardfork": "osaka"} | options
        return EVM.fork(endpoint.url, number, **options)

    return fork


def total(machine: EVM, address: bytes) -> int:
    return int.from_bytes(machine.call(address).output, "big")


def test_a_move_fetches_only_the_storage_that_changed(
    endpoint: FakeEndpoint, chain: Chain, fork_of: Callable[..., EVM]
) -> None:
    old = fork_of(5)
    assert (total(old, TOKEN), total(old, COUNTER)) == (33, 33)
    endpoint.forget()
    new = old.fork_at(6)
    assert len(endpoint.bodies) == 2  # a request for the block, and one for the proofs
    assert (total(new, TOKEN), total(new, COUNTER)) == (33, 123)
    counter, token = "0x" + COUNTER.hex(), "0x" + TOKEN.hex()
    assert {params[0] for params in endpoint.asked("eth_getStorageAt")} == {counter}
    assert not {"eth_getCode", "eth_getBalance"} & {call["method"] for call in endpoint.calls()}
    assert len(endpoint.bodies) == 3
    assert token in {params[0] for params in endpoint.asked("eth_getProof")}


def test_a_second_move_asks_for_no_proof_twice(
    endpoint: FakeEndpoint, chain: Chain, fork_of: Callable[..., EVM]
) -> None:
    old = fork_of(5)
    assert total(old, TOKEN) == 33
    middle = old.fork_at(6)
    endpoint.forget()
    new = middle.fork_at(7)
    assert total(new, TOKEN) == 33
    assert new.balance(TOKEN) == 7
    asked = [tuple(map(str, params)) for params in endpoint.asked("eth_getProof")]
    assert len(asked) == len(set(asked))
    assert {params[2] for params in asked} == {"0x7"}
    assert not endpoint.asked("eth_getStorageAt")
    assert len(endpoint.bodies) == 2


def test_a_move_back_gives_the_older_values(chain: Chain, fork_of: Callable[..., EVM]) -> None:
    new = fork_of(8)
    assert total(new, COUNTER) == 123
    old = new.fork_at(5)
    assert (total(old, COUNTER), old.code(NEW), old.code(TOKEN)) == (33, b"", ADDS)
    assert (old.block.number, new.block.number) == (5, 8)


def test_changed_code_is_fetched_again(chain: Chain, fork_of: Callable[..., EVM]) -> None:
    old = fork_of(7)
    assert (old.code(TOKEN), old.code(NEW)) == (ADDS, b"")
    new = old.fork_at(8)
    assert (new.code(TOKEN), new.code(NEW)) == (ADDS + b"\x00", ADDS)


def test_local_changes_stay_in_the_old_machine(chain: Chain, fork_of: Callable[..., EVM]) -> None:
    old = fork_of(5)
    old.unchecked = "nonce"
    old.set_storage(TOKEN, 0, 1_000)
    assert total(old, TOKEN) == 1_023
    new = old.fork_at(6)
    assert (total(new, TOKEN), total(old, TOKEN)) == (33, 1_023)
    assert new.unchecked == {"nonce"}
    assert new.chain_id == CHAIN_ID


def test_proofs_that_the_state_root_does_not_confirm_keep_nothing(
    endpoint: FakeEndpoint, chain: Chain, fork_of: Callable[..., EVM]
) -> None:
    old = fork_of(5)
    assert total(old, COUNTER) == 33
    stale = chain.layers[5]
    endpoint.methods["eth_getProof"] = lambda address, keys, at: {
        "accountProof": ["0x" + node.hex() for node in stale.proof(address, []).nodes],
        "storageHash": "0x" + stale.proof(address, []).storage_root.hex(),
    }
    assert total(old.fork_at(6), COUNTER) == 123


@pytest.mark.parametrize("answer", [None, {}, {"accountProof": [7]}, {"accountProof": ["0x80"]}])
def test_malformed_proofs_keep_nothing(
    answer: Any, endpoint: FakeEndpoint, chain: Chain, fork_of: Callable[..., EVM]
) -> None:
    old = fork_of(5)
    assert total(old, COUNTER) == 33
    endpoint.methods["eth_getProof"] = lambda *_: answer
    assert total(old.fork_at(6), COUNTER) == 123


def test_an_endpoint_without_proofs_is_asked_for_one_batch_of_them(
    endpoint: FakeEndpoint, chain: Chain, fork_of: Callable[..., EVM]
) -> None:
    old = fork_of(5)
    assert total(old, COUNTER) == 33
    endpoint.refused.add("eth_getProof")
    middle = old.fork_at(6)
    assert total(middle, COUNTER) == 123
    endpoint.forget()
    assert total(middle.fork_at(7), COUNTER) == 123
    assert not endpoint.asked("eth_getProof")


def test_refused_proofs_of_an_old_state_are_no_error(
    endpoint: FakeEndpoint, chain: Chain, fork_of: Callable[..., EVM]
) -> None:
    def refuse(*_: Any) -> Any:
        raise RpcError(-32000, "distance to target block exceeds maximum proof window")

    old = fork_of(5)
    assert total(old, COUNTER) == 33
    endpoint.methods["eth_getProof"] = refuse
    assert total(old.fork_at(6), COUNTER) == 123


def test_kept_values_reach_the_disk_cache(
    endpoint: FakeEndpoint, chain: Chain, fork_of: Callable[..., EVM]
) -> None:
    old = fork_of(block_hash(5), cache=True)
    assert total(old, TOKEN) == 33
    old.fork_at(block_hash(6))
    endpoint.forget()
    assert total(fork_of(block_hash(6), cache=True), TOKEN) == 33
    assert not endpoint.asked("eth_getStorageAt")


def test_a_machine_without_an_upstream_cannot_move() -> None:
    with pytest.raises(ForkError, match=r"only a machine that EVM\.fork returned"):
        EVM().fork_at(5)


def test_an_unknown_block_is_an_error(chain: Chain, fork_of: Callable[..., EVM]) -> None:
    chain.endpoint.methods["eth_getBlockByNumber"] = lambda tag, full: (
        chain.header(5) if tag == "0x5" else None
    )
    with pytest.raises(ForkError, match="there is no block 9"):
        fork_of(5).fork_at(9)
