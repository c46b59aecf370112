# The tree of calls of a transaction: records of frames, and JSON text of them.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.interpreter.tracer cimport EnterRecord, LeaveRecord
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.tracing.text_observer cimport TextObserver


cdef enum:
    NO_LOG = 0xffffffff


# A frame, in the order in which they were entered.
cdef struct CallNode:
    const EnterRecord* entered
    const LeaveRecord* left
    Address runs_as           # the account whose storage it uses
    Address caller
    uint32_t calls            # in it, that are shown
    uint32_t first_log        # NO_LOG = none


# A log that was not reverted, in order.
cdef struct LogOwner:
    uint32_t node
    uint32_t position         # calls of the frame before it
    uint32_t next             # of the same frame, or NO_LOG


cdef class CallTree(TextObserver):
    cdef size_t budget        # bytes of records
    cdef bint only_top
    cdef Buffer nodes         # CallNode
    cdef Buffer owners        # LogOwner
    cdef uint64_t first_log   # logs before the transaction
    cdef object logs          # of the outcome
    cdef bint shows_logs
    cdef readonly list log_owners

    # False: out of memory.
    cdef bint link(self) noexcept nogil
    cdef CallNode* enter(self, const EnterRecord* r, const CallNode* parent) noexcept nogil
    cdef bint count_logs(self, uint64_t total, uint32_t running) noexcept nogil
    cdef void assign_logs(self) noexcept nogil
    # False: an error was kept, or the text starved.
    cdef bint write(self, uint64_t gas_limit, uint64_t gas_used) noexcept nogil
    cdef bint put_head(self, const CallNode* node, uint64_t gas, uint64_t used) noexcept nogil
    cdef bint put_failure(self, const LeaveRecord* left) noexcept nogil
    cdef int put_words(self, const LeaveRecord* left) except -1
    cdef bint put_tail(self, const CallNode* node) noexcept nogil
    cdef bint put_logs(self, const CallNode* node) noexcept nogil
    cdef int put_log(self, uint32_t at) except -1
