"""Counts how many times each opcode is executed."""

from libc.stdint cimport uint64_t

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport (
    TRACE_STEP, StepRecord, StepTrace, TraceHead, tracer_clear,
)
from fastevm.tracing.observer cimport Observer

from fastevm.core.spec.opcodes import OPCODES

MNEMONICS = {op.value: op.mnemonic for op in OPCODES}


cdef class OpcodeCounter(Observer):
    """Counts the executed opcodes of one or more transactions, including failed ones."""

    cdef uint64_t executions[256]

    def __init__(self) -> None:
        self.trace = StepTrace(steps=True, calls=False, stack_words=0)

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef size_t at = 0
        cdef const TraceHead* head
        cdef uint64_t* executions = &self.executions[0]
        while at < self.trace.c.records.size:
            head = <const TraceHead*>(self.trace.c.records.bytes + at)
            at += head.size
            if head.kind == TRACE_STEP:
                executions[(<const StepRecord*>head).op] += 1
        tracer_clear(self.trace.c)
        return True

    def counts(self) -> dict[str, int]:
        """Returns the number of executions by mnemonic.

        The name of an undefined opcode is its byte (``0x0c``).
        """
        cdef size_t op
        return {
            MNEMONICS.get(op, f"0x{op:02x}"): self.executions[op]
            for op in range(256) if self.executions[op]
        }
