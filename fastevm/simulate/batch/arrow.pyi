"""Columns as an Arrow C stream."""

from collections.abc import Sequence
from typing import Any

class ArrowTable:
    """A table that pyarrow, polars, pandas and DuckDB read, mostly without copies."""

    rows: int
    def __init__(
        self, columns: Sequence[tuple[str, str, tuple[bytes, ...]]], rows: int
    ) -> None: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any: ...
