# Exceptions of refused transactions (a code, and the message that clients match on) and of missing
# state.
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.state.records cimport World


# Returns the exception for a refused transaction: InvalidTransaction, or MemoryError.
cdef object refusal(TxError error, const Tx* tx, const TxResult* result)

# Returns the exception for TX_UNSUPPORTED and the status UNSUPPORTED. `reason` names what is not
# supported, `contract` needs it.
cdef object unsupported(const char* reason, const Address* contract)

# Returns the StateNotKnown error for what an execution needs.
cdef object not_known(const World* w)
# Raises the exception for an outcome >= SYSTEM_NEEDS_STATE. Does nothing for smaller outcomes.
cdef int raise_host_failure(SystemOutcome outcome, const World* w) except -1
