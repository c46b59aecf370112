"""Measures gas by pc and by function, and records the executed pcs."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport (
    CALLCODE_MESSAGE, CALL_MESSAGE, CREATE2_MESSAGE, CREATE_MESSAGE, Machine,
)
from fastevm.core.interpreter.tracer cimport (
    TRACE_ENTER, TRACE_SELFDESTRUCT, TRACE_STEP, EnterRecord, LeaveRecord, StepRecord, StepTrace,
    TraceHead, tracer_clear,
)
from fastevm.core.primitives.word cimport word_is_zero
from fastevm.tracing.observer cimport Observer


cdef enum:
    CODES_LIMIT = 4096        # most codes per execution
    FUNCTIONS_LIMIT = 65536
    CALL_STIPEND = 2300       # gas of a call with value that the caller does not pay
    FIRST_SIZE = 64           # initial capacity for pcs, codes, functions and frames
    NO_FUNCTION = 0           # index of the costs of frames that call no function


cdef class Profile(Observer):
    """Records every op, which makes execution several times slower."""

    def __cinit__(self, *args: object, **options: object) -> None:
        self.opened = <Opened*>enlarged(NULL, &self.opened_room, 1, sizeof(Opened))
        self.tables = <PcTable*>enlarged(NULL, &self.table_room, 1, sizeof(PcTable))
        self.costs = <FunctionCosts*>enlarged(NULL, &self.cost_room, 1, sizeof(FunctionCosts))
        self.codes, self.functions = {}, {}

    def __init__(self) -> None:
        self.trace = StepTrace(steps=True, calls=True, stack_words=0)

    def __dealloc__(self) -> None:
        cdef size_t i
        for i in range(self.table_count):
            free(self.tables[i].counts)
            free(self.tables[i].gas)
        free(self.tables)
        free(self.costs)
        free(self.opened)

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef size_t at = 0
        cdef const TraceHead* head
        cdef bint went_on = True
        while went_on and at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            at += head.size
            if head.kind == TRACE_STEP:
                went_on = self.see_step(<const StepRecord*>head)
            elif head.kind == TRACE_ENTER:
                went_on = self.see_enter(<const EnterRecord*>head)
            else:
                self.see_leave(<const LeaveRecord*>head)
        tracer_clear(self.trace.c)
        return went_on

    cdef bint see_step(self, const StepRecord* r) noexcept nogil:
        cdef Opened* f = &self.opened[r.head.depth]
        cdef PcTable* t = &self.tables[f.table]
        if r.pc >= t.size and not grow(t, r.pc):
            self.starved = True
            return False
        t.counts[r.pc] += 1
        t.gas[r.pc] += r.gas_cost
        f.last_pc = r.pc
        f.has_steps = True
        return True

    # Processes the start of a frame. Gas passed to the callee counts for the callee, not the
    # caller.
    cdef bint see_enter(self, const EnterRecord* r) noexcept nogil:
        cdef Opened* caller = &self.opened[r.head.depth - 1]
        cdef int64_t* gas
        if r.head.depth > 1 and caller.has_steps:
            gas = self.tables[caller.table].gas + caller.last_pc
            gas[0] -= r.gas - stipend_of(r)
        with gil:
            try:
                self.open_frame(r)
                return True
            except Exception as error:
                self.error = error
                return False

    cdef int open_frame(self, const EnterRecord* r) except -1:
        cdef Opened* f
        cdef bint creates = r.message_kind in (CREATE_MESSAGE, CREATE2_MESSAGE)
        data = (<const char*>r + sizeof(EnterRecord))[:4] if r.data_size >= 4 else b""
        address = r.recipient.b[:20]
        self.opened = <Opened*>enlarged(
            self.opened, &self.opened_room, r.head.depth + 1, sizeof(Opened)
        )
        f = &self.opened[r.head.depth]
        memset(f, 0, sizeof(Opened))
        f.stipend = stipend_of(r)
        f.table = <size_t>self.codes.setdefault((address, creates), len(self.codes))
        if f.table >= CODES_LIMIT:
            raise MemoryError(f"a profile of more than {CODES_LIMIT} codes")
        self.tables = <PcTable*>enlarged(
            self.tables, &self.table_room, f.table + 1, sizeof(PcTable)
        )
        self.table_count = <size_t>len(self.codes)
        f.function = NO_FUNCTION
        if r.message_kind != TRACE_SELFDESTRUCT:
            key = (address, None if creates else data)
            f.function = <size_t>self.functions.setdefault(key, len(self.functions) + 1)
        if f.function > FUNCTIONS_LIMIT:
            raise MemoryError(f"a profile of more than {FUNCTIONS_LIMIT} functions")
        self.costs = <FunctionCosts*>enlarged(
            self.costs, &self.cost_room, f.function + 1, sizeof(FunctionCosts)
        )
        return 0

    cdef void see_leave(self, const LeaveRecord* r) noexcept nogil:
        cdef Opened* f = &self.opened[r.head.depth]
        cdef FunctionCosts* costs = &self.costs[f.function]
        costs.calls += 1
        costs.gas += r.gas_used
        costs.own += r.gas_used - f.children
        if r.head.depth > 1:
            (f - 1).children += r.gas_used - f.stipend

    def pcs(self, bint creates) -> dict[bytes, list[int]]:
        """Returns the executed pcs by address.

        ``creates``: whether to return pcs of init code, not of code.
        """
        cdef PcTable* t
        cdef size_t pc
        found = {}
        for (address, is_init), index in self.codes.items():
            t = &self.tables[<size_t>index]
            if is_init == creates and t.size != 0:
                found[address] = [pc for pc in range(t.size) if t.counts[pc] != 0]
        return found

    def gas_by_pc(self, bint creates) -> dict[bytes, dict[int, dict[str, int]]]:
        """Returns address -> executed pc -> ``count`` of executions and their ``gas``."""
        cdef PcTable* t
        cdef size_t pc
        found = {}
        for (address, is_init), index in self.codes.items():
            t = &self.tables[<size_t>index]
            if is_init == creates and t.size != 0:
                found[address] = {
                    pc: {"count": t.counts[pc], "gas": t.gas[pc]}
                    for pc in range(t.size) if t.counts[pc] != 0
                }
        return found

    def calls(self) -> dict[tuple[bytes, bytes | None], tuple[int, int, int]]:
        """Returns calls, gas, and gas without callees, by (address, selector).

        The selector of a creation is None.
        """
        cdef FunctionCosts* costs
        found = {}
        for key, index in self.functions.items():
            costs = &self.costs[<size_t>index]
            found[key] = (costs.calls, costs.gas, costs.own)
        return found


cdef void* enlarged(void* items, size_t* room, size_t wanted, size_t size) except NULL:
    """Returns the array, enlarged to hold ``wanted`` items. New items are zero."""
    cdef size_t more = room[0] if room[0] != 0 else FIRST_SIZE
    cdef void* found
    if wanted <= room[0]:
        return items
    while more < wanted:
        more *= 2
    found = realloc(items, more * size)
    if found == NULL:
        raise MemoryError
    memset(<char*>found + room[0] * size, 0, (more - room[0]) * size)
    room[0] = more
    return found


cdef bint grow(PcTable* t, uint64_t pc) noexcept nogil:
    cdef size_t size = t.size * 2 if t.size != 0 else FIRST_SIZE
    cdef void* found
    while size <= pc:
        size *= 2
    found = realloc(t.counts, size * sizeof(uint64_t))
    if found == NULL:
        return False
    t.counts = <uint64_t*>found
    found = realloc(t.gas, size * sizeof(int64_t))
    if found == NULL:
        return False
    t.gas = <int64_t*>found
    memset(t.counts + t.size, 0, (size - t.size) * sizeof(uint64_t))
    memset(t.gas + t.size, 0, (size - t.size) * sizeof(int64_t))
    t.size = size
    return True


cdef int64_t stipend_of(const EnterRecord* r) noexcept nogil:
    if r.message_kind != CALL_MESSAGE and r.message_kind != CALLCODE_MESSAGE:
        return 0
    return 0 if r.head.depth == 1 or word_is_zero(&r.value) else CALL_STIPEND
