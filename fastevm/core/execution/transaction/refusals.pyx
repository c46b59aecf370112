"""Exceptions of refused transactions: a code, and the message that clients match on."""

from fastevm.errors import (
    ExecutionOutOfMemory, FastevmError, InvalidTransaction, StateNotKnown,
)

from fastevm.core.execution.block.system_calls cimport (
    SYSTEM_CANCELLED, SYSTEM_NEEDS_STATE, SYSTEM_OUT_OF_MEMORY, SystemOutcome,
)
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_BLOB_CREATE, TX_BLOB_FEE_CAP_TOO_LOW, TX_BLOB_HASH_VERSION, TX_BLOCK_GAS, TX_CANCELLED,
    TX_DA_FOOTPRINT, TX_FEE_CAP_TOO_LOW, TX_FLOOR_GAS, TX_FUNDS_OVERFLOW, TX_GAS_LIMIT_TOO_HIGH,
    TX_INITCODE_TOO_LARGE, TX_INSUFFICIENT_FUNDS, TX_INTRINSIC_GAS, TX_INVALID_SIGNATURE,
    TX_NEEDS_STATE, TX_NO_AUTHORIZATIONS, TX_NO_BLOBS, TX_NONCE_MAX, TX_NONCE_TOO_HIGH,
    TX_NONCE_TOO_LOW, TX_NOT_RECOVERED, TX_OUT_OF_MEMORY, TX_PAUSED, TX_POST_EXEC_REFUND,
    TX_SENDER_NOT_EOA,
    TX_SET_CODE_CREATE, TX_TIP_ABOVE_FEE_CAP, TX_TOO_MANY_BLOBS, TX_TYPE_NOT_SUPPORTED,
    TX_UNSUPPORTED, TX_WRONG_CHAIN_ID, TxError, TxResult,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport word_to_int
from fastevm.core.state.records cimport WORLD_NEEDS_CODE, World
from fastevm.core.primitives.hex cimport hex_checksum


# Maps an error to (code, message). The message is a template with sender, nonce, have and want.
MESSAGES = {
    TX_TYPE_NOT_SUPPORTED: ("type_not_supported", "transaction type not supported"),
    TX_WRONG_CHAIN_ID: ("wrong_chain_id", "invalid chain id for signer: have {have} want {want}"),
    TX_INVALID_SIGNATURE: ("invalid_signature", "invalid transaction v, r, s values"),
    TX_NOT_RECOVERED: ("not_recovered", "the sender was never recovered"),
    TX_NONCE_TOO_HIGH: (
        "nonce_too_high", "nonce too high: address {sender}, tx: {have} state: {want}"
    ),
    TX_NONCE_TOO_LOW: (
        "nonce_too_low", "nonce too low: address {sender}, tx: {have} state: {want}"
    ),
    TX_NONCE_MAX: ("nonce_max", "nonce has max value: address {sender}, nonce: {nonce}"),
    TX_GAS_LIMIT_TOO_HIGH: (
        "gas_limit_too_high", "transaction gas limit too high (cap: {want}, tx: {have})"
    ),
    TX_SENDER_NOT_EOA: ("sender_not_eoa", "sender not an eoa: address {sender}, len(code): {have}"),
    TX_TIP_ABOVE_FEE_CAP: (
        "tip_above_fee_cap",
        "max priority fee per gas higher than max fee per gas: address {sender}, "
        "maxPriorityFeePerGas: {have}, maxFeePerGas: {want}",
    ),
    TX_FEE_CAP_TOO_LOW: (
        "fee_cap_too_low",
        "max fee per gas less than block base fee: address {sender}, "
        "maxFeePerGas: {have}, baseFee: {want}",
    ),
    TX_BLOB_CREATE: ("blob_create", "blob transaction of type create"),
    TX_NO_BLOBS: ("no_blobs", "blob transaction missing blob hashes"),
    TX_TOO_MANY_BLOBS: (
        "too_many_blobs", "blob transaction has too many blobs (max: {want}, tx: {have})"
    ),
    TX_BLOB_HASH_VERSION: ("blob_hash_version", "blob {have} has invalid hash version"),
    TX_BLOB_FEE_CAP_TOO_LOW: (
        "blob_fee_cap_too_low",
        "max fee per blob gas less than block blob gas fee: address {sender} "
        "blobGasFeeCap: {have}, blobBaseFee: {want}",
    ),
    TX_SET_CODE_CREATE: (
        "set_code_create",
        "EIP-7702 transaction cannot be used to create contract (sender {sender})",
    ),
    TX_NO_AUTHORIZATIONS: (
        "no_authorizations", "EIP-7702 transaction with empty auth list (sender {sender})"
    ),
    TX_INITCODE_TOO_LARGE: (
        "initcode_too_large", "max initcode size exceeded: code size {have} limit {want}"
    ),
    TX_BLOCK_GAS: ("block_gas_limit", "gas limit reached: have {have}, want {want}"),
    TX_INSUFFICIENT_FUNDS: (
        "insufficient_funds",
        "insufficient funds for gas * price + value: address {sender} have {have} want {want}",
    ),
    TX_FUNDS_OVERFLOW: (
        "insufficient_funds",
        "insufficient funds for gas * price + value: address {sender} "
        "required balance exceeds 256 bits",
    ),
    TX_INTRINSIC_GAS: ("intrinsic_gas", "intrinsic gas too low: have {have}, want {want}"),
    TX_FLOOR_GAS: (
        "floor_gas", "insufficient gas for floor data gas cost: have {have}, want {want}"
    ),
    TX_DA_FOOTPRINT: (
        "da_footprint", "DA footprint limit reached: have {have}, want {want}"
    ),
    TX_POST_EXEC_REFUND: (
        "post_exec_refund", "post-exec refund exceeds the gas used: have {have}, want {want}"
    ),
    TX_NEEDS_STATE: ("needs_state", "the state is not known here"),
    TX_PAUSED: ("paused", "the execution was left half way"),
    TX_CANCELLED: ("cancelled", "execution aborted"),
}

COMPARING = frozenset((
    TX_TYPE_NOT_SUPPORTED, TX_WRONG_CHAIN_ID, TX_NONCE_TOO_HIGH, TX_NONCE_TOO_LOW,
    TX_GAS_LIMIT_TOO_HIGH, TX_TIP_ABOVE_FEE_CAP, TX_FEE_CAP_TOO_LOW, TX_TOO_MANY_BLOBS,
    TX_BLOB_FEE_CAP_TOO_LOW, TX_INITCODE_TOO_LARGE, TX_BLOCK_GAS, TX_INSUFFICIENT_FUNDS,
    TX_INTRINSIC_GAS, TX_FLOOR_GAS, TX_DA_FOOTPRINT, TX_POST_EXEC_REFUND,
))


cdef str checksummed(const Address* address):
    cdef char[40] text
    hex_checksum(text, address.b)
    return "0x" + text[:40].decode("ascii")


cdef object refusal(TxError error, const Tx* tx, const TxResult* result):
    if error == TX_OUT_OF_MEMORY:
        return ExecutionOutOfMemory("the execution needs more memory than the machine has")
    if error == TX_UNSUPPORTED:
        return unsupported(result.refused, &result.refused_at)
    code, template = MESSAGES[error]
    have = word_to_int(&result.have)
    want = word_to_int(&result.want)
    message = template.format(sender=checksummed(&tx.sender), nonce=tx.nonce, have=have, want=want)
    if error in COMPARING:
        return InvalidTransaction(code, message, have=have, want=want)
    return InvalidTransaction(code, message)


cdef object unsupported(const char* reason, const Address* contract):
    return InvalidTransaction(
        "unsupported", f"contract {checksummed(contract)}: {reason.decode()}"
    )


cdef object not_known(const World* w):
    """Returns the StateNotKnown error for what an execution needs."""
    if w.need == WORLD_NEEDS_CODE:
        return StateNotKnown(f"the code of 0x{w.need_address.b[:20].hex()} is not known here")
    return StateNotKnown("the state under the block is not known here yet")


cdef int raise_host_failure(SystemOutcome outcome, const World* w) except -1:
    if outcome == SYSTEM_OUT_OF_MEMORY:
        raise MemoryError
    if outcome == SYSTEM_NEEDS_STATE:
        raise not_known(w)
    if outcome == SYSTEM_CANCELLED:
        raise FastevmError("execution aborted")
    return 0
