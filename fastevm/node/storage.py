"""The storage part of a node: its data directory, or none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.pending_block import PendingBlock
from fastevm.chain.storage import DataDirectory
from fastevm.errors import FastevmError
from fastevm.node.production.seal_preconfirmed import seal_preconfirmed

log = logging.getLogger(__name__)


class NoStorage:
    """The part of a node that stores nothing on disk."""

    writes_files = False

    def record(self, tx_hash: bytes, raw: bytes) -> None:
        """Writes a transaction that waits for a block. Raises OSError if it cannot be written."""

    def keep_slice(self, pending: PendingBlock) -> None:
        """Writes a slice, before it is published."""

    def compact_pool(self) -> None:
        """Removes transactions from the journal that no longer wait."""

    def seal_preconfirmed(self, chain: Chain, metrics: MetricsRegistry) -> None:
        """Seals the block whose slices the previous process published."""

    def restore_pool(self, readmit: Callable[[bytes], None], metrics: MetricsRegistry) -> None:
        """Calls ``readmit`` with each transaction that waited when the previous process ended."""

    def metrics(self) -> Mapping[str, float]:
        """Returns gauges by name."""
        return {}

    def close(self) -> None:
        """Closes the files."""


class NodeStorage(NoStorage):
    """The part of a node that keeps its chain in a data directory.

    ``is_waiting`` returns whether a transaction hash is not in a block yet.
    """

    writes_files = True

    def __init__(self, directory: DataDirectory, is_waiting: Callable[[bytes], bool]) -> None:
        self.directory, self.is_waiting = directory, is_waiting

    def record(self, tx_hash: bytes, raw: bytes) -> None:
        """Writes a transaction that waits for a block. Raises OSError if it cannot be written."""
        self.directory.pool.add(tx_hash, raw, self.is_waiting)

    def keep_slice(self, pending: PendingBlock) -> None:
        """Writes a slice, before it is published."""
        self.directory.slices.keep(pending)

    def compact_pool(self) -> None:
        """Removes transactions from the journal that no longer wait."""
        self.directory.pool.compact(self.is_waiting)

    def seal_preconfirmed(self, chain: Chain, metrics: MetricsRegistry) -> None:
        """Seals the block whose slices the previous process published.

        A block that cannot be sealed is logged and counted as a broken promise.
        """
        newest = self.directory.slices.newest()
        try:
            sealed = None if newest is None else seal_preconfirmed(chain, newest)
        except FastevmError as error:
            log.error("the pre-confirmed block could not be sealed: %s", error)
            metrics.count("promises_broken_total")
        else:
            if sealed is not None:
                chain.append(*sealed)
                metrics.count("promises_kept_total")

    def restore_pool(self, readmit: Callable[[bytes], None], metrics: MetricsRegistry) -> None:
        """Calls ``readmit`` with each transaction that waited when the previous process ended."""
        metrics.set("pool_restored", self.directory.pool.restore(readmit, self.is_waiting))

    def metrics(self) -> Mapping[str, float]:
        """Returns the sizes of the files and other gauges."""
        return self.directory.values()

    def close(self) -> None:
        """Closes the files."""
        self.directory.close()
