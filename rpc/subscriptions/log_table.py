"""Indexes the logs of one event by address and topic."""

from collections.abc import Collection, Sequence, Set
from functools import cached_property

from fastevm.core.execution.types import Log
from fastevm.rpc.limits import LOG_TOPICS_LIMIT
from fastevm.rpc.log_filter import LogFilter

Column = dict[bytes, list[int]]  # value -> indices of the logs that contain it


class LogTable:
    """Selects logs with an index.

    This is faster than a test of each log, because most filters match no log.
    """

    def __init__(self, logs: Sequence[Log]) -> None:
        self.logs = logs

    @cached_property
    def _columns(self) -> tuple[Column, ...]:
        """The columns: first the addresses, then the topics at each position."""
        columns: tuple[Column, ...] = tuple({} for _ in range(1 + LOG_TOPICS_LIMIT))
        for index, log in enumerate(self.logs):
            for column, value in zip(columns, (log.address, *log.topics), strict=False):
                column.setdefault(value, []).append(index)
        return columns

    def select(self, wanted: LogFilter) -> list[int]:
        """Returns the indices of the logs that match a filter, in ascending order."""
        candidates: Collection[int] = range(len(self.logs))
        for choices, column in zip((wanted.addresses, *wanted.topics), self._columns, strict=False):
            if choices:
                found = _common(choices, column)
                if sum(len(column[value]) for value in found) < len(candidates):
                    candidates = [index for value in found for index in column[value]]
        return [index for index in sorted(candidates) if wanted.matches(self.logs[index])]


def _common(choices: Set[bytes], column: Column) -> list[bytes]:
    """Returns the choices that occur in a column. Iterates over the smaller set."""
    if len(choices) <= len(column):
        return [value for value in choices if value in column]
    return [value for value in column if value in choices]
