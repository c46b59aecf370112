"""Loads and saves a development chain: --state, --load-state, --dump-state."""

from __future__ import annotations

import argparse
import logging
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

NAME_IN_DIRECTORY: Final = "state.json"

log = logging.getLogger(__name__)


class StateFile:
    """A context manager that loads the chain of ``node`` and saves it regularly and at the end."""

    def __init__(self, node: Any, arguments: argparse.Namespace) -> None:
        self.node = node
        self.target: Path | None = arguments.dump_state or arguments.state
        if self.target is not None and self.target.is_dir():
            self.target = self.target / NAME_IN_DIRECTORY
        self.source: Path | None = arguments.load_state
        if self.source is None and arguments.state is not None and self.target is not None:
            self.source = self.target if self.target.is_file() else None
        self.interval: float | None = arguments.state_interval
        self.historical: bool = arguments.preserve_historical_states
        self._ended, self._writing = threading.Event(), threading.Lock()

    def __enter__(self) -> Self:
        """Load the chain. Raises ValueError if a file has no chain or the directory is missing."""
        if self.target is not None and not self.target.parent.is_dir():
            raise ValueError(f"{self.target}: directory {self.target.parent} does not exist")
        if self.source is not None:
            try:
                self.node.load_state(self.source.read_bytes())
            except ValueError as error:
                raise ValueError(f"{self.source}: {error}") from None
        if self.interval is not None and self.target is not None:
            threading.Thread(target=self._run, name="fastevm-state", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if kind is None:
            self.write()

    def write(self) -> None:
        """Save the chain to the file atomically. Raises OSError."""
        if self.target is not None:
            with self._writing:
                part = self.target.with_name(self.target.name + ".part")
                part.write_bytes(self.node.dump_state(historical=self.historical))
                part.replace(self.target)

    def _run(self) -> None:
        while not self._ended.wait(self.interval):
            try:
                self.write()
            except OSError as error:
                log.warning("the state could not be written: %s", error)
