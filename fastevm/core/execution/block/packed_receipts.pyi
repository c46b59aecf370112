"""The receipts of a finished block, packed until they are read."""

from collections.abc import Sequence
from typing import Any, overload

from fastevm.core.execution.types import Receipt

class PackedReceipts(Sequence[Receipt]):
    """An immutable sequence of receipts, equal to a tuple of the same receipts."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> Receipt: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Receipt, ...]: ...
    def count(self, value: Any) -> int: ...
    def index(self, value: Any, *span: int) -> int: ...
