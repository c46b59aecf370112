"""The ops of a transaction in Parity's vmTrace form, written as JSON text during execution.

The JSON object of an op stays open until the op ends: for a call it contains the ops of the callee.
``used`` is the gas left after the op, ``mem`` the part of memory that the op wrote (or read, for
MLOAD), ``push`` the stack items that it pushed. ``ex`` is null if the op halted. Sources:
OpenEthereum and Erigon.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.interpreter.opcodes cimport (
    CALL,
    CALLCODE,
    CALLDATACOPY,
    CODECOPY,
    DELEGATECALL,
    EXTCODECOPY,
    MCOPY,
    MLOAD,
    MSTORE,
    MSTORE8,
    RETURNDATACOPY,
    SSTORE,
    STATICCALL,
)
from fastevm.core.interpreter.status cimport REVERTED, RUNNING, STOPPED
from fastevm.core.interpreter.tracer cimport (
    TRACE_ENTER,
    TRACE_SELFDESTRUCT,
    TRACE_STEP,
    EnterRecord,
    StepRecord,
    StepTrace,
    TraceHead,
    Tracer,
    tracer_clear,
)
from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.core.primitives.word cimport Word, word_copy, word_fits64
from fastevm.tracing.step_loggers cimport cost_of, opcode_name, shown_gas
from fastevm.tracing.text_observer cimport SPILL_AT, TextObserver
from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_hex,
    json_number,
    json_put,
    json_quantity_word,
)

from fastevm.core.spec.opcodes import OPCODES
from fastevm.tracing.spool import Spool, SpooledText
from fastevm.tracing.values import TRACE_BYTES_LIMIT


cdef uint8_t[256] PUSHES      # number of stack items that each opcode pushes


cdef int fill_pushes() except -1:
    for op in OPCODES:
        PUSHES[<uint8_t>op.value] = op.pushes
    # SWAP1 to SWAP16 change two items; the trace shows all items in between, too.
    for byte in range(0x90, 0xa0):
        PUSHES[<uint8_t>byte] = byte - 0x90 + 2
    return 0


fill_pushes()


# Sets the memory range from two operands (offset, size), if the size is not zero.
cdef inline void note_memory(
    Effect* effect, const Word* offset, const Word* size
) noexcept nogil:
    if word_fits64(offset) and word_fits64(size):
        effect.offset, effect.size = offset.d[0], size.d[0]


cdef class VmTracer(TextObserver):
    """Writes the ops as JSON text. ``budget``: bytes of text after which execution stops."""

    def __init__(
        self, *, size_t budget=TRACE_BYTES_LIMIT, spool: Spool | None = None
    ) -> None:
        # With a limit of one byte execution stops before every op.
        self.trace = StepTrace(steps=True, calls=True, stack_words=1, limit=1)
        self.budget = budget
        self.spool, self.spills = spool, spool is not None

    @property
    def kept(self) -> int:
        """Size of the text in bytes."""
        return self.spilled + self.writer.out.size

    def text(self) -> object:
        """Returns the trace as JSON: bytes or a position in the spool. Raises TracingError."""
        cdef size_t size = self.writer.out.size
        if self.writer.starved:
            raise MemoryError("no memory for a trace")
        if self.spilled == 0 and (not self.spills or self.spool.fits_in_memory(size)):
            return self.writer.out.bytes[:size]
        self.spill_now()
        buffer_free(&self.writer.out)
        return SpooledText(self.spool, self.start, self.spilled)

    # ----------------------------------------------------------------------------------------------
    # records

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef Tracer* t = self.trace.c
        cdef const uint8_t* at = t.records.bytes
        cdef const uint8_t* end = at + t.records.size
        cdef const TraceHead* head
        cdef const Frame* running = NULL
        if m.depth != 0:
            running = &m.frames[m.depth - 1]
        while at < end:
            head = <const TraceHead*>at
            at += head.size
            if head.kind == TRACE_STEP:
                self.put_step(<const StepRecord*>head, m, end)
            elif head.kind == TRACE_ENTER:
                # This is the last record, so the frame has code and is executing.
                self.put_frame(<const EnterRecord*>head, running if at == end else NULL)
            else:
                self.end_frame(head.depth)
        tracer_clear(t)
        if running != NULL:
            self.close_op(&self.ops[m.depth], running)
            self.look_ahead(running)
        self.starved = self.writer.starved
        self.overflowed = self.spilled + self.writer.out.size > self.budget
        if self.starved or self.overflowed:
            return False
        return not self.spills or self.writer.out.size < SPILL_AT or self.spill()

    cdef void look_ahead(self, const Frame* f) noexcept nogil:
        cdef Effect* effect = &self.next_effect
        cdef const Word* top = f.sp
        cdef uint32_t height = <uint32_t>(f.base - f.sp)
        cdef uint8_t op = f.pc[0]
        memset(effect, 0, sizeof(Effect))
        if height >= 1 and (op == MLOAD or op == MSTORE or op == MSTORE8):
            if word_fits64(&top[0]):
                effect.offset = top[0].d[0]
                effect.size = 1 if op == MSTORE8 else 32
        elif height >= 3 and (
            op == CALLDATACOPY or op == CODECOPY or op == RETURNDATACOPY or op == MCOPY
        ):
            note_memory(effect, &top[0], &top[2])
        elif height >= 4 and op == EXTCODECOPY:
            note_memory(effect, &top[1], &top[3])
        elif height >= 7 and (op == CALL or op == CALLCODE):
            note_memory(effect, &top[5], &top[6])
        elif height >= 6 and (op == DELEGATECALL or op == STATICCALL):
            note_memory(effect, &top[4], &top[5])
        elif height >= 2 and op == SSTORE:
            effect.stores = True
            word_copy(&effect.key, &top[0])
            word_copy(&effect.value, &top[1])

    # ----------------------------------------------------------------------------------------------
    # text

    cdef void put_frame(self, const EnterRecord* entered, const Frame* running) noexcept nogil:
        cdef JsonText* w = &self.writer
        cdef uint32_t depth = entered.head.depth
        self.is_shown[depth] = entered.message_kind != TRACE_SELFDESTRUCT
        self.has_ops[depth] = False
        self.ops[depth].is_open = False
        if not self.is_shown[depth]:
            return
        if depth > 1:
            json_put(w, b',"sub":')
            self.ops[depth - 1].has_sub = True
        json_put(w, b'{"code":')
        if running == NULL:
            json_put(w, b'"0x"')
        else:
            json_hex(w, running.code, running.code_size)
        json_put(w, b',"ops":[')

    cdef void end_frame(self, uint64_t depth) noexcept nogil:
        if self.is_shown[depth]:
            self.close_op(&self.ops[depth], NULL)
            json_put(&self.writer, b"]}")

    cdef void put_step(
        self, const StepRecord* step, const Machine* m, const uint8_t* end
    ) noexcept nogil:
        cdef JsonText* w = &self.writer
        cdef uint32_t depth = step.head.depth
        cdef OpenOp* op = &self.ops[depth]
        cdef int64_t cost = cost_of(step, m.schedule, end)
        if self.has_ops[depth]:
            json_put(w, b",")
        self.has_ops[depth] = True
        json_put(w, b'{"pc":')
        json_number(w, step.pc)
        json_put(w, b',"op":"')
        json_put(w, opcode_name(step.op))
        json_put(w, b'","cost":')
        json_number(w, shown_gas(cost))
        op.is_open, op.has_sub, op.op = True, False, step.op
        op.halted = step.status != RUNNING and step.status != STOPPED and step.status != REVERTED
        op.gas_left = step.gas - cost
        op.effect = self.next_effect

    # Closes the object of an op. `f`: the frame that continues; NULL: the op ended the frame.
    cdef void close_op(self, OpenOp* op, const Frame* f) noexcept nogil:
        cdef JsonText* w = &self.writer
        if not op.is_open:
            return
        op.is_open = False
        if not op.has_sub:
            json_put(w, b',"sub":null')
        if op.halted:
            json_put(w, b',"ex":null}')
            return
        json_put(w, b',"ex":{"used":')
        json_number(w, shown_gas(op.gas_left if f == NULL else f.gas))
        self.put_effect(op, f)
        json_put(w, b"}}")

    cdef void put_effect(self, const OpenOp* op, const Frame* f) noexcept nogil:
        cdef JsonText* w = &self.writer
        cdef const Effect* effect = &op.effect
        cdef uint32_t at = 0
        json_put(w, b',"push":[')
        if f != NULL:
            at = PUSHES[op.op]
        while at != 0:
            at -= 1
            json_quantity_word(w, &f.sp[at])
            if at != 0:
                json_put(w, b",")
        json_put(w, b'],"mem":')
        if f == NULL or effect.size == 0 or effect.offset + effect.size > f.memory_size:
            json_put(w, b"null")
        else:
            json_put(w, b'{"off":')
            json_number(w, effect.offset)
            json_put(w, b',"data":')
            json_hex(w, f.memory + effect.offset, effect.size)
            json_put(w, b"}")
        json_put(w, b',"store":')
        if f == NULL or not effect.stores:
            json_put(w, b"null")
            return
        json_put(w, b'{"key":')
        json_quantity_word(w, &effect.key)
        json_put(w, b',"val":')
        json_quantity_word(w, &effect.value)
        json_put(w, b"}")
