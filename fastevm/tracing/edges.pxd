# Records the edges that execution takes in each code: pairs of the pc of a jump and the next pc.
from libc.stdint cimport uint64_t

from fastevm.core.interpreter.tracer cimport StepRecord
from fastevm.tracing.profile cimport Profile


cdef class EdgeProfile(Profile):
    cdef uint64_t* edges      # hash table of `edge_key` values, open addressing; 0: free
    cdef size_t edge_count
    cdef size_t edge_room     # size of the table: a power of two, at least twice `edge_count`

    cdef bint see_edge(self, uint64_t key) noexcept nogil
    cdef bint grow_edges(self) noexcept nogil
