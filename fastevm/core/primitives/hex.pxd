# Hexadecimal text: bytes with 0x, quantities without leading zeros, address checksums.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.word cimport Word


# Writes 2 * size digits, lower case, no prefix, no terminator.
cdef void hex_encode(char* out, const uint8_t* data, size_t size) noexcept nogil
# Decodes an even number of `digits` to digits / 2 bytes; either case, no prefix. False if a
# character is not a hex digit.
cdef bint hex_decode(uint8_t* out, const char* text, size_t digits) noexcept nogil

# Writes the 40 digits of 20 bytes in the mixed case of EIP-55.
cdef void hex_checksum(char* out, const uint8_t* address) noexcept nogil

# Appends 0x and the digits (no quotes). False if out of memory.
cdef bint hex_append(Buffer* buffer, const uint8_t* data, size_t size) noexcept nogil
cdef bint hex_append_quantity(Buffer* buffer, uint64_t value) noexcept nogil
cdef bint hex_append_quantity_word(Buffer* buffer, const Word* value) noexcept nogil
