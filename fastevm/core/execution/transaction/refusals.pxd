# The exception for a refused transaction: a code, and the message that clients match on. And those
# for what a host could not give.
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.state.records cimport World


# The InvalidTransaction (or MemoryError) to raise.
cdef object refusal(TxError error, const Tx* tx, const TxResult* result)

# The error for what a run needs and nobody knows here.
cdef object not_known(const World* w)
# Raise if the host failed a system call.
cdef int raise_host_failure(SystemOutcome outcome, const World* w) except -1
