"""Messages that keep their changes, as in pyrevm."""

from collections.abc import Iterable
from typing import Any

from fastevm.evm.machine import EVM
from fastevm.evm.machine import ExecutionResult as Outcome
from fastevm.integrations.pyrevm.environments import TxEnv
from fastevm.integrations.pyrevm.message_rules import Rules, SentMessage
from fastevm.integrations.pyrevm.outcomes import ExecutionResult

class Ended:
    """The last message, its result, and the gas that it would use as a transaction."""

    rules: Rules
    sent: SentMessage
    outcome: Outcome
    opcode: int

    @property
    def tx(self) -> dict[str, Any]: ...
    @property
    def gas_refunded(self) -> int: ...
    @property
    def gas_used(self) -> int: ...
    @property
    def is_halt(self) -> bool: ...
    def result(self) -> ExecutionResult: ...
    def failure(self) -> RuntimeError: ...

class Messages:
    """The part of pyrevm's ``EVM`` that executes code. ``tracing``: whether to print every step."""

    _evm: EVM
    _rules: Rules
    _gas_limit: int
    _keys: dict[str, bytes]
    _tx: TxEnv
    _is_bare: bool
    _last: Ended | None
    _has_run: bool
    tracing: bool

    def _touch(self, address: str) -> bytes: ...
    def message_call(
        self,
        caller: str,
        to: str,
        calldata: bytes | Iterable[int] | None = None,
        value: int | None = None,
        gas: int | None = None,
        gas_price: int | None = None,
        is_static: bool = False,
    ) -> bytes: ...
    def deploy(
        self,
        deployer: str,
        code: bytes | Iterable[int],
        value: int | None = None,
        gas: int | None = None,
        gas_price: int | None = None,
        is_static: bool = False,
        _abi: object = None,
    ) -> str: ...
