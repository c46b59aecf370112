"""A block in the chain's memory (rules, receipts, state), and the validation of new blocks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from fastevm.chain.config import ChainConfig
from fastevm.chain.storage_protocols import ArchivedBlock
from fastevm.core.execution.block.block_result import RESULT_FIELDS, BlockResult
from fastevm.core.execution.block.validation import validate_body, validate_header
from fastevm.core.execution.op_stack.base_time import check_deposits, check_progression, stored_part
from fastevm.core.execution.pow.ethash import validate_seal
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidBlock


class BlockEntry(Struct):
    """A block in memory.

    ``result`` is None if the block's state is no longer in memory. ``position`` is the byte offset
    of the block's record in the journal.
    """

    block: Block
    schedule: ForkSchedule
    total_difficulty: int
    receipts: Sequence[Receipt]
    result: BlockResult | None
    position: int | None = None

    @property
    def is_merged(self) -> bool:
        """Whether the block follows the rules after the merge."""
        return bool(self.schedule.parameters["proof_of_stake"])


def child_schedule(config: ChainConfig, parent: BlockEntry, timestamp: int) -> ForkSchedule:
    """Returns the rules of a child at ``timestamp`` (seconds)."""
    terminal = config.activations.terminal_total_difficulty
    after_merge = None
    if parent.is_merged:
        after_merge = True
    elif terminal is not None:
        after_merge = parent.total_difficulty >= terminal
    return config.activations.at(parent.block.number + 1, timestamp, after_merge=after_merge)


def check_unexecuted(
    config: ChainConfig, block: Block, parent: BlockEntry, schedule: ForkSchedule
) -> None:
    """Raises InvalidBlock if a block breaks a rule that can be checked without execution."""
    validate_header(
        block.header,
        parent.block.header,
        schedule,
        extra_data=config.extra_data_at(parent.block.number + 1),
        least_timestamp_step=config.least_timestamp_step,
    )
    validate_body(block, schedule)
    check_deposits(block, schedule)
    if parent.schedule.fork is not schedule.fork:
        check_activation_block(block, schedule)


def check_base_time(
    block: Block, parent: BlockEntry, parent_layer: Layer, schedule: ForkSchedule
) -> None:
    """Raises InvalidBlock if a Denim block (Base) does not come 200 ms after its parent.

    ``parent_layer``: the state after the parent.
    """
    part = None
    if parent.schedule.parameters["has_base_time"]:
        part = stored_part(parent_layer)
    check_progression(block, parent.block.header, part, schedule)


def check_activation_block(block: Block, schedule: ForkSchedule) -> None:
    """Raises InvalidBlock if the first block of a fork contains a user transaction.

    The rule exists from Jovian on, but not in Base's forks from Beryl on. Source: OP Stack
    specification, Jovian, derivation, "Activation Block Rules".
    """
    rules = schedule.parameters
    if not rules["has_da_footprint"] or rules["native_contracts"]:
        return
    for index, transaction in enumerate(block.transactions):
        if transaction.type != DEPOSIT_TX:
            field = f"transactions[{index}]"
            found = f"type {transaction.type}"
            raise InvalidBlock(block.number, field, expected="deposits only", found=found)


def check_seals(block: Block, schedule: ForkSchedule) -> None:
    """Raises InvalidBlock if a block before the merge, or an ommer, has no valid proof of work."""
    if not schedule.parameters["proof_of_stake"]:
        for sealed in (block.header, *block.ommers):
            validate_seal(sealed)


def restored_entry(config: ChainConfig, old: ArchivedBlock, layer: Layer | None) -> BlockEntry:
    """Returns the entry of a block read from the archive.

    ``layer``: the state after the block, or None if the state is no longer kept.
    """
    header, terminal = old.block.header, config.activations.terminal_total_difficulty
    after_merge: bool | None = old.is_merged or None
    if not old.is_merged and terminal is not None:
        after_merge = old.total_difficulty - header.difficulty >= terminal
    schedule = config.activations.at(header.number, header.timestamp, after_merge=after_merge)
    result = None if layer is None else unexecuted_result(header, old.receipts, layer)
    return BlockEntry(old.block, schedule, old.total_difficulty, old.receipts, result, old.position)


def genesis_entry(
    config: ChainConfig,
    block: Block,
    layer: Layer,
    total_difficulty: int | None,
    *,
    partial: bool = False,
) -> BlockEntry:
    """Returns the entry of the chain's first block.

    Raises ValueError if ``layer`` does not have the header's state root, unless the state is
    partial.
    """
    header = block.header
    try:
        known = unexecuted_result if partial else known_result
        result = known(header, (), layer)
    except InvalidBlock as error:
        raise ValueError(str(error)) from None
    schedule = config.activations.at(header.number, header.timestamp)
    difficulty = header.difficulty if total_difficulty is None else total_difficulty
    return BlockEntry(block, schedule, difficulty, (), result)


def known_result(header: Header, receipts: Sequence[Receipt], layer: Layer) -> BlockResult:
    """Returns the result of a block that is adopted without execution.

    Raises InvalidBlock if ``layer`` does not have the header's state root.
    """
    root = layer.state_root()
    if root != header.state_root:
        raise InvalidBlock(header.number, "state_root", expected=header.state_root, found=root)
    return unexecuted_result(header, receipts, layer)


def unexecuted_result(header: Header, receipts: Sequence[Receipt], layer: Layer) -> BlockResult:
    """Returns a block's result from its header and receipts. Its requests are unknown."""
    return BlockResult(
        layer=layer,
        receipts=receipts,
        **{name: getattr(header, name) for name in RESULT_FIELDS},
    )
