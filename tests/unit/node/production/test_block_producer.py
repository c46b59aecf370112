"""Tests which transactions a producer includes in a block."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    """The gas limit of the last transaction, 30 million, is more than the gas that is left.

    In Amsterdam, it only needs CAP of regular gas. The rest of its limit can only pay state gas.
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


@contextmanager
def address_space(more: int) -> Iterator[None]:
    """Limits the address space of this process to ``more`` bytes above its current size."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_a_transaction_that_needs_too_much_memory_leaves_the_pool() -> None:
    node = dev_node(accounts=2, mining=Mining.MANUAL, hardfork="prague", gas_limit=1 << 63)
    node.submission.fee_cap = 1 << 120
    rich, other = SENDERS[:2]
    node.development.amend(
        {
            # PUSH1 0, PUSH5 2**33, MSTORE: 8 GiB of memory
            BURNER: {"code": "0x60006402000000005200"},
            "0x" + rich.address.hex(): {"balance": 1 << 120},
        }
    )
    hashes = []
    for sender, to, gas in ((rich, bytes.fromhex(BURNER[2:]), 1 << 62), (other, TO, 21_000)):
        made = Transaction.build(
            nonce=0, to=to, value=0, gas_limit=gas, chain_id=31_337,
            max_fee_per_gas=10**10, max_priority_fee_per_gas=9 if sender is rich else 8,
        )  # fmt: skip
        hashes.append(node.submit(made.sign(sender.private_key).raw))
    with address_space(1 << 32):
        (block,) = node.mine()
    assert [item.hash for item in block.transactions] == hashes[1:]
    reason = node.pool.drop_reason(hashes[0])
    assert reason is not None and "more memory than the machine has" in reason
    assert not list(node.pool.hashes())
