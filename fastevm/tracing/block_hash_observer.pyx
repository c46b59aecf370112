"""An observer that finds reads of unknown block hashes."""

from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.opcodes cimport BLOCKHASH
from fastevm.core.interpreter.status cimport OUT_OF_GAS, STACK_OVERFLOW
from fastevm.core.interpreter.tracer cimport (
    TRACE_STEP, StepRecord, StepTrace, TraceHead, tracer_clear,
)
from fastevm.core.primitives.word cimport Word, word_fits64
from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.tracing.observer cimport Observer

from collections.abc import Container


cdef class BlockHashObserver(Observer):
    """Finds the last block whose hash BLOCKHASH read although it is not known.

    ``number``: the number of the executed block. ``known``: the numbers of the blocks whose hashes
    are known.
    """

    cdef uint64_t number
    cdef bint[BLOCK_HASH_WINDOW] known   # index: distance to the parent
    cdef bint has_missed
    cdef uint64_t missed

    def __init__(self, uint64_t number, known: Container[int]) -> None:
        cdef uint64_t i
        self.trace = StepTrace(steps=True, calls=False, stack_words=1)
        self.number = number
        for i in range(BLOCK_HASH_WINDOW):
            self.known[i] = i < number and number - 1 - i in known

    @property
    def missing(self) -> int | None:
        """The number of the last block whose unknown hash was read, or None."""
        return self.missed if self.has_missed else None

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef size_t at = 0
        cdef const TraceHead* head
        while at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            at += head.size
            if head.kind == TRACE_STEP:
                self.check(<const StepRecord*>head)
        tracer_clear(self.trace.c)
        return True

    cdef void check(self, const StepRecord* step) noexcept nogil:
        cdef const Word* asked = <const Word*>(<const uint8_t*>step + sizeof(StepRecord))
        cdef uint64_t back
        if step.op != BLOCKHASH or OUT_OF_GAS <= step.status <= STACK_OVERFLOW:
            return
        if step.stack_words == 0 or not word_fits64(asked) or asked.d[0] >= self.number:
            return
        back = self.number - 1 - asked.d[0]
        if back < BLOCK_HASH_WINDOW and not self.known[back]:
            self.has_missed, self.missed = True, asked.d[0]
