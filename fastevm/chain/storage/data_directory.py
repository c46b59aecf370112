"""The data directory of a node: the files of one chain, used by one process at a time."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.storage import block_journal, pool_journal, preconfirmed, state_snapshot
from fastevm.chain.storage.archive import Archive
from fastevm.chain.storage.block_journal import BlockJournal, Progress
from fastevm.chain.storage.pool_journal import PoolJournal
from fastevm.chain.storage.preconfirmed import SliceJournal
from fastevm.chain.storage.record_file import (
    CorruptFile,
    RecordFile,
    StorageError,
    file_header,
    replace_file,
    sync_directory,
)
from fastevm.chain.storage.state_snapshot import SnapshotFile, Snapshotter
from fastevm.errors import FastevmError

log = logging.getLogger(__name__)

LOCK_NAME: Final = "LOCK"
GENESIS_NAME: Final = "genesis.json"
ABANDONED_PREFIX: Final = "abandoned-"
MAX_ABANDONED: Final = 8
FLUSH_SECONDS: Final = 1.0
LABEL_BYTES: Final = 40  # genesis hash and chain id
HEADER_BYTES: Final = len(file_header(bytes(LABEL_BYTES)))  # of a file without records
MEMBERS: Final = (
    block_journal.FILE_NAME,
    pool_journal.FILE_NAME,
    preconfirmed.FILE_NAME,
    state_snapshot.FILE_NAME,
)


class Fsync(Enum):
    """When written data is forced onto the disk.

    It matters only when the machine loses power or crashes: written data survives the end of the
    process in any case. ALWAYS: before a block becomes canonical, the names of new files included.
    EVERYSEC: within a second. NEVER: when the system writes it. The pool never waits for the disk:
    ALWAYS means EVERYSEC for it. Slices are never forced onto the disk.
    """

    ALWAYS = "always"
    EVERYSEC = "everysec"
    NEVER = "never"


class DataDirectory:
    """The files of one chain under one lock, from ``claim`` to ``close``.

    :class:`StorageError` when another process uses the directory, OSError when it cannot be made.
    """

    def __init__(
        self, path: Path, *, fsync: Fsync = Fsync.EVERYSEC, full_replay: bool = False
    ) -> None:
        """``full_replay``: execute every block again, so that old states can be read."""
        self.path, self.fsync, self.full_replay = path, fsync, full_replay
        path.mkdir(parents=True, exist_ok=True)
        self._lock = lock_directory(path)
        self._closed = Event()
        self._flusher: Thread | None = None
        self._files: tuple[RecordFile, ...] = ()
        self.snapshotter: Snapshotter | None = None
        self.metrics = MetricsRegistry()

    @property
    def genesis(self) -> dict[str, Any] | None:
        """The genesis of the stored chain (geth's format); None in an empty directory."""
        stored = self._stored()
        return None if stored is None else stored["genesis"]

    def claim(self, genesis: Mapping[str, Any], genesis_hash: bytes, chain_id: int) -> None:
        """Open the files for the chain of this genesis; an empty directory becomes its own.

        :class:`StorageError` when it holds another chain, or lacks one of its files.
        """
        identity = {"genesisHash": "0x" + genesis_hash.hex(), "chainId": chain_id}
        stored = self._stored()
        self._check_members(stored is not None)
        if stored is not None:
            found = {name: stored.get(name) for name in identity}
            if found != identity:
                raise StorageError(
                    f"{self.path} holds another chain: genesis {found['genesisHash']} of chain id "
                    f"{found['chainId']}, not {identity['genesisHash']} of chain id {chain_id}"
                )
        self._open(file_label(genesis_hash, chain_id))
        if stored is None or stored["genesis"] != genesis:  # last, for it says that all are there
            text = json.dumps({**identity, "genesis": genesis}, indent=1)
            replace_file(self.path / GENESIS_NAME, text.encode())
        if self.fsync is not Fsync.NEVER:
            self._flusher = Thread(target=self._flush, name="fastevm-flusher", daemon=True)
            self._flusher.start()

    def _open(self, label: bytes) -> None:
        """Open the record files, and wait until their names are on the disk."""
        self.blocks = BlockJournal(self.path, label, flush=self.fsync is Fsync.ALWAYS)
        self.pool = PoolJournal(self.path, label)
        self.slices = SliceJournal(self.path, label)
        self.snapshots = SnapshotFile(self.path, label)
        journals = (self.blocks.file, self.pool.file, self.slices.file)
        self._files = (*journals, self.snapshots.file)
        for file in self._files:
            file.sync()
        sync_directory(self.path)
        sync_directory(self.path.parent)

    def _check_members(self, is_claimed: bool) -> None:
        """StorageError when files of a claimed directory, or its genesis, are missing."""
        missing = [name for name in MEMBERS if not (self.path / name).exists()]
        if is_claimed and missing:
            raise StorageError(
                f"{self.path} lacks {', '.join(missing)}: restore from a copy, or accept the loss "
                f"with `fastevm db repair`"
            )
        records = [self.path / name for name in MEMBERS if name not in missing]
        short = [path for path in records if path.stat().st_size < HEADER_BYTES]
        if is_claimed and short:
            raise StorageError(
                f"{short[0]} has lost its content, even its header: restore it from a copy, or "
                f"accept the loss with `fastevm db repair`"
            )
        if not is_claimed and any(path.stat().st_size > HEADER_BYTES for path in records):
            raise StorageError(
                f"{self.path} lacks {GENESIS_NAME}: restore it from a copy, or give the genesis to "
                f"`fastevm db repair --genesis`"
            )

    def restore(self, fresh: Callable[[], Chain], progress: Progress | None = None) -> Chain:
        """The stored chain; ``fresh`` makes one of the genesis alone. Changes are kept from now on.

        Where the snapshot does not fit, every block is executed again. CorruptFile for a damaged
        journal, StorageError when it does not fit the genesis and the rules, or is shorter than
        when the snapshot was written.
        """
        self._check_length()
        snapshot = None if self.full_replay else self.snapshots.read()
        chain = self._begun(fresh)
        try:
            self.blocks.replay(chain, snapshot, progress)
        except CorruptFile:
            raise
        except (FastevmError, StorageError) as error:
            if snapshot is None:
                raise
            log.warning("the snapshot does not fit, every block is executed again: %s", error)
            chain, snapshot = self._begun(fresh), None
            self.blocks.replay(chain, None, progress)
        self._check_length()  # again, for a torn record may have been cut off
        self.snapshotter = Snapshotter(chain, self.snapshots, self.blocks.file)
        self.snapshotter.count_from(None if snapshot is None else snapshot.block_hash)
        return chain

    def _check_length(self) -> None:
        """StorageError when the journal of blocks has lost records at its end."""
        missing = self.snapshots.missing_bytes(self.blocks.file.size)
        if missing:
            raise StorageError(
                f"{self.blocks.file.path} lacks its last {missing} bytes at least, which it had "
                f"when the snapshot of the state was written: restore it from a copy, or accept "
                f"the loss with `fastevm db repair`"
            )

    def forget_snapshot(self) -> None:
        """Remove the snapshot of the state, and write none any more."""
        if self.snapshotter is not None:
            self.snapshotter.close()
        self.snapshots.file.clear()

    def _begun(self, fresh: Callable[[], Chain]) -> Chain:
        """A chain of the genesis alone, with an archive in this directory."""
        chain = fresh()
        chain.archive = Archive(self.blocks, self.path)
        return chain

    def report_to(self, metrics: MetricsRegistry) -> None:
        """Count in the metrics of a node from now on."""
        self.metrics = metrics
        if self.snapshotter is not None:
            self.snapshotter.metrics = metrics

    def values(self) -> dict[str, float]:
        """Sizes, by the names of the metrics."""
        return {
            "datadir_bytes": sum(file.size for file in self._files),
            "datadir_cut_bytes": sum(file.cut_bytes for file in self._files),
        }

    def abandon(self) -> Path:
        """Move all files to a new directory below this one; its path.

        StorageError when there are MAX_ABANDONED of these.
        """
        if len(list(self.path.glob(ABANDONED_PREFIX + "*"))) >= MAX_ABANDONED:
            raise StorageError(
                f"{self.path} has {MAX_ABANDONED} abandoned chains already: remove some of them"
            )
        aside = self.path / f"{ABANDONED_PREFIX}{time.time_ns()}"
        aside.mkdir()
        for file in self.path.iterdir():
            if file.is_file() and file.name != LOCK_NAME:
                file.rename(aside / file.name)
        sync_directory(aside)
        sync_directory(self.path)
        return aside

    def close(self) -> None:
        """Write everything to the disk and release the lock."""
        self._closed.set()
        if self.snapshotter is not None:
            self.snapshotter.close()
        if self._flusher is not None:
            self._flusher.join()
        for file in self._files:
            if self.fsync is not Fsync.NEVER:
                self._sync(file)
            file.close()
        os.close(self._lock)

    def _stored(self) -> dict[str, Any] | None:
        file = self.path / GENESIS_NAME
        try:
            found = json.loads(file.read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StorageError(f"{file}: {error}") from None
        if not isinstance(found, dict) or not isinstance(found.get("genesis"), dict):
            raise StorageError(f"{file} holds no genesis")
        return found

    def _flush(self) -> None:
        files = (self.blocks.file, self.pool.file)
        flushed = dict.fromkeys(files, -1)
        while not self._closed.wait(FLUSH_SECONDS):
            for file in files:
                size = file.size
                if flushed[file] != size:
                    self._sync(file)
                    flushed[file] = size

    def _sync(self, file: RecordFile) -> None:
        started = time.monotonic()
        try:
            file.sync()
        except OSError as error:
            log.error("%s could not be flushed to the disk: %s", file.path, error)
            self.metrics.count("datadir_flush_failures_total")
        self.metrics.set("datadir_flush_seconds", time.monotonic() - started)


def file_label(genesis_hash: bytes, chain_id: int) -> bytes:
    """The label of all record files of a chain."""
    return genesis_hash + chain_id.to_bytes(8, "big")


def lock_directory(path: Path) -> int:
    """The lock of a directory, as a descriptor; the system releases it when the process ends."""
    descriptor = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StorageError(f"{path} is in use by another node (process {owner})") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
