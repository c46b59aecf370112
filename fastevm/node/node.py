"""``Node``: a chain, a pool and, if it produces blocks, a builder, behind one door."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from fastevm.builder.block_maker import EXTRA_DATA
from fastevm.builder.builder import SliceBuilder
from fastevm.builder.pending import Listeners, PendingBlock, SliceListener
from fastevm.builder.producer import Producer
from fastevm.chain.chain import Chain, HeadChange
from fastevm.chain.config import (
    DEFAULT_BLOCK_TIME_MS,
    DEFAULT_SLICE_INTERVAL_MS,
    ChainConfig,
)
from fastevm.chain.genesis import genesis_block
from fastevm.chain.metrics import Meters
from fastevm.chain.retention import ChainLimits
from fastevm.chain.system_contracts import SYSTEM_CONTRACTS
from fastevm.errors import FastevmError, InvalidTransaction, TransactionDecodeError
from fastevm.execution.result import BlockResult
from fastevm.execution.transaction import Transaction
from fastevm.node.dev_accounts import ETHER, DevAccount, dev_accounts
from fastevm.node.development import Development
from fastevm.spec.schedule import ForkSchedule
from fastevm.storage import Archive, DataDirectory, ScratchBlocks
from fastevm.storage.blocks import Progress
from fastevm.storage.preconfirmed import kept_promise
from fastevm.sync.block_import import SyncState
from fastevm.sync.feed_hub import FeedHub
from fastevm.sync.follower import Follower
from fastevm.sync.following import Following
from fastevm.sync.upstream import UpstreamError
from fastevm.txpool.admission import check_pooled
from fastevm.txpool.kzg import TrustedSetup
from fastevm.txpool.pool import TransactionPool
from fastevm.txpool.pooled import PoolLimits
from fastevm.txpool.predecode import Foreseen
from fastevm.types import Block, Header
from fastevm.wire.client.messages import RpcRefusal
from fastevm.wire.text.members import read_number

log = logging.getLogger(__name__)

DEFAULT_FEE_CAP = ETHER
DEFAULT_POLL_MS = 200
PRELOAD_SECONDS = 5.0  # after the start, before what may be needed later is loaded
REFUSALS = {
    "nonce too low": "nonce_too_low",
    "insufficient funds": "insufficient_funds",
    "already known": "already_known",
    "replacement transaction underpriced": "replacement_underpriced",
}
DEV_CHAIN_ID = 31_337
DEV_BALANCE = 10_000 * ETHER
DEV_GAS_LIMIT = 60_000_000
DEV_BASE_FEE = 10**9
DEV_FORKS = (
    "homesteadBlock", "eip150Block", "eip155Block", "eip158Block", "byzantiumBlock",
    "constantinopleBlock", "petersburgBlock", "istanbulBlock", "berlinBlock", "londonBlock",
    "mergeNetsplitBlock", "shanghaiTime", "cancunTime", "pragueTime", "osakaTime",
)  # fmt: skip


class Mining(Enum):
    """When a node makes blocks."""

    NEVER = "never"
    CADENCE = "cadence"
    INSTANT = "instant"
    MANUAL = "manual"


class Node:
    """What listeners serve. ``pending()`` is one attribute read and safe from any thread.

    ``submit``, ``mine`` and ``add_block`` may take milliseconds: not for an event loop.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        accounts: Sequence[DevAccount] = (),
        mining: Mining = Mining.NEVER,
        coinbase: bytes = bytes(20),
        pool_limits: PoolLimits | None = None,
        fee_cap: int = DEFAULT_FEE_CAP,
        trusted_setup: TrustedSetup | None = None,
        directory: DataDirectory | None = None,
    ) -> None:
        """``directory`` has been claimed for the chain and is closed by ``stop``."""
        self.chain = chain
        self.accounts = tuple(accounts)
        self.mining = mining
        self.fee_cap, self.trusted_setup = fee_cap, trusted_setup
        self.meters = Meters()
        self.pool = TransactionPool(chain.layer_of(chain.head.hash), pool_limits)
        self._foreseen = Foreseen()
        self._rules: tuple[Header, ForkSchedule] | None = None  # of the head, see _next_rules
        self._pending: PendingBlock | None = None
        self._slice_listeners = Listeners()
        self._transaction_listeners: list[Callable[[Transaction], None]] = []
        kind = SliceBuilder if mining is Mining.CADENCE else Producer
        self.producer = kind(chain, self.pool, self.built, coinbase=coinbase, meters=self.meters)
        self.feed = FeedHub(self.meters)
        self._slice_listeners.add(self.feed.publish)
        self.following: Following | None = None
        self.directory = directory
        self._preload: asyncio.TimerHandle | None = None
        self.development = None
        if mining is not Mining.NEVER:
            self.development = Development(chain, self.pool, self.producer, self._tidy)
        if directory is not None:
            directory.report_to(self.meters)
            self._restore(directory)

    @property
    def config(self) -> ChainConfig:
        """The chain's constants."""
        return self.chain.config

    @property
    def builder(self) -> SliceBuilder | None:
        """Who makes slices; None when this node makes none."""
        return self.producer if isinstance(self.producer, SliceBuilder) else None

    @property
    def slice_cadence_ms(self) -> int | None:
        """Milliseconds from slice to slice; None when ``pending()`` does not renew itself."""
        follows = self.following is not None and self.following.feed_url is not None
        renews = follows or self.mining is Mining.CADENCE
        return self.config.slice_interval_ms if renews else None

    @property
    def sync_state(self) -> SyncState | None:
        """How far a node that follows has caught up; None when there is nothing to catch up."""
        return None if self.following is None else self.following.blocks.sync_state

    @property
    def upstream_age(self) -> float | None:
        """Seconds since a node that follows had the head of its upstream; None for others."""
        return None if self.following is None else self.following.upstream_age

    def pending(self) -> PendingBlock | None:
        """The newest pre-confirmed block; None when there is none, and ``latest`` serves."""
        return self._pending

    def publish(self, pending: PendingBlock | None, tell: bool = True) -> None:
        """Make a slice the pending block, or withdraw it; for those who build or follow.

        Without ``tell`` listeners do not hear of it: there is no new slice in it.
        """
        self._pending = pending
        if pending is not None and tell:
            self._slice_listeners.tell(pending)

    # --- hooks ------------------------------------------------------------------------------------

    def on_head(self, listener: Callable[[HeadChange], None]) -> None:
        """Call ``listener(change)`` after every change of the head, on the thread that made it."""
        self.chain.on_head(listener)

    def on_slice(self, listener: SliceListener) -> None:
        """Call ``listener(pending, first_new_index)`` after every slice, on the builder's thread.

        It must only hand over: the next slice waits for it.
        """
        self._slice_listeners.add(listener)

    def on_transaction(self, listener: Callable[[Transaction], None]) -> None:
        """Call ``listener(transaction)`` for each one that enters the pool, on its own thread."""
        self._transaction_listeners.append(listener)

    def on_foreign_chain(self, listener: Callable[[str], None]) -> None:
        """Call ``listener(text)`` when the upstream turns out to be on another chain.

        Without a listener the node goes on asking, and serves what it has.
        """
        if self.following is not None:
            self.following.on_foreign = listener

    # --- doing ------------------------------------------------------------------------------------

    @property
    def submits_at_once(self) -> bool:
        """Whether ``submit`` only checks and keeps: it waits for no file, node or block."""
        asks_others = self.following is not None or self.directory is not None
        return not asks_others and self.mining is not Mining.INSTANT

    def foresee(self, raws: Sequence[bytes]) -> None:
        """Say which transactions will be submitted next: together they take less time."""
        self._foreseen.expect(raws)

    def submit(self, raw: bytes) -> bytes:
        """Check a signed transaction, put it into the pool and return its 32-byte hash.

        Raises TransactionDecodeError for bytes that are no transaction, InvalidTransaction for one
        that no block could hold or the pool does not take; nothing has changed then.
        """
        transaction = self._admit(raw)
        if self.following is not None:
            self._forward(raw, transaction)
        elif self.directory is not None:
            self._write_down(self.directory, raw, transaction)
        for listener in self._transaction_listeners:
            listener(transaction)
        if self.mining is Mining.INSTANT:
            self.producer.mine()
        return transaction.hash

    def mine(self, count: int = 1, *, timestamp: int | None = None) -> list[Block]:
        """Make ``count`` blocks now, whatever the clock says, and return them.

        ``timestamp`` (seconds) is the first one's, as far as its parent allows. FastevmError when
        this node makes no blocks.
        """
        if self.mining is Mining.NEVER:
            raise FastevmError("this node makes no blocks")
        return self.producer.mine(count, timestamp=timestamp)

    def add_block(self, block: Block | bytes) -> BlockResult:
        """Verify and keep a block of somebody else, as :meth:`Chain.add`, between two slices."""
        with self.producer.lock:
            return self.chain.add(block)

    def metrics(self) -> dict[str, float]:
        """Counters and gauges by name, without the prefix ``fastevm_``."""
        pending = self._pending
        values = self.meters.values() | {
            "pool_executable": self.pool.executable_count,
            "pool_queued": self.pool.queued_count,
            "pool_confirmed": self.pool.confirmed_count,
        }
        if self.directory is not None:
            values |= self.directory.values()
        if self.following is not None:
            values["upstream_age_seconds"] = self.following.upstream_age
        if pending is not None:
            values["pending_number"] = pending.header.number
            values["pending_age_seconds"] = time.monotonic() - pending.published
        return values

    def follow(
        self, upstream_url: str, feed_url: str | None = None, *, poll_ms: int = DEFAULT_POLL_MS
    ) -> None:
        """Follow another node from ``start`` on: its blocks and, with ``feed_url``, its slices.

        Submitted transactions are forwarded to it. ValueError for a node that makes blocks, and for
        addresses that are none.
        """
        if self.mining is not Mining.NEVER:
            raise ValueError("a node that makes blocks cannot follow another")
        lock = self.producer.lock
        follower = Follower(self.chain, self.followed, lock=lock, meters=self.meters)
        self.following = Following(
            self.chain,
            follower,
            add_block=self.add_block,
            lock=lock,
            meters=self.meters,
            upstream_url=upstream_url,
            feed_url=feed_url,
            poll_seconds=poll_ms / 1000,
        )

    async def start(self) -> None:
        """Begin to build blocks or to follow, if this node does that."""
        if self.following is not None:
            await self.following.start()
        if self.builder is not None:
            self.builder.start()
        if self.trusted_setup is not None and not self.trusted_setup.loaded:
            loop = asyncio.get_running_loop()
            self._preload = loop.call_later(PRELOAD_SECONDS, self.trusted_setup.preload)

    async def stop(self) -> None:
        """Stop building and following."""
        if self._preload is not None:
            self._preload.cancel()
        if self.following is not None:
            await self.following.stop()
        if self.builder is not None:
            await asyncio.to_thread(self.builder.stop)
        if self.directory is not None:
            await asyncio.to_thread(self.directory.close)

    def built(self, pending: PendingBlock) -> None:
        """A slice was made here: what is promised is written down first."""
        if self.directory is not None:
            self.directory.slices.keep(pending)
        self.publish(pending)

    def followed(self, pending: PendingBlock | None, tell: bool) -> None:
        """A snapshot of the feed: what it holds has left the pool."""
        if pending is None:
            self.pool.reset(self.chain.layer_of(self.chain.head.hash))
        else:
            self.pool.reset(pending.layer, pending.transactions[pending.first_new :])
        self.publish(pending, tell)

    def _restore(self, directory: DataDirectory) -> None:
        """Keep the promise that the process before left, and let wait again what waited then."""
        if self.mining is not Mining.NEVER:
            promise = directory.slices.promise()
            try:
                kept = None if promise is None else kept_promise(self.chain, promise)
            except FastevmError as error:
                log.error("the pre-confirmed block could not be sealed: %s", error)
                self.meters.count("promises_broken_total")
            else:
                if kept is not None:
                    self.chain.append(*kept)
                    self.meters.count("promises_kept_total")
        waiting = directory.pool.restore(self._readmit, self._is_waiting)
        self.meters.set("pool_restored", waiting)

    def _readmit(self, raw: bytes) -> None:
        with contextlib.suppress(InvalidTransaction, TransactionDecodeError):
            self._admit(raw)

    def _is_waiting(self, tx_hash: bytes) -> bool:
        return self.pool.find(tx_hash) is not None

    def _tidy(self) -> None:
        if self.directory is not None:
            self.directory.pool.tidy(self._is_waiting)

    def _write_down(self, directory: DataDirectory, raw: bytes, transaction: Transaction) -> None:
        try:
            directory.pool.add(transaction.hash, raw, self._is_waiting)
        except OSError as error:
            self.pool.drop(transaction.hash)
            text = "the transaction could not be written to the data directory"
            raise InvalidTransaction("storage", f"{text}: {error}") from error

    def _forward(self, raw: bytes, transaction: Transaction) -> None:
        """The upstream node has the last word."""
        assert self.following is not None
        try:
            self.following.forward(raw)
        except RpcRefusal as error:
            if "already known" in error.message:
                return
            self.pool.drop(transaction.hash)
            raise InvalidTransaction(refusal_code(error.message), error.message) from error
        except UpstreamError:
            self.pool.drop(transaction.hash)
            raise

    def _admit(self, raw: bytes) -> Transaction:
        parent, schedule = self._next_rules()
        transaction, sidecar = self._foreseen.take(raw)
        if self.pool.find(transaction.hash) is not None:
            raise InvalidTransaction("already_known", "already known")
        check_pooled(
            transaction,
            sidecar,
            schedule,
            chain_id=self.config.chain_id,
            gas_limit=parent.gas_limit,
            fee_cap=self.fee_cap,
            setup=self.trusted_setup,
        )
        self.pool.add(transaction, sidecar)
        return transaction

    def _next_rules(self) -> tuple[Header, ForkSchedule]:
        """The head, and the rules of the block that follows it."""
        parent, known = self.chain.head.header, self._rules
        if known is None or known[0] is not parent:
            known = parent, self.chain.schedule_for_child(parent, parent.timestamp + 1)
            self._rules = known
        return known


def refusal_code(message: str) -> str:
    """The code of a refusal that another node worded."""
    for text, code in REFUSALS.items():
        if message.startswith(text):
            return code
    return "upstream"


def dev_genesis(
    accounts: Sequence[DevAccount], *, chain_id: int = DEV_CHAIN_ID, timestamp: int | None = None
) -> dict[str, Any]:
    """A genesis in geth's format: the newest rules, funded accounts, the protocol's contracts."""
    forks = dict.fromkeys(DEV_FORKS, 0)
    alloc = {"0x" + account.address.hex(): {"balance": hex(DEV_BALANCE)} for account in accounts}
    return {
        "config": {"chainId": chain_id, "terminalTotalDifficulty": 0, **forks},
        "alloc": alloc | SYSTEM_CONTRACTS,
        "difficulty": "0x0",
        "gasLimit": hex(DEV_GAS_LIMIT),
        "baseFeePerGas": hex(DEV_BASE_FEE),
        "timestamp": hex(int(time.time()) if timestamp is None else timestamp),
        "extraData": "0x" + EXTRA_DATA.hex(),
    }


def dev_node(
    *,
    accounts: int = 10,
    chain_id: int = DEV_CHAIN_ID,
    block_time_ms: int = DEFAULT_BLOCK_TIME_MS,
    slice_interval_ms: int = DEFAULT_SLICE_INTERVAL_MS,
    mining: Mining = Mining.CADENCE,
    timestamp: int | None = None,
    directory: DataDirectory | None = None,
    **options: Any,
) -> Node:
    """A development chain that builds blocks by itself.

    ``accounts`` accounts of the well-known test mnemonic hold 10,000 ether each. Times in
    milliseconds, ``timestamp`` of the first block in seconds (now, or that of the chain in
    ``directory``). Further options as of :func:`genesis_node`. ValueError for what no chain can
    have.
    """
    funded = dev_accounts(accounts)
    stored = None if directory is None else directory.genesis
    if timestamp is None and stored is not None:
        timestamp = read_number(stored.get("timestamp", 0), "timestamp")
    genesis = dev_genesis(funded, chain_id=chain_id, timestamp=timestamp)
    return genesis_node(
        genesis,
        accounts=funded,
        mining=mining,
        block_time_ms=block_time_ms,
        slice_interval_ms=slice_interval_ms,
        directory=directory,
        **options,
    )


def genesis_node(
    genesis: Mapping[str, Any],
    *,
    accounts: Sequence[DevAccount] = (),
    produce_blocks: bool = False,
    mining: Mining | None = None,
    block_time_ms: int = DEFAULT_BLOCK_TIME_MS,
    slice_interval_ms: int = DEFAULT_SLICE_INTERVAL_MS,
    directory: DataDirectory | None = None,
    progress: Progress | None = None,
    limits: ChainLimits | None = None,
    **options: Any,
) -> Node:
    """A node on the chain of a genesis file (geth's format); ValueError names a wrong member.

    ``produce_blocks`` is short for mining at the cadence. What is in ``directory`` is played back,
    with ``progress(blocks, bytes, all_bytes)`` after each record; the chain is kept there from then
    on. StorageError (a ValueError) when it holds another one. Further options as of :class:`Node`.
    """
    config = ChainConfig.from_genesis(
        genesis, block_time_ms=block_time_ms, slice_interval_ms=slice_interval_ms
    )
    block, layer = genesis_block(genesis, config)
    if mining is None:
        mining = Mining.CADENCE if produce_blocks else Mining.NEVER

    def fresh() -> Chain:
        return Chain(config, block, layer, limits=limits)

    if directory is None:
        chain = fresh()
        chain.archive = Archive(ScratchBlocks())
    else:
        directory.claim(genesis, block.hash, config.chain_id)
        chain = directory.restore(fresh, progress)
    return Node(chain, accounts=accounts, mining=mining, directory=directory, **options)
