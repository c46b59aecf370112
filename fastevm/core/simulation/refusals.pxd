# Why a simulation is refused as a whole: a code with its numbers, until somebody wants the words.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef enum RefusalCode:
    NOT_REFUSED = 0
    # --- the plan: `have` and `want` are what it has, and what it is held against ---
    TOO_MANY_BLOCKS = 1
    TOO_MANY_CALLS_OF_BLOCK = 2
    TOO_MANY_CALLS = 3
    BLOCK_NUMBERS_ORDER = 4
    BLOCK_TIMES_ORDER = 5
    # --- overrides of the account `address` ---
    NOT_A_PRECOMPILE = 11
    TARGET_OVERRIDDEN = 12        # a precompile shall move onto it, and it is overridden itself
    STATE_AND_STATE_DIFF = 13
    TOO_MANY_MOVES = 14
    # --- the call `call` ---
    TWO_KINDS_OF_FEES = 20
    OTHER_CHAIN = 21
    BLOCK_GAS_REACHED = 22        # `have`: the gas that the block has left
    FAULTY_CALL = 23              # the plan has the exception
    INVALID_CALL = 24             # `error` and `result`; `gas` is what it was given
    # --- the end of the block ---
    NO_QUEUE_CONTRACT = 30        # at `address`
    QUEUE_FAILED = 31             # `status` says how
    # --- limits ---
    OUTPUT_CAP_REACHED = 40
    TRACE_LIMIT_REACHED = 41
    STATE_UNKNOWN = 42


cdef struct Refusal:
    RefusalCode code
    Word have
    Word want
    Address address
    int queue                     # whose contract failed: see QUEUE_NAMES in refusals.pyx
    Status status
    size_t call
    uint64_t gas
    TxError error
    TxResult result
    Tx tx                         # the call as it was tried


# Set the code and its numbers, and clear every member that another code may have set. Members that
# only one code has (`queue`, `status`, ...) are set after the call.
cdef void refuse(Refusal* r, RefusalCode code, uint64_t have, uint64_t want) noexcept nogil
cdef void refuse_account(Refusal* r, RefusalCode code, const Address* address) noexcept nogil

# The exception with the words for it, those of go-ethereum where it has the same rule. `faults`:
# those of the plan.
cdef object exception_of(const Refusal* r, dict faults)
