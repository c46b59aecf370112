# The ops of a transaction in Parity's vmTrace form.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.interpreter.tracer cimport EnterRecord, StepRecord
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.constants cimport CALL_DEPTH_LIMIT
from fastevm.tracing.text_observer cimport TextObserver


cdef enum:
    MOST_FRAMES = CALL_DEPTH_LIMIT + 3


# The memory and the slot that an op will write, recorded before its execution.
cdef struct Effect:
    uint64_t offset           # offset in memory
    uint64_t size             # bytes of memory; 0 = none
    bint stores               # the op writes the slot `key`
    Word key
    Word value


# The last op of a frame; its object stays open until its effect is known.
cdef struct OpenOp:
    bint is_open
    bint has_sub
    bint halted
    uint8_t op
    int64_t gas_left          # gas after the op, if the op ends the frame
    Effect effect


cdef class VmTracer(TextObserver):
    cdef size_t budget        # maximum size of the text in bytes
    cdef Effect next_effect
    cdef OpenOp[MOST_FRAMES] ops
    cdef bint[MOST_FRAMES] has_ops
    cdef bint[MOST_FRAMES] is_shown   # False for the frame of a SELFDESTRUCT, which has no ops

    cdef void look_ahead(self, const Frame* f) noexcept nogil
    cdef void put_step(
        self, const StepRecord* step, const Machine* m, const uint8_t* end
    ) noexcept nogil
    cdef void put_frame(self, const EnterRecord* entered, const Frame* running) noexcept nogil
    cdef void end_frame(self, uint64_t depth) noexcept nogil
    cdef void close_op(self, OpenOp* op, const Frame* f) noexcept nogil
    cdef void put_effect(self, const OpenOp* op, const Frame* f) noexcept nogil
