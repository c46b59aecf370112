# Runs work in stages on the thread pool. Threads take the items of a stage one by one, and a stage
# starts only after the previous stage has ended.
from libc.stdint cimport int64_t


# Runs the item with this number (from 0). For `member` see TeamWork.
ctypedef void (*StageItem)(void* context, int member, int64_t item) noexcept nogil
# Runs when all items of a stage have ended, on the thread that ended the last item and without
# anything in parallel. It may set the number of items of the following stages.
ctypedef void (*StageEnd)(void* context) noexcept nogil


cdef struct Stage:
    StageItem item
    StageEnd end              # may be NULL
    int64_t count             # number of items; with 0 only `end` runs
    int64_t padding[5]        # puts each counter on its own cache line
    int64_t taken             # number of items that threads have claimed; atomic
    int64_t padding_after_taken[7]
    int64_t left              # number of items that have not ended; atomic
    int64_t padding_after_left[7]


# Runs the stages on at most `threads` threads, or only on the caller's if the pool is busy. The
# caller sets the functions of `stages` and the count of the first stage. All other members must be
# zero.
cdef void stages_run(Stage* stages, int count, void* context, int threads) noexcept nogil


# Returns how many shares of `of_each` items there are; the last share may have fewer items.
cdef inline int64_t shares_of(size_t items, size_t of_each) noexcept nogil:
    return <int64_t>((items + of_each - 1) // of_each)
