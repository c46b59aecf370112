"""Measures a JSON text before parsing it: values, items of a batch, end of the first item."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memchr, memset

# The result of one pass over a text. The pass does not validate the text: for invalid JSON the
# numbers are meaningless, but they never exceed the limits by more than one.
cdef struct Size:
    size_t items          # items of the array; 0 if the text is not an array
    size_t values         # separators and opening brackets, an upper bound of the number of values
    size_t first_end      # offset after the first item


cdef inline bint is_blank(char c) noexcept nogil:
    return c == c" " or c == c"\t" or c == c"\n" or c == c"\r"


# Returns the offset of the quote that ends the string starting after `at`; `size` if there is
# none.
cdef size_t string_end(const char* text, size_t at, size_t size) noexcept nogil:
    cdef const char* found
    cdef size_t quote, slash
    while at < size:
        found = <const char*>memchr(text + at, c'"', size - at)
        if found == NULL:
            return size
        quote = <size_t>(found - text)
        slash = quote
        while slash > at and text[slash - 1] == c"\\":
            slash -= 1
        if (quote - slash) & 1 == 0:
            return quote
        at = quote + 1
    return size


cdef void measure_text(
    const char* text, size_t size, size_t most_items, size_t most_values, Size* out
) noexcept nogil:
    cdef size_t at = 0, depth = 0
    cdef bint is_array, has_item = False
    cdef char c
    out.items = out.values = out.first_end = 0
    while at < size and is_blank(text[at]):
        at += 1
    is_array = at < size and text[at] == c"["
    while at < size and out.items <= most_items and out.values <= most_values:
        c = text[at]
        if c == c'"':
            at = string_end(text, at + 1, size)
            has_item = True
        elif c == c"[" or c == c"{":
            has_item = depth != 0
            depth += 1
            out.values += 1
        elif c == c"]" or c == c"}":
            if depth == 1 and is_array and has_item:
                out.items += 1
                if out.items == 1:
                    out.first_end = at
            if depth <= 1:
                return
            depth -= 1
        elif c == c",":
            out.values += 1
            if depth == 1 and is_array:
                out.items += 1
                if out.items == 1:
                    out.first_end = at
        elif not is_blank(c):
            has_item = True
        at += 1


def measure(text: bytes, *, items: int, values: int) -> tuple[int, int, int]:
    """Returns (number of items of the array, number of values, end of the first item).

    The end is an offset in bytes; 0 if there are no items. Counting stops when the numbers exceed
    the limits ``items`` or ``values``. Allocates no memory for the text.
    """
    cdef Size size
    cdef const char* start = PyBytes_AS_STRING(text)
    cdef size_t length = <size_t>PyBytes_GET_SIZE(text), most_items = items, most_values = values
    memset(&size, 0, sizeof(size))
    with nogil:
        measure_text(start, length, most_items, most_values, &size)
    return size.items, size.values, size.first_end
