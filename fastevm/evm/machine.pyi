"""``EVM``: an in-memory Ethereum machine to call from Python."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import BlockEnvironment
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.evm.hook_calls import Precompiles
from fastevm.evm.hooks import Hooks
from fastevm.evm.result import ExecutionResult as ExecutionResult
from fastevm.evm.snapshot import Snapshot

# What ``result.trace`` shall be: "calls", "flat", "steps", "prestate", "diff", "access_list",
# "gas", "coverage", "selectors", or a tracer of ``debug_traceTransaction``; several, for a dict by
# name; or names with the options of each.
Trace: TypeAlias = str | Iterable[str] | Mapping[str, Mapping[str, Any] | None]

class EVM:
    """An Ethereum machine over a state in memory; one thread at a time.

    A copy, or what a pickle gives, shares nothing with it that changes. Over a remote state a
    pickle holds what is known of that, not its source.
    """

    @property
    def schedule(self) -> ForkSchedule: ...
    @property
    def state(self) -> Layer: ...
    @state.setter
    def state(self, layer: Layer) -> None: ...
    @property
    def snapshots(self) -> tuple[Layer, ...]: ...
    @property
    def snapshot_numbers(self) -> tuple[int, ...]: ...
    def __init__(
        self,
        fork: str | ForkSchedule = "osaka",
        *,
        state: Layer | None = None,
        unchecked: str | Iterable[str] = (),
        code_size_limit: int | None = None,
        chain_id: int = 1,
        number: int = 1,
        timestamp: int = 1,
        gas_limit: int = 30_000_000,
        coinbase: bytes | str = ...,
        base_fee: int = 0,
        blob_base_fee: int = 1,
        difficulty: int = 0,
        prev_randao: int = 0,
        slot_number: int = 0,
        block_hashes: Sequence[bytes] = (),
    ) -> None: ...
    @classmethod
    def fork(
        cls,
        url: str | Sequence[str],
        block: str | int | bytes = "latest",
        *,
        tx_index: int | None = None,
        hardfork: str | None = None,
        headers: Mapping[str, str] | None = None,
        cache: bool | Path = True,
        offline: bool = False,
        **options: Any,
    ) -> Self:
        """A machine on the state that another node holds, fetched as it is read.

        ``url``: of a JSON-RPC endpoint, or of several of one chain. ``block``: whose state, and
        whose environment; a number, a hash, "latest", "safe", "finalized", or how many below the
        newest (negative). ``tx_index``: the state in front of that transaction of the block.
        ``hardfork``: rules for a chain that is not known by its id. ``headers``, ``cache``,
        ``offline`` and other ``options``: see `fastevm.fork.RemoteSource.open`. What it has cost is
        in ``state.remote_state.source.counters``. ForkError where the endpoint does not answer.
        """

    @property
    def block(self) -> BlockEnvironment:
        """The block environment that code sees."""

    @property
    def block_hashes(self) -> tuple[bytes, ...]: ...
    @property
    def chain_id(self) -> int: ...
    def set_block(
        self,
        *,
        chain_id: int = ...,
        number: int = ...,
        timestamp: int = ...,
        gas_limit: int = ...,
        coinbase: bytes | str = ...,
        base_fee: int = ...,
        blob_base_fee: int = ...,
        difficulty: int = ...,
        prev_randao: int = ...,
        slot_number: int = ...,
        block_hashes: Sequence[bytes] = ...,
    ) -> None: ...
    def set_account(
        self,
        address: bytes | str,
        balance: int = 0,
        nonce: int = 0,
        code: bytes | str = b"",
        storage: Mapping[int, int] | None = None,
    ) -> None: ...
    def set_balance(self, address: bytes | str, balance: int) -> None: ...
    def set_nonce(self, address: bytes | str, nonce: int) -> None: ...
    def set_code(self, address: bytes | str, code: bytes | str) -> None: ...
    def set_storage(self, address: bytes | str, slot: int, value: int) -> None: ...
    def balance(self, address: bytes | str) -> int: ...
    def nonce(self, address: bytes | str) -> int: ...
    def code(self, address: bytes | str) -> bytes: ...
    def storage(self, address: bytes | str, slot: int) -> int: ...
    @property
    def precompiles(self) -> Precompiles:
        """The precompiles that Python runs, by address: a mapping that may be changed."""

    @property
    def hooks(self) -> Hooks | None:
        """What runs call; None: nothing."""

    @hooks.setter
    def hooks(self, hooks: Hooks | None) -> None: ...
    @property
    def unchecked(self) -> frozenset[str]:
        """The names of the rules that do not hold.

        "balance": gas is free, and a sender receives the value that it lacks. "base_fee": a
        transaction that offers no fee pays none. "block_gas_limit", "gas_cap" (EIP-7825): more gas
        than the block or the fork allow. "code_size": no limit of code and init code. "nonce": any
        nonce. "sender_code": a contract may send (EIP-3607). ValueError for another name.
        """

    @unchecked.setter
    def unchecked(self, names: str | Iterable[str]) -> None: ...
    @property
    def code_size_limit(self) -> int | None:
        """Bytes of a contract's code, twice as many of init code; 0: no limit, None: the fork's."""

    @code_size_limit.setter
    def code_size_limit(self, limit: int | None) -> None: ...
    @property
    def transient_storage(self) -> dict[tuple[bytes, int], int] | None:
        """What messages keep of transient storage, by (address, slot); None: nothing.

        With a mapping set, ``{}`` for one, a call finds what the calls before it left there that
        were kept (``commit``), as if all were of one transaction.
        """
    @transient_storage.setter
    def transient_storage(self, values: Mapping[tuple[bytes, int], int] | None) -> None: ...
    def _repr_html_(self) -> str: ...
    def snapshot(self) -> Snapshot: ...
    def revert(self, snapshot: int) -> None: ...
    def cancel(self) -> None: ...
    def rearm(self) -> None: ...
    def set_deadline(self, deadline: object) -> EVM: ...
    def call(
        self,
        to: bytes | str,
        data: bytes | str = b"",
        *,
        sender: bytes | str = ...,
        value: int = 0,
        gas: int = 30_000_000,
        gas_price: int = 0,
        origin: bytes | str | None = None,
        static: bool = False,
        commit: bool = False,
        blob_hashes: Sequence[bytes | str] = (),
        access_list: Iterable[tuple[bytes | str, Iterable[int | bytes]]] | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
    ) -> ExecutionResult:
        """Run a message call and forget what it changed, or keep it with ``commit``.

        No intrinsic gas is charged, no fee is paid and no nonce moves. ``gas_used`` of the result
        is what the frame used before refunds. A failing call is a result with an ``error``;
        exceptions mean arguments that cannot be run. ``trace``: what ``result.trace`` shall be.
        """

    def create(
        self,
        initcode: bytes | str,
        *,
        sender: bytes | str = ...,
        value: int = 0,
        gas: int = 30_000_000,
        gas_price: int = 0,
        address: bytes | str | None = None,
        origin: bytes | str | None = None,
        commit: bool = False,
        blob_hashes: Sequence[bytes | str] = (),
        access_list: Iterable[tuple[bytes | str, Iterable[int | bytes]]] | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
    ) -> ExecutionResult:
        """Run init code as a message and forget what it changed, or keep it with ``commit``.

        ``created_address`` of the result is ``address``, or what follows from the sender and its
        nonce, which moves by one. No intrinsic gas is charged, no fee is paid and the size of the
        init code has no limit. The rest is as in ``call``.
        """

    def transact(
        self,
        to: bytes | str | None = None,
        data: bytes | str = b"",
        *,
        sender: bytes | str = ...,
        value: int = 0,
        gas: int | None = None,
        gas_price: int = 0,
        nonce: int | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
        type: int | None = None,
        max_fee_per_gas: int | None = None,
        max_priority_fee_per_gas: int | None = None,
        access_list: Iterable[tuple[bytes, Iterable[int | bytes]]] | None = None,
        max_fee_per_blob_gas: int | None = None,
        blob_versioned_hashes: Iterable[bytes] | None = None,
        authorization_list: Iterable[tuple[int, bytes, int, int, int, int]] | None = None,
    ) -> ExecutionResult: ...
    def most_gas(self) -> int: ...
    def execute(self, transaction: Transaction) -> ExecutionResult: ...
    def deploy(
        self,
        initcode: bytes | str,
        *,
        sender: bytes | str = ...,
        value: int = 0,
        gas: int | None = None,
        gas_price: int = 0,
        nonce: int | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
        type: int | None = None,
        max_fee_per_gas: int | None = None,
        max_priority_fee_per_gas: int | None = None,
        access_list: Iterable[tuple[bytes, Iterable[int | bytes]]] | None = None,
        max_fee_per_blob_gas: int | None = None,
        blob_versioned_hashes: Iterable[bytes] | None = None,
        authorization_list: Iterable[tuple[int, bytes, int, int, int, int]] | None = None,
    ) -> ExecutionResult: ...
