"""Messages of refused simulations, from a code and its numbers."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.execution.transaction.refusals cimport refusal
from fastevm.core.execution.transaction.transaction_result cimport TX_OUT_OF_MEMORY, TxError
from fastevm.core.interpreter.machine cimport status_text
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport word_set, word_to_int, word_zero

from fastevm.errors import FastevmError, InvalidTransaction
from fastevm.core.primitives.hex import checksum_address
from fastevm.core.simulation.limits import (
    MAX_CALLS,
    MAX_CALLS_PER_BLOCK,
    MAX_MOVED_PRECOMPILES,
    MAX_TRACE_BYTES,
)
from fastevm.core.simulation.values import SimulationError


# The queues of requests in the order of their contracts' calls.
QUEUE_NAMES = ("withdrawal", "consolidation", "builder deposit", "builder exit")

# Maps a code to (reason, message). The message is a template with have, want, address and most.
WORDINGS = {
    TOO_MANY_BLOCKS: ("too_many_blocks", "too many blocks"),
    TOO_MANY_CALLS_OF_BLOCK: (
        "too_many_calls", f"too many calls in block: {{have}} > {MAX_CALLS_PER_BLOCK}"
    ),
    TOO_MANY_CALLS: ("too_many_calls", f"too many calls: {{have}} > {MAX_CALLS}"),
    BLOCK_NUMBERS_ORDER: (
        "block_numbers_order", "block numbers must be in order: {have} <= {want}"
    ),
    BLOCK_TIMES_ORDER: (
        "block_timestamps_order", "block timestamps must be in order: {have} <= {want}"
    ),
    NOT_A_PRECOMPILE: ("override", "account {address} is not a precompile"),
    TARGET_OVERRIDDEN: ("override", "account {address} is already overridden"),
    STATE_AND_STATE_DIFF: ("override", "account {address} has both 'state' and 'stateDiff'"),
    TOO_MANY_MOVES: ("override", f"more than {MAX_MOVED_PRECOMPILES} precompiles moved"),
    TWO_KINDS_OF_FEES: (
        "conflicting_fees",
        "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
    ),
    OTHER_CHAIN: (
        "chain_id_mismatch", "chainId does not match node's (have={have}, want={want})"
    ),
    BLOCK_GAS_REACHED: (
        "block_gas_limit_reached",
        "block gas limit reached: remaining: {have}, required: {want}",
    ),
    NO_QUEUE_CONTRACT: (
        "override",
        "failed to process {queue} queue: empty system contract: no code at {address}",
    ),
    QUEUE_FAILED: (
        "override", "failed to process {queue} queue: system call failed to execute: {status}"
    ),
    TRACE_LIMIT_REACHED: ("trace_limit", f"the call tree takes over {MAX_TRACE_BYTES} bytes"),
}


cdef void reset_reason(Refusal* r, RefusalCode code) noexcept nogil:
    """Sets the code and clears all members except the call, which another code may have set."""
    r.code = code
    word_zero(&r.have)
    word_zero(&r.want)
    memset(&r.address, 0, sizeof(r.address))
    r.queue = 0
    r.status = <Status>0
    r.gas = 0
    r.error = <TxError>0


cdef void refuse(Refusal* r, RefusalCode code, uint64_t have, uint64_t want) noexcept nogil:
    reset_reason(r, code)
    word_set(&r.have, have)
    word_set(&r.want, want)


cdef void refuse_account(Refusal* r, RefusalCode code, const Address* address) noexcept nogil:
    reset_reason(r, code)
    r.address = address[0]


cdef object exception_of(const Refusal* r, dict faults):
    if r.code == FAULTY_CALL:
        return faults[r.call]
    if r.code == INVALID_CALL:
        if r.error == TX_OUT_OF_MEMORY:
            return MemoryError()
        return supplied(refusal(r.error, &r.tx, &r.result), r.gas)
    if r.code == STATE_UNKNOWN:
        return FastevmError("the state under the block is incomplete")
    reason, words = WORDINGS[r.code]
    return SimulationError(reason, words.format(
        have=word_to_int(&r.have),
        want=word_to_int(&r.want),
        address=checksum_address(r.address.b[:20]),
        queue=QUEUE_NAMES[r.queue],
        status=status_text(r.status).decode(),
    ))


cdef object with_position(object error, const Refusal* r, size_t block, size_t first_call):
    if TWO_KINDS_OF_FEES <= r.code <= INVALID_CALL and isinstance(error, FastevmError):
        error.position = (block, r.call - first_call)
    return error


def supplied(error: InvalidTransaction, gas: int) -> InvalidTransaction:
    """Returns the error of an invalid call, with the supplied gas in the message as in go-ethereum.
    """
    message = f"err: {error.message} (supplied gas {gas})"
    return InvalidTransaction(error.code, message, have=error.have, want=error.want)
