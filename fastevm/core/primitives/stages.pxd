# Work in stages on the team of threads: the items of a stage are taken one by one, and nobody
# begins a stage before the one before it has ended.
from libc.stdint cimport int64_t


# An item of a stage, by its number from 0 on; `member`: see TeamWork.
ctypedef void (*StageItem)(void* context, int member, int64_t item) noexcept nogil
# Runs when all items of a stage have ended, and nothing beside it: whoever ended the last one calls
# it. It may set the number of items of the stages that follow.
ctypedef void (*StageEnd)(void* context) noexcept nogil


cdef struct Stage:
    StageItem item
    StageEnd end              # NULL: nothing
    int64_t count             # items; none: the stage is left out, but for its end
    int64_t padding[5]        # each counter has a line of its own
    int64_t taken             # atomic
    int64_t padding_after_taken[7]
    int64_t left              # that have not ended: atomic
    int64_t padding_after_left[7]


# Run the stages on at most so many threads, or on the caller's alone where the team is not free.
# `stages` have their functions and the first one its count; all else is zero.
cdef void stages_run(Stage* stages, int count, void* context, int threads) noexcept nogil


# Shares of the items of a stage, of so many items each; the last may have fewer.
cdef inline int64_t shares_of(size_t items, size_t of_each) noexcept nogil:
    return <int64_t>((items + of_each - 1) // of_each)
