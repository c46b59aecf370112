"""The remote-state part of a node, which fetches state from another node.

`LocalState`: the whole state is in this process. `ForkedState`: the chain was forked from another
node's chain, and state is fetched when it is read. `PartialState`: the node builds no blocks, but
follows the other node's blocks on fetched state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.types import Block, Header
from fastevm.core.state.layer import Layer
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.missing_state import MissingState
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.local_pending import Forecasts, LocalPending, NoLocalPending
from fastevm.node.remote.partial_follower import LAG_SECONDS, PartialFollower
from fastevm.node.remote.transaction_state import TransactionState


class LocalState:
    """The remote-state part of a node whose whole state is in this process.

    ``fetcher`` fetches the state of transactions. ``lag_seconds``: how long the upstream may answer
    with an older head, see `BlockImport`.
    """

    lag_seconds = 0.0

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.fetcher = MissingState()

    @property
    def doubts(self) -> bool:
        """Whether the newest block failed verification on fetched values."""
        return False

    @property
    def history(self) -> ForkHistory | None:
        """The upstream that has the blocks up to the fork, or None if the chain is not forked."""
        return None

    @property
    def jump(self) -> Callable[[Block], None] | None:
        """The function that restarts the chain at an upstream block, or None if that is not
        supported.
        """
        return None

    def add_block(self, block: Block | bytes) -> BlockResult:
        """Imports a block like :meth:`Chain.add`. The caller must hold the producer's lock."""
        return self.chain.add(block)

    def local_pending(
        self, producer: BlockProducer, publish: Callable[[PendingBlock], None]
    ) -> NoLocalPending:
        """Returns the builder of the pending block of a follower without a feed."""
        return Forecasts(producer, publish)

    def metrics(self) -> Mapping[str, float]:
        """Returns counters by name."""
        return {}

    def close(self) -> None:
        """Closes the connections to the other node."""


class ForkedState(LocalState):
    """The remote-state part of a node on a fork of another node's chain.

    ``newest`` returns the newest state, and the header of the block in which transactions run on
    that state.
    """

    def __init__(
        self, chain: Chain, history: ForkHistory, newest: Callable[[], tuple[Layer, Header]]
    ) -> None:
        super().__init__(chain)
        self._history = history
        self.fetcher = TransactionState(chain, newest)

    @property
    def history(self) -> ForkHistory:
        """The upstream that has the blocks up to the fork."""
        return self._history

    def metrics(self) -> Mapping[str, float]:
        """Returns the counters of the requests to the other node."""
        return self.history.metrics()

    def close(self) -> None:
        """Closes the connections to the other node."""
        self.fetcher.close()
        self.history.close()


class PartialState(ForkedState):
    """The remote-state part of a node that executes the upstream's blocks on partly known state."""

    lag_seconds = LAG_SECONDS

    def __init__(
        self,
        chain: Chain,
        history: ForkHistory,
        newest: Callable[[], tuple[Layer, Header]],
        *,
        lock: RLock,
        metrics: MetricsRegistry,
    ) -> None:
        """``lock`` guards additions to the chain."""
        super().__init__(chain, history, newest)
        self.lock, self.follower = lock, PartialFollower(chain, history, metrics)

    @property
    def history(self) -> ForkHistory:
        """The upstream, at the block where the chain starts."""
        return self.follower.history

    @property
    def doubts(self) -> bool:
        """Whether the newest block failed verification on fetched values."""
        return self.follower.doubts

    @property
    def jump(self) -> Callable[[Block], None]:
        """The function that restarts the chain at an upstream block that is too far ahead."""
        return self._begin_at

    def add_block(self, block: Block | bytes) -> BlockResult:
        """Verifies and executes a block. Raises InvalidBlock, ForkError."""
        return self.follower.add(block if isinstance(block, Block) else decode_block(block))

    def local_pending(
        self, producer: BlockProducer, publish: Callable[[PendingBlock], None]
    ) -> NoLocalPending:
        """Returns the builder of the pending block of a follower without a feed."""
        assert isinstance(self.fetcher, TransactionState)
        return LocalPending(producer, self.fetcher, lambda: self.history, publish)

    def _begin_at(self, block: Block) -> None:
        with self.lock:
            self.follower.begin_at(block)
