"""Submits transactions: checks them, adds them to the pool, writes them to disk, announces them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.core.execution.block.fees import (
    blob_base_fee,
    next_base_fee,
    next_excess_blob_gas,
)
from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction, restore
from fastevm.core.execution.transaction.transaction_fields import DEPOSIT_TX
from fastevm.core.execution.transaction.unsigned_sender import impersonated, with_named_sender
from fastevm.core.execution.types import Header
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import ForkError, InvalidTransaction, TransactionDecodeError
from fastevm.node.dev_accounts import ETHER
from fastevm.node.development import NoDevelopment
from fastevm.node.pool.admission import MAX_BYTES, MIN_TIP, check_pooled
from fastevm.node.pool.eviction import NextFees
from fastevm.node.pool.kzg import TrustedSetup
from fastevm.node.pool.pool import TransactionPool
from fastevm.node.pool.predecode import PredecodedTransactions
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.deposits import Deposit, DepositRefused
from fastevm.node.storage import NoStorage

DEFAULT_FEE_CAP = ETHER
LOW_FEE = "max fee per gas less than block base fee"
DEPOSIT_PREFIX = bytes([DEPOSIT_TX])


def refuse_gap(nonce: int, expected: int) -> None:
    """Raises InvalidTransaction if a transaction's nonce is not the next nonce of its sender."""
    if nonce > expected:
        text = f"nonce gap: next nonce {expected}, tx nonce {nonce}"
        raise InvalidTransaction("nonce_gap", text, have=nonce, want=expected)


log = logging.getLogger(__name__)


class Submission:
    """Adds transactions to the pool of a node.

    ``min_tip``: wei per gas that a transaction must offer above the base fee. ``max_bytes``: size
    limit of a transaction without blobs. ``fee_cap``: the highest fee in wei that a transaction may
    offer for its gas; 0: no limit. ``allows_unprotected``: accept signatures without chain id, see
    EIP-155. ``refuses_low_fees``: refuse a fee cap below the next base fee, as anvil does;
    otherwise the transaction waits in the pool, as in geth.
    """

    min_tip = MIN_TIP
    refuses_low_fees = False
    max_bytes = MAX_BYTES

    def __init__(
        self,
        chain: Chain,
        pool: TransactionPool,
        producer: BlockProducer,
        *,
        storage: NoStorage,
        development: NoDevelopment,
        fee_cap: int = DEFAULT_FEE_CAP,
        allows_unprotected: bool = False,
        trusted_setup: TrustedSetup | None = None,
    ) -> None:
        self.chain, self.pool, self.producer = chain, pool, producer
        self.storage, self.development = storage, development
        self.fee_cap, self.allows_unprotected = fee_cap, allows_unprotected
        self.trusted_setup = trusted_setup
        self._predecoded = PredecodedTransactions()
        self._rules: tuple[Header, ForkSchedule] | None = None  # cache of _next_rules, for one head
        self._fees: tuple[Header, NextFees] | None = None  # cache of _next_fees, for one head
        self._listeners: list[Callable[[Transaction], None]] = []

    @property
    def signed_chain_id(self) -> int | None:
        """The chain id in the signature of a legacy transaction, or None before EIP-155."""
        head = self.chain.head.header
        rules = self.chain.schedule_for_child(head, head.timestamp + 1).parameters
        return self.chain.config.chain_id if rules["has_chain_id_in_signature"] else None

    def on_transaction(self, listener: Callable[[Transaction], None]) -> None:
        """Calls ``listener(transaction)`` on any thread whenever a transaction enters the pool."""
        self._listeners.append(listener)

    def announce(self, transaction: Transaction) -> None:
        """Notifies the listeners of a transaction that entered the pool."""
        for listener in self._listeners:
            listener(transaction)

    def predecode(self, raws: Sequence[bytes]) -> None:
        """Decodes transactions that will be submitted soon, because decoding many together is
        faster.
        """
        self._predecoded.predecode(raws)

    def submit(self, raw: bytes, *, may_queue: bool = True) -> bytes:
        """Checks a signed transaction and adds it to the pool. Returns its 32-byte hash.

        Raises TransactionDecodeError for bytes that are no transaction, and InvalidTransaction if
        no block could include the transaction or the pool refuses it. Nothing changes in these
        cases. Without ``may_queue``, a transaction behind a nonce gap is refused with the code
        ``nonce_gap``; ``want`` of the error is the next nonce.
        """
        transaction, sidecar = self._predecoded.take(raw)
        self._add(transaction, sidecar, raw, may_queue=may_queue)
        return self._submitted(transaction)

    def submit_signed(self, raw: bytes, sender: bytes) -> bytes:
        """Submits a transaction that this process signed with the key of ``sender`` (20 bytes)."""
        transaction = restore(raw, sender)
        self._add(transaction, None, raw)
        return self._submitted(transaction)

    def submit_impersonated(self, sender: bytes, fields: Mapping[str, Any]) -> bytes:
        """Submits an unsigned transaction of ``sender`` (20 bytes). Returns its hash.

        ``fields``: see `Transaction.build`.
        """
        transaction = impersonated(sender, fields, chain_id=self.signed_chain_id)
        self._add(transaction, None, transaction.raw)
        return self._submitted(transaction)

    def deposit(self, wanted: Deposit) -> bytes:
        """Adds a deposit from the simulated L1 to the next block. Returns its hash.

        Raises DepositRefused (a ValueError) for a deposit that L1 would reject, and on a node that
        builds no blocks of an OP Stack chain. Raises InvalidTransaction if the data directory
        cannot be written.
        """
        source = self.producer.source
        transaction = source.deposit(wanted)
        # so that no block includes the deposit before it is written to disk
        with self.producer.lock:
            source.add(transaction)
            try:
                self._record(transaction.raw, transaction)
            except InvalidTransaction:
                source.drop(transaction.hash)
                raise
        if self.development.mines_at_once:
            self.producer.mine()
        return transaction.hash

    def admit(self, raw: bytes) -> Transaction:
        """Decodes, checks and pools a signed transaction. Neither writes it nor announces it."""
        transaction, sidecar = self._predecoded.take(raw)
        self._add(transaction, sidecar)
        return transaction

    def readmit(self, raw: bytes) -> None:
        """Adds a transaction that was pooled when the last process ended, if it is still valid."""
        if raw[:1] == DEPOSIT_PREFIX:
            deposit = Transaction.decode(raw)
            if self.chain.locate(deposit.hash) is None:
                with contextlib.suppress(DepositRefused):
                    self.producer.source.add(deposit)
            return
        with contextlib.suppress(InvalidTransaction, TransactionDecodeError):
            transaction, sidecar = self._predecoded.take(raw)
            self._add(with_named_sender(transaction), sidecar)

    def is_waiting(self, tx_hash: bytes) -> bool:
        """Returns whether a transaction or deposit waits because no block contains it yet."""
        return self.producer.source.is_waiting(tx_hash) or self.pool.find(tx_hash) is not None

    # --- inside -----------------------------------------------------------------------------------

    def _submitted(self, transaction: Transaction) -> bytes:
        """Announces a transaction that has entered the pool, and triggers mining if the node
        automines.
        """
        self.storage.tidy_pool()
        self.announce(transaction)
        self._fetch_state(transaction)
        self.development.mine_submitted()
        return transaction.hash

    def _record(self, raw: bytes, transaction: Transaction) -> None:
        """Writes a transaction. Raises InvalidTransaction if it cannot be written."""
        try:
            self.storage.record(transaction.hash, raw)
        except OSError as error:
            log.error("a transaction could not be written: %s", error)
            text = "the transaction could not be written to the data directory"
            # the error text without the path
            reason = (error.strerror or "not all bytes were written").lower()
            raise InvalidTransaction("storage", f"{text}: {reason}") from error

    def _fetch_state(self, transaction: Transaction) -> None:
        """Fetches the state that a transaction reads on a fork, so that no block waits for it."""
        fetcher = self.producer.missing_state
        if not self.development.mines_at_once:
            fetcher.begin(transaction)
            return
        with contextlib.suppress(ForkError):  # reported when the block is built
            fetcher.fetch(transaction)

    def _add(
        self,
        transaction: Transaction,
        sidecar: BlobSidecar | None,
        raw: bytes | None = None,
        *,
        may_queue: bool = True,
    ) -> None:
        """Checks a transaction and adds it to the pool. Writes ``raw`` to disk before that."""
        parent, schedule = self._next_rules()
        settings = self.producer.settings
        if self.pool.find(transaction.hash) is not None:
            raise InvalidTransaction("already_known", "already known")
        if transaction.max_fee_per_gas < settings.min_gas_price:
            least = settings.min_gas_price
            raise InvalidTransaction("underpriced", f"transaction underpriced: below {least} wei")
        sidecar = check_pooled(
            transaction,
            sidecar,
            schedule,
            chain_id=self.chain.config.chain_id,
            gas_limit=settings.gas_limit or parent.gas_limit,
            fee_cap=self.fee_cap,
            allows_unprotected=self.allows_unprotected,
            min_tip=self.min_tip,
            max_bytes=self.max_bytes,
            setup=self.trusted_setup,
        )
        fees = self.pool.next_fees = self._next_fees(parent, schedule)
        if self.refuses_low_fees and transaction.max_fee_per_gas < fees.base_fee:
            text = f"{LOW_FEE}: {transaction.max_fee_per_gas} < {fees.base_fee}"
            raise InvalidTransaction("fee_cap_too_low", text)
        self.producer.missing_state.load_sender(transaction)
        if not may_queue and transaction.sender is not None:
            refuse_gap(transaction.nonce, self.pool.next_nonce(transaction.sender))
        record = None if raw is None else partial(self._record, raw, transaction)
        self.pool.add(transaction, sidecar, record)

    def _next_fees(self, parent: Header, schedule: ForkSchedule) -> NextFees:
        """Returns the fees of the next block. A developer may have set its base fee."""
        known = self._fees
        if known is None or known[0] is not parent:
            rules, base_fee, blob_fee = schedule.parameters, 0, 0
            if rules["has_base_fee"]:
                base_fee = next_base_fee(parent, schedule)
            if rules["accepts_blobs"]:
                blob_fee = blob_base_fee(next_excess_blob_gas(parent, schedule), schedule)
            known = self._fees = parent, NextFees(base_fee, blob_fee)
        decided = self.producer.settings.base_fee_after(parent.hash)
        return known[1] if decided is None else NextFees(decided, known[1].blob_base_fee)

    def _next_rules(self) -> tuple[Header, ForkSchedule]:
        """Returns the head and the rules of its child."""
        parent, cached = self.chain.head.header, self._rules
        if cached is None or cached[0] is not parent:
            cached = parent, self.chain.schedule_for_child(parent, parent.timestamp + 1)
            self._rules = cached
        return cached
