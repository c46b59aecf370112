"""A simulated L1: the attributes and deposits of an OP Stack development chain.

Source: the OP Stack specification, L1 attributes, deposits, and "Attributes Builder" of each fork.
"""

from __future__ import annotations

import os
from typing import Final

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.core.execution.op_stack.base_time import (
    DEPOSIT_GAS,
    base_time_deposit,
    next_millis,
    stored_part,
)
from fastevm.core.execution.op_stack.l1_attributes import (
    DEPOSITOR,
    USER_DOMAIN,
    L1Attributes,
    attributes_of,
    attributes_selector,
    attributes_source_hash,
    source_hash,
)
from fastevm.core.execution.op_stack.predeploys import L1_BLOCK, SEQUENCER_FEE_VAULT
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.types import Block
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.remote import resolved
from fastevm.node.production.attributes import AttributesSource, BlockAttributes, EthereumAttributes
from fastevm.node.production.deposits import Deposit, DepositRefused

L1_BLOCK_SECONDS: Final = 12

ATTRIBUTES_GAS: Final = 1_000_000
BEDROCK_ATTRIBUTES_GAS: Final = 150_000_000
MAX_DEPOSIT_GAS: Final = 20_000_000  # gas of deposits that the portal on L1 sells per block
MAX_DEPOSIT_DATA: Final = 120_000  # bytes that the portal on L1 accepts
MAX_WAITING: Final = 1_024  # deposits that are in no block yet
LOG_INDEX_BYTES: Final = 6

# L1 fees follow a triangle wave: they rise for half of a period, counted in L1 blocks, then fall.
BASE_FEE_LEAST, BASE_FEE_STEP, BASE_FEE_PERIOD = 500_000_000, 31_250_000, 64  # wei
BLOB_FEE_LEAST, BLOB_FEE_STEP, BLOB_FEE_PERIOD = 1_000_000, 100_000, 40  # wei

# Scalars as on OP Mainnet, before and after Ecotone; no operator fee, as on most chains.
FEE_OVERHEAD, FEE_SCALAR = 188, 684_000
BASE_FEE_SCALAR, BLOB_BASE_FEE_SCALAR = 5_227, 1_014_213
DA_FOOTPRINT_GAS_SCALAR = 400


class SimulatedL1(AttributesSource):
    """The L1 below a development chain: a block every 12 seconds of the chain's own time.

    The time determines the number of an L1 block, and the number determines its content. So every
    node simulates the same L1, also after a restart. A waiting deposit is included in the next
    block that has enough gas. It is kept until a canonical block includes it.
    """

    coinbase = SEQUENCER_FEE_VAULT

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._waiting: dict[bytes, Transaction] = {}
        # Starts at a random index, so that equal deposits after a restart get other hashes.
        self._log_index = int.from_bytes(os.urandom(LOG_INDEX_BYTES))
        chain.on_head(self._head_moved)

    # --- blocks -----------------------------------------------------------------------------------

    def attributes(self, parent: Block, timestamp: int) -> BlockAttributes:
        """Returns the attributes of a child of ``parent`` at ``timestamp`` (seconds)."""
        number = timestamp // L1_BLOCK_SECONDS
        first = [self._attributes_deposit(parent, timestamp)]
        gas = parent.header.gas_limit - ATTRIBUTES_GAS
        if self._has_base_time(self.chain.schedule_for_child(parent, timestamp)):
            _, part = next_millis(parent.header, self._part_of(parent), timestamp)
            first.append(base_time_deposit(parent.number + 1, part))
            gas -= DEPOSIT_GAS
        return BlockAttributes(
            timestamp=timestamp,
            coinbase=SEQUENCER_FEE_VAULT,
            prev_randao=_digest(b"randao", number),
            parent_beacon_block_root=_digest(b"beacon block", number),
            transactions=(*first, *self._fitting(gas)),
        )

    def fixed_timestamp(self, parent: Block) -> int | None:
        """Returns the timestamp of a child 200 ms after ``parent``, if the rules have BaseTime."""
        part = self._part_of(parent)
        return None if part is None else next_millis(parent.header, part, 0)[0]

    def _part_of(self, parent: Block) -> int | None:
        """Returns the milliseconds within the second of a block's timestamp, or None before
        Denim.
        """
        if not self._has_base_time(self.chain.schedule_of(parent.hash)):
            return None
        layer = self.chain.layer_of(parent.hash)
        return int(resolved(layer, lambda: stored_part(layer)))

    @staticmethod
    def _has_base_time(schedule: ForkSchedule) -> bool:
        return bool(schedule.parameters["has_base_time"])

    def _attributes_deposit(self, parent: Block, timestamp: int) -> Transaction:
        schedule = self.chain.schedule_for_child(parent, timestamp)
        known = l1_attributes(timestamp // L1_BLOCK_SECONDS, attributes_of(parent.transactions))
        # The first block of a fork upgrades the L1Block contract, so its deposit still calls the
        # function of the previous fork.
        form = attributes_selector(self.chain.schedule_of(parent.hash))
        is_first = not schedule.parameters["deposits_report_gas"]
        return Transaction.build(
            type=DEPOSIT_TX,
            source_hash=attributes_source_hash(known),
            sender=DEPOSITOR,
            to=L1_BLOCK,
            mint=0,
            value=0,
            gas_limit=BEDROCK_ATTRIBUTES_GAS if is_first else ATTRIBUTES_GAS,
            is_system=is_first,
            data=known.calldata(form),
        )

    def _fitting(self, gas: int) -> list[Transaction]:
        """Returns the waiting deposits that fit into the gas limit of the next block."""
        found: list[Transaction] = []
        for deposit in list(self._waiting.values()):
            gas -= deposit.gas_limit
            if gas < 0:
                break
            found.append(deposit)
        return found

    def _head_moved(self, change: HeadChange) -> None:
        for block in change.added:
            for transaction in block.transactions:
                self._waiting.pop(transaction.hash, None)

    # --- deposits ---------------------------------------------------------------------------------

    def deposit(self, wanted: Deposit) -> Transaction:
        """Returns the transaction of a deposit in the newest L1 block.

        Does not queue it; see `add`.

        Raises DepositRefused for a deposit that the portal would reject.
        """
        limit = min(
            MAX_DEPOSIT_GAS, self.chain.head.header.gas_limit - ATTRIBUTES_GAS - DEPOSIT_GAS
        )
        if wanted.gas_limit > limit:
            raise DepositRefused(f"a deposit has at most {limit} gas, not {wanted.gas_limit}")
        if len(wanted.data) > MAX_DEPOSIT_DATA:
            raise DepositRefused(
                f"a deposit has at most {MAX_DEPOSIT_DATA} bytes of data, not {len(wanted.data)}"
            )
        self._log_index += 1
        number = self.chain.head.header.timestamp // L1_BLOCK_SECONDS
        return Transaction.build(
            type=DEPOSIT_TX,
            source_hash=source_hash(USER_DOMAIN, l1_block_hash(number), self._log_index),
            sender=wanted.sender,
            to=wanted.to,
            mint=wanted.mint,
            value=wanted.value,
            gas_limit=wanted.gas_limit,
            is_system=False,
            data=wanted.data,
        )

    def add(self, deposit: Transaction) -> None:
        """Queues a deposit for the start of the next block that has enough gas.

        Raises DepositRefused if too many deposits wait.
        """
        if len(self._waiting) >= MAX_WAITING:
            raise DepositRefused(f"{MAX_WAITING} deposits wait for a block")
        self._waiting[deposit.hash] = deposit

    def drop(self, tx_hash: bytes) -> None:
        """Removes a waiting deposit."""
        self._waiting.pop(tx_hash, None)

    def is_waiting(self, tx_hash: bytes) -> bool:
        """Returns whether this deposit waits because no canonical block contains it yet."""
        return tx_hash in self._waiting


def attributes_source(chain: Chain, coinbase: bytes) -> AttributesSource:
    """Returns the source of a development chain's attributes.

    It is a simulated L1 if the chain's blocks begin with deposits; otherwise ``coinbase`` (20
    bytes) receives the fees.
    """
    head = chain.head
    rules = chain.schedule_for_child(head, head.header.timestamp + 1).parameters
    return SimulatedL1(chain) if rules["has_deposits"] else EthereumAttributes(coinbase)


def l1_attributes(number: int, before: L1Attributes | None) -> L1Attributes:
    """Returns the attributes of L1 block ``number``.

    ``before``: the attributes in the parent block.
    """
    repeated = before is not None and before.number == number
    return L1Attributes(
        number=number,
        timestamp=number * L1_BLOCK_SECONDS,
        base_fee=_triangle(number, BASE_FEE_LEAST, BASE_FEE_STEP, BASE_FEE_PERIOD),
        blob_base_fee=_triangle(number, BLOB_FEE_LEAST, BLOB_FEE_STEP, BLOB_FEE_PERIOD),
        hash=l1_block_hash(number),
        sequence_number=before.sequence_number + 1 if repeated and before is not None else 0,
        batcher_hash=_digest(b"batcher", 0),
        fee_overhead=FEE_OVERHEAD,
        fee_scalar=FEE_SCALAR,
        base_fee_scalar=BASE_FEE_SCALAR,
        blob_base_fee_scalar=BLOB_BASE_FEE_SCALAR,
        da_footprint_gas_scalar=DA_FOOTPRINT_GAS_SCALAR,
    )


def l1_block_hash(number: int) -> bytes:
    """Returns the hash of the L1 block with this number."""
    return _digest(b"block", number)


def _digest(label: bytes, number: int) -> bytes:
    return keccak256(b"simulated L1 " + label + number.to_bytes(8, "big"))


def _triangle(number: int, least: int, step: int, period: int) -> int:
    phase = number % period
    return least + step * min(phase, period - phase)
