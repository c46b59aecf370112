"""Runs web3.py's integration tests on fastevm's in-process providers.

The file is copied next to web3.py's tests of go-ethereum over HTTP, and uses their fixtures. It
runs every case that the tester provider passes or skips, and the cases of asynchronous and
persistent connections.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from web3 import AsyncWeb3, Web3
from web3._utils.module_testing import (
    AsyncEthModuleTest,
    AsyncNetModuleTest,
    EthModuleTest,
    GoEthereumAsyncDebugModuleTest,
    GoEthereumAsyncTxPoolModuleTest,
    GoEthereumDebugModuleTest,
    GoEthereumTxPoolModuleTest,
    NetModuleTest,
    Web3ModuleTest,
)
from web3._utils.module_testing.persistent_connection_provider import (
    PersistentConnectionProviderTest,
)
from web3._utils.module_testing.web3_module import AsyncWeb3ModuleTest

from fastevm.integrations.web3 import (
    AsyncFastevmProvider,
    FastevmProvider,
    PersistentFastevmProvider,
)


@pytest.fixture
def w3(start_geth_process_and_yield_port: None, development_node: Any) -> Web3:
    return Web3(FastevmProvider(development_node.local))


@pytest_asyncio.fixture(params=[AsyncFastevmProvider, PersistentFastevmProvider])
async def async_w3(
    request: Any, start_geth_process_and_yield_port: None, development_node: Any
) -> AsyncIterator[AsyncWeb3]:
    provider = request.param(development_node.local)
    found = AsyncWeb3(provider)
    if request.param is PersistentFastevmProvider:
        await found.provider.connect()
    yield found
    await found.provider.disconnect()


class TestWeb3(Web3ModuleTest):
    def _check_web3_client_version(self, client_version: str) -> None:
        assert "fastevm" in client_version


class TestEth(EthModuleTest):
    # The test expects an exception of a signer written in Python, which no node raises.
    test_invalid_eth_sign_typed_data = None


class TestNet(NetModuleTest):
    pass


class TestDebug(GoEthereumDebugModuleTest):
    pass


class TestTxPool(GoEthereumTxPoolModuleTest):
    pass


class TestAsyncWeb3(AsyncWeb3ModuleTest):
    def _check_web3_client_version(self, client_version: str) -> None:
        assert "fastevm" in client_version


class TestAsyncEth(AsyncEthModuleTest):
    # web3.py itself fails before it sends the request: `async_map_if_collection` unpacks values as
    # pairs.
    test_eth_sign_typed_data = test_invalid_eth_sign_typed_data = None


class TestAsyncNet(AsyncNetModuleTest):
    pass


class TestAsyncDebug(GoEthereumAsyncDebugModuleTest):
    pass


class TestAsyncTxPool(GoEthereumAsyncTxPoolModuleTest):
    pass


@pytest.mark.parametrize("async_w3", [PersistentFastevmProvider], indirect=True)
class TestPersistent(PersistentConnectionProviderTest):
    pass
