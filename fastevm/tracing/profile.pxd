# Measures the gas of the opcodes of each code.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.interpreter.tracer cimport EnterRecord, LeaveRecord, StepRecord
from fastevm.tracing.observer cimport Observer


# The number of executions and the gas of each pc of a code.
cdef struct PcTable:
    uint64_t* counts
    int64_t* gas
    size_t size


# An open frame.
cdef struct Opened:
    size_t table
    size_t function
    uint64_t last_pc
    bint has_steps
    bint has_jumped           # the last step was a jump; set by EdgeProfile only
    int64_t stipend           # call stipend: gas of the frame that the caller has not paid
    int64_t children          # gas that this frame paid for child frames


cdef struct FunctionCosts:
    uint64_t calls
    int64_t gas               # including callees
    int64_t own               # without callees


cdef class Profile(Observer):
    cdef PcTable* tables
    cdef size_t table_count   # number of tables in use
    cdef size_t table_room    # number of allocated tables
    cdef FunctionCosts* costs
    cdef size_t cost_room     # number of allocated costs
    cdef Opened* opened       # the open frame at each depth
    cdef size_t opened_room   # number of allocated frames
    cdef dict codes           # (address, is init code) -> index in `tables`
    cdef dict functions       # (address, selector) -> index in `costs`

    cdef bint see_step(self, const StepRecord* r) noexcept nogil
    cdef bint see_enter(self, const EnterRecord* r) noexcept nogil
    cdef void see_leave(self, const LeaveRecord* r) noexcept nogil
    cdef int open_frame(self, const EnterRecord* r) except -1
