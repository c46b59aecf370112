"""What stands at the end of web3.py's `tests/integration/go_ethereum/conftest.py`.

There these fixtures replace those that start go-ethereum from a packed data directory: the chain of
the same contracts, which web3.py's own generator makes, on the node that DEVELOPMENT_NODE names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web3 import Web3

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess, fastevm_node
from fastevm.node.dev_accounts import dev_accounts

CHAIN_ID = 131277322940537  # the tests have it in their transactions
BLOCK_SECONDS = 3  # as their go-ethereum: replacements must find the first one waiting


@pytest.fixture(scope="session")
def development_node() -> Iterator[NodeProcess]:
    options = ("--chain-id", str(CHAIN_ID))
    if os.environ["DEVELOPMENT_NODE"] == "anvil":
        node = NodeProcess([str(anvil_binary()), "--silent", *options])
    else:
        node = fastevm_node(*options, module=("fastevm", "dev"))
    node.start()
    yield node
    node.kill()


@pytest.fixture(scope="session")
def geth_fixture_data(development_node: NodeProcess) -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "generate_fixtures"))
    import common  # type: ignore[import-not-found]
    import go_ethereum as generator  # type: ignore[import-not-found]

    w3 = Web3(Web3.HTTPProvider(development_node.url))
    keyfile, coinbase = dev_accounts(2)
    common.COINBASE = w3.to_checksum_address(coinbase.address)
    common.KEYFILE_ACCOUNT_ADDRESS = w3.to_checksum_address(keyfile.address)
    common.KEYFILE_ACCOUNT_PKEY = "0x" + keyfile.private_key.hex()
    generator.time.sleep = lambda _: w3.provider.make_request("evm_mine", [])
    found: dict[str, Any] = generator.setup_chain_state(w3)
    w3.provider.make_request("evm_setIntervalMining", [BLOCK_SECONDS])
    return found


@pytest.fixture
def start_geth_process_and_yield_port(
    development_node: NodeProcess, geth_fixture_data: dict[str, Any]
) -> Iterator[int]:
    mark = development_node.ask("evm_snapshot")
    yield development_node.port
    development_node.ask("evm_revert", mark)
