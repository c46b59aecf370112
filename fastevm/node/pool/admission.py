"""The admission rules of the pool: for one transaction, and for the funds of its sender."""

from collections.abc import Mapping
from typing import Any

from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.transaction_rules import check_transaction
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import InvalidTransaction
from fastevm.node.pool.blob_validation import checked_sidecar
from fastevm.node.pool.kzg import TrustedSetup
from fastevm.node.pool.pooled_transaction import (
    BLOB_TX,
    EXECUTABLE,
    PooledTransaction,
    SenderQueue,
    refuse,
)

ETHER = 10**18
MIN_TIP = 1  # wei
MIN_BLOB_FEE_CAP = 1  # wei
MAX_BYTES = 128 * 1024
MAX_BLOB_TX_BYTES = 1024 * 1024  # bytes of a blob transaction without its blobs

# Messages of go-ethereum's pool by code, if they differ from the messages of go-ethereum's block
# processor.
POOL_TEXTS = {
    "intrinsic_gas": "intrinsic gas too low: gas {have}, minimum needed {want}",
    "floor_gas": "insufficient gas for floor data gas cost: gas {have}, minimum needed {want}",
    "no_authorizations": "set code tx must have at least one authorization tuple",
    "nonce_max": "nonce has max value",
    "wrong_chain_id": "invalid sender: invalid chain id for signer: have {have} want {want}",
    "invalid_signature": "invalid sender: invalid transaction v, r, s values",
    "too_many_blobs": "transaction blob limit exceeded: blob count {have}, limit {want}",
}


def check_pooled(
    transaction: Transaction,
    sidecar: BlobSidecar | None,
    schedule: ForkSchedule,
    *,
    chain_id: int,
    gas_limit: int,
    fee_cap: int = 0,
    allows_unprotected: bool = False,
    min_tip: int = MIN_TIP,
    max_bytes: int = MAX_BYTES,
    setup: TrustedSetup | None = None,
) -> BlobSidecar | None:
    """Returns the sidecar to store, in the version that the rules require, or None without blobs.

    Raises InvalidTransaction if no block under ``schedule`` could include the transaction. The
    rules are checked in go-ethereum's order, so that both report the same error. ``gas_limit``: the
    gas limit of the head block. ``fee_cap``: the highest fee in wei that a transaction may offer
    for its gas; 0: no limit. ``allows_unprotected``: legacy transactions need no chain id
    (EIP-155). ``min_tip``: minimum tip in wei per gas. ``max_bytes``: maximum size without blobs.
    ``setup``: checks the proofs of blobs.
    """
    rules = schedule.parameters
    _check_fee_cap(transaction, fee_cap)
    if transaction.type == 0 and transaction.chain_id is None and not allows_unprotected:
        refuse("unprotected", "only replay-protected (EIP-155) transactions allowed over RPC")
    _check_type(transaction.type, rules)
    _check_sizes(transaction, rules, max_bytes)
    if transaction.gas_limit > gas_limit:
        refuse("exceeds_block_gas_limit", "exceeds block gas limit")
    if transaction.max_priority_fee_per_gas > transaction.max_fee_per_gas:
        text = "max priority fee per gas higher than max fee per gas"
        refuse("tip_above_fee_cap", text)
    _check_rules(transaction, schedule, chain_id)
    if transaction.max_priority_fee_per_gas < min_tip:
        tip = transaction.max_priority_fee_per_gas
        _refuse_price("tip_below_minimum", f"gas tip cap {tip}, minimum needed {min_tip}")
    if transaction.type != BLOB_TX:
        return sidecar
    _check_blob_fee(transaction)
    return checked_sidecar(transaction, sidecar, schedule, setup)


def _check_blob_fee(transaction: Transaction) -> None:
    cap, least = transaction.max_fee_per_blob_gas or 0, MIN_BLOB_FEE_CAP
    if cap < least:
        _refuse_price("blob_fee_below_minimum", f"blob fee cap {cap}, minimum needed {least}")


def _check_fee_cap(transaction: Transaction, fee_cap: int) -> None:
    fee = transaction.max_fee_per_gas * transaction.gas_limit
    if fee_cap and fee > fee_cap:
        refuse(
            "fee_above_cap",
            f"tx fee ({fee / ETHER:.2f} ether) exceeds the configured cap "
            f"({fee_cap / ETHER:.2f} ether)",
        )


def _check_type(number: int, rules: Mapping[str, Any]) -> None:
    if number > rules["max_tx_type"] or (number == BLOB_TX and not rules["accepts_blobs"]):
        refuse("type_not_supported", f"transaction type not supported: received type {number}")


def _check_sizes(transaction: Transaction, rules: Mapping[str, Any], max_bytes: int) -> None:
    limit = MAX_BLOB_TX_BYTES if transaction.type == BLOB_TX else max_bytes
    size = len(transaction.raw)
    if size > limit:
        refuse("oversized_data", f"oversized data: transaction size {size}, limit {limit}")
    initcode, limit = len(transaction.data), rules["max_initcode_size"]
    if transaction.to is None and limit and initcode > limit:
        refuse(
            "initcode_too_large", f"max initcode size exceeded: code size {initcode} limit {limit}"
        )
    gas = transaction.gas_limit
    cap = rules["tx_total_gas_cap" if rules["state_gas_version"] else "tx_gas_cap"]
    if cap and gas > cap:
        refuse("gas_limit_too_high", f"transaction gas limit too high (cap: {cap}, tx: {gas})")


def _check_rules(transaction: Transaction, schedule: ForkSchedule, chain_id: int) -> None:
    """Raises InvalidTransaction, with the message of go-ethereum's pool, if a rule is broken."""
    try:
        check_transaction(transaction, schedule, chain_id=chain_id)
    except InvalidTransaction as error:
        text = POOL_TEXTS.get(error.code)
        if text is None:
            raise
        message = text.format(have=error.have, want=error.want)
        raise InvalidTransaction(error.code, message, have=error.have, want=error.want) from None


def _refuse_price(code: str, details: str) -> None:
    refuse(code, f"transaction gas price below minimum: {details}")


def check_funds(
    queue: SenderQueue, balance: int, new: PooledTransaction, old: PooledTransaction | None
) -> None:
    """Raises InvalidTransaction if the balance does not cover the transaction.

    The balance must also cover all executable transactions of the sender together. ``old``: the
    transaction that ``new`` replaces.
    """
    text = "insufficient funds for gas * price + value: balance"
    if new.cost > balance:
        over = new.cost - balance
        refuse("insufficient_funds", f"{text} {balance}, tx cost {new.cost}, overshot {over}")
    queued, added = queue.cost + queue.spent, new.cost
    if old is not None and old.subpool is EXECUTABLE:
        added -= old.cost
    over = queued + added - balance
    if over > 0:
        kind, price = ("tx bumped", added) if old is not None else ("tx cost", new.cost)
        refuse(
            "insufficient_funds",
            f"{text} {balance}, queued cost {queued}, {kind} {price}, overshot {over}",
        )
