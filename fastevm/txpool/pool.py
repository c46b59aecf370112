"""The transaction pool: what waits to be included, by sender and nonce.

A transaction enters when it could pay and its nonce is not used up. Those that follow the account's
nonce without a gap are executable, the rest is queued. The builder asks for the best executable one
again and again and confirms or refuses it; a confirmed one stays known until its block is
canonical, and comes back if that never happens.
"""

from collections.abc import Iterable, Mapping
from threading import RLock

from fastevm.errors import InvalidTransaction
from fastevm.execution.sidecar import BlobSidecar
from fastevm.execution.transaction import Transaction
from fastevm.txpool.pooled import (
    BLOB_TX,
    EXECUTABLE,
    LEFT,
    QUEUED,
    Accounts,
    Pooled,
    PoolLimits,
    Sender,
    authorities_of,
    check_funds,
    check_replacement,
    refuse,
)
from fastevm.txpool.ranking import Cheapest, Offers

Content = Mapping[bytes, Mapping[int, Transaction]]


class TransactionPool:
    """Waiting transactions; every method may be called from any thread.

    ``accounts`` is the newest state, pre-confirmed transactions included; see ``settle``.
    """

    def __init__(self, accounts: Accounts, limits: PoolLimits | None = None) -> None:
        self.limits = limits or PoolLimits()
        self._lock = RLock()
        self._accounts = accounts
        self._by_hash: dict[bytes, Pooled] = {}
        self._senders: dict[bytes, Sender] = {}
        self._confirmed: dict[bytes, Pooled] = {}
        self._kept_blobs: dict[bytes, Pooled] = {}
        self._authorities: dict[bytes, int] = {}
        self._stale: set[bytes] = set()
        self._arrivals = 0
        self._blob_count = 0
        self._offers = Offers()
        self._executable, self._queued = Cheapest(EXECUTABLE), Cheapest(QUEUED)

    def __len__(self) -> int:
        return len(self._by_hash)

    @property
    def executable_count(self) -> int:
        """How many transactions could be included now."""
        return self._executable.count

    @property
    def queued_count(self) -> int:
        """How many wait behind a gap."""
        return self._queued.count

    @property
    def confirmed_count(self) -> int:
        """How many are pre-confirmed and not canonical yet."""
        return len(self._confirmed)

    # --- for those who submit and ask -------------------------------------------------------------

    def add(self, transaction: Transaction, sidecar: BlobSidecar | None = None) -> None:
        """Take a transaction whose stateless rules were checked.

        Raises InvalidTransaction (``already_known``, ``nonce_too_low``, ``insufficient_funds``,
        ``replacement_underpriced``, ``underpriced`` ...); nothing has changed then.
        """
        address = transaction.sender
        if address is None:
            refuse("invalid_sender", "invalid sender: invalid transaction v, r, s values")
        with self._lock:
            if transaction.hash in self._by_hash or transaction.hash in self._confirmed:
                refuse("already_known", "already known")
            self._arrivals += 1
            new = Pooled(transaction, address, self._arrivals, sidecar)
            sender = self._senders.get(address) or Sender(self._accounts.nonce(address))
            old = sender.waiting.get(new.nonce)
            self._check(sender, new, old)
            if old is not None:
                self._take_out(sender, old)
            self._senders.setdefault(address, sender)
            self._insert(sender, new)

    def find(self, tx_hash: bytes) -> Transaction | None:
        """The transaction with this hash: waiting, or pre-confirmed and not yet canonical."""
        pooled = self._by_hash.get(tx_hash) or self._confirmed.get(tx_hash)
        return None if pooled is None else pooled.transaction

    def sidecar(self, tx_hash: bytes) -> BlobSidecar | None:
        """The blobs of a waiting transaction, or of one included lately."""
        for place in (self._by_hash, self._confirmed, self._kept_blobs):
            if tx_hash in place:
                return place[tx_hash].sidecar
        return None

    def next_nonce(self, address: bytes) -> int:
        """The nonce after all that is included and all that waits without a gap."""
        with self._lock:
            sender = self._senders.get(address)
            return self._accounts.nonce(address) if sender is None else sender.frontier

    def executable(self) -> Content:
        """By sender and nonce: what follows the account's nonce without a gap."""
        return self._content(EXECUTABLE)

    def queued(self) -> Content:
        """By sender and nonce: what waits behind a gap."""
        return self._content(QUEUED)

    def hashes(self) -> set[bytes]:
        """All that wait, and all that are pre-confirmed and not yet canonical."""
        with self._lock:
            return {*self._by_hash, *self._confirmed}

    def drop(self, tx_hash: bytes) -> bool:
        """Forget a waiting transaction; whether it was here."""
        with self._lock:
            pooled = self._by_hash.get(tx_hash)
            if pooled is not None:
                self._forget(pooled)
            return pooled is not None

    # --- for the builder --------------------------------------------------------------------------

    def open_slice(self, base_fee: int) -> None:
        """Offer everything that is executable at this base fee (wei per gas)."""
        with self._lock:
            stale = len(self._offers) > 2 * len(self._senders) + 64
            if base_fee == self._offers.base_fee and not stale:
                self._offers.restore()
                return
            heads = (sender.waiting.get(sender.nonce) for sender in self._senders.values())
            self._offers.rebuild(base_fee, [head for head in heads if head is not None])

    def best(self) -> Pooled | None:
        """The next to include: highest effective tip, then first come. Confirm or refuse it."""
        with self._lock:
            while (pooled := self._offers.pop()) is not None:
                if pooled.side == EXECUTABLE and self._senders[pooled.sender].nonce == pooled.nonce:
                    return pooled
        return None

    def put_aside(self, pooled: Pooled) -> None:
        """It does not fit now: its sender waits until the next slice opens."""
        with self._lock:
            self._offers.put_aside(pooled)

    def confirm(self, pooled: Pooled) -> None:
        """It is part of the block under construction: the sender's next one is offered."""
        with self._lock:
            self._confirmed[pooled.hash] = pooled
            self._passed(pooled.sender, pooled.nonce, pooled.authorities)

    def settle(self, accounts: Accounts) -> None:
        """A new state was published that holds all confirmed transactions."""
        with self._lock:
            self._accounts = accounts
            stale, self._stale = self._stale, set()
            for address in stale:
                self._renumber(address)

    def sealed(self, transactions: Iterable[Transaction]) -> None:
        """The block that was built here is canonical."""
        with self._lock:
            for transaction in transactions:
                self._include(transaction)

    def reset(
        self,
        accounts: Accounts,
        included: Iterable[Transaction] = (),
        returned: Iterable[Transaction] = (),
    ) -> None:
        """The canonical chain moved: blocks with ``included`` joined, with ``returned`` left it.

        ``accounts`` is the state to build on from now on. What was confirmed for a block that is
        given up waits again, as far as it is still valid.
        """
        with self._lock:
            here = set()
            for transaction in included:
                here.add(transaction.hash)
                self._include(transaction)
            given_up, self._confirmed = self._confirmed, {}
            for key, pooled in given_up.items():
                if pooled.sidecar is not None:
                    self._kept_blobs[key] = pooled
            back = [*returned, *(pooled.transaction for pooled in given_up.values())]
            self._stale.update(one.sender for one in back if one.sender is not None)
            self.settle(accounts)
            self._reenter(one for one in back if one.hash not in here)

    # --- inside: rules ----------------------------------------------------------------------------

    def _check(self, sender: Sender, new: Pooled, old: Pooled | None) -> None:
        has_blobs = new.transaction.type == BLOB_TX
        if new.nonce < sender.nonce:
            text = f"nonce too low: next nonce {sender.nonce}, tx nonce {new.nonce}"
            refuse("nonce_too_low", text)
        if has_blobs and new.nonce > sender.frontier:
            text = f"nonce too high: tx nonce {new.nonce}, gapped nonce {sender.frontier}"
            refuse("nonce_too_high", text)
        check_funds(sender, self._accounts.balance(new.sender), new, old)
        self._check_delegation(sender, new, old)
        if sender.waiting and sender.has_blobs != has_blobs:
            refuse("address_reserved", "address already reserved")
        if old is not None:
            check_replacement(old, new)
        else:
            self._check_room(sender, new)

    def _check_delegation(self, sender: Sender, new: Pooled, old: Pooled | None) -> None:
        """One transaction in flight where the account's code may change its nonce (EIP-7702)."""
        if new.sender in self._authorities or self._accounts.code(new.sender):
            if not sender.executable_count and new.nonce != sender.nonce:
                refuse("delegated_gap", "gapped-nonce tx from delegated accounts")
            if sender.executable_count and old is None:
                refuse(
                    "delegated_in_flight",
                    "in-flight transaction limit reached for delegated accounts",
                )
        for authority in new.authorities:
            known = self._senders.get(authority)
            if known is not None and (len(known.waiting) > 1 or known.has_blobs):
                refuse("authority_reserved", "authority already reserved")

    def _check_room(self, sender: Sender, new: Pooled) -> None:
        """Below the limits, or who pays least makes room for one that pays more."""
        limits, fits = self.limits, new.nonce <= sender.frontier
        if new.transaction.type == BLOB_TX:
            if len(sender.waiting) >= limits.blob_transactions_per_sender:
                _refuse_account(sender)
            if self._blob_count >= limits.blob_transactions:
                refuse("pool_full", "txpool is full")
        part, limit = self._executable, limits.executable
        own, own_limit = sender.executable_count, limits.executable_per_sender
        if not fits:
            part, limit = self._queued, limits.queued
            own, own_limit = sender.queued_count, limits.queued_per_sender
        if own >= own_limit:
            _refuse_account(sender)
        if part.count < limit:
            return
        lowest = part.lowest()
        if lowest is None or (new.tip, new.cap) <= (lowest.tip, lowest.cap):
            refuse("underpriced", "transaction underpriced")
        if lowest.sender == new.sender:
            # Its own last one would have to go, and leave this one behind a gap.
            refuse("pool_full", "txpool is full")
        self._evict(lowest)

    def _evict(self, lowest: Pooled) -> None:
        # Only a sender's last transaction can go without leaving a gap behind it.
        sender = self._senders[lowest.sender]
        last = max(sender.waiting) if lowest.side == QUEUED else sender.frontier - 1
        self._forget(sender.waiting[last])

    # --- inside: moving ---------------------------------------------------------------------------

    def _insert(self, sender: Sender, new: Pooled) -> None:
        sender.waiting[new.nonce] = new
        self._by_hash[new.hash] = new
        self._blob_count += new.transaction.type == BLOB_TX
        for authority in new.authorities:
            self._authorities[authority] = self._authorities.get(authority, 0) + 1
        if new.nonce < sender.frontier:
            self._move(sender, new, EXECUTABLE)
            if new.nonce == sender.nonce:
                self._offers.push(new)
            return
        if new.nonce > sender.frontier:  # else it is the next one, and nothing kept it waiting
            self._move(sender, new, QUEUED)
        self._promote(sender)
        while self._executable.count > self.limits.executable:
            lowest = self._executable.lowest()
            assert lowest is not None
            self._evict(lowest)

    def _promote(self, sender: Sender) -> None:
        """Make executable what follows the frontier."""
        while (pooled := sender.waiting.get(sender.frontier)) is not None:
            self._move(sender, pooled, EXECUTABLE)
            if sender.frontier == sender.nonce:
                self._offers.push(pooled)
            sender.frontier += 1

    def _demote(self, sender: Sender, first: int) -> None:
        """Queue again what is executable from this nonce on."""
        for nonce in range(first, sender.frontier):
            pooled = sender.waiting.get(nonce)
            if pooled is not None:
                self._move(sender, pooled, QUEUED)
        sender.frontier = min(sender.frontier, first)

    def _move(self, sender: Sender, pooled: Pooled, side: int) -> None:
        if pooled.side == EXECUTABLE:
            sender.spent -= pooled.cost
            self._executable.leave(pooled, side)
        elif pooled.side == QUEUED:
            self._queued.leave(pooled, side)
        if side == EXECUTABLE:
            sender.spent += pooled.cost
            self._executable.enter(pooled)
        elif side == QUEUED:
            self._queued.enter(pooled)

    def _take_out(self, sender: Sender, pooled: Pooled) -> None:
        self._move(sender, pooled, LEFT)
        del sender.waiting[pooled.nonce]
        del self._by_hash[pooled.hash]
        self._blob_count -= pooled.transaction.type == BLOB_TX
        for authority in pooled.authorities:
            self._authorities[authority] -= 1
            if not self._authorities[authority]:
                del self._authorities[authority]

    def _forget(self, pooled: Pooled) -> None:
        sender, was_executable = self._senders[pooled.sender], pooled.side == EXECUTABLE
        self._take_out(sender, pooled)
        if was_executable:  # what follows it waits behind the gap now
            self._demote(sender, pooled.nonce)
        if not sender.waiting and pooled.sender not in self._stale:
            del self._senders[pooled.sender]

    def _passed(self, address: bytes, nonce: int, authorities: frozenset[bytes]) -> None:
        """A transaction took its nonce; the state that says so comes with ``settle``."""
        self._stale.add(address)
        self._stale |= authorities
        sender = self._senders.get(address)
        if sender is None:
            sender = self._senders[address] = Sender(nonce)
        self._set_nonce(sender, max(sender.nonce, nonce + 1))

    def _include(self, transaction: Transaction) -> None:
        """A canonical block holds it."""
        confirmed = self._confirmed.pop(transaction.hash, None)
        if confirmed is None:
            confirmed = self._by_hash.get(transaction.hash)
            assert transaction.sender is not None
            self._passed(transaction.sender, transaction.nonce, authorities_of(transaction))
        if confirmed is not None and confirmed.sidecar is not None:
            self._kept_blobs[transaction.hash] = confirmed
            while len(self._kept_blobs) > self.limits.sidecars:
                del self._kept_blobs[next(iter(self._kept_blobs))]

    def _set_nonce(self, sender: Sender, nonce: int) -> None:
        """Forget what is below ``nonce`` and see anew what is executable."""
        waiting = sender.waiting
        if nonce < sender.nonce:
            self._demote(sender, sender.nonce)
            sender.nonce = sender.frontier = nonce
        elif nonce > sender.nonce:
            if nonce == sender.nonce + 1:  # nearly always: the transaction that was included
                passed = [sender.nonce]
            else:
                few = nonce - sender.nonce <= len(waiting)
                passed = [*range(sender.nonce, nonce)] if few else [n for n in waiting if n < nonce]
            for used in passed:
                if used in waiting:
                    self._take_out(sender, waiting[used])
            sender.nonce, sender.frontier = nonce, max(sender.frontier, nonce)
            head = waiting.get(nonce)
            if head is not None and head.side == EXECUTABLE:
                self._offers.push(head)
        self._promote(sender)

    def _renumber(self, address: bytes) -> None:
        sender = self._senders.get(address)
        if sender is None:
            return
        nonce = self._accounts.nonce(address)
        if nonce != sender.nonce:
            self._set_nonce(sender, nonce)
        if not sender.waiting:
            del self._senders[address]

    def _reenter(self, transactions: Iterable[Transaction]) -> None:
        """Add those that are still valid, after the state they lost."""
        for transaction in transactions:
            kept = self._kept_blobs.pop(transaction.hash, None)
            try:
                self.add(transaction, None if kept is None else kept.sidecar)
            except InvalidTransaction:
                continue  # used up or unpayable on the new branch

    def _content(self, side: int) -> dict[bytes, dict[int, Transaction]]:
        with self._lock:
            content = {
                address: {
                    nonce: pooled.transaction
                    for nonce, pooled in sorted(sender.waiting.items())
                    if pooled.side == side
                }
                for address, sender in self._senders.items()
            }
        return {address: by_nonce for address, by_nonce in content.items() if by_nonce}


def _refuse_account(sender: Sender) -> None:
    refuse("account_limit", f"account limit exceeded: pooled {len(sender.waiting)} txs")
