"""An observer that calls the hooks of an ``EVM``."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from fastevm.core.interpreter.machine cimport Machine, status_text
from fastevm.core.interpreter.status cimport STOPPED, Status
from fastevm.core.interpreter.tracer cimport (
    TRACE_ENTER, TRACE_LEAVE, TRACE_STEP, EnterRecord, LeaveRecord, StepRecord, StepTrace,
    TraceHead, tracer_clear,
)
from fastevm.core.primitives.word cimport Word, word_to_int
from fastevm.tracing.observer cimport Observer

from fastevm.evm.hooks import CallEnd, CallStart, Hooks, Step
from fastevm.core.interpreter.tracer import MESSAGE_KINDS
from fastevm.core.spec.opcodes import BY_VALUE, op_named
from fastevm.tracing.watch import ObserverWatch
from fastevm.rpc_types.console import ADDRESS, text_of_call


cdef enum:
    CONSOLE_BYTES = 4096      # bytes of records after which console lines are emitted


cdef bytes CONSOLE = ADDRESS
cdef const char* CONSOLE_TEXT = CONSOLE   # owned by the module
NO_ADDRESS = bytes(20)


def watch_of(hooks: Hooks) -> ObserverWatch:
    """Returns a watch that calls ``hooks`` during executions."""
    if not isinstance(hooks, Hooks):
        raise TypeError(f"hooks are fastevm.Hooks, not {type(hooks).__name__}")
    return ObserverWatch(lambda: HookObserver(hooks))


cdef class HookObserver(Observer):
    """Calls the hook for every record immediately."""

    def __init__(self, hooks: Hooks) -> None:
        self.enter, self.leave = hooks.enter, hooks.leave
        self.step, self.console = hooks.step, hooks.console
        self.hears_calls = not (self.enter is None and self.leave is None and self.step is None)
        self.addresses = []
        self.trace = StepTrace(
            steps=self.step is not None, calls=True, limit=1 if self.hears_calls else CONSOLE_BYTES
        )
        for name in hooks.opcodes:
            value = op_named(name).value
            self.trace.c.chooses = True
            self.trace.c.chosen[<size_t>(value >> 6)] |= <uint64_t>1 << <int>(value & 63)

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef size_t at = 0
        cdef const TraceHead* head
        while at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            at += head.size
            if self.is_wanted(head):
                with gil:
                    try:
                        self.hear(head)
                    except BaseException as error:
                        self.error = error
                        return False
        tracer_clear(self.trace.c)
        return True

    cdef bint is_wanted(self, const TraceHead* head) noexcept nogil:
        if self.hears_calls:
            return True
        if head.kind != TRACE_ENTER:
            return False
        return memcmp((<const EnterRecord*>head).recipient.b, CONSOLE_TEXT, 20) == 0

    cdef int hear(self, const TraceHead* head) except -1:
        cdef const LeaveRecord* left
        if head.kind == TRACE_ENTER:
            return self.hear_enter(head)
        if head.kind == TRACE_STEP:
            if self.step is not None and self.is_chosen((<const StepRecord*>head).op):
                self.hear_step(head)
        elif head.kind == TRACE_LEAVE and self.leave is not None:
            left = <const LeaveRecord*>head
            output = (<const char*>left + sizeof(LeaveRecord))[:left.data_size]
            self.leave(CallEnd(head.depth, text_of(left.status), left.gas_used, output))
        return 0

    cdef int hear_enter(self, const TraceHead* head) except -1:
        cdef const EnterRecord* r = <const EnterRecord*>head
        data = (<const char*>r + sizeof(EnterRecord))[:r.data_size]
        recipient = r.recipient.b[:20]
        del self.addresses[head.depth - 1:]
        self.addresses.append(recipient)
        if self.enter is not None:
            self.enter(CallStart(
                head.depth, MESSAGE_KINDS[r.message_kind], r.caller.b[:20], recipient,
                word_to_int(&r.value), r.gas, data,
            ))
        if self.console is not None and recipient == CONSOLE:
            line = text_of_call(data)
            if line is not None:
                self.console(line)
        return 0

    cdef int hear_step(self, const TraceHead* head) except -1:
        cdef const StepRecord* r = <const StepRecord*>head
        cdef const Word* words = <const Word*>(<const uint8_t*>r + sizeof(StepRecord))
        cdef uint32_t i
        cdef list stack = [word_to_int(&words[i]) for i in range(r.stack_words)]
        stack.reverse()
        known = BY_VALUE.get(r.op)
        depth = head.depth
        self.step(Step(
            self.addresses[depth - 1] if depth <= len(self.addresses) else NO_ADDRESS, depth, r.pc,
            known.mnemonic if known is not None else f"opcode 0x{r.op:x} not defined", r.gas,
            r.gas_cost, tuple(stack), text_of(r.status),
        ))
        return 0

    cdef bint is_chosen(self, uint8_t op) noexcept nogil:
        return not self.trace.c.chooses or (self.trace.c.chosen[op >> 6] >> (op & 63)) & 1


cdef object text_of(int status):
    """Returns the error text of a status; None for success."""
    return None if status <= STOPPED else status_text(<Status>status).decode("ascii")
