# Calls the hooks of a machine.
from libc.stdint cimport uint8_t

from fastevm.core.interpreter.tracer cimport TraceHead
from fastevm.tracing.observer cimport Observer


cdef class HookObserver(Observer):
    cdef object enter, leave, step, console
    cdef bint hears_calls     # a hook needs the records of all frames
    cdef list addresses       # code addresses of the open frames

    # Whether a hook needs this record.
    cdef bint is_wanted(self, const TraceHead* head) noexcept nogil
    cdef int hear(self, const TraceHead* head) except -1
    cdef int hear_enter(self, const TraceHead* head) except -1
    cdef int hear_step(self, const TraceHead* head) except -1
    # Whether the step hook wants this opcode.
    cdef bint is_chosen(self, uint8_t op) noexcept nogil
