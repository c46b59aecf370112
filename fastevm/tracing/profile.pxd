# Measures the gas of the opcodes of each code.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.interpreter.tracer cimport EnterRecord, LeaveRecord, StepRecord
from fastevm.tracing.observer cimport Observer


# Executions and gas of each pc of a code.
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
    int64_t stipend           # part of its gas that the caller has not paid
    int64_t children          # gas of child frames paid by this frame


cdef struct FunctionCosts:
    uint64_t calls
    int64_t gas
    int64_t own


cdef class Profile(Observer):
    cdef PcTable* tables
    cdef size_t table_count   # tables with a code
    cdef size_t table_room    # allocated tables
    cdef FunctionCosts* costs
    cdef size_t cost_room     # allocated costs
    cdef Opened* opened       # by depth
    cdef size_t opened_room   # allocated frames
    cdef dict codes           # (address, is init code) -> index in `tables`
    cdef dict functions       # (address, selector) -> index in `costs`

    cdef bint see_step(self, const StepRecord* r) noexcept nogil
    cdef bint see_enter(self, const EnterRecord* r) noexcept nogil
    cdef void see_leave(self, const LeaveRecord* r) noexcept nogil
    cdef int open_frame(self, const EnterRecord* r) except -1
