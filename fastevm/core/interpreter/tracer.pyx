"""The trace buffer, and its records as Python values."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t
from libc.string cimport memset

from typing import Any

from fastevm.core.interpreter.machine cimport status_text
from fastevm.core.interpreter.status cimport REVERTED, RUNNING, STOPPED, Status
from fastevm.core.primitives.buffer cimport buffer_free, buffer_reserve
from fastevm.core.primitives.word cimport word_to_int

from fastevm.core.spec.opcodes import BY_VALUE


cdef enum:
    DEFAULT_LIMIT = 16 * 1024 * 1024


MESSAGE_KINDS = (
    "CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2", "SELFDESTRUCT"
)


cdef Tracer* tracer_new() noexcept nogil:
    cdef Tracer* t = <Tracer*>PyMem_RawCalloc(1, sizeof(Tracer))
    if t != NULL:
        t.steps = True
        t.stack_words = UINT32_MAX
        t.limit = DEFAULT_LIMIT
    return t


cdef void tracer_free(Tracer* t) noexcept nogil:
    if t != NULL:
        buffer_free(&t.records)
        PyMem_RawFree(t)


cdef void tracer_clear(Tracer* t) noexcept nogil:
    t.records.size = 0
    t.step_is_open = False


cdef TraceHead* tracer_claim(
    Tracer* t, TraceKind kind, size_t record, size_t payload
) noexcept nogil:
    cdef size_t at = t.records.size
    cdef size_t size = record + ((payload + 7) & ~<size_t>7)
    cdef TraceHead* head
    if not buffer_reserve(&t.records, at + size):
        return NULL
    t.records.size = at + size
    head = <TraceHead*>(t.records.bytes + at)
    memset(head, 0, record)
    head.kind = kind
    head.size = size
    return head


cdef bytes payload_bytes(const uint8_t* at, size_t size):
    return (<const char*>at)[:size]


cdef object status_words(int status):
    if status == RUNNING or status == STOPPED:
        return None
    return status_text(<Status>status).decode("ascii")


cdef dict step_values(const StepRecord* r):
    cdef const uint8_t* at = <const uint8_t*>r + sizeof(StepRecord)
    cdef uint32_t i
    cdef list stack = [word_to_int(<const Word*>at + i) for i in range(r.stack_words)]
    stack.reverse()
    at += r.stack_words * sizeof(Word)
    op = BY_VALUE.get(r.op)
    values = {
        "kind": "step",
        "pc": r.pc,
        "op": r.op,
        "name": op.mnemonic if op is not None else f"opcode 0x{r.op:x} not defined",
        "gas": r.gas,
        "gas_cost": r.gas_cost,
        "depth": r.head.depth,
        "stack": stack,
        "stack_height": r.stack_height,
        "memory_size": r.memory_size,
        "refund": r.refund,
        "return_data_size": r.return_size,
        "error": status_words(r.status),
    }
    if r.has_memory:
        values["memory"] = payload_bytes(at, r.memory_size)
        at += r.memory_size
    if r.has_return:
        values["return_data"] = payload_bytes(at, r.return_size)
    return values


cdef dict enter_values(const EnterRecord* r):
    return {
        "kind": "enter",
        "depth": r.head.depth,
        "type": MESSAGE_KINDS[r.message_kind],
        "from": payload_bytes(r.caller.b, 20),
        "to": payload_bytes(r.recipient.b, 20),
        "value": word_to_int(&r.value),
        "gas": r.gas,
        "log_count": r.log_count,
        "input": payload_bytes(<const uint8_t*>r + sizeof(EnterRecord), r.data_size),
    }


cdef dict leave_values(const LeaveRecord* r):
    return {
        "kind": "leave",
        "depth": r.head.depth,
        "gas_used": r.gas_used,
        "log_count": r.log_count,
        "halt_opcode": r.halt_opcode,
        "halt_height": r.halt_height,
        "output": payload_bytes(<const uint8_t*>r + sizeof(LeaveRecord), r.data_size),
        "reverted": r.status == REVERTED,
        "error": status_words(r.status),
    }


cdef dict access_values(const AccessRecord* r):
    return {
        "kind": "access",
        "depth": r.head.depth,
        "address": payload_bytes(r.address.b, 20),
        "slot": word_to_int(&r.key) if r.is_slot else None,
    }


cdef class StepTrace:
    """The trace records of an execution.

    - ``steps``: whether to record every op, which slows down execution
    - ``calls``: whether to record the start and end of each frame
    - ``accesses``: whether to record the accounts and slots that native contracts read or write
    - ``stack_words``: maximum number of stack words per step, from the top; None: the whole stack
    - ``memory`` and ``return_data``: whether steps include the memory and the return data
    - ``limit``: bytes of records after which execution pauses until `drain` is called; one record
      always fits
    """

    def __cinit__(
        self, *, bint steps=True, bint calls=False, stack_words: int | None = None,
        bint memory=False, bint return_data=False, size_t limit=DEFAULT_LIMIT,
        bint accesses=False,
    ):
        self.c = tracer_new()
        if self.c == NULL:
            raise MemoryError("no memory for a trace")
        self.c.steps = steps
        self.c.calls = calls
        if stack_words is not None:
            self.c.stack_words = stack_words
        self.c.memory = memory
        self.c.return_data = return_data
        self.c.accesses = accesses
        self.c.limit = limit if limit != 0 else 1

    def __dealloc__(self):
        tracer_free(self.c)

    def drain(self) -> list[dict[str, Any]]:
        """Returns all records since the last call, oldest first, and empties the buffer.

        A step has: pc, op, name, gas (before the op), gas_cost, depth (1 = top frame), stack (ints,
        bottom first), stack_height, memory_size, refund, return_data_size, error, and memory and
        return_data if the trace includes them.
        """
        records, _ = self.read(0, self.c.records.size)
        tracer_clear(self.c)
        return records

    def read(self, size_t at, size_t most) -> tuple[list[dict[str, Any]], int]:
        """Returns up to ``most`` records from byte offset ``at`` on, and the offset after them.

        The records have the form that `drain` returns, and stay in the buffer.
        """
        cdef const TraceHead* head
        cdef list records = []
        while at < self.c.records.size and most:
            most -= 1
            head = <const TraceHead*>(self.c.records.bytes + at)
            if head.kind == TRACE_STEP:
                records.append(step_values(<const StepRecord*>head))
            elif head.kind == TRACE_ENTER:
                records.append(enter_values(<const EnterRecord*>head))
            elif head.kind == TRACE_ACCESS:
                records.append(access_values(<const AccessRecord*>head))
            else:
                records.append(leave_values(<const LeaveRecord*>head))
            at += head.size
        return records, at
