"""Runs eth-tester's tests of backends on the backend that the environment selects."""

import pytest
from eth_tester import EthereumTester
from eth_tester.backends import get_chain_backend
from eth_tester.utils.backend_testing import BaseTestBackendDirect


class TestBackend(BaseTestBackendDirect):  # type: ignore[misc]
    @pytest.fixture
    def eth_tester(self) -> EthereumTester:
        return EthereumTester(get_chain_backend())
