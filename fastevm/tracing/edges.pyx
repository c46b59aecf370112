"""Records the edges that execution takes in each code: pairs of a jump's pc and the next pc."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from fastevm.core.interpreter.tracer cimport StepRecord
from fastevm.tracing.profile cimport Opened, Profile


cdef enum:
    JUMP = 0x56
    JUMPI = 0x57
    PC_BITS = 25              # enough for 32 MiB of code
    PC_MASK = (1 << PC_BITS) - 1
    FIRST_EDGES = 256
    EDGES_LIMIT = 1 << 20     # most edges per execution


# Packs an edge into 64 bits. The key is never 0, because it has the table's index plus 1 (at most
# 4096).
cdef inline uint64_t edge_key(size_t table, uint64_t source, uint64_t target) noexcept nogil:
    return (
        (<uint64_t>(table + 1) << (2 * PC_BITS)) | ((source & PC_MASK) << PC_BITS)
        | (target & PC_MASK)
    )


# Returns the table index of the key, or the index of the free entry where it belongs.
cdef inline size_t edge_index(const uint64_t* edges, size_t room, uint64_t key) noexcept nogil:
    cdef size_t i = <size_t>((key * <uint64_t>0x9E3779B97F4A7C15) >> 32) & (room - 1)
    while edges[i] != 0 and edges[i] != key:
        i = (i + 1) & (room - 1)
    return i


cdef class EdgeProfile(Profile):
    """A profile that also records the edges after JUMP and JUMPI."""

    def __cinit__(self, *args: object, **options: object) -> None:
        self.edges = <uint64_t*>calloc(FIRST_EDGES, sizeof(uint64_t))
        if self.edges == NULL:
            raise MemoryError
        self.edge_room = FIRST_EDGES

    def __dealloc__(self) -> None:
        free(self.edges)

    cdef bint see_step(self, const StepRecord* r) noexcept nogil:
        cdef Opened* f = &self.opened[r.head.depth]
        if f.has_jumped and not self.see_edge(edge_key(f.table, f.last_pc, r.pc)):
            self.starved = True
            return False
        f.has_jumped = r.op == JUMP or r.op == JUMPI
        return Profile.see_step(self, r)

    cdef bint see_edge(self, uint64_t key) noexcept nogil:
        cdef size_t i = edge_index(self.edges, self.edge_room, key)
        if self.edges[i] == key:
            return True
        if self.edge_count == EDGES_LIMIT:
            return False
        self.edges[i] = key
        self.edge_count = self.edge_count + 1
        if self.edge_count * 2 > self.edge_room:
            return self.grow_edges()
        return True

    cdef bint grow_edges(self) noexcept nogil:
        cdef size_t room = self.edge_room * 2
        cdef size_t i
        cdef uint64_t* edges = <uint64_t*>calloc(room, sizeof(uint64_t))
        if edges == NULL:
            return False
        for i in range(self.edge_room):
            if self.edges[i] != 0:
                edges[edge_index(edges, room, self.edges[i])] = self.edges[i]
        free(self.edges)
        self.edges, self.edge_room = edges, room
        return True

    def branches(self, bint creates) -> dict[bytes, list[tuple[int, int]]]:
        """Returns the sorted edges of an account's code, or of its init code, by address."""
        cdef size_t i
        names = {index: address for (address, is_init), index in self.codes.items()
                 if is_init == creates}
        found = {}
        for i in range(self.edge_room):
            if self.edges[i] == 0:
                continue
            address = names.get((self.edges[i] >> (2 * PC_BITS)) - 1)
            if address is not None:
                edge = (self.edges[i] >> PC_BITS) & PC_MASK, self.edges[i] & PC_MASK
                found.setdefault(address, []).append(edge)
        return {address: sorted(edges) for address, edges in found.items()}
