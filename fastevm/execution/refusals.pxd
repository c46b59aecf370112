# What a refused transaction is told: a code, and the words that clients match on.
from fastevm.execution.outcome cimport TxError, TxResult
from fastevm.execution.tx cimport Tx


# The InvalidTransaction (or MemoryError) to raise.
cdef object refusal(TxError error, const Tx* tx, const TxResult* result)
