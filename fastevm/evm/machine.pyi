"""``EVM``: an in-memory EVM for Python."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import BlockEnvironment
from fastevm.core.primitives.bytes_like import BytesLike
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.evm.hook_calls import Precompiles
from fastevm.evm.hooks import Hooks
from fastevm.evm.result import ExecutionResult as ExecutionResult
from fastevm.evm.snapshot import Snapshot

# The content of ``result.trace``: "calls", "flat", "steps", "prestate", "diff", "access_list",
# "gas", "coverage", "edges", "selectors" or a tracer of ``debug_traceTransaction``. A sequence of
# names gives a dict by name, and so does a mapping from names to their options.
Trace: TypeAlias = str | Iterable[str] | Mapping[str, Mapping[str, Any] | None]

# Pairs of an address and slots, or the form of JSON-RPC: {"address": ..., "storageKeys": [...]}.
AccessList: TypeAlias = Iterable[tuple[BytesLike, Iterable[int | BytesLike]] | Mapping[str, Any]]
# (chain id, address, nonce, y parity, r, s), or the form of JSON-RPC.
AuthorizationList: TypeAlias = Iterable[
    tuple[int, BytesLike, int, int, int, int] | Mapping[str, Any]
]

class EVM:
    """An EVM over a state in memory. Only one thread may use it at a time.

    A copy or an unpickled object shares no mutable data with the original. A pickle over a remote
    state contains the known values, but not the source.
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
        coinbase: BytesLike = ...,
        base_fee: int = 0,
        blob_base_fee: int = 1,
        difficulty: int = 0,
        prev_randao: int = 0,
        slot_number: int = 0,
        block_hashes: Sequence[BytesLike] = (),
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
        """Returns an EVM on the state of another node. Values are fetched when they are read.

        ``url``: a JSON-RPC endpoint, or several endpoints of the same chain. ``block`` selects the
        state and the block environment: a number, a hash, "latest", "safe", "finalized", a negative
        distance from the newest block, or "pending": the newest state, on which the transactions of
        the endpoint's pending block are executed locally. ``tx_index``: use the state before this
        transaction of the block. ``hardfork``: rules for a chain with an unknown chain id.
        ``headers``, ``cache``, ``offline`` and other ``options``: see
        `fastevm.fork.RemoteSource.open`. Request counters are in
        ``state.remote_state.source.counters``. Raises ForkError if the endpoint does not answer.
        """

    def fork_at(self, block: str | int | bytes, *, tx_index: int | None = None) -> Self:
        """Returns a fork of the same chain at another block, over the same connections.

        ``block`` and ``tx_index`` have the meaning that they have in ``fork``. This machine does
        not change. The new machine gets its ``unchecked`` and ``code_size_limit``, but not its
        local changes. Known accounts and slots are not fetched again if they did not change between
        the two blocks. A batch of eth_getProof shows which values changed, and is verified against
        the state roots of both blocks. If the endpoint does not serve eth_getProof, or its state
        roots are not real, all values are fetched again. Raises ForkError if this machine is not a
        fork or the chain has no such block.
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
        coinbase: BytesLike = ...,
        base_fee: int = ...,
        blob_base_fee: int = ...,
        difficulty: int = ...,
        prev_randao: int = ...,
        slot_number: int = ...,
        block_hashes: Sequence[BytesLike] = ...,
    ) -> None: ...
    def set_account(
        self,
        address: BytesLike,
        balance: int = 0,
        nonce: int = 0,
        code: BytesLike = b"",
        storage: Mapping[int, int | bytes] | Mapping[bytes, int | bytes] | None = None,
    ) -> None: ...
    def set_balance(self, address: BytesLike, balance: int) -> None: ...
    def set_nonce(self, address: BytesLike, nonce: int) -> None: ...
    def set_code(self, address: BytesLike, code: BytesLike) -> None: ...
    def set_storage(
        self, address: BytesLike, slot: int | BytesLike, value: int | BytesLike
    ) -> None: ...
    def balance(self, address: BytesLike) -> int: ...
    def nonce(self, address: BytesLike) -> int: ...
    def code(self, address: BytesLike) -> bytes: ...
    def storage(self, address: BytesLike, slot: int | BytesLike) -> int: ...
    @property
    def precompiles(self) -> Precompiles:
        """A mutable mapping of precompiles implemented in Python, by address."""

    @property
    def hooks(self) -> Hooks | None:
        """The hooks that executions call, or None."""

    @hooks.setter
    def hooks(self, hooks: Hooks | None) -> None: ...
    @property
    def unchecked(self) -> frozenset[str]:
        """The names of the rules that are not checked.

        "balance": gas is free, and a sender is credited with missing value. "base_fee": a
        transaction without a gas price pays no fee. "block_gas_limit", "gas_cap" (EIP-7825): a
        transaction may have more gas than the block or the fork allows. "code_size": code and init
        code may have any size. "nonce": any nonce is valid. "sender_code": a contract may be the
        sender (EIP-3607). Raises ValueError for other names.
        """

    @unchecked.setter
    def unchecked(self, names: str | Iterable[str]) -> None: ...
    @property
    def code_size_limit(self) -> int | None:
        """The code size limit in bytes. Init code may have twice the size.

        0 means no limit; None means the limit of the fork.
        """

    @code_size_limit.setter
    def code_size_limit(self, limit: int | None) -> None: ...
    @property
    def transient_storage(self) -> dict[tuple[bytes, int], int] | None:
        """The transient storage that messages share, by (address, slot), or None if it is not kept.

        If set to a mapping such as ``{}``, a call sees the transient storage of earlier calls with
        ``commit``, as if all belonged to one transaction.
        """
    @transient_storage.setter
    def transient_storage(self, values: Mapping[tuple[bytes, int], int] | None) -> None: ...
    def _repr_html_(self) -> str: ...
    def snapshot(self) -> Snapshot: ...
    def revert(self, snapshot: int) -> None: ...
    def cancel(self) -> None:
        """Ends the current execution without changes. The execution raises SimulationError.

        Any thread may call this method. Without an execution in progress, it has no effect.
        """

    def rearm(self) -> None: ...
    def set_deadline(self, deadline: object) -> EVM: ...
    def call(
        self,
        to: BytesLike,
        data: BytesLike = b"",
        *,
        sender: BytesLike = ...,
        value: int = 0,
        gas: int = 30_000_000,
        gas_price: int = 0,
        origin: BytesLike | None = None,
        static: bool = False,
        commit: bool = False,
        blob_hashes: Sequence[BytesLike] = (),
        access_list: AccessList | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
    ) -> ExecutionResult:
        """Runs a message call. Keeps its changes if ``commit`` is true, else discards them.

        Charges no intrinsic gas or fees and does not change a nonce. ``gas_used`` of the result is
        the gas of the frame before refunds. A failed call is a result with an ``error``; exceptions
        mean invalid arguments. ``trace`` selects the content of ``result.trace``.
        """

    def create(
        self,
        initcode: BytesLike,
        *,
        sender: BytesLike = ...,
        value: int = 0,
        gas: int = 30_000_000,
        gas_price: int = 0,
        address: BytesLike | None = None,
        origin: BytesLike | None = None,
        commit: bool = False,
        blob_hashes: Sequence[BytesLike] = (),
        access_list: AccessList | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
    ) -> ExecutionResult:
        """Runs init code as a message. Keeps its changes if ``commit`` is true.

        ``created_address`` of the result is ``address`` if given, else the address computed from
        the sender and its nonce, which increases by 1. Charges no intrinsic gas or fees, and does
        not limit the size of init code. Otherwise works like ``call``.
        """

    def transact(
        self,
        to: BytesLike | None = None,
        data: BytesLike = b"",
        *,
        sender: BytesLike = ...,
        value: int = 0,
        gas: int | None = None,
        gas_price: int | None = None,
        nonce: int | None = None,
        chain_id: int | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
        type: int | None = None,
        max_fee_per_gas: int | None = None,
        max_priority_fee_per_gas: int | None = None,
        access_list: AccessList | None = None,
        max_fee_per_blob_gas: int | None = None,
        blob_versioned_hashes: Iterable[BytesLike] | None = None,
        authorization_list: AuthorizationList | None = None,
    ) -> ExecutionResult: ...
    def most_gas(self) -> int: ...
    def execute(
        self,
        transaction: Transaction,
        *,
        timeout: float | None = None,
        trace: Trace | None = None,
    ) -> ExecutionResult: ...
    def deploy(
        self,
        initcode: BytesLike,
        *,
        sender: BytesLike = ...,
        value: int = 0,
        gas: int | None = None,
        gas_price: int | None = None,
        nonce: int | None = None,
        chain_id: int | None = None,
        timeout: float | None = None,
        trace: Trace | None = None,
        type: int | None = None,
        max_fee_per_gas: int | None = None,
        max_priority_fee_per_gas: int | None = None,
        access_list: AccessList | None = None,
        max_fee_per_blob_gas: int | None = None,
        blob_versioned_hashes: Iterable[BytesLike] | None = None,
        authorization_list: AuthorizationList | None = None,
    ) -> ExecutionResult: ...
