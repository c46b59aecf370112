# Records the branches that each code takes.
from libc.stdint cimport uint64_t

from fastevm.core.interpreter.tracer cimport StepRecord
from fastevm.tracing.profile cimport Profile


cdef class EdgeProfile(Profile):
    cdef uint64_t* edges      # open addressing; 0: free. See `edge_key`.
    cdef size_t edge_count
    cdef size_t edge_room     # a power of two, at least twice `edge_count`

    cdef bint see_edge(self, uint64_t key) noexcept nogil
    cdef bint grow_edges(self) noexcept nogil
