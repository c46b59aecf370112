# Finds the values of a block context member for which a comparison in the code has the same
# outcome.
from libc.stdint cimport uint8_t

from fastevm.core.interpreter.machine cimport Frame, Span
from fastevm.core.primitives.word cimport Word


# Returns whether the code only compares the member that the op at `pc` puts on `top` of the stack.
# If so, narrows the span to the values with the same outcome.
cdef bint narrow_span(
    const Frame* f, const Word* top, const uint8_t* pc, Span* span
) noexcept nogil
