"""Tests that chains of the ZK Stack are rejected with an explanation."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fastevm import EVM
from fastevm.errors import ForkError
from fastevm.fork import RemoteSource, rules_of
from fastevm.fork.zksync import NAMES
from fastevm.node import forked_node
from fastevm.node.remote.options import ForkOptions

from .fake_endpoint import HEAD, FakeEndpoint, block

Open = Callable[..., RemoteSource]


@pytest.mark.parametrize("chain_id", [324, 300, 2_741])
@pytest.mark.parametrize("hardfork", [None, "osaka"])
def test_a_chain_of_the_list_is_refused(
    endpoint: FakeEndpoint, source_of: Open, chain_id: int, hardfork: str | None
) -> None:
    endpoint.chain_id = chain_id
    with pytest.raises(ForkError, match="runs the ZKsync VM") as caught:
        rules_of(source_of(), hardfork)
    assert NAMES[chain_id] in str(caught.value)


def test_an_unknown_chain_is_recognised_by_its_blocks(
    endpoint: FakeEndpoint, source_of: Open
) -> None:
    endpoint.methods["eth_getBlockByNumber"] = lambda *_: {**block(HEAD), "l1BatchNumber": "0x1"}
    with pytest.raises(ForkError, match=r"chain 4242 \(of the ZK Stack\)"):
        rules_of(source_of())


def test_machines_and_nodes_do_not_start(endpoint: FakeEndpoint, own_cache: Path) -> None:
    endpoint.chain_id = 324
    with pytest.raises(ForkError, match="ZKsync Era"):
        EVM.fork(endpoint.url, cache=False)
    with pytest.raises(ForkError, match="ZKsync Era"):
        forked_node(ForkOptions(urls=(endpoint.url,), cache=False))
