"""The two dialects of the node and the one table of their differences: nothing else branches.

The codes and messages of errors differ too: they are the two columns of `errors`.
"""

from typing import Final

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.core.primitives.suggestion import nearest

GETH_BLOCK_SPACING: Final = 12  # seconds between simulated blocks


class Dialect(Struct, frozen=True, kw_only=True):
    """How one listener speaks.

    ``block_parameter_required``: the methods of the interface document refuse a missing block.
    ``block_hash_excludes_range``: a log filter with blockHash and a range is an error, else the
    range is ignored. ``call_needs_target``: eth_call refuses a call object without ``to``.
    ``estimates_on_pending``: a gas estimate or access list without a block is made on ``pending``,
    where the transaction will run and where what was just pre-confirmed is; else on ``latest``.
    ``receipts_of_slices``: eth_getTransactionReceipt returns receipts of pre-confirmed
    transactions too, with a block hash of zeros and the member ``preconfirmed``. A transaction
    count at ``latest`` then includes them, so that clients which wait for a receipt and then ask
    for the next nonce do not repeat one. Otherwise only canonical transactions have receipts, so
    that ``latest`` includes their effects, and a pre-confirmed transaction looks like a pooled one.
    ``pending_is_unsealed``: the pending block's hash, nonce and miner are null; else the hash is 32
    zero bytes and the others are those of its header so far.
    ``pool_names_checksummed``: the senders in the pool's content are written in capitals, too.
    ``newer_fees_count``: of a gas price and EIP-1559 fees in one call object the latter count (a
    transaction takes the price), and a tip without a cap is none; else both are refused.
    ``simulated_block_spacing``: seconds, None for the chain's own block time.
    ``refuses_unknown_overrides``: an unknown member of an override is an error, else it is ignored.
    ``free_calls_see_base_fee``: BASEFEE in a call that offers no price (eth_call, estimates, access
    lists, traces of calls) reads the base fee of the block, else 0.
    ``simulate_zero_state_root``: simulated headers have 32 zero bytes in place of the root.
    ``simulate_error_as_text``: a failed call's ``error`` is a string and ``returnData`` holds the
    revert bytes; else ``error`` is an object and ``returnData`` is empty.
    ``takes_loose_quantities``: quantities may be JSON numbers or decimal digits, too.
    ``unknown_subscription_is_error``: eth_unsubscribe of an id that nobody has; else it is false.
    ``errors_as_anvil``: errors have the code and words of anvil, where it has its own.
    ``receipts_tell_of_block``: receipts tell the blob fee and the time of their block.
    ``prices_of_next_block``: eth_gasPrice has the base fee of the next block, else of the newest.
    ``unknown_raw_is_null``: the bytes of an unknown transaction are null, else ``0x``.
    ``block_zero_has_empty_trace``: debug_traceBlock* of block 0 is an empty list, which indexers
    that begin there count on; else an error.
    ``logs_end_at_head``: a range of logs that ends above the head ends at the head, else it is an
    error.
    ``filters_tell_of_past``: the first poll of a filter with ``fromBlock`` returns the logs of the
    blocks that were there before it, too.
    ``first_account_sends``: eth_sendTransaction without a sender is of the first account.
    ``failing_is_sent``: eth_sendTransaction without gas sends what fails, else it is refused.
    ``failed_send_is_error``: a send whose transaction fails in its block is an error with the hash
    and the return data, and calls that halt have return data, as on Hardhat's network.
    ``transfers_cost_the_same``: an estimate of ether without code or data is 21,000, whoever sends.
    """

    name: str
    block_parameter_required: bool
    block_hash_excludes_range: bool
    estimates_on_pending: bool
    receipts_of_slices: bool
    pending_is_unsealed: bool
    pool_names_checksummed: bool
    refuses_unknown_overrides: bool
    free_calls_see_base_fee: bool
    simulate_zero_state_root: bool
    simulate_error_as_text: bool
    unknown_subscription_is_error: bool
    block_zero_has_empty_trace: bool
    simulated_block_spacing: int | None
    takes_loose_quantities: bool = False
    newer_fees_count: bool = False
    errors_as_anvil: bool = False
    receipts_tell_of_block: bool = False
    prices_of_next_block: bool = False
    unknown_raw_is_null: bool = False
    logs_end_at_head: bool = False
    filters_tell_of_past: bool = False
    first_account_sends: bool = False
    failing_is_sent: bool = False
    failed_send_is_error: bool = False
    transfers_cost_the_same: bool = False

    def with_receipts(self, name: str) -> "Dialect":
        """Return the dialect with receipts ``preconfirmed`` or ``canonical``.

        ``preconfirmed``: a transaction has a receipt when it is in a slice; ``canonical``: when it
        is in a block. Raises ValueError for other names.
        """
        if name not in RECEIPTS:
            raise ValueError(f"unknown receipts {name!r}: expected one of {', '.join(RECEIPTS)}")
        return replace(self, receipts_of_slices=name == PRECONFIRMED)

    def of_development(self, *, failed_send_is_error: bool = False) -> "Dialect":
        """Return the dialect with what clients of anvil count on."""
        return replace(
            self,
            estimates_on_pending=True,
            pool_names_checksummed=False,
            free_calls_see_base_fee=True,
            takes_loose_quantities=True,
            newer_fees_count=True,
            errors_as_anvil=True,
            receipts_tell_of_block=True,
            prices_of_next_block=True,
            unknown_raw_is_null=True,
            block_zero_has_empty_trace=True,
            logs_end_at_head=True,
            filters_tell_of_past=True,
            first_account_sends=True,
            failing_is_sent=True,
            failed_send_is_error=failed_send_is_error,
            transfers_cost_the_same=True,
        )


CANONICAL: Final = "canonical"
PRECONFIRMED: Final = "preconfirmed"
RECEIPTS: Final = (CANONICAL, PRECONFIRMED)
DIALECTS: Final = {
    "preconf": Dialect(
        name="preconf",
        block_parameter_required=True,
        block_hash_excludes_range=False,
        estimates_on_pending=True,
        receipts_of_slices=False,
        pending_is_unsealed=False,
        pool_names_checksummed=True,
        refuses_unknown_overrides=True,
        free_calls_see_base_fee=True,
        simulate_zero_state_root=True,
        simulate_error_as_text=True,
        unknown_subscription_is_error=False,
        block_zero_has_empty_trace=True,
        simulated_block_spacing=None,
    ),
    "geth": Dialect(
        name="geth",
        block_parameter_required=False,
        block_hash_excludes_range=True,
        estimates_on_pending=False,
        receipts_of_slices=False,
        pending_is_unsealed=True,
        pool_names_checksummed=True,
        refuses_unknown_overrides=False,
        free_calls_see_base_fee=False,
        simulate_zero_state_root=False,
        simulate_error_as_text=False,
        unknown_subscription_is_error=True,
        block_zero_has_empty_trace=False,
        simulated_block_spacing=GETH_BLOCK_SPACING,
    ),
}
DEFAULT_DIALECT: Final = "preconf"
DEVELOPMENT_DIALECT: Final = "geth"


def dialect_named(name: str) -> Dialect:
    """Return the dialect called ``name``; ValueError with the nearest name if there is none."""
    found = DIALECTS.get(name)
    if found is not None:
        return found
    near = nearest(name, DIALECTS)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(DIALECTS))}"
    raise ValueError(f"unknown dialect {name!r}: {hint}")
