"""What a chain knows of one block in memory: itself, its rules and what its execution gave."""

from __future__ import annotations

from dataclasses import dataclass

from fastevm.chain.config import ChainConfig
from fastevm.chain.retention import OldBlock
from fastevm.errors import InvalidBlock
from fastevm.execution.ethash import validate_seal
from fastevm.execution.result import BlockResult
from fastevm.execution.validation import validate_body, validate_header
from fastevm.spec.schedule import ForkSchedule
from fastevm.state.layer import Layer
from fastevm.types import Block, Header, Receipt


@dataclass(slots=True)
class Entry:
    """A block in memory; ``result`` goes when its state is no longer kept.

    ``place``: where the journal has it.
    """

    block: Block
    schedule: ForkSchedule
    total_difficulty: int
    receipts: tuple[Receipt, ...]
    result: BlockResult | None
    place: int | None = None

    @property
    def merged(self) -> bool:
        return bool(self.schedule.parameters["proof_of_stake"])

    def is_better_than(self, head: Entry) -> bool:
        """Whether the fork rule prefers the branch that ends here to the one that ends there."""
        if self.merged != head.merged:
            return self.merged
        if self.merged:
            return self.block.number >= head.block.number
        return self.total_difficulty > head.total_difficulty


def child_schedule(config: ChainConfig, parent: Entry, timestamp: int) -> ForkSchedule:
    """The rules of a child at ``timestamp`` (seconds)."""
    terminal = config.activations.terminal_total_difficulty
    after_merge = None
    if parent.merged:
        after_merge = True
    elif terminal is not None:
        after_merge = parent.total_difficulty >= terminal
    return config.activations.at(parent.block.number + 1, timestamp, after_merge=after_merge)


def check_form(config: ChainConfig, block: Block, parent: Entry, schedule: ForkSchedule) -> None:
    """Raise InvalidBlock for what can be seen in a block and its parent."""
    validate_header(
        block.header,
        parent.block.header,
        schedule,
        extra_data=config.extra_data_at(parent.block.number + 1),
        least_timestamp_step=config.least_timestamp_step,
    )
    validate_body(block, schedule)


def check_seals(block: Block, schedule: ForkSchedule) -> None:
    """Raise InvalidBlock when the block or an ommer lacks its proof of work, before the merge."""
    if not schedule.parameters["proof_of_stake"]:
        for sealed in (block.header, *block.ommers):
            validate_seal(sealed)


def restored_entry(config: ChainConfig, old: OldBlock, layer: Layer | None) -> Entry:
    """What was known of a block that is read back; ``layer``: its state, if that is still kept."""
    header, terminal = old.block.header, config.activations.terminal_total_difficulty
    after_merge: bool | None = old.merged or None
    if not old.merged and terminal is not None:
        after_merge = old.total_difficulty - header.difficulty >= terminal
    schedule = config.activations.at(header.number, header.timestamp, after_merge=after_merge)
    result = None if layer is None else unexecuted_result(header, old.receipts, layer)
    return Entry(old.block, schedule, old.total_difficulty, old.receipts, result, old.place)


def first_entry(
    config: ChainConfig, block: Block, layer: Layer, total_difficulty: int | None
) -> Entry:
    header = block.header
    try:
        result = known_result(header, (), layer)
    except InvalidBlock as error:
        raise ValueError(str(error)) from None
    schedule = config.activations.at(header.number, header.timestamp)
    difficulty = header.difficulty if total_difficulty is None else total_difficulty
    return Entry(block, schedule, difficulty, (), result)


def known_result(header: Header, receipts: tuple[Receipt, ...], layer: Layer) -> BlockResult:
    """The result of a block that is not executed here; what it requested is not known."""
    root = layer.state_root()
    if root != header.state_root:
        raise InvalidBlock(header.number, "state_root", expected=header.state_root, found=root)
    return unexecuted_result(header, receipts, layer)


def unexecuted_result(header: Header, receipts: tuple[Receipt, ...], layer: Layer) -> BlockResult:
    return BlockResult(
        layer=layer,
        state_root=header.state_root,
        receipts=receipts,
        receipts_root=header.receipts_root,
        logs_bloom=header.logs_bloom,
        gas_used=header.gas_used,
        blob_gas_used=header.blob_gas_used,
        requests_hash=header.requests_hash,
    )
