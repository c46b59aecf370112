"""Backend for eth-tester.

Environment: ``ETHEREUM_TESTER_CHAIN_BACKEND=fastevm.integrations.eth_tester.Backend``.
"""

from fastevm.integrations.eth_tester.tester_backend import Backend

__all__ = ["Backend"]
