# Types of packed logs and of the filters over them.
from collections.abc import Collection, Sequence
from typing import Protocol, final

from fastevm.core.execution.types import Log, Receipt
from fastevm.core.primitives.bloom import BloomQuery

class Hashed(Protocol):
    @property
    def hash(self) -> bytes: ...

@final
class BlockLogs:
    def __new__(
        cls,
        number: int,
        timestamp: int,
        block_hash: bytes,
        transactions: Sequence[Hashed],
        receipts: Sequence[Receipt],
        timestamp_ms: int = 0,
    ) -> BlockLogs: ...
    @property
    def number(self) -> int: ...
    @property
    def size(self) -> int: ...
    def __len__(self) -> int: ...
    def select(self, query: LogQuery) -> list[tuple[int, Log]]: ...

@final
class LogQuery:
    def __new__(
        cls, addresses: Collection[bytes] = (), topics: Sequence[Collection[bytes]] = ()
    ) -> LogQuery: ...
    @property
    def blooms(self) -> BloomQuery: ...
