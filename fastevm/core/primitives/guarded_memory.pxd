# Large memory of which an overrun ends the process instead of going on in what lies beside it.


cdef extern from "fastevm/core/primitives/guarded_memory.h" nogil:
    # Zeroed pages between two that nobody may touch, the upper one right at the end; NULL without
    # memory.
    void* map_guarded "fe_map_guarded"(size_t size)
    void unmap_guarded "fe_unmap_guarded"(void* memory, size_t size)
