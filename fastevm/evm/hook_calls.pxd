# What Python programs put into a machine: precompiles by address, and what watches a run.
from fastevm.core.interpreter.machine cimport Machine, PrecompileMove


cdef enum:
    PRECOMPILES_LIMIT = 1024   # of one machine: each call of a run looks through them
    OUTPUT_LIMIT = 16777216    # bytes that a precompile may give


# What a run is watched by; the base watches nothing.
cdef class Watch:
    # Before every attempt at a run; a run over a remote state has several.
    cdef int begin(self, Machine* m) except -1
    # After TRACE_FULL.
    cdef int read(self, Machine* m) except -1
    # After a run that has a result.
    cdef int finish(self, Machine* m) except -1


# The precompiles as the machine looks for them.
cdef class HostPrecompiles:
    cdef dict callables        # by address
    cdef PrecompileMove* moves
    cdef size_t count

    # Take these; ``idle`` raises where a run is under way.
    cdef int pack(self, dict callables, object idle) except -1
    # After HOST_CALL: run the callable, and tell the machine how it ended.
    cdef int answer(self, Machine* m) except -1
