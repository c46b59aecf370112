"""Tests of the transactions that a producer includes in a block."""

import pytest

from fastevm import Transaction
from fastevm.node import Mining, dev_node
from fastevm.node.dev_accounts import dev_accounts

BURNER = "0x" + "bb" * 20
TO = b"\xaa" * 20
CAP = 1 << 24  # cap on the regular gas of a transaction (EIP-7825)
LIMIT = 60_000_000
SENDERS = dev_accounts(4)


@pytest.mark.parametrize(("hardfork", "counts"), [("amsterdam", [4]), ("prague", [3, 1])])
def test_gas_beyond_the_cap_needs_no_room_for_regular_gas(hardfork: str, counts: list[int]) -> None:
    """The last transaction may use 30 million gas, half of it state gas. As regular gas it would
    not fit.
    """
    node = dev_node(accounts=4, mining=Mining.MANUAL, hardfork=hardfork, gas_limit=LIMIT)
    node.development.amend({BURNER: {"code": "0xfe"}})
    gas = [CAP, CAP, 30_000, 30_000_000]
    to = [bytes.fromhex(BURNER[2:])] * 2 + [TO] * 2
    for tip, sender, limit, recipient in zip((9, 8, 7, 6), SENDERS, gas, to, strict=True):
        made = Transaction.build(
            nonce=0, to=recipient, value=0, gas_limit=limit, chain_id=31_337,
            max_fee_per_gas=10**10, max_priority_fee_per_gas=tip,
        )  # fmt: skip
        node.submit(made.sign(sender.private_key).raw)
    blocks = node.mine(len(counts))
    assert [len(block.transactions) for block in blocks] == counts
