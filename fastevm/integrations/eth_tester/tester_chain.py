"""A chain that mines on demand and executes each transaction when it is added."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fastevm.chain.genesis import read_accounts
from fastevm.chain.system_contracts import BUILDER_CONTRACTS, SYSTEM_CONTRACTS
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.header_draft import draft_header, later_fields
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import (
    ZERO_ADDRESS,
    ZERO_HASH,
    Block,
    Header,
    Receipt,
    Withdrawal,
)
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import StateView
from fastevm.core.spec.schedule import ForkSchedule, schedule_for
from fastevm.core.state.layer import Layer
from fastevm.simulate.views import view_of

CHAIN_ID: Final = 131277322940537  # eth-tester's chain id
GAS_LIMIT: Final = 30_029_122  # gas limit of eth-tester's genesis block
ANCESTORS: Final = 256
NO_DEPOSITS: Final = ZERO_ADDRESS  # a contract that never emits logs


class Mined(Struct, frozen=True):
    """A block with the result of its execution."""

    block: Block
    receipts: tuple[Receipt, ...]
    layer: Layer
    is_pending: bool = False

    @property
    def header(self) -> Header:
        return self.block.header


class TesterChain:
    """Blocks in memory, and an open block whose transactions have been executed."""

    def __init__(
        self, accounts: Mapping[bytes, Mapping[str, Any]], fork: str = "prague", **header: Any
    ) -> None:
        self.schedule: ForkSchedule = schedule_for(fork)
        layer = Layer.of(self._system_accounts() | dict(accounts))
        genesis = self._genesis(layer, header)
        self.blocks = [Mined(genesis, (), layer)]
        self.numbers = {genesis.hash: 0}
        self.positions: dict[bytes, tuple[int, int]] = {}
        self.builder = self._open()

    def _system_accounts(self) -> dict[bytes, Mapping[str, Any]]:
        """The system contracts of the fork."""
        used = set(self.schedule.system_contracts.values())
        accounts = read_accounts(SYSTEM_CONTRACTS | BUILDER_CONTRACTS)
        return {address: fields for address, fields in accounts.items() if address in used}

    def _genesis(self, layer: Layer, header: Mapping[str, Any]) -> Block:
        rules = self.schedule.parameters
        fields: dict[str, Any] = {"gas_limit": GAS_LIMIT, "timestamp": int(time.time())}
        fields |= later_fields(self.schedule, {"base_fee_per_gas": int(rules["initial_base_fee"])})
        fields |= header
        withdrawals = () if rules["has_withdrawals"] else None
        return Block(Header(state_root=layer.state_root(), **fields), withdrawals=withdrawals)

    # --- the open block ---

    def _open(
        self,
        *,
        timestamp: int | None = None,
        coinbase: bytes = ZERO_ADDRESS,
        withdrawals: Iterable[Withdrawal] = (),
    ) -> BlockBuilder:
        parent = self.blocks[-1]
        draft = draft_header(
            parent.header,
            self.schedule,
            timestamp=parent.header.timestamp + 1 if timestamp is None else timestamp,
            coinbase=coinbase,
            gas_limit=parent.header.gas_limit,
            prev_randao=os.urandom(32) if self.schedule.parameters["proof_of_stake"] else ZERO_HASH,
        )
        builder = BlockBuilder(
            parent.layer,
            draft,
            self.schedule,
            chain_id=CHAIN_ID,
            deposit_contract=NO_DEPOSITS,
            ancestors=self._ancestors(parent.header.number),
            withdrawals=withdrawals if draft.withdrawals_root is not None else None,
        )
        builder.begin()
        return builder

    def _ancestors(self, number: int) -> list[bytes]:
        first = max(0, number - ANCESTORS + 1)
        return [mined.block.hash for mined in reversed(self.blocks[first : number + 1])]

    def add(self, transaction: Transaction) -> bytes:
        """Executes a transaction in the open block. Raises InvalidTransaction if it is invalid."""
        index = len(self.builder.transactions)
        self.builder.add(transaction)
        self.positions[transaction.hash] = (len(self.blocks), index)
        return transaction.hash

    def mine(
        self,
        coinbase: bytes = ZERO_ADDRESS,
        timestamp: int | None = None,
        withdrawals: Iterable[Withdrawal] = (),
    ) -> bytes:
        """Seals the open block and opens the next one. Returns the hash of the sealed block."""
        withdrawals = tuple(withdrawals)
        if coinbase != ZERO_ADDRESS or timestamp is not None or withdrawals:
            self._begin_again(coinbase, timestamp, withdrawals)
        block, result = self.builder.seal()
        self.numbers[block.hash] = len(self.blocks)
        self.blocks.append(Mined(block, tuple(self.builder.receipts), result.layer))
        self.builder = self._open()
        return block.hash

    def _begin_again(
        self, coinbase: bytes, timestamp: int | None, withdrawals: tuple[Withdrawal, ...]
    ) -> None:
        """Executes the open block's transactions again, in a block with another header."""
        transactions = self.builder.transactions
        moment = self.builder.header.timestamp if timestamp is None else timestamp
        self.builder = self._open(timestamp=moment, coinbase=coinbase, withdrawals=withdrawals)
        self.builder.add_all(transactions)

    def go_back(self, block_hash: bytes) -> None:
        """Removes all blocks after a block, and the open block.

        Raises KeyError for an unknown hash.
        """
        last = self.numbers[block_hash]
        for mined in self.blocks[last + 1 :]:
            del self.numbers[mined.block.hash]
        del self.blocks[last + 1 :]
        self.positions = {
            tx: position for tx, position in self.positions.items() if position[0] <= last
        }
        self.builder = self._open()

    # --- reading ---

    @property
    def pending(self) -> Mined:
        """Returns the open block as if it were sealed with its transactions so far."""
        builder = self.builder
        header = replace(builder.header, gas_used=builder.gas_used, logs_bloom=builder.logs_bloom)
        block = Block(header, builder.transactions, withdrawals=builder.withdrawals)
        return Mined(block, tuple(builder.receipts), builder.snapshot(), is_pending=True)

    def locate(self, tx_hash: bytes) -> tuple[Mined, int] | None:
        """Returns the block that contains a transaction, and its index."""
        position = self.positions.get(tx_hash)
        if position is None:
            return None
        number, index = position
        return (self.pending if number == len(self.blocks) else self.blocks[number]), index

    def view(self, mined: Mined) -> StateView:
        """Returns the state after a block, for calls."""
        header = mined.header
        return view_of(
            mined.layer,
            fork=self.schedule,
            chain_id=CHAIN_ID,
            number=header.number,
            timestamp=header.timestamp,
            gas_limit=header.gas_limit,
            base_fee=header.base_fee_per_gas or 0,
            coinbase=header.coinbase,
            prev_randao=int.from_bytes(header.mix_hash, "big"),
        )
