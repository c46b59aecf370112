"""All answers of a watch as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from msgspec import Struct

from fastevm.simulate.batch.arrow import ArrowTable
from fastevm.simulate.batch.columns import numpy
from fastevm.simulate.watch.change import Change


class WatchColumns(Struct, frozen=True, kw_only=True):
    """Answers as columns: NumPy arrays if NumPy is installed, else arrays.

    There is one row for each question. ``id``; ``success``; ``stale``: whether the answer belongs
    to an older base; ``sequence``: sequence number of the answer's base, 0 without an answer;
    ``status`` of the last call: 1 success, 2 revert, 3 halt, 0 none; ``gas_used``: gas of all
    calls; ``offsets``: start of the last call's output in ``output``, and the total size at the end
    (rows + 1 items).
    """

    id: Any
    success: Any
    stale: Any
    sequence: Any
    status: Any
    gas_used: Any
    offsets: Any
    output: bytes

    def __len__(self) -> int:
        return len(self.id)

    def table(self) -> ArrowTable:
        """Returns the rows as an Arrow table."""
        columns = [
            ("id", "L", (_packed(self.id, "Q"),)),
            ("success", "C", (_packed(self.success, "B"),)),
            ("stale", "C", (_packed(self.stale, "B"),)),
            ("sequence", "L", (_packed(self.sequence, "Q"),)),
            ("status", "C", (_packed(self.status, "B"),)),
            ("gas_used", "L", (_packed(self.gas_used, "Q"),)),
            ("output", "Z", (_packed(self.offsets, "q"), self.output)),
        ]
        return ArrowTable(columns, len(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Supports `pyarrow.table`, `polars.DataFrame`, `pandas` since 3 and DuckDB."""
        return self.table().__arrow_c_stream__(requested_schema)

    def rows(self) -> dict[str, list[Any]]:
        """Returns columns of Python values. ``output`` has bytes in each row."""
        ends = [int(end) for end in self.offsets]
        return {
            "id": [int(value) for value in self.id],
            "success": [bool(value) for value in self.success],
            "stale": [bool(value) for value in self.stale],
            "sequence": [int(value) for value in self.sequence],
            "status": [int(value) for value in self.status],
            "gas_used": [int(value) for value in self.gas_used],
            "output": [self.output[ends[at] : ends[at + 1]] for at in range(len(self))],
        }

    def to_pandas(self) -> Any:
        """Returns a `pandas.DataFrame`. Raises ImportError if pandas is not installed."""
        return import_module("pandas").DataFrame(self.rows())

    def to_polars(self) -> Any:
        """Returns a `polars.DataFrame`. Raises ImportError if polars is not installed."""
        return import_module("polars").DataFrame(self.rows())


def columns_of(changes: Iterable[Change]) -> WatchColumns:
    """Returns the columns of current answers."""
    ids, sequences, gas, offsets = array("Q"), array("Q"), array("Q"), array("Q", [0])
    success, stale, status = array("B"), array("B"), array("B")
    output = bytearray()
    for change in changes:
        answer = change.answer
        calls = () if answer is None else answer.calls
        last = calls[-1] if calls else None
        ids.append(change.id)
        success.append(answer is not None and answer.success)
        stale.append(change.stale)
        sequences.append(0 if answer is None or change.base is None else change.base.sequence)
        status.append(0 if last is None else 1 if last.success else 2 if last.reverted else 3)
        gas.append(0 if answer is None else answer.gas_used)
        output += b"" if last is None else last.output
        offsets.append(len(output))
    return WatchColumns(
        id=_numbers(ids),
        success=_numbers(success),
        stale=_numbers(stale),
        sequence=_numbers(sequences),
        status=_numbers(status),
        gas_used=_numbers(gas),
        offsets=_numbers(offsets),
        output=bytes(output),
    )


def _numbers(values: array[int]) -> Any:
    found = numpy()
    return values if found is None else found.frombuffer(values, dtype=values.typecode)


def _packed(values: Any, typecode: str) -> bytes:
    return array(typecode, [int(value) for value in values]).tobytes()
