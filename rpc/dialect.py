"""The dialects ``preconf`` and ``geth``: the only table of their differences.

Error codes and messages differ too: `errors` has a table with a column for each dialect.
"""

from typing import Final

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.core.primitives.suggestion import nearest

GETH_BLOCK_SPACING: Final = 12  # seconds between simulated blocks


class Dialect(Struct, frozen=True, kw_only=True):
    """The dialect of one listener. Each text says what happens if the field is set.

    - ``block_parameter_required``: methods refuse a missing block parameter, as the Ethereum
      JSON-RPC specification requires.
    - ``block_hash_excludes_range``: a log filter with blockHash and a range is an error. Else the
      range is ignored.
    - ``call_needs_target``: eth_call refuses a call object without ``to``.
    - ``estimates_on_pending``: a gas estimate or access list without a block uses ``pending``, the
      state in which the transaction will run. Else it uses ``latest``.
    - ``receipts_of_slices``: eth_getTransactionReceipt also returns receipts of pre-confirmed
      transactions, with a block hash of zeros and the member ``preconfirmed``. A transaction count
      at ``latest`` then includes pre-confirmed transactions. A client that waits for a receipt and
      then asks for the next nonce therefore does not reuse a nonce. Else only canonical
      transactions have receipts, so that ``latest`` includes the effects of every transaction with
      a receipt, and a pre-confirmed transaction looks like a pooled transaction.
    - ``pending_is_unsealed``: the pending block's hash, nonce and miner are null. Else the hash is
      32 zero bytes, and nonce and miner are those of the unfinished header.
    - ``pool_names_checksummed``: senders in txpool_content are checksummed (EIP-55).
    - ``newer_fees_count``: a call object may have both ``gasPrice`` and EIP-1559 fees. Calls use
      the EIP-1559 fees, and transactions to send use the gas price. A tip without a fee cap is
      ignored. Else both fees together are an error, and so is a tip without a fee cap.
    - ``simulated_block_spacing``: seconds between simulated blocks. None means the chain's own
      block time.
    - ``refuses_unknown_overrides``: an unknown member of an override is an error. Else it is
      ignored.
    - ``free_calls_see_base_fee``: BASEFEE in a call without a gas price (eth_call, estimates,
      access lists, traces of calls) returns the base fee of the block. Else it returns 0.
    - ``simulate_zero_state_root``: ``stateRoot`` of simulated headers is 32 zero bytes.
    - ``simulate_error_as_text``: a failed call's ``error`` is a string and ``returnData`` holds the
      revert bytes. Else ``error`` is an object and ``returnData`` is empty.
    - ``takes_loose_quantities``: quantities may also be JSON numbers or decimal digits.
    - ``unknown_subscription_is_error``: eth_unsubscribe of an unknown id is an error. Else it
      returns false.
    - ``errors_as_anvil``: errors have anvil's code and message if these differ from geth's.
    - ``receipts_tell_of_block``: receipts contain the blob base fee and the timestamp of the block.
    - ``prices_of_next_block``: eth_gasPrice uses the base fee of the next block. Else it uses the
      base fee of the newest block.
    - ``unknown_raw_is_null``: the raw bytes of an unknown transaction are null. Else they are
      ``0x``.
    - ``block_zero_has_empty_trace``: debug_traceBlock* of block 0 returns an empty list, which
      indexers that begin at block 0 require. Else it is an error.
    - ``logs_end_at_head``: a range of logs that ends above the head ends at the head. Else it is an
      error.
    - ``filters_tell_of_past``: the first poll of a filter with ``fromBlock`` also returns logs of
      blocks older than the filter.
    - ``first_account_sends``: eth_sendTransaction without a sender uses the first account.
    - ``failing_is_sent``: eth_sendTransaction without ``gas`` also sends a transaction that fails.
      Else it is refused.
    - ``failed_send_is_error``: sending a transaction that fails in its block is an error with the
      hash and the return data, and errors of halted calls contain return data, as in Hardhat.
    - ``transfers_need_no_funds``: the estimate of a simple ETH transfer assumes that the sender can
      pay for the transfer.
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
    transfers_need_no_funds: bool = False

    def with_receipts(self, name: str) -> "Dialect":
        """Return the dialect with receipts ``preconfirmed`` or ``canonical``.

        With ``preconfirmed``, a transaction has a receipt when it is in a slice. With
        ``canonical``, it has a receipt when it is in a block. Raises ValueError for other names.
        """
        if name not in RECEIPTS:
            raise ValueError(f"unknown receipts {name!r}: expected one of {', '.join(RECEIPTS)}")
        return replace(self, receipts_of_slices=name == PRECONFIRMED)

    def of_development(self, *, failed_send_is_error: bool = False) -> "Dialect":
        """Return this dialect changed for clients that expect anvil.

        ``failed_send_is_error`` sets the field of this name.
        """
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
            transfers_need_no_funds=True,
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
    """Return the dialect called ``name``. Raises ValueError with the nearest name."""
    found = DIALECTS.get(name)
    if found is not None:
        return found
    near = nearest(name, DIALECTS)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(DIALECTS))}"
    raise ValueError(f"unknown dialect {name!r}: {hint}")
