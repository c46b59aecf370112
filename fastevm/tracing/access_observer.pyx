"""An observer of the accounts and slots that the ops of a run access.

What counts as an access follows go-ethereum's access list tracer and prestate tracer.
"""

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
    COLLECT_AT = 1024 * 1024
    ACCESS_LIMIT = 1_000_000      # distinct accounts and slots of one run


cdef enum AccessKind:
    NO_ACCESS
    ACCOUNT_ACCESS
    CALLEE_ACCESS
    SLOT_ACCESS
    CREATION


cdef struct Access:
    AccessKind kind
    Address address
    Word key


cdef class AccessObserver(Observer):
    """Collects what ops access.

    ``accounts``: read, called or beneficiaries of SELFDESTRUCT; ``callees``: those called;
    ``created``: addresses of creations; ``slots``: by contract. ``skip_failed``: leave out ops that
    halt for lack of gas or stack.
    """
    cdef bint skips_failed
    cdef Access next_access
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
        self.next_access.kind = NO_ACCESS
        if m.depth != 0:
            self.look_ahead(&m.frames[m.depth - 1])
        if self.starved:
            return False
        return self.found.size < COLLECT_AT or self.collect()

    cdef bint finish(self, Machine* m) noexcept nogil:
        return self.observe(m) and self.collect()

    cdef void note(self, const Access* access) noexcept nogil:
        if not buffer_append(&self.found, access, sizeof(Access)):
            self.starved = True

    cdef void step_over(self, const StepRecord* step) noexcept nogil:
        if self.next_access.kind == NO_ACCESS:
            return
        if self.skips_failed and OUT_OF_GAS <= step.status <= STACK_OVERFLOW:
            return
        self.note(&self.next_access)

    cdef void entered(self, const EnterRecord* frame) noexcept nogil:
        cdef Access access
        if frame.message_kind == CREATE_MESSAGE or frame.message_kind == CREATE2_MESSAGE:
            memset(&access, 0, sizeof(access))
            access.kind = CREATION
            access.address = frame.recipient
            self.note(&access)

    cdef void look_ahead(self, const Frame* f) noexcept nogil:
        cdef uint32_t height = <uint32_t>(f.base - f.sp)
        cdef uint8_t op = f.pc[0]
        cdef Access* access = &self.next_access
        if height >= 1 and (op == SLOAD or op == SSTORE):
            access.kind = SLOT_ACCESS
            access.address = f.account.address
            word_copy(&access.key, &f.sp[0])
        elif height >= 1 and (
            op == EXTCODECOPY or op == EXTCODEHASH or op == EXTCODESIZE or op == BALANCE
            or op == SELFDESTRUCT
        ):
            access.kind = ACCOUNT_ACCESS
            word_to_address(&access.address, &f.sp[0])
        elif height >= 5 and (
            op == CALL or op == CALLCODE or op == DELEGATECALL or op == STATICCALL
        ):
            access.kind = CALLEE_ACCESS
            word_to_address(&access.address, &f.sp[1])

    cdef bint collect(self) noexcept nogil:
        with gil:
            try:
                self.collect_all()
            except Exception as error:
                self.error = error
                return False
        self.overflowed = self.count > ACCESS_LIMIT
        return not self.overflowed

    cdef int collect_all(self) except -1:
        cdef const Access* access = <const Access*>self.found.bytes
        cdef uint64_t i
        for i in range(self.found.size // sizeof(Access)):
            self.collect_one(&access[i])
        self.found.size = 0
        self.count = len(self.accounts) + len(self.created) + sum(map(len, self.slots.values()))
        return 0

    cdef int collect_one(self, const Access* access) except -1:
        cdef bytes address = access.address.b[:20]
        if access.kind == SLOT_ACCESS:
            self.slots.setdefault(address, set()).add(word_to_int(&access.key))
        elif access.kind == CREATION:
            self.created.add(address)
        else:
            self.accounts.add(address)
            if access.kind == CALLEE_ACCESS:
                self.callees.add(address)
        return 0
