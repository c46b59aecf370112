"""The outcomes of many calls as columns: NumPy arrays where NumPy is installed, else arrays."""

from array import array
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from types import ModuleType
from typing import Any

from msgspec import Struct

from fastevm.evm.html_table import html_table
from fastevm.simulate.batch.arrow import ArrowTable
from fastevm.simulate.batch.results import Results


@cache
def numpy() -> ModuleType | None:
    """NumPy, imported when columns are first asked for; None where it is not installed."""
    return None if find_spec("numpy") is None else import_module("numpy")


class Columns(Struct, frozen=True, kw_only=True):
    """The outcomes of the calls of consecutive bundles, bundle after bundle.

    ``first``: the position of the first bundle among all. ``calls``: where the calls of each bundle
    begin, and their number at the end (bundles + 1). ``status``: 1 success, 2 revert, 3 halt.
    ``gas_used``, ``max_used_gas``: gas. ``offsets``: where the output of each call begins in
    ``output``, and its size at the end (calls + 1). ``errors``: position of a refused bundle to its
    exception. With balances, one row for each account that a bundle made richer or poorer:
    ``balance_bundle``: its position; ``balance_address``: 20 bytes; ``balance_change``: wei as 32
    bytes, two's complement, big-endian (rows of bytes in NumPy, else one run of bytes). One row for
    each log: ``log_call``: the position of its call among all calls of these columns;
    ``log_address``: 20 bytes; ``log_topics``, ``log_data``: as in the log.
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
        """The output of a call, counted over all calls of these columns."""
        return self.output[int(self.offsets[call]) : int(self.offsets[call + 1])]

    def __len__(self) -> int:
        return len(self.calls) - 1

    def rows(self) -> dict[str, list[Any]]:
        """One row for each call: what `pandas.DataFrame` and `polars.DataFrame` take.

        ``bundle``: the position of its bundle; ``call``: its place in that; ``status``,
        ``gas_used``, ``max_used_gas`` as here; ``output``: bytes.
        """
        bounds = [int(bound) for bound in self.calls]
        counts = [end - begin for begin, end in pairwise(bounds)]
        ends = [int(end) for end in self.offsets]
        return {
            "bundle": [self.first + at for at, count in enumerate(counts) for _ in range(count)],
            "call": [place for count in counts for place in range(count)],
            "status": [int(status) for status in self.status],
            "gas_used": [int(gas) for gas in self.gas_used],
            "max_used_gas": [int(gas) for gas in self.max_used_gas],
            "output": [self.output[begin:end] for begin, end in pairwise(ends)],
        }

    def table(self) -> ArrowTable:
        """The same as an Arrow table, which has the values without a copy as Python objects."""
        bounds = [int(bound) for bound in self.calls]
        counts = [end - begin for begin, end in pairwise(bounds)]
        bundles = (self.first + at for at, count in enumerate(counts) for _ in range(count))
        places = (place for count in counts for place in range(count))
        columns = [
            ("bundle", "l", (_packed(bundles, "q"),)),
            ("call", "l", (_packed(places, "q"),)),
            ("status", "C", (_packed(self.status, "B"),)),
            ("gas_used", "L", (_packed(self.gas_used, "Q"),)),
            ("max_used_gas", "L", (_packed(self.max_used_gas, "Q"),)),
            ("output", "Z", (_packed(self.offsets, "q"), self.output)),
        ]
        return ArrowTable(columns, bounds[-1] - bounds[0])

    def balances(self) -> ArrowTable:
        """Who became richer or poorer: ``bundle``, ``address``, ``change`` in wei (32 bytes)."""
        columns = [
            ("bundle", "l", (_packed(self.balance_bundle, "q"),)),
            ("address", "w:20", (bytes(self.balance_address),)),
            ("change", "w:32", (bytes(self.balance_change),)),
        ]
        return ArrowTable(columns, len(self.balance_bundle))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """For `pyarrow.table`, `polars.DataFrame`, `pandas` from 3 and DuckDB."""
        return self.table().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """A table for notebooks, one row for each call."""
        rows = self.rows()
        title = f"{len(self):,} bundles of {len(self.status):,} calls"
        return html_table(title, tuple(rows), zip(*rows.values(), strict=True))

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` of the rows; ImportError where pandas is not installed."""
        return import_module("pandas").DataFrame(self.rows())

    def to_polars(self) -> Any:
        """A `polars.DataFrame` of the rows; ImportError where polars is not installed."""
        return import_module("polars").DataFrame(self.rows())


def columns_of(results: Results) -> Columns:
    """The columns of the results of some bundles."""
    packed = results.columns()
    bundles, addresses, changes = results.balances()
    log_calls, logs = results.logs()
    return Columns(
        first=results.first,
        calls=_numbers(packed["calls"]),
        status=_numbers(packed["status"]),
        gas_used=_numbers(packed["gas_used"]),
        max_used_gas=_numbers(packed["max_used_gas"]),
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
    """Numbers one behind the other."""
    found = numpy()
    if found is not None and isinstance(values, found.ndarray):
        return bytes(values.astype(typecode, copy=False).tobytes())
    same = isinstance(values, array) and values.typecode == typecode
    return (values if same else array(typecode, values)).tobytes()


def _numbers(values: "array[int]") -> Any:
    found = numpy()
    return values if found is None else found.frombuffer(values, dtype=values.typecode)


def _rows(data: bytes, size: int) -> Any:
    found = numpy()
    return data if found is None else found.frombuffer(data, dtype="u1").reshape(-1, size)
