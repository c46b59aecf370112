# Arguments of calls: decoding with the checks of the reference client, and encoding of results.
#
# The type of an argument is a character. Types of one word: a address, u uint256, 8 uint8, l
# uint64, b bool, w bytes32, 4 bytes4, f feature, v variant, p policy type. Types of variable size:
# s string, y bytes, and arrays: A address[], U uint256[], L uint64[], F feature[], Y bytes[].
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.native.call cimport NativeCall
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef enum:
    ARGUMENT_LIMIT = 7        # most arguments of a function
    SELECTOR_SIZE = 4
    WORD_SIZE = 32


cdef struct Slice:
    const uint8_t* bytes
    size_t size


cdef struct Argument:
    Word word                 # a value
    Slice content             # string, bytes: the content; array: from its first element to the end
    size_t count              # number of elements of an array


cdef enum DecodeError:
    DECODED = 0
    OVERRUN = 1               # an offset or a length points beyond the input
    BAD_OFFSET = 2            # an offset or a length exceeds 64 bits
    TOO_LONG = 3              # the elements of an array exceed the address space
    NO_MEMORY = 4             # the elements of an array exceed the memory of a node
    WRONG_TYPE = 5            # padding, enum or UTF-8 is invalid


cdef struct Decoded:
    Argument arguments[7]
    DecodeError error
    Word offset               # the invalid offset, for BAD_OFFSET


# Decodes the arguments in `data` (without selector) of the types in `codes`. `version` is that of
# the fork: later versions have more features and policy types.
cdef void decode(
    Decoded* out, const char* codes, int version, const uint8_t* data, size_t size
) noexcept nogil
# Like `decode`, for a single struct with members of these types.
cdef void decode_struct(
    Decoded* out, const char* codes, int version, const uint8_t* data, size_t size
) noexcept nogil
# Returns element `i` of a bytes[] array, which was decoded without error.
cdef Slice bytes_element(const Argument* array, size_t i) noexcept nogil

# Ends the call: reverts with the selector and, in Beryl, the text of the reference client.
# `name` is the tuple or the struct that was decoded; `shown` replaces the data in the text.
cdef bint revert_undecoded(
    NativeCall* call, const uint8_t* selector, int version, const char* codes, const char* name,
    const Decoded* decoded, const Slice* shown,
) noexcept nogil

cdef void address_of(Address* out, const Argument* argument) noexcept nogil

# --- appended to the output of the call; False if out of memory ---
# Appends the length, then the content, padded to whole words.
cdef bint append_bytes(NativeCall* call, Slice content) noexcept nogil
# Appends a tuple of values of variable size: the offsets, then the values.
cdef bint append_tuple(NativeCall* call, const Slice* contents, int count) noexcept nogil
cdef bint append_zeros(NativeCall* call, size_t count) noexcept nogil
# Returns `size` rounded up to whole words, in bytes.
cdef size_t padded(size_t size) noexcept nogil
