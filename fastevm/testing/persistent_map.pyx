"""Python access to slabs and the persistent map of words."""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from collections.abc import Iterator

from fastevm.core.primitives.intrinsics cimport process_seed
from fastevm.core.primitives.slab cimport (
    SLAB_LINE,
    SLAB_MAX_LINES,
    slab_alloc,
    slab_count,
    slab_free,
    slab_refuse,
)
from fastevm.core.primitives.word cimport Word, word_from_int, word_to_int
from fastevm.core.primitives.word_map cimport (
    WORD_MAP_GROUP,
    WordEntry,
    WordMap,
    word_map_differences,
    word_map_each,
    word_map_get,
    word_map_prefetch,
    word_map_put,
    word_map_release,
    word_map_retain,
)

LARGEST_RECORD = SLAB_MAX_LINES


def allocate(lines: int) -> int:
    """Allocates a record of this many lines, filled with ones. Returns its address, or 0."""
    cdef void* record = slab_alloc(<uint32_t>lines)
    if record != NULL:
        memset(record, 0xff, <size_t>lines * SLAB_LINE)
    return <size_t>record


def references(record: int, lines: int) -> int:
    """Returns the reference count of a record."""
    return slab_count(<void*><size_t>record, <uint32_t>lines)[0]


def release(record: int, lines: int) -> None:
    """Frees a record."""
    slab_free(<void*><size_t>record, <uint32_t>lines)


def refuse_chunks(refuse: bool) -> None:
    """Makes the allocation of chunks fail, or succeed again."""
    slab_refuse(refuse)


def seed() -> int:
    """Returns the seed of word hashes in this process."""
    return process_seed()


cdef bint collect(const WordEntry* entry, void* context) noexcept with gil:
    (<list>context).append((word_to_int(&entry.key), word_to_int(&entry.value)))
    return True


cdef bint collect_key(const Word* key, void* context) noexcept with gil:
    (<list>context).append(word_to_int(key))
    return True


cdef class WordDict:
    """The persistent map of words, with ints as keys and values. Each object is a version of the
    map.

    `set` edits this version and does not affect copies. Value zero removes the key.
    """

    cdef WordMap map

    def __cinit__(self) -> None:
        self.map = 0

    def __dealloc__(self) -> None:
        word_map_release(self.map)

    def __bool__(self) -> bool:
        return self.map != 0

    def copy(self) -> WordDict:
        """Returns another version with the same content, in constant time."""
        cdef WordDict other = WordDict()
        other.map = word_map_retain(self.map)
        return other

    def get(self, key: int) -> int:
        """Returns the value at `key`, or 0."""
        cdef Word word
        cdef const Word* value
        word_from_int(&word, key)
        with nogil:
            value = word_map_get(self.map, &word)
        return 0 if value == NULL else word_to_int(value)

    def set(self, key: int, value: int) -> None:
        """Sets a value. Raises MemoryError if out of memory; then nothing has changed."""
        cdef Word key_word, value_word
        cdef bint done
        word_from_int(&key_word, key)
        word_from_int(&value_word, value)
        with nogil:
            done = word_map_put(&self.map, &key_word, &value_word)
        if not done:
            raise MemoryError

    def prefetch(self, keys: list[int]) -> None:
        """Prefetches the paths of a few keys."""
        cdef Word[WORD_MAP_GROUP] words
        cdef int count = 0
        for key in keys[:WORD_MAP_GROUP]:
            word_from_int(&words[count], key)
            count += 1
        word_map_prefetch(self.map, words, count)

    def items(self) -> Iterator[tuple[int, int]]:
        """Yields all keys and values, in no particular order."""
        cdef list found = []
        word_map_each(self.map, collect, <void*>found)
        return iter(found)

    def differences(self, newer: WordDict) -> list[int]:
        """Returns the keys whose values differ, in no particular order."""
        cdef list found = []
        word_map_differences(self.map, newer.map, collect_key, <void*>found)
        return found
