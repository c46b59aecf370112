"""Which accounts and slots the ops of a run look at, by go-ethereum's rules for its tracers."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.interpreter.machine cimport (
    CREATE2_MESSAGE,
    CREATE_MESSAGE,
    Frame,
    Machine,
)
from fastevm.interpreter.opcodes cimport (
    BALANCE,
    CALL,
    CALLCODE,
    DELEGATECALL,
    EXTCODECOPY,
    EXTCODEHASH,
    EXTCODESIZE,
    SELFDESTRUCT,
    SLOAD,
    SSTORE,
    STATICCALL,
)
from fastevm.interpreter.status cimport OUT_OF_GAS, STACK_OVERFLOW
from fastevm.interpreter.tracer cimport (
    TRACE_ENTER,
    TRACE_STEP,
    EnterRecord,
    StepRecord,
    StepTrace,
    TraceHead,
    tracer_clear,
)
from fastevm.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.primitives.hashes cimport Address
from fastevm.primitives.word cimport Word, word_copy, word_to_address, word_to_int
from fastevm.tracing.observer cimport Observer


cdef enum:
    DIGEST_AT = 1024 * 1024
    TOUCH_LIMIT = 1_000_000      # distinct accounts and slots of one run


cdef enum TouchKind:
    TOUCHES_NOTHING
    TOUCHES_ACCOUNT
    TOUCHES_CALLEE
    TOUCHES_SLOT
    TOUCHES_CREATED


cdef struct Touch:
    TouchKind kind
    Address address
    Word key


cdef class TouchObserver(Observer):
    """Collects what ops touch.

    ``accounts``: looked at, called or left money to; ``callees`` among them those called;
    ``created``: addresses of creations; ``slots``: of each contract. With ``skip_failed`` an op
    without the gas or the stack for it touches nothing.
    """
    cdef bint skips_failed
    cdef Touch next_touch
    cdef Buffer found
    cdef readonly set accounts
    cdef readonly set callees
    cdef readonly set created
    cdef readonly dict slots
    cdef size_t count

    def __cinit__(self, *, bint skip_failed=False) -> None:
        self.trace = StepTrace(steps=True, calls=True, stack_words=0, limit=1)
        self.skips_failed = skip_failed
        self.accounts, self.callees, self.created, self.slots = set(), set(), set(), {}

    def __dealloc__(self) -> None:
        buffer_free(&self.found)

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef const TraceHead* head
        cdef size_t at = 0
        while at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            if head.kind == TRACE_STEP:
                self.step_over(<const StepRecord*>head)
            elif head.kind == TRACE_ENTER:
                self.entered(<const EnterRecord*>head)
            at += head.size
        tracer_clear(self.trace.c)
        self.next_touch.kind = TOUCHES_NOTHING
        if m.depth != 0:
            self.look_ahead(&m.frames[m.depth - 1])
        if self.starved:
            return False
        return self.found.size < DIGEST_AT or self.digest()

    cdef bint finish(self, Machine* m) noexcept nogil:
        return self.observe(m) and self.digest()

    cdef void note(self, const Touch* touch) noexcept nogil:
        if not buffer_append(&self.found, touch, sizeof(Touch)):
            self.starved = True

    cdef void step_over(self, const StepRecord* step) noexcept nogil:
        if self.next_touch.kind == TOUCHES_NOTHING:
            return
        if self.skips_failed and OUT_OF_GAS <= step.status <= STACK_OVERFLOW:
            return
        self.note(&self.next_touch)

    cdef void entered(self, const EnterRecord* frame) noexcept nogil:
        cdef Touch touch
        if frame.message_kind == CREATE_MESSAGE or frame.message_kind == CREATE2_MESSAGE:
            memset(&touch, 0, sizeof(touch))
            touch.kind = TOUCHES_CREATED
            touch.address = frame.recipient
            self.note(&touch)

    cdef void look_ahead(self, const Frame* f) noexcept nogil:
        cdef uint32_t height = <uint32_t>(f.base - f.sp)
        cdef uint8_t op = f.pc[0]
        cdef Touch* touch = &self.next_touch
        if height >= 1 and (op == SLOAD or op == SSTORE):
            touch.kind = TOUCHES_SLOT
            touch.address = f.account.address
            word_copy(&touch.key, &f.sp[0])
        elif height >= 1 and (
            op == EXTCODECOPY or op == EXTCODEHASH or op == EXTCODESIZE or op == BALANCE
            or op == SELFDESTRUCT
        ):
            touch.kind = TOUCHES_ACCOUNT
            word_to_address(&touch.address, &f.sp[0])
        elif height >= 5 and (
            op == CALL or op == CALLCODE or op == DELEGATECALL or op == STATICCALL
        ):
            touch.kind = TOUCHES_CALLEE
            word_to_address(&touch.address, &f.sp[1])

    cdef bint digest(self) noexcept nogil:
        with gil:
            try:
                self.sort_out()
            except Exception as error:
                self.error = error
                return False
        self.overflowed = self.count > TOUCH_LIMIT
        return not self.overflowed

    cdef int sort_out(self) except -1:
        cdef const Touch* touch = <const Touch*>self.found.bytes
        cdef uint64_t i
        for i in range(self.found.size // sizeof(Touch)):
            self.sort_one(&touch[i])
        self.found.size = 0
        self.count = len(self.accounts) + len(self.created) + sum(map(len, self.slots.values()))
        return 0

    cdef int sort_one(self, const Touch* touch) except -1:
        cdef bytes address = touch.address.b[:20]
        if touch.kind == TOUCHES_SLOT:
            self.slots.setdefault(address, set()).add(word_to_int(&touch.key))
        elif touch.kind == TOUCHES_CREATED:
            self.created.add(address)
        else:
            self.accounts.add(address)
            if touch.kind == TOUCHES_CALLEE:
                self.callees.add(address)
        return 0
