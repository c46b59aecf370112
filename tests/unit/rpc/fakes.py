"""A node in memory. Tests set its blocks, states and receipts."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from fastevm.chain.fork_choice import HeadChange
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.types import Block, Header, Receipt
from fastevm.core.primitives import rlp
from fastevm.core.state.layer import Layer
from fastevm.node.development import NoDevelopment
from fastevm.simulate import (
    BlockOverrides,
    CallRequest,
    CallResult,
    ErrorForm,
    Plan,
    SimulateOptions,
    StateView,
)
from tests.shared_data import RECORDED

RECORDED_CHAIN_ID = 0xC72DD9D5E883E


def recorded_blocks() -> list[Block]:
    """Returns the recorded chain's blocks from block 1, because the file has no genesis block."""
    raw = (RECORDED / "chain.rlp").read_bytes()
    blocks, at = [], 0
    while at < len(raw):
        size = raw[at] - 0xF7
        end = at + 1 + size + int.from_bytes(raw[at + 1 : at + 1 + size], "big")
        blocks.append(decode_block(raw[at:end]))
        at = end
    return blocks


ETHEREUM = {
    "arbos_version": 0,
    "block_reward_gwei": 0,
    "has_base_fee": 0,
    "has_blobs": 0,
    "has_deposits": 0,
    "has_fee_vaults": 0,
}


@dataclass
class FakeChain:
    """Blocks by number and hash, with layers and receipts that a test sets."""

    blocks: list[Block]
    layers: dict[bytes, Layer] = field(default_factory=dict)
    receipts: dict[bytes, tuple[Receipt, ...]] = field(default_factory=dict)
    side_blocks: list[Block] = field(default_factory=list)
    amendments: int = 0
    listeners: list[Callable[[Any], None]] = field(default_factory=list)
    rules: Mapping[str, Any] = field(default_factory=lambda: ETHEREUM)

    @property
    def head(self) -> Block:
        return self.blocks[-1]

    @property
    def genesis(self) -> Block:
        return self.blocks[0]

    def block_by_number(self, number: int) -> Block | None:
        first = self.blocks[0].number
        inside = 0 <= number - first < len(self.blocks)
        return self.blocks[number - first] if inside else None

    def block_by_hash(self, block_hash: bytes) -> Block | None:
        every = self.blocks + self.side_blocks
        return next((block for block in every if block.hash == block_hash), None)

    def canonical_hash(self, number: int) -> bytes | None:
        block = self.block_by_number(number)
        return None if block is None else block.hash

    def knows(self, block_hash: bytes) -> bool:
        return self.block_by_hash(block_hash) is not None

    def layer_of(self, block_hash: bytes) -> Layer:
        return self.layers.get(block_hash) or Layer.empty()

    def oldest_state(self) -> int:
        return 1

    def in_memory(self, block_hash: bytes) -> bool:
        return self.block_by_hash(block_hash) is not None

    def receipts_of(self, block_hash: bytes) -> tuple[Receipt, ...]:
        return self.receipts.get(block_hash, ())

    def locate(self, tx_hash: bytes) -> tuple[Block, int] | None:
        for block in self.blocks:
            for index, transaction in enumerate(block.transactions):
                if transaction.hash == tx_hash:
                    return block, index
        return None

    def ancestors(self, block_hash: bytes, limit: int = 256) -> list[bytes]:
        block = self.block_by_hash(block_hash)
        return [] if block is None else [block_hash, block.header.parent_hash][:limit]

    def on_head(self, listener: Callable[[Any], None]) -> None:
        self.listeners.append(listener)

    def move(self, *added: Block, remove: int = 0) -> None:
        """Removes ``remove`` blocks from the chain, adds ``added``, and calls the listeners."""
        kept = len(self.blocks) - remove
        removed = tuple(self.blocks[kept:][::-1])
        self.side_blocks.extend(removed)
        self.blocks[kept:] = added
        for listener in self.listeners:
            listener(HeadChange(removed, added))

    def schedule_of(self, block_hash: bytes) -> Any:
        return SimpleNamespace(parameters=self.rules, fork=SimpleNamespace(name="Osaka"))

    def schedule_for_child(self, parent: Block, timestamp: int) -> Any:
        return SimpleNamespace(parameters=self.rules, fork=SimpleNamespace(name="Osaka"))


@dataclass
class FakePending:
    """A pre-confirmed block on any head."""

    header: Header
    transactions: tuple[Any, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    layer: Layer = field(default_factory=Layer.empty)
    slice_index: int = 0
    published: float = field(default_factory=time.monotonic)
    first_new: int = 0
    previous: "FakePending | None" = None

    def chain(self) -> Iterator["FakePending"]:
        if self.previous is not None:
            yield from self.previous.chain()
        yield self


@dataclass
class FakePool:
    """A pool with transactions that a test sets."""

    ready: dict[bytes, dict[int, Any]] = field(default_factory=dict)
    waiting: dict[bytes, dict[int, Any]] = field(default_factory=dict)
    dropped: dict[bytes, str] = field(default_factory=dict)

    def executable(self) -> dict[bytes, dict[int, Any]]:
        return self.ready

    def drop_reason(self, tx_hash: bytes) -> str | None:
        return self.dropped.get(tx_hash)

    def content(self) -> tuple[dict[bytes, dict[int, Any]], dict[bytes, dict[int, Any]]]:
        return self.ready, self.waiting

    def content_of(self, address: bytes) -> tuple[dict[int, Any], dict[int, Any]]:
        return self.ready.get(address, {}), self.waiting.get(address, {})

    @property
    def executable_count(self) -> int:
        return sum(map(len, self.ready.values()))

    @property
    def queued_count(self) -> int:
        return sum(map(len, self.waiting.values()))

    def next_nonce(self, address: bytes, known: int | None = None) -> int:
        return max(max(self.ready.get(address, {}), default=-1) + 1, known or 0)

    def is_ahead_of(self, accounts: Any) -> bool:
        return bool(self.ready)

    def find(self, tx_hash: bytes) -> Any | None:
        for content in (self.ready, self.waiting):
            for by_nonce in content.values():
                for transaction in by_nonce.values():
                    if transaction.hash == tx_hash:
                        return transaction
        return None


@dataclass
class FakeNode:
    """A node with a pending block and a submission result that a test sets."""

    chain: FakeChain
    config: Any = field(
        default_factory=lambda: SimpleNamespace(chain_id=RECORDED_CHAIN_ID, block_time_ms=2000)
    )
    accounts: Sequence[Any] = ()
    pool: FakePool = field(default_factory=FakePool)
    pending_block: Any = None
    submission: bytes | Exception = bytes(32)
    submitted: list[bytes] = field(default_factory=list)
    predecoded: list[list[bytes]] = field(default_factory=list)
    fee_cap: int = 10**18
    slice_cadence_ms: int | None = None
    submits_at_once: bool = True
    mines_at_once: bool = False
    forwards: bool = False
    signed_chain_id: int | None = RECORDED_CHAIN_ID
    sync_state: tuple[int, int, int] | None = None
    upstream_age: float | None = None
    blocks_replace_slices: bool = False
    connections: dict[str, bool] = field(default_factory=dict)
    unverified: tuple[str, ...] | None = None
    pre_confirms: bool = True
    building_fails: bool = False
    history: Any | None = None
    slots_in_an_epoch: int = 0
    development: NoDevelopment = field(default_factory=NoDevelopment)
    slice_listeners: list[Callable[[Any, int], None]] = field(default_factory=list)
    withdrawal_listeners: list[Callable[[], None]] = field(default_factory=list)
    transaction_listeners: list[Callable[[Any], None]] = field(default_factory=list)

    def pending(self) -> Any:
        return self.pending_block

    def next_block(self) -> Any:
        return None

    def metrics(self) -> dict[str, float]:
        return {"pool_executable": 0}

    def on_head(self, listener: Callable[[Any], None]) -> None:
        self.chain.on_head(listener)

    def on_slice(self, listener: Callable[[Any, int], None]) -> None:
        self.slice_listeners.append(listener)

    def on_withdrawal(self, listener: Callable[[], None]) -> None:
        self.withdrawal_listeners.append(listener)

    def on_transaction(self, listener: Callable[[Any], None]) -> None:
        self.transaction_listeners.append(listener)

    def publish(self, pending: "FakePending") -> None:
        """Makes a slice the pending block and calls the listeners."""
        self.pending_block = pending
        for listener in self.slice_listeners:
            listener(pending, pending.first_new)

    def withdraw(self) -> None:
        """Withdraws the pending block and calls the listeners."""
        self.pending_block = None
        for listener in self.withdrawal_listeners:
            listener()

    def take(self, transaction: Any) -> None:
        """Notifies the listeners of a transaction in the pool."""
        for listener in self.transaction_listeners:
            listener(transaction)

    def predecode(self, raws: Sequence[bytes]) -> None:
        self.predecoded.append(list(raws))

    def submit(self, raw: bytes) -> bytes:
        self.submitted.append(raw)
        if isinstance(self.submission, Exception):
            raise self.submission
        return self.submission

    def submit_next(self, raw: bytes) -> bytes:
        return self.submit(raw)

    def begin_to_forward(self, raw: bytes) -> Future[bytes]:
        future: Future[bytes] = Future()
        try:
            future.set_result(self.submit(raw))
        except Exception as error:
            future.set_exception(error)
        return future

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None


@dataclass
class FakeSimulator:
    """A simulator that returns the test's answers and records the requests."""

    result: Any = field(
        default_factory=lambda: CallResult(success=True, output=b"\x01", gas_used=21_000)
    )
    asked: list[Any] = field(default_factory=list)

    def call(self, view: StateView, request: CallRequest, **options: Any) -> CallResult:
        return self._answer((view, request, options))

    def estimate_gas(self, view: StateView, request: CallRequest, **options: Any) -> Any:
        return self._answer((view, request, options))

    def read_call_params(self, params: bytes) -> None:
        return None

    def read_request(self, params: bytes) -> None:
        return None

    def simulate_text(
        self,
        view: StateView,
        plan: Plan,
        options: SimulateOptions,
        form: ErrorForm,
        head: bytes = b"",
    ) -> bytes:
        answer: bytes = self._answer((view, plan, options))
        return head + answer

    def _answer(self, asked: Any) -> Any:
        self.asked.append(asked)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def header(number: int, **fields: Any) -> Header:
    """Returns a header with this number and a distinct hash."""
    return Header(number=number, timestamp=10 * number, **fields)


def chain_of(count: int, accounts: Mapping[bytes, Mapping[str, Any]] | None = None) -> FakeChain:
    """Returns a chain of ``count`` empty blocks. The state of the head has the ``accounts``."""
    blocks: list[Block] = []
    for number in range(count):
        parent = blocks[-1].hash if blocks else bytes(32)
        blocks.append(Block(header(number, parent_hash=parent)))
    layers = {blocks[-1].hash: Layer.of(dict(accounts or {}))}
    return FakeChain(blocks, layers)


def raw_items(raw: bytes) -> Iterable[Any]:
    """Returns the RLP items of ``raw``."""
    return rlp.decode(raw)


NO_OVERRIDES = BlockOverrides()
