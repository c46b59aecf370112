"""The disk cache: values, codes, headers and answers in an SQLite file shared by processes.

A value is stored under the block hash and its chain, a code under its own hash. The file is in WAL
mode, so a killed process loses only values that it has not written yet.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct

from fastevm.core.primitives.decompression import ZLIB, decompressed
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import Found, RemoteAccount
from fastevm.fork.pinned_block import PinnedBlock

log = logging.getLogger(__name__)

FILE_NAME: Final = "fork.sqlite"
VERSION: Final = 1  # schema version; a file with another version is recreated
DEFAULT_MAX_BYTES: Final = 2 * 1024**3
UNLIMITED: Final = 1 << 62  # bytes
BUSY_SECONDS: Final = 10.0  # how long a writer waits for another process
ROWS_PER_CHECK: Final = 20_000  # rows written between two checks of the size
KEPT_SHARE: Final = 0.8  # eviction reduces the file to this share of the limit
MAX_SLOTS_OF_ACCOUNT: Final = 20_000  # slots returned with a requested account
MAX_RESPONSE_BYTES: Final = 16 * 1024**2  # size limit of one cached answer
MAX_TEXT_BYTES: Final = 256 * 1024**2  # size limit of its decompressed text
QUERY_KEYS: Final = 500
BYTES_OF_A_ROW: Final = 200  # approximate size of a slot

Value = TypeVar("Value")

# Connections of the parent process after a fork: SQLite forbids closing them in the child.
_of_other_processes: list[sqlite3.Connection | None] = []

TABLES: Final = """
create table chain(id integer primary key, identity text unique not null);
create table block(
    id integer primary key, chain integer not null, number integer not null, hash blob not null,
    header blob not null, used real not null, unique(chain, hash));
create table account(
    block integer, address blob, balance blob, nonce blob, code blob,
    primary key(block, address)) without rowid;
create table slot(
    block integer, address blob, slot blob, value blob,
    primary key(block, address, slot)) without rowid;
create table block_hash(
    block integer, number integer, hash blob, primary key(block, number)) without rowid;
create table response(
    block integer, request blob, body blob, primary key(block, request)) without rowid;
create table code(hash blob primary key, code blob) without rowid;
create table latest_code(
    chain integer, address blob, hash blob, primary key(chain, address)) without rowid;
create table endpoint(key text primary key, chain text, abilities text) without rowid;
"""
OF_BLOCKS: Final = ("account", "slot", "block_hash", "response")
COUNTED: Final = ("chain", "block", *OF_BLOCKS, "code", "endpoint")


def cache_folder() -> Path:
    """Returns the folder FASTEVM_FORK_CACHE, or a folder in the user's cache folder by default."""
    chosen = os.environ.get("FASTEVM_FORK_CACHE")
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "fastevm" / "fork"


def max_cache_bytes() -> int:
    """Returns the size limit in bytes: FASTEVM_FORK_CACHE_BYTES, or the default."""
    text = os.environ.get("FASTEVM_FORK_CACHE_BYTES", "")
    return int(text) if text.isdigit() else DEFAULT_MAX_BYTES


class CachedBlock(Struct, frozen=True):
    """The key of a block in the cache file."""

    id: int
    chain: int


class DiskCache:
    """The cache file in ``folder``. Thread-safe, and usable after the process forks.

    If the file cannot be read or written, a warning is logged once and the cache is disabled: a
    cache error never stops a fork.
    """

    def __init__(self, folder: Path, max_bytes: int | None = None) -> None:
        self.path = folder / FILE_NAME
        self.max_bytes = max_cache_bytes() if max_bytes is None else max_bytes
        self.broken = False
        self._lock = threading.RLock()
        self._file: sqlite3.Connection | None = None
        self._process = 0
        self._rows = 0

    # --- blocks and headers ---------------------------------------------------------------------

    def block(self, chain: str, pinned: PinnedBlock) -> CachedBlock | None:
        """Returns the key of a block. Adds the block if it is new, and updates its time of use."""
        header = zlib.compress(json.dumps(dict(pinned.header)).encode(), 1)

        def write(file: sqlite3.Connection) -> CachedBlock:
            chain_id = self._chain(file, chain)
            file.execute(
                "insert into block(chain, number, hash, header, used) values(?, ?, ?, ?, ?)"
                " on conflict(chain, hash) do update set used = excluded.used",
                (chain_id, pinned.number, pinned.hash, header, time.time()),
            )
            row = file.execute(
                "select id from block where chain = ? and hash = ?", (chain_id, pinned.hash)
            ).fetchone()
            return CachedBlock(row[0], chain_id)

        return self._write(write)

    def find_block(
        self, chain: str, *, digest: bytes | None = None, number: int | None = None
    ) -> PinnedBlock | None:
        """Finds a block by hash or number, or the newest block.

        Returns None if it is not cached.
        """
        by = "hash = :hash" if digest is not None else "number = :number"
        by = "1" if digest is None and number is None else by
        rows = self._read(
            "select number, hash, header from block where chain ="
            f" (select id from chain where identity = :chain) and {by}"
            " order by number desc, used desc limit 1",
            {"chain": chain, "hash": digest, "number": number},
        )
        return next((_block(*row) for row in rows), None)

    # --- values ---------------------------------------------------------------------------------

    def put(self, block: CachedBlock, found: Found, *, replaces: bool = False) -> None:
        """Writes values of a block. ``replaces``: whether to overwrite existing values."""
        how = "replace" if replaces else "ignore"
        codes = {
            keccak256(account.code): account.code
            for account in found.accounts.values()
            if account.code
        }
        accounts = [
            (
                block.id,
                address,
                _shortest(item.balance),
                _shortest(item.nonce),
                _code_hash(item.code),
            )
            for address, item in found.accounts.items()
        ]
        slots = [
            (block.id, address, _shortest(slot), _shortest(value))
            for (address, slot), value in found.slots.items()
        ]
        hashes = [(block.id, number, digest) for number, digest in found.block_hashes.items()]
        newest = [(block.chain, address, digest) for _, address, _, _, digest in accounts]

        def write(file: sqlite3.Connection) -> None:
            file.executemany("insert or ignore into code values(?, ?)", codes.items())
            file.executemany(f"insert or {how} into account values(?, ?, ?, ?, ?)", accounts)
            file.executemany(f"insert or {how} into slot values(?, ?, ?, ?)", slots)
            file.executemany("insert or ignore into block_hash values(?, ?, ?)", hashes)
            file.executemany("insert or replace into latest_code values(?, ?, ?)", newest)

        self._write(write, len(slots) + 4 * len(accounts))

    def get(
        self,
        block: CachedBlock,
        accounts: Iterable[bytes],
        slots: Iterable[tuple[bytes, int]],
        numbers: Iterable[int] = (),
        *,
        given: Collection[bytes] = (),
    ) -> Found:
        """Returns the cached values of these keys, and all cached slots of ``accounts``.

        ``given``: accounts for which only the slots in ``slots`` are returned.
        """
        found = Found()
        by_account: dict[bytes, list[bytes]] = {address: [] for address in accounts}
        for address, slot in slots:
            by_account.setdefault(address, []).append(_shortest(slot))
        for keys in _in_pieces([*accounts]):
            for address, balance, nonce, digest, code in self._read(
                "select a.address, a.balance, a.nonce, a.code, c.code from account a left join"
                " code c on c.hash = a.code where a.block = ? and a.address in"
                f" ({_marks(keys)})",
                (block.id, *keys),
            ):
                # a code that is missing in the cache is fetched again
                if not digest or code is not None:
                    found.accounts[address] = RemoteAccount(
                        int.from_bytes(balance, "big"), int.from_bytes(nonce, "big"), code or b""
                    )
        for address, keys in by_account.items():
            self._get_slots(block, address, keys, found, whole=address not in given)
        for keys in _in_pieces([*numbers]):
            found.block_hashes.update(
                self._read(
                    "select number, hash from block_hash where block = ? and number in"
                    f" ({_marks(keys)})",
                    (block.id, *keys),
                )
            )
        return found

    def codes(self, block: CachedBlock, addresses: Iterable[bytes]) -> dict[bytes, bytes]:
        """Returns the newest cached codes of accounts of this chain, which may be outdated."""
        found: dict[bytes, bytes] = {}
        for keys in _in_pieces([*addresses]):
            found.update(
                self._read(
                    "select l.address, c.code from latest_code l join code c on c.hash = l.hash"
                    f" where l.chain = ? and l.address in ({_marks(keys)})",
                    (block.chain, *keys),
                )
            )
        return found

    # --- answers and endpoints ------------------------------------------------------------------

    def put_response(self, block: CachedBlock, request: bytes, answer: Any) -> None:
        """Stores the answer to a request that depends only on the block."""
        body = zlib.compress(json.dumps(answer, separators=(",", ":")).encode(), 1)
        if len(body) <= MAX_RESPONSE_BYTES:
            self._write(
                lambda file: file.execute(
                    "insert or replace into response values(?, ?, ?)", (block.id, request, body)
                ),
                1 + len(body) // BYTES_OF_A_ROW,
            )

    def response(self, block: CachedBlock, request: bytes) -> Any:
        """Returns a stored answer, or None. Null answers are not stored."""
        rows = self._read(
            "select body from response where block = ? and request = ?", (block.id, request)
        )
        return next(
            (json.loads(decompressed(body, MAX_TEXT_BYTES, ZLIB)) for (body,) in rows), None
        )

    def put_endpoint(self, key: str, chain: str, capabilities: Mapping[str, Any]) -> None:
        """Stores the chain and capabilities of an endpoint.

        ``key`` does not reveal the endpoint's address.
        """
        values = (key, chain, json.dumps(dict(capabilities)))
        self._write(
            lambda file: file.execute("insert or replace into endpoint values(?, ?, ?)", values)
        )

    def endpoint(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """Returns the chain and capabilities of an endpoint."""
        rows = self._read("select chain, abilities from endpoint where key = ?", (key,))
        return next(((chain, json.loads(text)) for chain, text in rows), None)

    # --- the file as a whole --------------------------------------------------------------------

    def stats(self) -> dict[str, int]:
        """Returns the number of rows of each kind, and the size of the file under ``bytes``."""
        found = {name: self._count(f"select count(*) from {name}") for name in COUNTED}
        return {**found, "bytes": self._used_bytes()}

    def chains(self) -> list[tuple[str, int, int, int]]:
        """Returns identity, number of blocks, lowest and highest block number of each chain."""
        return list(
            self._read(
                "select identity, count(b.id), coalesce(min(b.number), 0),"
                " coalesce(max(b.number), 0) from chain c left join block b on b.chain = c.id"
                " group by c.id order by identity",
                (),
            )
        )

    def clear(self, chain_id: int | None = None) -> int:
        """Deletes all blocks, or the blocks of one chain. Returns the number of deleted blocks."""
        condition = "1" if chain_id is None else "(identity = :id or identity like :id || ':%')"

        def write(file: sqlite3.Connection) -> int:
            ids = file.execute(
                "select b.id from block b join chain c on c.id = b.chain where " + condition,
                {"id": str(chain_id)},
            ).fetchall()
            if chain_id is None:
                for table in ("endpoint", "chain", "latest_code"):
                    file.execute(f"delete from {table}")
            self._delete(file, [item for (item,) in ids])
            return len(ids)

        deleted = self._write(write)
        self._shrink()
        return deleted or 0

    def drop(self, block: CachedBlock) -> None:
        """Deletes all data of a block."""
        self._write(lambda file: self._delete(file, [block.id]))

    def export(self, target: Path) -> None:
        """Writes a copy for `import_from`. Raises FileExistsError if ``target`` exists."""
        if target.exists():
            raise FileExistsError(f"{target} already exists: choose another file")
        with self._lock, self._guard():
            self._open().execute("vacuum into ?", (str(target),))

    def import_from(self, source: Path) -> int:
        """Adds the blocks of an exported file. Returns how many blocks were new.

        Raises ValueError.
        """
        if not _is_cache(source):
            raise ValueError(f"{source} is not an exported cache of this version")
        with self._lock:
            file = self._open()
            file.execute("attach ? as other", (f"{source}",))
            try:
                before = self._count("select count(*) from block")
                self._write(_merge)
                return self._count("select count(*) from block") - before
            finally:
                file.execute("detach other")

    def evict(self, max_bytes: int) -> int:
        """Deletes the least recently used blocks until the file fits.

        Returns how many were deleted.
        """

        def write(file: sqlite3.Connection) -> bool:
            row = file.execute("select id from block order by used limit 1").fetchone()
            if row is not None:
                self._delete(file, [row[0]])
            return bool(row)

        deleted = 0
        while self._used_bytes() > max_bytes and self._write(write):
            deleted += 1
        if deleted:
            self._shrink()
        return deleted

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            if self._file is not None and self._process == os.getpid():
                self._file.close()
            self._file = None

    def _delete(self, file: sqlite3.Connection, blocks: Sequence[int]) -> None:
        for keys in _in_pieces(blocks):
            for table in OF_BLOCKS:
                file.execute(f"delete from {table} where block in ({_marks(keys)})", keys)
            file.execute(f"delete from block where id in ({_marks(keys)})", keys)
        file.execute(
            "delete from code where hash not in (select code from account)"
            " and hash not in (select hash from latest_code)"
        )

    def _shrink(self) -> None:
        with self._lock, self._guard():
            self._open().execute("pragma incremental_vacuum").fetchall()

    def _get_slots(
        self,
        block: CachedBlock,
        address: bytes,
        slots: Sequence[bytes],
        found: Found,
        *,
        whole: bool,
    ) -> None:
        """Adds slots of an account.

        With ``whole``, adds all its slots if there are not too many.
        """
        query = "select slot, value from slot where block = ? and address = ?"
        if whole:
            query_all = f"{query} limit {MAX_SLOTS_OF_ACCOUNT}"
            rows = list(self._read(query_all, (block.id, address)))
            _add_slots(found, address, rows)
            if len(rows) < MAX_SLOTS_OF_ACCOUNT:
                return
        for keys in _in_pieces(slots):
            among = f"{query} and slot in ({_marks(keys)})"
            _add_slots(found, address, self._read(among, (block.id, address, *keys)))

    def _chain(self, file: sqlite3.Connection, identity: str) -> int:
        file.execute("insert or ignore into chain(identity) values(?)", (identity,))
        row = file.execute("select id from chain where identity = ?", (identity,)).fetchone()
        return int(row[0])

    def _used_bytes(self) -> int:
        pages = self._count("pragma page_count") - self._count("pragma freelist_count")
        return pages * self._count("pragma page_size")

    def _count(self, query: str) -> int:
        rows = list(self._read(query, ()))
        return int(rows[0][0]) if rows else 0

    def _read(self, query: str, values: Any) -> Iterable[Any]:
        with self._lock, self._guard():
            return self._open().execute(query, values).fetchall()
        return []

    def _write(self, work: Callable[[sqlite3.Connection], Value], rows: int = 1) -> Value | None:
        """Runs ``work`` in one transaction. Returns None and logs a warning if writing fails."""
        done = None
        with self._lock, self._guard():
            file = self._open()
            file.execute("begin immediate")
            try:
                done = work(file)
            except BaseException:
                file.execute("rollback")
                raise
            file.execute("commit")
        self._rows += rows
        if self._rows >= ROWS_PER_CHECK:
            self._rows = 0
            if self._used_bytes() > self.max_bytes:
                self.evict(int(self.max_bytes * KEPT_SHARE))
        return done

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if not self.broken:
                log.warning("the cache %s is not used: %s", self.path, error)
            self.broken = True

    def _open(self) -> sqlite3.Connection:
        if self.broken:
            raise sqlite3.OperationalError("disabled after an earlier failure")
        if self._file is None or self._process != os.getpid():
            _of_other_processes.append(self._file)
            self._process = os.getpid()
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = _connect(self.path)
        return self._file


def _connect(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    file.execute("pragma auto_vacuum = incremental")
    file.execute("pragma journal_mode = wal")
    file.execute("pragma synchronous = normal")
    file.execute("pragma mmap_size = 268435456")
    file.execute("begin immediate")
    (version,) = file.execute("pragma user_version").fetchone()
    if version != VERSION:
        for (name,) in file.execute("select name from sqlite_master where type = 'table'"):
            file.execute(f"drop table {name}")
        for statement in TABLES.split(";"):
            file.execute(statement)
        file.execute(f"pragma user_version = {VERSION}")
    file.execute("commit")
    return file


def _is_cache(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        file = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            return bool(file.execute("pragma user_version").fetchone() == (VERSION,))
        finally:
            file.close()
    except sqlite3.Error:
        return False


def _merge(file: sqlite3.Connection) -> None:
    """Copies the rows of the attached file ``other``, with this file's chain and block keys."""
    file.execute("insert or ignore into chain(identity) select identity from other.chain")
    file.execute(
        "insert or ignore into block(chain, number, hash, header, used)"
        " select m.id, b.number, b.hash, b.header, b.used from other.block b"
        " join other.chain c on c.id = b.chain join main.chain m on m.identity = c.identity"
    )
    same = (
        " from other.{table} o join other.block b on b.id = o.block"
        " join other.chain c on c.id = b.chain join main.chain mc on mc.identity = c.identity"
        " join main.block m on m.chain = mc.id and m.hash = b.hash"
    )
    columns = {
        "account": "o.address, o.balance, o.nonce, o.code",
        "slot": "o.address, o.slot, o.value",
        "block_hash": "o.number, o.hash",
        "response": "o.request, o.body",
    }
    for table, names in columns.items():
        file.execute(
            f"insert or ignore into {table} select m.id, {names}" + same.format(table=table)
        )
    file.execute("insert or ignore into code select * from other.code")
    file.execute(
        "insert or ignore into latest_code select m.id, o.address, o.hash from other.latest_code o"
        " join other.chain c on c.id = o.chain join main.chain m on m.identity = c.identity"
    )


def _block(number: int, digest: bytes, header: bytes) -> PinnedBlock:
    return PinnedBlock(number, digest, json.loads(decompressed(header, MAX_TEXT_BYTES, ZLIB)))


def _add_slots(found: Found, address: bytes, rows: Iterable[tuple[bytes, bytes]]) -> None:
    for slot, value in rows:
        found.slots[(address, int.from_bytes(slot, "big"))] = int.from_bytes(value, "big")


def _code_hash(code: bytes) -> bytes:
    return keccak256(code) if code else b""


def _shortest(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _marks(keys: Sequence[Any]) -> str:
    return ",".join("?" * len(keys))


def _in_pieces(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for at in range(0, len(keys), QUERY_KEYS):
        yield keys[at : at + QUERY_KEYS]
