# The system calls at the start of a block, and the requests and deposits at its end. Building,
# import and simulation of blocks use the same functions.
from libc.stdint cimport uint8_t

from fastevm.core.execution.block.receipts cimport ReceiptList
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.world cimport LogRecord


cdef enum:
    QUEUE_COUNT = 4           # length of QUEUES in requests.py; `queues` below has the same order


# The system contracts of a fork.
cdef struct SystemContracts:
    bint has_beacon_roots
    bint has_history
    bint has_queue[QUEUE_COUNT]
    Address beacon_roots
    Address history
    Address queues[QUEUE_COUNT]


cdef int system_contracts_read(SystemContracts* out, ForkSchedule schedule) except -1

# Make the system calls at the start of a block (EIP-4788, EIP-2935), each with 32 bytes of input.
# Contracts that are missing or fail change nothing. Returns SYSTEM_DONE or an outcome >=
# SYSTEM_NEEDS_STATE.
cdef SystemOutcome run_start_calls(
    Machine* m, const SystemContracts* c, const uint8_t* beacon_root, const uint8_t* parent_hash
) noexcept nogil

# Collect the requests at the end of a block (EIP-7002, EIP-7251, EIP-8282). Overwrites `queues`.
# Stops at the first contract that fails: `at` is its index, machine.status the reason. `optional`:
# whether a contract may lack code; it then has no requests.
cdef SystemOutcome run_queue_calls(
    Machine* m, const SystemContracts* c, bint optional, Buffer* queues, size_t* at
) noexcept nogil

# Returns the deposits in the logs of the deposit contract (EIP-6110). Raises ValueError for a
# malformed log.
cdef bytes deposits_of(
    const ReceiptList* receipts, const LogRecord* logs, const Address* deposit_contract
)
# Returns all requests of a block, type byte first (EIP-7685).
cdef tuple requests_of(bytes deposits, const Buffer* queues)
