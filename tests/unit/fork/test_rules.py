"""Tests how a fork determines the rules of the remote chain."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from fastevm.chain.named import chains
from fastevm.core.execution.op_stack.predeploys import L1_BLOCK
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.source import RemoteAccount
from fastevm.errors import UnknownForkError
from fastevm.fork import RemoteSource, rules_of

from .fake_endpoint import HEAD, FakeEndpoint, block

Open = Callable[..., RemoteSource]
NOW = 1_790_000_000


def schedule(source: RemoteSource, hardfork: str | None = None) -> ForkSchedule:
    return rules_of(source, hardfork).activations.at(source.block_number, NOW)


@pytest.mark.parametrize("chain", chains(), ids=lambda item: item.name)
def test_a_chain_of_the_registry_has_its_own_forks(
    endpoint: FakeEndpoint, source_of: Open, chain: Any
) -> None:
    endpoint.chain_id = chain.chain_id
    rules = rules_of(source_of())
    assert repr(rules) == repr(chain.config())


def test_an_unknown_chain_has_the_newest_fork_and_a_warning(
    source_of: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert schedule(source_of()).name == "BPO2"
    assert "unknown chain 4242" in caplog.text
    assert "hardfork=" in caplog.text


@pytest.mark.parametrize(
    ("header", "fork"),
    [
        ({"extraData": "0x01" + "00" * 16, "requestsHash": "0x"}, "Karst"),
        ({"extraData": "0x00" + "00" * 8, "requestsHash": "0x"}, "Isthmus"),
        ({"extraData": "0x00" + "00" * 8}, "Holocene"),
        ({"extraData": "0x", "parentBeaconBlockRoot": "0x"}, "Granite"),
        ({"extraData": "0x", "withdrawalsRoot": "0x"}, "Canyon"),
        ({"extraData": "0x"}, "Regolith"),
    ],
)
def test_an_unknown_chain_with_the_predeploys_of_the_op_stack_has_its_rules(
    endpoint: FakeEndpoint,
    source_of: Open,
    caplog: pytest.LogCaptureFixture,
    header: dict[str, str],
    fork: str,
) -> None:
    endpoint.accounts[L1_BLOCK] = RemoteAccount(0, 1, b"\x60")
    endpoint.methods["eth_getBlockByNumber"] = lambda number, full: {**block(HEAD), **header}
    with caplog.at_level(logging.WARNING):
        assert schedule(source_of()).name == fork
    assert f"rules of {fork} (OP stack)" in caplog.text


def test_rules_come_with_the_first_round_trip(endpoint: FakeEndpoint, source_of: Open) -> None:
    endpoint.chain_id = 31_337
    endpoint.methods["eth_config"] = lambda: {"current": {"precompiles": {"BLS12_G1ADD": "0xb"}}}
    source = source_of()
    assert schedule(source).name == "Prague"
    assert source.counters.round_trips == len(endpoint.bodies) == 1


def test_rules_are_asked_for_apart_where_batches_are_refused(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    endpoint.chain_id = 31_337
    endpoint.batch_limit = 1
    endpoint.methods["eth_config"] = lambda: {"current": {"precompiles": {"BLS12_G1ADD": "0xb"}}}
    assert schedule(source_of()).name == "Prague"


def test_a_name_has_precedence(source_of: Open) -> None:
    assert schedule(source_of(), "london").name == "London"
    with pytest.raises(UnknownForkError, match="did you mean"):
        rules_of(source_of(), "cancoon")


@pytest.mark.parametrize("chain_id", [1337, 31337])
def test_a_development_node_names_its_fork(
    endpoint: FakeEndpoint, source_of: Open, chain_id: int
) -> None:
    endpoint.chain_id = chain_id
    endpoint.methods["eth_config"] = lambda: {"current": {"precompiles": {"BLS12_G1ADD": "0xb"}}}
    assert schedule(source_of()).name == "Prague"
    info = {"hardFork": "Cancun"}
    real = endpoint._result
    endpoint._result = lambda method, params: (  # type: ignore[method-assign]
        info if method == "anvil_nodeInfo" else real(method, params)
    )
    assert schedule(source_of()).name == "Cancun"
    info["hardFork"] = "Unheard"
    assert schedule(source_of()).name == "Prague"
    endpoint.methods.clear()
    assert schedule(source_of()).name == "BPO2"
