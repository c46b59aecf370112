"""Tests reads during which the endpoint mines a block."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import RemoteAccount, Wanted
from fastevm.fork import RemoteSource

from .fake_endpoint import HEAD, FakeEndpoint

Open = Callable[..., RemoteSource]
ALICE, TOKEN = b"\xa1" * 20, b"\x70" * 20
WANTED = Wanted({ALICE}, {(TOKEN, 1)})


class Mining:
    """Acts like anvil: mines a block before the first read.

    eth_blockNumber returns the new block only from its fourth call on.
    """

    def __init__(self, fake: FakeEndpoint, *, mines: bool) -> None:
        self.fake, self.mines, self.asked = fake, mines, 0
        self.reads = 0
        fake.slots[TOKEN, 1] = 11
        fake.accounts[ALICE] = RemoteAccount(5, 1)
        fake.methods |= {
            "web3_clientVersion": lambda: "anvil/v1.7.1",
            "eth_blockNumber": self.head,
            "eth_call": self.hash_of_next,
            "eth_getStorageAt": self.slot,
        }

    def slot(self, address: str, slot: str, at: Any) -> str:
        self.reads += 1
        wrong = self.mines and self.reads == 1
        return hex(int(self.fake.slot(address, slot), 16) + wrong)

    def hash_of_next(self, call: Any, at: str, overrides: Any, block: Any) -> str:
        assert at == "latest"
        assert block == {"number": hex(HEAD + 2)}
        assert f"{HEAD + 1:016x}40" in overrides[call["to"]]["code"]
        made = b"a hash" if self.mines and self.reads else str(HEAD + 1).encode()
        return "0x" + keccak256(made).hex()

    def head(self) -> str:
        self.asked += 1
        return hex(HEAD + (self.mines and self.asked > 3))


def test_values_are_read_again_once_the_next_block_is_there(
    endpoint: FakeEndpoint, source_of: Open, tmp_path: Path
) -> None:
    mining = Mining(endpoint, mines=True)
    source = source_of(cache=tmp_path)
    assert source.fetch(WANTED).slots[TOKEN, 1] == 11
    assert mining.asked > 3
    source.fetch(Wanted(slots={(TOKEN, 2)}))
    assert len(endpoint.asked("eth_call")) == 1, "the block is an old one now"
    endpoint.forget()
    again = source_of(HEAD, cache=tmp_path)
    assert again.fetch(WANTED).slots[TOKEN, 1] == 11


def test_nothing_wrong_is_kept(endpoint: FakeEndpoint, source_of: Open, tmp_path: Path) -> None:
    Mining(endpoint, mines=True)
    source_of(HEAD, cache=tmp_path).fetch(WANTED)
    offline = source_of(HEAD, cache=tmp_path, offline=True, chain_id=endpoint.chain_id)
    assert offline.fetch(WANTED).slots[TOKEN, 1] == 11


@pytest.mark.parametrize("block", ["latest", HEAD])
def test_a_node_that_makes_no_block_is_asked_twice_more(
    endpoint: FakeEndpoint, source_of: Open, block: Any
) -> None:
    mining = Mining(endpoint, mines=False)
    source = source_of(block)
    trips = source.counters.round_trips
    assert source.fetch(WANTED).slots[TOKEN, 1] == 11
    assert source.counters.round_trips == trips + 3
    assert mining.reads == 1


def test_a_head_that_changes_during_the_check_is_noticed(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    """In this case, anvil runs the check on the old state, which lacks the next block's hash."""
    mining = Mining(endpoint, mines=True)

    def hash_in_old_state(call: Any, at: str, overrides: Any, block: Any) -> str:
        mining.asked = 3  # the next eth_blockNumber returns the new block
        return "0x" + keccak256(str(HEAD + 1).encode()).hex()

    endpoint.methods["eth_call"] = hash_in_old_state
    source = source_of()
    assert source.fetch(WANTED).slots[TOKEN, 1] == 11
    assert mining.reads == 2


@pytest.mark.parametrize("client", ["anvil/v1.7.1", "Geth/v1.16", "anvil/v1.7.1 (fastevm/v0.1.0)"])
def test_an_old_block_and_another_client_cost_nothing(
    endpoint: FakeEndpoint, source_of: Open, client: str
) -> None:
    Mining(endpoint, mines=False)
    endpoint.methods["web3_clientVersion"] = lambda: client
    source = source_of(HEAD - 1 if client == "anvil/v1.7.1" else "latest")
    trips = source.counters.round_trips
    source.fetch(WANTED)
    assert source.counters.round_trips == trips + 1


def test_a_node_that_refuses_the_question_is_taken_as_it_is(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    Mining(endpoint, mines=False)
    endpoint.refused.add("eth_call")
    assert source_of().fetch(WANTED).slots[TOKEN, 1] == 11
