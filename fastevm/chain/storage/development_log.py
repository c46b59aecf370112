"""Stores a developer's changes to a chain: clock, block settings, impersonation, snapshots.

The content of each record is a JSON object. The newest STATE record replaces the earlier ones.
Opening the file removes all outdated records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from fastevm.chain.storage.record_file import Record, RecordFile, StorageError
from fastevm.core.precompiles.ecrecover import impersonate_signature

FILE_NAME: Final = "development.log"
STATE, SNAPSHOT, REVERTED, AMENDED = 1, 2, 3, 4  # kinds of records
MIN_COMPACTION_BYTES: Final = 1024 * 1024
Json = dict[str, Any]


class DevelopmentLog:
    """The developer's changes. ``state`` is the newest state.

    ``snapshots`` maps the number of a snapshot to its JSON object. ``amended`` maps the number or
    name of a snapshot to the slots, by account, that changed after it without a block. One thread
    may append.
    """

    def __init__(self, directory: Path, label: bytes) -> None:
        self.file = RecordFile(directory / FILE_NAME, label)
        self.state: Json | None = None
        self.snapshots: dict[int, Json] = {}
        self.amended: dict[str, dict[str, list[str]]] = {}
        for record in self.file.records():
            self._read(record)
        self.compact()

    def impersonate_signatures(self) -> None:
        """Registers the impersonated signatures with ECRECOVER, because stored blocks may recover
        them.
        """
        for signer, signature in (self.state or {}).get("signatures", ()):
            impersonate_signature(bytes.fromhex(signature[2:]), bytes.fromhex(signer[2:]))

    def keep_state(self, state: Json) -> None:
        """Records a changed state."""
        self.state = state
        self._append(STATE, state)

    def keep_snapshot(self, number: int, snapshot: Json) -> None:
        """Records a new snapshot."""
        self.snapshots[number] = snapshot
        self._append(SNAPSHOT, {"number": number, **snapshot})

    def revert(self, number: int) -> None:
        """Records that the snapshots from ``number`` on were deleted."""
        self._drop(number)
        self._append(REVERTED, {"number": number})

    def amend(self, keys: Iterable[int | str], accounts: Json) -> None:
        """Records that accounts will be changed after these snapshots were taken.

        ``keys``: numbers or names of the snapshots. ``accounts``: lists of changed slots by
        account.
        """
        record = {"snapshots": list(map(str, keys)), "accounts": accounts}
        self._add_amended(record)
        self._append(AMENDED, record)

    def forget(self, name: str) -> None:
        """Removes the amendments after a named snapshot, because it is replaced or deleted."""
        if self.amended.pop(name, None) is not None:
            self.compact()

    def compact(self) -> None:
        """Removes outdated records from the file."""
        records: list[tuple[int, Json]] = []
        if self.state is not None:
            records.append((STATE, self.state))
        records += [
            (SNAPSHOT, {"number": number, **found}) for number, found in self.snapshots.items()
        ]
        records += [
            (AMENDED, {"snapshots": [key], "accounts": accounts})
            for key, accounts in self.amended.items()
        ]
        kept = [(kind, json.dumps(record).encode()) for kind, record in records]
        if kept != [(record.kind, record.payload) for record in self.file.records()]:
            self.file.rewrite(kept)
        self._kept_bytes = self.file.size

    def forget_snapshots(self) -> None:
        """Removes all numbered snapshots, because the journal of blocks was rewritten."""
        self._drop(0)
        self.compact()

    def _append(self, kind: int, record: Json) -> None:
        self.file.append(kind, json.dumps(record).encode())
        if self.file.size > max(MIN_COMPACTION_BYTES, 2 * self._kept_bytes):
            self.compact()

    def _read(self, record: Record) -> None:
        try:
            found = json.loads(record.payload)
            if record.kind == STATE:
                self.state = found
            elif record.kind == SNAPSHOT:
                self.snapshots[found.pop("number")] = found
            elif record.kind == REVERTED:
                self._drop(found["number"])
            elif record.kind == AMENDED:
                self._add_amended(found)
            else:
                raise ValueError(f"a record of kind {record.kind}")
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise StorageError(f"{self.file.path}, byte {record.start}: {error}") from None

    def _drop(self, number: int) -> None:
        for each in [each for each in self.snapshots if each >= number]:
            del self.snapshots[each]
            self.amended.pop(str(each), None)

    def _add_amended(self, record: Json) -> None:
        for key in record["snapshots"]:
            known = self.amended.setdefault(key, {})
            for name, slots in record["accounts"].items():
                known[name] = sorted({*known.get(name, ()), *slots})
