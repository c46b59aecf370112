"""JSON-RPC calls of one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

MAX_SHOWN: Final = 200  # characters of the parameters in messages


class RpcCall(Struct, frozen=True):
    """A JSON-RPC call.

    An ``optional`` call may fail, and is dropped if the endpoint refuses the whole batch.
    ``exists``: the requested object is known to exist, so a null result means that the server lags
    behind.
    """

    method: str
    params: Sequence[Any] = ()
    optional: bool = False
    exists: bool = False

    def __str__(self) -> str:
        return f"{self.method}({', '.join(map(str, self.params))[:MAX_SHOWN]})"
