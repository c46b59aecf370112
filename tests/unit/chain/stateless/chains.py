"""Makes blocks that read, write and delete state on a small chain, and records their witnesses."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastevm.chain.chain import Chain
from fastevm.chain.stateless import Witness, witness_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from tests.unit.chain.blocks import KEY, build, grow, new_chain, payment

# Contracts. Their calldata is a list of words. WRITER stores word 0 in the slot that word 1 names.
WRITER = bytes.fromhex("aa" * 20)
# Reads the balance of the address in its calldata, then stores that account's code hash in slot 0.
LOOKER = bytes.fromhex("bb" * 20)
OLD_HASH = bytes.fromhex("cc" * 20)
SIZER = bytes.fromhex("dd" * 20)
QUITTER = bytes.fromhex("ee" * 20)
CALLER = bytes.fromhex("ff" * 20)

ALLOC: dict[str, Any] = {
    WRITER.hex(): {
        "code": "0x60003560203555",
        "storage": {f"0x{slot:064x}": "0x07" for slot in range(1, 40)},
    },
    LOOKER.hex(): {"code": "0x60003580315080503f600055".replace("8050", "")},
    OLD_HASH.hex(): {"code": "0x60003540600055"},
    SIZER.hex(): {"code": "0x6000353b600055"},
    QUITTER.hex(): {"code": "0x600035ff", "balance": "0x5", "storage": {"0x" + "01" * 32: "0x1"}},
    CALLER.hex(): {"code": "0x60006000600060006000600035" + "5af1"},
    **{f"{number:040x}": {"balance": "0x1"} for number in range(0x1000, 0x1040)},
}


class Sample(NamedTuple):
    """A chain, its head, and the head's witness."""

    chain: Chain
    block: Block
    witness: Witness


def word(value: int | bytes) -> bytes:
    return value.to_bytes(32, "big") if isinstance(value, int) else value.rjust(32, b"\0")


def call(nonce: int, to: bytes, *arguments: int | bytes, **fields: Any) -> Transaction:
    """Returns a transaction that calls a contract."""
    data = b"".join(map(word, arguments))
    return payment(nonce, value=0, to=to, gas_limit=400_000, data=data, **fields)


def listing(nonce: int, to: bytes, *arguments: int | bytes, entries: Any) -> Transaction:
    """Returns a transaction that calls a contract. ``entries``: access list of (address, slots)."""
    return Transaction.build(
        gas_price=2 * 10**9,
        gas_limit=400_000,
        to=to,
        value=0,
        nonce=nonce,
        data=b"".join(map(word, arguments)),
        access_list=entries,
        chain_id=1,
    ).sign(KEY)


def sample(
    transactions: list[Transaction], fork: str = "Osaka", blocks: int = 1, **changes: Any
) -> Sample:
    """Returns a chain with these transactions in its head, and the head's witness."""
    chain = new_chain(fork, ALLOC)
    grow(chain, blocks)
    chain.add(build(chain, transactions=transactions, **changes)[0])
    return Sample(chain, chain.head, recorded(chain, chain.head))


def recorded(chain: Chain, block: Block) -> Witness:
    """Returns the witness of a block."""
    layer = chain.layer_of(block.header.parent_hash)
    return witness_of(block, layer, chain.config, lambda item: chain.block_by_hash(item).header)
