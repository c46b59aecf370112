# A call that changes nothing of its block's environment or state before it runs.
from libc.stdint cimport uint64_t

from fastevm.execution.outcome cimport TxOptions, TxResult
from fastevm.execution.tx cimport Tx
from fastevm.interpreter.machine cimport BlockContext, Machine
from fastevm.primitives.word cimport Word
from fastevm.spec.schedule cimport ForkSchedule
from fastevm.state.layer cimport Layer
from fastevm.state.reader cimport Reader
from fastevm.state.world cimport World


# What one run gave, for the search of an estimate and for the answer of a call.
cdef class PlainOutcome:
    cdef readonly bint success
    cdef readonly bint reverted
    cdef readonly uint64_t gas_used
    cdef readonly uint64_t max_used_gas
    cdef readonly bytes output
    cdef readonly str error


cdef class PlainCaller:
    cdef Machine* machine
    cdef World* world
    cdef Reader reader
    cdef BlockContext context     # of the block, and what of it the call sees
    cdef Word base_fee
    cdef Word blob_base_fee
    cdef bint cancelled
    cdef Layer layer
    cdef ForkSchedule schedule
    cdef bytes ancestors
    cdef bytes data               # the transaction points into it
    cdef object view
    cdef bint default_nonce
    cdef Tx tx
    cdef TxOptions options
    cdef TxResult result

    cdef int attach(self, object view) except -1
    cdef PlainOutcome outcome(self)
