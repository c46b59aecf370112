# Which values of a member of the block context leave the outcome of a comparison as it is.
from libc.stdint cimport uint8_t

from fastevm.core.interpreter.machine cimport Frame, Span
from fastevm.core.primitives.word cimport Word


# Whether the code only compares the member that the op at `pc` puts on `top` of the stack; then
# the span is narrowed to the values with the same outcome.
cdef bint narrow_span(
    const Frame* f, const Word* top, const uint8_t* pc, Span* span
) noexcept nogil
