# Reads JSON of exactly the expected form. Text of any other form is called "odd"; a slower reader
# must read it.
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset, strlen

from fastevm.core.primitives.arena cimport Arena, arena_alloc
from fastevm.core.primitives.hex cimport hex_decode
from fastevm.core.primitives.word cimport Word, word_fits64, word_load


# A position in a text.
cdef struct Cursor:
    const char* at
    const char* end


# The key of an object's member.
cdef struct Key:
    const char* text
    size_t size
    uint64_t seen             # one bit for each known member that was read


cdef enum Step:
    STEP_END = 0
    STEP_MORE = 1
    STEP_ODD = 2


cdef inline void skip_space(Cursor* c) noexcept nogil:
    while c.at < c.end and (c.at[0] == 0x20 or c.at[0] == 0x0a or c.at[0] == 0x0d
                            or c.at[0] == 0x09):
        c.at += 1


cdef inline bint take(Cursor* c, char wanted) noexcept nogil:
    skip_space(c)
    if c.at < c.end and c.at[0] == wanted:
        c.at += 1
        return True
    return False


cdef inline bint is_key(const Key* key, const char* name) noexcept nogil:
    return key.size == strlen(name) and memcmp(key.text, name, strlen(name)) == 0


# Mark a member as seen. Returns False if it was seen before.
cdef inline bint once(Key* key, int member) noexcept nogil:
    cdef uint64_t bit = <uint64_t>1 << member
    if key.seen & bit:
        return False
    key.seen |= bit
    return True


# Read a string without escapes: returns its start and its size.
cdef inline bint take_text(Cursor* c, const char** text, size_t* size) noexcept nogil:
    cdef const char* close
    if not take(c, c'"'):
        return False
    close = <const char*>memchr(c.at, c'"', <size_t>(c.end - c.at))
    if close == NULL:
        return False
    text[0] = c.at
    size[0] = <size_t>(close - c.at)
    c.at = close + 1
    return True


# Read the next member of an object, whose brace has been read. `count`: members so far, 0 at first.
cdef inline Step next_member(Cursor* c, size_t* count, Key* key) noexcept nogil:
    if take(c, c'}'):
        return STEP_END
    if count[0] and not take(c, c','):
        return STEP_ODD
    count[0] += 1
    if take_text(c, &key.text, &key.size) and take(c, c':'):
        return STEP_MORE
    return STEP_ODD


# Go to the next item of an array, whose bracket has been read. `count`: items so far, 0 at first.
cdef inline Step next_item(Cursor* c, size_t* count) noexcept nogil:
    if take(c, c']'):
        return STEP_END
    if count[0] and not take(c, c','):
        return STEP_ODD
    count[0] += 1
    return STEP_MORE


# The functions below read a value and return False for odd text. Hex begins with 0x; quantities
# have no leading zeros.
cdef bint hex_fixed(const char* text, size_t digits, uint8_t* out, size_t size) noexcept nogil
# Reads up to 64 digits without 0x. Leading zeros are allowed.
cdef bint hex_word(const char* digits, size_t count, Word* out) noexcept nogil
cdef bint take_fixed(Cursor* c, uint8_t* out, size_t size) noexcept nogil
cdef bint take_hash_word(Cursor* c, Word* out) noexcept nogil
cdef bint take_word(Cursor* c, Word* out) noexcept nogil
cdef bint take_uint64(Cursor* c, uint64_t* out) noexcept nogil
cdef bint take_flag(Cursor* c, bint* out) noexcept nogil
# Reads any number of bytes into the arena. Also returns False if memory is exhausted.
cdef bint take_data(Cursor* c, Arena* arena, const uint8_t** data, size_t* size) noexcept nogil
