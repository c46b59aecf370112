"""JSON-RPC calls that go to an endpoint together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

MAX_SHOWN: Final = 200  # characters of the parameters


class RpcCall(Struct, frozen=True):
    """A call; an ``optional`` one may be refused, and is left out when a batch as such is.

    ``exists``: what it asks for was seen, so that null is the answer of a machine that lags.
    """

    method: str
    params: Sequence[Any] = ()
    optional: bool = False
    exists: bool = False

    def __str__(self) -> str:
        return f"{self.method}({', '.join(map(str, self.params))[:MAX_SHOWN]})"
