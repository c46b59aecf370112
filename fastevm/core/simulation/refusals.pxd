# Why a simulation is refused as a whole: a code with its numbers. Messages are created on demand.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef enum RefusalCode:
    NOT_REFUSED = 0
    # --- the plan: `have` is the plan's number, `want` the limit or the number it must exceed ---
    TOO_MANY_BLOCKS = 1
    TOO_MANY_CALLS_OF_BLOCK = 2
    TOO_MANY_CALLS = 3
    BLOCK_NUMBERS_ORDER = 4
    BLOCK_TIMES_ORDER = 5
    # --- overrides of the account `address` ---
    NOT_A_PRECOMPILE = 11
    TARGET_OVERRIDDEN = 12        # a precompile moves to the account, which has an override too
    STATE_AND_STATE_DIFF = 13
    TOO_MANY_MOVES = 14
    # --- the call `call` ---
    TWO_KINDS_OF_FEES = 20
    OTHER_CHAIN = 21
    BLOCK_GAS_REACHED = 22        # `have`: the gas left in the block
    FAULTY_CALL = 23              # `Plan.faults` has the exception
    INVALID_CALL = 24             # the call breaks the rule `error`; `gas` is its gas limit
    # --- the end of the block ---
    NO_QUEUE_CONTRACT = 30        # at `address`
    QUEUE_FAILED = 31             # `status` is the reason
    # --- limits ---
    OUTPUT_CAP_REACHED = 40
    TRACE_LIMIT_REACHED = 41
    STATE_UNKNOWN = 42


cdef struct Refusal:
    RefusalCode code
    Word have
    Word want
    Address address
    int queue                     # index of the contract that failed: see QUEUE_NAMES in refusals.pyx
    Status status
    size_t call
    uint64_t gas
    TxError error
    TxResult result
    Tx tx                         # the call as it was executed


# Set the code with its numbers `have` and `want`, and clear all other members except `call`.
# Callers then set the members that only one code has (`queue`, `status`, ...).
cdef void refuse(Refusal* r, RefusalCode code, uint64_t have, uint64_t want) noexcept nogil
cdef void refuse_account(Refusal* r, RefusalCode code, const Address* address) noexcept nogil

# Returns the exception for a refusal, with the message of go-ethereum if go-ethereum has the same
# rule. `faults`: see `Plan.faults`.
cdef object exception_of(const Refusal* r, dict faults)

# Adds the indices of the block and the call to the error, if the refusal is about a call.
cdef object with_position(object error, const Refusal* r, size_t block, size_t first_call)
