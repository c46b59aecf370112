"""Fixtures to append to web3.py's `tests/integration/go_ethereum/conftest.py`.

They replace the fixtures that start go-ethereum from a packed data directory. web3.py's own
generator makes the chain with the same contracts, on the node that DEVELOPMENT_NODE names:
``anvil``, ``fastevm dev``, or ``in process`` (without a socket).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from web3 import Web3

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess, fastevm_node
from fastevm.integrations.local_node import LocalNode
from fastevm.integrations.web3 import FastevmProvider
from fastevm.node.dev_accounts import dev_accounts

CHAIN_ID = 131277322940537  # the chain id in the tests' signed transactions
# A block ends 2 s after a test begins, because a test replaces a transaction while it is pending.
BLOCK_SECONDS = 2
GENERATOR = Path(__file__).parents[1] / "generate_fixtures"


def loaded(name: str) -> ModuleType:
    """Loads a module of the generator by path, because its folder is not a package."""
    spec = importlib.util.spec_from_file_location(name, GENERATOR / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class InProcess:
    """A node in this process. It has the attributes of a node process that the fixtures read."""

    port = None

    def __init__(self, local: LocalNode) -> None:
        self.local = local

    def ask(self, method: str, *params: Any) -> Any:
        return self.local.request(method, params)


Node = NodeProcess | InProcess


@pytest.fixture(scope="session")
def development_node() -> Iterator[Node]:
    if os.environ["DEVELOPMENT_NODE"] == "in process":
        with LocalNode(chain_id=CHAIN_ID) as local:
            yield InProcess(local)
        return
    options = ("--chain-id", str(CHAIN_ID))
    if os.environ["DEVELOPMENT_NODE"] == "anvil":
        node = NodeProcess([str(anvil_binary()), "--silent", *options])
    else:
        node = fastevm_node(*options, module=("fastevm", "dev"))
    node.start()
    yield node
    node.kill()


@pytest.fixture(scope="session")
def geth_fixture_data(development_node: Node) -> dict[str, Any]:
    common = sys.modules["common"] = loaded("common")
    generator = loaded("go_ethereum")
    if isinstance(development_node, InProcess):
        w3 = Web3(FastevmProvider(development_node.local))
    else:
        w3 = Web3(Web3.HTTPProvider(development_node.url))
    (keyfile,) = dev_accounts(1)
    common.COINBASE = common.KEYFILE_ACCOUNT_ADDRESS = w3.to_checksum_address(keyfile.address)
    common.KEYFILE_ACCOUNT_PKEY = "0x" + keyfile.private_key.hex()
    generator.time = SimpleNamespace(sleep=lambda _: w3.provider.make_request("evm_mine", []))
    found: dict[str, Any] = generator.setup_chain_state(w3)
    return found


@pytest.fixture
def start_geth_process_and_yield_port(
    development_node: Node, geth_fixture_data: dict[str, Any]
) -> Iterator[int | None]:
    mark = development_node.ask("evm_snapshot")
    development_node.ask("evm_setIntervalMining", BLOCK_SECONDS)
    yield development_node.port
    development_node.ask("evm_revert", mark)
