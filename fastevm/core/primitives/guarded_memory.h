/* Large memory between two guard pages: an overrun ends the process immediately. */
#ifndef FASTEVM_GUARDED_MEMORY_H
#define FASTEVM_GUARDED_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fastevm/core/primitives/intrinsics.h"

FE_INLINE size_t fe_guarded_size(size_t size, size_t page) {
    return (size + page - 1) & ~(page - 1);
}

/* Zeroed memory, aligned to its size, that ends at a guard page. NULL if out of memory. The kernel
   allocates pages on first use. The memory is not poisoned for the address sanitizer: poisoning the
   stack of a machine would take longer than a small execution. */
FE_INLINE void* fe_map_guarded(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = fe_guarded_size(size, page);
    uint8_t* all = (uint8_t*)mmap(NULL, inside + 2 * page, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    if (mprotect(all + page, inside, PROT_READ | PROT_WRITE)) {
        munmap(all, inside + 2 * page);
        return NULL;
    }
    return all + page + inside - size;
}

/* NULL is allowed. */
FE_INLINE void fe_unmap_guarded(void* memory, size_t size) {
    if (memory == NULL) return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = fe_guarded_size(size, page);
    munmap((uint8_t*)memory + size - inside - page, inside + 2 * page);
}

#endif
