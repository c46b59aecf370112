"""The table of JSON-RPC error codes and messages by reason and dialect.

A third column has anvil's errors, for development nodes.

Handlers raise `RpcError` with a reason of this table; only `wire_error` turns the reason into a
code. A message of None stands for the text of the exception. Braces are filled from the values of
the exception.
"""

import re
from typing import Any, Final, NamedTuple

from fastevm.core.primitives.safe_text import without_addresses
from fastevm.rpc.dialect import Dialect


class Wire(NamedTuple):
    """Code and message of a reason in one dialect."""

    code: int
    message: str | None = None


class Row(NamedTuple):
    """Code and message of a reason in both dialects, and in anvil's wording if it differs."""

    preconf: Wire
    geth: Wire
    anvil: Wire | None = None


def _both(code: int, message: str | None = None, anvil: Wire | None = None) -> Row:
    wire = Wire(code, message)
    return Row(wire, wire, anvil)


def _bare(message: str, anvil: Wire | None = None) -> Row:
    """Return a row for which ``preconf`` has a fixed message and ``geth`` adds details."""
    return Row(Wire(-32000, message), Wire(-32000, None), anvil)


_FUNDS = "insufficient funds for gas * price + value"
_UNDERPRICED = "replacement transaction underpriced"
_REJECTED = -32003  # anvil's code of a rejected transaction
_NO_FUNDS = Wire(_REJECTED, "Insufficient funds for gas * price + value")
_TIP = Wire(_REJECTED, "max priority fee per gas higher than max fee per gas")
_CALL_TIP = Wire(-32602, "Invalid input: `max_priority_fee_per_gas` greater than `max_fee_per_gas`")
_LOW_FEE = Wire(_REJECTED, "max fee per gas less than block base fee")
_LOW_NONCE = Wire(_REJECTED, "nonce too low")
_LOW_GAS = Wire(-32000, "intrinsic gas too low")
_CALL_GAS = Wire(-32000, "intrinsic gas too high -- CallGasCostMoreThanGasLimit")
_BLOCK_GAS = Wire(-32000, "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit")
_ALLOWANCE = Wire(_REJECTED, "Out of gas: gas required exceeds allowance: {have}")

_ODD_LENGTH: Final = re.compile(
    r"json: cannot unmarshal hex string of odd length into Go"
    r" (?:value|struct field (?:\w+\.)?(\w+)) of type [\w.]+"
)
_NO_STATE: Final = "is no longer kept"  # how the message of StateUnavailableError ends

REASONS: Final[dict[str, Row]] = {
    # --- the envelope (JSON-RPC 2.0, section 5.1, and what nodes add to it) ---
    "parse_error": _both(-32700, "parse error"),
    "stream_fault": _both(-32700, "parse error: {fault}"),
    "invalid_request": _both(-32600, "invalid request"),
    "empty_batch": _both(-32600, "empty batch"),
    "batch_too_large": _both(-32600, "batch too large"),
    "too_many_values": _both(-32600, "request too large: more than {limit} values"),
    "method_name_too_long": _both(-32600, "method name too long: {length} > {limit}"),
    "method_not_found": _both(-32601, "the method {method} does not exist/is not available"),
    "notifications_not_supported": _both(-32601, "notifications not supported"),
    "subscription_name_expected": _both(-32602, "expected subscription name as first argument"),
    "no_such_subscription": _both(-32601, "no {name} subscription in eth namespace"),
    "subscription_not_found": _both(-32000, "subscription not found"),
    "too_many_questions": _both(-32005, "too many watched questions{whose}, limit {limit}"),
    "too_many_subscriptions": _both(-32005, "too many subscriptions, limit {limit}"),
    "subscription_closed": _both(-32005, "subscription closed: {cause}"),
    "non_array_args": _both(-32602, "non-array args"),
    "missing_argument": _both(-32602, "missing value for required argument {position}"),
    "too_many_arguments": _both(-32602, "too many arguments, want at most {limit}"),
    "invalid_argument": _both(-32602, "invalid argument {position}: {fault}"),
    "invalid_params": _both(-32602),
    "handler_crashed": _both(-32603, "method handler crashed"),
    "timed_out": _both(-32002, "request timed out"),
    "response_too_large": _both(-32003, "response too large"),
    "batches_too_large": _both(
        -32005, "requests and answers under way fill the {limit} bytes that they may have together"
    ),
    "overloaded": _both(-32005, "too many requests in progress, limit {limit}"),
    "overloaded_by_client": _both(
        -32005, "too many requests of this client in progress, limit {limit}"
    ),
    # --- blocks and state ---
    "server_error": _both(-32000),
    "header_not_found": _both(-32000, "header not found"),
    "above_head": _both(
        -32000,
        "header not found",
        Wire(-32602, "BlockOutOfRangeError: block height is {head} but requested was {number}"),
    ),
    "header_for_hash_not_found": _both(-32000, "header for hash not found"),
    "not_canonical": _both(-32000, "hash is not currently canonical"),
    "no_access_list": _both(-32001, "blocks before Amsterdam have no block access list"),
    "history_pruned": _both(4444, "pruned history unavailable"),
    "limit_exceeded": _both(-38026),
    "upstream": _both(-32000),  # the code comes from the upstream
    # --- logs ---
    "unknown_block": _both(-32000, "unknown block"),
    "too_many_choices": _both(-32000, "exceed max addresses or topics per search position"),
    "invalid_block_range": _both(-32602, "invalid block range params"),
    "range_beyond_head": _both(-32602, "block range extends beyond current head block"),
    "range_too_wide": _both(
        -32602, "query exceeds max block range {limit}, retry with the range {first}-{last}"
    ),
    "too_many_logs": _both(
        -32602, "query exceeds max results {limit}, retry with the range {first}-{last}"
    ),
    "logs_too_large": _both(
        -32602, "query exceeds max response size {limit}, retry with the range {first}-{last}"
    ),
    "filter_not_found": _both(-32000, "filter not found"),
    "too_many_filters": _both(-32005, "too many filters, limit {limit}"),
    "watches_too_large": _both(
        -32005, "filters and subscriptions{whose} fill the {limit} bytes that they may have"
    ),
    # --- calls ---
    "reverted": Row(Wire(-32000, "execution reverted"), Wire(3, None)),
    "halted": _both(-32000, None, Wire(-32603)),
    "call": _both(-32000),
    "call.insufficient_funds": _both(-32000, None, _NO_FUNDS),
    "call.gas_required_exceeds_allowance": _both(-32000, None, _ALLOWANCE),
    "call.nonce_too_low": _both(-32000, None, _LOW_NONCE),
    "call.tip_above_fee_cap": _both(-32000, None, _CALL_TIP),
    "call.fee_cap_too_low": _both(-32000, None, _LOW_FEE),
    "call.intrinsic_gas": _both(-32000, None, _CALL_GAS),
    # --- eth_simulateV1: a reason without its own row has the row "simulate" ---
    "simulate": _both(-32603),
    "simulate.empty_input": _both(-32602, "empty input"),
    "simulate.nonce_too_low": _both(-38010),
    "simulate.nonce_too_high": _both(-38011),
    "simulate.fee_cap_too_low": _both(-38012),
    "simulate.intrinsic_gas": _both(-38013, None, _CALL_GAS),
    "simulate.insufficient_funds": _both(-38014, None, _NO_FUNDS),
    "simulate.insufficient_funds_for_transfer": _both(-38014),
    "simulate.block_gas_limit": _both(-38015),
    "simulate.block_gas_limit_reached": _both(-38015),
    "simulate.block_numbers_order": _both(-38020),
    "simulate.block_timestamps_order": _both(-38021),
    "simulate.sender_not_eoa": _both(-38024),
    "simulate.initcode_too_large": _both(-38025),
    "simulate.too_many_blocks": _both(-38026),
    "simulate.too_many_calls": _both(-38026),
    "simulate.tip_above_fee_cap": _both(-32602),
    "simulate.override": _both(-32000),
    "simulate.chain_id_mismatch": _both(-32000),
    "simulate.conflicting_fees": _both(-32000),
    "simulate.gas_cap_exhausted": _both(-32000),
    "simulated_revert": _both(3),
    "simulated_halt": _both(-32015),
    # --- transactions to sign ---
    "failed_send": _both(-32603),
    "unknown_account": _both(
        -32000, "unknown account: No Signer available", Wire(-32602, "No Signer available")
    ),
    "blobs_not_signed": _both(-32000, "signing blob transactions not supported"),
    "wrong_chain_id": _both(-32000, "chainId does not match node's (have={have}, want={want})"),
    # --- the pool: a reason without its own row has the row "pool" ---
    "pool": _both(-32000),
    "not_confirmed": _both(
        4, "Transaction {hash} was added to the mempool but wasn't confirmed within {seconds}s."
    ),
    "pool.nonce_gap": _both(6),
    "pool.nonce_too_low": _bare("nonce too low", _LOW_NONCE),
    "pool.insufficient_funds": _bare(_FUNDS, _NO_FUNDS),
    "pool.tip_above_fee_cap": _both(-32000, None, _TIP),
    "pool.fee_cap_too_low": _both(-32000, None, _LOW_FEE),
    "pool.intrinsic_gas": _both(-32000, None, _LOW_GAS),
    "pool.exceeds_block_gas_limit": _both(-32000, None, _BLOCK_GAS),
    "pool.already_known": _bare("already known"),
    "pool.replacement_underpriced": _bare(_UNDERPRICED, Wire(_REJECTED, _UNDERPRICED)),
}


class RpcError(Exception):
    """A JSON-RPC error with a reason from the table, a text, values for the message, and data."""

    def __init__(
        self, reason: str, text: str | None = None, *, data: Any = None, **values: Any
    ) -> None:
        super().__init__(reason if text is None else text)
        self.reason = reason
        self.text = text
        self.data = data
        self.values = values


def family_reason(family: str, reason: str) -> str:
    """Return ``family.reason`` if the table has such a row, else ``family``."""
    full = f"{family}.{reason}"
    return full if full in REASONS else family


def development_words(message: str) -> str:
    """Return a message for clients of a development node.

    The message has no Go types, and has a hint if the state is no longer kept.
    """
    message = _ODD_LENGTH.sub(
        lambda found: f"{found[1] or 'value'}: odd number of hex digits", message
    )
    if message.endswith(_NO_STATE):
        return f"{message}; --preserve-historical-states keeps it in the file of --state"
    return message


def wire_error(error: RpcError, dialect: Dialect) -> dict[str, Any]:
    """Return the JSON error object of ``error`` in ``dialect``: code, message and, if any, data."""
    row = REASONS[error.reason]
    wire: Wire = getattr(row, dialect.name)
    if dialect.errors_as_anvil and row.anvil is not None:
        wire = row.anvil
    message = str(error) if wire.message is None else wire.message.format(**error.values)
    if dialect.errors_as_anvil:
        message = development_words(message)
    if error.reason == "server_error" and not dialect.errors_as_anvil:
        message = without_addresses(message)
    answer: dict[str, Any] = {"code": error.values.get("code", wire.code), "message": message}
    if error.data is not None:
        answer["data"] = error.data
    return answer
