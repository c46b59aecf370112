"""The journal of the pool: submitted transactions that no block contains yet."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Final

from fastevm.chain.storage.record_file import RecordFile

log = logging.getLogger(__name__)

FILE_NAME: Final = "pool.log"
TRANSACTION: Final = 1
HASH_BYTES: Final = 32
MIN_COMPACTION_BYTES: Final = 16 * 1024 * 1024

IsWaiting = Callable[[bytes], bool]


class PoolJournal:
    """Submitted transactions with their sidecars. Any thread may append.

    ``is_waiting(hash)`` returns whether a transaction is still in the pool.
    """

    def __init__(self, directory: Path, label: bytes) -> None:
        self.file = RecordFile(directory / FILE_NAME, label)
        self._lock = Lock()
        self._kept_bytes = 0

    def add(self, tx_hash: bytes, raw: bytes) -> None:
        """Records a transaction that the pool accepts. ``raw``: the submitted bytes."""
        with self._lock:
            self.file.append(TRANSACTION, tx_hash + raw)

    def tidy(self, is_waiting: IsWaiting) -> None:
        """Compacts the file if it has doubled in size."""
        if self.file.size <= max(MIN_COMPACTION_BYTES, 2 * self._kept_bytes):
            return
        try:
            self.compact(is_waiting)
        except OSError as error:
            log.warning("%s could not be compacted: %s", self.file.path, error)

    def compact(self, is_waiting: IsWaiting) -> None:
        """Keeps only the transactions that are still in the pool."""
        with self._lock:
            self._rewrite(is_waiting)

    def restore(self, submit: Callable[[bytes], None], is_waiting: IsWaiting) -> int:
        """Submits all recorded transactions again. Returns how many were accepted and kept.

        ``submit`` must not raise for a transaction that has become invalid.
        """
        with self._lock:
            for record in self.file.records():
                submit(record.payload[HASH_BYTES:])
            return self._rewrite(is_waiting)

    def _rewrite(self, is_waiting: IsWaiting) -> int:
        kept = [
            (record.kind, record.payload)
            for record in self.file.records()
            if is_waiting(record.payload[:HASH_BYTES])
        ]
        self.file.rewrite(kept)
        self._kept_bytes = self.file.size
        return len(kept)
