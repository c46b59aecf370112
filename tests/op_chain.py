"""Helps tests of OP-stack development chains: a time, two accounts, their transactions."""

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.production.simulated_l1 import Deposit

ALICE, BOB = b"\xa1" * 20, b"\xb0" * 20
START = 1_800_000_000  # seconds; a multiple of 12, the seconds of a block of L1


def deposit(**fields) -> Deposit:
    values = {"sender": ALICE, "to": BOB, "mint": 10**18, "gas_limit": 100_000}
    return Deposit(**{**values, **fields})


def payment(node: Node, nonce: int = 0, **fields) -> bytes:
    """Submits a payment of one wei to Bob and returns the hash."""
    values = {"to": BOB, "value": 1, "gas_limit": 21_000, "chain_id": DEV_CHAIN_ID, "nonce": nonce}
    prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 10}
    made = Transaction.build(**{**values, **prices, **fields})
    return node.submit(made.sign(node.accounts[0].private_key).raw)
