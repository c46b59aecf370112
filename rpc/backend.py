"""What the node needs from below: the shapes of chain, pending block, pool and simulator.

The classes of `fastevm.chain` fit these protocols; tests may bring their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from fastevm.simulate import (
    BlockOverrides,
    CallRequest,
    CallResult,
    ErrorForm,
    SimulatedBlock,
    SimulateOptions,
    SimulatePayload,
    StateOverrides,
    StateView,
)
from fastevm.types import AccountProof, Block, Header, Receipt


class Layer(Protocol):
    """An immutable state. Unknown accounts read as empty."""

    def balance(self, address: bytes) -> int: ...
    def nonce(self, address: bytes) -> int: ...
    def code(self, address: bytes) -> bytes: ...
    def storage(self, address: bytes, slot: int) -> int: ...
    def proof(self, address: bytes, slots: Iterable[int]) -> AccountProof: ...


class HeadChange(Protocol):
    """Blocks that left the canonical chain, newest first, and that joined it, oldest first."""

    @property
    def removed(self) -> tuple[Block, ...]: ...
    @property
    def added(self) -> tuple[Block, ...]: ...


class Chain(Protocol):
    """The stored blocks: every one by hash, the canonical ones by number.

    ``ancestors`` starts with the block's own hash, newest first.
    """

    @property
    def genesis(self) -> Block: ...
    @property
    def head(self) -> Block: ...
    @property
    def amendments(self) -> int: ...
    def block_by_number(self, number: int) -> Block | None: ...
    def block_by_hash(self, block_hash: bytes) -> Block | None: ...
    def canonical_hash(self, number: int) -> bytes | None: ...
    def in_memory(self, block_hash: bytes) -> bool: ...
    def layer_of(self, block_hash: bytes) -> Layer: ...
    def oldest_state(self) -> int: ...
    def receipts_of(self, block_hash: bytes) -> tuple[Receipt, ...]: ...
    def locate(self, tx_hash: bytes) -> tuple[Block, int] | None: ...
    def ancestors(self, block_hash: bytes, limit: int = 256) -> Sequence[bytes]: ...
    def schedule_of(self, block_hash: bytes) -> Any: ...
    def schedule_for_child(self, parent: Block, timestamp: int) -> Any: ...


class PendingBlock(Protocol):
    """The pre-confirmed block so far, frozen: one reference is one consistent state.

    ``published``: monotonic time in seconds. ``chain``: all blocks above the canonical ones, oldest
    first, this one last.
    """

    @property
    def header(self) -> Header: ...
    @property
    def layer(self) -> Layer: ...
    @property
    def transactions(self) -> tuple[Any, ...]: ...
    @property
    def receipts(self) -> tuple[Receipt, ...]: ...
    @property
    def slice_index(self) -> int: ...
    @property
    def published(self) -> float: ...
    def chain(self) -> "Iterator[PendingBlock]": ...


class Config(Protocol):
    """What the node tells of its chain. ``block_time_ms`` is the spacing of blocks."""

    @property
    def chain_id(self) -> int: ...
    @property
    def block_time_ms(self) -> int: ...
    @property
    def activations(self) -> Any: ...
    @property
    def deposit_contract(self) -> bytes: ...


class DevAccount(Protocol):
    """An account that the banner shows: 20-byte address, 32-byte key."""

    @property
    def address(self) -> bytes: ...
    @property
    def private_key(self) -> bytes: ...
    def sign_message(self, message: bytes) -> bytes: ...


PoolContent = Mapping[bytes, Mapping[int, Any]]


class Pool(Protocol):
    """Transactions that wait: by sender and nonce: executable now, or behind a gap."""

    def executable(self) -> PoolContent: ...
    def queued(self) -> PoolContent: ...
    def find(self, tx_hash: bytes) -> Any | None: ...
    def next_nonce(self, address: bytes) -> int: ...


class Node(Protocol):
    """The facade that the listeners serve.

    ``slice_cadence_ms``: milliseconds from slice to slice; None when ``pending()`` does not renew
    itself. ``sync_state``: the numbers of the blocks where a node that catches up began, is, and
    will end. ``upstream_age``: seconds since a node that follows had the head of its upstream.
    ``building_fails``: the last slice ended with an error. ``development``: control over a chain
    that builds its own blocks, as `fastevm.node` has it.

    Listeners of events are called on any thread and must only hand over; those of slices get the
    index of the first new transaction too.
    """

    @property
    def chain(self) -> Chain: ...
    @property
    def config(self) -> Config: ...
    @property
    def accounts(self) -> Sequence[DevAccount]: ...
    @property
    def pool(self) -> Pool: ...
    @property
    def slice_cadence_ms(self) -> int | None: ...
    @property
    def sync_state(self) -> tuple[int, int, int] | None: ...
    @property
    def upstream_age(self) -> float | None: ...
    @property
    def building_fails(self) -> bool: ...
    @property
    def development(self) -> Any | None: ...
    @property
    def submits_at_once(self) -> bool: ...
    def pending(self) -> PendingBlock | None: ...
    def metrics(self) -> Mapping[str, float]: ...
    def on_head(self, listener: Callable[[Any], None]) -> None: ...
    def on_slice(self, listener: Callable[[Any, int], None]) -> None: ...
    def on_transaction(self, listener: Callable[[Any], None]) -> None: ...
    def predecode(self, raws: Sequence[bytes]) -> None: ...
    def submit(self, raw: bytes) -> bytes: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class Simulator(Protocol):
    """Execution on a state without changing it; every function may run in any thread.

    A transaction that breaks a rule raises `fastevm.errors.InvalidTransaction`; a payload that is
    refused as a whole raises `fastevm.simulate.values.SimulationError`.
    """

    def call(
        self,
        view: StateView,
        request: CallRequest,
        *,
        state_overrides: StateOverrides,
        block_overrides: BlockOverrides,
        gas_cap: int,
        timeout: float,
    ) -> CallResult: ...

    def estimate_gas(
        self,
        view: StateView,
        request: CallRequest,
        *,
        state_overrides: StateOverrides,
        block_overrides: BlockOverrides,
        gas_cap: int,
        timeout: float,
    ) -> int | CallResult: ...

    def simulate_v1(
        self, view: StateView, payload: SimulatePayload, options: SimulateOptions
    ) -> list[SimulatedBlock]: ...

    # The same from text to text, for requests of the usual form; None for any other.
    def read_request(self, params: bytes) -> tuple[Any, bytes] | None: ...
    def simulate_text(
        self,
        view: StateView,
        request: Any,
        options: SimulateOptions,
        form: ErrorForm,
        head: bytes = b"",
    ) -> bytes | None: ...
