"""A node that builds slices step by step, and a follower, without clock and network."""

from typing import Any

from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.following.feed_follower import FeedFollower
from fastevm.node.from_genesis import dev_node
from fastevm.node.node import Mining, Node
from fastevm.rpc_types.feed import FeedSlice, slice_of

GENESIS_TIME = 1_700_000_000
BOB = b"\xb0" * 20
# Init code of a contract with the code PUSH0 PUSH0 LOG0 STOP, which emits an empty log.
LOGGER_INIT = bytes.fromhex("635f5fa0005f526004601cf3")


class Source:
    """Builds blocks in slices on demand. Returns the messages of its feed."""

    def __init__(self, **options: Any) -> None:
        self.node = dev_node(accounts=3, mining=Mining.MANUAL, timestamp=GENESIS_TIME, **options)
        self.producer = self.node.producer
        self.last_id: str | None = None
        self.nonces = [0, 0, 0]

    def begin(self) -> FeedSlice:
        """Returns the first message of the next block."""
        head = self.node.chain.head.header
        return self._message(self.producer.begin(head.timestamp + 2))

    def slice(self, *raws: bytes) -> FeedSlice:
        """Returns the message of a slice with these transactions."""
        for raw in raws:
            self.node.submit(raw)
        assert self.producer.open_block is not None
        self.producer.fill(self.producer.open_block.header.gas_limit)
        return self._message(self.producer.close_slice())

    def seal(self) -> Block:
        """Seals the block, makes it canonical on this node, and returns it."""
        return self.producer.seal()

    def block(self, *slices: tuple[bytes, ...]) -> tuple[list[FeedSlice], Block]:
        """Returns all messages of a block, and the block."""
        messages = [self.begin(), *(self.slice(*raws) for raws in slices)]
        return messages, self.seal()

    def payment(self, who: int = 0, **fields) -> bytes:
        """Returns a signed transfer to Bob with the next nonce."""
        nonce, self.nonces[who] = self.nonces[who], self.nonces[who] + 1
        values = {"to": BOB, "value": 5, "gas_limit": 100_000, "chain_id": DEV_CHAIN_ID}
        prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 10}
        made = Transaction.build(**{**values, **prices, "nonce": nonce, **fields})
        return made.sign(self.node.accounts[who].private_key).raw

    def _message(self, pending: PendingBlock) -> FeedSlice:
        message = slice_of(pending, self.last_id)
        self.last_id = message.id
        return message


class Sink:
    """A follower. The test passes messages to it."""

    def __init__(self, node: Node | None = None) -> None:
        if node is None:
            node = dev_node(accounts=3, mining=Mining.NEVER, timestamp=GENESIS_TIME)
        self.node: Node = node
        self.reported: list[tuple[int, int, int]] = []
        self.node.on_slice(self._reported)
        self.follower = FeedFollower(
            self.node.chain,
            self.node.followed,
            lock=self.node.producer.lock,
            metrics=self.node.metrics_registry,
        )

    def receive(self, *messages: FeedSlice) -> None:
        """Processes messages."""
        for message in messages:
            self.follower.receive(message)

    def import_block(self, block: Block) -> None:
        """Imports a canonical block of the upstream."""
        self.node.add_block(block.rlp())

    @property
    def pending(self) -> PendingBlock | None:
        """Returns the block that the follower serves as ``pending``."""
        return self.node.pending()

    def position(self) -> tuple[int, int] | None:
        """Returns block number and slice index of the pending block."""
        pending = self.pending
        return None if pending is None else (pending.header.number, pending.slice_index)

    def count(self, name: str) -> float:
        """Returns the value of a metric."""
        return self.node.metrics_registry.get(name)

    def _reported(self, pending: PendingBlock, first_new: int) -> None:
        self.reported.append((pending.header.number, pending.slice_index, first_new))
