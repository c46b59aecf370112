"""The rules of a remote chain."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from fastevm.chains import chains
from fastevm.errors import UnknownForkError
from fastevm.fork import RemoteSource, rules_of
from fastevm.spec.schedule import ForkSchedule

from .fake_endpoint import FakeEndpoint

Open = Callable[..., RemoteSource]
NOW = 1_790_000_000


def schedule(source: RemoteSource, hardfork: str | None = None) -> ForkSchedule:
    return rules_of(source, hardfork).activations.at(source.block_number, NOW)


@pytest.mark.parametrize("chain", chains(), ids=lambda one: one.name)
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
    assert "chain 4242 is unknown" in caplog.text
    assert "hardfork=" in caplog.text


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
