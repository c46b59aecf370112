"""Finds withdrawn logs: pre-confirmed logs whose transaction is neither pending nor mined."""

from collections.abc import Callable, Iterable

from fastevm.chain import PendingBlock
from fastevm.core.execution.types import Log
from fastevm.node import Node

EncodedLog = tuple[Log, bytes]  # a log, and its JSON text


class WithdrawnLogs:
    """Records the pre-confirmed logs of transactions that are not canonical yet.

    All calls come from one thread, in the order of the events.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        # by transaction hash; encoded when they are withdrawn, which is rare
        self._sent: dict[bytes, Callable[[], list[EncodedLog]]] = {}

    def clear(self) -> None:
        """Drops all logs, because no subscriber needs them."""
        self._sent.clear()

    def add(self, tx_hash: bytes, removed: Callable[[], list[EncodedLog]]) -> None:
        """Records a transaction with logs. ``removed`` encodes the logs as removed."""
        self._sent[tx_hash] = removed

    def take(self, pending: PendingBlock | None) -> list[EncodedLog]:
        """Returns the logs that are withdrawn now, newest first, and forgets them.

        ``pending`` is the newest pre-confirmed block. Also forgets logs that became canonical.
        """
        waiting = _hashes(pending)
        gone = [tx_hash for tx_hash in self._sent if tx_hash not in waiting]
        withdrawn: list[EncodedLog] = []
        for tx_hash in reversed(gone):
            removed = self._sent.pop(tx_hash)
            if self.node.chain.locate(tx_hash) is None:
                withdrawn += reversed(removed())
        return withdrawn


def _hashes(pending: PendingBlock | None) -> set[bytes]:
    blocks: Iterable[PendingBlock] = () if pending is None else pending.chain()
    return {transaction.hash for block in blocks for transaction in block.transactions}
