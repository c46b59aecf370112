"""Decides by how much a transaction must raise its fees to replace one with the same nonce."""

from fastevm.node.pool.pooled_transaction import BLOB_TX, PooledTransaction, refuse

PRICE_BUMP_PERCENT = 10
BLOB_PRICE_BUMP_PERCENT = 100

MESSAGE = "replacement transaction underpriced"


def check_replacement(
    old: PooledTransaction, new: PooledTransaction, *, cap_alone: bool = False
) -> None:
    """Raises InvalidTransaction if ``new`` may not replace ``old``, which has the same nonce.

    Both fee caps must rise by 10 %, and all three caps of a blob transaction by 100 %. The required
    price is rounded down, as in go-ethereum. ``cap_alone``: any higher fee cap suffices, as in
    anvil.
    """
    if cap_alone:
        if new.caps.fee <= old.caps.fee:
            refuse("replacement_underpriced", MESSAGE)
        return
    if new.transaction.type == BLOB_TX:
        _check_blob_replacement(old, new)
        return
    for before, after in ((old.caps.fee, new.caps.fee), (old.caps.tip, new.caps.tip)):
        if after <= before or after < _bumped(before, PRICE_BUMP_PERCENT):
            refuse("replacement_underpriced", MESSAGE)


def _check_blob_replacement(old: PooledTransaction, new: PooledTransaction) -> None:
    bump = BLOB_PRICE_BUMP_PERCENT
    pairs = (
        ("gas fee cap", old.caps.fee, new.caps.fee),
        ("gas tip cap", old.caps.tip, new.caps.tip),
        (
            "blob gas fee cap",
            old.transaction.max_fee_per_blob_gas or 0,
            new.transaction.max_fee_per_blob_gas or 0,
        ),
    )
    for name, before, after in pairs:
        if after <= before:
            text = f"{MESSAGE}: new tx {name} {after} <= {before} queued"
            refuse("replacement_underpriced", text)
    for name, before, after in pairs:
        if after < _bumped(before, bump):
            text = f"{MESSAGE}: new tx {name} {after} < {before} queued + {bump}%"
            refuse("replacement_underpriced", f"{text} replacement penalty")


def _bumped(price: int, percent: int) -> int:
    return price * (100 + percent) // 100
