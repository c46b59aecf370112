# One thread's engine for bundles: a machine and a world over one immutable state.
from libc.stdint cimport int64_t, uint64_t

from fastevm.execution.outcome cimport TxError, TxOptions, TxResult
from fastevm.interpreter.machine cimport Machine
from fastevm.primitives.word cimport Word
from fastevm.simulate.chunk cimport Chunk
from fastevm.simulate.jobs cimport BundleJob, CallJob, Jobs
from fastevm.state.account cimport Account
from fastevm.state.layer cimport Layer
from fastevm.state.reader cimport Reader
from fastevm.state.world cimport World


# Why a bundle ended before its last call.
cdef struct Stop:
    size_t bundle
    size_t call
    TxError error
    TxResult result
    uint64_t gas             # what the call was given


cdef class Engine:
    cdef Machine* machine
    cdef World* world
    cdef Reader reader
    cdef Layer layer
    cdef Jobs jobs
    cdef readonly object view    # of the block that the bundles are, for those that run apart
    cdef readonly object options
    cdef uint64_t gas_cap
    cdef bint balances
    cdef bint cancelled          # the machine looks at it
    cdef bint closed             # for good
    # --- the deadline of the bundle under way; another thread looks at it now and then ---
    cdef int64_t limit           # nanoseconds
    cdef int64_t since           # when it began; 0: none runs
    cdef int64_t running         # its position
    cdef size_t overdue          # the position of the bundle that was stopped for it, plus one

    cdef TxOptions tx_options

    cdef object fault_of(self, const Stop* stop)
    cdef object stopped(self, const Stop* stop)
    cdef int finish(self, Chunk chunk, list payloads, list stops) except -1
    cdef bint run_all(self, Chunk chunk, size_t* at, Stop* stop) noexcept nogil
    cdef bint run_bundle(self, Chunk chunk, size_t at, Stop* stop) noexcept nogil
    cdef TxError run_call(
        self, Chunk chunk, CallJob* job, uint64_t* left, uint64_t* budget, Stop* stop
    ) noexcept nogil
    cdef bint open(self, const BundleJob* bundle) noexcept nogil
    cdef bint run_calls(self, Chunk chunk, size_t at, Stop* stop) noexcept nogil
    cdef bint note_balances(self, Chunk chunk, const BundleJob* bundle, size_t at) noexcept nogil
    cdef void balance_before(
        self, const BundleJob* bundle, const Account* a, Word* out
    ) noexcept nogil
