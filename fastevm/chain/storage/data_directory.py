"""The data directory of a node: the files of one chain. Only one process may use it at a time."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.storage import (
    block_journal,
    development_log,
    pool_journal,
    preconfirmed,
    state_snapshot,
)
from fastevm.chain.storage.archive import Archive
from fastevm.chain.storage.block_journal import BlockJournal, Progress
from fastevm.chain.storage.development_log import DevelopmentLog
from fastevm.chain.storage.genesis_file import (
    GENESIS_NAME,
    GenesisFile,
    Pace,
    genesis_file,
    read_genesis_file,
)
from fastevm.chain.storage.named_snapshots import FOLDER_NAME, NamedSnapshots
from fastevm.chain.storage.pool_journal import PoolJournal
from fastevm.chain.storage.preconfirmed import SliceJournal
from fastevm.chain.storage.record_file import (
    CorruptFile,
    RecordFile,
    StorageError,
    has_header,
    header_bytes,
    replace_file,
    sync_directory,
)
from fastevm.chain.storage.state_snapshot import Snapshot, SnapshotFile, Snapshotter
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.errors import FastevmError

log = logging.getLogger(__name__)

LOCK_NAME: Final = "LOCK"
ABANDONED_PREFIX: Final = "abandoned-"
MAX_ABANDONED: Final = 8
FLUSH_SECONDS: Final = 1.0
LABEL_BYTES: Final = 40  # genesis hash and chain id
HEADER_BYTES: Final = header_bytes(bytes(LABEL_BYTES))  # size of a file without records
MEMBERS: Final = (
    block_journal.FILE_NAME,
    pool_journal.FILE_NAME,
    preconfirmed.FILE_NAME,
    state_snapshot.FILE_NAME,
    development_log.FILE_NAME,
)


class Fsync(Enum):
    """When written data is flushed to disk.

    The setting only matters if the computer loses power or its system crashes: written data always
    survives the end of the process.

    - ALWAYS: before a block becomes canonical. The names of new files are flushed, too.
    - EVERYSEC: within a second.
    - NEVER: when the operating system decides.

    The pool never waits for the disk: for the pool, ALWAYS means EVERYSEC. Slices are never
    flushed. If the disk has slices but lacks the block below them, the next start fails with an
    error.
    """

    ALWAYS = "always"
    EVERYSEC = "everysec"
    NEVER = "never"


class DataDirectory:
    """The files of one chain. ``claim`` opens them. The directory is locked until ``close``.

    Raises :class:`StorageError` if another process uses the directory, and OSError if it cannot be
    created.
    """

    def __init__(
        self, path: Path, *, fsync: Fsync = Fsync.EVERYSEC, full_replay: bool = False
    ) -> None:
        """Prepares the directory at ``path``.

        ``full_replay``: execute every block again, so that old states can be read.
        """
        self.path, self.fsync, self.full_replay = path, fsync, full_replay
        path.mkdir(parents=True, exist_ok=True)
        self._lock = lock_directory(path)
        self._closed = Event()
        self._flusher: Thread | None = None
        self._files: tuple[RecordFile, ...] = ()
        self._fresh: Callable[[], Chain]
        self.below: RemoteState | None = None  # the remote state below a forked chain's states
        self.snapshotter: Snapshotter | None = None
        self.metrics = MetricsRegistry()

    @property
    def genesis(self) -> dict[str, Any] | None:
        """The genesis of the stored chain (geth's format), or None in an empty directory."""
        stored = self._stored()
        return None if stored is None else stored.genesis

    @property
    def chain_id(self) -> int | None:
        """The chain id of the stored chain, or None in an empty directory."""
        stored = self._stored()
        return None if stored is None else stored.chain_id

    @property
    def pace(self) -> Pace | None:
        """The block and slice intervals, or None if the directory does not record them."""
        stored = self._stored()
        return None if stored is None else stored.pace

    def claim(
        self,
        genesis: Mapping[str, Any],
        genesis_hash: bytes,
        chain_id: int,
        pace: Pace | None = None,
    ) -> None:
        """Opens the files for the chain of this genesis, or creates them in an empty directory.

        ``pace``: block time and slice interval of a node that builds blocks. Raises
        :class:`StorageError` if the directory has another chain or pace, or lacks one of its files.
        """
        stored = self._stored()
        self._check_members(None if stored is None else stored.label)
        claimed = genesis_file(genesis, genesis_hash, chain_id, pace)
        if stored is not None:
            if stored.label != claimed.label:
                raise StorageError(
                    f"{self.path} holds another chain: genesis {stored.genesis_hash} of chain id "
                    f"{stored.chain_id}, not {claimed.genesis_hash} of chain id {chain_id}"
                )
            if pace is None:
                claimed = genesis_file(genesis, genesis_hash, chain_id, stored.pace)
            elif stored.pace not in (None, pace):
                raise StorageError(
                    f"{self.path} was made with {stored.pace}, not {pace}: give the same "
                    f"--block-time and --slice-interval, or another --datadir"
                )
        self._open(claimed.label)
        if stored != claimed:  # written last, because it marks the directory as complete
            replace_file(self.path / GENESIS_NAME, claimed.encoded())
        if self.fsync is not Fsync.NEVER:
            self._flusher = Thread(target=self._flush, name="fastevm-flusher", daemon=True)
            self._flusher.start()

    def _open(self, label: bytes) -> None:
        """Opens the record files and flushes their directory entries."""
        self.blocks = BlockJournal(self.path, label, flush=self.fsync is Fsync.ALWAYS)
        self.pool = PoolJournal(self.path, label)
        self.slices = SliceJournal(self.path, label)
        self.snapshots = SnapshotFile(self.path, label)
        self.development = DevelopmentLog(self.path, label)
        self.named = NamedSnapshots(self.path, label)
        journals = (
            self.blocks.file, self.pool.file, self.slices.file, self.development.file,
        )  # fmt: skip
        self._files = (*journals, self.snapshots.file)
        for file in self._files:
            file.sync()
        sync_directory(self.path)
        sync_directory(self.path.parent)

    def _check_members(self, label: bytes | None) -> None:
        """Raises StorageError if the genesis or a record file is missing, or a file has lost its
        header.

        ``label``: the label of the stored genesis; None if there is no genesis.
        """
        missing = [name for name in MEMBERS if not (self.path / name).exists()]
        if label is not None and missing:
            raise StorageError(
                f"{self.path} lacks {', '.join(missing)}: restore from a copy, or accept the loss "
                f"with `fastevm db repair`"
            )
        records = [self.path / name for name in MEMBERS if name not in missing]
        short = [path for path in records if path.stat().st_size < HEADER_BYTES]
        if label is not None:
            short = [path for path in short if not has_header(path, label)]
        if label is not None and short:
            raise StorageError(
                f"{short[0]} has lost its content, even its header: restore it from a copy, or "
                f"accept the loss with `fastevm db repair`"
            )
        if label is None and any(path.stat().st_size > HEADER_BYTES for path in records):
            raise StorageError(
                f"{self.path} lacks {GENESIS_NAME}: restore it from a copy, or give the genesis to "
                f"`fastevm db repair --genesis`"
            )

    def restore(self, fresh: Callable[[], Chain], progress: Progress | None = None) -> Chain:
        """Returns the stored chain. From now on, changes of the chain are recorded.

        ``fresh()`` creates a chain with only its genesis. If the snapshot does not match the
        journal, every block is executed again.

        Raises CorruptFile if the journal is damaged. Raises StorageError if the journal does not
        match the genesis and the rules, or is shorter than when the snapshot was written.
        """
        self._check_length()
        self.development.impersonate_signatures()
        first = fresh()
        self.below = first.layer_of(first.head.hash).remote_state
        snapshot = None if self.full_replay else self.snapshots.read(self.below)
        self._fresh = fresh
        chain = self._continued(fresh, snapshot, progress)
        if chain is None:
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
        self._check_length()  # again, because a torn record may have been cut off
        self._check_preconfirmed(chain)
        self.snapshotter = Snapshotter(chain, self.snapshots, self.blocks.file)
        self.snapshotter.count_from(None if snapshot is None else snapshot.block_hash)
        self.blocks.on_amendment = partial(self.snapshotter.count, state_snapshot.AMENDMENT_GAS)
        return chain

    def state_at(self, block_hash: bytes, end: int) -> Layer:
        """Returns the state of a block at the time when the journal of blocks had ``end`` bytes.

        All blocks are executed again, which takes as long as a start without a snapshot. The chain
        must not change at the same time. Raises the errors of `restore`.
        """
        chain = self._begun(self._fresh)
        self.blocks.replay_to(chain, end)
        return chain.layer_of(block_hash)

    def _continued(
        self, fresh: Callable[[], Chain], snapshot: Snapshot | None, progress: Progress | None
    ) -> Chain | None:
        """Returns the chain from the last block of the saved archive on, or None if the journal
        does not contain that block.

        Earlier records are not read, so damage in them is only found when such a block is read.
        """
        chain = self._begun(fresh)
        archive = chain.archive
        if snapshot is None or not isinstance(archive, Archive):
            return None
        if not archive.restore(self.snapshots.archive_file):
            return None
        start = self.blocks.continue_archive(chain, archive)
        if start is None:
            return None
        try:
            self.blocks.replay(chain, snapshot, progress, start)
        except CorruptFile:
            raise
        except (FastevmError, StorageError) as error:
            log.warning("the index of old blocks is rebuilt: %s", error)
            return None
        return chain

    def _check_length(self) -> None:
        """Raises StorageError if the journal of blocks has lost records at its end."""
        missing = self.snapshots.missing_bytes(self.blocks.file.size)
        if missing:
            raise StorageError(
                f"{self.blocks.file.path} lacks its last {missing} bytes at least, which it had "
                f"when the snapshot of the state was written: restore it from a copy, or accept "
                f"the loss with `fastevm db repair`"
            )

    def _check_preconfirmed(self, chain: Chain) -> None:
        """Raises StorageError if slices were published on a block that the journal does not have.

        A block that is in the journal but not in the chain was abandoned for another branch, which
        is not an error.
        """
        newest = self.slices.newest()
        if newest is None or chain.knows(newest.draft.parent_hash):
            return
        if not self.blocks.has_block(newest.draft.parent_hash):
            raise StorageError(
                f"{self.blocks.file.path} lacks blocks at its end: {self.slices.file.path} holds "
                f"{newest}, and block {newest.draft.number - 1} is missing. Intact are the blocks "
                f"up to {chain.head.number} and these transactions. Restore the file from a copy, "
                f"or accept the loss with `fastevm db repair`"
            )

    def forget_slices(self, chain: Chain) -> None:
        """Removes the published slices unless their block is a child of the head."""
        newest = self.slices.newest()
        if newest is not None and newest.draft.parent_hash != chain.head.hash:
            self.slices.file.clear()

    def forget_snapshot(self) -> None:
        """Removes the state snapshot and prevents further snapshots."""
        if self.snapshotter is not None:
            self.snapshotter.close()
        self.snapshots.file.clear()
        self.snapshots.archive_file.remove()

    def _begun(self, fresh: Callable[[], Chain]) -> Chain:
        """Returns a chain that contains only its genesis, with an archive in this directory."""
        chain = fresh()
        chain.archive = Archive(self.blocks, self.path)
        return chain

    def report_to(self, metrics: MetricsRegistry) -> None:
        """Uses the metrics of a node from now on."""
        self.metrics = metrics
        if self.snapshotter is not None:
            self.snapshotter.metrics = metrics

    def values(self) -> dict[str, float]:
        """Returns file sizes by metric name."""
        return {
            "datadir_bytes": sum(file.size for file in self._files),
            "datadir_cut_bytes": sum(file.cut_bytes for file in self._files),
        }

    def abandon(self) -> Path:
        """Moves all files to a new directory below this one. Returns the path of that directory.

        Raises StorageError if MAX_ABANDONED such directories exist already.
        """
        if len(list(self.path.glob(ABANDONED_PREFIX + "*"))) >= MAX_ABANDONED:
            raise StorageError(
                f"{self.path} has {MAX_ABANDONED} abandoned chains already: remove some of them"
            )
        aside = self.path / f"{ABANDONED_PREFIX}{time.time_ns()}"
        aside.mkdir()
        for file in self.path.iterdir():
            if file.name == FOLDER_NAME or (file.is_file() and file.name != LOCK_NAME):
                file.rename(aside / file.name)
        sync_directory(aside)
        sync_directory(self.path)
        return aside

    def close(self) -> None:
        """Flushes everything to disk and releases the lock."""
        self._closed.set()
        if self.snapshotter is not None:
            self.snapshotter.close()
        if self._flusher is not None:
            self._flusher.join()
        for file in self._files:
            if self.fsync is not Fsync.NEVER:
                self._sync(file)
            file.close()
        release_lock(self._lock)

    def _stored(self) -> GenesisFile | None:
        return read_genesis_file(self.path / GENESIS_NAME)

    def _flush(self) -> None:
        files = (self.blocks.file, self.pool.file, self.development.file)
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


def lock_directory(path: Path) -> int:
    """Locks a directory and returns a descriptor. The system releases the lock at process exit.

    Raises :class:`StorageError` if another process holds the lock, or if `LOCK_NAME` is a link:
    writing the process id would overwrite the link's target.
    """
    descriptor = _open_lock(path, os.O_RDWR | os.O_CREAT)
    _lock(descriptor, path, fcntl.LOCK_EX)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def lock_for_reading(path: Path) -> int | None:
    """Locks a directory for reading, shared with other readers, and writes nothing.

    Returns a descriptor, or None if no node has ever locked the directory. Raises StorageError.
    """
    try:
        descriptor = _open_lock(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    _lock(descriptor, path, fcntl.LOCK_SH)
    return descriptor


def release_lock(descriptor: int) -> None:
    """Releases the lock. The lock file stays, without a process id."""
    os.ftruncate(descriptor, 0)
    os.close(descriptor)


def _open_lock(path: Path, flags: int) -> int:
    file = path / LOCK_NAME
    try:
        # O_NONBLOCK: a named pipe must not block the start
        descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StorageError(f"{file} is a symbolic link: remove it") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise StorageError(f"{file} is no regular file, or has a second name: remove it")
    return descriptor


def _lock(descriptor: int, path: Path, operation: int) -> None:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StorageError(f"{path} is in use by another node (process {owner})") from None
