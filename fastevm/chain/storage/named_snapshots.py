"""Named snapshots of a development chain: files in a folder of the data directory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from fastevm.chain.storage.record_file import RecordFile, StorageError, sync_directory
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.streaming import StateReader, write_state

FOLDER_NAME: Final = "snapshots"
SUFFIX: Final = ".snapshot"
DESCRIPTION, CHUNK, END = 1, 2, 3  # kinds of records
NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


def check_name(name: str) -> str:
    """Returns the name of a snapshot. Raises ValueError if it is invalid."""
    if not NAME.fullmatch(name):
        raise ValueError(
            "invalid name of a snapshot: expected 1 to 64 letters, digits, '-', '_' or '.', not"
            " beginning with '.'"
        )
    return name


def snapshot_files(directory: Path) -> list[Path]:
    """Returns the files of all named snapshots of a data directory."""
    return sorted((directory / FOLDER_NAME).glob("*" + SUFFIX))


class NamedSnapshots:
    """The snapshots: one file for each name, with the state and a JSON object of other data."""

    def __init__(self, directory: Path, label: bytes) -> None:
        self.folder, self.label = directory / FOLDER_NAME, label

    def write(self, name: str, description: dict[str, Any], layer: Layer) -> None:
        """Writes a snapshot. Atomically replaces an existing snapshot with this name.

        Raises ValueError for an invalid name, and OSError.
        """
        check_name(name)
        self.folder.mkdir(exist_ok=True)
        file = self._open(name)
        try:
            with file.replacement() as fresh:
                fresh.append(DESCRIPTION, json.dumps(description).encode())
                write_state(layer, lambda chunk: fresh.append(CHUNK, chunk))
                fresh.append(END, b"")
        finally:
            file.close()

    def descriptions(self) -> dict[str, dict[str, Any]]:
        """Returns the description of each snapshot by name. Incomplete files are skipped."""
        found: dict[str, dict[str, Any]] = {}
        for path in snapshot_files(self.folder.parent):
            file = self._open(path.name.removesuffix(SUFFIX))
            try:
                first = next(file.records(), None)
                if first is not None and first.kind == DESCRIPTION:
                    found[path.name.removesuffix(SUFFIX)] = json.loads(first.payload)
            finally:
                file.close()
        return found

    def layer(self, name: str, below: RemoteState | None) -> Layer:
        """Returns the state of a snapshot. Raises StorageError for a damaged file.

        ``below``: see `StateReader`.
        """
        file, reader, kind = self._open(name), StateReader(below), 0
        try:
            for record in file.records():
                kind = record.kind
                if kind == CHUNK:
                    reader.add(record.payload)
        except ValueError as error:
            raise StorageError(f"{file.path} cannot be used: {error}") from None
        finally:
            file.close()
        if kind != END:
            raise StorageError(f"{file.path} cannot be used: it is not complete")
        return reader.finish()

    def delete(self, name: str) -> None:
        """Deletes the file of a snapshot."""
        self._path(name).unlink(missing_ok=True)
        sync_directory(self.folder)

    def _path(self, name: str) -> Path:
        return self.folder / (name + SUFFIX)

    def _open(self, name: str) -> RecordFile:
        return RecordFile(self._path(name), self.label)
