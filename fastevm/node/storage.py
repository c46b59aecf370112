"""The storage part of a node: its data directory, or no directory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.pending_block import PendingBlock
from fastevm.chain.storage import DataDirectory
from fastevm.core.state.layer import Layer
from fastevm.errors import FastevmError
from fastevm.node.production.seal_preconfirmed import seal_preconfirmed

log = logging.getLogger(__name__)

Json = dict[str, Any]
StoredSnapshot = tuple[Json, Callable[[], Layer], Mapping[str, list[str]]]
"""A snapshot's description, a function that returns its state, and slots by account.

The slots are those that were changed after the snapshot without a block.
"""


class NoStorage:
    """The part of a node that stores nothing on disk."""

    writes_files = False

    def record(self, tx_hash: bytes, raw: bytes) -> None:
        """Writes a pooled transaction. Raises OSError if it cannot be written."""

    def tidy_pool(self) -> None:
        """Shortens the journal of the pool if it has grown."""

    def keep_slice(self, pending: PendingBlock) -> None:
        """Writes a slice before it is published."""

    def compact_pool(self) -> None:
        """Removes transactions that have left the pool from the pool's journal."""

    @property
    def position(self) -> int:
        """The size of the journal of blocks in bytes."""
        return 0

    def development(self) -> Json | None:
        """Returns the state that `keep_development` wrote, or None."""
        return None

    def keep_development(self, state: Json) -> None:
        """Writes the developer's settings."""

    def snapshots(self) -> dict[int, StoredSnapshot]:
        """Returns the stored numbered snapshots."""
        return {}

    def keep_snapshot(self, number: int, snapshot: Json) -> None:
        """Writes a numbered snapshot. ``snapshot``: its description."""

    def revert_snapshots(self, number: int) -> None:
        """Deletes the numbered snapshots with ``number`` and higher numbers."""

    def named_snapshots(self) -> dict[str, StoredSnapshot]:
        """Returns the stored named snapshots."""
        return {}

    def keep_named(self, name: str, snapshot: Json, layer: Layer) -> Callable[[], Layer]:
        """Writes a named snapshot. Returns a function that returns the state of the snapshot."""
        return lambda: layer

    def delete_named(self, name: str) -> None:
        """Deletes a named snapshot."""

    def keep_amendment(self, keys: Sequence[int | str], accounts: Json) -> None:
        """Records that accounts will change after the snapshots with these numbers and names.

        ``accounts``: lists of slots by account.
        """

    def readmit(self, chain: Chain, block_hash: bytes) -> None:
        """Adds a dropped block and its ancestors. Raises FastevmError if they are not stored."""
        raise FastevmError(f"block 0x{block_hash.hex()} was dropped with its branch")

    def seal_preconfirmed(self, chain: Chain, metrics: MetricsRegistry) -> None:
        """Seals the block whose slices the previous process published."""

    def restore_pool(self, readmit: Callable[[bytes], None], metrics: MetricsRegistry) -> None:
        """Calls ``readmit`` with each transaction that was pooled when the previous process
        ended.
        """

    def metrics(self) -> Mapping[str, float]:
        """Returns gauges by name."""
        return {}

    def close(self) -> None:
        """Closes the files of the data directory."""


class NodeStorage(NoStorage):
    """The part of a node that keeps its chain in a data directory.

    ``is_waiting`` returns whether a transaction hash is not in a block yet.
    """

    writes_files = True

    def __init__(self, directory: DataDirectory, is_waiting: Callable[[bytes], bool]) -> None:
        self.directory, self.is_waiting = directory, is_waiting

    def record(self, tx_hash: bytes, raw: bytes) -> None:
        """Writes a transaction that waits for a block. Raises OSError if it cannot be written."""
        self.directory.pool.add(tx_hash, raw)

    def tidy_pool(self) -> None:
        """Shortens the journal of the pool if it has grown."""
        self.directory.pool.tidy(self.is_waiting)

    def keep_slice(self, pending: PendingBlock) -> None:
        """Writes a slice before it is published."""
        self.directory.slices.keep(pending)

    def compact_pool(self) -> None:
        """Removes transactions that have left the pool from the pool's journal."""
        self.directory.pool.compact(self.is_waiting)

    @property
    def position(self) -> int:
        """The size of the journal of blocks in bytes."""
        return self.directory.blocks.file.size

    def development(self) -> Json | None:
        """Returns the state that `keep_development` wrote, or None."""
        return self.directory.development.state

    def keep_development(self, state: Json) -> None:
        """Writes the developer's settings."""
        self.directory.development.keep_state(state)

    def snapshots(self) -> dict[int, StoredSnapshot]:
        """Returns the stored numbered snapshots. Their states are computed again on demand."""
        log = self.directory.development
        return {
            number: (found, partial(self._state_of, found), log.amended.get(str(number), {}))
            for number, found in log.snapshots.items()
        }

    def _state_of(self, snapshot: Json) -> Layer:
        block_hash = bytes.fromhex(snapshot["head"][2:])
        return self.directory.state_at(block_hash, snapshot["position"])

    def keep_snapshot(self, number: int, snapshot: Json) -> None:
        """Writes a numbered snapshot. ``snapshot``: its description."""
        self.directory.development.keep_snapshot(number, snapshot)

    def revert_snapshots(self, number: int) -> None:
        """Deletes the numbered snapshots with ``number`` and higher numbers."""
        self.directory.development.revert(number)

    def named_snapshots(self) -> dict[str, StoredSnapshot]:
        """Returns the stored named snapshots. Their states are read from files on demand."""
        log = self.directory.development
        return {
            name: (found, partial(self._named_state, name), log.amended.get(name, {}))
            for name, found in self.directory.named.descriptions().items()
        }

    def keep_named(self, name: str, snapshot: Json, layer: Layer) -> Callable[[], Layer]:
        """Writes a named snapshot. Returns a function that reads the state of the snapshot."""
        self.directory.named.write(name, snapshot, layer)
        self.directory.development.forget(name)
        return partial(self._named_state, name)

    def _named_state(self, name: str) -> Layer:
        return self.directory.named.layer(name, self.directory.below)

    def delete_named(self, name: str) -> None:
        """Deletes a named snapshot."""
        self.directory.named.delete(name)
        self.directory.development.forget(name)

    def keep_amendment(self, keys: Sequence[int | str], accounts: Json) -> None:
        """Records that accounts will change after the snapshots with these numbers and names.

        ``accounts``: lists of slots by account.
        """
        self.directory.development.amend(keys, accounts)

    def readmit(self, chain: Chain, block_hash: bytes) -> None:
        """Restores a block that the chain dropped, and the block's ancestors.

        Raises StorageError.
        """
        self.directory.blocks.readmit(chain, block_hash)

    def seal_preconfirmed(self, chain: Chain, metrics: MetricsRegistry) -> None:
        """Seals the block whose slices the previous process published.

        If the block cannot be sealed, that is logged and counted as a broken pre-confirmation.
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
        """Calls ``readmit`` with each transaction that was pooled when the last process ended."""
        metrics.set("pool_restored", self.directory.pool.restore(readmit, self.is_waiting))

    def metrics(self) -> Mapping[str, float]:
        """Returns the sizes of the files and other gauges."""
        return self.directory.values()

    def close(self) -> None:
        """Closes the files."""
        self.directory.close()
