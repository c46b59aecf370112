"""Loggers of steps: struct logs of debug_trace* and EIP-3155 lines.

The loggers render JSON text during execution, so step records are not kept. Long text is written to
a spool, if there is one.
"""

from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.interpreter.machine cimport Frame, Machine, status_text
from fastevm.core.interpreter.opcodes cimport (
    CALL,
    CALLCODE,
    CREATE,
    CREATE2,
    DELEGATECALL,
    EXP,
    LOG0,
    LOG4,
    REVERT,
    SELFDESTRUCT,
    SLOAD,
    SSTORE,
    STATICCALL,
)
from fastevm.core.interpreter.status cimport (
    OUT_OF_GAS,
    RUNNING,
    STACK_OVERFLOW,
    STACK_UNDERFLOW,
    STOPPED,
    Status,
)
from fastevm.core.interpreter.tracer cimport (
    TRACE_ENTER,
    TRACE_LEAVE,
    TRACE_STEP,
    EnterRecord,
    LeaveRecord,
    StepRecord,
    StepTrace,
    TraceHead,
    Tracer,
    tracer_clear,
)
from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_hex,
    json_number,
    json_put,
    json_quantity,
    json_quantity_word,
)
from fastevm.core.primitives.word cimport Word, word_fits64
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.world cimport Slot, world_slot
from fastevm.tracing.seen_storage cimport seen_belongs, seen_first, seen_free, seen_put
from fastevm.tracing.text_observer cimport SPILL_AT, TextObserver

from typing import TextIO

from fastevm.core.simulation.halt_messages import halt_message
from fastevm.core.spec.opcodes import OPCODES
from fastevm.tracing.spool import SpooledText
from fastevm.tracing.values import TRACE_BYTES_LIMIT, StepOptions


cdef enum:
    FLUSH_AT = 256 * 1024


# ----------------------------------------------------------------------------------------------
# names of opcodes, messages of halts

# Names of all 256 bytes, defined or not; the module owns the texts.
cdef const char* OPCODE_NAMES[256]

# go-ethereum uses the pre-merge name of 0x44, on which clients depend.
FORMER_NAMES = {"PREVRANDAO": "DIFFICULTY"}
MNEMONICS = {op.value: FORMER_NAMES.get(op.mnemonic, op.mnemonic) for op in OPCODES}
NAME_TEXTS = [
    MNEMONICS.get(byte, f"opcode {byte:#x} not defined").encode() for byte in range(256)
]


cdef int fill_opcode_names() except -1:
    cdef bytes text
    cdef size_t byte
    for byte in range(256):
        text = NAME_TEXTS[byte]
        OPCODE_NAMES[byte] = text
    return 0


fill_opcode_names()


cdef const char* opcode_name(uint8_t op) noexcept nogil:
    return OPCODE_NAMES[op]


# Returns the error message of a step that halts its frame.
cdef bytes step_halt_message(const StepRecord* step):
    text = status_text(<Status>step.status).decode("ascii")
    return halt_message(text, step.op, step.stack_height).encode("ascii")


cdef bytes frame_end_message(const LeaveRecord* frame):
    if frame.status == STOPPED:
        return b""
    text = status_text(<Status>frame.status).decode("ascii")
    return halt_message(text, frame.halt_opcode, frame.halt_height).encode("ascii")


# ----------------------------------------------------------------------------------------------
# contents of a step

cdef inline const Word* stack_of(const StepRecord* step) noexcept nogil:
    return <const Word*>(<const uint8_t*>step + sizeof(StepRecord))


cdef inline const uint8_t* memory_of(const StepRecord* step) noexcept nogil:
    return <const uint8_t*>(stack_of(step) + step.stack_words)


cdef inline const uint8_t* return_data_of(const StepRecord* step) noexcept nogil:
    return memory_of(step) + (step.memory_size if step.has_memory else 0)


cdef int64_t gas_of_next_frame(const StepRecord* step, const uint8_t* end) noexcept nogil:
    cdef const uint8_t* next = <const uint8_t*>step + step.head.size
    cdef const EnterRecord* frame = <const EnterRecord*>next
    return frame.gas if next < end and frame.head.kind == TRACE_ENTER else 0


# Returns the cost of a step whose stack is too small or too full. go-ethereum shows the static
# price of the op, and zero for the ops named below.
cdef int64_t static_cost(const StepRecord* step, const Schedule* s) noexcept nogil:
    if step.op == EXP or step.op == SSTORE or LOG0 <= step.op <= LOG4:
        return 0
    if step.op == SLOAD and s.has_access_lists:
        return 0
    return s.gas[step.op]


# Returns the cost of an op that ran out of gas. If the memory address is beyond any payable size,
# the record has the gas left plus one, and the static price is shown.
cdef int64_t unpaid_cost(const StepRecord* step, const Schedule* s) noexcept nogil:
    cdef const Word* top = stack_of(step)
    if step.gas_cost == step.gas + 1 and step.gas >= static_cost(step, s):
        return static_cost(step, s)
    if (
        step.op == CALL or step.op == CALLCODE or step.op == DELEGATECALL or step.op == STATICCALL
    ) and word_fits64(top) and (top.d[0] >> 62) == 0:
        return step.gas_cost + <int64_t>top.d[0]
    return step.gas_cost


cdef int64_t cost_of(
    const StepRecord* step, const Schedule* s, const uint8_t* end
) noexcept nogil:
    if step.status == STACK_UNDERFLOW or step.status == STACK_OVERFLOW:
        return static_cost(step, s)
    if step.status == OUT_OF_GAS:
        return unpaid_cost(step, s)
    if step.op == CREATE or step.op == CREATE2:
        return step.gas_cost - gas_of_next_frame(step, end)
    return step.gas_cost


cdef void put_stack(JsonText* w, const StepRecord* step) noexcept nogil:
    cdef uint32_t at = step.stack_words
    json_put(w, b"[")
    while at != 0:
        at -= 1
        json_quantity_word(w, &stack_of(step)[at])
        if at != 0:
            json_put(w, b",")
    json_put(w, b"]")


cdef class StepObserver(TextObserver):
    """Renders each step after its execution."""

    def __cinit__(self, *args: object, **options: object) -> None:
        # With a limit of one byte execution stops before every op.
        self.trace = StepTrace(steps=True, calls=True, limit=1)
        self.budget = TRACE_BYTES_LIMIT

    @property
    def kept(self) -> int:
        """Size of the rendered text in bytes."""
        return self.spilled + self.writer.out.size

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef Tracer* t = self.trace.c
        cdef size_t at = 0
        cdef const TraceHead* head
        self.schedule = m.schedule
        self.end = t.records.bytes + t.records.size
        self.refund = m.world.refund
        while at < t.records.size:
            head = <const TraceHead*>(t.records.bytes + at)
            if head.kind == TRACE_STEP:
                if not self.render(<const StepRecord*>head):
                    return False
            elif head.kind == TRACE_LEAVE and head.depth == 1:
                if not self.close(<const LeaveRecord*>head):
                    return False
            at += head.size
        tracer_clear(t)
        if self.writer.starved or not self.look_ahead(m):
            self.starved = True
            return False
        if self.spilled + self.writer.out.size > self.budget:
            self.overflowed = True
            return False
        return True

    # Returns the refund counter after the op, as go-ethereum shows it.
    cdef uint64_t refund_of(self, const StepRecord* step) noexcept nogil:
        cdef int64_t refund = step.refund
        if step.status == RUNNING and (step.op == SSTORE or step.op == SELFDESTRUCT):
            refund = self.refund
        return <uint64_t>refund if refund > 0 else 0

    cdef bint render(self, const StepRecord* step) noexcept nogil:
        return True

    cdef bint close(self, const LeaveRecord* frame) noexcept nogil:
        return True

    # False if out of memory.
    cdef bint look_ahead(self, Machine* m) noexcept nogil:
        return True

    cdef bytes halt_text(self, const StepRecord* step):
        return step_halt_message(step)

    cdef bint put_halt(self, const StepRecord* step) noexcept nogil:
        with gil:
            try:
                text = self.halt_text(step)
                json_put(&self.writer, b',"error":"')
                json_put(&self.writer, text)
                json_put(&self.writer, b'"')
                return True
            except Exception as error:
                self.error = error
                return False


cdef class StructLogger(StepObserver):
    """The struct logs of debug_trace*, in go-ethereum's format."""

    def __init__(
        self, options: StepOptions, *, size_t budget=TRACE_BYTES_LIMIT, spool: object = None
    ) -> None:
        self.budget = budget
        self.spool, self.spills, self.opening = spool, spool is not None, b"["
        self.limit = options.limit
        self.shows_stack = options.stack
        self.sees_storage = options.storage
        self.trace.c.stack_words = UINT32_MAX if options.stack else 1
        self.trace.c.memory = options.memory
        self.trace.c.return_data = options.return_data

    def __dealloc__(self) -> None:
        seen_free(&self.seen)

    cdef bint look_ahead(self, Machine* m) noexcept nogil:
        cdef Frame* f
        cdef uint8_t op
        cdef Slot* slot
        self.accesses_storage = False
        if not self.sees_storage or m.depth == 0:
            return True
        f = &m.frames[m.depth - 1]
        if f.sp >= f.base:
            return True
        op = f.pc[0]
        self.contract = f.account.address
        if op == SLOAD:
            self.accesses_storage = True
            slot = world_slot(m.world, f.account, &f.sp[0])
            return slot != NULL and seen_put(
                &self.seen, &self.contract, &f.sp[0], &slot.current
            )
        if op == SSTORE and f.sp + 1 < f.base:
            self.accesses_storage = True
            return seen_put(&self.seen, &self.contract, &f.sp[0], &f.sp[1])
        return True

    cdef bint render(self, const StepRecord* step) noexcept nogil:
        cdef JsonText* w = &self.writer
        if self.limit != 0 and self.spilled + w.out.size > self.limit:
            return True
        json_put(w, b'{"pc":' if self.spilled + w.out.size == 0 else b',{"pc":')
        json_number(w, step.pc)
        json_put(w, b',"op":"')
        json_put(w, OPCODE_NAMES[step.op])
        json_put(w, b'","gas":')
        json_number(w, shown_gas(step.gas))
        json_put(w, b',"gasCost":')
        json_number(w, shown_gas(cost_of(step, self.schedule, self.end)))
        json_put(w, b',"depth":')
        json_number(w, step.head.depth)
        # As in go-ethereum, a step only shows errors that are known before the op is executed.
        if OUT_OF_GAS <= step.status <= STACK_OVERFLOW and not self.put_halt(step):
            return False
        self.put_details(step)
        json_put(w, b"}")
        return not self.spills or w.out.size < SPILL_AT or self.spill()

    cdef void put_details(self, const StepRecord* step) noexcept nogil:
        cdef JsonText* w = &self.writer
        if self.shows_stack:
            json_put(w, b',"stack":')
            put_stack(w, step)
        if step.has_return and step.return_size != 0:
            json_put(w, b',"returnData":')
            json_hex(w, return_data_of(step), step.return_size)
        if step.has_memory and step.memory_size != 0:
            json_put(w, b',"memory":')
            self.put_memory(memory_of(step), step.memory_size)
        if self.accesses_storage:
            self.put_storage()
        if self.refund_of(step) != 0:
            json_put(w, b',"refund":')
            json_number(w, self.refund_of(step))

    cdef void put_memory(self, const uint8_t* memory, size_t size) noexcept nogil:
        cdef size_t at = 0
        json_put(&self.writer, b"[")
        while at < size:
            if at != 0:
                json_put(&self.writer, b",")
            json_hex(&self.writer, memory + at, 32)
            at += 32
        json_put(&self.writer, b"]")

    cdef void put_storage(self) noexcept nogil:
        cdef JsonText* w = &self.writer
        cdef size_t first = seen_first(&self.seen, &self.contract), at = first
        json_put(w, b',"storage":{')
        while at < self.seen.count and seen_belongs(&self.seen.slots[at], &self.contract):
            if at != first:
                json_put(w, b",")
            json_hex(w, self.seen.slots[at].location + 20, 32)
            json_put(w, b":")
            json_hex(w, self.seen.slots[at].value, 32)
            at += 1
        json_put(w, b"}")

    def text(self) -> object:
        """Returns the steps as a JSON array: bytes or SpooledText. Raises TracingError."""
        cdef size_t size = self.writer.out.size
        if self.spilled == 0 and (not self.spills or self.spool.fits_in_memory(size)):
            return b"[" + self.writer.out.bytes[:size] + b"]" if size else b"[]"
        json_put(&self.writer, b"]")
        self.spill_now()
        buffer_free(&self.writer.out)
        return SpooledText(self.spool, self.start, self.spilled + 1)


cdef class Eip3155Logger(StepObserver):
    """Writes EIP-3155 lines to a stream, formatted as by ``evm statetest --json``.

    ``standard``: whether lines are exactly as in the EIP, without a last line for the top frame.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        bint stack=True,
        bint memory=False,
        bint return_data=False,
        bint standard=False,
    ) -> None:
        self.stream = stream
        self.standard = standard
        self.shows_stack = stack
        self.trace.c.stack_words = UINT32_MAX if stack else 1
        self.trace.c.memory = memory
        self.trace.c.return_data = return_data

    cdef bytes halt_text(self, const StepRecord* step):
        return b"execution reverted" if step.status == 0 else step_halt_message(step)

    cdef bint render(self, const StepRecord* step) noexcept nogil:
        cdef JsonText* w = &self.writer
        json_put(w, b'{"pc":')
        json_number(w, step.pc)
        json_put(w, b',"op":')
        json_number(w, step.op)
        json_put(w, b',"gas":')
        json_quantity(w, shown_gas(step.gas))
        json_put(w, b',"gasCost":')
        json_quantity(w, shown_gas(cost_of(step, self.schedule, self.end)))
        if step.has_memory and step.memory_size != 0:
            json_put(w, b',"memory":')
            json_hex(w, memory_of(step), step.memory_size)
        json_put(w, b',"memSize":')
        json_number(w, step.memory_size)
        return self.render_rest(step)

    cdef bint render_rest(self, const StepRecord* step) noexcept nogil:
        cdef JsonText* w = &self.writer
        json_put(w, b',"stack":')
        if self.shows_stack:
            put_stack(w, step)
        else:
            json_put(w, b"null")
        if step.has_return and (step.return_size != 0 or self.standard):
            json_put(w, b',"returnData":')
            json_hex(w, return_data_of(step), step.return_size)
        json_put(w, b',"depth":')
        json_number(w, step.head.depth)
        json_put(w, b',"refund":')
        if self.standard:
            json_quantity(w, self.refund_of(step))
        else:
            json_number(w, self.refund_of(step))
        json_put(w, b',"opName":"')
        json_put(w, OPCODE_NAMES[step.op])
        json_put(w, b'"')
        if (step.status != 0 or step.op == REVERT) and not self.put_halt(step):
            return False
        json_put(w, b"}\n")
        return w.out.size < FLUSH_AT or self.hand_over()

    # Returns the last line: output and gas used of the top frame, without intrinsic gas and
    # refunds.
    cdef bytes summary_of(self, const LeaveRecord* frame):
        output = (<const char*>frame + sizeof(LeaveRecord))[:frame.data_size]
        error = frame_end_message(frame).decode()
        member = f',"error":"{error}"' if error else ""
        used = f'"gasUsed":"{frame.gas_used:#x}"'
        return f'{{"output":"{output.hex()}",{used}{member}}}\n'.encode()

    cdef bint close(self, const LeaveRecord* frame) noexcept nogil:
        if self.standard:
            return True
        with gil:
            try:
                json_put(&self.writer, self.summary_of(frame))
                return True
            except Exception as error:
                self.error = error
                return False

    cdef bint hand_over(self) noexcept nogil:
        with gil:
            try:
                self.flush()
                return True
            except Exception as error:
                self.error = error
                return False

    def flush(self) -> None:
        """Writes the rendered lines to the stream."""
        if self.writer.out.size:
            text = self.writer.out.bytes[:self.writer.out.size].decode("ascii")
            self.writer.out.size = 0
            self.stream.write(text)
