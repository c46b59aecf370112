# A call without overrides and lists.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxOptions, TxResult
from fastevm.core.interpreter.machine cimport BlockContext, Machine
from fastevm.core.primitives.word cimport Word
from fastevm.core.simulation.deadline cimport Deadline
from fastevm.core.simulation.plan cimport Plan
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.world cimport World


# The result of one execution of a call, for eth_call and for the search of eth_estimateGas.
cdef class SimpleOutcome:
    cdef readonly bint success
    cdef readonly bint reverted
    cdef readonly uint64_t gas_used
    cdef readonly uint64_t max_used_gas
    cdef readonly bytes output
    cdef readonly str error


cdef class SimpleCaller:
    cdef Machine* machine
    cdef World* world
    cdef Reader reader
    cdef BlockContext context     # the block values that the call sees
    cdef Word base_fee
    cdef Word blob_base_fee
    cdef Deadline deadline        # the machine's cancel flag points to its request
    cdef Layer layer
    cdef ForkSchedule schedule
    cdef bytes ancestors
    cdef Plan own_plan            # reused for the requests of `open`
    cdef Plan plan                # the plan of the current call
    cdef object view
    cdef bint is_open             # there is a current call, and `tx` is complete
    cdef Tx tx
    cdef TxOptions options
    cdef TxResult result

    cdef int attach(self, object view) except -1
    cdef int take(self, object view, Plan plan, bint shows_base_fee, bint pays_blobs) except -1
    cdef SimpleOutcome outcome(self)
