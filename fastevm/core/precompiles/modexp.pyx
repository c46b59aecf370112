"""Modular exponentiation, precompile 0x05 (EIP-198, EIP-2565, EIP-7823, EIP-7883)."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memset

from fastevm.core.precompiles.common cimport charge, read_padded, saturating_add, size_output
from fastevm.core.primitives.native.gmp cimport (
    Integer, gmp, integer_bytes, integer_load, integer_store,
)
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_INVALID, PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS,
    PrecompileOutcome,
)
from fastevm.core.primitives.intrinsics cimport u128
from fastevm.core.primitives.word cimport (
    Word, word_bits, word_eq, word_fits64, word_load, word_set, word_store, word_sub,
)
from fastevm.core.primitives.word_division cimport word_mod


cdef extern from "fastevm/core/precompiles/known_primes.h" nogil:
    ctypedef struct fe_odd_modulus:
        pass
    const fe_odd_modulus* fe_known_prime(const uint64_t* p)
    int fe_divide_modulo(
        uint64_t* r, const uint64_t* c, const uint64_t* x, const fe_odd_modulus* modulus)


cdef enum:
    BYZANTIUM = 1             # values of Schedule.modexp_version
    BERLIN = 2
    OSAKA = 3

    HEADER = 96               # three lengths, a word each
    BYZANTIUM_DIVISOR = 20
    BERLIN_DIVISOR = 3
    BERLIN_MINIMUM = 200
    OSAKA_MINIMUM = 500
    OSAKA_SMALL_COMPLEXITY = 16

    # GMP ends the process if it runs out of memory, so the length of operands is limited. No block
    # has enough gas for a modulus of this length; for an exponent, only blocks before Berlin have.
    LARGEST_OPERAND = 1 << 26

# In every fork a base or modulus longer than this costs more than 2^63 gas.
cdef uint64_t UNAFFORDABLE_LENGTH = <uint64_t>1 << 36


# The declared lengths in bytes; saturated at 2^64 - 1.
cdef struct Lengths:
    uint64_t base
    uint64_t exponent
    uint64_t modulus


cdef uint64_t read_length(const uint8_t* data, size_t size, size_t offset) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef Word length
    read_padded(bytes, 32, data, size, offset)
    word_load(&length, bytes)
    return length.d[0] if word_fits64(&length) else UINT64_MAX


cdef uint64_t longest_of(const Lengths* lengths) noexcept nogil:
    cdef uint64_t longest = lengths.base
    if lengths.exponent > longest:
        longest = lengths.exponent
    if lengths.modulus > longest:
        longest = lengths.modulus
    return longest


# Returns the offset of an operand after `before` bytes of operands, at most the size of the data.
cdef size_t operand_offset(size_t size, uint64_t before) noexcept nogil:
    cdef uint64_t offset = saturating_add(HEADER, before)
    return size if offset >= size else <size_t>offset


# The adjusted exponent length of EIP-198: the index of the exponent's highest bit, estimated from
# its first 32 bytes. Each further byte adds `tail_weight`. The result is at least 1.
cdef u128 iterations(
    const Lengths* lengths, const uint8_t* data, size_t size, uint64_t tail_weight,
) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef Word head
    cdef size_t head_size = 32 if lengths.exponent > 32 else <size_t>lengths.exponent
    cdef u128 count = 0
    cdef int bits
    memset(bytes, 0, 32)
    read_padded(bytes + 32 - head_size, head_size, data, size, operand_offset(size, lengths.base))
    word_load(&head, bytes)
    bits = word_bits(&head)
    if lengths.exponent > 32:
        count = <u128>tail_weight * <u128>(lengths.exponent - 32)
    if bits > 1:
        count += <u128>(bits - 1)
    return count if count != 0 else <u128>1


# The price of one multiplication by EIP-198, from the longer of base and modulus.
cdef u128 byzantium_complexity(uint64_t length) noexcept nogil:
    cdef u128 square = <u128>length * <u128>length
    if length <= 64:
        return square
    if length <= 1024:
        return square // <u128>4 + <u128>(96 * length - 3072)
    return square // <u128>16 + <u128>(480 * length - 199680)


# complexity * count / divisor, saturated at 2^64 - 1.
cdef uint64_t price(u128 complexity, u128 count, uint64_t divisor) noexcept nogil:
    cdef u128 total
    # A complexity has at most 69 bits and a count 68, so the product could exceed 128 bits.
    if <uint64_t>(complexity >> 56) != 0 and <uint64_t>(count >> 56) != 0:
        return UINT64_MAX
    total = complexity * count // <u128>divisor
    return UINT64_MAX if <uint64_t>(total >> 64) != 0 else <uint64_t>total


cdef uint64_t cost_of(
    int64_t version, const Lengths* lengths, const uint8_t* data, size_t size,
) noexcept nogil:
    cdef uint64_t longest = lengths.modulus if lengths.modulus > lengths.base else lengths.base
    cdef uint64_t words = longest // 8 + (longest % 8 != 0)
    cdef u128 square = <u128>words * <u128>words
    cdef u128 count = iterations(lengths, data, size, 16 if version == OSAKA else 8)
    cdef uint64_t cost
    if longest > UNAFFORDABLE_LENGTH:
        return UINT64_MAX
    if version == BYZANTIUM:
        return price(byzantium_complexity(longest), count, BYZANTIUM_DIVISOR)
    if version == BERLIN:
        cost = price(square, count, BERLIN_DIVISOR)
        return cost if cost > BERLIN_MINIMUM else BERLIN_MINIMUM
    cost = price(<u128>OSAKA_SMALL_COMPLEXITY if longest <= 32 else square + square, count, 1)
    return cost if cost > OSAKA_MINIMUM else OSAKA_MINIMUM


# Loads an operand. Its bytes past the end of the data are zero.
cdef bint load_operand(
    Integer* r, const uint8_t* data, size_t size, size_t offset, size_t length,
) noexcept nogil:
    cdef uint8_t* padded
    if length <= size - offset:
        integer_load(r, data + offset, length)
        return True
    padded = <uint8_t*>PyMem_RawMalloc(length)
    if padded == NULL:
        return False
    read_padded(padded, length, data, size, offset)
    integer_load(r, padded, length)
    PyMem_RawFree(padded)
    return True


# out = base ^ (p - 2) modulo p, which is 1 / base, if the exponent is p - 2 and the modulus p is a
# well-known prime. Takes a tenth of the time of the general power.
cdef bint inverted(
    uint8_t* out, const Lengths* lengths, const uint8_t* data, size_t size,
) noexcept nogil:
    cdef const fe_odd_modulus* known
    cdef Word base, exponent, modulus, two, one
    if (
        lengths.base != 32 or lengths.exponent != 32 or lengths.modulus != 32
        or size < HEADER + 96
    ):
        return False
    word_load(&modulus, data + HEADER + 64)
    known = fe_known_prime(modulus.d)
    if known == NULL:
        return False
    word_load(&exponent, data + HEADER + 32)
    word_set(&two, 2)
    word_sub(&two, &modulus, &two)
    if not word_eq(&exponent, &two):
        return False
    word_load(&base, data + HEADER)
    word_mod(&base, &base, &modulus)
    word_set(&one, 1)
    fe_divide_modulo(base.d, one.d, base.d, known)
    word_store(out, &base)
    return True


# out[0 .. lengths.modulus) = base ^ exponent modulo modulus; all zeros if the modulus is zero.
cdef bint power(
    uint8_t* out, const Lengths* lengths, const uint8_t* data, size_t size,
) noexcept nogil:
    cdef Integer base, exponent, modulus
    cdef size_t base_at = operand_offset(size, 0)
    cdef size_t exponent_at = operand_offset(size, lengths.base)
    cdef size_t modulus_at = operand_offset(size, lengths.base + lengths.exponent)
    cdef bint loaded
    gmp.init(&base)
    gmp.init(&exponent)
    gmp.init(&modulus)
    loaded = (
        load_operand(&base, data, size, base_at, lengths.base)
        and load_operand(&exponent, data, size, exponent_at, lengths.exponent)
        and load_operand(&modulus, data, size, modulus_at, lengths.modulus)
    )
    memset(out, 0, lengths.modulus)
    if loaded and modulus.size != 0:
        gmp.power_modulo(&base, &base, &exponent, &modulus)
        integer_store(out + lengths.modulus - integer_bytes(&base), &base)
    gmp.clear(&base)
    gmp.clear(&exponent)
    gmp.clear(&modulus)
    return loaded


cdef PrecompileOutcome modexp(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef Lengths lengths
    cdef uint64_t limit = <uint64_t>schedule.modexp_max_length
    memset(&lengths, 0, sizeof(lengths))
    lengths.base = read_length(data, size, 0)
    lengths.exponent = read_length(data, size, 32)
    lengths.modulus = read_length(data, size, 64)
    if limit != 0 and longest_of(&lengths) > limit:
        return PRECOMPILE_INVALID
    if not charge(gas, cost_of(schedule.modexp_version, &lengths, data, size)):
        return PRECOMPILE_OUT_OF_GAS
    output.size = 0
    if lengths.modulus == 0:
        return PRECOMPILE_OK
    if longest_of(&lengths) > LARGEST_OPERAND:
        return PRECOMPILE_NO_MEMORY
    if not size_output(output, lengths.modulus):
        return PRECOMPILE_NO_MEMORY
    if inverted(output.bytes, &lengths, data, size):
        return PRECOMPILE_OK
    return PRECOMPILE_OK if power(output.bytes, &lengths, data, size) else PRECOMPILE_NO_MEMORY
