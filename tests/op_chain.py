"""Helps tests of OP-stack development chains: a start time, two accounts, and payments."""

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.production.simulated_l1 import Deposit

ALICE, BOB = b"\xa1" * 20, b"\xb0" * 20
# Timestamp of the genesis: a multiple of 12, the seconds of an L1 block.
START = 1_800_000_000


def deposit(**fields) -> Deposit:
    values = {"sender": ALICE, "to": BOB, "mint": 10**18, "gas_limit": 100_000}
    return Deposit(**{**values, **fields})


def payment(node: Node, nonce: int = 0, **fields) -> bytes:
    """Submits a payment of 1 wei to Bob. Returns its hash."""
    values = {"to": BOB, "value": 1, "gas_limit": 21_000, "chain_id": DEV_CHAIN_ID, "nonce": nonce}
    prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 10}
    made = Transaction.build(**{**values, **prices, **fields})
    return node.submit(made.sign(node.accounts[0].private_key).raw)
