"""Keeps the last steps of the newest frame at each depth, in bounded memory."""

from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport (
    TRACE_STEP, StepRecord, StepTrace, TraceHead, tracer_clear,
)
from fastevm.core.primitives.word cimport Word, word_fits64
from fastevm.core.spec.constants cimport CALL_DEPTH_LIMIT
from fastevm.tracing.observer cimport Observer

from typing import NamedTuple


cdef enum:
    KEPT = 128                # steps per frame: 4 KB, so all depths together have at most 4.2 MB
    OPERANDS = 2              # stack words per step
    DEPTHS = CALL_DEPTH_LIMIT + 2


cdef struct KeptStep:
    uint64_t pc
    uint64_t top              # of the stack; UINT64_MAX if the word is larger or missing
    uint64_t second
    uint8_t op


# The newest frame at a depth: a ring of its last steps.
cdef struct FrameTail:
    uint64_t count            # steps of the frame
    uint64_t called_at        # pc of the step after which a deeper frame began
    bint has_called
    KeptStep* steps           # NULL before the first step


class LastStep(NamedTuple):
    """A step before its op.

    ``top`` and ``second`` are stack words, or 2**64 - 1 for larger ones.
    """

    pc: int
    op: int
    top: int
    second: int


cdef inline uint64_t small_word(const StepRecord* r, uint32_t index) noexcept nogil:
    cdef const Word* words = <const Word*>(<const uint8_t*>r + sizeof(StepRecord))
    if index >= r.stack_words or not word_fits64(&words[index]):
        return UINT64_MAX
    return words[index].d[0]


cdef class LastSteps(Observer):
    """Keeps the last 128 steps of the newest frame at each depth.

    After a failure, these are the frames on the path to it, so earlier steps are not needed.
    """

    cdef FrameTail* tails     # by depth, from 1
    cdef uint32_t depth       # of the last step

    def __cinit__(self) -> None:
        self.tails = <FrameTail*>calloc(DEPTHS, sizeof(FrameTail))
        if self.tails == NULL:
            raise MemoryError
        self.depth = 0

    def __init__(self) -> None:
        self.trace = StepTrace(steps=True, calls=False, stack_words=OPERANDS)

    def __dealloc__(self) -> None:
        cdef int i
        if self.tails != NULL:
            for i in range(DEPTHS):
                free(self.tails[i].steps)
        free(self.tails)

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef size_t at = 0
        cdef const TraceHead* head
        cdef bint went_on = True
        while went_on and at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            at += head.size
            if head.kind == TRACE_STEP:
                went_on = self.see_step(<const StepRecord*>head)
        tracer_clear(self.trace.c)
        return went_on

    cdef bint see_step(self, const StepRecord* r) noexcept nogil:
        cdef uint32_t depth = r.head.depth
        cdef FrameTail* tail = &self.tails[depth]
        cdef KeptStep* kept
        if depth > self.depth:
            self.begin(depth)
        if tail.steps == NULL:
            tail.steps = <KeptStep*>calloc(KEPT, sizeof(KeptStep))
            if tail.steps == NULL:
                self.starved = True
                return False
        kept = &tail.steps[tail.count % KEPT]
        kept.pc, kept.op = r.pc, r.op
        kept.top, kept.second = small_word(r, 0), small_word(r, 1)
        tail.count += 1
        self.depth = depth
        return True

    # Starts the frame at `depth`. A frame between, if any, has no steps: a native contract.
    cdef void begin(self, uint32_t depth) noexcept nogil:
        cdef FrameTail* caller = &self.tails[self.depth]
        cdef uint32_t i
        if self.depth > 0:
            caller.has_called = True
            caller.called_at = caller.steps[(caller.count - 1) % KEPT].pc
        for i in range(self.depth + 1, depth + 1):
            self.tails[i].count = 0
            self.tails[i].has_called = False

    def steps(self, size_t depth) -> list[LastStep]:
        """Returns the last steps of the newest frame at a depth (1: the top frame), in order."""
        cdef const FrameTail* tail
        cdef const KeptStep* kept
        cdef uint64_t i
        if not 0 < depth < DEPTHS:
            return []
        tail = &self.tails[depth]
        found = []
        for i in range(tail.count - min(tail.count, <uint64_t>KEPT), tail.count):
            kept = &tail.steps[i % KEPT]
            found.append(LastStep(kept.pc, kept.op, kept.top, kept.second))
        return found

    def called_at(self, size_t depth) -> int | None:
        """Returns the pc of the last call from the frame at a depth into a frame that has steps."""
        if not 0 < depth < DEPTHS or not self.tails[depth].has_called:
            return None
        return self.tails[depth].called_at
