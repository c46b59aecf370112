"""Withdrawn logs: pre-confirmed logs whose transaction is neither pending nor mined."""

from collections.abc import Iterable, Sequence

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
        self._sent: dict[bytes, Sequence[EncodedLog]] = {}  # by transaction hash

    def clear(self) -> None:
        """Drops all logs, because no subscriber needs them."""
        self._sent.clear()

    def add(self, tx_hash: bytes, logs: Sequence[EncodedLog]) -> None:
        """Records the logs of a pre-confirmed transaction, encoded with ``removed`` true."""
        if logs:
            self._sent[tx_hash] = logs

    def take(self, pending: PendingBlock | None) -> list[EncodedLog]:
        """Returns the logs that are withdrawn now, newest first, and drops them.

        ``pending``: the newest pre-confirmed block. Logs that became canonical are dropped, too.
        """
        waiting = _hashes(pending)
        gone = [tx_hash for tx_hash in self._sent if tx_hash not in waiting]
        withdrawn: list[EncodedLog] = []
        for tx_hash in reversed(gone):
            logs = self._sent.pop(tx_hash)
            if self.node.chain.locate(tx_hash) is None:
                withdrawn += reversed(logs)
        return withdrawn


def _hashes(pending: PendingBlock | None) -> set[bytes]:
    blocks: Iterable[PendingBlock] = () if pending is None else pending.chain()
    return {transaction.hash for block in blocks for transaction in block.transactions}
