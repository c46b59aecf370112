"""``BareMachine``, which executes messages without a transaction, with every option of the
machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from fastevm.core.interpreter.tracer import StepTrace

@dataclass(frozen=True, slots=True)
class Outcome:
    status: int
    error: str
    gas_left: int
    output: bytes
    refund: int
    logs: tuple[tuple[bytes, tuple[int, ...], bytes], ...]
    requests: int
    nanoseconds: int

@final
class BareMachine:
    def __init__(
        self,
        fork: str,
        accounts: Mapping[bytes, Mapping[str, Any]] = ...,
        *,
        remote: bool = False,
        suspend: bool = False,
        pause: bool = False,
        moves: Mapping[bytes, int] = ...,
        **block: Any,
    ) -> None: ...
    def set_block(self, **block: Any) -> None: ...
    def call(
        self,
        to: bytes,
        data: bytes = b"",
        *,
        sender: bytes = ...,
        value: int = 0,
        gas: int = 10_000_000,
        static: bool = False,
        no_transfer: bool = False,
        trace: StepTrace | None = None,
        records: list[dict[str, Any]] | None = None,
        keep: bool = True,
    ) -> Outcome: ...
    def create(
        self,
        address: bytes,
        initcode: bytes,
        *,
        sender: bytes = ...,
        value: int = 0,
        gas: int = 10_000_000,
        keep: bool = True,
    ) -> Outcome: ...
    def cancel_now(self, on: bool = True) -> None: ...
    def account(self, address: bytes) -> dict[str, Any] | None: ...
    def storage(self, address: bytes, key: int) -> int: ...
    def storage_items(self, address: bytes) -> dict[int, int]: ...
    def halt(self) -> tuple[int, int, int]: ...
