# A block being built or executed, at the border: owner of the running block and of what it reads
# from.
from fastevm.execution.running cimport RunningBlock
from fastevm.execution.system cimport SystemOutcome
from fastevm.execution.transaction cimport Transaction
from fastevm.state.layer cimport Layer


cdef class BlockBuilder:
    cdef RunningBlock c
    cdef Layer base           # what the world reads from
    cdef Layer layer          # what its next changes are committed on
    cdef bytes ancestors      # concatenated; the context points into it
    cdef bytes deposit_contract
    cdef int stage
    cdef bint cancelled       # the machine looks at it
    cdef readonly object header
    cdef readonly object schedule
    cdef readonly tuple ommers
    cdef readonly object withdrawals
    cdef list added           # transactions
    cdef list made            # receipts that were asked for, from the first on
    cdef object blob_gas_price

    cdef int expect(self, int stage, str action) except -1
    cdef SystemOutcome call(self, str contract, bytes data)
    cdef bytes request(self, str contract)
    cdef int credit(self, bytes address, object amount) except -1
    cdef int close_receipt(self) except -1
    cdef list deposit_logs(self)
    cdef bytes deposits(self)
