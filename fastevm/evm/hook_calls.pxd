# Python code called by a machine: precompiles by address, and observers of executions.
from fastevm.core.interpreter.machine cimport Machine, PrecompileMove


cdef enum:
    PRECOMPILES_LIMIT = 1024   # precompiles per machine: each call searches all of them
    OUTPUT_LIMIT = 16777216    # maximum size of a precompile's output in bytes


# Observes executions. The base class observes nothing.
cdef class Watch:
    # Called before every attempt; an execution over a remote state may take several.
    cdef int begin(self, Machine* m) except -1
    # Called after TRACE_FULL.
    cdef int read(self, Machine* m) except -1
    # Called after an execution that has a result.
    cdef int finish(self, Machine* m) except -1


# The precompiles implemented in Python, in the form that the machine reads.
cdef class HostPrecompiles:
    cdef dict callables        # by address
    cdef PrecompileMove* moves
    cdef size_t count

    # Replaces the precompiles. Calls ``idle``, which raises if an execution is in progress.
    cdef int pack(self, dict callables, object idle) except -1
    # After HOST_CALL: runs the callable and passes its outcome to the machine.
    cdef int answer(self, Machine* m) except -1
