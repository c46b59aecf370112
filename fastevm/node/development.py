"""The development part of a node (``evm_*``, ``anvil_*``): clock, accounts, snapshots, mining.

A node that builds its own blocks has `DevelopmentControls`, other nodes have `NoDevelopment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.types import Block
from fastevm.errors import FastevmError
from fastevm.fork.block_choice import BlockLike
from fastevm.node.chain_replacement import ChainReplacement
from fastevm.node.chain_rewriting import ChainRewriting
from fastevm.node.chain_settings import ChainSettings
from fastevm.node.impersonated_accounts import Impersonation
from fastevm.node.kept_development import clock_key, restore_state, settings_json, state_json
from fastevm.node.next_block import NextBlock
from fastevm.node.pool.pool import Content, TransactionPool
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.miner import Miner
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.remote_state import LocalState
from fastevm.node.snapshots import Snapshot, Snapshots
from fastevm.node.storage import NoStorage
from fastevm.node.time_control import TimeControl

# most blocks of one request: they take 13 s, less than the time limit of a request
MAX_MINED = 100_000
LARGEST_BALANCE = 2**256 - 1  # wei
INSTANCE_SIZE = 32  # bytes
NO_RESET = "this node cannot start another chain"


class NoReset:
    """Refuses to start another chain: the node follows, or its chain is in a data directory.

    ``instance``: 32 bytes, different after each reset.
    """

    instance = bytes(INSTANCE_SIZE)

    def to_fork(self, url: str | None = None, block: BlockLike | None = None) -> None:
        """Restarts the chain as a fork of another node's chain. Always raises FastevmError here."""
        raise FastevmError(NO_RESET)

    def to_development(self) -> None:
        """Always raises FastevmError, because this node cannot restart as a development chain."""
        raise FastevmError(NO_RESET)


class NoDevelopment:
    """The development part of a node that builds no blocks."""

    is_present = False

    def __init__(self) -> None:
        self.impersonation = Impersonation()
        self.reset = NoReset()

    @property
    def mines_at_once(self) -> bool:
        return False

    @property
    def mines(self) -> bool:
        return False

    @property
    def mines_on_request(self) -> bool:
        return False

    @property
    def changes_at_once(self) -> bool:
        return False

    def required(self) -> DevelopmentControls:
        """Returns the controls. Raises FastevmError if the node builds no blocks."""
        raise FastevmError("this node makes no blocks")

    def pending(self) -> PendingBlock | None:
        """Returns the next block of a node that mines on demand, or None for other nodes."""
        return None

    def next_base_fee(self, parent: bytes) -> int | None:
        return None

    def defer_to(self, accept: Callable[[Callable[[], object]], bool]) -> None:
        """Passes small chain changes to ``accept``, which may run them after the answer is sent."""

    def defer(self, work: Callable[[], object]) -> bool:
        """Defers ``work`` until the answer was sent. Returns False if the caller must run it."""
        return False

    def mine_submitted(self) -> None:
        """Mines a submitted transaction if the node mines each transaction immediately."""

    def stop(self) -> None:
        """Stops building blocks at an interval."""


class DevelopmentControls(NoDevelopment):
    """Controls a chain that builds its own blocks. Followers cannot follow these changes.

    Pre-confirmed transactions stay: if a block has any, it is sealed before the clock or accounts
    change. Every method may take milliseconds. ``publish`` withdraws the pending block.
    """

    is_present = True

    def __init__(
        self,
        chain: Chain,
        pool: TransactionPool,
        producer: BlockProducer,
        storage: NoStorage,
        *,
        automine: bool,
        coinbase: bytes,
        publish: Callable[[PendingBlock | None], None],
        attach_remote: Callable[[ForkHistory | None], LocalState],
    ) -> None:
        """Creates the controls. ``automine``: mine each transaction immediately.

        See `ChainReplacement` for other arguments.
        """
        super().__init__()
        self.chain, self.pool, self.producer, self.storage = chain, pool, producer, storage
        self.publish = publish
        self.time, self.next_block = TimeControl(producer, self.keep), NextBlock(producer)
        self.miner = Miner(producer, self._paused, automine=automine)
        self.settings = ChainSettings(chain, producer, self.keep)
        self.replacement = ChainReplacement(
            chain,
            pool,
            producer,
            coinbase=coinbase,
            publish=publish,
            forget=self.forget,
            attach_remote=attach_remote,
        )
        self.rewriting = ChainRewriting(chain, pool, producer, storage.compact_pool)
        self._accept: Callable[[Callable[[], object]], bool] = super().defer
        self._snapshots = Snapshots(storage)
        stored = storage.development()
        if stored is not None:
            restore_state(stored, producer, self.impersonation)
        self._kept_key: object = None
        self.impersonation.changed = self.keep
        if storage.writes_files:
            chain.on_head(lambda change: self._keep_moved())

    @property
    def mines_at_once(self) -> bool:
        """Whether each transaction is mined immediately."""
        return self.miner.automine

    @property
    def mines(self) -> bool:
        """Whether blocks are built without a request: for transactions, or at an interval."""
        return bool(self.miner.automine or self.miner.interval)

    @property
    def mines_on_request(self) -> bool:
        """Whether blocks are built only by methods such as evm_mine."""
        return not (self.mines or self.producer.makes_slices)

    @property
    def changes_at_once(self) -> bool:
        """Whether small changes of the chain never wait for a file, another node or a slice."""
        producer = self.producer
        return not (
            self.storage.writes_files or producer.missing_state.is_remote or producer.makes_slices
        )

    def required(self) -> DevelopmentControls:
        """Returns this object."""
        return self

    def pending(self) -> PendingBlock | None:
        """Returns the next block of a node that mines on demand, or None for other nodes.

        On a fork, raises StateNotKnown on an event loop, and ForkError.
        """
        return self.next_block.of_now()

    def next_base_fee(self, parent: bytes) -> int | None:
        """Returns the base fee in wei that was set for the child of a block, or None."""
        return self.settings.next_base_fee(parent)

    # --- deferred work ----------------------------------------------------------------------------

    def defer_to(self, accept: Callable[[Callable[[], object]], bool]) -> None:
        """Passes small changes of the chain to ``accept``, which may run them after the answer was
        sent.

        ``accept(work)`` returns whether ``work`` will run later.
        """
        self._accept = accept

    def defer(self, work: Callable[[], object]) -> bool:
        """Defers ``work`` until the answer was sent. Returns False if the caller must run it.

        Defers nothing while blocks are built at an interval, because a block could come first.
        """
        return self.changes_at_once and self.miner.interval is None and self._accept(work)

    def mine_submitted(self) -> None:
        """Mines a submitted transaction if the node mines each transaction immediately."""
        if self.mines_at_once and not self.defer(self.producer.mine_each):
            self.producer.mine_each()

    def stop(self) -> None:
        """Stops building blocks at an interval."""
        self.miner.stop()

    def _paused(self) -> None:
        """Withdraws the block that a paused producer has published."""
        if self.producer.paused:
            self.publish(None)

    # --- stored settings --------------------------------------------------------------------------

    def keep(self) -> None:
        """Stores the settings of clock, next blocks and impersonation after a change."""
        if self.storage.writes_files:
            with self.producer.lock:
                self._kept_key = self._moving_key()
                self.storage.keep_development(state_json(self.producer, self.impersonation))

    def _keep_moved(self) -> None:
        """Stores the settings if a block used a timestamp that was set, because that changes the
        clock.
        """
        if self._kept_key != self._moving_key():
            self.keep()

    def _moving_key(self) -> object:
        return clock_key(self.producer.clock), settings_json(self.producer.settings)

    # --- blocks and accounts ----------------------------------------------------------------------

    def mine(
        self,
        count: int = 1,
        *,
        timestamp: int | None = None,
        interval: int | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> list[Block]:
        """Builds blocks now, see :meth:`BlockProducer.mine`.

        Raises ValueError for too many blocks, and for a timestamp before the newest block's or
        above MAX_TIMESTAMP.
        """
        if count > MAX_MINED:
            raise ValueError(f"{count} blocks in one request, limit {MAX_MINED}: make several")
        with self.producer.lock:
            first = self.chain.head.header.timestamp if timestamp is None else timestamp
            if interval is not None:
                self.producer.clock.check(first + count * interval)
            if timestamp is not None:
                self.time.check(timestamp)
            return self.producer.mine(
                count, timestamp=timestamp, interval=interval, is_stopped=is_stopped
            )

    def amend(self, accounts: Mapping[str, Any]) -> None:
        """Changes accounts of the head state.

        Members that are missing in ``accounts`` keep their values.

        ``accounts``: in the format of a genesis file. Raises ValueError with the name of an invalid
        member.
        """
        with self.producer.lock:
            self.producer.seal_open_block()
            head = self.chain.head.hash
            self._snapshots.record_amendment(head, accounts)
            self.chain.amend(head, accounts)
            self.producer.restart()

    def add_balance(self, address: bytes, more: int) -> None:
        """Adds ``more`` wei to the balance of an account (20 bytes).

        The sum is limited to 2**256 - 1.
        """
        with self.producer.lock:
            self.producer.seal_open_block()
            balance = self.chain.layer_of(self.chain.head.hash).balance(address)
            added = min(balance + more, LARGEST_BALANCE)
            self.amend({"0x" + address.hex(): {"balance": hex(added)}})

    # --- snapshots --------------------------------------------------------------------------------

    def forget(self) -> None:
        """Deletes all snapshots, because another chain starts."""
        with self.producer.lock:
            self._snapshots = Snapshots(NoStorage())

    def snapshot(self) -> int:
        """Takes a snapshot and returns its number."""
        with self.producer.lock:
            return self._snapshots.add(self._taken())

    def _taken(self) -> Snapshot:
        head, producer = self.chain.head, self.producer
        layer = self.chain.layer_of(head.hash)
        return Snapshot(
            head.hash,
            head.number,
            lambda: layer,
            self.storage.position,
            frozenset(self.pool.hashes()),
            producer.clock.kept(),
            producer.settings.copy(),
        )

    def weight_since(self, number: int, limit: int) -> int:
        """Returns how many blocks and transactions a revert to a snapshot would remove.

        Returns ``limit`` if the number is higher, or if the revert reads files or changes the
        branch.
        """
        found, chain, weight = self._snapshots.get(number), self.chain, len(self.pool)
        block_hash = chain.head.hash
        while found is not None and block_hash != found.head:
            block = chain.block_by_hash(block_hash) if chain.in_memory(block_hash) else None
            if block is None or block.number <= found.number or weight >= limit:
                return limit
            weight += 1 + len(block.transactions)
            block_hash = block.header.parent_hash
        return min(weight, limit)

    def has_snapshot(self, number: int) -> bool:
        """Returns whether there is a snapshot with this number."""
        return self._snapshots.get(number) is not None

    def revert(self, number: int) -> bool:
        """Reverts to a snapshot and deletes it and all later ones.

        Returns False if it does not exist.

        The pool gets the transactions that it had at the snapshot; later transactions are dropped.
        Clock, gas limit, coinbase and settings of the next block are restored, as in Hardhat. After
        a restart of the node, the state of an older snapshot may have to be computed again.
        """
        with self.producer.lock:
            found = self._snapshots.get(number)
            if found is None:
                return False
            self._return_to(found)
            self._snapshots.drop_from(number)
            return True

    def _return_to(self, found: Snapshot) -> None:
        chain = self.chain
        has_changed = chain.head.hash != found.head
        if not chain.knows(found.head):
            self.storage.readmit(chain, found.head)
        layer = None
        if found.amended or not chain.has_state(found.head):
            layer = found.layer()
        if has_changed:
            with self.pool.readmitting(found.pooled):
                chain.set_head(found.head, layer)
        else:
            self.producer.abandon()
        if layer is not None and found.amended:
            chain.amend(found.head, found.accounts(layer))
        for tx_hash in self.pool.hashes() - found.pooled:
            self.pool.drop(tx_hash)
        self.storage.compact_pool()
        self.producer.settings.restore(found.settings)
        self.producer.clock.restore(found.time)
        # a node with a block time takes timestamps from the system's clock
        if self.producer.block_time is not None:
            self.producer.clock.offset = found.time.offset
        self.keep()
        self.producer.restart()

    # --- named snapshots --------------------------------------------------------------------------

    def save_snapshot(self, name: str) -> None:
        """Takes a named snapshot, or replaces the one with this name. A data directory stores it.

        Seals an open block with transactions first. Raises ValueError for an invalid name and for
        too many names.
        """
        with self.producer.lock:
            self.producer.seal_open_block()
            self._snapshots.put_named(name, self._taken())
            self.producer.restart()

    def restore_snapshot(self, name: str) -> bool:
        """Reverts to a named snapshot, which is kept. Deletes all numbered snapshots.

        Returns False if the name is unknown.
        """
        with self.producer.lock:
            found = self._snapshots.named(name)
            if found is None:
                return False
            self._return_to(found)
            self._snapshots.drop_from(0)
            return True

    def delete_snapshot(self, name: str) -> bool:
        """Deletes a named snapshot. Returns whether it existed."""
        with self.producer.lock:
            return self._snapshots.delete_named(name)

    def named_snapshots(self) -> dict[str, tuple[int, bytes]]:
        """Returns the block number and the block hash of each named snapshot, by name."""
        with self.producer.lock:
            return {name: (kept.number, kept.head) for name, kept in self._snapshots.all_named()}

    def snapshots(self) -> dict[int, tuple[int, bytes]]:
        """Returns the block number and the block hash of each numbered snapshot, by its number."""
        with self.producer.lock:
            found = {}
            for number, kept in self._snapshots.numbered():
                block = self.chain.block_by_hash(kept.head)
                if block is not None:
                    found[number] = (block.number, kept.head)
            return found

    # --- pool -------------------------------------------------------------------------------------

    def drop(self, tx_hash: bytes) -> bool:
        """Removes a transaction from the pool. Returns whether the pool had it."""
        with self.producer.lock:
            found = self.pool.drop(tx_hash)
            self.storage.compact_pool()
            return found

    def drop_all(self, sender: bytes | None = None) -> None:
        """Removes all transactions, or those of ``sender`` (20 bytes), from the pool."""
        with self.producer.lock:
            content = self.pool.content() if sender is None else self._content_of(sender)
            for by_sender in content:
                for by_nonce in by_sender.values():
                    for transaction in by_nonce.values():
                        self.pool.drop(transaction.hash)
            self.storage.compact_pool()

    def _content_of(self, sender: bytes) -> tuple[Content, Content]:
        executable, queued = self.pool.content_of(sender)
        return {sender: executable}, {sender: queued}
