"""A sequencer of the OP stack for tests. Its blocks have slices and begin with L1 attributes."""

from typing import Any

from fastevm.chain import named as chains
from fastevm.core.execution.block.fees import FeeParameters
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.op_stack.l1_attributes import (
    DEPOSITOR,
    L1_BLOCK,
    L1Attributes,
    attributes_selector,
    attributes_source_hash,
)
from fastevm.core.execution.op_stack.predeploys import L2_TO_L1_MESSAGE_PASSER
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import EMPTY_ROOT, Block
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.node.dev_accounts import ETHER, dev_accounts
from fastevm.node.from_genesis import genesis_node
from fastevm.node.node import Node
from fastevm.node.production.sliced_block import SlicedBlock, payload_id
from fastevm.rpc_types.feed import FeedSlice, slice_of
from tests.unit.node.following.feeding import Sink

ALICE = dev_accounts(1)[0]
VAULT = bytes.fromhex("4200000000000000000000000000000000000011")
BOB = b"\xb0" * 20
L1 = L1Attributes(number=7, timestamp=9, base_fee=10**9, blob_base_fee=1, hash=b"\x11" * 32)


def op_genesis(name: str = "unichain-sepolia", **times: int) -> dict[str, Any]:
    """Returns the genesis of a real chain with a funded account. ``times`` changes its forks."""
    genesis = chains.find(name).genesis()
    config = {**genesis["config"], **times}
    rich = {ALICE.address.hex(): {"balance": hex(10**6 * ETHER)}}
    return {**genesis, "config": config, "alloc": {**genesis["alloc"], **rich}}


def op_node(genesis: dict[str, Any]) -> Node:
    """Returns a node on this genesis that builds no blocks. Block times are one second."""
    return genesis_node(genesis, block_time_ms=1_000, fixed_block_time=True)


class OpSource:
    """Builds blocks in slices on demand. Returns the messages of its feed."""

    def __init__(self, genesis: dict[str, Any]) -> None:
        self.node = op_node(genesis)
        self.chain = self.node.chain
        self.nonce = 0
        self.sliced: SlicedBlock | None = None

    def schedule_at(self, timestamp: int) -> ForkSchedule:
        """Returns the rules of the next block."""
        return self.chain.schedule_for_child(self.chain.head, timestamp)

    def attributes(self, timestamp: int, **changes: Any) -> bytes:
        """Returns the L1 attributes deposit of a block at this time."""
        parent = self.chain.head.header
        schedule = self.chain.config.activations.at(parent.number, parent.timestamp)
        attributes = replace(L1, sequence_number=parent.number)
        values = {
            "sender": DEPOSITOR,
            "to": L1_BLOCK,
            "gas_limit": 1_000_000,
            "source_hash": attributes_source_hash(attributes),
            "data": attributes.calldata(attributes_selector(schedule)),
        }
        return Transaction.build(**{**values, **changes}).raw

    def begin(self, *raws: bytes) -> FeedSlice:
        """Returns the next block's first message. Without ``raws``, it has only the attributes."""
        head = self.chain.head
        timestamp = head.header.timestamp + 1
        schedule = self.schedule_at(timestamp)
        version = int(schedule.parameters["fee_parameters_version"])
        extra_data = FeeParameters(version, 250, 6, 0).extra_data() if version else b""
        draft = draft_header(
            head.header, schedule, timestamp=timestamp, coinbase=VAULT, extra_data=extra_data
        )
        self.sliced = SlicedBlock(
            self.chain,
            self.chain.state_before(head.header, timestamp),
            draft,
            schedule,
            ancestors=self.chain.ancestors(head.hash),
            payload_id=payload_id(head.hash, timestamp, 0),
        )
        return self.slice(*(raws or (self.attributes(timestamp),)))

    def slice(self, *raws: bytes) -> FeedSlice:
        """Returns a slice's message with these transactions, the state root and the block hash."""
        assert self.sliced is not None
        for raw in raws:
            self.sliced.add(Transaction.decode(raw))
        pending = self.sliced.close_slice()
        roots = {"state_root": pending.layer.state_root()}
        if pending.header.withdrawals_root is not None:
            roots["withdrawals_root"] = EMPTY_ROOT
        if self.sliced.schedule.parameters["commits_to_withdrawals"]:
            proof = pending.layer.proof(L2_TO_L1_MESSAGE_PASSER, [])
            roots["withdrawals_root"] = proof.storage_root
        block_hash = replace(pending.header, **roots).hash
        return replace(slice_of(pending), **roots, block_hash=block_hash)

    def seal(self) -> Block:
        """Seals the block, makes it canonical on this node, and returns it."""
        assert self.sliced is not None
        block, result = self.sliced.seal()
        self.chain.append(block, result)
        return block

    def payment(self, to: bytes = BOB) -> bytes:
        """Returns a signed transfer from Alice to Bob, or to a contract."""
        made = Transaction.build(
            to=to,
            value=5,
            gas_limit=300_000,
            chain_id=self.chain.config.chain_id,
            max_fee_per_gas=10**10,
            max_priority_fee_per_gas=10,
            nonce=self.nonce,
        )
        self.nonce += 1
        return made.sign(ALICE.private_key).raw


class OpSink(Sink):
    """A follower of an OP-stack chain. The test passes messages to it."""

    def __init__(self, genesis: dict[str, Any]) -> None:
        super().__init__(op_node(genesis))

    def position(self) -> tuple[int, int] | None:
        """Returns block number and slice index of the pending block."""
        pending = self.node.pending()
        return None if pending is None else (pending.header.number, pending.slice_index)


def provisional(message: FeedSlice) -> FeedSlice:
    """Returns a message without a state root."""
    return replace(message, state_root=bytes(32))


def subblock(message: FeedSlice) -> FeedSlice:
    """Returns a message without state root, block hash and withdrawals root."""
    zero = bytes(32)
    return replace(message, state_root=zero, block_hash=zero, withdrawals_root=zero)
