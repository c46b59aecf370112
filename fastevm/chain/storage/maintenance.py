"""Verifies and repairs the record files of a data directory that no node uses.

Verification changes nothing. Repair first copies a damaged file to a new name. Then it corrects a
single flipped bit, which the checksum locates, or removes records that cannot be corrected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from fastevm.chain.storage import (
    block_journal,
    development_log,
    named_snapshots,
    pool_journal,
    preconfirmed,
    state_snapshot,
)
from fastevm.chain.storage.archive_file import ArchiveFile
from fastevm.chain.storage.block_record import block_of, hashes_of, receipts_of
from fastevm.chain.storage.data_directory import (
    ABANDONED_PREFIX,
    MEMBERS,
    lock_directory,
    lock_for_reading,
    release_lock,
)
from fastevm.chain.storage.genesis_file import (
    GENESIS_NAME,
    has_changed,
    parse_genesis_file,
    read_genesis_file,
)
from fastevm.chain.storage.named_snapshots import FOLDER_NAME, snapshot_files
from fastevm.chain.storage.record_file import (
    CUT_SUFFIX,
    HEAD,
    SALT_BYTES,
    Damage,
    Record,
    RecordFile,
    StorageError,
    copy_aside,
    has_header,
    header_bytes,
    header_with,
    new_header,
    old_header,
    read_header,
    record_checksum,
    replace_file,
    scan,
)
from fastevm.core.primitives.keccak import keccak256
from fastevm.errors import FastevmError

DAMAGED_SUFFIX: Final = ".damaged-"  # followed by a number
CRC_POLYNOMIAL: Final = 0xEDB88320  # CRC-32, reflected
MAX_FLIPPED_BITS: Final = 8  # most flipped bits in a file header that is repaired
# larger records are not corrected, because that takes seconds
MAX_CORRECTED_BYTES: Final = 16 * 1024 * 1024
KINDS: Final = {
    block_journal.FILE_NAME: {
        block_journal.BLOCK: "blocks",
        block_journal.HEAD: "heads",
        block_journal.AMENDMENT: "amendments",
    },
    pool_journal.FILE_NAME: {pool_journal.TRANSACTION: "transactions"},
    preconfirmed.FILE_NAME: {preconfirmed.DRAFT: "drafts", preconfirmed.SLICE: "slices"},
    state_snapshot.FILE_NAME: {},
    development_log.FILE_NAME: {
        development_log.STATE: "states",
        development_log.SNAPSHOT: "snapshots",
        development_log.REVERTED: "returns",
        development_log.AMENDED: "amendments",
    },
}


class FileReport(NamedTuple):
    """The result of `verify` for a file. ``problems`` are sentences with byte offsets.

    ``counts``: number of records by kind. ``damages``: byte ranges without complete records.
    """

    name: str
    size: int
    counts: dict[str, int]
    damages: tuple[Damage, ...]
    problems: tuple[str, ...]


def verify(directory: Path) -> list[FileReport]:
    """Reads every record of every file. Raises StorageError if a node uses the directory."""
    with _read_lock(directory):
        label = _label(directory)
        reports = {name: _verify_file(directory / name, label) for name in MEMBERS}
        blocks = reports[block_journal.FILE_NAME]
        problems = []
        lost = _lost_bytes(directory, label, _whole_size(blocks))
        if lost:
            problems.append(
                f"{directory / blocks.name}: the last {lost} bytes at least are missing"
            )
        orphan = _orphaned_slices(directory, label)
        if orphan is not None:
            problems.append(
                f"{directory / blocks.name}: block {orphan.draft.number - 1} is missing, on which "
                f"{preconfirmed.FILE_NAME} has {orphan}"
            )
        reports[blocks.name] = blocks._replace(problems=(*blocks.problems, *problems))
        named = [_verify_snapshot(path, label) for path in snapshot_files(directory)]
        return [_verify_genesis(directory / GENESIS_NAME), *reports.values(), *named]


def repair(directory: Path, genesis: bytes | None = None) -> list[str]:
    """Repairs a damaged directory. Returns the repairs as sentences.

    ``genesis``: content of a missing ``genesis.json``. Raises StorageError if this content belongs
    to another chain, or if a node uses the directory.
    """
    with _lock(directory):
        done = []
        if not (directory / GENESIS_NAME).exists() and genesis is not None:
            _check_genesis(directory, genesis)
            replace_file(directory / GENESIS_NAME, genesis)
            done.append(f"{GENESIS_NAME}: written")
        label = _label(directory)
        for name in MEMBERS:
            done += _repair_file(directory / name, label)
        for path in snapshot_files(directory):
            done += _repair_snapshot(path, label)
        return done + _accept_loss(directory, label) + _return_slices(directory, label)


def set_aside_files(directory: Path) -> list[Path]:
    """Returns the cut, repaired and abandoned files that the directory keeps."""
    folders = (directory, directory / FOLDER_NAME)
    endings = (CUT_SUFFIX, DAMAGED_SUFFIX)
    aside = [path for each in folders for end in endings for path in each.glob(f"*{end}*")]
    return sorted([*aside, *directory.glob(ABANDONED_PREFIX + "*")])


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    _check_directory(directory)
    lock = lock_directory(directory)
    try:
        yield
    finally:
        release_lock(lock)


@contextmanager
def _read_lock(directory: Path) -> Iterator[None]:
    _check_directory(directory)
    lock = lock_for_reading(directory)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _check_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise StorageError(f"{directory} is not a directory")


def _label(directory: Path) -> bytes:
    found = read_genesis_file(directory / GENESIS_NAME)
    if found is None:
        raise StorageError(f"{directory} lacks {GENESIS_NAME}")
    return found.label


def _check_genesis(directory: Path, genesis: bytes) -> None:
    label = parse_genesis_file(genesis, Path(GENESIS_NAME)).label
    for name in MEMBERS:
        path = directory / name
        if path.exists() and not has_header(path, label):
            raise StorageError(f"{path} belongs to another genesis")


def _verify_file(path: Path, label: bytes) -> FileReport:
    if not path.exists():
        return FileReport(path.name, 0, {}, (), (f"{path} is missing",))
    size = path.stat().st_size
    with path.open("rb") as file:
        if read_header(file.fileno(), label) is None:
            problem = f"{path}: the file header at byte 0 is not that of this chain"
            return FileReport(path.name, size, {}, (), (problem,))
        kinds = KINDS.get(path.name, {})
        counts = dict.fromkeys(kinds.values(), 0)
        damages: list[Damage] = []
        problems: list[str] = []
        for found in _scan(file.fileno(), label):
            if isinstance(found, Damage):
                damages.append(found)
                problems.append(_damage_text(path, found))
                continue
            kind = kinds.get(found.kind, "records")
            counts[kind] = counts.get(kind, 0) + 1
            wrong = _block_problem(found) if kind == "blocks" else None
            if wrong is not None:
                problems.append(f"{path}: the block at byte {found.start}: {wrong}")
    return FileReport(path.name, size, counts, tuple(damages), tuple(problems))


def _verify_genesis(path: Path) -> FileReport:
    problem = f"{path}: its content is not what a node wrote: compare it with a copy"
    problems = (problem,) if has_changed(path) else ()
    return FileReport(path.name, path.stat().st_size, {}, (), problems)


def _verify_snapshot(path: Path, label: bytes) -> FileReport:
    found = _verify_file(path, label)
    name = f"{path.parent.name}/{path.name}"
    if found.problems or _is_complete(path, label):
        return found._replace(name=name)
    return found._replace(name=name, problems=(f"{path} is not complete",))


def _is_complete(path: Path, label: bytes) -> bool:
    """Returns whether the last record of a named snapshot is its end."""
    return [record.kind for record in _records(path, label)][-1:] == [named_snapshots.END]


def _repair_snapshot(path: Path, label: bytes) -> list[str]:
    """Corrects a named snapshot, or moves it aside if it stays incomplete."""
    if not _verify_snapshot(path, label).problems:
        return []
    done = _repair_file(path, label)
    if _is_complete(path, label):
        return done
    aside = copy_aside(path, DAMAGED_SUFFIX)
    path.unlink()
    return [*done, f"{path.name}: cannot be used; it is kept as {aside.name}"]


def _whole_size(report: FileReport) -> int:
    """Returns the size of a file without an incomplete last record."""
    torn = [damage.start for damage in report.damages if damage.is_tail]
    return torn[0] if torn else report.size


def _lost_bytes(directory: Path, label: bytes, size: int) -> int:
    """Returns how many bytes a journal of ``size`` bytes has lost since the snapshot was
    written.
    """
    path = directory / state_snapshot.FILE_NAME
    if not path.exists() or not has_header(path, label):
        return 0
    with path.open("rb") as file:
        first = next(_scan(file.fileno(), label), None)
    return max(0, state_snapshot.journal_size_in(first) - size)


def _accept_loss(directory: Path, label: bytes) -> list[str]:
    """Records the size of the shortened journal of blocks in the state snapshot."""
    size = _whole_size(_verify_file(directory / block_journal.FILE_NAME, label))
    lost = _lost_bytes(directory, label, size)
    if not lost:
        return []
    snapshots = state_snapshot.SnapshotFile(directory, label)
    snapshots.shorten_journal(size)
    snapshots.file.close()
    return [f"{block_journal.FILE_NAME}: its last {lost} bytes at least are lost"]


def _records(path: Path, label: bytes) -> Iterator[Record]:
    """Yields the complete records of a file; none if it does not exist."""
    if path.exists():
        with path.open("rb") as file:
            for found in _scan(file.fileno(), label):
                if isinstance(found, Record):
                    yield found


def _orphaned_slices(directory: Path, label: bytes) -> preconfirmed.PreconfirmedBlock | None:
    """Returns the newest pre-confirmed block if the journal of blocks lacks the block's parent."""
    try:
        newest = preconfirmed.newest_block(_records(directory / preconfirmed.FILE_NAME, label))
        parent = b"" if newest is None else newest.draft.parent_hash
        if newest is None or label.startswith(parent):  # a label begins with the genesis hash
            return None
        for record in _records(directory / block_journal.FILE_NAME, label):
            if record.kind == block_journal.BLOCK and hashes_of(record.payload)[0] == parent:
                return None
    except (FastevmError, ValueError):  # damage is reported elsewhere
        return None
    return newest


def _return_slices(directory: Path, label: bytes) -> list[str]:
    """Moves pre-confirmed transactions to the pool if they can no longer be sealed."""
    orphan = _orphaned_slices(directory, label)
    if orphan is None:
        return []
    path = directory / preconfirmed.FILE_NAME
    aside = copy_aside(path, DAMAGED_SUFFIX)
    pool = RecordFile(directory / pool_journal.FILE_NAME, label)
    for raw in orphan.transactions:
        pool.append(pool_journal.TRANSACTION, keccak256(raw) + raw)
    pool.sync()
    pool.close()
    slices = RecordFile(path, label)
    slices.clear()
    slices.sync()
    slices.close()
    return [
        f"{path.name}: block {orphan.draft.number - 1} is lost, so {orphan} go back to the pool; "
        f"the slices are in {aside.name}"
    ]


def _damage_text(path: Path, damage: Damage) -> str:
    kind = "a torn record, which the next start cuts off" if damage.is_tail else "damaged"
    return f"{path}: bytes {damage.start} to {damage.end}: {kind}"


def _block_problem(record: Record) -> str | None:
    try:
        block_of(record.payload)
        receipts_of(record.payload)
    except (FastevmError, ValueError) as error:
        return str(error)
    return None


def _repair_file(path: Path, label: bytes) -> list[str]:
    if not path.exists():
        made = RecordFile(path, label)
        made.sync()
        made.close()
        return [f"{path.name}: was missing; made without records"]
    with path.open("rb") as file:
        if read_header(file.fileno(), label) is None:
            return _repair_header(path, label)
        damages = [item for item in _scan(file.fileno(), label) if isinstance(item, Damage)]
    if all(damage.is_tail for damage in damages):
        return []
    aside = copy_aside(path, DAMAGED_SUFFIX)
    ArchiveFile(path.parent, label).remove()  # the index refers to the old offsets
    done: list[str] = []
    target = RecordFile(path, label)
    with aside.open("rb") as source:
        kept = _kept(path.name, source.fileno(), label, done)
        target.rewrite((record.kind, record.payload) for record in kept)
    target.close()
    return [*done, f"{path.name}: repaired; the damaged file is {aside.name}"]


def _repair_header(path: Path, label: bytes) -> list[str]:
    with path.open("rb") as file:
        found = file.read(header_bytes(label))
    header = _corrected_header(found, label)
    if header is None:
        raise StorageError(f"{path} is not a file of this version and chain: move it away first")
    aside = copy_aside(path, DAMAGED_SUFFIX)
    with path.open("r+b") as file:
        file.write(header)
        file.flush()
        os.fsync(file.fileno())
    return [f"{path.name}: header repaired; the damaged file is {aside.name}"]


def _corrected_header(found: bytes, label: bytes) -> bytes | None:
    """Returns the original header for these damaged bytes, or None if no such header is near
    enough.

    If the file ends within its header, returns a new header. Otherwise at most MAX_FLIPPED_BITS
    bits may differ from a valid header, and at most one of them in the salt.
    """
    old = old_header(label).data
    if len(found) < header_bytes(label):
        starts = (old, new_header(label).data)
        if any(start.startswith(found[: len(old)]) for start in starts):
            return new_header(label).data
    salt = int.from_bytes(found[len(old) : len(old) + SALT_BYTES], "big")
    flips = (0, *(1 << bit for bit in range(8 * SALT_BYTES)))
    headers = (old, *(header_with(label, salt ^ flip).data for flip in flips))
    nearest = min(headers, key=lambda header: _flipped_bits(header, found))
    return nearest if _flipped_bits(nearest, found) <= MAX_FLIPPED_BITS else None


def _flipped_bits(header: bytes, found: bytes) -> int:
    other = found[: len(header)].ljust(len(header), b"\0")
    return (int.from_bytes(header, "big") ^ int.from_bytes(other, "big")).bit_count()


def _scan(descriptor: int, label: bytes) -> Iterator[Record | Damage]:
    """Yields records and damages of an open file. Raises StorageError without a valid header."""
    header = read_header(descriptor, label)
    if header is None:
        raise StorageError("the file header is not that of this chain")
    return scan(descriptor, os.fstat(descriptor).st_size, len(header.data), header.salt)


def _kept(name: str, descriptor: int, label: bytes, done: list[str]) -> Iterator[Record]:
    """Yields the records of the repaired file. Appends a description of each repair to ``done``.

    A record that cannot be corrected is left out of the pool's journal. All other files end before
    such a record, because a chain and a block under construction cannot continue after a gap. Only
    the newest state of the development log is kept in addition.
    """
    header = read_header(descriptor, label)
    assert header is not None
    parts = _scan(descriptor, label)
    for part in parts:
        if isinstance(part, Record):
            yield part
            continue
        damaged = os.pread(descriptor, part.end - part.start, part.start)
        record = corrected(damaged, header.salt)
        if record is not None:
            done.append(f"{name}: a flipped bit in the record at byte {part.start} corrected")
            yield record
        elif name == pool_journal.FILE_NAME:
            done.append(f"{name}: the record at byte {part.start} left out")
        elif name == development_log.FILE_NAME:
            done.append(
                f"{name}: ends before the damage at byte {part.start}, but for the newest state"
            )
            later = (found for found in parts if isinstance(found, Record))
            yield from [found for found in later if found.kind == development_log.STATE][-1:]
            return
        else:
            done.append(f"{name}: ends before the damage at byte {part.start}")
            return


def corrected(data: bytes, salt: int) -> Record | None:
    """Returns the record in these bytes with one flipped bit corrected, or None if that is
    impossible.

    The checksum is linear: the difference between the stored and the computed checksum identifies
    the bit.
    """
    if not HEAD.size <= len(data) <= MAX_CORRECTED_BYTES:
        return None
    _, stored, kind = HEAD.unpack_from(data)
    payload = data[HEAD.size :]
    difference = record_checksum(kind, payload, salt) ^ stored
    if difference.bit_count() <= 1:  # the flipped bit is in the size or the checksum
        return Record(kind, payload, len(data))
    effect = CRC_POLYNOMIAL  # change of the checksum if the last bit is flipped
    for position in range(8 * len(payload) + 8):
        if effect == difference:
            fixed = bytearray(bytes([kind]) + payload)
            fixed[-1 - position // 8] ^= 0x80 >> position % 8
            return Record(fixed[0], bytes(fixed[1:]), len(data))
        effect = effect >> 1 ^ (CRC_POLYNOMIAL if effect & 1 else 0)
    return None
