"""Names of opcodes and words of halts, as C strings."""

from fastevm.interpreter.machine cimport status_text
from fastevm.interpreter.status cimport STOPPED, Status
from fastevm.interpreter.tracer cimport LeaveRecord, StepRecord

from fastevm.simulate.engine.halt_messages import halt_message
from fastevm.spec.opcodes import OPCODES


# go-ethereum names 0x44 by what it was before the merge, and clients read that name.
OLD_NAMES = {"PREVRANDAO": "DIFFICULTY"}

ROWS = {op.value: OLD_NAMES.get(op.mnemonic, op.mnemonic) for op in OPCODES}
TEXTS = [ROWS.get(byte, f"opcode {byte:#x} not defined").encode() for byte in range(256)]


cdef int fill() except -1:
    cdef bytes text
    cdef size_t byte
    for byte in range(256):
        text = TEXTS[byte]
        OPCODE_NAMES[byte] = text
    return 0


fill()


cdef bytes halt_of(const StepRecord* step):
    text = status_text(<Status>step.status).decode("ascii")
    return halt_message(text, step.op, step.stack_height).encode("ascii")


cdef bytes end_of(const LeaveRecord* frame):
    if frame.status == STOPPED:
        return b""
    text = status_text(<Status>frame.status).decode("ascii")
    return halt_message(text, frame.halt_opcode, frame.halt_height).encode("ascii")
