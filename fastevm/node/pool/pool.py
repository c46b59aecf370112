"""The transaction pool: transactions by sender and nonce until a canonical block includes them.

A transaction is executable if it follows the account's nonce without a gap, and if the balance
covers it together with the executable transactions before it. All other transactions are queued.
The builder takes the best executable transaction, then confirms it, sets it aside or drops it. A
confirmed transaction stays known until its block is canonical; it is executable again if the block
is abandoned.

When a subpool is full, the transaction with the lowest effective tip at the next base fee leaves
(see `eviction`). A transaction that no block can include now never evicts one that a block can
include. The pool remembers why a transaction left (see `drop_reason`).
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from threading import RLock

from msgspec import Struct

from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.transaction.unsigned_sender import is_impersonated
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.node.pool.admission import check_funds
from fastevm.node.pool.eviction import EvictionHeap, NextFees, Rank, lowest_of, rank
from fastevm.node.pool.ordering import OrderedByPrice
from fastevm.node.pool.pooled_transaction import (
    EXECUTABLE,
    NO_SUBPOOL,
    QUEUED,
    PooledTransaction,
    SenderQueue,
    Subpool,
    authorities_of,
    refuse,
)
from fastevm.node.pool.replacement import check_replacement
from fastevm.node.pool.run_times import RunTimes

Content = Mapping[bytes, Mapping[int, Transaction]]


MAX_VICTIMS = 16  # most transactions that are evicted because of one transaction's size
# Drop reasons that are remembered. If attackers displace 100 transactions per second, reasons are
# remembered for ten minutes. They need about 11 MB.
MAX_DROP_REASONS = 65_536

EVICTED = "evicted: the pool was full and others pay more"
REPLACED = "replaced by a transaction with the same nonce that pays more"
TOO_SLOW = "execution takes too long"
OVER_LIMIT = "evicted: too many transactions of the sender wait for a nonce or for funds"


class PoolLimits(Struct, frozen=True):
    """Limits of the pool, in transactions.

    ``executable`` and ``queued`` limit the two subpools, and ``*_per_sender`` one sender's
    transactions in them. ``size`` limits the bytes of all transactions, without blobs.
    ``blob_transactions`` limits the transactions with blobs, each of which has up to 768 KiB.
    ``sidecars`` limits the sidecars of included transactions, because a reorganisation may return
    such transactions to the pool. ``by_arrival``: blocks include transactions in order of arrival,
    not of tip. ``cap_alone_replaces``: a replacement only needs a higher fee cap.
    """

    executable: int = 20_480
    queued: int = 4_096
    executable_per_sender: int = 4_096
    queued_per_sender: int = 256
    blob_transactions: int = 64
    blob_transactions_per_sender: int = 16
    sidecars: int = 64
    size: int = 128 * 1024 * 1024
    by_arrival: bool = False
    cap_alone_replaces: bool = False


class TransactionPool:
    """The transactions of all senders. Thread-safe.

    ``accounts``: the newest state, with pre-confirmed transactions; see `settle`. ``charges``
    returns how much wei a transaction pays besides gas and value (OP Stack). The caller of `add`
    keeps ``next_fees`` up to date. ``max_seconds``: the longest allowed execution of a transaction,
    if blocks have deadlines.
    """

    def __init__(
        self,
        accounts: Layer,
        limits: PoolLimits | None = None,
        charges: Callable[[Transaction], int] | None = None,
    ) -> None:
        self.limits = limits or PoolLimits()
        self._lock = RLock()
        self._accounts = accounts
        self._charges = charges
        self._by_hash: dict[bytes, PooledTransaction] = {}
        self._queues: dict[bytes, SenderQueue] = {}
        self._confirmed: dict[bytes, PooledTransaction] = {}
        self._sidecars: dict[bytes, PooledTransaction] = {}
        self._authorities: dict[bytes, int] = {}
        self._size = 0  # bytes of all transactions
        self._changed: set[bytes] = set()  # accounts whose nonces the next state may change
        # hashes that `reset` may add again; None: all
        self._readmitted: Container[bytes] | None = None
        self._arrivals = 0
        self._blobs: dict[bytes, PooledTransaction] = {}
        self._unfunded: set[bytes] = set()  # senders whose next transaction waits for funds
        self._demoted: set[bytes] = set()  # senders whose queue may exceed its limits
        self._drop_reasons: dict[bytes, str] = {}
        self.next_fees = NextFees()
        self.run_times = RunTimes()
        self.max_seconds = math.inf
        self._ordered = OrderedByPrice(self.run_times)
        self._ordered.by_arrival = self.limits.by_arrival
        self._executable = EvictionHeap(EXECUTABLE, self._refresh)
        self._queued = EvictionHeap(QUEUED, self._refresh)

    def __len__(self) -> int:
        return len(self._by_hash)

    @property
    def executable_count(self) -> int:
        """The number of executable transactions."""
        return self._executable.count

    @property
    def queued_count(self) -> int:
        """The number of queued transactions."""
        return self._queued.count

    @property
    def confirmed_count(self) -> int:
        """The number of pre-confirmed transactions whose block is not canonical yet."""
        return len(self._confirmed)

    # --- submission and queries -------------------------------------------------------------------

    def add(
        self,
        transaction: Transaction,
        sidecar: BlobSidecar | None = None,
        record: Callable[[], None] | None = None,
    ) -> None:
        """Adds a transaction that `check_pooled` accepted.

        ``record()`` writes the transaction to disk before a block can include it. Exceptions of
        ``record`` propagate. If the pool refuses the transaction, raises InvalidTransaction
        (``already_known``, ``nonce_too_low``, ``insufficient_funds``, ``replacement_underpriced``,
        ``underpriced`` ...) and changes nothing.
        """
        address = transaction.sender
        if address is None:
            refuse("invalid_sender", "invalid sender: invalid transaction v, r, s values")
        with self._lock:
            if transaction.hash in self._by_hash or transaction.hash in self._confirmed:
                refuse("already_known", "already known")
            self._check_time(transaction, address)
            self._arrivals += 1
            charges = 0 if self._charges is None else self._charges(transaction)
            new = PooledTransaction(transaction, address, self._arrivals, sidecar, charges)
            sender = self._queues.get(address) or SenderQueue(self._accounts.nonce(address))
            old = sender.by_nonce.get(new.nonce)
            victims = tuple(self._check(sender, new, old))
            if record is not None:
                record()
            for victim in victims:
                self._remove(victim, EVICTED)
            if old is not None:
                self._take_out(sender, old)
                self._remember(old.hash, REPLACED)
            self._queues.setdefault(address, sender)
            self._drop_reasons.pop(new.hash, None)
            self._insert(sender, new)
            self._trim_queued()

    def drop_reason(self, tx_hash: bytes) -> str | None:
        """Returns why a transaction left the pool without entering a block, or None if unknown."""
        return self._drop_reasons.get(tx_hash)

    def find(self, tx_hash: bytes) -> Transaction | None:
        """Returns the transaction with this hash if it is pooled, or pre-confirmed but not
        canonical yet.
        """
        pooled = self._by_hash.get(tx_hash) or self._confirmed.get(tx_hash)
        return None if pooled is None else pooled.transaction

    def sidecar(self, tx_hash: bytes) -> BlobSidecar | None:
        """Returns the sidecar of a pooled or recently included transaction."""
        for pooled in (self._by_hash, self._confirmed, self._sidecars):
            if tx_hash in pooled:
                return pooled[tx_hash].sidecar
        return None

    def blob(self, versioned_hash: bytes) -> bytes | None:
        """Returns the blob with this versioned hash if the pool still has its sidecar."""
        with self._lock:
            kept = [*self._by_hash.values(), *self._confirmed.values(), *self._sidecars.values()]
        for pooled in kept:
            hashes = pooled.transaction.blob_versioned_hashes
            if pooled.sidecar is not None and versioned_hash in hashes:
                return pooled.sidecar.blobs[hashes.index(versioned_hash)]
        return None

    def next_nonce(self, address: bytes, known: int | None = None) -> int:
        """Returns the nonce after all included and executable transactions of the account.

        ``known``: the account's nonce in a state that the caller has read. The result is at least
        ``known``.
        """
        with self._lock:
            sender = self._queues.get(address)
            nonce = self._accounts.nonce(address) if sender is None else sender.frontier
        return nonce if known is None else max(nonce, known)

    def is_ahead_of(self, accounts: Layer) -> bool:
        """Returns whether the pool may count a nonce as used that is unused in the state
        ``accounts``.

        Takes no lock. Checks executable transactions, then ``_changed``, then the state. A
        transaction moves through them in this order, so the checks miss no transaction.
        """
        return bool(self._executable.count or self._changed) or self._accounts is not accounts

    def executable(self) -> Content:
        """Returns the executable transactions, by sender and nonce."""
        return self.content()[0]

    def queued(self) -> Content:
        """Returns the queued transactions, by sender and nonce."""
        return self.content()[1]

    def content(self) -> tuple[Content, Content]:
        """Returns the executable and the queued transactions, by sender and nonce.

        Takes the lock once per sender, so that the builder never waits long for it.
        """
        with self._lock:
            senders = list(self._queues)
        executable, queued = {}, {}
        for address in senders:
            ready, waiting = self.content_of(address)
            if ready:
                executable[address] = ready
            if waiting:
                queued[address] = waiting
        return executable, queued

    def content_of(self, address: bytes) -> tuple[dict[int, Transaction], dict[int, Transaction]]:
        """Returns the executable and the queued transactions of a sender, by nonce."""
        with self._lock:
            sender = self._queues.get(address)
            waiting = [] if sender is None else sorted(sender.by_nonce.items())
            return (
                {nonce: item.transaction for nonce, item in waiting if item.subpool is EXECUTABLE},
                {nonce: item.transaction for nonce, item in waiting if item.subpool is QUEUED},
            )

    def hashes(self) -> set[bytes]:
        """Returns the hashes of transactions that are pooled, or pre-confirmed but not canonical
        yet.
        """
        with self._lock:
            return {*self._by_hash, *self._confirmed}

    def drop(self, tx_hash: bytes, reason: str | None = None) -> bool:
        """Removes a transaction and stores the reason.

        Returns whether the pool had the transaction.
        """
        with self._lock:
            pooled = self._by_hash.get(tx_hash)
            if pooled is not None:
                self._remove(pooled, reason)
                self._trim_queued()
            return pooled is not None

    # --- block building ---------------------------------------------------------------------------

    def open_slice(self, base_fee: int, *, by_time: bool = False) -> None:
        """Orders all executable transactions by effective tip at this base fee (wei per gas).

        ``by_time``: slow transactions come after the others, and long ones only from ``best_long``.
        """
        with self._lock:
            ordered = self._ordered
            is_stale = len(ordered) > 2 * len(self._queues) + 64
            if (base_fee, by_time) == (ordered.base_fee, ordered.by_time) and not is_stale:
                ordered.restore()
                return
            heads = (sender.by_nonce.get(sender.nonce) for sender in self._queues.values())
            live = [head for head in heads if head is not None]
            ordered.rebuild(base_fee, live, by_time=by_time)

    def best(self) -> PooledTransaction | None:
        """Returns the next transaction to include.

        The caller must confirm it, drop it or set it aside.
        """
        return self._next_of(self._ordered.pop)

    def best_long(self) -> PooledTransaction | None:
        """Returns the next transaction that may take most of a slice. Use it like ``best``."""
        return self._next_of(self._ordered.pop_long)

    def _next_of(self, pop: Callable[[], PooledTransaction | None]) -> PooledTransaction | None:
        with self._lock:
            while (pooled := pop()) is not None:
                if (
                    pooled.subpool is EXECUTABLE
                    and self._queues[pooled.sender].nonce == pooled.nonce
                ):
                    return pooled
        return None

    def expected_seconds(self, pooled: PooledTransaction) -> float:
        """Returns the expected execution time in seconds, from earlier runs of the sender and the
        code.
        """
        with self._lock:
            return self.run_times.expected(pooled.transaction, pooled.sender)

    def drop_too_slow(self, pooled: PooledTransaction, details: str) -> None:
        """Drops a transaction that is too slow for any block.

        Refuses similar transactions of its sender from now on.
        """
        with self._lock:
            self.run_times.refuse_from(pooled.sender, pooled.transaction.gas_limit)
            self.drop(pooled.hash, f"{TOO_SLOW}: {details}")

    def learn_time(self, pooled: PooledTransaction, seconds: float, gas: int | None) -> None:
        """Records an execution time in seconds.

        ``gas``: the gas used, or None if it was stopped.
        """
        with self._lock:
            self.run_times.learn(pooled.transaction, pooled.sender, seconds, gas)

    def set_aside(self, pooled: PooledTransaction) -> None:
        """Skips a transaction that does not fit, and its sender, until the next `open_slice`."""
        with self._lock:
            self._ordered.set_aside(pooled)

    def confirm(self, pooled: PooledTransaction) -> None:
        """Marks a transaction as included in the open block.

        Offers its sender's next transaction.
        """
        with self._lock:
            self._confirmed[pooled.hash] = pooled
            self._use_nonce(pooled.sender, pooled.nonce, pooled.authorities, spent=pooled.cost)

    def settle(self, accounts: Layer) -> None:
        """Adopts a new state that contains all confirmed transactions."""
        with self._lock:
            self._use_state(accounts)
            self._trim_queued()

    def sealed(self, transactions: Iterable[Transaction]) -> None:
        """Removes these transactions, because the block that includes them is canonical."""
        with self._lock:
            for transaction in transactions:
                self._include(transaction)
            self._changed |= self._unfunded

    def reset(
        self,
        accounts: Layer,
        included: Iterable[Transaction] = (),
        returned: Iterable[Transaction] = (),
    ) -> None:
        """Updates the pool after a change of the canonical chain.

        ``accounts``: the state to build on. ``included``: transactions of blocks that joined the
        chain. ``returned``: transactions of blocks that left it. These transactions, and those that
        were confirmed for an abandoned block, are added again if they are still valid.
        """
        with self._lock:
            here = set()
            for transaction in included:
                here.add(transaction.hash)
                self._include(transaction)
            given_up, self._confirmed = self._confirmed, {}
            for key, pooled in given_up.items():
                if pooled.sidecar is not None:
                    self._sidecars[key] = pooled
            back = [item for item in returned if item.type != DEPOSIT_TX]
            back += (pooled.transaction for pooled in given_up.values())
            self._changed.update(item.sender for item in back if item.sender is not None)
            # Blocks may add funds to any account, and the removal of a block takes these funds away
            # again.
            self._changed.update(self._queues if back else self._unfunded)
            self._use_state(accounts)
            known = self._readmitted
            if known is not None:
                back = [item for item in back if item.hash in known]
            self._reenter(item for item in back if item.hash not in here)
            self._trim_queued()

    @contextmanager
    def readmitting(self, hashes: Container[bytes]) -> Iterator[None]:
        """Returns a context in which `reset` re-adds only transactions with these hashes."""
        self._readmitted = hashes
        try:
            yield
        finally:
            self._readmitted = None

    # --- inside: rules ----------------------------------------------------------------------------

    def _check_time(self, transaction: Transaction, sender: bytes) -> None:
        """Raises InvalidTransaction if this transaction, or a similar one, was too slow before."""
        reason = self._drop_reasons.get(transaction.hash, "")
        if reason.startswith(TOO_SLOW):
            refuse("too_slow", reason)
        least = self.run_times.refused_from(sender)
        if least is not None and transaction.gas_limit >= least:
            text = f"one of this sender with {least} gas did, use a lower gas limit"
            refuse("too_slow", f"{TOO_SLOW}: {text}")

    def _check(
        self, sender: SenderQueue, new: PooledTransaction, old: PooledTransaction | None
    ) -> list[PooledTransaction]:
        """Returns the transactions to evict for ``new``. Raises InvalidTransaction to refuse it."""
        if new.nonce < sender.nonce:
            text = f"nonce too low: next nonce {sender.nonce}, tx nonce {new.nonce}"
            refuse("nonce_too_low", text)
        if new.has_blobs and new.nonce > sender.frontier:
            text = f"nonce too high: tx nonce {new.nonce}, gapped nonce {sender.frontier}"
            refuse("nonce_too_high", text)
        check_funds(sender, self._accounts.balance(new.sender), new, old)
        self._check_delegation(sender, new, old)
        if sender.by_nonce and sender.has_blobs != new.has_blobs:
            refuse("address_reserved", "address already reserved")
        if old is None:
            return self._check_capacity(sender, new)
        check_replacement(old, new, cap_alone=self.limits.cap_alone_replaces)
        is_executable = old.subpool is EXECUTABLE
        new_rank = is_executable, self._rank_of(sender, new, fits=is_executable)
        return self._victims_by_size(new, new_rank, [], freed=old.size)

    def _check_delegation(
        self, sender: SenderQueue, new: PooledTransaction, old: PooledTransaction | None
    ) -> None:
        """Raises InvalidTransaction for a second pooled transaction of a delegated account
        (EIP-7702).
        """
        if new.sender in self._authorities or self._has_delegated(new):
            if not sender.executable_count and new.nonce != sender.nonce:
                refuse("delegated_gap", "gapped-nonce tx from delegated accounts")
            if sender.executable_count and old is None:
                refuse(
                    "delegated_in_flight",
                    "in-flight transaction limit reached for delegated accounts",
                )
        for authority in new.authorities:
            known = self._queues.get(authority)
            if known is not None and (len(known.by_nonce) > 1 or known.has_blobs):
                refuse("authority_reserved", "authority already reserved")

    def _has_delegated(self, new: PooledTransaction) -> bool:
        """Returns whether the sender has code.

        This is a delegation unless the sender is impersonated.
        """
        return bool(self._accounts.code(new.sender)) and not is_impersonated(new.transaction)

    def _check_capacity(
        self, sender: SenderQueue, new: PooledTransaction
    ) -> list[PooledTransaction]:
        """Returns the transactions to evict for ``new``: the lowest of each subpool that is full.

        Raises InvalidTransaction if ``new`` does not rank higher.
        """
        limits, fits = self.limits, new.nonce <= sender.frontier
        if new.has_blobs and len(sender.by_nonce) >= limits.blob_transactions_per_sender:
            _refuse_account(sender)
        subpool, limit = self._executable, limits.executable
        own, own_limit = sender.executable_count, limits.executable_per_sender
        if not fits:
            subpool, limit = self._queued, limits.queued
            own, own_limit = sender.queued_count, limits.queued_per_sender
        if own >= own_limit:
            _refuse_account(sender)
        new_rank = fits, self._rank_of(sender, new, fits=fits)
        victims: list[PooledTransaction] = []
        if new.has_blobs and len(self._blobs) >= limits.blob_transactions:
            for queue in {self._queues[blob.sender] for blob in self._blobs.values()}:
                queue.refresh()
            lowest = lowest_of(self._blobs.values(), self.next_fees)
            victims.append(self._victim(lowest, new, (True, new_rank[1])))
        is_freed = any(victim.subpool is subpool.subpool for victim in victims)
        if subpool.count >= limit and not is_freed:
            lowest = subpool.lowest(self.next_fees)
            victims.append(self._victim(lowest, new, new_rank))
        return self._victims_by_size(new, new_rank, victims)

    def _rank_of(self, sender: SenderQueue, new: PooledTransaction, *, fits: bool) -> Rank:
        """Returns the rank of ``new``.

        ``fits``: ``new`` directly follows executable transactions.
        """
        before = sender.caps_before(new.nonce) if fits else None
        lowest_caps = new.caps if before is None else new.caps.lowest(before)
        return rank(lowest_caps, new.arrival, self.next_fees)

    def _victims_by_size(
        self,
        new: PooledTransaction,
        new_rank: tuple[bool, Rank],
        victims: list[PooledTransaction],
        freed: int = 0,
    ) -> list[PooledTransaction]:
        """Adds transactions to ``victims`` until the pool has space for ``new``.

        Returns ``victims``.

        ``freed``: bytes of the transaction that ``new`` replaces.
        """
        room = self.limits.size - self._size + freed + sum(item.size for item in victims)
        if new.size <= room:
            return victims
        for heap in (self._queued, self._executable):
            subpool = heap.subpool
            leaving = Counter(item.sender for item in victims if item.subpool is subpool)
            with closing(heap.lowest_first(self.next_fees)) as found:
                for lowest in found:
                    self._check_victim(lowest, subpool, new, new_rank)
                    victim = self._last_of(lowest.sender, subpool, leaving[lowest.sender])
                    leaving[lowest.sender] += 1
                    victims.append(victim)
                    room += victim.size
                    if new.size <= room:
                        return victims
                    if len(victims) == MAX_VICTIMS:
                        refuse("pool_full", "txpool is full")
        return refuse("pool_full", "txpool is full")

    def _victim(
        self, lowest: PooledTransaction | None, new: PooledTransaction, new_rank: tuple[bool, Rank]
    ) -> PooledTransaction:
        """Returns the transaction to evict for ``new``, which must rank above ``lowest``."""
        if lowest is None:
            refuse("underpriced", "transaction underpriced")
        self._check_victim(lowest, lowest.subpool, new, new_rank)
        return self._last_of(lowest.sender, lowest.subpool)

    def _check_victim(
        self,
        lowest: PooledTransaction,
        subpool: Subpool,
        new: PooledTransaction,
        new_rank: tuple[bool, Rank],
    ) -> None:
        """Raises InvalidTransaction if ``new`` does not rank above ``lowest`` of ``subpool``."""
        if new_rank <= (
            subpool is EXECUTABLE,
            rank(lowest.lowest_caps, lowest.arrival, self.next_fees),
        ):
            refuse("underpriced", "transaction underpriced")
        if lowest.sender == new.sender:
            # Evicting the sender's last transaction would leave ``new`` behind a gap.
            refuse("pool_full", "txpool is full")

    def _last_of(self, address: bytes, subpool: Subpool, skipped: int = 0) -> PooledTransaction:
        """Returns a sender's last transaction in a subpool, because evicting it leaves no gap.

        ``skipped``: the number of later transactions that are already being evicted.
        """
        sender = self._queues[address]
        if subpool is QUEUED:
            return sender.by_nonce[sorted(sender.by_nonce)[-1 - skipped]]
        return sender.by_nonce[sender.frontier - 1 - skipped]

    def _evict(self, lowest: PooledTransaction) -> None:
        self._remove(self._last_of(lowest.sender, lowest.subpool), EVICTED)

    def _trim_queued(self) -> None:
        """Enforces the limits of queued transactions on senders whose transactions were demoted."""
        while self._demoted:
            sender = self._queues.get(self._demoted.pop())
            excess = 0 if sender is None else sender.queued_count - self.limits.queued_per_sender
            if sender is not None and excess > 0:
                for nonce in sorted(sender.by_nonce)[-excess:]:
                    self._remove(sender.by_nonce[nonce], OVER_LIMIT)
        while self._queued.count > self.limits.queued:
            lowest = self._queued.lowest(self.next_fees)
            assert lowest is not None
            self._evict(lowest)

    # --- inside: subpools -------------------------------------------------------------------------

    def _insert(self, sender: SenderQueue, new: PooledTransaction) -> None:
        sender.by_nonce[new.nonce] = new
        self._by_hash[new.hash] = new
        self._size += new.size
        if new.has_blobs:
            self._blobs[new.hash] = new
        for authority in new.authorities:
            self._authorities[authority] = self._authorities.get(authority, 0) + 1
        if new.nonce < sender.frontier:
            self._move(sender, new, EXECUTABLE)
            self._rank_again(sender)
            if new.nonce == sender.nonce:
                self._ordered.push(new)
            return
        if new.nonce > sender.frontier:
            self._move(sender, new, QUEUED)
        self._promote(sender)
        if new.subpool is NO_SUBPOOL:  # the balance does not cover the transaction
            self._move(sender, new, QUEUED)
        while self._executable.count > self.limits.executable:
            lowest = self._executable.lowest(self.next_fees)
            assert lowest is not None
            self._evict(lowest)

    def _promote(self, sender: SenderQueue) -> None:
        """Makes queued transactions executable while they follow without a gap and the balance
        covers them.
        """
        pooled = sender.by_nonce.get(sender.frontier)
        if pooled is None:
            return
        balance = self._accounts.balance(pooled.sender)
        while (
            pooled is not None
            and sender.cost + sender.spent + pooled.cost <= balance
            and sender.executable_count < self.limits.executable_per_sender
        ):
            self._move(sender, pooled, EXECUTABLE)
            if sender.frontier == sender.nonce:
                self._ordered.push(pooled)
            sender.frontier += 1
            pooled = sender.by_nonce.get(sender.frontier)
        if pooled is not None:
            self._unfunded.add(pooled.sender)

    def _demote(self, sender: SenderQueue, first: int) -> None:
        """Queues the executable transactions from nonce ``first`` on."""
        for nonce in range(first, sender.frontier):
            pooled = sender.by_nonce.get(nonce)
            if pooled is not None:
                self._move(sender, pooled, QUEUED)
                self._demoted.add(pooled.sender)
        sender.frontier = min(sender.frontier, first)

    def _demote_unfunded(self, sender: SenderQueue, balance: int) -> None:
        """Queues the executable transactions whose total cost exceeds the balance."""
        if sender.cost <= balance:
            return
        total = 0
        for nonce in range(sender.nonce, sender.frontier):
            total += sender.by_nonce[nonce].cost
            if total > balance:
                self._demote(sender, nonce)
                return

    def _move(self, sender: SenderQueue, pooled: PooledTransaction, subpool: Subpool) -> None:
        if pooled.subpool is EXECUTABLE:
            sender.cost -= pooled.cost
            self._executable.remove(pooled, subpool)
        elif pooled.subpool is QUEUED:
            self._queued.remove(pooled, subpool)
        pooled.lowest_caps = pooled.caps
        if subpool is EXECUTABLE:
            sender.cost += pooled.cost
            before = sender.caps_before(pooled.nonce)
            if before is not None:
                pooled.lowest_caps = pooled.caps.lowest(before)
            self._executable.add(pooled)
        elif subpool is QUEUED:
            self._queued.add(pooled)

    def _refresh(self, pooled: PooledTransaction) -> None:
        self._queues[pooled.sender].refresh()

    def _rank_again(self, sender: SenderQueue) -> None:
        """Updates the ranks of a sender's transactions after a replacement."""
        sender.is_stale = True
        sender.refresh()
        self._executable.push(sender.by_nonce[sender.frontier - 1])

    def _take_out(self, sender: SenderQueue, pooled: PooledTransaction) -> None:
        self._move(sender, pooled, NO_SUBPOOL)
        del sender.by_nonce[pooled.nonce]
        del self._by_hash[pooled.hash]
        self._size -= pooled.size
        self._blobs.pop(pooled.hash, None)
        for authority in pooled.authorities:
            self._authorities[authority] -= 1
            if not self._authorities[authority]:
                del self._authorities[authority]

    def _remove(self, pooled: PooledTransaction, reason: str | None) -> None:
        sender, was_executable = self._queues[pooled.sender], pooled.subpool is EXECUTABLE
        self._take_out(sender, pooled)
        if was_executable:  # the later transactions are now behind a gap
            self._demote(sender, pooled.nonce)
        if not sender.by_nonce and pooled.sender not in self._changed:
            del self._queues[pooled.sender]
        if reason is not None:
            self._remember(pooled.hash, reason)

    def _remember(self, tx_hash: bytes, reason: str) -> None:
        self._drop_reasons[tx_hash] = reason
        while len(self._drop_reasons) > MAX_DROP_REASONS:
            del self._drop_reasons[next(iter(self._drop_reasons))]

    def _use_state(self, accounts: Layer) -> None:
        self._accounts = accounts
        changed, self._changed = self._changed, set()
        for address in changed:
            self._renumber(address)

    def _use_nonce(
        self, address: bytes, nonce: int, authorities: frozenset[bytes], spent: int = 0
    ) -> None:
        """Counts a nonce as used until `settle` adopts a state with the new nonce."""
        self._changed.add(address)
        self._changed |= authorities
        sender = self._queues.get(address)
        if sender is None:
            sender = self._queues[address] = SenderQueue(nonce)
        sender.spent += spent
        self._set_nonce(sender, max(sender.nonce, nonce + 1))

    def _include(self, transaction: Transaction) -> None:
        """Removes a transaction that a canonical block includes."""
        # the pool does not track a deposit's nonce; `settle` brings the sender's new nonce
        if transaction.type == DEPOSIT_TX:
            assert transaction.sender is not None
            self._changed.add(transaction.sender)
            return
        confirmed = self._confirmed.pop(transaction.hash, None)
        if confirmed is None:
            confirmed = self._by_hash.get(transaction.hash)
            assert transaction.sender is not None
            self._use_nonce(transaction.sender, transaction.nonce, authorities_of(transaction))
        if confirmed is not None and confirmed.sidecar is not None:
            self._sidecars[transaction.hash] = confirmed
            while len(self._sidecars) > self.limits.sidecars:
                del self._sidecars[next(iter(self._sidecars))]

    def _set_nonce(self, sender: SenderQueue, nonce: int) -> None:
        """Removes the transactions below ``nonce`` and updates the executable ones."""
        waiting = sender.by_nonce
        if nonce < sender.nonce:
            self._demote(sender, sender.nonce)
            sender.nonce = sender.frontier = nonce
        elif nonce > sender.nonce:
            if nonce == sender.nonce + 1:  # the usual case
                used_nonces = [sender.nonce]
            else:
                few = nonce - sender.nonce <= len(waiting)
                used_nonces = (
                    [*range(sender.nonce, nonce)] if few else [n for n in waiting if n < nonce]
                )
            for used in used_nonces:
                if used in waiting:
                    self._take_out(sender, waiting[used])
            sender.nonce, sender.frontier = nonce, max(sender.frontier, nonce)
            sender.is_stale = True
            head = waiting.get(nonce)
            if head is not None and head.subpool is EXECUTABLE:
                self._ordered.push(head)
        self._promote(sender)

    def _renumber(self, address: bytes) -> None:
        self._unfunded.discard(address)
        sender = self._queues.get(address)
        if sender is None:
            return
        sender.spent = 0
        nonce = self._accounts.nonce(address)
        if nonce != sender.nonce:
            self._set_nonce(sender, nonce)
        if sender.by_nonce:
            self._demote_unfunded(sender, self._accounts.balance(address))
            self._promote(sender)
        else:
            del self._queues[address]

    def _reenter(self, transactions: Iterable[Transaction]) -> None:
        """Adds transactions again if they are still valid."""
        for transaction in transactions:
            kept = self._sidecars.pop(transaction.hash, None)
            try:
                self.add(transaction, None if kept is None else kept.sidecar)
            except InvalidTransaction:
                continue  # nonce or balance do not fit on the new branch


def _refuse_account(sender: SenderQueue) -> None:
    refuse("account_limit", f"account limit exceeded: pooled {len(sender.by_nonce)} txs")
