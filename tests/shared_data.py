"""Locates the official tests and recorded chains, by default in a folder beside the repository.

Only developers have the folder. A test that reads a missing file is skipped with a reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


class SharedPath(PosixPath):
    """A path below the shared folder. Reading a missing file skips the test or module."""

    @property
    def required(self) -> SharedPath:
        """Returns the path. Skips the test or module if the path does not exist."""
        if not self.exists():
            where = "set FASTEVM_SHARED to the folder of official tests and recordings"
            pytest.skip(f"no {self.relative_to(SHARED)}: {where}", allow_module_level=True)
        return self

    def open(self, *args: Any, **kwargs: Any) -> Any:
        return super(SharedPath, self.required).open(*args, **kwargs)

    def iterdir(self) -> Iterator[SharedPath]:
        return super(SharedPath, self.required).iterdir()

    def glob(self, *args: Any, **kwargs: Any) -> Iterator[SharedPath]:
        return super(SharedPath, self.required).glob(*args, **kwargs)

    def rglob(self, *args: Any, **kwargs: Any) -> Iterator[SharedPath]:
        return super(SharedPath, self.required).rglob(*args, **kwargs)


SHARED = SharedPath(os.environ.get("FASTEVM_SHARED", ROOT.parent / "shared"))
REAL_BLOCKS = SHARED / "real-blocks"
# A recorded chain with its genesis, and recorded requests with their answers.
RECORDED = SHARED / "rpc-compat"
