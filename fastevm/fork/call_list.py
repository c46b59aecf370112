"""JSON-RPC calls that go to an endpoint together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RpcCall:
    """A call; an ``optional`` one may be refused, and is left out when a batch as such is."""

    method: str
    params: Sequence[Any] = ()
    optional: bool = False
