"""Fetches the remote state that pooled transactions and blocks under construction read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.core.execution.block.requests import QUEUES
from fastevm.core.execution.op_stack.predeploys import FEE_VAULTS
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Header
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Wanted
from fastevm.errors import FastevmError, ForkError
from fastevm.fork.arbitrum import block_slots
from fastevm.node.production.missing_state import MissingState
from fastevm.simulate import CallRequest, StateView, call

log = logging.getLogger(__name__)

THREADS: Final = 8  # transactions simulated concurrently to find the state that they read
SIMULATED_SECONDS: Final = 10.0  # most seconds per simulation
RING: Final = 8_191  # number of slots in the ring buffers for beacon roots and block hashes
FIRST_AHEAD: Final = 2  # seconds and blocks whose slots are fetched with the first block
# most seconds and blocks of a later fetch: each fetch doubles them, so few requests are needed
MAX_AHEAD: Final = 64
# first slots of a request queue; its entries are fetched if a block reads them
QUEUE_SLOTS: Final = 4


class TransactionState(MissingState):
    """The fetcher of a forked chain.

    ``newest`` returns the newest state, and the header of the block that runs transactions on it.
    """

    is_remote = True

    def __init__(self, chain: Chain, newest: Callable[[], tuple[Layer, Header]]) -> None:
        self.chain, self.newest = chain, newest
        self._fetching: set[bytes] = set()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="fastevm-fork")
        self._seconds, self._numbers = range(0), range(0)
        self._ahead = FIRST_AHEAD

    def close(self) -> None:
        """Starts no more fetches."""
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
        """Fetches the state that the transaction reads, in another thread. Returns immediately."""
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
        except FastevmError as error:  # it fails in the block as well, which reports it
            log.debug("transaction 0x%s: %s", transaction.hash.hex(), error)
        state = remote(layer)
        state.fetch(Wanted(accounts={header.coinbase}))
        state.fetch_missing()  # fetches what a suspended run recorded and this call did not read

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
        """Fetches what a child of ``parent`` reads outside its transactions.

        ``timestamp``: the child's, in seconds. Also fetches it for some following blocks, so that
        later calls need no request. The first call fetches few, because a slow or limited endpoint
        must answer before the node can start. If it does not answer, the slots that the block
        overwrites are set to zero in the parent's state: no transaction of this or a later block
        can read their values. Raises ForkError.
        """
        schedule = self.chain.schedule_for_child(parent, timestamp)
        known, contracts = Wanted(), schedule.system_contracts
        if timestamp not in self._seconds:
            self._seconds = range(timestamp, timestamp + self._ahead)
            self._add_ring(known, contracts.get("BEACON_ROOTS_ADDRESS"), self._seconds, 2)
        if parent.number not in self._numbers:
            first = not self._numbers
            self._numbers = range(parent.number, parent.number + self._ahead)
            if schedule.parameters["arbos_version"]:
                known.slots |= block_slots(parent, self._ahead)
                known.accounts.update(address for address, _ in known.slots)
            else:
                self._add_ring(known, contracts.get("HISTORY_STORAGE_ADDRESS"), self._numbers, 1)
            if first and schedule.parameters["has_fee_vaults"]:
                known.accounts.update(FEE_VAULTS)
            if first and schedule.parameters["collects_requests"]:
                for name in (name for _, name in QUEUES if name in contracts):
                    known.accounts.add(contracts[name])
                    known.slots |= {(contracts[name], slot) for slot in range(QUEUE_SLOTS)}
        if not known:
            return
        self._ahead = min(2 * self._ahead, MAX_AHEAD)
        try:
            remote(self.chain.layer_of(parent.hash)).fetch(known)
        except ForkError as error:
            self._seconds = self._numbers = range(0)
            own = Wanted()
            self._add_ring(
                own, contracts.get("BEACON_ROOTS_ADDRESS"), range(timestamp, timestamp + 1), 2
            )
            number = range(parent.number, parent.number + 1)
            self._add_ring(own, contracts.get("HISTORY_STORAGE_ADDRESS"), number, 1)
            self._zero(parent.hash, own, error)

    def _zero(self, block_hash: bytes, overwritten: Wanted, error: ForkError) -> None:
        """Sets those slots of ``overwritten`` to zero that cannot be fetched."""
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
