# A persistent map from words to nonzero words: old versions stay valid, an update copies one path.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.word cimport Word


cdef enum:
    WORD_MAP_GROUP = 16


# A reference to a version. 0 is the empty map and allowed everywhere.
ctypedef uint64_t WordMap


cdef struct WordEntry:
    Word key
    Word value


cdef WordMap word_map_retain(WordMap map) noexcept nogil
cdef void word_map_release(WordMap map) noexcept nogil
# Returns a borrowed reference to the value at this key, or NULL.
cdef const Word* word_map_get(WordMap map, const Word* key) noexcept nogil
# Prefetches the paths of at most WORD_MAP_GROUP keys, interleaved.
cdef void word_map_prefetch(WordMap map, const Word* keys, int count) noexcept nogil
# Changes the version that `map` refers to; other references keep their version. Nodes with one
# reference are edited in place, so a batch of updates on a private version copies each path once.
# A zero value removes the key. False if out of memory; then nothing has changed.
cdef bint word_map_put(WordMap* map, const Word* key, const Word* value) noexcept nogil
# Visit every entry, in no particular order, until `visit` returns False.
cdef bint word_map_each(
    WordMap map, bint (*visit)(const WordEntry* entry, void* context) noexcept nogil, void* context
) noexcept nogil
# Visit the keys whose values differ in two versions, in no particular order, until `visit` returns
# False. Shared nodes are skipped, so the work grows with the number of edits between the versions.
cdef bint word_map_differences(
    WordMap before, WordMap after,
    bint (*visit)(const Word* key, void* context) noexcept nogil, void* context,
) noexcept nogil
