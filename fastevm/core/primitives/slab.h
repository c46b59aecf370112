/* Platform support for slabs: atomic counts and locks, aligned memory on large pages. */
#ifndef FASTEVM_SLAB_H
#define FASTEVM_SLAB_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "fastevm/core/primitives/intrinsics.h"

/* Both return the new count. */
FE_INLINE int fe_count_up(int* count) { return __atomic_add_fetch(count, 1, __ATOMIC_RELAXED); }
FE_INLINE int fe_count_down(int* count) { return __atomic_sub_fetch(count, 1, __ATOMIC_ACQ_REL); }

/* A lock for a few instructions, zero when unlocked. A thread that waits long yields, because the
   holder may have been descheduled. */
FE_INLINE void fe_lock(int* lock) {
    for (unsigned tries = 1; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); tries++) {
        if (tries % 64 == 0) sched_yield();
    }
}
FE_INLINE void fe_unlock(int* lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

/* Zeroed memory aligned to its size, a power of two. NULL if out of memory. */
FE_INLINE void* fe_map_aligned(size_t size) {
    uint8_t* all = (uint8_t*)mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    size_t before = (size - ((uintptr_t)all & (size - 1))) & (size - 1);
    if (before) munmap(all, before);
    munmap(all + before + size, size - before);
    return all + before;
}
FE_INLINE void fe_unmap(void* memory, size_t size) { munmap(memory, size); }
/* Asks the kernel for large pages, with which a lookup in a large memory needs no page walk. If
   `in_use`, also asks it to replace small pages immediately. The kernel may decline. */
FE_INLINE void fe_want_large_pages(void* memory, size_t size, int in_use) {
#if defined(MADV_HUGEPAGE)
    enum { collapse = 25 }; /* MADV_COLLAPSE, which older headers lack */
    (void)madvise(memory, size, MADV_HUGEPAGE);
    if (in_use) (void)madvise(memory, size, collapse);
#else
    (void)memory;
    (void)size;
    (void)in_use;
#endif
}

/* Marks free memory as inaccessible for the address sanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define fe_forbid_memory(memory, size) __asan_poison_memory_region((memory), (size))
#define fe_permit_memory(memory, size) __asan_unpoison_memory_region((memory), (size))
#else
#define fe_forbid_memory(memory, size) ((void)(memory), (void)(size))
#define fe_permit_memory(memory, size) ((void)(memory), (void)(size))
#endif

#endif
