"""Results of many calls as columns: NumPy arrays if NumPy is installed, else arrays."""

from array import array
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from fastevm.core.execution.types import Log
from fastevm.evm.html_table import html_table
from fastevm.simulate.batch.arrow import ArrowTable
from fastevm.simulate.batch.results import Results

ADDRESS: Final = 20  # bytes of an address
REFUSED: Final = 0  # status in the row of a refused bundle
ROW: Final = ("bundle", "call", "status", "gas_used", "max_used_gas", "output")


@cache
def numpy() -> ModuleType | None:
    """Returns NumPy, or None if it is not installed. Imports it when columns are first used."""
    return None if find_spec("numpy") is None else import_module("numpy")


class Columns(Struct, frozen=True, kw_only=True):
    """The results of the calls of consecutive bundles.

    - ``first``: index of the first bundle among all bundles of the batch
    - ``calls``: index of the first call of each bundle, and the total at the end (bundles + 1
      items)
    - ``status``: 1 success, 2 revert, 3 halt
    - ``gas_used``, ``max_used_gas``: gas as int64
    - ``offsets``: start of each call's output in ``output``, and the total size at the end (calls +
      1 items)
    - ``errors``: index of a refused bundle -> its exception

    With ``balances``, there is one row for each account whose balance a bundle changed:

    - ``balance_bundle``: index of the bundle
    - ``balance_address``: 20 bytes
    - ``balance_change``: wei as 32 bytes, two's complement, big-endian (rows of bytes in NumPy,
      else concatenated)

    There is one row for each log:

    - ``log_call``: index of its call among all calls of these columns
    - ``log_address``: 20 bytes
    - ``log_topics``, ``log_data``: as in the log
    """

    first: int
    calls: Any
    status: Any
    gas_used: Any
    max_used_gas: Any
    offsets: Any
    output: bytes
    errors: dict[int, Exception]
    balance_bundle: Any
    balance_address: Any
    balance_change: Any
    log_call: Any
    log_address: Any
    log_topics: list[tuple[bytes, ...]]
    log_data: list[bytes]

    def output_of(self, call: int) -> bytes:
        """Returns the output of a call, by index over all calls of these columns."""
        return self.output[int(self.offsets[call]) : int(self.offsets[call + 1])]

    def __len__(self) -> int:
        """Returns the number of bundles. `status` has one item for each call."""
        return len(self.calls) - 1

    @property
    def logs(self) -> list[Log]:
        """Returns the logs of all calls in order. ``log_call`` has the indices of their calls."""
        addresses = bytes(self.log_address)
        found = zip(self.log_topics, self.log_data, strict=True)
        return [
            Log(addresses[ADDRESS * at : ADDRESS * (at + 1)], topics, data)
            for at, (topics, data) in enumerate(found)
        ]

    def rows(self) -> dict[str, list[Any]]:
        """Returns columns with one row per call, for `pandas.DataFrame` and `polars.DataFrame`.

        ``bundle``: index of the call's bundle. ``call``: index of the call in the bundle.
        ``status``, ``gas_used``, ``max_used_gas``: as in this class. ``output``: bytes. A refused
        bundle has an extra row after the rows of its executed calls, with status 0 and no gas.
        """
        found: list[tuple[int, int, int, int, int, bytes]] = []
        ends = [int(end) for end in self.offsets]
        for at, (begin, end) in enumerate(pairwise(int(bound) for bound in self.calls)):
            bundle = self.first + at
            for call in range(begin, end):
                gas, most = int(self.gas_used[call]), int(self.max_used_gas[call])
                output = self.output[ends[call] : ends[call + 1]]
                found.append((bundle, call - begin, int(self.status[call]), gas, most, output))
            if bundle in self.errors:
                found.append((bundle, end - begin, REFUSED, 0, 0, b""))
        columns = zip(*found, strict=True) if found else [()] * len(ROW)
        return {name: list(values) for name, values in zip(ROW, columns, strict=True)}

    def table(self) -> ArrowTable:
        """Returns the rows as an Arrow table, without a Python object for each value."""
        if self.errors:
            return self._table_of_rows()
        bounds = [int(bound) for bound in self.calls]
        counts = [end - begin for begin, end in pairwise(bounds)]
        bundles = (self.first + at for at, count in enumerate(counts) for _ in range(count))
        positions = (position for count in counts for position in range(count))
        columns = [
            ("bundle", "l", (_packed(bundles, "q"),)),
            ("call", "l", (_packed(positions, "q"),)),
            ("status", "C", (_packed(self.status, "B"),)),
            ("gas_used", "l", (_packed(self.gas_used, "q"),)),
            ("max_used_gas", "l", (_packed(self.max_used_gas, "q"),)),
            ("output", "Z", (_packed(self.offsets, "q"), self.output)),
        ]
        return ArrowTable(columns, bounds[-1] - bounds[0])

    def _table_of_rows(self) -> ArrowTable:
        rows = self.rows()
        numbers = [
            (name, "C" if name == "status" else "l", "B" if name == "status" else "q")
            for name in ROW[:-1]
        ]
        columns: list[Any] = [
            (name, kind, (_packed(rows[name], code),)) for name, kind, code in numbers
        ]
        offsets = [0, *accumulate(len(output) for output in rows["output"])]
        columns.append(("output", "Z", (_packed(offsets, "q"), self.output)))
        return ArrowTable(columns, len(rows["bundle"]))

    def balances(self) -> ArrowTable:
        """Returns changed balances: ``bundle``, ``address``, ``change`` in wei (32 bytes)."""
        columns = [
            ("bundle", "l", (_packed(self.balance_bundle, "q"),)),
            ("address", "w:20", (bytes(self.balance_address),)),
            ("change", "w:32", (bytes(self.balance_change),)),
        ]
        return ArrowTable(columns, len(self.balance_bundle))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Supports `pyarrow.table`, `polars.DataFrame`, `pandas` since 3 and DuckDB."""
        return self.table().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Returns an HTML table for notebooks, with one row per call."""
        rows = self.rows()
        title = f"{len(self):,} bundles of {len(self.status):,} calls"
        return html_table(title, tuple(rows), zip(*rows.values(), strict=True))

    def to_pandas(self) -> Any:
        """Returns a `pandas.DataFrame` of the rows. Raises ImportError without pandas."""
        return import_module("pandas").DataFrame(self.rows())

    def to_polars(self) -> Any:
        """Returns a `polars.DataFrame` of the rows. Raises ImportError without polars."""
        return import_module("polars").DataFrame(self.rows())


def columns_of(results: Results) -> Columns:
    """Returns the columns of results."""
    packed = results.columns()
    bundles, addresses, changes = results.balances()
    log_calls, logs = results.logs()
    return Columns(
        first=results.first,
        calls=_numbers(packed["calls"]),
        status=_numbers(packed["status"]),
        gas_used=_signed(packed["gas_used"]),
        max_used_gas=_signed(packed["max_used_gas"]),
        offsets=_numbers(packed["offsets"]),
        output=packed["output"],
        errors={results.first + at: error for at, error in results.faults.items()},
        balance_bundle=_numbers(bundles),
        balance_address=_rows(addresses, 20),
        balance_change=_rows(changes, 32),
        log_call=_numbers(log_calls),
        log_address=_rows(b"".join(log.address for log in logs), 20),
        log_topics=[log.topics for log in logs],
        log_data=[log.data for log in logs],
    )


def _packed(values: Any, typecode: str) -> bytes:
    """Returns numbers as contiguous bytes."""
    found = numpy()
    if found is not None and isinstance(values, found.ndarray):
        return bytes(values.astype(typecode, copy=False).tobytes())
    same = isinstance(values, array) and values.typecode == typecode
    return (values if same else array(typecode, values)).tobytes()


def _numbers(values: "array[int]") -> Any:
    found = numpy()
    return values if found is None else found.frombuffer(values, dtype=values.typecode)


def _signed(values: "array[int]") -> Any:
    """Returns gas as int64, because differences may be negative. The engine's limit is 63 bits."""
    return _numbers(array("q", values.tobytes()))


def _rows(data: bytes, size: int) -> Any:
    found = numpy()
    return data if found is None else found.frombuffer(data, dtype="u1").reshape(-1, size)
