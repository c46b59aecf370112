# Exceptions of refused transactions (a code, and the message that clients match on) and of missing
# state.
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.state.records cimport World


# Returns the InvalidTransaction (or MemoryError) to raise.
cdef object refusal(TxError error, const Tx* tx, const TxResult* result)

# The same for what `TX_UNSUPPORTED` and the status UNSUPPORTED of a machine describe.
cdef object unsupported(const char* reason, const Address* contract)

# Returns the StateNotKnown error for what an execution needs.
cdef object not_known(const World* w)
# Raise if the host failed a system call.
cdef int raise_host_failure(SystemOutcome outcome, const World* w) except -1
