"""Executes blocks of a remote chain locally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, cast

from fastevm.chain.config import ChainConfig
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Receipt
from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState, resolved
from fastevm.core.state.source import Wanted, call_object
from fastevm.errors import ForkError
from fastevm.fork.carried_state import carried_state
from fastevm.fork.remote_source import RemoteSource
from fastevm.rpc_client.messages import RpcRefusal
from fastevm.rpc_types.blocks import header_from_json
from fastevm.rpc_types.transactions import transaction_from_json

# members that are null in a pending block -> their size in bytes
UNSEALED: Final = {"hash": 32, "nonce": 8, "miner": 20}
ASKED_AHEAD: Final = 32  # calls passed to the source for prefetching


class RemoteBlock:
    """A block of a remote chain, for local execution.

    ``layer``: the state before the block. Raises ForkError if the endpoint does not have the block.
    """

    def __init__(
        self,
        source: RemoteSource,
        config: ChainConfig,
        block: int | bytes | Mapping[str, Any],
        old: RemoteState | None = None,
    ) -> None:
        """Prepares a block. ``block``: number, hash, or JSON object with full transactions.

        ``old``: a state whose values are kept if they did not change until this block.
        """
        found = block if isinstance(block, Mapping) else source.block_with_transactions(block)
        if found is None:
            raise ForkError(f"{source.endpoint}: there is no block {_named(block)}")
        self.source, self.config, self.found = source, config, found
        self._old = old
        self.header = header_from_json(found)
        self.hash = read_bytes(found.get("hash"), "hash", 32)
        if self.header.number == 0:
            raise ForkError("the genesis block has no transactions")
        self.transactions = tuple(transaction_from_json(item) for item in found["transactions"])
        self.schedule = config.activations.at(
            self.header.number, self.header.timestamp, after_merge=None
        )
        if self.schedule.parameters["arbos_version"]:
            raise ForkError(
                f"block {self.header.number}: transactions of Arbitrum's blocks cannot be executed"
                " again, because messages from L1 and retries are not supported"
            )

    @cached_property
    def layer(self) -> Layer:
        """The state before the block.

        The predicted reads of the block's transactions are prefetched.
        """
        remote = carried_state(self.source.at(self.header.parent_hash), self._old)
        remote.fetch(reads_of(self.transactions))
        return Layer.remote(remote)

    def executed(self, count: int) -> BlockBuilder:
        """Returns the open block after its first ``count`` transactions."""
        return resolved(self.layer, lambda: self._built(count, self.layer))

    def sealed(self, count: int, layer: Layer) -> tuple[Block, BlockResult]:
        """Returns this block with only its first ``count`` transactions, and the result.

        ``layer``: the remote state before the block, possibly with local changes.
        """
        if layer.remote_state is not None:
            layer.remote_state.fetch(reads_of(self.transactions[:count]))
        return resolved(layer, lambda: self._built(count, layer).seal())

    def receipts(self) -> Sequence[Receipt]:
        """Executes all transactions locally and returns the receipts."""
        return self.executed(len(self.transactions)).receipts

    def _built(self, count: int, layer: Layer) -> BlockBuilder:
        builder = BlockBuilder(
            layer,
            self.header,
            self.schedule,
            chain_id=self.config.chain_id,
            deposit_contract=self.config.deposit_contract,
            withdrawals=() if self.header.withdrawals_root is not None else None,
        )
        builder.begin()
        builder.add_all(self.transactions[:count])
        return builder

    def state_before(self, index: int) -> Layer:
        """Returns the state before transaction ``index``.

        If ``index`` is the number of transactions, returns the state after the last transaction.
        """
        if not 0 <= index <= len(self.transactions):
            raise ForkError(
                f"block {self.header.number} has {len(self.transactions)} transactions: "
                f"there is no index {index}"
            )
        return self.executed(index).snapshot()


def pending_block(source: RemoteSource) -> Mapping[str, Any] | None:
    """Returns the pending block with full transactions, or None if it is already sealed.

    Members that geth leaves null until the block is sealed are zero. Raises ForkError.
    """
    found = source.batch([("eth_getBlockByNumber", ("pending", True))])[0]
    if not isinstance(found, Mapping):
        return None
    zeros = {name: "0x" + "00" * size for name, size in UNSEALED.items()}
    block = zeros | {name: value for name, value in found.items() if value is not None}
    is_sealed = read_number(block.get("number"), "number") <= source.block_number
    return None if is_sealed else block


def receipt_of(source: RemoteSource, tx_hash: bytes | str) -> Mapping[str, Any]:
    """Returns the receipt of a mined transaction as a JSON object. Raises ForkError if missing."""
    name = tx_hash if isinstance(tx_hash, str) else "0x" + tx_hash.hex()
    receipt = source.batch([("eth_getTransactionReceipt", (name,))])[0]
    if isinstance(receipt, RpcRefusal):
        raise ForkError(f"{source.endpoint}: {receipt}")
    if receipt is None:
        raise ForkError(f"{source.endpoint}: there is no mined transaction {name}")
    return cast(Mapping[str, Any], receipt)


def block_and_index(receipt: Mapping[str, Any]) -> tuple[bytes, int]:
    """Returns the block hash and the transaction index in a receipt."""
    block_hash = read_bytes(receipt.get("blockHash"), "blockHash", 32)
    return block_hash, read_number(receipt.get("transactionIndex"), "transactionIndex")


def reads_of(transactions: Sequence[Transaction]) -> Wanted:
    """Returns values to prefetch for a block: its accounts, and its calls as hints.

    A trace of the whole block would name every read, but anvil takes 12 s for 200 transactions.
    Fetching the values that the hints do not cover takes only a few round trips.
    """
    kinds: dict[tuple[bytes | None, bytes], Mapping[str, Any]] = {}
    wanted = Wanted()
    for transaction in transactions:
        wanted.accounts.update(
            address for address in (transaction.sender, transaction.to) if address is not None
        )
        kind = (transaction.to, transaction.data[:4])
        if transaction.sender is not None and kind not in kinds and len(kinds) < ASKED_AHEAD:
            kinds[kind] = call_object(
                transaction.sender, transaction.to, transaction.data, transaction.value
            )
    wanted.calls = list(kinds.values())
    return wanted


def _named(block: int | bytes | Mapping[str, Any]) -> str:
    return "0x" + block.hex() if isinstance(block, bytes) else str(block)
