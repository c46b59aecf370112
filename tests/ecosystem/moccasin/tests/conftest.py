"""Deploys the project's contracts for each test."""

from typing import Any

import pytest
from src import Coin, Numbers, Vault

SUPPLY = 10**24


@pytest.fixture
def coin() -> Any:
    return Coin.deploy(SUPPLY)


@pytest.fixture
def vault(coin: Any) -> Any:
    return Vault.deploy(coin)


@pytest.fixture(scope="module")
def numbers() -> Any:
    return Numbers.deploy()
