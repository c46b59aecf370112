"""Replaces the `conftest.py` that web3.py's distributions lack.

Its fixtures provide clients of the tester provider, and wait for blocks and transactions.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from web3 import EthereumTesterProvider, Web3

SECONDS = 10.0
PAUSE = 0.1


def tester(strict: bool = True) -> Web3:
    """Returns a client of a new chain, whose first account is the default sender."""
    found = Web3(EthereumTesterProvider())
    found.strict_bytes_type_checking = strict
    found.eth.default_account = found.eth.accounts[0]
    return found


@pytest.fixture
def w3() -> Web3:
    return tester()


@pytest.fixture
def w3_non_strict_abi() -> Web3:
    return tester(strict=False)


@pytest.fixture(scope="session")
def sleep_interval() -> Callable[[], float]:
    return lambda: PAUSE


TESTER = "EthereumTester"


@pytest.fixture(scope="session")
def skip_if_testrpc() -> Callable[[Any], None]:
    def look(w3: Any) -> None:
        if w3.client_version.startswith(TESTER):
            pytest.skip("the tester provider does not serve it")

    return look


@pytest.fixture(scope="session")
def async_skip_if_testrpc() -> Callable[[Any], Any]:
    async def look(async_w3: Any) -> None:
        if (await async_w3.client_version).startswith(TESTER):
            pytest.skip("the tester provider does not serve it")

    return look


@pytest.fixture(scope="session")
def wait_for_miner_start() -> Callable[..., None]:
    return lambda *_, **__: None


@pytest.fixture(scope="session")
def wait_for_block() -> Callable[..., None]:
    def wait(w3: Any, block_number: int = 1, timeout: Any = None) -> None:
        ends = time.monotonic() + SECONDS
        while w3.eth.block_number < block_number:
            assert time.monotonic() < ends, f"no block {block_number}"
            w3.manager.request_blocking("evm_mine", [])

    return wait


@pytest.fixture(scope="session")
def wait_for_transaction() -> Callable[..., Any]:
    def wait(w3: Any, txn_hash: Any, timeout: float = SECONDS) -> Any:
        return w3.eth.wait_for_transaction_receipt(txn_hash, timeout)

    return wait


@pytest.fixture(scope="session")
def async_wait_for_block() -> Callable[..., Any]:
    async def wait(async_w3: Any, block_number: int = 1, timeout: Any = None) -> None:
        ends = time.monotonic() + SECONDS
        while await async_w3.eth.block_number < block_number:
            assert time.monotonic() < ends, f"no block {block_number}"
            await async_w3.manager.coro_request("evm_mine", [])
            await asyncio.sleep(0)

    return wait


@pytest.fixture(scope="session")
def async_wait_for_transaction() -> Callable[..., Any]:
    async def wait(async_w3: Any, txn_hash: Any, timeout: float = SECONDS) -> Any:
        return await async_w3.eth.wait_for_transaction_receipt(txn_hash, timeout)

    return wait


@pytest.fixture(autouse=True)
def warn_always() -> None:
    """Makes Python show each warning every time, because some tests expect a warning."""
    warnings.simplefilter("always")
