# The exception for a refused transaction: a code, and the message that clients match on.
from fastevm.execution.transaction_data cimport Tx
from fastevm.execution.transaction_result cimport TxError, TxResult


# The InvalidTransaction (or MemoryError) to raise.
cdef object refusal(TxError error, const Tx* tx, const TxResult* result)
