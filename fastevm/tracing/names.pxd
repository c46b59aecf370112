# Names of opcodes and words of halts, as C strings.
from fastevm.interpreter.tracer cimport LeaveRecord, StepRecord


# Of every byte, defined or not; valid for ever.
cdef const char* OPCODE_NAMES[256]

# A step that halts its frame, in the words of halts.py.
cdef bytes halt_of(const StepRecord* step)
# How a frame ended, in the same words; empty for success.
cdef bytes end_of(const LeaveRecord* frame)
