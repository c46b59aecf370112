"""A block of a remote chain, to be executed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastevm.chain.config import ChainConfig
from fastevm.errors import ForkError
from fastevm.execution.block import BlockBuilder
from fastevm.execution.transaction import Transaction
from fastevm.fork.remote_source import RemoteSource
from fastevm.state.layer import Layer
from fastevm.state.remote import RemoteState, settled
from fastevm.state.source import Wanted, call_object
from fastevm.types import Receipt
from fastevm.wire.blocks import header_from_json
from fastevm.wire.text.members import read_bytes
from fastevm.wire.transactions import transaction_from_json

ASKED_AHEAD: Final = 32  # calls that the source gets


class RemoteBlock:
    """A block of a remote chain, to be executed here.

    ``layer``: the state in front of it; what its transactions read is known there as far as the
    endpoint says it ahead. ForkError for a block that the endpoint does not have.
    """

    def __init__(self, source: RemoteSource, config: ChainConfig, block: int | bytes) -> None:
        found = source.block_with_transactions(block)
        if found is None:
            raise ForkError(f"{source.endpoint}: there is no block {_named(block)}")
        self.source, self.config, self.found = source, config, found
        self.header = header_from_json(found)
        self.hash = read_bytes(found.get("hash"), "hash", 32)
        if self.header.number == 0:
            raise ForkError("the first block of a chain has no transactions to stand in front of")
        self.transactions = tuple(transaction_from_json(one) for one in found["transactions"])
        self.schedule = config.activations.at(
            self.header.number, self.header.timestamp, after_merge=None
        )
        remote = RemoteState(source.at(self.header.parent_hash))
        remote.fetch(reads_of(self.transactions))
        self.layer = Layer.remote(remote)

    def executed(self, count: int) -> BlockBuilder:
        """The block in the making, behind its first ``count`` transactions."""

        def run() -> BlockBuilder:
            builder = BlockBuilder(
                self.layer,
                self.header,
                self.schedule,
                chain_id=self.config.chain_id,
                deposit_contract=self.config.deposit_contract,
                withdrawals=None,
            )
            builder.begin()
            builder.add_all(self.transactions[:count])
            return builder

        return settled(self.layer, run)

    def receipts(self) -> tuple[Receipt, ...]:
        """What all its transactions give when they are executed here, in their order."""
        return self.executed(len(self.transactions)).receipts

    def state_before(self, index: int) -> Layer:
        """The state in front of transaction ``index``; the number of them is allowed too."""
        if not 0 <= index <= len(self.transactions):
            raise ForkError(
                f"block {self.header.number} has {len(self.transactions)} transactions: "
                f"there is no number {index}"
            )
        return self.executed(index).snapshot()


def reads_of(transactions: Sequence[Transaction]) -> Wanted:
    """What to ask for in front of a block: its accounts, and a call of each kind as a hint.

    Traces of the whole block would name every read, but anvil needs 12 s for 200 transactions, and
    what the hints leave out takes a few round trips.
    """
    kinds: dict[tuple[bytes | None, bytes], Mapping[str, Any]] = {}
    wanted = Wanted()
    for one in transactions:
        wanted.accounts.update(address for address in (one.sender, one.to) if address is not None)
        kind = (one.to, one.data[:4])
        if one.sender is not None and kind not in kinds and len(kinds) < ASKED_AHEAD:
            kinds[kind] = call_object(one.sender, one.to, one.data, one.value)
    wanted.calls = list(kinds.values())
    return wanted


def _named(block: int | bytes | Mapping[str, Any]) -> str:
    return "0x" + block.hex() if isinstance(block, bytes) else str(block)
