"""Fetches the remote state that pooled transactions and blocks under construction read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.core.execution.block.requests import QUEUES
from fastevm.core.execution.op_stack.predeploys import FEE_VAULTS
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState, resolved
from fastevm.core.state.source import Wanted
from fastevm.errors import FastevmError, ForkError
from fastevm.fork.arbitrum import block_slots
from fastevm.node.production.missing_state import MissingState
from fastevm.simulate import CallRequest, StateView, call

log = logging.getLogger(__name__)

THREADS: Final = 8  # transactions simulated concurrently to find the state that they read
SIMULATED_SECONDS: Final = 10.0  # most seconds per simulation
RING: Final = 8_191  # number of slots in the ring buffers for beacon roots and block hashes
FIRST_AHEAD: Final = 2  # seconds and blocks whose slots are fetched after the first block's
# each later fetch covers twice as many seconds and blocks, up to this number
MAX_AHEAD: Final = 64
# first slots of a request queue (EIP-7002, EIP-7251); the entries of the queue follow
QUEUE_SLOTS: Final = 4
QUEUE_HEAD: Final = 2  # the slot with the index of the oldest entry
QUEUE_TAIL: Final = 3  # the slot with the index after the newest entry


class TransactionState(MissingState):
    """The fetcher of a forked chain.

    ``newest`` returns the newest state, and the header of the block in which transactions run on
    that state.
    """

    is_remote = True

    def __init__(self, chain: Chain, newest: Callable[[], tuple[Layer, Header]]) -> None:
        self.chain, self.newest = chain, newest
        self._fetching: set[bytes] = set()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="fastevm-fork")
        self._seconds, self._numbers = range(0), range(0)
        self._ahead = FIRST_AHEAD
        self._later: Future[None] | None = None  # fetches what the first blocks read

    def close(self) -> None:
        """Prevents further fetches."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def is_busy(self) -> bool:
        """Whether the state of any transaction is being fetched."""
        return bool(self._fetching)

    # --- transactions -----------------------------------------------------------------------------

    def is_fetching(self, tx_hash: bytes) -> bool:
        """Returns whether the state of this transaction is being fetched."""
        return tx_hash in self._fetching

    def begin(self, transaction: Transaction) -> None:
        """Starts to fetch, in another thread, the state that the transaction reads.

        Returns immediately.
        """
        with self._lock:
            if transaction.hash in self._fetching:
                return
            self._fetching.add(transaction.hash)
        with suppress(RuntimeError):  # the fetcher is closed
            self._threads.submit(self._fetch_logged, transaction)

    def load_sender(self, transaction: Transaction) -> None:
        """Reads the sender's account. Raises StateNotKnown on an event loop."""
        if transaction.sender is not None:
            self.newest()[0].account(transaction.sender)

    def fetch(self, transaction: Transaction) -> None:
        """Fetches the state that the transaction reads, and waits for it. Raises ForkError."""
        layer, header = self.newest()
        request = CallRequest(
            sender=transaction.sender or bytes(20),
            to=transaction.to,
            gas=transaction.gas_limit,
            value=transaction.value,
            data=transaction.data,
            access_list=transaction.access_list or None,
            authorization_list=transaction.authorization_list or None,
        )
        try:
            call(self._view(layer, header), request, timeout=SIMULATED_SECONDS)
        except ForkError:
            raise
        # the transaction fails in the block as well, which reports the error
        except FastevmError as error:
            log.debug("transaction 0x%s: %s", transaction.hash.hex(), error)
        state = remote(layer)
        state.fetch(Wanted(accounts={header.coinbase}))
        # fetches values that a suspended execution recorded and that this simulation did not read
        state.fetch_missing()

    def _fetch_logged(self, transaction: Transaction) -> None:
        try:
            self.fetch(transaction)
        except FastevmError as error:
            log.warning("the state of transaction 0x%s: %s", transaction.hash.hex(), error)
        finally:
            self._fetching.discard(transaction.hash)

    def _view(self, layer: Layer, header: Header) -> StateView:
        chain = self.chain
        parent = chain.head
        return StateView(
            header=header,
            block_hash=header.hash,
            layer=layer,
            ancestors=chain.ancestors(parent.hash),
            schedule=chain.schedule_for_child(parent, header.timestamp),
            config=chain.config,
        )

    # --- blocks -----------------------------------------------------------------------------------

    def prepare_block(self, parent: Header, timestamp: int) -> None:
        """Fetches the state that a child of ``parent`` reads outside its transactions.

        ``timestamp``: the child's timestamp in seconds. The state that some later blocks read is
        fetched too, so that later calls need no request. The first call waits only for what the
        child reads at its start, because slow endpoints would delay the start of the node. Another
        thread fetches the rest.

        If the endpoint does not answer, the slots that the block overwrites are set to zero in the
        parent's state. No transaction of this or a later block can read their values. Raises
        ForkError.
        """
        schedule = self.chain.schedule_for_child(parent, timestamp)
        first = not self._numbers
        ahead = 1 if first else self._ahead
        known = Wanted()
        if timestamp not in self._seconds:
            self._seconds = range(timestamp, timestamp + ahead)
            self._add_roots(known, schedule, self._seconds)
        if parent.number not in self._numbers:
            self._numbers = range(parent.number, parent.number + ahead)
            self._add_hashes(known, schedule, parent, ahead)
            if first and schedule.parameters["has_fee_vaults"]:
                known.accounts.update(FEE_VAULTS)
        if not known:
            return
        layer = self.chain.layer_of(parent.hash)
        try:
            remote(layer).fetch(known)
        except ForkError as error:
            self._seconds = self._numbers = range(0)
            own = Wanted()
            self._add_roots(own, schedule, range(timestamp, timestamp + 1))
            history = schedule.system_contracts.get("HISTORY_STORAGE_ADDRESS")
            self._add_ring(own, history, range(parent.number, parent.number + 1), 1)
            self._zero(parent.hash, own, error)
            return
        if not first:
            self._ahead = min(2 * self._ahead, MAX_AHEAD)
            return
        later = Wanted()
        self._seconds = range(timestamp, timestamp + 1 + self._ahead)
        self._numbers = range(parent.number, parent.number + 1 + self._ahead)
        self._add_roots(later, schedule, self._seconds)
        self._add_hashes(later, schedule, parent, 1 + self._ahead)
        self._add_queues(later, schedule)
        with suppress(RuntimeError):  # the fetcher is closed
            self._later = self._threads.submit(self._fetch_later, remote(layer), later)

    def prepare_end(self, parent: Header, timestamp: int, run: Callable[[], object]) -> None:
        """Fetches the entries of the request queues that a child of ``parent`` takes.

        See `MissingState.prepare_end`. Raises ForkError.
        """
        if self._later is not None:
            with suppress(CancelledError):
                self._later.result()
            self._later = None
        schedule, layer = (
            self.chain.schedule_for_child(parent, timestamp),
            self.chain.layer_of(parent.hash),
        )
        wanted = Wanted()
        self._add_queues(wanted, schedule)
        if not wanted:
            return
        if any(
            layer.storage(contract, QUEUE_HEAD) != layer.storage(contract, QUEUE_TAIL)
            for contract in wanted.accounts
        ):
            resolved(layer, run)

    def _fetch_later(self, state: RemoteState, wanted: Wanted) -> None:
        """Fetches what the next blocks read.

        After a failure, the next block fetches like a first block.
        """
        try:
            state.fetch(wanted)
        except FastevmError as error:
            log.debug("slots of the next blocks: %s", error)
            self._seconds = self._numbers = range(0)

    def _zero(self, block_hash: bytes, overwritten: Wanted, error: ForkError) -> None:
        """Sets slots of ``overwritten`` to zero if they cannot be fetched."""
        layer = self.chain.layer_of(block_hash)
        changed: dict[str, Any] = {}
        for contract, slot in overwritten.slots:
            try:
                layer.storage(contract, slot)
            except ForkError:
                storage = changed.setdefault(hex_bytes(contract), {"storage": {}})["storage"]
                storage[hex(slot)] = "0x0"
        if changed:
            log.warning("slots that the next block overwrites are taken as zero: %s", error)
            self.chain.amend(block_hash, changed)

    def _add_roots(self, wanted: Wanted, schedule: ForkSchedule, seconds: range) -> None:
        """Adds the slots of beacon roots that blocks with these timestamps write."""
        self._add_ring(wanted, schedule.system_contracts.get("BEACON_ROOTS_ADDRESS"), seconds, 2)

    def _add_hashes(
        self, wanted: Wanted, schedule: ForkSchedule, parent: Header, count: int
    ) -> None:
        """Adds the slots of block hashes that ``count`` blocks above ``parent`` write."""
        if schedule.parameters["arbos_version"]:
            slots = block_slots(parent, count)
            wanted.slots |= slots
            wanted.accounts.update(address for address, _ in slots)
        else:
            contract = schedule.system_contracts.get("HISTORY_STORAGE_ADDRESS")
            self._add_ring(wanted, contract, range(parent.number, parent.number + count), 1)

    def _add_queues(self, wanted: Wanted, schedule: ForkSchedule) -> None:
        """Adds the slots of the request queues that every block reads at its end."""
        contracts = schedule.system_contracts
        if schedule.parameters["collects_requests"]:
            for name in (name for _, name in QUEUES if name in contracts):
                wanted.accounts.add(contracts[name])
                wanted.slots |= {(contracts[name], slot) for slot in range(QUEUE_SLOTS)}

    def _add_ring(
        self, wanted: Wanted, contract: bytes | None, positions: range, rings: int
    ) -> None:
        if contract is not None:
            wanted.accounts.add(contract)
            wanted.slots |= {
                (contract, position % RING + ring * RING)
                for position in positions
                for ring in range(rings)
            }


def remote(layer: Layer) -> RemoteState:
    """Returns the remote state below a layer."""
    state = layer.remote_state
    assert state is not None
    return state
