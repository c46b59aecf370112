# Large memory between guard pages, so that an overrun ends the process instead of corrupting data.


cdef extern from "fastevm/core/primitives/guarded_memory.h" nogil:
    # Returns zeroed pages between two guard pages, the upper directly after the end. NULL if memory
    # is exhausted.
    void* map_guarded "fe_map_guarded"(size_t size)
    void unmap_guarded "fe_unmap_guarded"(void* memory, size_t size)
