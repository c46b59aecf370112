"""Executes a block statelessly and compares all results with the block's header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.chain.config import ChainConfig
from fastevm.chain.irregular_changes import state_before
from fastevm.chain.stateless.witness import Witness, WitnessError, ancestors_of
from fastevm.chain.stateless.witness_state import WitnessState
from fastevm.core.execution.block.block import execute_block
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.validation import validate_body, validate_header, validate_result
from fastevm.core.execution.op_stack.base_time import (
    check_deposits,
    check_progression,
    check_result,
    stored_part,
)
from fastevm.core.execution.op_stack.predeploys import L2_TO_L1_MESSAGE_PASSER
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.errors import StateNotKnown

ANCESTORS: Final = 256  # number of hashes that BLOCKHASH can return


class Verified(Struct, frozen=True, kw_only=True):
    """The result of a verified block. Roots are 32 bytes.

    ``nodes`` and ``codes``: how many nodes and codes of the witness the block required.
    """

    state_root: bytes
    receipts_root: bytes
    gas_used: int
    receipts: Sequence[Receipt]
    nodes: int
    codes: int


def verify(block: Block, witness: Witness, chain: ChainConfig) -> Verified:
    """Executes a block on its witness and verifies header, body, results and the new state root.

    Raises WitnessError with the missing item (a trie node by hash and path, a code, a header), and
    InvalidBlock with the invalid field. A caller that trusts the block's hash may trust the result.
    Proof of work and the ancestry of uncles are not checked.
    """
    ancestors = ancestors_of(block.header.parent_hash, witness.headers)
    parent = ancestors[0]
    check_header(block, parent, chain)
    state = WitnessState(
        parent.state_root,
        witness.state,
        witness.codes,
        block_number=parent.number,
        block_hash=parent.hash,
    )
    hashes = (parent.hash, *(ancestor.parent_hash for ancestor in ancestors))[:ANCESTORS]
    result = executed(block, parent, state, chain, hashes)
    validate_result(block.header, result)
    return Verified(
        state_root=result.state_root,
        receipts_root=result.receipts_root,
        gas_used=result.gas_used,
        receipts=result.receipts,
        nodes=len(state.read_nodes),
        codes=len(state.read_codes),
    )


def check_header(block: Block, parent: Header, chain: ChainConfig) -> None:
    """Validates a block without execution. Raises InvalidBlock."""
    header = block.header
    schedule = schedule_of(header, chain)
    validate_header(
        header,
        parent,
        schedule,
        extra_data=chain.extra_data_at(header.number),
        least_timestamp_step=chain.least_timestamp_step,
    )
    validate_body(block, schedule)
    check_deposits(block, schedule)


def schedule_of(header: Header, chain: ChainConfig) -> ForkSchedule:
    """Returns the rules of a block. Assumes proof of stake if the header has no difficulty."""
    after_merge = None if header.difficulty else True
    return chain.activations.at(header.number, header.timestamp, after_merge=after_merge)


def has_base_time(chain: ChainConfig, header: Header) -> bool:
    """Whether a block's timestamp has milliseconds (Base, Denim)."""
    return bool(schedule_of(header, chain).parameters["has_base_time"])


def executed(
    block: Block,
    parent: Header,
    state: WitnessState,
    chain: ChainConfig,
    ancestors: tuple[bytes, ...],
) -> BlockResult:
    """Executes a block on a witness without comparing the result.

    ``ancestors``: hashes, newest first. Raises WitnessError if the witness is incomplete, and
    InvalidBlock for an invalid transaction.
    """
    header = block.header
    schedule = schedule_of(header, chain)
    remote = RemoteState(state, resolves=True)
    try:
        before = state_before(chain.activations, Layer.remote(remote), parent, header.timestamp)
        part = stored_part(before) if has_base_time(chain, parent) else None
        check_progression(block, parent, part, schedule)
        result = execute_block(
            before,
            block,
            schedule,
            chain_id=chain.chain_id,
            deposit_contract=chain.deposit_contract,
            ancestors=ancestors,
            state_root=False,
            root_of=state.root_after,
        )
        check_result(block, result.receipts, result.layer, schedule)
    except StateNotKnown as error:
        raise remote.failure or WitnessError(str(error)) from None
    roots: dict[str, Any] = {"state_root": state.root_after(result.layer)}
    # the storage root of the L2-to-L1 message passer
    if schedule.parameters["commits_to_withdrawals"]:
        roots["withdrawals_root"] = state.storage_root(L2_TO_L1_MESSAGE_PASSER)
    return replace(result, **roots)
