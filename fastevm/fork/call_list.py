"""JSON-RPC calls that go to an endpoint together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_SHOWN: Final = 200  # characters of the parameters


@dataclass(frozen=True, slots=True)
class RpcCall:
    """A call; an ``optional`` one may be refused, and is left out when a batch as such is."""

    method: str
    params: Sequence[Any] = ()
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.method}({', '.join(map(str, self.params))[:MAX_SHOWN]})"
