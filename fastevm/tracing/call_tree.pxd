# The tree of calls of a transaction: frame records and their JSON text.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.interpreter.tracer cimport EnterRecord, LeaveRecord
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.tracing.text_observer cimport TextObserver


cdef enum:
    NO_LOG = 0xffffffff


# A frame. Frames are stored in order of entry.
cdef struct CallNode:
    const EnterRecord* entered
    const LeaveRecord* left
    Address runs_as           # the account whose storage the frame uses
    Address caller
    uint32_t calls            # number of visible calls that the frame makes
    uint32_t first_log        # NO_LOG = none


# A log that was not reverted. Logs are stored in order.
cdef struct LogOwner:
    uint32_t node
    uint32_t position         # visible calls of the frame before this log
    uint32_t next             # next log of the same frame, or NO_LOG


cdef class CallTree(TextObserver):
    cdef size_t budget        # maximum bytes of records
    cdef bint only_top
    cdef Buffer nodes         # CallNode
    cdef Buffer owners        # LogOwner
    cdef uint64_t first_log   # number of logs before the transaction
    cdef object logs          # logs of the outcome
    cdef bint shows_logs
    cdef readonly list log_owners

    # Links the records to a tree. Returns False if memory is exhausted.
    cdef bint link(self) noexcept nogil
    cdef CallNode* enter(self, const EnterRecord* r, const CallNode* parent) noexcept nogil
    cdef bint count_logs(self, uint64_t total, uint32_t running) noexcept nogil
    cdef void assign_logs(self) noexcept nogil
    # Writes the JSON text. Returns False if an error was stored or memory is exhausted.
    cdef bint write(self, uint64_t gas_limit, uint64_t gas_used) noexcept nogil
    cdef bint put_head(self, const CallNode* node, uint64_t gas, uint64_t used) noexcept nogil
    cdef bint put_failure(self, const LeaveRecord* left) noexcept nogil
    cdef int put_words(self, const LeaveRecord* left) except -1
    cdef bint put_tail(self, const CallNode* node) noexcept nogil
    cdef bint put_logs(self, const CallNode* node) noexcept nogil
    cdef int put_log(self, uint32_t at) except -1
